//! `zonda bench suite`: servers side by side.

use super::interrupt::Interrupt;
use crate::output;
use clap::{Args, ValueEnum};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use zonda_bench::data::Run;
use zonda_bench::load::limits::parse_time_above_0;
use zonda_bench::report::{self, json};
use zonda_bench::suite::{self, Options, Step};

/// Run a suite of side-by-side measurements
///
/// Servers that are not installed are left out, and listed. Everything runs on 127.0.0.1. Ctrl-C
/// and SIGTERM end the suite early, with what was measured and exit code 130 or 143. Exit code 2
/// says that nothing could be measured.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda bench suite --list
  zonda bench suite erldns --against zonda,knot,nsd --json erldns.json --html erldns.html
  zonda bench suite ./mine.toml --rounds 7 --server-cpus 0,1 --load-cpus 2,3")]
pub struct Suite {
    /// A suite's name, or a FILE.toml
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// List the suites with their workloads and servers
    #[arg(long)]
    list: bool,
    /// Servers, by name or FILE.toml, instead of the suite's; the reflector is always among them
    #[arg(long, value_name = "SERVER,…", value_delimiter = ',')]
    against: Option<Vec<String>>,
    /// Workloads of the suite, instead of all
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    workloads: Option<Vec<String>>,
    /// Length of one round, a day at most
    #[arg(long, value_name = "TIME", value_parser = round_time)]
    seconds: Option<Duration>,
    /// Rounds of each server in each cell
    #[arg(long, value_name = "N", value_parser = positive_count)]
    rounds: Option<usize>,
    /// CPUs of the servers, instead of the first half
    #[arg(long, value_name = "CPU,…", value_delimiter = ',')]
    server_cpus: Vec<usize>,
    /// CPUs of the load, instead of the other half
    #[arg(long, value_name = "CPU,…", value_delimiter = ',')]
    load_cpus: Vec<usize>,
    /// Install CoreDNS (`go`) and DinoDNS (`npm`) into ~/.cache/zonda/bench if they are missing
    #[arg(long)]
    install: bool,
    /// How the queries of rounds are sent; batches make the server cheaper, too
    #[arg(long, value_enum, default_value = "batch")]
    pace: Pace,
    /// Repeat a round when other processes used more of the machine; 5 by default
    #[arg(long, value_name = "PERCENT", value_parser = positive_number)]
    max_foreign: Option<f64>,
    /// Keep all that was measured in a file, after each round, so that nothing is lost when it ends
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with tables and charts to a file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// How queries are sent.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Pace {
    /// All queries that are due with one call
    Batch,
    /// One query with each call, by dnsperf itself, to compare with its figures
    Dnsperf,
}

impl Suite {
    /// Measures, or lists.
    pub fn run(self) -> ExitCode {
        super::exit_code(match &self.name {
            Some(name) if !self.list => self.measure(name),
            _ => list(),
        })
    }

    /// Runs the suite of this name.
    fn measure(&self, name: &str) -> Result<ExitCode, String> {
        let is_whole = |time: &Duration| time.subsec_nanos() == 0;
        if self.pace == Pace::Dnsperf && !self.seconds.as_ref().is_none_or(is_whole) {
            return Err("dnsperf measures whole seconds; see --seconds".to_owned());
        }
        let suite = suite::Suite::named(name).map_err(|error| error.to_string())?;
        // Refused before hours of measuring, not after them.
        for path in [&self.json, &self.html].into_iter().flatten() {
            check_writable(path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let interrupt = Interrupt::watch()?;
        let options = Options {
            against: self.against.clone(),
            workloads: self.workloads.clone(),
            seconds: self.seconds.map(|time| time.as_secs_f64()),
            rounds: self.rounds,
            server_cpus: self.server_cpus.clone(),
            load_cpus: self.load_cpus.clone(),
            install: self.install,
            by_dnsperf: self.pace == Pace::Dnsperf,
            foreign_cpu_max: self.max_foreign.map(|percent| percent / 100.0),
            stop: Arc::clone(&interrupt.stop),
        };
        let mut kept = Ok(());
        let run = suite::run(&suite, &options, &mut |step| match step {
            Step::Said(line) => output::line(line),
            Step::Measured(run) => kept = self.keep(run),
        });
        let run = run.map_err(|error| format!("{name}: {error}"))?;
        kept?;
        if let Some(path) = &self.html {
            write_whole(path, |out| out.write_all(report::html(&run).as_bytes()))?;
        }
        output::print(|out| out.write_all(report::text(&run).as_bytes()))?;
        match nothing_measured(&run).filter(|_| run.unfinished_of.is_none()) {
            Some(said) => Err(said),
            None => Ok(interrupt.exit_code()),
        }
    }

    /// Writes the raw data, if a file is given for them.
    fn keep(&self, run: &Run) -> Result<(), String> {
        self.json.as_ref().map_or(Ok(()), |path| write_whole(path, |out| json::write(run, out)))
    }
}

/// Why a run has no figure of any server but the reflector, if it has none and was to have one.
fn nothing_measured(run: &Run) -> Option<String> {
    let is_floor =
        |name: &str| run.servers.iter().any(|server| server.is_floor && server.name == name);
    let mut others = run.cells.iter().filter(|cell| !is_floor(&cell.server));
    if others.any(|cell| !cell.rounds.is_empty()) {
        return None;
    }
    let failed = run.cells.iter().filter_map(|cell| cell.unranked.clone());
    let mut reasons: Vec<String> =
        failed.chain(run.skipped.iter().map(ToString::to_string)).collect();
    reasons.sort_unstable();
    reasons.dedup();
    let said = || format!("{}: nothing was measured: {}", run.suite, reasons.join("; "));
    (!reasons.is_empty()).then(said)
}

/// The file beside `path` that takes its place when it is whole.
fn part(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// Whether [`write_whole`] will be able to write here.
fn check_writable(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    File::create(part(path))?;
    fs::remove_file(part(path))
}

/// Writes a file so that there is at every moment either what was there before or the whole.
fn write_whole(path: &Path, write: impl Fn(&mut Vec<u8>) -> io::Result<()>) -> Result<(), String> {
    let mut text = Vec::new();
    let written = write(&mut text)
        .and_then(|()| fs::write(part(path), &text))
        .and_then(|()| fs::rename(part(path), path));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// Prints the suites and servers that can be measured.
fn list() -> Result<ExitCode, String> {
    output::print(|out| {
        for suite in suite::Suite::shipped() {
            writeln!(out, "{}: {}", suite.name, suite.title)?;
            let workloads: Vec<&str> = suite.workloads.iter().map(|w| &*w.name).collect();
            writeln!(out, "  workloads: {}", workloads.join(", "))?;
            writeln!(out, "  servers: {}", suite.servers.join(", "))?;
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a number.
fn positive_number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "must be a number above 0".to_owned())
}

/// Reads the length of a round.
fn round_time(text: &str) -> Result<Duration, String> {
    let time = parse_time_above_0(text)?;
    let is_fit = time.as_secs_f64() <= suite::SECONDS_MAX;
    if is_fit { Ok(time) } else { Err("must be a day at most".to_owned()) }
}

/// Reads a count.
fn positive_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "must be a whole number above 0".to_owned())
}
