//! The load: dnsperf, and what it counted.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fmt, io};

use zonda_netio::child;

use crate::data::{Latency, Traffic};

/// How long a query may take before it counts as lost.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What to send.
#[derive(Clone, Debug)]
pub struct Order<'a> {
    /// The server.
    pub server: SocketAddr,
    /// A file of `NAME TYPE` lines, sent again and again.
    pub queries: &'a Path,
    /// Sockets.
    pub clients: usize,
    /// Queries outstanding at most.
    pub outstanding: usize,
    /// Most queries a second.
    pub rate: Option<u64>,
    /// When to stop.
    pub end: End,
    /// CPUs of the generator; none leaves it to the scheduler.
    pub cpus: &'a [usize],
}

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// After this many seconds.
    Seconds(f64),
    /// When every query of the file has been sent once.
    Once,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// How long it took.
    pub seconds: f64,
    /// Queries and replies.
    pub traffic: Traffic,
    /// Time from query to reply, without percentiles, which dnsperf does not tell.
    pub latency: Latency,
}

/// Sends the load and waits until it is over.
pub fn run(order: &Order<'_>) -> Result<Counted, LoadError> {
    let mut command = Command::new("dnsperf");
    command.args(["-s", &order.server.ip().to_string(), "-p", &order.server.port().to_string()]);
    command.arg("-d").arg(order.queries).args(["-c", &order.clients.to_string(), "-T", "1"]);
    command.args(["-q", &order.outstanding.to_string(), "-t", &TIMEOUT.as_secs().to_string()]);
    if let Some(rate) = order.rate {
        command.args(["-Q", &rate.to_string()]);
    }
    match order.end {
        End::Seconds(seconds) => command.args(["-l", &seconds.to_string()]),
        End::Once => command.args(["-n", "1"]),
    };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child::spawn(&mut command, order.cpus).map_err(LoadError::Start)?;
    let output = child.wait_with_output().map_err(LoadError::Start)?;
    let text = String::from_utf8_lossy(&output.stdout);
    read(&text).ok_or_else(|| {
        let said = [&*text, &*String::from_utf8_lossy(&output.stderr)].concat();
        LoadError::Output(said.lines().last().unwrap_or_default().to_owned())
    })
}

/// Reads what dnsperf prints at its end; none when something is missing.
fn read(text: &str) -> Option<Counted> {
    let value =
        |label: &str| text.lines().find_map(|line| line.trim().strip_prefix(label)).map(str::trim);
    let first = |label: &str| value(label)?.split_whitespace().next();
    let micros = |text: &str| text.parse::<f64>().ok().map(|seconds| seconds * 1e6);
    let completed: u64 = first("Queries completed:")?.parse().ok()?;
    let traffic = Traffic {
        sent: first("Queries sent:")?.parse().ok()?,
        completed,
        lost: first("Queries lost:")?.parse().ok()?,
        rcodes: value("Response codes:").map(rcodes).unwrap_or_default(),
        ..Traffic::default()
    };
    let bounds = value("Average Latency (s):").unwrap_or_default();
    let bound = |label: &str| {
        let (_, rest) = bounds.split_once(label)?;
        micros(rest.trim_start().split([',', ')']).next()?)
    };
    let latency = Latency {
        min: bound("min").unwrap_or_default(),
        mean: first("Average Latency (s):").and_then(micros).unwrap_or_default(),
        deviation: first("Latency StdDev (s):").and_then(micros).unwrap_or_default(),
        max: bound("max").unwrap_or_default(),
        percentiles: Vec::new(),
    };
    Some(Counted { seconds: first("Run time (s):")?.parse().ok()?, traffic, latency })
}

/// Reads `NOERROR 5 (50.00%), REFUSED 5 (50.00%)`.
fn rcodes(text: &str) -> std::collections::BTreeMap<String, u64> {
    let parts = text.split(", ").map(str::split_whitespace);
    parts
        .filter_map(|mut part| Some((part.next()?.to_owned(), part.next()?.parse().ok()?)))
        .collect()
}

/// Why there is no load.
#[derive(Debug)]
pub enum LoadError {
    /// dnsperf cannot be started.
    Start(io::Error),
    /// It printed no statistics; its last words.
    Output(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(error) if error.kind() == io::ErrorKind::NotFound => {
                f.write_str("dnsperf is not installed: apt-get install dnsperf")
            }
            Self::Start(error) => write!(f, "dnsperf cannot be started: {error}"),
            Self::Output(said) => write!(f, "dnsperf printed no statistics: {said}"),
        }
    }
}

impl std::error::Error for LoadError {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_dnsperf_prints_is_read_to_the_last_figure() {
        let text = "Statistics:\n\n  Queries sent:         300000\n  \
            Queries completed:    298991 (99.66%)\n  Queries lost:         1009 (0.34%)\n\n  \
            Response codes:       NOERROR 210898 (70.54%), SERVFAIL 4394 (1.47%)\n  \
            Average packet size:  request 37, response 101\n  Run time (s):         300.014971\n  \
            Queries per second:   996.586934\n\n  \
            Average Latency (s):  0.010422 (min 0.005613, max 1.986681)\n  \
            Latency StdDev (s):   0.051944\n";
        let counted = read(text).unwrap();
        assert_eq!((counted.traffic.sent, counted.traffic.lost), (300_000, 1009));
        assert_eq!(counted.traffic.rcodes["SERVFAIL"], 4394);
        assert_eq!(counted.seconds, 300.014_971);
        let rounded = |micros: f64| micros.round() as u64;
        let latency = counted.latency;
        assert_eq!([latency.min, latency.mean, latency.max].map(rounded), [5613, 10422, 1_986_681]);
        assert_eq!(rounded(latency.deviation), 51944);
    }

    #[test]
    fn a_run_that_ended_early_has_no_figures() {
        assert_eq!(read("Error: no such file\n"), None);
    }
}
