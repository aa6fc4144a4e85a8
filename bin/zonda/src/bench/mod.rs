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

use crate::output::{self, Failure};
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Measure DNS servers
#[derive(Args)]
pub struct Bench {
    #[command(subcommand)]
    what: What,
}

/// The action of `zonda bench`.
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

/// The exit code of a command; an error is why it could not be run.
fn exit_code(result: Result<ExitCode, String>) -> ExitCode {
    output::end(result.map_err(Failure::NotRun))
}

/// Prints what a server did not keep; what the command ends with.
fn broken(said: &str) -> ExitCode {
    output::end(Err(Failure::Failed(said.to_owned())))
}

impl Bench {
    /// Runs the action.
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
