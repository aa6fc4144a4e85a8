//! The queries that wait for one runtime of the user's code.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zonda_deferral::{Clock, Deferred, Queue, SharedCounter};
use zonda_engine::{AnswerBelow, Peer, To};

use crate::waiting::{Ticket, WaitingQueries};

/// Queries that are shown while workers cannot add any: a few microseconds, which one of them may
/// have to wait that also answers from zones.
const SHOWN_AT_ONCE: usize = 16;

/// How a runtime is used.
pub struct RuntimeConfig {
    /// Most queries that wait for it; more are answered SERVFAIL. One of more than
    /// [`PLACE_BYTES`](super::PLACE_BYTES) octets counts for several, unless it is the only one.
    pub waiting_max: usize,
    /// How long a query may wait from when it was received on, nanoseconds; for all code together
    /// that it reaches.
    pub patience_nanos: u64,
    /// Tells the runtime that queries wait where there were none. Called by workers: must not
    /// block.
    pub wake: Box<dyn Fn() + Send + Sync>,
}

/// Counters of the queries of a runtime, by what became of them.
#[derive(Debug, Default)]
pub struct RuntimeCounters {
    /// Queries handed over.
    pub queries: SharedCounter,
    /// Queries for which there was no room.
    pub refused: SharedCounter,
    /// Queries that the runtime did not answer in time.
    pub late: SharedCounter,
    /// Answers to queries that waited no longer.
    pub in_vain: SharedCounter,
}

/// The queries that wait for one runtime of the user's code: a thread of JavaScript or Python, or
/// tasks.
pub struct Runtime {
    waiting: Mutex<WaitingQueries>,
    config: RuntimeConfig,
    clock: Clock,
    /// Answerers that have taken out queries whose replies have not left yet.
    unsent: AtomicUsize,
    /// Counters of the queries of this runtime.
    pub counters: RuntimeCounters,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("counters", &self.counters).finish_non_exhaustive()
    }
}

impl Runtime {
    /// A runtime for which no query waits.
    #[must_use]
    pub fn new(config: RuntimeConfig, clock: Clock) -> Self {
        Self {
            waiting: Mutex::default(),
            config,
            clock,
            unsent: AtomicUsize::new(0),
            counters: RuntimeCounters::default(),
        }
    }

    /// Shows `see` up to `count_max` queries that it has not seen yet, each with the handler that
    /// it is for; returns whether there are more. They wait on, to be answered by their tickets.
    pub fn take(&self, count_max: usize, mut see: impl FnMut(Ticket, u32, &Deferred)) -> bool {
        let mut shown = 0;
        while shown < count_max {
            let mut waiting = self.waiting();
            for _ in 0..SHOWN_AT_ONCE.min(count_max - shown) {
                let Some((ticket, query)) = waiting.next_fresh() else { return false };
                if let To::Code(elsewhere) = query.deferral.to {
                    see(ticket, elsewhere.handler, query);
                }
                shown += 1;
            }
        }
        self.waiting().has_fresh()
    }

    /// The octets and the client of a query, if it still waits: what code asks about it below.
    #[must_use]
    pub fn waiting_query(&self, ticket: Ticket) -> Option<(Vec<u8>, Peer)> {
        self.waiting().get(ticket).map(|query| (query.query.clone(), query.peer))
    }

    /// Keeps the answer that code was shown to a query while that waits, to be sent if the code
    /// passes the query on. It must be the answer to the octets and the client that
    /// [`waiting_query`](Self::waiting_query) has returned.
    pub fn keep(&self, ticket: Ticket, below: AnswerBelow) {
        self.waiting().keep(ticket, below);
    }

    /// Takes out a query that is about to be answered, if it still waits, and the answer that was
    /// kept for it.
    pub(crate) fn finish(&self, ticket: Ticket) -> Option<(Deferred, Option<AnswerBelow>)> {
        let query = self.waiting().take(ticket);
        if query.is_none() {
            self.counters.in_vain.add(1);
        }
        query
    }

    /// Returns how many queries wait for the runtime.
    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting().len()
    }

    /// Takes out a query, however long it has waited.
    pub(crate) fn take_any(&self) -> Option<Deferred> {
        let query = self.waiting().take_late(u64::MAX)?;
        self.counters.late.add(1);
        Some(query)
    }

    /// Takes out a query that has waited too long.
    pub(crate) fn take_late(&self) -> Option<Deferred> {
        let query = self.waiting().take_late(self.clock.monotonic_nanos())?;
        self.counters.late.add(1);
        Some(query)
    }

    /// The queries, for a moment.
    fn waiting(&self) -> MutexGuard<'_, WaitingQueries> {
        // The lists are whole after every call, also if one that sees queries panics.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue for Runtime {
    fn put(&self, queries: &mut Vec<Deferred>) {
        let now = self.clock.monotonic_nanos();
        // A query that other code has passed on has had some of its time.
        let deadline = |query: &Deferred| {
            let received = query.deferral.history.received_nanos.min(now);
            received.saturating_add(self.config.patience_nanos)
        };
        let count = queries.len();
        let mut waiting = self.waiting();
        let was_idle = !waiting.has_fresh();
        let mut refused = Vec::new();
        for query in queries.drain(..) {
            if waiting.has_room(&query, self.config.waiting_max) {
                let deadline = deadline(&query);
                waiting.add(query, deadline);
            } else {
                refused.push(query);
            }
        }
        drop(waiting);
        let added = count - refused.len();
        queries.append(&mut refused);
        self.counters.queries.add(added as u64);
        self.counters.refused.add(queries.len() as u64);
        if was_idle && added > 0 {
            (self.config.wake)();
        }
    }

    fn is_idle(&self) -> bool {
        let is_sent = || self.unsent.load(Ordering::SeqCst) == 0;
        // Twice, as a query may be on its way from the list to an answerer between the two.
        is_sent() && self.waiting_count() == 0 && is_sent()
    }
}

/// Replies of an answerer to queries of a runtime that have not left yet; dropped when they have.
pub(crate) struct UnsentReplies(Arc<Runtime>);

impl UnsentReplies {
    /// Notes that an answerer takes out queries of a runtime.
    pub(crate) fn of(runtime: Arc<Runtime>) -> Self {
        runtime.unsent.fetch_add(1, Ordering::SeqCst);
        Self(runtime)
    }

    /// Whether the queries are of this runtime.
    pub(crate) fn is_of(&self, runtime: &Arc<Runtime>) -> bool {
        Arc::ptr_eq(&self.0, runtime)
    }
}

impl Drop for UnsentReplies {
    fn drop(&mut self) {
        self.0.unsent.fetch_sub(1, Ordering::SeqCst);
    }
}
