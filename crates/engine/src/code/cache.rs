//! Answers of code that the user keeps.
//!
//! Deliberately absent: memory, keys and times, which are the user's.

use super::keep::{Keep, Vary};
use super::query::HandlerQuery;
use super::reply::{Ending, HandlerReply};
use std::sync::Arc;
use zonda_wire::Rcode;
use zonda_wire::query::flag;

/// Keeps answers of handlers and sources where the user likes, and gives them again.
///
/// Looked at before code is called, also before a query is deferred to code that may wait, and told
/// what that answered. Both methods run in the threads that answer, in several at once, and must
/// neither block nor take long: a cache that has to be asked over a network is a handler's or a
/// middleware's work, which may wait. A panic of either is caught, and the query answered SERVFAIL.
///
/// What holds for one query only is not told: failures, silence and truncated answers, what was
/// answered too late or by middleware, and answers of code that has read who asks or says that they
/// [vary](HandlerReply::cache). Whatever zones and other servers answer is not, either.
pub trait Cache: Send + Sync {
    /// Answers a query with what is kept for it, or leaves the draft as it is.
    ///
    /// What an answer may depend on is told by [`HandlerQuery::cache_key`]; how to give one again,
    /// with TTLs that have counted down, by [`HandlerReply::give_again`].
    fn look_up(&self, asked: &HandlerQuery<'_>, draft: &mut HandlerReply);

    /// Takes note of what code has answered, if it likes: for no longer than
    /// [`HandlerReply::shortest_ttl_secs`].
    fn keep(&self, asked: &HandlerQuery<'_>, draft: &HandlerReply);
}

impl<C: Cache + ?Sized> Cache for Arc<C> {
    fn look_up(&self, asked: &HandlerQuery<'_>, draft: &mut HandlerReply) {
        (**self).look_up(asked, draft);
    }

    fn keep(&self, asked: &HandlerQuery<'_>, draft: &HandlerReply) {
        (**self).keep(asked, draft);
    }
}

impl HandlerReply {
    /// Whether it answers the same question whoever asks, also in a while.
    pub(crate) fn is_for_all(&self) -> bool {
        let varies = |keep: Keep| keep.vary != Vary::Nothing;
        self.ending == Ending::Reply
            && matches!(self.rcode, Rcode::NOERROR | Rcode::NXDOMAIN)
            && self.flags & flag::TC == 0
            && !self.saw_client
            && !self.keep.is_some_and(varies)
    }
}
