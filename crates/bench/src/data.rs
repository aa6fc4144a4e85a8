//! What was measured, as it is written to JSON and read by reports.
//!
//! Raw figures of every round; medians, spreads, ratios and ranks are computed where they are
//! shown, so that a report can never disagree with the data below it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The version of this form. A reader refuses other versions.
pub const FORMAT: u32 = 1;

/// One run of one suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of the form: [`FORMAT`].
    pub format: u32,
    /// The suite's name, as on the command line.
    pub suite: String,
    /// The name of the report that the suite repeats, as a heading; absent in suites that repeat
    /// none, and in runs that were written before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// One line that says what is compared.
    pub title: String,
    /// Begin of the run; seconds since 1970.
    pub began_unix_secs: u64,
    /// Length of the run, seconds.
    pub took_secs: f64,
    /// Machine on which the suite ran.
    pub environment: Environment,
    /// Method of measurement, the same for all cells.
    pub method: Method,
    /// Servers that took part, in the order of the suite.
    pub servers: Vec<Server>,
    /// Servers that were left out, and why.
    pub skipped: Vec<SkippedServer>,
    /// The results: one cell for each server and place in the matrix.
    pub cells: Vec<Cell>,
    /// What the original report printed, to stand beside the tables.
    pub published: Vec<Table>,
    /// What of the original report is not repeated, a line each; empty in runs that were written
    /// before it was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// How many tests (workloads at places) were planned, as long as the run has not reached its
    /// end; absent in a whole run, and in runs that were written before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished_of: Option<usize>,
}

/// The machine and the programs on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The processor's model, as it names itself.
    pub cpu: String,
    /// CPUs that this run was allowed to use.
    pub cpus: usize,
    /// Size of main memory, octets.
    pub memory_octets: u64,
    /// System and kernel, as `uname -sr` prints them.
    pub kernel: String,
    /// `PRETTY_NAME` of os-release.
    pub system: String,
    /// The version of `zonda bench`.
    pub bench: String,
    /// The command line that was typed.
    pub command: Vec<String>,
}

/// The method of measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// Length of one round.
    pub seconds: f64,
    /// Rounds asked for, of each server in each cell.
    pub rounds: usize,
    /// Load before each round that counts for nothing.
    pub warm_up_secs: f64,
    /// How the queries of rounds were sent: in a `batch`, or by dnsperf: then its name and version.
    pub pace: String,
    /// CPUs of the servers.
    pub server_cpus: Vec<usize>,
    /// CPUs of the generator.
    pub load_cpus: Vec<usize>,
    /// A round was repeated when other processes used more than this share of the machine; 0–1.
    pub foreign_cpu_max: f64,
}

/// A server that took part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// Name of the server, as on the command line.
    pub name: String,
    /// Version of the server, as it prints it.
    pub version: String,
    /// Whether this is the bare UDP reflector, the floor and not a rival.
    pub is_floor: bool,
    /// Every different way in which the server was started.
    pub setups: Vec<Setup>,
}

/// How a server was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// The workload and place in the matrix it was for, as text.
    pub purpose: String,
    /// The command with its arguments.
    pub command: Vec<String>,
    /// Configuration files: name and text. Long files are cut, and say so.
    pub files: Vec<(String, String)>,
}

/// A server that did not take part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkippedServer {
    /// Name of the server.
    pub server: String,
    /// Reason, and how to have the server take part.
    pub reason: String,
}

impl fmt::Display for SkippedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, reason } = self;
        match server == "all" || reason.starts_with(server.as_str()) {
            true => f.write_str(reason),
            false => write!(f, "{server}: {reason}"),
        }
    }
}

/// All rounds of one server at one place in the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the server.
    pub server: String,
    /// Name of the workload.
    pub workload: String,
    /// The place in the matrix: axis and value, such as `threads` and `2`.
    pub place: BTreeMap<String, String>,
    /// What one query of the rounds is: `update`, `transfer`, …; absent where it is a query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Figures that Zonda is to reach; of other servers, for comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aims: Vec<Aim>,
    /// How many CPUs both sides could use; absent in runs that were written before it was kept.
    #[serde(default)]
    pub cpus: Option<CpusUsed>,
    /// Rounds that count.
    pub rounds: Vec<Round>,
    /// Rounds that were discarded because other processes used the machine.
    pub discarded: usize,
    /// Reason why this server is not ranked here: its answers differ from its peers', or it failed.
    pub unranked: Option<String>,
    /// Latency below saturation, if the suite asks for it.
    pub latency_at: Vec<LoadPoint>,
    /// From start to the first answer, and what it took.
    pub start: Option<Start>,
}

/// How many of the CPUs that a run has can be busy at a place; at least 1 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpusUsed {
    /// With the server: it has so many threads, over all processes.
    pub server: usize,
    /// With the generator.
    pub load: usize,
}

/// One round at saturation, or at the cell's fixed rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Number of the round, from 0; rounds of one number were run side by side.
    pub number: usize,
    /// Length of the round, seconds.
    pub seconds: f64,
    /// Queries and replies.
    pub traffic: Traffic,
    /// Time from query to reply.
    pub latency: Latency,
    /// User time of the server's processes for the round.
    pub cpu_user_secs: f64,
    /// System time of the same.
    pub cpu_system_secs: f64,
    /// CPU time of the generator, user and system.
    pub load_cpu_secs: f64,
    /// Context switches of the server, both kinds.
    pub context_switches: u64,
    /// Proportional set size of the server after the round.
    pub memory_octets: u64,
    /// The largest resident set that the server has had until then; absent in runs that were
    /// written before it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak_octets: Option<u64>,
    /// Share of the machine that other processes used; 0–1.
    pub foreign_cpu: f64,
}

/// A figure that is to be reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aim {
    /// Figure that is judged, by its median over rounds.
    pub figure: AimFigure,
    /// The largest value that reaches the aim; in the unit of the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
    /// The smallest value that reaches the aim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
}

/// Figures that can have an aim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AimFigure {
    /// CPU time of the server for each query, microseconds.
    CpuMicros,
    /// Queries a second.
    Rate,
    /// The median of latency in a round, microseconds.
    P50Micros,
    /// The 99th percentile of latency in a round, microseconds.
    P99Micros,
    /// Length of a round, seconds.
    Seconds,
    /// Memory after a round, octets for each query.
    OctetsEach,
    /// Share of lost queries; 0–1.
    Loss,
}

/// Queries and what came back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Number of queries sent.
    pub sent: u64,
    /// Queries answered in time.
    pub completed: u64,
    /// Queries never answered in time, whatever lost them.
    pub lost: u64,
    /// Queries that a schedule had and that were never sent: the server took no more, or the
    /// generator could not keep up. Absent in runs that were written before they were counted.
    #[serde(default)]
    pub unsent: u64,
    /// Datagrams that the generator's own socket buffers dropped.
    pub dropped_by_generator: u64,
    /// Datagrams that the server's socket buffers dropped.
    pub dropped_by_server: u64,
    /// Replies that belong to no query outstanding.
    pub unexpected: u64,
    /// Second replies to one query.
    pub duplicate: u64,
    /// Replies that came after the timeout.
    pub late: u64,
    /// Replies that could not be read, or were to another question.
    pub wrong: u64,
    /// Replies in time that do not say what was expected; absent in runs that were written before
    /// anything could be.
    #[serde(default)]
    pub incorrect: u64,
    /// How often a connection was opened again, because the server had closed it.
    #[serde(default)]
    pub reconnects: u64,
    /// Replies by RCODE.
    pub rcodes: BTreeMap<String, u64>,
}

impl Traffic {
    /// Queries lost, or never sent though they were due, as a share of all that were to be sent;
    /// none when nothing was.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let due = self.sent + self.unsent;
        (due > 0).then(|| (self.lost + self.unsent) as f64 / due as f64)
    }
}

/// Time from query to reply, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Latency of the fastest answer.
    pub min: f64,
    /// Average of all latencies.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
    /// Latency of the slowest answer.
    pub max: f64,
    /// Percentile and value, ascending: 50, 90, 99, 99.9, 99.99 and those between for curves.
    pub percentiles: Vec<(f64, f64)>,
}

impl Latency {
    /// Returns a percentile in microseconds, if it is among those that are kept.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        self.percentiles.iter().find(|(one, _)| (one - percent).abs() < 1e-6).map(|it| it.1)
    }
}

/// Latency at a rate below saturation, sent on a schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// Share that makes the rate.
    #[serde(rename = "label")]
    pub share: LoadShare,
    /// Queries per second, as scheduled.
    pub rate: f64,
    /// Queries and replies.
    pub traffic: Traffic,
    /// Time from the scheduled moment of sending to the reply.
    pub latency: Latency,
    /// How long after their scheduled moments queries were sent, which is part of the latency;
    /// absent in runs that were written before it was measured.
    #[serde(default)]
    pub lateness: Option<Latency>,
    /// Whether the generator's lateness is half or more of the 99.9th percentile of latency, which
    /// then says nothing of the server.
    #[serde(default)]
    pub is_generator_late: bool,
    /// CPU time of the server for each answered query, in microseconds.
    pub cpu_micros_per_query: f64,
}

/// What a rate below saturation is a share of; as text, in JSON too, `50 % of saturation of knot`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum LoadShare {
    /// Of what the server itself holds.
    Own {
        /// Share of that rate, percent.
        percent: u32,
    },
    /// Of what one server holds, so that all are asked at the same rate.
    Common {
        /// Share of that rate, percent.
        percent: u32,
        /// Name of the server.
        server: String,
    },
}

impl fmt::Display for LoadShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own { percent } => write!(f, "{percent}{OF_SATURATION}"),
            Self::Common { percent, server } => write!(f, "{percent}{OF_SATURATION} of {server}"),
        }
    }
}

impl From<LoadShare> for String {
    fn from(share: LoadShare) -> Self {
        share.to_string()
    }
}

impl TryFrom<String> for LoadShare {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = || {
            let (percent, whose) = text.split_once(OF_SATURATION)?;
            let percent = percent.parse().ok()?;
            match whose {
                "" => Some(Self::Own { percent }),
                _ => Some(Self::Common { percent, server: whose.strip_prefix(" of ")?.to_owned() }),
            }
        };
        read().ok_or_else(|| format!("`{text}` is no share of a saturation"))
    }
}

/// Follows the number in the text of a [`LoadShare`].
const OF_SATURATION: &str = " % of saturation";

/// What starting cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// From start to the first answer.
    pub ready_secs: f64,
    /// CPU time until then.
    pub cpu_secs: f64,
    /// Proportional set size then.
    pub memory_octets: u64,
    /// The largest resident set until then; absent in runs that were written before it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_peak_octets: Option<u64>,
}

/// A table as a report printed it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Title of the table.
    pub title: String,
    /// Where the table was printed, and on what machine its figures were measured.
    pub source: String,
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// Rows, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
    /// For each row what was measured in its place; empty when nothing was.
    #[serde(default)]
    pub beside: Vec<PublishedStandIn>,
}

/// What is measured in place of a row that a report printed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedStandIn {
    /// The server of the row; none when it is not among those that are measured.
    #[serde(default)]
    pub server: Option<String>,
    /// Name of the workload; empty when none is like the row.
    #[serde(default)]
    pub workload: String,
    /// Axes and values of the place; axes that are left out may have any value.
    #[serde(default)]
    pub place: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_was_never_sent_is_lost_too() {
        let loss = |sent, lost, unsent| Traffic { sent, lost, unsent, ..Traffic::default() }.loss();
        assert_eq!((loss(0, 0, 0), loss(4, 1, 0)), (None, Some(0.25)));
        assert_eq!((loss(2, 1, 2), loss(0, 0, 7)), (Some(0.75), Some(1.0)));
    }

    #[test]
    fn what_a_rate_is_a_share_of_is_the_same_text_as_ever() {
        let common = LoadShare::Common { percent: 50, server: "knot".to_owned() };
        for (share, text) in [
            (LoadShare::Own { percent: 90 }, "\"90 % of saturation\""),
            (common, "\"50 % of saturation of knot\""),
        ] {
            assert_eq!(serde_json::to_string(&share).unwrap(), text);
            assert_eq!(serde_json::from_str::<LoadShare>(text).unwrap(), share);
        }
        for text in ["", "half of saturation", "50 % of saturation from knot"] {
            assert!(LoadShare::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
