//! How a connection is used: how many queries wait, since when nothing has come, when it was last
//! of use.
//!
//! Deliberately absent: which query waits for what; HTTP/2 and QUIC know that themselves.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::fault::Fault;

/// Most queries that wait at once: more than a zone lets wait for one server.
const WAITING_MAX: usize = 1 << 14;
/// A server that has left queries without any answer for so long is asked over another connection,
/// if it is there at all: a host that went away says nothing.
const STALLED_AFTER: Duration = Duration::from_millis(1500);
/// Silence after which a server seems dead for which many queries wait: that none of them gets an
/// answer is no slow look-up.
const STALLED_SOON_AFTER: Duration = Duration::from_millis(500);
/// Fewest waiting queries for [`STALLED_SOON_AFTER`].
const MANY: usize = 8;
/// Silence after which the connection is closed.
const DEAD_AFTER: Duration = Duration::from_secs(10);
/// Time between two looks at the clock; an error of that much does no harm.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// How a connection is used, shared by askers and the task that drives it.
#[derive(Debug)]
pub struct Usage(Mutex<State>);

/// The state of a session at a moment.
#[derive(Debug)]
struct State {
    /// Queries that wait.
    waiting: usize,
    /// Since when queries wait, or were abandoned, and nothing has come.
    silent_since: Option<Instant>,
    /// When anything was last asked or answered.
    used_at: Instant,
    /// The server wants no more queries over the session.
    is_leaving: bool,
}

/// A query that waits; dropped without an answer, it was given up.
pub struct PendingQuery<'u>(&'u Usage);

impl Usage {
    /// Makes the state of a connection without queries.
    pub fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(State { waiting: 0, silent_since: None, used_at: now, is_leaving: false }))
    }

    /// Registers a query.
    pub fn ask(&self) -> Result<PendingQuery<'_>, Fault> {
        let mut state = self.lock();
        if state.waiting >= WAITING_MAX {
            return Err(Fault::Busy);
        }
        state.waiting += 1;
        state.used_at = Instant::now();
        state.silent_since.get_or_insert_with(Instant::now);
        Ok(PendingQuery(self))
    }

    /// Records that the server wants no more queries over the connection.
    pub fn leave(&self) {
        self.lock().is_leaving = true;
    }

    /// Whether the session can take another query.
    pub fn is_open(&self) -> bool {
        let state = self.lock();
        !state.is_leaving && !state.is_stalled()
    }

    /// Whether the session could take another query, did the server not seem to be dead.
    pub fn is_stalled(&self) -> bool {
        let state = self.lock();
        !state.is_leaving && state.is_stalled()
    }

    /// Queries that wait for their answers.
    pub fn waiting(&self) -> usize {
        self.lock().waiting
    }

    /// Waits until the connection is dead, or was of no use for `idle_max`.
    pub async fn ends(&self, idle_max: Duration) {
        while !self.lock().is_due(idle_max) {
            sleep(WATCH_EVERY).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns how long nothing has come although queries waited.
    fn silent_for(&self) -> Duration {
        self.silent_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Whether the server seems to be dead.
    fn is_stalled(&self) -> bool {
        let many_wait = self.waiting >= MANY;
        self.silent_for() >= if many_wait { STALLED_SOON_AFTER } else { STALLED_AFTER }
    }

    /// Whether nothing is to be expected of it any more.
    fn is_due(&self, idle_max: Duration) -> bool {
        let is_idle = self.waiting == 0 && self.used_at.elapsed() >= idle_max;
        is_idle || self.silent_for() >= DEAD_AFTER
    }
}

impl PendingQuery<'_> {
    /// Records the answer, or the server's word that there is none.
    pub fn answered(self) {
        let mut state = self.0.lock();
        state.used_at = Instant::now();
        let others_wait = state.waiting > 1;
        state.silent_since = others_wait.then_some(state.used_at);
    }
}

impl Drop for PendingQuery<'_> {
    fn drop(&mut self) {
        self.0.lock().waiting -= 1;
    }
}
