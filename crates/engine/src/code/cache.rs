//! The interface of a cache that the user's program has for replies of its handlers.
//!
//! Deliberately absent: memory, keys and times, which are the program's.

use super::ending::Ending;
use super::keep::{Keep, Vary};
use super::query::Query;
use super::reply::Reply;
use std::sync::Arc;
use zonda_wire::Rcode;
use zonda_wire::query::flag;

/// A cache of replies of handlers and sources, with memory of the program's own.
///
/// The server looks a query up before it calls a handler or a source, also before it defers the
/// query to code that may wait, and inserts the reply of that code. Both methods run in the threads
/// that answer, in several at once, and must neither block nor take long: a cache that has to be
/// asked over a network is a handler's or a middleware's work, which may wait. A panic of either
/// method is caught, and the query answered SERVFAIL.
///
/// Replies that hold for one query only are not inserted: failures, silence and truncated replies,
/// replies that came too late or from middleware, and those of code that has read the client's data
/// or says that they [vary](Reply::cache). Answers of zones and upstreams are not, either.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as a cache of replies",
    label = "expected a cache",
    note = "implement `zonda::Cache` for it"
)]
pub trait Cache: Send + Sync {
    /// Answers a query with the cached reply to it, or leaves `reply` as it is.
    ///
    /// What a reply may depend on is in [`Query::cache_key`]; [`Reply::copy_aged`]
    /// copies a cached reply with TTLs that have counted down.
    fn lookup(&self, query: &Query<'_>, reply: &mut Reply);

    /// Inserts the reply of code to a query; it holds for no longer than
    /// [`Reply::shortest_ttl_secs`]. A cache may decline it by doing nothing.
    fn insert(&self, query: &Query<'_>, reply: &Reply);
}

impl<C: Cache + ?Sized> Cache for Arc<C> {
    fn lookup(&self, query: &Query<'_>, reply: &mut Reply) {
        (**self).lookup(query, reply);
    }

    fn insert(&self, query: &Query<'_>, reply: &Reply) {
        (**self).insert(query, reply);
    }
}

impl Reply {
    /// Whether the reply answers the same question of every client, also in a while.
    pub(crate) fn is_for_all(&self) -> bool {
        let varies = |keep: Keep| keep.vary != Vary::Nothing;
        self.ending == Ending::Reply
            && matches!(self.rcode, Rcode::NOERROR | Rcode::NXDOMAIN)
            && self.flags & flag::TC == 0
            && !self.saw_client
            && self.scope.is_none_or(|bits| bits == 0)
            && !self.keep.is_some_and(varies)
    }
}
