//! One round of one server, and its latency at a rate.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, io, process, thread};

use zonda_wire::Rcode;

use super::bed::{Bed, BedError};
use super::dnsperf::{Dnsperf, DnsperfError};
use crate::data::{Latency, LoadPoint, LoadShare, Round, Traffic};
use crate::load::{self, End, LoadError, Mode, Outcome, Plan};
use crate::procfs::{self, Usage};
use crate::transfer::TransferError;

/// Sends every query once, so that all has been touched, and then what the plan says for a while.
pub fn warm_up(plan: &Plan, seconds: f64) -> Result<(), LoadError> {
    const MODE: Mode = Mode::Closed { outstanding: 100, rate_max: None };
    let once = End { runs: Some(1), ..End::default() };
    load::run(&Plan { mode: MODE, end: once, ..plan.clone() }, None)?;
    let after = Some(Duration::from_secs_f64(seconds));
    load::run(&Plan { end: End { after, ..End::default() }, ..plan.clone() }, None)?;
    Ok(())
}

/// The program that sends the queries of a round.
#[derive(Clone, Debug)]
pub enum Generator {
    /// The generator of this crate.
    Own,
    /// The program dnsperf.
    Dnsperf(Dnsperf),
}

/// The result of sending queries.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryRun {
    /// Length of the round, seconds.
    pub seconds: f64,
    /// Queries and replies.
    pub traffic: Traffic,
    /// Time from query to reply.
    pub latency: Latency,
    /// CPU time of the generator, seconds.
    pub cpu_secs: f64,
}

impl Generator {
    /// Follows the plan; dnsperf takes its queries from a file.
    pub fn ask(&self, plan: &Plan, queries: &Path) -> Result<QueryRun, MeasureError> {
        match self {
            Self::Dnsperf(dnsperf) => dnsperf.ask(plan, queries).map_err(MeasureError::Dnsperf),
            Self::Own => {
                let outcome = load::run(plan, None).map_err(MeasureError::Load)?;
                let Outcome { seconds, traffic, latency, cpu_secs, .. } = outcome;
                Ok(QueryRun { seconds, traffic, latency, cpu_secs })
            }
        }
    }
}

/// Has the work of a round done and reads what it cost the server: in a round that is a start, all
/// since its processes began. A round is measured as a whole: what the server did before the first
/// and after the last query counts, for every server alike.
pub fn round(
    number: usize,
    bed: &mut Bed,
    is_start: bool,
    work: impl FnOnce(&mut Bed) -> Result<QueryRun, MeasureError>,
) -> Result<Round, MeasureError> {
    let before = if is_start { KernelCounters::of_machine() } else { KernelCounters::take(bed) };
    let mut asked = work(bed)?;
    let after = KernelCounters::take(bed);
    asked.traffic.dropped_by_server = after.drops_since(&before);
    let (server, foreign_cpu) = (after.server.since(&before.server), after.foreign_share(&before));
    Ok(Round {
        number,
        seconds: asked.seconds,
        traffic: asked.traffic,
        latency: asked.latency,
        cpu_user_secs: server.user_secs,
        cpu_system_secs: server.system_secs,
        load_cpu_secs: asked.cpu_secs,
        context_switches: server.context_switches,
        memory_octets: bed.memory_octets(),
        memory_peak_octets: Some(bed.memory_peak_octets()),
        foreign_cpu,
    })
}

/// Sends at this rate, on a schedule. Returns the share of the machine that other processes used,
/// too.
pub fn load_point(
    share: LoadShare,
    rate: f64,
    bed: &Bed,
    plan: &Plan,
) -> Result<(LoadPoint, f64), LoadError> {
    let plan = Plan { mode: Mode::Open { rate }, ..plan.clone() };
    let before = KernelCounters::take(bed);
    let mut outcome = load::run(&plan, None)?;
    let after = KernelCounters::take(bed);
    outcome.traffic.dropped_by_server = after.drops_since(&before);
    let server = after.server.since(&before.server);
    let answered = outcome.traffic.completed.max(1) as f64;
    let cpu_micros_per_query = server.cpu_secs() * 1e6 / answered;
    let point = LoadPoint {
        share,
        rate,
        is_generator_late: outcome.is_generator_late(),
        traffic: outcome.traffic,
        latency: outcome.latency,
        lateness: outcome.lateness,
        cpu_micros_per_query,
    };
    Ok((point, after.foreign_share(&before)))
}

/// Waits until other processes leave the machine alone for a second, until `limit` or `stop` at
/// most.
pub fn wait_until_quiet(foreign_cpu_max: f64, limit: Duration, stop: &AtomicBool) {
    const INTERVAL: Duration = Duration::from_secs(1);
    let began = Instant::now();
    let mut before = KernelCounters::of_machine();
    while began.elapsed() < limit && !stop.load(Ordering::Relaxed) {
        thread::sleep(INTERVAL);
        let now = KernelCounters::of_machine();
        if now.foreign_share(&before) <= foreign_cpu_max {
            return;
        }
        before = now;
    }
}

/// The kernel's counters at one moment.
struct KernelCounters {
    /// Moment of the reading.
    at: Instant,
    /// Usage of the server's processes; zero when it is not measured.
    server: Usage,
    /// Datagrams that the server's sockets had no room for.
    drops: u64,
    /// CPU time of this process and all below it, those that have ended, too.
    own_secs: f64,
    /// CPU time of the whole machine.
    busy_secs: f64,
}

impl KernelCounters {
    /// Reads all counters.
    fn take(bed: &Bed) -> Self {
        Self { server: bed.usage(), drops: bed.drops(), ..Self::of_machine() }
    }

    /// Reads the counters of other processes' load.
    fn of_machine() -> Self {
        Self {
            at: Instant::now(),
            server: Usage::default(),
            drops: 0,
            own_secs: procfs::usage_with_ended(process::id()).cpu_secs(),
            busy_secs: procfs::busy_secs(),
        }
    }

    /// Datagrams dropped since, of this server alone, where the load knows only an address.
    fn drops_since(&self, earlier: &Self) -> u64 {
        self.drops.saturating_sub(earlier.drops)
    }

    /// Returns the share of the machine that other processes have used since; 0–1.
    fn foreign_share(&self, earlier: &Self) -> f64 {
        let busy = self.busy_secs - earlier.busy_secs;
        let own = self.own_secs - earlier.own_secs;
        let available = (self.at - earlier.at).as_secs_f64() * procfs::cpus() as f64;
        ((busy - own) / available).clamp(0.0, 1.0)
    }
}

/// Why nothing was measured.
#[derive(Debug)]
pub enum MeasureError {
    /// The plan cannot be followed.
    Load(LoadError),
    /// dnsperf did not ask.
    Dnsperf(DnsperfError),
    /// The server does not start again.
    Bed(BedError),
    /// A zone cannot be transferred.
    Transfer(TransferError),
    /// An update is refused.
    Update(Rcode),
    /// A failure of a socket or a thread.
    System(io::Error),
    /// What the suite's file lacks for the task.
    Lacking(&'static str),
}

impl From<io::Error> for MeasureError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::Dnsperf(error) => error.fmt(f),
            Self::Bed(error) => error.fmt(f),
            Self::Transfer(error) => error.fmt(f),
            Self::Update(rcode) => write!(f, "an update is answered by {rcode}"),
            Self::System(error) => error.fmt(f),
            Self::Lacking(what) => write!(f, "the task needs {what}"),
        }
    }
}

impl std::error::Error for MeasureError {}
