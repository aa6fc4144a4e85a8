//! The user's code: which names it answers for, and how it is called.
//!
//! ```text
//! query ─► middleware before ─► route ─► handler ──┬─ answered ──────┬─► middleware after ─► reply
//!                                 └─ none ─► zones ┴─ passed on ─────┘
//! ```
//! A handler lies over the zones: what it does not answer is answered from them. Code that runs in
//! the worker is called with a [`Draft`] of the reply; code that runs elsewhere has the query
//! deferred, and supplies a draft later.
//!
//! Deliberately absent: how code elsewhere is reached, and in which language it is written.

mod draft;
mod pattern;
mod record;
mod routes;
mod watch;

pub use draft::{Draft, Ending, Overfull};
pub use pattern::{Pattern, PatternError};
pub use record::Record;
pub use routes::{Route, Routes};
pub use watch::{Call, Watch};

use crate::message::{Now, Peer};
use std::sync::Arc;
use zonda_wire::Query;
use zonda_zone::LookupName;

/// All code that is in force.
pub struct Handlers {
    /// What answers for which names.
    pub routes: Routes<Handler>,
    /// What every query passes in the worker, in this order, and every reply in the opposite one.
    pub middleware: Vec<Arc<dyn Middleware>>,
    /// The runtime whose middleware every query passes, with or without a route.
    pub middleware_runtime: Option<u16>,
}

/// What answers for the names of a route.
#[derive(Clone)]
pub enum Handler {
    /// Code that runs in the worker, and must neither block nor take long.
    Here(Arc<dyn Code>),
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

/// A handler that runs in the worker.
pub trait Code: Send + Sync {
    /// Answers a query, or leaves the draft as it is.
    ///
    /// A panic is caught, and the query answered SERVFAIL.
    fn run(&self, asked: &Asked<'_>, draft: &mut Draft);
}

impl<F: Fn(&Asked<'_>, &mut Draft) + Send + Sync> Code for F {
    fn run(&self, asked: &Asked<'_>, draft: &mut Draft) {
        self(asked, draft);
    }
}

/// What sees queries before they are answered, and replies before they leave.
///
/// Both methods run in the worker, and must neither block nor take long. A query that is deferred
/// passes the first before that and the second when its reply is there.
pub trait Middleware: Send + Sync {
    /// Sees a query; what it puts into the draft is the reply.
    fn before(&self, _asked: &Asked<'_>, _draft: &mut Draft) {}

    /// Sees a reply and may change it.
    fn after(&self, _asked: &Asked<'_>, _draft: &mut Draft) {}
}

impl<F: Fn(&Asked<'_>, &mut Draft) + Send + Sync> Middleware for F {
    fn before(&self, asked: &Asked<'_>, draft: &mut Draft) {
        self(asked, draft);
    }
}

/// A query as code sees it.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// When it was received.
    pub now: Now,
    /// Who asks.
    pub peer: &'a Peer,
    /// The question and what else the message says.
    pub query: &'a Query,
    /// The name asked for, in lower case.
    pub name: &'a LookupName,
    /// The message as it came; octets without meaning may follow it.
    pub message: &'a [u8],
    /// The pattern of the route that was taken; none in middleware.
    pub pattern: Option<&'a Pattern>,
}

impl<'a> Asked<'a> {
    /// The options of the query's EDNS record: codes and data (rfc6891#6.1.2).
    pub fn options(&self) -> impl Iterator<Item = (u16, &'a [u8])> {
        self.query.options(self.message)
    }

    /// The label that the route's pattern captured under a name, in lower case.
    #[must_use]
    pub fn capture(&self, word: &str) -> Option<&'a [u8]> {
        let mut captures = self.pattern?.captures(self.name);
        captures.find(|(captured, _)| *captured == word).map(|(_, label)| label)
    }
}
