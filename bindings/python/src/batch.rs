//! Batches of queries and of replies, between the core and Python.
//!
//! Python sees objects of this module, made of a query's octets and written into a draft: no
//! encoding lies between. Only this file knows how the core hands out queries.

use std::sync::{Arc, Mutex, PoisonError};

use zonda_engine::code::HandlerReply;
use zonda_engine::{Engine, HandlerOutcome, Peer, Reason};
use zonda_runtime::{Answerer, Runtime, Ticket};
use zonda_server::RuntimeHandle;

/// Queries that are taken at once: some milliseconds of Python, after which other work of the event
/// loop has its turn.
const BATCH_MAX: usize = 256;

/// The core's side of a batch.
pub struct Batches {
    runtime: Arc<Runtime>,
    answerer: Mutex<Answerer<Engine>>,
}

/// A query that waits.
pub struct WaitingQuery {
    /// Ticket of the query.
    pub ticket: Ticket,
    /// Number of the handler; `NO_HANDLER` if there is only middleware.
    pub handler: u32,
    /// Whether the query passes guards.
    pub is_guarded: bool,
    /// Octets of the query.
    pub message: Box<[u8]>,
    /// Client that sent the query.
    pub peer: Peer,
}

/// What code says to a query; nothing if it failed.
pub type TicketReply = (Ticket, Option<HandlerReply>);

impl From<RuntimeHandle> for Batches {
    fn from(RuntimeHandle { runtime, answerer }: RuntimeHandle) -> Self {
        Self { runtime, answerer: Mutex::new(answerer) }
    }
}

impl Batches {
    /// The queue that queries wait in.
    pub fn runtime(&self) -> Arc<Runtime> {
        Arc::clone(&self.runtime)
    }

    /// Takes queries, and returns whether there are more.
    pub fn take(&self) -> (Vec<WaitingQuery>, bool) {
        let mut taken = Vec::new();
        let more = self.runtime.take(BATCH_MAX, |ticket, handler, query| {
            let (message, peer) = (query.query.as_slice().into(), query.peer);
            let is_guarded = query.deferral.history.is_guarded;
            taken.push(WaitingQuery { ticket, handler, is_guarded, message, peer });
        });
        (taken, more)
    }

    /// Answers queries, and sends the replies.
    pub fn complete(&self, given: &[TicketReply]) {
        let mut answerer = self.answerer.lock().unwrap_or_else(PoisonError::into_inner);
        for (ticket, draft) in given {
            let supplied = match draft {
                Some(draft) => HandlerOutcome::Reply(draft),
                None => HandlerOutcome::Failed(Reason::HandlerFailed),
            };
            answerer.answer(&self.runtime, *ticket, supplied);
        }
        answerer.send();
    }
}
