//! `zonda bench compare`: what changed between two runs of a suite.

use super::run_file;
use crate::output;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use zonda_bench::report;

/// Tell what changed between two runs beyond noise
///
/// A figure changed when its medians differ by more than its rounds differ among themselves. The
/// exit code is 0 whether or not something changed.
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
        output::exit_code(self.compare())
    }

    /// Prints the comparison.
    fn compare(&self) -> Result<ExitCode, String> {
        let found = report::compare::compare(
            &run_file::read(&self.earlier)?,
            &run_file::read(&self.later)?,
        );
        output::print(|out| out.write_all(found.text().as_bytes()))?;
        Ok(ExitCode::SUCCESS)
    }
}
