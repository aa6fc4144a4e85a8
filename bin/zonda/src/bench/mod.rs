//! `zonda bench`: measuring DNS servers.

mod compare;
mod interrupt;
mod load;
mod progress;
mod ramp;
mod reflector;
mod report;
mod run_file;
mod soak;
mod suite;
mod target;

use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Measure DNS servers
#[derive(Args)]
pub struct Bench {
    #[command(subcommand)]
    what: What,
}

/// What is done.
#[derive(Subcommand)]
enum What {
    Compare(compare::Compare),
    Load(Box<load::Load>),
    Ramp(Box<ramp::Ramp>),
    Soak(Box<soak::Soak>),
    Suite(suite::Suite),
    Reflector(reflector::Reflector),
    Report(report::Report),
}

impl Bench {
    /// Does it.
    pub fn run(self) -> ExitCode {
        match self.what {
            What::Compare(command) => command.run(),
            What::Load(command) => command.run(),
            What::Ramp(command) => command.run(),
            What::Soak(command) => command.run(),
            What::Suite(command) => command.run(),
            What::Reflector(command) => command.run(),
            What::Report(command) => command.run(),
        }
    }
}
