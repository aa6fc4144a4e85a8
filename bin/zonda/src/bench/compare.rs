//! `zonda bench compare`: what changed between two runs of a suite.

use super::run_file;
use crate::output;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use zonda_bench::report::compare::compare;

/// Tell what changed between two runs beyond noise
///
/// A figure changed when its medians differ by more than its rounds differ among themselves. A
/// server, place or figure that the later run does not have, or does not rank any more, became
/// worse. The exit code is 0 when nothing became worse, 1 when something did, and 2 when the runs
/// have no server and place in common. A change of what was measured once is told and never the
/// cause of a 1.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda bench compare before.json after.json")]
pub struct Compare {
    /// The earlier run, as the suite wrote it
    #[arg(value_name = "EARLIER.json")]
    earlier: PathBuf,
    /// The later run
    #[arg(value_name = "LATER.json")]
    later: PathBuf,
}

impl Compare {
    /// Does it.
    pub fn run(self) -> ExitCode {
        output::end(self.compare().map_err(output::Failure::NotRun))
    }

    /// Prints the comparison.
    fn compare(&self) -> Result<ExitCode, String> {
        let (earlier, later) = (run_file::read(&self.earlier)?, run_file::read(&self.later)?);
        let found = compare(&earlier, &later);
        if found.matched == 0 {
            return Err(format!(
                "{} of suite {} and {} of suite {} have no server and place in common; run one \
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
