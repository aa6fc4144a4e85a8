//! The user's code: which names it answers for, and how it is called.
//!
//! ```text
//! query ─► middleware before ─► route ─► handler ──┬─ answered ──────┬─► middleware after ─► reply
//!                                 └─ none ─► zones ┴─ passed on ─────┘
//! ```
//! Between a route and its handler are the answers that are kept: ours, then those of a cache of
//! the user's, if there is one.
//!
//! A handler lies over the zones: what it does not answer is answered from them. Code that runs in
//! the worker is called with a [`HandlerReply`] to fill in; code that runs elsewhere has the query
//! deferred, and supplies a `HandlerReply` later.
//!
//! Deliberately absent: how code elsewhere is reached, and in which language it is written.

mod cache;
mod client;
mod history;
mod kept;
mod pattern;
mod record;
mod reply;
mod routes;
mod watch;

pub(crate) use kept::{give_again, keep, kept_under};

pub use cache::Cache;
pub use history::{History, Tags, Then};
pub use kept::{Keep, Vary};
pub use pattern::{Pattern, PatternError};
pub use record::Record;
pub use reply::{Ending, HandlerReply, Overfull};
pub use routes::{Claim, Route, Routes};
pub use watch::{Call, Watch};

use crate::context::Context;
use crate::message::{Now, Peer};
use std::any::Any;
use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::time::Duration;
use zonda_wire::Query;
use zonda_wire::query::flag;
use zonda_zone::{HashSeed, LookupName};

/// All code that is in force.
pub struct Handlers {
    /// What answers for which names.
    pub routes: Routes<Handler>,
    /// What every query passes in the worker, in this order, and every reply in the opposite one.
    pub middleware: Vec<Arc<dyn Stage>>,
    /// The runtime whose middleware every query passes, with or without a route.
    pub middleware_runtime: Option<u16>,
    /// Where the user keeps answers of routes.
    pub users_cache: Option<Arc<dyn Cache>>,
    /// Answers that may be given again without asking the code.
    cache: zonda_cache::Cache,
    /// What answers of each route were kept by: bit *n* for the [`Vary`] with that number.
    varies: Box<[AtomicU8]>,
    /// Told of panics.
    panic_log: Option<PanicLog>,
}

/// Is told what has panicked in a worker, and with which message. Called there: must not block.
pub type PanicLog = fn(Callee<'_>, &str);

/// Memory for answers of code that are given again, octets; none of it is used before there are
/// any.
const CACHE_BYTES: usize = 64 << 20;

impl Handlers {
    /// Code for names that are hashed with `seed`; routes and middleware in the order in which they
    /// were added.
    #[must_use]
    pub fn new(
        routes: Vec<Route<Handler>>,
        middleware: Vec<Arc<dyn Stage>>,
        middleware_runtime: Option<u16>,
        seed: HashSeed,
    ) -> Self {
        let varies = routes.iter().map(|_| AtomicU8::new(0)).collect();
        let cache = zonda_cache::Cache::new(CACHE_BYTES);
        let (routes, users_cache) = (Routes::new(routes, seed), None);
        let panic_log = None;
        Self { routes, middleware, middleware_runtime, users_cache, cache, varies, panic_log }
    }

    /// The same with panics of the code told.
    #[must_use]
    pub fn with_panic_log(self, panic_log: PanicLog) -> Self {
        Self { panic_log: Some(panic_log), ..self }
    }

    /// The same with a cache of the user's in front of the routes' code.
    #[must_use]
    pub fn with_cache(self, users_cache: Option<Arc<dyn Cache>>) -> Self {
        Self { users_cache, ..self }
    }

    /// What a [`Call`] with this place calls.
    #[must_use]
    pub fn callee(&self, place: usize) -> Callee<'_> {
        match self.routes.as_slice().get(place) {
            Some(route) => Callee::Handler(&route.pattern),
            None if place == self.cache_place() => Callee::Cache,
            None => Callee::Middleware,
        }
    }

    /// Tells of a panic of what a [`Call`] with this place calls.
    #[cold]
    pub(crate) fn tell_panic(&self, place: usize, payload: &(dyn Any + Send)) {
        if let Some(tell) = self.panic_log {
            tell(self.callee(place), panic_message(payload));
        }
    }

    /// The place of calls of a middleware.
    pub(crate) fn middleware_place(&self, index: usize) -> usize {
        self.routes.len() + index
    }

    /// The place of calls of the user's cache.
    pub(crate) fn cache_place(&self) -> usize {
        self.middleware_place(self.middleware.len())
    }
}

/// What a panic says.
#[must_use]
pub fn panic_message(payload: &(dyn Any + Send)) -> &str {
    let written = payload.downcast_ref::<String>().map(String::as_str);
    written.or_else(|| payload.downcast_ref().copied()).unwrap_or("no message")
}

/// Code that a worker calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee<'h> {
    /// That of a route.
    Handler(&'h Pattern),
    /// What all queries pass.
    Middleware,
    /// Where the user keeps answers.
    Cache,
}

/// What answers for the names of a route.
#[derive(Clone)]
pub enum Handler {
    /// Code that runs in the worker, and must neither block nor take long.
    Here(Arc<dyn Source>),
    /// Code that runs elsewhere.
    Elsewhere(Elsewhere),
}

/// Code that runs elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The number of the runtime.
    pub runtime: u16,
    /// What the runtime knows it by; [`NO_HANDLER`] for its middleware alone.
    pub handler: u32,
}

/// The handler of a query that only passes middleware.
pub const NO_HANDLER: u32 = u32::MAX;

/// What answers queries in the worker; it must neither block nor take long.
pub trait Source: Send + Sync {
    /// Answers a query, or leaves the draft as it is.
    ///
    /// A panic is caught, and the query answered SERVFAIL.
    fn answer(&self, asked: &HandlerQuery<'_>, draft: &mut HandlerReply);
}

impl<F: Fn(&HandlerQuery<'_>, &mut HandlerReply) + Send + Sync> Source for F {
    fn answer(&self, asked: &HandlerQuery<'_>, draft: &mut HandlerReply) {
        self(asked, draft);
    }
}

/// A stage of the user's, called middleware: what sees queries before they are answered, and
/// replies before they leave.
///
/// Both methods run in the worker, and must neither block nor take long. A query that is deferred
/// passes the first before that and the second when its reply is there.
pub trait Stage: Send + Sync {
    /// Sees a query; what it puts into the draft is the reply.
    fn before(&self, _asked: &HandlerQuery<'_>, _draft: &mut HandlerReply) {}

    /// Sees a reply and may change it.
    fn after(&self, _asked: &HandlerQuery<'_>, _draft: &mut HandlerReply) {}
}

impl<F: Fn(&HandlerQuery<'_>, &mut HandlerReply) + Send + Sync> Stage for F {
    fn before(&self, asked: &HandlerQuery<'_>, draft: &mut HandlerReply) {
        self(asked, draft);
    }
}

/// A query as code sees it.
pub struct HandlerQuery<'a> {
    /// The time. A query that was deferred was received before.
    pub now: Now,
    /// When it was received; nanoseconds of the monotonic clock.
    received_nanos: u64,
    /// Who asks.
    peer: &'a Peer,
    /// The question and what else the message says.
    pub query: &'a Query,
    /// The name asked for, in lower case.
    pub name: &'a LookupName,
    /// The message as it came; octets without meaning may follow it.
    message: &'a [u8],
    /// Whether something was read that other clients may have otherwise.
    saw_client: Cell<bool>,
    /// The pattern of the route that was taken; none in middleware.
    pub pattern: Option<&'a Pattern>,
}

impl<'a> HandlerQuery<'a> {
    /// The query on its way through the plan.
    pub(crate) fn new(cx: &'a Context<'_>, pattern: Option<&'a Pattern>) -> Self {
        let Context { now, received_nanos, peer, query, name, .. } = *cx;
        let (message, saw_client) = (cx.reply.buffer(), Cell::new(false));
        Self { now, received_nanos, peer, query, name, message, pattern, saw_client }
    }

    /// The same without its message, where the reply lies already.
    pub(crate) fn without_message(self) -> Self {
        Self { message: &[], ..self }
    }

    /// Whether something was read that other clients may have otherwise.
    pub(crate) fn saw_client(&self) -> bool {
        self.saw_client.get()
    }

    /// How long ago it was received: what it has waited for others. What is answered at once has
    /// waited for nobody, and no clock is read for it.
    #[must_use]
    pub fn waited(&self) -> Duration {
        Duration::from_nanos(self.now.monotonic_nanos.saturating_sub(self.received_nanos))
    }

    /// Who asks, and how. An answer of code that reads this is kept only for the same client or
    /// network.
    #[must_use]
    pub fn peer(&self) -> &'a Peer {
        self.saw_client.set(true);
        self.peer
    }

    /// The client's address and port; as [`peer`](Self::peer).
    #[must_use]
    pub fn client(&self) -> SocketAddr {
        self.peer().address
    }

    /// The message as it came, and perhaps octets without meaning behind it; as
    /// [`peer`](Self::peer). Empty in [`Stage::after`].
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.saw_client.set(true);
        self.message
    }

    /// The options of the query's EDNS record: codes and data (rfc6891#6.1.2); as
    /// [`peer`](Self::peer). None in [`Stage::after`].
    pub fn options(&self) -> impl Iterator<Item = (u16, &'a [u8])> {
        self.saw_client.set(true);
        self.query.options(self.message)
    }

    /// Octets that are the same for queries which code answers alike that has not read who asks:
    /// name, type, and whether the client wants DNSSEC records (DO) and checks them itself (CD).
    #[must_use]
    pub fn cache_key(&self) -> Vec<u8> {
        let query = self.query;
        let marks = u8::from(query.dnssec_ok()) | u8::from(query.flags & flag::CD != 0) << 1;
        [&query.qtype.0.to_be_bytes()[..], &[marks], self.name.as_wire()].concat()
    }

    /// The label that the route's pattern captured under a name, in lower case.
    #[must_use]
    pub fn capture(&self, word: &str) -> Option<&'a [u8]> {
        let mut captures = self.pattern?.captures(self.name);
        captures.find(|(captured, _)| *captured == word).map(|(_, label)| label)
    }
}
