//! Load generator.
//!
//! A [`Plan`] says what to send where and how; [`run`] sends it and returns the [`Outcome`].
//!
//! | module | what it holds |
//! |---|---|
//! | [`queries`] | messages to send, ready-made or made when they are sent |
//! | `supply` | which query is next and when it is due |
//! | `worker` | one thread: sends, receives, gives up |
//! | `ledger` | queries that wait, by message ID |
//! | `check` | whether a message is the reply to a query |
//! | [`expected`] | what the replies are to say |
//! | `clients`, `udp`, `tcp` | clients over one transport or another |
//! | `tally` | what is counted |
//! | `server_sockets` | the sockets of a server on this machine: drops, owner |
//! | [`guard`] | servers that may be loaded without confirmation |
//! | [`outcome`] | the result |
//! | [`text`], [`dnsperf`], [`json`] | ways to print it |
//! | [`limits`] | what it must keep to be good |
//!
//! Deliberately absent: retries. A query without reply is lost.

pub(crate) mod check;
mod clients;
pub mod dnsperf;
pub mod expected;
pub mod guard;
pub mod json;
mod ledger;
pub mod limits;
pub mod outcome;
pub mod queries;
mod server_sockets;
mod supply;
mod tally;
mod tcp;
pub mod text;
mod udp;
mod worker;

pub use expected::ExpectedReplies;
pub use outcome::{Outcome, Progress, Second};
pub use queries::{Form, Lines, Names, Omissions, Queries, QueriesError};
pub use server_sockets::owner;
pub use tally::{histogram, latency_of};

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use zonda_wire::tsig::Key;

use outcome::Gatherer;
use supply::Supply;
use worker::{Report, ThreadReport, Worker};

/// What to send, where and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Address of the server.
    pub server: SocketAddr,
    /// Local address, if it matters. Port 0 lets the kernel choose for each client; another one is
    /// that of the first client, and those above it belong to the next ones.
    pub local: Option<SocketAddr>,
    /// Transport of the queries.
    pub transport: Transport,
    /// Key that queries are signed with (TSIG, rfc8945), if they are; signatures of replies are not
    /// verified.
    pub key: Option<Arc<Key>>,
    /// Queries to send.
    pub queries: Arc<Queries>,
    /// Expected replies, if replies are compared with any.
    pub expected: Option<Arc<ExpectedReplies>>,
    /// Mode of sending: closed or open.
    pub mode: Mode,
    /// Threads, at least 1.
    pub threads: usize,
    /// Clients, each with a socket, over all threads; at least as many as there are threads.
    pub sockets: usize,
    /// End of the run.
    pub end: End,
    /// Flag that ends the sending early when set; queries that wait are still answered or lost.
    pub stop: Arc<AtomicBool>,
    /// After how long a query is lost.
    pub timeout: Duration,
    /// How long late and second replies are counted after the last query was answered or lost.
    pub linger: Duration,
    /// Pace: number of queries that one call sends.
    pub pace: Pace,
    /// Hand neighbours of one length to the kernel as one message. Cheaper for the generator, and
    /// for a server on the same machine, too: not for comparisons.
    pub segment: bool,
    /// CPUs for the threads, in turn; empty leaves them where the kernel likes.
    pub cpus: Vec<usize>,
    /// Stay awake on these CPUs shortly before a query is due, so that it leaves in time. They must
    /// be the threads' own, or a server there pays for it.
    pub spin: bool,
    /// Octets of each socket's buffers.
    pub buffer_octets: usize,
    /// Whether the user of the generator may load a server that is not in a private network.
    pub is_own_server: bool,
}

impl Plan {
    /// Makes a plan with one thread and one client with 100 queries outstanding, once through all
    /// queries.
    #[must_use]
    pub fn new(server: SocketAddr, queries: Queries) -> Self {
        Self {
            server,
            local: None,
            transport: Transport::Udp,
            key: None,
            queries: Arc::new(queries),
            expected: None,
            mode: Mode::Closed { outstanding: 100, rate_max: None },
            threads: 1,
            sockets: 1,
            end: End { runs: Some(1), ..End::default() },
            stop: Arc::default(),
            timeout: Duration::from_secs(5),
            linger: Duration::from_millis(100),
            pace: Pace::Batch,
            segment: false,
            cpus: Vec::new(),
            spin: false,
            buffer_octets: 4 << 20,
            is_own_server: false,
        }
    }

    /// Whether the run shall end early.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the run early.
    pub fn end_early(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Queries per second that are asked for; nothing if it is as many as the server answers.
    fn rate(&self) -> Option<f64> {
        match self.mode {
            Mode::Closed { rate_max, .. } => rate_max,
            Mode::Open { rate } => Some(rate),
        }
    }

    /// Whether queries are sent at fixed moments.
    fn is_scheduled(&self) -> bool {
        matches!(self.mode, Mode::Open { .. })
    }

    /// Returns what a client sends from.
    fn local_of(&self, client: usize) -> Option<SocketAddr> {
        let mut local = self.local?;
        if local.port() > 0 {
            local.set_port(local.port() + client as u16); // `check` has seen that there are so many
        }
        Some(local)
    }

    /// Returns how many queries there are to send, [`u64::MAX`] if the time is what ends it.
    #[must_use]
    pub fn count(&self) -> u64 {
        let runs = self.end.runs.map(|runs| runs.saturating_mul(self.queries.count()));
        runs.unwrap_or(u64::MAX).min(self.end.count.unwrap_or(u64::MAX))
    }

    /// Refuses what cannot be done.
    fn check(&self) -> Result<(), LoadError> {
        let rate = self.rate();
        let outstanding = match self.mode {
            Mode::Closed { outstanding, .. } => outstanding,
            Mode::Open { .. } => usize::MAX,
        };
        if self.threads == 0 || self.sockets < self.threads {
            return Err(LoadError::Plan("there must be a thread, and a client for each"));
        }
        if outstanding < self.threads {
            return Err(LoadError::Plan("-q must be at least one query for each thread"));
        }
        if rate.is_some_and(|rate| !(rate > 0.0 && rate <= RATE_MAX)) {
            return Err(LoadError::Plan("a rate is more than 0 and at most 100 million a second"));
        }
        if self.spin && self.cpus.len() < self.threads {
            return Err(LoadError::Plan("a thread that spins needs a CPU of its own"));
        }
        let is_datagram_call = self.segment || self.pace == Pace::Dnsperf;
        if self.transport == Transport::Tcp && is_datagram_call {
            return Err(LoadError::Plan("over TCP, queries leave as many together as are due"));
        }
        if self.timeout.is_zero() {
            return Err(LoadError::Plan("a timeout of 0 loses every query"));
        }
        let times = [self.end.after.unwrap_or_default(), self.timeout, self.linger];
        if times.iter().any(|time| *time > TIME_MAX) {
            return Err(LoadError::Plan("a run and its waits take at most ten years"));
        }
        let first_port = self.local.map_or(0, |local| usize::from(local.port()));
        if first_port > 0 && self.sockets > usize::from(u16::MAX) + 1 - first_port {
            return Err(LoadError::Plan("there are fewer ports from that one on than clients"));
        }
        let is_slow = rate.is_some_and(|rate| rate <= guard::RATE_MAX);
        if !is_slow && !self.is_own_server && !guard::is_private(self.server.ip()) {
            return Err(LoadError::NotPrivate(self.server));
        }
        Ok(())
    }
}

/// Queries per second that may be asked for; beyond any machine, and exact as `f64`.
const RATE_MAX: f64 = 1e8;

/// The longest run, timeout or linger; a sum of them in nanoseconds is far from what `u64` holds.
const TIME_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// What carries queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A datagram each.
    Udp,
    /// A connection for each client, on which queries do not wait for one another.
    Tcp,
}

/// When a query is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// Closed loop: a query is sent when an earlier one was answered or has expired. A slow server
    /// gets fewer queries.
    Closed {
        /// Queries that wait for replies, over all clients.
        outstanding: usize,
        /// Queries per second at most.
        rate_max: Option<f64>,
    },
    /// Open loop: a query is sent when the schedule says. Latency counts from the scheduled time,
    /// so that a server that stalls cannot hide it.
    Open {
        /// Queries per second.
        rate: f64,
    },
}

/// When to stop sending: whatever comes first, and never if nothing is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Time after which sending ends.
    pub after: Option<Duration>,
    /// Number of times through all queries.
    pub runs: Option<u64>,
    /// Number of queries in all.
    pub count: Option<u64>,
}

/// How many queries one call sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// All that are due.
    Batch,
    /// One query, as dnsperf sends; the server then pays more for each.
    Dnsperf,
}

/// Why a run could not be made.
#[derive(Debug)]
pub enum LoadError {
    /// The plan cannot be followed.
    Plan(&'static str),
    /// The server's address is not private: it may be a foreign server.
    NotPrivate(SocketAddr),
    /// A client has no way to the server.
    Connect(SocketAddr, io::Error),
    /// A thread cannot be kept on its CPU.
    Pin(usize, io::Error),
    /// The system refuses something that it usually grants.
    System(io::Error),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(what) => f.write_str(what),
            Self::NotPrivate(server) => write!(
                f,
                "{} is not a private address: say --i-own-this-server, or ask at most {} queries \
                 a second",
                server.ip(),
                guard::RATE_MAX
            ),
            Self::Connect(server, error) => write!(f, "{server}: {error}"),
            Self::Pin(cpu, error) if error.kind() == io::ErrorKind::InvalidInput => {
                write!(f, "CPU {cpu}: there is none of that number that this process may use")
            }
            Self::Pin(cpu, error) => write!(f, "CPU {cpu}: {error}"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

/// Sends what the plan says and waits for the replies; `watch` is called every second.
///
/// # Errors
/// When the plan cannot be followed. Lost queries are no error.
pub fn run(plan: &Plan, watch: Option<&mut dyn FnMut(&Progress)>) -> Result<Outcome, LoadError> {
    plan.check()?;
    check_cpus(plan)?;
    let supply = Supply::new(plan.count(), plan.rate());
    let drops = || match plan.transport {
        Transport::Udp => server_sockets::drops(plan.server),
        Transport::Tcp => 0,
    };
    let drops_before = drops();
    let (sender, reports) = mpsc::channel::<Report>();
    let mut workers = Vec::with_capacity(plan.threads);
    let mut first_client = 0;
    for thread in 0..plan.threads {
        let share =
            |whole: usize| whole / plan.threads + usize::from(thread < whole % plan.threads);
        let outstanding = match plan.mode {
            Mode::Closed { outstanding, .. } => share(outstanding),
            Mode::Open { .. } => 0,
        };
        let clients = first_client..first_client + share(plan.sockets);
        first_client = clients.end;
        let share = (clients, outstanding);
        workers.push(Worker::new((plan, &supply), thread, share, sender.clone())?);
    }
    drop(sender);
    let mut gatherer = Gatherer::new(plan.threads);
    let start = Instant::now();
    let finished = thread::scope(|scope| {
        let threads = workers.into_iter().enumerate().map(|(index, worker)| {
            scope.spawn(move || {
                prepare_thread(plan, index)?;
                worker.run(start)
            })
        });
        let threads: Vec<_> = threads.collect();
        gatherer.gather(&reports, watch);
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().expect("no panic");
        threads.into_iter().map(join).collect::<Result<Vec<ThreadReport>, LoadError>>()
    })?;
    let deadline_secs = plan.end.after.map_or(f64::INFINITY, |after| after.as_secs_f64());
    let mut outcome = gatherer.finish(&finished, deadline_secs);
    // Sockets that a server closes meanwhile take their counts along.
    outcome.traffic.dropped_by_server = drops().saturating_sub(drops_before);
    if plan.is_scheduled() {
        let deadline_nanos = finished.iter().map(|thread| thread.deadline_nanos).min();
        outcome.traffic.unsent = deadline_nanos.map_or(0, |nanos| supply.left_before(nanos));
    }
    let buffers = finished.iter().filter_map(|thread| thread.buffer_octets);
    outcome.small_buffer_octets = buffers.min().filter(|octets| *octets < plan.buffer_octets);
    outcome.is_interrupted = plan.is_stopped();
    Ok(outcome)
}

/// Refuses CPUs that there are not, before anything is sent.
fn check_cpus(plan: &Plan) -> Result<(), LoadError> {
    let pin = |cpu: &usize| {
        zonda_netio::process::pin_thread(&[*cpu]).map_err(|error| LoadError::Pin(*cpu, error))
    };
    let pin_all = || plan.cpus.iter().try_for_each(pin);
    // On a thread of its own, as it stays where it was put last.
    thread::scope(|scope| scope.spawn(pin_all).join().expect("no panic"))
}

/// Puts a thread on its CPU and has it wake in time.
fn prepare_thread(plan: &Plan, index: usize) -> Result<(), LoadError> {
    if !plan.cpus.is_empty() {
        let cpu = plan.cpus[index % plan.cpus.len()];
        zonda_netio::process::pin_thread(&[cpu]).map_err(|error| LoadError::Pin(cpu, error))?;
    }
    zonda_netio::process::use_exact_timers().map_err(LoadError::System)
}
