//! The connections to one server: reused, opened when there is none, counted.
//!
//! A query takes the connection with the fewest waiting queries. When all have so many, another is
//! opened beside them, and when there is none, all queries wait for the same dial. A connection
//! that seems to be dead takes no queries until something comes over it. While queries wait there
//! it counts, so that a server that is slow, or never answers, has no more than so many. After a
//! dial that failed, queries fail like it for a moment, so that a server that is gone is not
//! flooded with dials. A server that asks for a pause (Retry-After) gets it.
//!
//! Deliberately absent: how long a query may take; the caller drops the future.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::fault::Fault;
use crate::session::Session;
use crate::target::{Protocol, Target};

/// How long connecting may take: long enough for a SYN to be lost twice.
const DIAL_MAX: Duration = Duration::from_secs(4);
/// When the next address of a server is dialed beside one that is slow (rfc8305#5).
const NEXT_AFTER: Duration = Duration::from_millis(250);
/// How long queries fail after the first dial that failed; half as long again each time in a row.
const BACKOFF_MIN: Duration = Duration::from_millis(40);
/// The longest such time: a server that is back is queried within it.
const BACKOFF_MAX: Duration = Duration::from_millis(200);
/// The longest pause that a server may ask for.
const REST_MAX: Duration = Duration::from_secs(300);
/// Pause after a server has flooded a connection.
const REST_AFTER_FLOOD: Duration = Duration::from_secs(1);
/// Connections that take no queries, but on which some wait, beside which another is opened. A
/// server that leaves queries without any answer gets a new connection as soon as that shows; where
/// it does on so many, it is slow rather than gone, and is asked over those.
const LINGERING_MAX: usize = 8;
/// How often a dial begins anew because the server has moved meanwhile.
const MOVES_MAX: usize = 2;

/// How many connections there may be to one server, and what they carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time that take queries, at least 1. Some more may wait for late answers.
    pub connections_max: usize,
    /// Queries that wait on each before another one is opened; when there are enough, more wait.
    pub pipeline_max: usize,
}

impl Default for Limits {
    /// Eight, with as many queries as servers like to work on at once.
    fn default() -> Self {
        Self { connections_max: 8, pipeline_max: 128 }
    }
}

/// The connections to one server.
#[derive(Debug)]
pub struct Connections {
    /// Transport to the server.
    protocol: Protocol,
    /// Limits of connections and their queries.
    limits: Limits,
    /// Addresses of the server; the first is used first. Empty while its name is not resolved.
    addresses: ArcSwap<Vec<SocketAddr>>,
    /// Connections and the dial under way.
    state: Mutex<State>,
    /// Counters since the start.
    tallies: Tallies,
}

/// Connections and the dial under way.
#[derive(Debug, Default)]
struct State {
    /// Open connections with the addresses they lead to; also those that take no more queries while
    /// some wait.
    sessions: Vec<(SocketAddr, Arc<Session>)>,
    /// Receiver of the dial under way.
    dial: Option<watch::Receiver<DialResult>>,
    /// Failure of the last dial, unless another one has succeeded since.
    failure: Option<DialFailure>,
    /// Last fault of the server in place of an answer, unless it has answered since.
    refusal: Option<Refusal>,
    /// Late answers over connections that were removed.
    late: u64,
}

/// Result of a dial; `None` while it is under way.
type DialResult = Option<Result<Arc<Session>, Fault>>;

/// A dial that failed.
#[derive(Debug)]
struct DialFailure {
    /// Fault of the dial that failed.
    fault: Fault,
    /// Moment before which no dial begins.
    until: Instant,
    /// Duration of that pause.
    backoff: Duration,
}

/// A fault of the server in place of an answer.
#[derive(Debug)]
struct Refusal {
    fault: Fault,
    /// Moment before which the server wants no queries.
    until: Instant,
}

/// Counted since the start.
#[derive(Debug, Default)]
struct Tallies {
    opened: AtomicU64,
    resumed: AtomicU64,
    failed: AtomicU64,
    reused: AtomicU64,
    flooded: AtomicU64,
}

/// Counts of what was done with the connections to a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Connections that are open now.
    pub open: u64,
    /// Number of connections opened.
    pub opened: u64,
    /// Connections opened for which TLS has resumed an earlier session.
    pub resumed: u64,
    /// Connections that could not be opened.
    pub failed: u64,
    /// Queries over connections that were open already.
    pub reused: u64,
    /// Connections that were closed because the server sent too much unsolicited data.
    pub flooded: u64,
    /// Answers over TCP and TLS to abandoned queries.
    pub late: u64,
    /// Why the last connection could not be opened, unless one was opened since; else what the
    /// server last did instead of answering, unless it has answered since.
    pub fault: Option<Fault>,
}

impl Connections {
    /// Makes a pool without connections, with the usual limits.
    #[must_use]
    pub fn new(protocol: Protocol, addresses: Vec<SocketAddr>) -> Arc<Self> {
        Self::within(Limits::default(), protocol, addresses)
    }

    /// Makes a pool without connections, with these limits.
    #[must_use]
    pub fn within(limits: Limits, protocol: Protocol, addresses: Vec<SocketAddr>) -> Arc<Self> {
        Arc::new(Self {
            protocol,
            limits,
            addresses: ArcSwap::from_pointee(addresses),
            state: Mutex::default(),
            tallies: Tallies::default(),
        })
    }

    /// Returns how the server is asked.
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// Returns the address that is used first; `None` while the name is not resolved.
    pub fn address(&self) -> Option<SocketAddr> {
        self.addresses.load().first().copied()
    }

    /// Returns the addresses of the server.
    pub fn addresses(&self) -> Arc<Vec<SocketAddr>> {
        self.addresses.load_full()
    }

    /// Moves the pool to the server's new addresses. Queries sent to former ones are waited for,
    /// and no new ones are sent there.
    pub fn move_to(&self, addresses: Vec<SocketAddr>) {
        let mut state = self.lock();
        state.keep(|address, _| addresses.contains(&address));
        state.failure = None;
        self.addresses.store(Arc::new(addresses));
    }

    /// Passes over an address that was silent, or cannot be reached: the next one is queried first,
    /// if this one still was.
    pub fn pass_over(&self, address: SocketAddr) {
        let is_first = |known: &[SocketAddr]| known.len() > 1 && known.first() == Some(&address);
        if is_first(&self.addresses.load()) {
            self.addresses.rcu(|known| {
                let mut known = Vec::clone(known);
                if is_first(&known) {
                    known.rotate_left(1);
                }
                known
            });
        }
    }

    /// Asks and returns the answer; see [`Session::ask`].
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn ask(self: &Arc<Self>, query: &[u8]) -> Result<Vec<u8>, Fault> {
        let was_refused = {
            let mut state = self.lock();
            self.sweep(&mut state);
            match &state.refusal {
                Some(it) if Instant::now() < it.until => return Err(it.fault.clone()),
                refusal => refusal.is_some(),
            }
        };
        let answer = self.ask_any(query).await;
        match &answer {
            Ok(_) if was_refused => self.lock().refusal = None,
            Ok(_) => {}
            Err(fault) => {
                if let Some(rest) = rest(fault) {
                    let until = Instant::now() + rest;
                    self.lock().refusal = Some(Refusal { fault: fault.clone(), until });
                }
            }
        }
        answer
    }

    /// Asks as before, but waits for a connection as long as dialing fails. The caller limits how
    /// long that may take.
    ///
    /// # Errors
    /// Why there is no answer although there was a connection.
    pub async fn ask_when_connected(self: &Arc<Self>, query: &[u8]) -> Result<Vec<u8>, Fault> {
        loop {
            let answer = self.ask(query).await;
            let next_dial = match &answer {
                Err(fault) if may_recover(fault) => {
                    self.lock().failure.as_ref().map(|failure| failure.until)
                }
                _ => None,
            };
            match next_dial {
                Some(until) => sleep_until(until).await,
                None => return answer,
            }
        }
    }

    /// Asks over a connection that is open, or else over a new one. The server may close all that
    /// were idle at once.
    async fn ask_any(self: &Arc<Self>, query: &[u8]) -> Result<Vec<u8>, Fault> {
        for _ in 0..=self.limits.connections_max {
            let Some(session) = self.open_session() else { break };
            self.tallies.reused.fetch_add(1, Ordering::Relaxed);
            match session.ask(query).await {
                Err(Fault::Closed) => {} // it was idle, and the server has closed it meanwhile
                other => return other,
            }
        }
        self.dialed_session().await?.ask(query).await
    }

    /// Returns the counters.
    pub fn counts(&self) -> Counts {
        let mut state = self.lock();
        self.sweep(&mut state);
        let failed = state.failure.as_ref().map(|failure| &failure.fault);
        let refused = state.refusal.as_ref().map(|refusal| &refusal.fault);
        let read = |tally: &AtomicU64| tally.load(Ordering::Relaxed);
        Counts {
            open: state.sessions.len() as u64,
            opened: read(&self.tallies.opened),
            resumed: read(&self.tallies.resumed),
            failed: read(&self.tallies.failed),
            reused: read(&self.tallies.reused),
            flooded: read(&self.tallies.flooded),
            late: state.late + state.sessions.iter().map(|(_, it)| it.late()).sum::<u64>(),
            fault: failed.or(refused).cloned(),
        }
    }

    /// Returns the open connection with the fewest waiting queries. If these are many, another one
    /// is dialed for later queries.
    fn open_session(self: &Arc<Self>) -> Option<Arc<Session>> {
        let mut state = self.lock();
        self.sweep(&mut state);
        let session = state.least_busy(Session::is_open)?;
        let Limits { connections_max, pipeline_max } = self.limits;
        if session.waiting() >= pipeline_max {
            let lingering = state.lingering();
            let has_room = state.sessions.len() - lingering < connections_max;
            if has_room && lingering < LINGERING_MAX && state.failed_now().is_none() {
                self.dial(&mut state);
            }
        }
        Some(session)
    }

    /// Removes connections that are of no use any more, and on which no query waits. A server that
    /// has flooded one gets a pause.
    fn sweep(&self, state: &mut State) {
        let flooded = state.sessions.iter().filter(|(_, session)| session.is_flooded()).count();
        state.keep(|_, session| {
            !session.is_flooded() && (session.is_open() || session.waiting() > 0)
        });
        if flooded > 0 {
            self.tallies.flooded.fetch_add(flooded as u64, Ordering::Relaxed);
            let until = Instant::now() + REST_AFTER_FLOOD;
            state.refusal = Some(Refusal { fault: Fault::Flood, until });
        }
    }

    /// Returns the connection that comes of the dial under way, or of a new one; one that seems to
    /// be dead if there are enough of those.
    async fn dialed_session(self: &Arc<Self>) -> Result<Arc<Session>, Fault> {
        let mut dial = {
            let mut state = self.lock();
            if let Some(fault) = state.failed_now() {
                return Err(fault);
            }
            let stalled = state.sessions.iter().filter(|(_, session)| session.is_stalled()).count();
            if state.dial.is_none()
                && stalled >= LINGERING_MAX
                && let Some(session) = state.least_busy(Session::is_stalled)
            {
                self.tallies.reused.fetch_add(1, Ordering::Relaxed);
                return Ok(session);
            }
            self.dial(&mut state)
        };
        let dialed = dial.wait_for(Option::is_some).await.map_err(|_| Fault::Closed)?;
        dialed.clone().unwrap_or(Err(Fault::Closed))
    }

    /// Joins the dial under way, or begins one, which goes on even if the query is dropped.
    fn dial(self: &Arc<Self>, state: &mut State) -> watch::Receiver<DialResult> {
        if let Some(dial) = &state.dial {
            return dial.clone();
        }
        let (sender, receiver) = watch::channel(None);
        state.dial = Some(receiver.clone());
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let mut opened = this.open().await;
            for _ in 0..MOVES_MAX {
                if this.is_at_current_address(&opened) {
                    break;
                }
                opened = this.open().await; // it has moved meanwhile
            }
            let _ = sender.send(this.take_note(opened)); // they may all have gone
        });
        receiver
    }

    /// Connects to the first of the addresses, or to whichever is faster when that one is slow or
    /// fails.
    async fn open(&self) -> Result<(SocketAddr, Session), Fault> {
        let addresses = self.addresses();
        let (mut dials, mut fault) = (JoinSet::new(), Fault::NoAddress);
        let mut left = addresses.iter();
        loop {
            if let Some(&address) = left.next() {
                let target = Target { address, protocol: self.protocol.clone() };
                dials.spawn(async move {
                    let session = timeout(DIAL_MAX, Session::open(&target)).await;
                    Ok((address, session.map_err(|_| Fault::Late)??))
                });
            }
            let patience = if left.len() > 0 { NEXT_AFTER } else { DIAL_MAX };
            match timeout(patience, dials.join_next()).await {
                Ok(Some(Ok(Ok(opened)))) => return Ok(opened), // what is still dialed is dropped
                Ok(Some(Ok(Err(error)))) => fault = error,
                Ok(Some(Err(_))) | Err(_) => {}
                Ok(None) => return Err(fault),
            }
        }
    }

    /// Whether a connection that was opened leads to where the server still is.
    fn is_at_current_address(&self, opened: &Result<(SocketAddr, Session), Fault>) -> bool {
        opened.as_ref().map_or(true, |(address, _)| self.addresses.load().contains(address))
    }

    /// Handles the result of a dial.
    fn take_note(&self, opened: Result<(SocketAddr, Session), Fault>) -> DialResult {
        let count = |tally: &AtomicU64| _ = tally.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        state.dial = None;
        if !self.is_at_current_address(&opened) {
            return Some(Err(Fault::Closed)); // the next query dials the current address
        }
        match opened {
            Ok((address, session)) => {
                count(&self.tallies.opened);
                if session.is_resumed() {
                    count(&self.tallies.resumed);
                }
                state.failure = None;
                let session = Arc::new(session);
                state.sessions.push((address, Arc::clone(&session)));
                Some(Ok(session))
            }
            Err(fault) => {
                count(&self.tallies.failed);
                state.fail(fault.clone());
                Some(Err(fault))
            }
        }
    }

    /// Locks the state for a moment; no caller waits while holding it.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the connection with the fewest queries that wait, among those of a kind.
    fn least_busy(&self, is_of_kind: fn(&Session) -> bool) -> Option<Arc<Session>> {
        let sessions = self.sessions.iter().map(|(_, session)| session);
        let sessions = sessions.filter(|session| is_of_kind(session));
        sessions.min_by_key(|session| session.waiting()).map(Arc::clone)
    }

    /// Removes all connections but those for which `is_kept` is true.
    fn keep(&mut self, is_kept: impl Fn(SocketAddr, &Session) -> bool) {
        self.sessions.retain(|(address, session)| {
            let is_kept = is_kept(*address, session);
            self.late += if is_kept { 0 } else { session.late() };
            is_kept
        });
    }

    /// Counts connections that take no queries, but on which some may wait.
    fn lingering(&self) -> usize {
        self.sessions.iter().filter(|(_, session)| !session.is_open()).count()
    }

    /// Returns the fault that keeps the server from being dialed now, if any.
    fn failed_now(&self) -> Option<Fault> {
        let failure = self.failure.as_ref().filter(|failure| Instant::now() < failure.until)?;
        Some(failure.fault.clone())
    }

    /// Records a dial that failed.
    fn fail(&mut self, fault: Fault) {
        let before = self.failure.take();
        let backoff = before.map_or(BACKOFF_MIN, |it| (it.backoff * 3 / 2).min(BACKOFF_MAX));
        self.failure = Some(DialFailure { fault, until: Instant::now() + backoff, backoff });
    }
}

/// Whether a dial that failed so may succeed when the server is back.
fn may_recover(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::NoAddress | Fault::Refused | Fault::Unreachable(_) | Fault::Closed | Fault::Late
    )
}

/// Returns the pause after such a fault; `None` when the server may not have caused it.
fn rest(fault: &Fault) -> Option<Duration> {
    match fault {
        Fault::Http { rest, .. } => Some(rest.unwrap_or_default().min(REST_MAX)),
        Fault::Flood => Some(REST_AFTER_FLOOD),
        Fault::MediaType(_) | Fault::Malformed | Fault::Aborted(_) | Fault::Rules(_) => {
            Some(Duration::ZERO)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_connection_to_where_the_server_no_longer_is_is_not_used() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let before = listener.local_addr().unwrap();
        let now: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let connections = Connections::new(Protocol::Tcp, vec![before]);
        let opened = connections.open().await;
        connections.move_to(vec![now]);
        assert!(!connections.is_at_current_address(&opened));
        assert!(matches!(connections.take_note(opened), Some(Err(Fault::Closed))));
        assert_eq!(connections.counts().open, 0);
        connections.move_to(vec![before]);
        let opened = connections.open().await;
        assert!(matches!(connections.take_note(opened), Some(Ok(_))));
        assert_eq!(connections.counts().open, 1);
    }
}
