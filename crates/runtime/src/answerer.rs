//! Replies to queries that the user's code has answered.

use std::sync::Arc;

use zonda_deferral::{Clock, Deferrals, Deferred, Replies, Responder};
use zonda_engine::code::Ending;
use zonda_engine::{HandlerOutcome, Now};

use crate::runtime::{Runtime, UnsentReplies};
use crate::waiting::Ticket;

/// Writes and sends replies. One for each thread that has any.
pub struct Answerer<R> {
    replies: Replies<R>,
    clock: Clock,
    /// When the first of the replies was written that were not sent yet: read once for all of them.
    now: Option<Now>,
    /// Where queries go that the code leaves to other servers.
    deferrals: Deferrals,
    /// Queries that the code leaves to upstreams and that were not handed over yet.
    passed_on: Vec<Deferred>,
    /// The runtimes that queries were taken from whose replies have not left yet.
    unsent: Vec<UnsentReplies>,
}

impl<R: Responder> Answerer<R> {
    /// An answerer that has `responder` write replies.
    pub fn new(responder: R, clock: Clock, deferrals: Deferrals) -> Self {
        let (replies, passed_on) = (Replies::new(responder), Vec::new());
        Self { replies, clock, now: None, deferrals, passed_on, unsent: Vec::new() }
    }

    /// Answers a query of a runtime with what code supplied, unless it waits no longer; one that
    /// code passes on with the answer that was [kept](Runtime::keep) for it, if there is one. The
    /// reply leaves with the next [`send`](Self::send).
    pub fn answer(&mut self, runtime: &Arc<Runtime>, ticket: Ticket, supplied: HandlerOutcome<'_>) {
        if !self.unsent.iter().any(|unsent| unsent.is_of(runtime)) {
            self.unsent.push(UnsentReplies::of(Arc::clone(runtime)));
        }
        let Some((mut query, below)) = runtime.finish(ticket) else { return };
        let supplied = match (supplied, &below) {
            (HandlerOutcome::Reply(reply), Some(below)) if reply.ending == Ending::PassOn => {
                query.deferral.note_code(&query.query, reply);
                HandlerOutcome::AsAnswered(below)
            }
            (supplied, _) => supplied,
        };
        self.supply(query, supplied);
    }

    /// Answers a query that was taken out.
    pub(crate) fn supply(&mut self, query: Deferred, supplied: HandlerOutcome<'_>) {
        let now = *self.now.get_or_insert_with(|| self.clock.now());
        self.passed_on.extend(self.replies.supply(query, supplied, now));
    }

    /// Sends all replies.
    pub fn send(&mut self) {
        self.now = None;
        self.replies.send();
        if !self.passed_on.is_empty() {
            self.deferrals.submit(&mut self.passed_on);
        }
        self.unsent.clear();
    }
}
