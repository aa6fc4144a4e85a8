//! `zonda file`: what can be done with zone files without a server.

mod check;
mod convert;
mod input;
mod print;
mod stats;

pub use check::count;

use crate::output;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Check, print, convert or count zone files
///
/// No server is needed. For the zones of the running server, see `zonda zone`.
#[derive(Args)]
pub struct File {
    #[command(subcommand)]
    command: Command,
}

/// Commands about zone files.
#[derive(Subcommand)]
enum Command {
    #[command(alias = "lint", alias = "verify")]
    Check(check::Check),
    Print(print::Print),
    Convert(convert::Convert),
    Stats(stats::Stats),
}

impl File {
    /// Does what the subcommand says.
    pub fn run(self) -> ExitCode {
        output::end(match self.command {
            Command::Check(command) => command.run(),
            Command::Print(command) => command.run(),
            Command::Convert(command) => command.run(),
            Command::Stats(command) => command.run(),
        })
    }
}
