//! The zonda command.
#![deny(clippy::print_stdout, clippy::print_stderr)] // `output` writes, and never panics

mod bench;
mod cli;
mod control;
mod corefile;
mod event_level;
mod file;
mod former;
mod generate;
mod import;
mod output;
mod query;
mod serve;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
