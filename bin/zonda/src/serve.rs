//! `zonda serve` and `zonda check`.

use crate::cli::Configuration;
use crate::zone::count;
use clap::Args;
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::filter::LevelFilter;
use zonda_config::{Log, LogFormat, LogLevel};
use zonda_server::{Options, Program, serve};

/// What `zonda serve` says when it was told nothing.
const NOTHING_TO_SERVE: &str = "\
Give a zone: zonda serve --zone example.com=./example.com.zone --listen 127.0.0.1:5300
or a server to ask: zonda serve --forward 192.0.2.1 --listen 127.0.0.1:5300
or a configuration file: zonda serve --config zonda.toml
A commented file to start from is packaging/zonda.toml; `zonda serve --help` tells more.";

/// Answer queries until told to stop
///
/// Zones come from a configuration file, from --zone flags, or from both. SIGHUP reloads, SIGTERM
/// and Ctrl-C stop after all received queries are answered.
#[derive(Args)]
#[command(after_help = "Examples:
  zonda serve --zone example.com=./example.com.zone --listen 127.0.0.1:5300
  zonda serve --forward 192.0.2.1 --forward 192.0.2.2 --listen 127.0.0.1:5300
  zonda serve --config /etc/zonda/zonda.toml
  zonda serve --config /etc/zonda/zonda.toml --take-over   # replace the running server")]
pub struct Serve {
    #[command(flatten)]
    configuration: Configuration,
    /// Take the sockets of the server that now runs with the same admin socket, and replace it
    #[arg(long)]
    take_over: bool,
}

impl Serve {
    /// Serves.
    pub fn run(self) -> ExitCode {
        if self.configuration.is_empty() && !has_zones_in_environment() {
            eprintln!("{NOTHING_TO_SERVE}");
            return ExitCode::from(2);
        }
        let loaded = match self.configuration.load() {
            Ok(loaded) => loaded,
            Err(errors) => {
                eprintln!("{errors}");
                return ExitCode::FAILURE;
            }
        };
        if let Some(effective) = loaded.effective {
            print!("{effective}");
            return ExitCode::SUCCESS;
        }
        start_log(&loaded.config.log);
        loaded.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let configuration = self.configuration;
        let read_config = Box::new(move || Ok(configuration.load()?.config));
        let (config, take_over, program) = (loaded.config, self.take_over, Program::default());
        let options = Options { config, read_config, take_over, program };
        match serve(options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                tracing::error!("{error}");
                ExitCode::FAILURE
            }
        }
    }
}

/// Whether the environment names what to serve.
fn has_zones_in_environment() -> bool {
    ["ZONDA_ZONE", "ZONDA_LISTEN", "ZONDA_FORWARD"]
        .iter()
        .any(|key| std::env::var_os(key).is_some())
}

/// Sends what happens to standard error.
fn start_log(config: &Log) {
    let level = match config.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let log = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match config.format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}

/// Read the configuration and all zones, and say what is wrong with them
///
/// Prints errors and warnings as FILE:LINE:COLUMN. Exits with 1 if there is an error.
#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    configuration: Configuration,
}

impl Check {
    /// Checks.
    pub fn run(self) -> ExitCode {
        let loaded = match self.configuration.load() {
            Ok(loaded) => loaded,
            Err(errors) => {
                println!("{errors}");
                return ExitCode::FAILURE;
            }
        };
        if let Some(effective) = loaded.effective {
            print!("{effective}");
            return ExitCode::SUCCESS;
        }
        loaded.warnings.iter().for_each(|warning| println!("{warning}"));
        let report = zonda_server::check(&loaded.config, &mut |line| println!("{line}"));
        let warnings = report.warnings + loaded.warnings.len() as u64;
        println!(
            "{}, {}, {}",
            count(report.zones, "zone"),
            count(report.errors, "error"),
            count(warnings, "warning")
        );
        if report.errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
