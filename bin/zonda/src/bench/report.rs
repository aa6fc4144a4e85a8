//! `zonda bench report`: a run as an HTML page, or as tables.

use super::run_file;
use crate::output;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use zonda_bench::report;

/// Show a run that was kept as JSON
///
/// Prints tables, or writes one self-contained HTML page with tables and charts.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda bench report run.json
  zonda bench report run.json --html report.html")]
pub struct Report {
    /// The run, as the suite wrote it
    #[arg(value_name = "FILE.json")]
    run: PathBuf,
    /// Write a page to this file instead of printing tables
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
}

impl Report {
    /// Does it.
    pub fn run(self) -> ExitCode {
        output::exit_code(self.report())
    }

    /// Writes the page or prints the tables.
    fn report(&self) -> Result<ExitCode, String> {
        let run = run_file::read(&self.run)?;
        match &self.html {
            Some(path) => std::fs::write(path, report::html(&run))
                .map_err(|error| format!("{}: {error}", path.display()))?,
            None => output::print(|out| out.write_all(report::text(&run).as_bytes()))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
