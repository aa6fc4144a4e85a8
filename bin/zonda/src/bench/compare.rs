//! `zonda bench compare`: what changed between two runs of a suite.

use super::run_file;
use crate::output;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use zonda_bench::data::Run;
use zonda_bench::report::compare::{compare, disturbance};

/// Show what changed between two runs
///
/// A figure changed when the 95 % interval of its change excludes none; what depends on the speed
/// of the machine is compared as a multiple of the reflector's in the same round. A server, test or
/// figure that the later run does not have, or does not compare any more, became worse. What the
/// rounds do not decide is told as unclear where it may have become worse by 5 % or more.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda bench compare before.json after.json

Exit code 0 says that nothing is known to have become worse, 1 that something has, and 2 that the
runs cannot be compared: they have nothing in common, or other processes disturbed one of them. A
change of what was measured once, and an unclear one, are told and never the cause of a 1.")]
pub struct Compare {
    /// The earlier run, as the suite wrote it
    #[arg(value_name = "EARLIER.json")]
    earlier: PathBuf,
    /// The later run
    #[arg(value_name = "LATER.json")]
    later: PathBuf,
    /// Compare runs that other processes have disturbed, though that proves nothing
    #[arg(long)]
    disturbed_anyway: bool,
}

impl Compare {
    /// Compares the runs.
    pub fn run(self) -> ExitCode {
        super::exit_code(self.compare())
    }

    /// Prints the comparison.
    fn compare(&self) -> Result<ExitCode, String> {
        let (earlier, later) = (run_file::read(&self.earlier)?, run_file::read(&self.later)?);
        let runs = [(&self.earlier, &earlier), (&self.later, &later)];
        let disturbed = |(path, run): (&PathBuf, &Run)| {
            let said = disturbance(run)?;
            let path = path.display();
            Some(format!("{path}: {said} Measure again, or say --disturbed-anyway."))
        };
        if let Some(said) = runs.into_iter().find_map(disturbed).filter(|_| !self.disturbed_anyway)
        {
            return Err(said);
        }
        let found = compare(&earlier, &later);
        if found.matched == 0 {
            return Err(format!(
                "{} of suite {} and {} of suite {} have no server and test in common; run one \
                 suite twice with the same servers",
                self.earlier.display(),
                earlier.suite,
                self.later.display(),
                later.suite
            ));
        }
        output::print(|out| out.write_all(found.text().as_bytes()))?;
        Ok(ExitCode::from(u8::from(found.is_worse())))
    }
}
