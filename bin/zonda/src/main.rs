//! The zonda command.

mod cli;
mod control;
mod serve;

use clap::Parser;
use std::process::ExitCode;

// A zone that was loaded leaves gaps that the system's allocator keeps; this one gives them back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::Cli::parse().run()
}
