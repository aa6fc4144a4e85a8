//! `zonda serve` and `zonda check`.

use crate::cli::Configuration;
use crate::corefile::LoadOutcome;
use crate::event_level::EventLevel;
use crate::file::count;
use crate::output::{self, Failure};
use clap::Args;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use zonda_config::{Log, LogFormat};
use zonda_import::{Effect, ReportLine};
use zonda_server::{
    CheckReport, ConfigWatch, Options, Program, ServeError, SetLogLevel, StandardError, flush_log,
    flush_log_to_reader, serve,
};

/// What `zonda serve` says when it was told nothing.
const NOTHING_TO_SERVE: &str = "\
Give a zone: zonda serve --zone example.com=./example.com.zone --listen 127.0.0.1:5300
or a server to ask: zonda serve --forward 192.0.2.1 --listen 127.0.0.1:5300
or, in a pod, its cluster: zonda serve --kubernetes cluster.local --forward /etc/resolv.conf
or a Corefile of CoreDNS: zonda serve --corefile FILE
or a configuration file: zonda serve --config FILE; ./zonda.toml and /etc/zonda/zonda.toml need none
A commented file to start from is packaging/zonda.toml; `zonda serve --help` tells more.";

/// What `zonda check` says when it was told nothing.
const NOTHING_TO_CHECK: &str = "\
there is nothing to check: give a configuration by --config FILE, as there is neither \
./zonda.toml nor /etc/zonda/zonda.toml; a zone file is checked by `zonda file check FILE`";

/// Answer queries until told to stop
///
/// Zones come from a configuration file, from --zone and --store flags, or from both. SIGHUP
/// reloads, SIGTERM and Ctrl-C stop after all received queries are answered. The exit code is 0
/// after such a stop, 1 when the server had to end or one of its threads had ended before, 2 when
/// it could not start.
#[derive(Args)]
#[command(after_help = "Examples:
  zonda serve --zone example.com=./example.com.zone --listen 127.0.0.1:5300
  zonda serve --store example.com=redis://127.0.0.1 --listen 127.0.0.1:5300
  zonda serve --forward 192.0.2.1 --forward 192.0.2.2 --listen 127.0.0.1:5300
  zonda serve --steer www.example.com=192.0.2.10:443,198.51.100.7:443 --check https:/health
  zonda serve --kubernetes cluster.local --forward /etc/resolv.conf
  zonda serve --corefile /etc/coredns/Corefile
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
        output::end(self.serve())
    }

    fn serve(mut self) -> Result<ExitCode, Failure> {
        if !self.configuration.complete()? {
            output::line(NOTHING_TO_SERVE);
            return Ok(ExitCode::from(2));
        }
        let LoadOutcome { loaded, report } = match self.configuration.load() {
            Ok(reading) => reading,
            Err(error) => {
                output::line(error.text);
                return Ok(ExitCode::from(2));
            }
        };
        if let Some(effective) = loaded.effective {
            output::print(|out| write!(out, "{effective}"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let log_level = start_log(&loaded.config.log);
        loaded.warnings.iter().for_each(|warning| tracing::warn!(%warning, "configuration"));
        report.iter().for_each(log_line);
        let configuration = self.configuration;
        let config_watch = configuration.corefile.is_some().then(|| {
            let corefile = Arc::clone(&configuration.served_corefile);
            Box::new(move |last| corefile.is_to_be_read(last)) as ConfigWatch
        });
        let read_config = Box::new(move || {
            let LoadOutcome { loaded, report } =
                configuration.load().map_err(|error| error.text)?;
            report.iter().for_each(log_line);
            Ok(loaded.config)
        });
        let log_level: SetLogLevel = Box::new(move |level| log_level.set(level));
        let program = Program { config_watch, log_level: Some(log_level), ..Program::default() };
        let (config, take_over) = (loaded.config, self.take_over);
        let options = Options { config, read_config, take_over, program };
        let exit_code = match serve(options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                tracing::error!(%error, "the server ends");
                let ran = matches!(error, ServeError::Worker(_) | ServeError::Down(_));
                ExitCode::from(if ran { 1 } else { 2 })
            }
        };
        flush_log();
        Ok(exit_code)
    }
}

/// Logs what became of a line of a Corefile.
fn log_line(line: &ReportLine) {
    let (place, effect, what) = (&line.place, line.effect, &line.what);
    if effect == Effect::Needless {
        tracing::info!(%place, %effect, what, why = line.why, "line of the Corefile");
    } else {
        tracing::warn!(%place, %effect, what, why = line.why, "line of the Corefile");
    }
}

/// Writes panics as the log is written: the hook of the standard library would wait without end for
/// a reader of standard error that reads no more, and the thread would never be started again.
fn write_panics_to_log() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name");
        let _ = writeln!(StandardError, "thread {name}: {panic}"); // it never fails
        flush_log_to_reader(); // the process may end with this panic
    }));
}

/// Sends what happens to standard error; returns what sets the level from which events are told.
fn start_log(config: &Log) -> EventLevel {
    write_panics_to_log();
    let level = EventLevel::new(config.level);
    let lines = tracing_subscriber::fmt::layer()
        .with_target(false)
        .with_writer(|| StandardError)
        .log_internal_errors(false) // it would panic where standard error cannot be written to
        .with_ansi(std::io::stderr().is_terminal());
    let registry = tracing_subscriber::registry();
    match config.format {
        LogFormat::Text => registry.with(lines).with(level.clone()).init(),
        LogFormat::Json => registry.with(lines.json()).with(level.clone()).init(),
    }
    level
}

/// Read the configuration and all zones, and say what is wrong with them
///
/// Prints errors and warnings as FILE:LINE:COLUMN. The exit code is 0 without errors, 1 with
/// errors, 2 when there is nothing to read or an option is wrong.
#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    configuration: Configuration,
}

impl Check {
    /// Checks.
    pub fn run(self) -> ExitCode {
        output::end(self.check())
    }

    fn check(mut self) -> Result<ExitCode, Failure> {
        if !self.configuration.complete()? && !self.configuration.print_config {
            return Err(Failure::NotRun(NOTHING_TO_CHECK.to_owned()));
        }
        let LoadOutcome { loaded, report: lines } = match self.configuration.load() {
            Ok(reading) => reading,
            Err(error) => {
                output::print(|out| writeln!(out, "{}", error.text))?;
                return Ok(error.exit_code());
            }
        };
        if let Some(effective) = loaded.effective {
            output::print(|out| write!(out, "{effective}"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut report = CheckReport::default();
        output::print(|out| {
            lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
            loaded.warnings.iter().try_for_each(|warning| writeln!(out, "{warning}"))?;
            let mut written = Ok(());
            report = zonda_server::check(&loaded.config, &mut |line| {
                if written.is_ok() {
                    written = writeln!(out, "{line}");
                }
            });
            written?;
            let warnings = report.warnings + loaded.warnings.len() as u64;
            let (zones, errors) = (count(report.zones, "zone"), count(report.errors, "error"));
            writeln!(out, "{zones}, {errors}, {}", count(warnings, "warning"))
        })?;
        Ok(ExitCode::from(u8::from(report.errors > 0)))
    }
}
