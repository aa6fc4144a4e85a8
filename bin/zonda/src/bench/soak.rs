//! `zonda bench soak`: one rate for hours.

use super::interrupt::Interrupt;
use super::progress::Bar;
use super::target::Target;
use crate::output;
use clap::Args;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use zonda_bench::load::limits::{self, Limits, parse_time};
use zonda_bench::load::{self, End, Mode, Plan, owner};
use zonda_bench::soak::drift::{self, Drift};
use zonda_bench::soak::{self, Sample, SoakResult, trend};

/// Ask for hours, at a rate or as fast as can be, and tell whether the server drifts
///
/// Samples memory, descriptors, CPU time and context switches of a server on this machine, and
/// latency, and tells at the end which of them rose or fell beyond noise, by how much an hour.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda bench soak -p 5300 -d queries.txt --rate 20000 -l 6h --json soak.jsonl
  zonda bench soak -p 5300 -d queries.txt --rate 20000 -l 30m --max-rss-drift 1M --max-loss 0.01%
  zonda bench soak -p 5300 --names uniform:1000.example.com --count 100000000 --json soak.jsonl

Without --rate, a query is sent when an earlier one was answered: as many as the server can take.
Exit code 1 says that a limit was broken or that the server's process has ended, and 2 that the soak
could not be made. Ctrl-C and SIGTERM end it early, with what was measured and exit code 130 or 143.
A TIME is a number of seconds, or has a unit: 500us, 2ms, 1s, 30m, 6h.")]
pub struct Soak {
    #[command(flatten)]
    target: Target,
    /// Send N queries a second, on a schedule
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = limits::parse_rate)]
    rate: Option<f64>,
    /// Queries that may wait for replies at once, over all clients
    #[arg(short = 'q', value_name = "N", default_value_t = 100, conflicts_with = "rate")]
    outstanding: usize,
    /// End after this many queries, if that is earlier
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Length of the run, such as 30m or 6h
    #[arg(short = 'l', value_name = "TIME", default_value = "1h",
        value_parser = limits::parse_time_above_0)]
    limit: Duration,
    /// Take a sample after each interval of this many whole seconds
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = whole_seconds)]
    every: u64,
    /// The server's process, instead of the one that has the port
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Write each sample as a line of JSON when it is taken
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Fail when resident memory rises by more octets an hour, such as 500k or 2M
    #[arg(long, value_name = "OCTETS", value_parser = drift::parse_octets)]
    max_rss_drift: Option<f64>,
    /// Fail when the number of open descriptors rises by more an hour
    #[arg(long, value_name = "N")]
    max_descriptor_drift: Option<f64>,
    /// Fail when the 99th percentile of latency rises by more an hour, such as 100us
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    max_p99_drift: Option<Duration>,
    /// Fail when more than this share of queries is lost, such as 0.1%
    #[arg(long, value_name = "SHARE", value_parser = limits::parse_share)]
    max_loss: Option<f64>,
    /// Fail when the 99th percentile of latency is longer than this, such as 2ms
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    max_p99: Option<Duration>,
}

impl Soak {
    /// Soaks.
    pub fn run(self) -> ExitCode {
        super::exit_code(self.try_run())
    }

    /// Runs the soak test, and prints its results.
    fn try_run(self) -> Result<ExitCode, String> {
        let mode = match self.rate {
            Some(rate) => Mode::Open { rate },
            None => Mode::Closed { outstanding: self.outstanding, rate_max: None },
        };
        let mut plan = self.target.plan(mode)?;
        plan.end = End { after: Some(self.limit), count: self.count, ..End::default() };
        let process = self.pid.or_else(|| owner(plan.server));
        self.check(process)?;
        let interrupt = Interrupt::watch()?;
        plan.stop = Arc::clone(&interrupt.stop);
        let soaked = self.soak(&plan, process, &interrupt)?;
        let drifts = drift::drifts(&soaked.samples);
        output::print(|out| {
            load::text::print(&soaked.outcome, out)?;
            drift::print(&drifts, soaked.samples.len(), out)
        })?;
        let broken = self.broken_limits(&soaked, &drifts);
        Ok(broken.map_or(interrupt.exit_code(), |said| super::broken(&said)))
    }

    /// Refuses limits that nothing will be known of.
    fn check(&self, process: Option<u32>) -> Result<(), String> {
        let needs_process = self.max_rss_drift.is_some() || self.max_descriptor_drift.is_some();
        if process.is_none() {
            if needs_process {
                return Err("no process of this machine has that port; see --pid".to_owned());
            }
            output::line("zonda: no process of this machine has that port: latency only");
        }
        let samples = self.limit.as_secs() / self.every;
        let has_limits = self.drift_limits().measures().next().is_some();
        if has_limits && samples < trend::POINTS_MIN as u64 {
            return Err(format!(
                "a drift shows in {} samples or more, here are {samples}; see -l and --every",
                trend::POINTS_MIN
            ));
        }
        Ok(())
    }

    /// Runs the soak test, and writes samples as they come.
    fn soak(
        &self,
        plan: &Plan,
        process: Option<u32>,
        interrupt: &Interrupt,
    ) -> Result<SoakResult, String> {
        let file_error = |error| {
            let path = self.json.as_ref().map_or(String::new(), |path| path.display().to_string());
            format!("{path}: {error}")
        };
        let mut file = self.json.as_ref().map(File::create).transpose().map_err(file_error)?;
        let mut written = Ok(());
        let soak = soak::Soak { every_secs: self.every, process };
        let bar = Bar::new(plan, interrupt);
        let soaked = soak::run(plan, &soak, &mut |progress, sample| {
            bar.show(progress);
            if let (Some(file), Some(sample), Ok(())) = (&mut file, sample, &written) {
                written = write(file, sample);
            }
        });
        bar.clear();
        written.map_err(file_error)?;
        soaked.map_err(|error| error.to_string())
    }

    /// The limits that were broken, or that the server has ended, in words.
    fn broken_limits(&self, soaked: &SoakResult, drifts: &[Drift]) -> Option<String> {
        if soaked.has_server_ended {
            return Some("the server's process has ended".to_owned());
        }
        let (loss_max, p99_max) = (self.max_loss, self.max_p99);
        let limits = Limits { loss_max, p99_max, ..Limits::default() };
        let broken = limits.broken_by(&soaked.outcome);
        let exceeded = self.drift_limits().exceeded_by(drifts);
        let words = broken.iter().map(ToString::to_string);
        let words: Vec<String> = words.chain(exceeded.iter().map(ToString::to_string)).collect();
        (!words.is_empty()).then(|| format!("limits broken: {}", words.join("; ")))
    }

    /// The limits of drift that were given.
    fn drift_limits(&self) -> drift::Limits {
        drift::Limits {
            memory_max: self.max_rss_drift,
            descriptors_max: self.max_descriptor_drift,
            p99_max: self.max_p99_drift,
        }
    }
}

/// Writes a sample to the file; the kernel has it when this returns, so that a process that is
/// killed loses none.
fn write(file: &mut File, sample: &Sample) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(sample)?;
    line.push(b'\n');
    file.write_all(&line)
}

/// Reads a time of whole seconds.
fn whole_seconds(text: &str) -> Result<u64, String> {
    let time = parse_time(text)?;
    let is_whole = time.subsec_nanos() == 0 && time.as_secs() > 0;
    is_whole
        .then_some(time.as_secs())
        .ok_or_else(|| "expected whole seconds, such as 10s".to_owned())
}
