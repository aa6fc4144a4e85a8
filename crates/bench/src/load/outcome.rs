//! What a run came to.

use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::tally::{Tally, latency_of};
use super::worker::{Report, ThreadReport};
use crate::data;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Time from the beginning to the last query or answer, at most the given duration.
    pub seconds: f64,
    /// Queries and replies.
    pub traffic: data::Traffic,
    /// Differences in the first unexpected replies, ten at most.
    pub differences: Vec<String>,
    /// Number of "port unreachable" errors over UDP: no process has the port.
    pub refused: u64,
    /// Replies that say that something was left out, TC.
    pub truncated: u64,
    /// Octets of all queries.
    pub sent_octets: u64,
    /// Octets of all replies in time.
    pub completed_octets: u64,
    /// Time to reply.
    pub latency: data::Latency,
    /// Times to reply by RCODE.
    pub latency_by_rcode: BTreeMap<String, data::Latency>,
    /// Times to reply in nanoseconds.
    pub histogram: Histogram<u64>,
    /// Delay of queries after their scheduled times; none without a schedule. It is part of the
    /// latency.
    pub lateness: Option<data::Latency>,
    /// Second by second, to the last in which something was sent, answered or given up.
    pub by_second: Vec<Second>,
    /// CPU time of the generator's threads.
    pub cpu_secs: f64,
    /// Octets of a socket's receive buffer, if the kernel granted less than was asked for: bursts
    /// of replies may not find room then.
    pub small_buffer_octets: Option<usize>,
    /// Whether the run was ended early.
    pub is_interrupted: bool,
}

impl Outcome {
    /// Queries answered per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.traffic.completed as f64 / self.seconds } else { 0.0 }
    }

    /// Returns the lost queries as a share of those to be sent, 0–1; 0 when nothing was to be sent.
    #[must_use]
    pub fn loss(&self) -> f64 {
        self.traffic.loss().unwrap_or_default()
    }

    /// Returns a percentile (0–100) of the time to reply over all queries that were to be sent,
    /// those without reply being the slowest; nothing if it is the time of one of them.
    #[must_use]
    pub fn percentile_of_all(&self, percent: f64) -> Option<Duration> {
        let data::Traffic { completed, lost, unsent, .. } = self.traffic;
        let rank = (percent / 100.0 * (completed + lost + unsent) as f64).ceil();
        let quantile = rank / completed as f64;
        let nanos = || self.histogram.value_at_quantile(quantile);
        (quantile <= 1.0).then(nanos).map(Duration::from_nanos)
    }
}

impl Outcome {
    /// Whether the slowest replies were slow because the generator was late: half of the 99.9th
    /// percentile of latency or more is lateness. They say nothing of the server then.
    #[must_use]
    pub fn is_generator_late(&self) -> bool {
        let lateness = self.lateness.as_ref().and_then(|lateness| lateness.percentile(TAIL));
        let latency = self.latency.percentile(TAIL);
        lateness.zip(latency).is_some_and(|(lateness, latency)| lateness >= latency / 2.0)
    }
}

/// The percentile that judges the generator.
const TAIL: f64 = 99.9;

/// What happened in one second.
#[derive(Clone, Debug, PartialEq)]
pub struct Second {
    /// Which, from 0.
    pub second: u64,
    /// Number of queries sent.
    pub sent: u64,
    /// Queries answered in time.
    pub completed: u64,
    /// Queries given up.
    pub lost: u64,
    /// Time to reply, of the replies that came in this second.
    pub latency: data::Latency,
}

impl Second {
    /// Whether nothing happened to any query.
    fn is_empty(&self) -> bool {
        self.sent + self.completed + self.lost == 0
    }
}

/// How far a run is, after each second.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Queries sent so far.
    pub sent: u64,
    /// Queries answered so far.
    pub completed: u64,
    /// Queries given up so far.
    pub lost: u64,
    /// The second that is over.
    pub second: Second,
    /// Times to reply in the second, in nanoseconds.
    pub latencies: Histogram<u64>,
}

/// Puts together the reports of threads.
pub struct Gatherer {
    /// For each thread, the first second without its full report; no second when it has ended.
    reached: Vec<u64>,
    /// Seconds that a thread may still report on.
    open: BTreeMap<u64, Tally>,
    /// Seconds that are over.
    closed: Vec<Second>,
    /// Tally of all these seconds.
    total: Tally,
}

impl Gatherer {
    /// An outcome without reports.
    pub fn new(threads: usize) -> Self {
        let (open, closed) = (BTreeMap::new(), Vec::new());
        Self { reached: vec![0; threads], open, closed, total: Tally::default() }
    }

    /// Takes reports until all threads have ended, and passes each second to `watch`.
    pub fn gather(
        &mut self,
        reports: &Receiver<Report>,
        mut watch: Option<&mut dyn FnMut(&Progress)>,
    ) {
        for Report { thread, is_last, second, tally } in reports {
            self.open.entry(second).or_default().add(&tally);
            self.reached[thread] = if is_last { u64::MAX } else { second + 1 };
            let end = self.reached.iter().min().copied().unwrap_or(u64::MAX);
            while let Some(second) = self.open.first_entry().filter(|first| *first.key() < end) {
                let (number, tally) = second.remove_entry();
                self.close(number, &tally, &mut watch);
            }
        }
    }

    /// Ends a second.
    fn close(&mut self, number: u64, tally: &Tally, watch: &mut Option<&mut dyn FnMut(&Progress)>) {
        self.total.add(tally);
        let latencies = tally.latencies();
        let second = Second {
            second: number,
            sent: tally.sent,
            completed: tally.completed(),
            lost: tally.lost,
            latency: latency_of(&latencies),
        };
        self.closed.push(second.clone());
        if let Some(watch) = watch {
            let Tally { sent, lost, .. } = self.total;
            watch(&Progress { sent, completed: self.total.completed(), lost, second, latencies });
        }
    }

    /// Computes the result of all threads.
    pub fn finish(mut self, threads: &[ThreadReport], deadline_secs: f64) -> Outcome {
        while self.closed.last().is_some_and(Second::is_empty) {
            self.closed.pop();
        }
        let last_nanos = threads.iter().map(|thread| thread.last_nanos).max().unwrap_or(0);
        let histogram = self.total.latencies();
        let by_rcode = self.total.latencies_by_rcode();
        let mut traffic = self.total.traffic();
        traffic.dropped_by_generator = threads.iter().map(|thread| thread.dropped).sum();
        traffic.reconnects = threads.iter().map(|thread| thread.reconnects).sum();
        Outcome {
            seconds: deadline_secs.min(last_nanos as f64 / 1e9),
            traffic,
            refused: threads.iter().map(|thread| thread.refused).sum(),
            differences: std::mem::take(&mut self.total.differences),
            truncated: self.total.truncated,
            sent_octets: self.total.sent_octets,
            completed_octets: self.total.completed_octets,
            latency: latency_of(&histogram),
            latency_by_rcode: by_rcode.iter().map(|(k, v)| (k.clone(), latency_of(v))).collect(),
            lateness: self.total.lateness().map(latency_of),
            histogram,
            by_second: self.closed,
            cpu_secs: threads.iter().map(|thread| thread.cpu_secs).sum(),
            small_buffer_octets: None,
            is_interrupted: false,
        }
    }
}
