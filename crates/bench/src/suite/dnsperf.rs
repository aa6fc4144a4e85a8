//! Rounds in which dnsperf asks, to stand beside figures that were measured with it.
//!
//! What a query costs a server depends on when it comes: one that comes alone wakes the server, one
//! of many does not. No other generator has dnsperf's rhythm, so this is dnsperf itself.
//!
//! Deliberately absent: percentiles of latency, and replies that are late, wrong or second, since
//! dnsperf says nothing of them; and schedules, which it has not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{fmt, io, thread};

use zonda_netio::child;

use super::measure::QueryRun;
use crate::data::{Latency, Traffic};
use crate::load::{Mode, Plan};
use crate::procfs;
use crate::server::locate;

/// How often a run is looked at, whether it has ended or shall.
const INTERVAL: Duration = Duration::from_millis(20);

/// The installed program dnsperf.
#[derive(Clone, Debug)]
pub struct Dnsperf {
    /// File of the program.
    program: PathBuf,
    /// Version that the program prints.
    pub version: String,
}

impl Dnsperf {
    /// Looks for the program; nothing if it is not installed.
    pub fn locate() -> Option<Self> {
        let program = locate::in_folders("dnsperf")?;
        // dnsperf has no flag that prints the version alone; its list of long options names it.
        let version = locate::printed_version(&program, &["-H".to_owned()]);
        Some(Self { program, version })
    }

    /// Follows a plan with the queries in a file, a line each.
    ///
    /// # Errors
    /// When it cannot be started, or ends without figures.
    pub fn ask(&self, plan: &Plan, queries: &Path) -> Result<QueryRun, DnsperfError> {
        let mut command = Command::new(&self.program);
        command.args(arguments(plan)).arg("-d").arg(queries);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let before_secs = procfs::reaped_secs();
        let mut running = child::spawn(&mut command, &plan.cpus)?;
        wait(&mut running, plan)?;
        let output = running.wait_with_output()?;
        let cpu_secs = procfs::reaped_secs() - before_secs;
        let text = String::from_utf8_lossy(&output.stdout);
        read(&text, cpu_secs).ok_or_else(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            DnsperfError::Mute(said.lines().last().unwrap_or("nothing").trim().to_owned())
        })
    }
}

/// Waits until it has ended, or ends it when the run is stopped.
fn wait(running: &mut Child, plan: &Plan) -> io::Result<()> {
    // The output fits into the pipe, so it need not be read meanwhile.
    while running.try_wait()?.is_none() {
        if plan.is_stopped() {
            return child::kill_group(running);
        }
        thread::sleep(INTERVAL);
    }
    Ok(())
}

/// Returns the arguments of the program.
fn arguments(plan: &Plan) -> Vec<String> {
    let (outstanding, rate_max) = match plan.mode {
        Mode::Closed { outstanding, rate_max } => (outstanding, rate_max),
        Mode::Open { rate } => (u16::MAX.into(), Some(rate)),
    };
    let secs = |time: Duration| time.as_secs_f64().ceil().max(1.0).to_string();
    let mut flags = vec![
        ("-s", plan.server.ip().to_string()),
        ("-p", plan.server.port().to_string()),
        ("-c", plan.sockets.to_string()),
        ("-T", plan.threads.to_string()),
        ("-q", outstanding.to_string()),
        ("-t", plan.timeout.as_secs_f64().to_string()),
    ];
    flags.extend(plan.end.after.map(|after| ("-l", secs(after))));
    flags.extend(plan.end.runs.map(|runs| ("-n", runs.to_string())));
    flags.extend(rate_max.map(|rate| ("-Q", format!("{rate:.0}"))));
    flags.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
}

/// Returns what its report says; nothing if it is none.
fn read(text: &str, cpu_secs: f64) -> Option<QueryRun> {
    let value = |label: &str| {
        let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(label))?;
        Some(rest.trim_start())
    };
    let first = |text: &str| text.split([' ', ')', ',']).next().map(str::to_owned);
    let count = |label| first(value(label)?)?.parse::<u64>().ok();
    let micros = |text: &str| Some(first(text)?.parse::<f64>().ok()? * 1e6);
    let average = value("Average Latency (s):")?;
    let part = |label: &str| micros(average.split_once(label)?.1);
    let traffic = Traffic {
        sent: count("Queries sent:")?,
        completed: count("Queries completed:")?,
        lost: count("Queries lost:")?,
        rcodes: rcodes(value("Response codes:").unwrap_or_default()),
        ..Traffic::default()
    };
    let latency = Latency {
        min: part("(min ")?,
        mean: micros(average)?,
        deviation: value("Latency StdDev (s):").and_then(micros).unwrap_or_default(),
        max: part("max ")?,
        percentiles: Vec::new(),
    };
    let seconds = first(value("Run time (s):")?)?.parse().ok()?;
    Some(QueryRun { seconds, traffic, latency, cpu_secs })
}

/// `NOERROR 7 (87.50%), NXDOMAIN 1 (12.50%)`.
fn rcodes(text: &str) -> BTreeMap<String, u64> {
    let entry = |part: &str| {
        let mut words = part.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    text.split(", ").filter_map(entry).collect()
}

/// Why dnsperf has measured nothing.
#[derive(Debug)]
pub enum DnsperfError {
    /// The program cannot be started.
    System(io::Error),
    /// The program printed no figures; its last line.
    Mute(String),
}

impl From<io::Error> for DnsperfError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl fmt::Display for DnsperfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => write!(f, "dnsperf: {error}"),
            Self::Mute(said) => write!(f, "dnsperf printed no figures; it said: {said}"),
        }
    }
}

impl std::error::Error for DnsperfError {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// What dnsperf 2.10 prints.
    const REPORT: &str = "\
Statistics:

  Queries sent:         648128
  Queries completed:    648120 (100.00%)
  Queries lost:         8 (0.00%)

  Response codes:       NOERROR 567105 (87.50%), NXDOMAIN 81015 (12.50%)
  Average packet size:  request 32, response 81
  Run time (s):         4.000132
  Queries per second:   162024.653186

  Average Latency (s):  0.000588 (min 0.000019, max 0.008114)
  Latency StdDev (s):   0.000213
";

    #[test]
    fn a_report_is_read_figure_by_figure() {
        let asked = read(REPORT, 3.5).unwrap();
        assert_eq!((asked.seconds, asked.cpu_secs), (4.000132, 3.5));
        let Traffic { sent, completed, lost, rcodes, .. } = asked.traffic;
        assert_eq!((sent, completed, lost), (648_128, 648_120, 8));
        let expected = [("NOERROR".to_owned(), 567_105), ("NXDOMAIN".to_owned(), 81_015)];
        assert_eq!(rcodes, BTreeMap::from(expected));
        let Latency { min, mean, deviation, max, .. } = asked.latency;
        let micros = [min, mean, deviation, max].map(|micros| micros.round());
        assert_eq!(micros, [19.0, 588.0, 213.0, 8114.0]);
    }

    #[test]
    fn what_is_no_report_is_no_round() {
        assert!(read("Error: server not found\n", 0.0).is_none());
        assert!(read(&REPORT.replace("648120 (", "many ("), 0.0).is_none());
    }
}
