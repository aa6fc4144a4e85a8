//! `zonda generate`: files about the command line, for packages.

use crate::cli::Cli;
use crate::output;
use clap::{Args, CommandFactory, Subcommand};
use clap_complete::Shell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write man pages or shell completions
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda generate man /usr/local/share/man/man1
  zonda generate completions bash > /etc/bash_completion.d/zonda")]
pub struct Generate {
    #[command(subcommand)]
    what: What,
}

/// What is written.
#[derive(Subcommand)]
enum What {
    /// Write a man page for each command into a directory
    Man {
        /// An existing directory
        directory: PathBuf,
    },
    /// Print a shell's completions
    Completions {
        /// The shell
        shell: Shell,
    },
}

impl Generate {
    /// Writes.
    pub fn run(self) -> ExitCode {
        output::exit_code(match self.what {
            What::Man { directory } => man(&directory),
            What::Completions { shell } => completions(shell),
        })
    }
}

/// Writes man pages.
fn man(directory: &Path) -> Result<ExitCode, String> {
    clap_mangen::generate_to(Cli::command(), directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints completions.
fn completions(shell: Shell) -> Result<ExitCode, String> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "zonda", &mut text);
    output::print(|out| std::io::Write::write_all(out, &text))?;
    Ok(ExitCode::SUCCESS)
}
