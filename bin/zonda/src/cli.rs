//! The command line: what there is to type, and which function does it.

use crate::{bench, control, generate, import, query, serve, zone};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use zonda_config::Flags;

/// A DNS server at the speed of the kernel.
#[derive(Parser)]
#[command(
    name = "zonda",
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  zonda serve --zone example.com=./example.com.zone --listen 127.0.0.1:5300
  zonda serve --forward 192.0.2.1 --listen 127.0.0.1:5300
  zonda query @127.0.0.1 -p 5300 example.com SOA
  zonda zone check example.com.zone

Each command has more under --help."
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What zonda does.
#[derive(Subcommand)]
enum Command {
    Serve(serve::Serve),
    Check(serve::Check),
    Import(import::Import),
    Reload(control::Reload),
    Status(control::Status),
    Stats(control::Stats),
    Zones(control::Zones),
    Cache(control::Cache),
    Stop(control::Stop),
    Query(query::Query),
    Zone(zone::Zone),
    Bench(bench::Bench),
    Generate(generate::Generate),
}

impl Cli {
    /// Does it; the exit code is 0 for success, 1 for failure, 2 for a wrong command line.
    pub fn run(self) -> ExitCode {
        match self.command {
            Command::Serve(command) => command.run(),
            Command::Check(command) => command.run(),
            Command::Import(command) => command.run(),
            Command::Reload(command) => command.run(),
            Command::Status(command) => command.run(),
            Command::Stats(command) => command.run(),
            Command::Zones(command) => command.run(),
            Command::Cache(command) => command.run(),
            Command::Stop(command) => command.run(),
            Command::Query(command) => command.run(),
            Command::Zone(command) => command.run(),
            Command::Bench(command) => command.run(),
            Command::Generate(command) => command.run(),
        }
    }
}

/// Where the configuration comes from.
#[derive(Args, Clone)]
pub struct Configuration {
    /// The configuration file; docs/reference/config.md lists its keys
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Answer on this address instead of those in the file (repeatable)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Vec<String>,
    /// Serve a zone from a master file, or from JSON if FILE ends in .json (repeatable)
    #[arg(long, value_name = "NAME=FILE")]
    pub zone: Vec<String>,
    /// Ask this server for all names that no zone holds (repeatable); the port is 53 unless given
    #[arg(long, value_name = "ADDRESS")]
    pub forward: Vec<String>,
    /// Threads that answer UDP; 0 is one for each CPU that the process may use
    #[arg(long, value_name = "N")]
    pub workers: Option<String>,
    /// Print every value with its origin, and exit
    #[arg(long)]
    pub print_config: bool,
}

impl Configuration {
    /// Whether nothing was said at all.
    pub fn is_empty(&self) -> bool {
        self.config.is_none()
            && self.listen.is_empty()
            && self.zone.is_empty()
            && self.forward.is_empty()
    }

    /// Reads it.
    ///
    /// # Errors
    /// All that is wrong with it, a line each.
    pub fn load(&self) -> Result<zonda_config::Loaded, String> {
        let flags = Flags {
            listen: self.listen.clone(),
            zones: self.zone.clone(),
            forward: (!self.forward.is_empty()).then(|| self.forward.join(",")),
            workers: self.workers.clone(),
            print_config: self.print_config,
            ..Flags::default()
        };
        zonda_config::Config::load(self.config.as_deref(), environment(), &flags)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }
}

/// The process's environment, as far as it is text.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(key, value)| Some((key.into_string().ok()?, value.into_string().ok()?)))
}
