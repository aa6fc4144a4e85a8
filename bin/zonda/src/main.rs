//! The zonda command.

mod cli;
mod control;
mod serve;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    cli::Cli::parse().run()
}
