//! Connections: admission, framing, deadlines.
//!
//! ```text
//! accept ─ admission ─► connection ─ whole messages ─► executor ─ replies ─► one write
//!             │              └ reads, deadlines, output that waits for the client
//!             └ limits in all and per client; at the limit one goes that is half-sent or idle
//! ```
//!
//! An idle connection holds no buffer: bytes are read into the stack, answered at once by an
//! executor that all connections share, and only what is left over — half a message, replies that
//! the client has not taken — is kept. rfc7766, rfc9210.
//!
//! Deliberately absent: EDNS keepalive (rfc7828; the engine writes it, told
//! [`TcpConfig::idle_max`]), and several transfers at once on one connection: queries behind the
//! one for a transfer are answered when that is whole. Replies keep the order of their queries but
//! for those that wait for other servers.

pub mod admission;
mod connection;
mod executor;
mod transfer;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use zonda_deferral::{Clock, Deferrals, Responder, SharedCounter};
use zonda_engine::{Now, Peer, Transfer, TransferError, Transport};

use admission::{Admission, AdmissionCounters};
use connection::Connection;
use executor::Executors;
use zonda_deferral::faults::FailureSender;

/// How long a stopped listener accepts connections that the kernel has for it already.
const LAST_ACCEPTS: Duration = Duration::from_millis(20);

/// Bounds on connections. Each has a counter in [`TcpCounters`] that tells when it bites.
#[derive(Clone, Debug)]
pub struct TcpConfig {
    /// Connections open at once, on all listeners together; at least 1.
    pub connections_max: usize,
    /// Most connections of one client, an IPv4 address or an IPv6 /64; at least 1. An IPv6 /48 may
    /// have ten times as many.
    pub connections_per_client_max: usize,
    /// Queries answered on one connection before it is closed; 0 = no bound.
    pub queries_max: u64,
    /// How long a connection may be idle, unless it has to make room for another.
    pub idle_max: Duration,
    /// How long a message may take from its first to its last byte.
    pub read_max: Duration,
    /// How long the client may take to receive the replies that one write could not deliver.
    pub write_max: Duration,
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            connections_max: 1000,
            connections_per_client_max: 100,
            queries_max: 0,
            idle_max: Duration::from_secs(10),
            read_max: Duration::from_secs(5),
            write_max: Duration::from_secs(5),
        }
    }
}

/// The bounds of [`TcpConfig`] that connections read, which may change while they are open.
struct Limits {
    /// Queries answered on one connection; 0 = no bound.
    queries_max: AtomicU64,
    /// How long a connection may be idle, nanoseconds.
    idle_nanos: AtomicU64,
    /// How long a message may take, nanoseconds.
    read_nanos: AtomicU64,
    /// How long the client may take to receive replies, nanoseconds.
    write_nanos: AtomicU64,
}

impl Limits {
    /// Takes the bounds from a configuration.
    fn new(config: &TcpConfig) -> Self {
        Self {
            queries_max: config.queries_max.into(),
            idle_nanos: nanos(config.idle_max).into(),
            read_nanos: nanos(config.read_max).into(),
            write_nanos: nanos(config.write_max).into(),
        }
    }

    /// Takes the bounds from another configuration. A connection may read some of the former ones
    /// and some of these, which do not depend on each other.
    fn set(&self, config: &TcpConfig) {
        self.queries_max.store(config.queries_max, Relaxed);
        self.idle_nanos.store(nanos(config.idle_max), Relaxed);
        self.read_nanos.store(nanos(config.read_max), Relaxed);
        self.write_nanos.store(nanos(config.write_max), Relaxed);
    }

    /// Returns the queries that one connection may carry; 0 = no bound.
    fn queries_max(&self) -> u64 {
        self.queries_max.load(Relaxed)
    }

    /// Returns how long a connection may be idle.
    fn idle_max(&self) -> Duration {
        Duration::from_nanos(self.idle_nanos.load(Relaxed))
    }

    /// Returns how long a message may take.
    fn read_max(&self) -> Duration {
        Duration::from_nanos(self.read_nanos.load(Relaxed))
    }

    /// Returns how long the client may take to receive replies.
    fn write_max(&self) -> Duration {
        Duration::from_nanos(self.write_nanos.load(Relaxed))
    }
}

/// Returns a time in nanoseconds, at most 584 years.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Whether and how a [`TcpServer`] is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The server does not stop.
    No,
    /// Connections answer what arrives within moments, and close.
    Now,
    /// Another process accepts new connections. Those that are open close once they pause, and
    /// after `idle_max` or ten seconds between two queries.
    HandedOver,
}

/// What all listeners of a [`TcpServer`] have done.
///
/// `accepted` = `admission.refused_total` + `admission.refused_client` + open connections + closed
/// ones.
#[derive(Debug, Default)]
pub struct TcpCounters {
    /// Connections accepted from the kernel.
    pub accepted: SharedCounter,
    /// Kept out or closed by `connections_max` and `connections_per_client_max`.
    pub admission: AdmissionCounters,
    /// Closed after `idle_max`.
    pub idle_timeouts: SharedCounter,
    /// Closed because a message took longer than `read_max`.
    pub read_timeouts: SharedCounter,
    /// Closed because replies took longer than `write_max` to deliver.
    pub write_timeouts: SharedCounter,
    /// Closed after `queries_max` queries.
    pub query_limits: SharedCounter,
    /// Closed by an error of the connection, mostly a reset.
    pub errors: SharedCounter,
    /// Accept calls that failed, mostly for want of descriptors.
    pub accept_errors: SharedCounter,
    /// Messages that were received.
    pub received: SharedCounter,
    /// Replies handed to connections.
    pub replied: SharedCounter,
    /// Panics of the engine.
    pub panics: SharedCounter,
}

/// Looks up addresses that a transfer has in place of ALIAS records; returns how long to wait until
/// the next call, nothing once all are known, and an error if they cannot be had.
pub type ExpandAliases =
    dyn Fn(&mut Transfer, Now) -> Result<Option<Duration>, TransferError> + Send + Sync;

/// Serves any number of listeners under common limits, with executors that their connections share.
pub struct TcpServer<R> {
    /// The bounds of connections.
    limits: Limits,
    /// Tells since when connections are idle.
    clock: Clock,
    /// The engines that answer.
    executors: Executors<R>,
    /// Where deferred queries go.
    deferrals: Deferrals,
    /// Looks up addresses for transfers.
    expand_aliases: Box<ExpandAliases>,
    /// The connections, and which of them give way.
    admission: Arc<Admission>,
    /// What all connections have done.
    counters: Arc<TcpCounters>,
}

impl<R: Responder> TcpServer<R> {
    /// Prepares to serve with `executors` engines (at least 1; one per thread of the runtime is
    /// right). `make` makes the one of each number, now and again after it panicked. Deferred
    /// queries go to `deferrals`; `expand_aliases` looks up what transfers need.
    pub fn new(
        config: TcpConfig,
        executors: usize,
        clock: Clock,
        make: impl Fn(usize) -> R + Send + Sync + 'static,
        (deferrals, expand_aliases): (Deferrals, Box<ExpandAliases>),
        failures: FailureSender,
    ) -> Arc<Self> {
        let counters = Arc::<TcpCounters>::default();
        Arc::new(Self {
            executors: Executors::new(executors, clock, make, failures, Arc::clone(&counters)),
            admission: Admission::new(config.connections_max, config.connections_per_client_max),
            limits: Limits::new(&config),
            clock,
            deferrals,
            expand_aliases,
            counters,
        })
    }

    /// Sets other bounds. Open connections are bound by them once they have waited for what they
    /// wait for now.
    pub fn configure(&self, config: &TcpConfig) {
        self.limits.set(config);
        self.admission.set_bounds(config.connections_max, config.connections_per_client_max);
    }

    /// Returns the counters of the TCP listener.
    pub fn counters(&self) -> &Arc<TcpCounters> {
        &self.counters
    }

    /// Connections open now.
    pub fn open_connections(&self) -> usize {
        self.admission.open()
    }

    /// Accepts and serves connections until `stop` says so or is gone; then those that wait to be
    /// accepted too, and returns once all of its connections are closed.
    ///
    /// A stopped connection answers what has arrived and closes; that takes at most `write_max` and
    /// three seconds, ten seconds more after a hand-over, which only a client needs that does not
    /// read or goes on asking. Queries that wait for code or other servers are given eight seconds.
    ///
    /// # Errors
    /// When the listener, which must not block, cannot join the runtime.
    pub async fn serve(
        self: Arc<Self>,
        listener: std::net::TcpListener,
        index: u16,
        mut stop: watch::Receiver<Stop>,
    ) -> io::Result<()> {
        let listener = TcpListener::from_std(listener)?;
        let mut tasks = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop != Stop::No) => break,
                Some(ended) = tasks.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "the task of a connection panicked");
                    }
                    continue;
                }
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, address)) => self.admit(stream, address, index, &stop, &mut tasks),
                Err(error) => self.accept_failed(&error).await,
            }
        }
        let deadline = Instant::now() + LAST_ACCEPTS;
        while let Ok(Ok((stream, address))) = timeout_at(deadline, listener.accept()).await {
            self.admit(stream, address, index, &stop, &mut tasks);
        }
        drop(listener);
        while tasks.join_next().await.is_some() {}
        Ok(())
    }

    /// Starts a connection's task, or closes the connection if it is one too many.
    fn admit(
        self: &Arc<Self>,
        stream: TcpStream,
        address: SocketAddr,
        listener: u16,
        stop: &watch::Receiver<Stop>,
        tasks: &mut JoinSet<()>,
    ) {
        self.counters.accepted.add(1);
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        let now = self.clock.monotonic_nanos();
        let counters = &self.counters.admission;
        let Some(ticket) = self.admission.admit(Some(address.ip()), now, counters) else { return };
        // Replies are written whole; waiting for more to send would only delay them.
        let _ = stream.set_nodelay(true);
        let peer = Peer::new(address, Transport::Tcp, listener);
        let connection = Connection::new(Arc::clone(self), stream, peer, (ticket, now));
        tasks.spawn(connection.run(stop.clone()));
    }

    /// Counts a failed accept and lets time pass: for want of descriptors it would fail again at
    /// once.
    async fn accept_failed(&self, error: &io::Error) {
        const PAUSE: Duration = Duration::from_millis(50);
        self.counters.accept_errors.add(1);
        if error.kind() != io::ErrorKind::ConnectionAborted {
            tracing::warn!(%error, "cannot accept a connection");
            sleep(PAUSE).await;
        }
    }
}
