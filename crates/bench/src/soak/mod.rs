//! Soak: one rate for hours, and whether what the server uses or its latency drifts meanwhile.
//!
//! | module | what it holds |
//! |---|---|
//! | [`trend`] | whether a row of values rises or falls |
//! | [`drift`] | what of a server may drift, and how much it did |
//!
//! Deliberately absent: judging a server on another machine by anything but its answers.

pub mod drift;
pub mod trend;

use std::time::Instant;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::data::Latency;
use crate::load::{self, LoadError, Outcome, Plan, Progress};
use crate::procfs::{self, Usage};

/// The settings of a soak: the process that is watched, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Soak {
    /// Seconds between two samples, at least 1.
    pub every_secs: u64,
    /// The server's process, if it is on this machine; all below it belong to it.
    pub process: Option<u32>,
}

/// What happened in an interval, and how the server was at its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// End of the interval; seconds since the soak began.
    pub seconds: f64,
    /// Number of queries sent.
    pub sent: u64,
    /// Queries answered in time.
    pub completed: u64,
    /// Queries given up.
    pub lost: u64,
    /// Time to reply.
    pub latency_micros: Latency,
    /// The server; nothing if its process is not known.
    pub server: Option<ServerSample>,
}

/// How a server was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ServerSample {
    /// Resident set size of all processes of the server.
    pub resident_octets: u64,
    /// Number of open descriptors.
    pub descriptors: usize,
    /// CPUs that were busy with the server on average.
    pub cpus: f64,
    /// Context switches of the server's threads.
    pub context_switches_per_sec: f64,
}

/// The result of a soak.
#[derive(Clone, Debug)]
pub struct SoakResult {
    /// All queries and replies.
    pub outcome: Outcome,
    /// Every interval that was whole.
    pub samples: Vec<Sample>,
    /// Whether the server's process ended, and the soak with it.
    pub has_server_ended: bool,
}

/// Follows the plan and takes samples; `watch` gets each second and each sample. A server
/// whose process ends, ends the soak.
///
/// # Errors
/// When the plan cannot be followed.
pub fn run(
    plan: &Plan,
    soak: &Soak,
    watch: &mut dyn FnMut(&Progress, Option<&Sample>),
) -> Result<SoakResult, LoadError> {
    let mut sampler = Sampler::new(soak);
    let (mut samples, mut has_server_ended) = (Vec::new(), false);
    let outcome = load::run(
        plan,
        Some(&mut |progress| {
            let sample = sampler.add(progress);
            watch(progress, sample.as_ref());
            samples.extend(sample);
            if !plan.is_stopped() && sampler.has_server_ended() {
                has_server_ended = true;
                plan.end_early();
            }
        }),
    )?;
    Ok(SoakResult { outcome, samples, has_server_ended })
}

/// An interval while it lasts.
struct Sampler {
    /// Soak that is sampled.
    soak: Soak,
    /// Moment at which the soak began.
    began: Instant,
    /// Moment at which the interval began.
    since: Instant,
    /// Usage of the server at that moment.
    usage: Option<Usage>,
    /// Queries sent, answered and given up in the interval.
    counts: [u64; 3],
    /// Times to reply in the interval.
    latencies: Histogram<u64>,
}

impl Sampler {
    /// Begins the first interval.
    fn new(soak: &Soak) -> Self {
        Self {
            soak: *soak,
            began: Instant::now(),
            since: Instant::now(),
            usage: soak.process.map(procfs::usage),
            counts: [0; 3],
            latencies: load::histogram(),
        }
    }

    /// Whether the server had a process and has none any more.
    fn has_server_ended(&self) -> bool {
        self.soak.process.is_some_and(|process| !procfs::is_alive(process))
    }

    /// Takes a second in, and a sample if the interval is over. The last second of a run is seldom
    /// whole, and ends none then.
    fn add(&mut self, progress: &Progress) -> Option<Sample> {
        let second = &progress.second;
        for (sum, count) in self.counts.iter_mut().zip([second.sent, second.completed, second.lost])
        {
            *sum += count;
        }
        self.latencies.add(&progress.latencies).expect("all histograms have the same bounds");
        let end = second.second + 1;
        let seconds = self.began.elapsed().as_secs_f64();
        if !end.is_multiple_of(self.soak.every_secs) || seconds < end as f64 {
            return None;
        }
        let [sent, completed, lost] = std::mem::take(&mut self.counts);
        let latency_micros = load::latency_of(&self.latencies);
        self.latencies.reset();
        Some(Sample { seconds, sent, completed, lost, latency_micros, server: self.server() })
    }

    /// Looks at the server; the next interval begins.
    fn server(&mut self) -> Option<ServerSample> {
        let process = self.soak.process.filter(|_| !self.has_server_ended())?;
        let now = procfs::usage(process);
        let used = now.since(&self.usage.replace(now)?);
        let secs = self.since.elapsed().as_secs_f64();
        self.since = Instant::now();
        Some(ServerSample {
            resident_octets: procfs::resident_octets(process),
            descriptors: procfs::descriptors(process),
            cpus: used.cpu_secs() / secs,
            context_switches_per_sec: used.context_switches as f64 / secs,
        })
    }
}
