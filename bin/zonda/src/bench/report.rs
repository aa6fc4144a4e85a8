//! `zonda bench report`: runs as HTML pages, or as tables.

use super::run_file;
use crate::output;
use clap::Args;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use zonda_bench::data::Run;
use zonda_bench::report;

/// Show runs that were kept as JSON
///
/// Prints tables, or writes self-contained HTML pages with tables and charts: of one run, the page;
/// of several, a page each beside an index.html.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda bench report run.json
  zonda bench report run.json --html report.html
  zonda bench report erldns.json scale.json --html pages")]
pub struct Report {
    /// The runs, as the suite wrote them
    #[arg(value_name = "FILE.json", required = true)]
    runs: Vec<PathBuf>,
    /// Write a page to this file, or the pages of several runs into this folder
    #[arg(long, value_name = "PATH")]
    html: Option<PathBuf>,
}

impl Report {
    /// Writes the report.
    pub fn run(self) -> ExitCode {
        super::exit_code(self.report())
    }

    /// Writes the pages or prints the tables.
    fn report(&self) -> Result<ExitCode, String> {
        let runs: Vec<Run> =
            self.runs.iter().map(|path| run_file::read(path)).collect::<Result<_, _>>()?;
        match (&self.html, &runs[..]) {
            (Some(path), [run]) => write(path, &report::html(run))?,
            (Some(folder), _) => self.write_pages(folder, runs)?,
            (None, runs) => {
                let texts: Vec<String> = runs.iter().map(report::text).collect();
                output::print(|out| out.write_all(texts.join("\n").as_bytes()))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// A page for each run, named after its file, and one that leads to them.
    fn write_pages(&self, folder: &Path, runs: Vec<Run>) -> Result<(), String> {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut pages: Vec<(String, Run)> = Vec::new();
        for (path, run) in self.runs.iter().zip(runs) {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let page = format!("{stem}.html");
            if page == "index.html" || pages.iter().any(|(other, _)| *other == page) {
                return Err(format!(
                    "{}: another page is named {page}, too; rename the file",
                    path.display()
                ));
            }
            write(&folder.join(&page), &report::html(&run))?;
            pages.push((page, run));
        }
        write(&folder.join("index.html"), &report::index(&pages))
    }
}

/// Writes a page.
fn write(path: &Path, page: &str) -> Result<(), String> {
    fs::write(path, page).map_err(|error| format!("{}: {error}", path.display()))
}
