//! `zonda import`: the configuration of another server.

use crate::output::{self, Failure};
use clap::Args;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use zonda_import::{Files, named_conf};

/// Turn BIND's named.conf into a zonda.toml
///
/// Each key names the line that it comes from. What could not be carried over goes to standard
/// error, a line each: what is lost, what differs, and what needs no counterpart. The exit code is
/// 2 when the file cannot be read or is none that BIND would take.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda import /etc/bind/named.conf -o zonda.toml
  zonda check --config zonda.toml")]
pub struct Import {
    /// The configuration; files that it includes are read too
    file: PathBuf,
    /// Write to this file, which must not exist, in place of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Import {
    /// Imports.
    pub fn run(self) -> ExitCode {
        output::end(self.import())
    }

    fn import(self) -> Result<ExitCode, Failure> {
        // Paths in the result start from elsewhere than those in the file, so all are whole.
        let path = std::path::absolute(&self.file)
            .map_err(|error| format!("{}: {error}", self.file.display()))?;
        let import = named_conf::import(&path, &mut Disk);
        let import = import.map_err(|error| self.explain(&error.to_string()))?;
        match &self.output {
            Some(path) => fs::File::create_new(path)
                .and_then(|mut file| file.write_all(import.toml.as_bytes()))
                .map_err(|error| format!("{}: {error}", path.display()))?,
            None => output::print(|out| out.write_all(import.toml.as_bytes()))?,
        }
        import.left.iter().for_each(output::line);
        Ok(ExitCode::SUCCESS)
    }

    /// Returns what is wrong with the file, or which kind of file it is instead.
    fn explain(&self, error: &str) -> String {
        let file = self.file.display();
        match fs::read_to_string(&self.file) {
            Ok(text) if zonda_config::looks_like_a_zone(&text) => format!(
                "{file}: this is a zone file, and no named.conf: serve it by `zonda serve --zone \
                 NAME={file}`"
            ),
            _ => error.to_owned(),
        }
    }
}

/// The files of this machine.
struct Disk;

impl Files for Disk {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn list(&mut self, folder: &Path) -> io::Result<Vec<String>> {
        let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
        let names: io::Result<Vec<_>> = names.collect();
        Ok(names?.into_iter().filter_map(|name| name.into_string().ok()).collect())
    }
}
