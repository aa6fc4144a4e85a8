//! A deferred query on its way through the forwarder threads, and what was fetched for it so far.

use zonda_deferral::Deferred;
use zonda_engine::To;

/// A deferred query, and what was fetched for it before.
#[derive(Debug)]
pub struct PendingQuery {
    /// The query as it was deferred. It changes places some ten times before it is answered.
    pub query: Box<Deferred>,
    /// The answers that lead from one zone into another, if there are any yet.
    pub chain: Option<Box<Chain>>,
}

impl From<Deferred> for PendingQuery {
    fn from(query: Deferred) -> Self {
        Self { query: Box::new(query), chain: None }
    }
}

/// The answers that were fetched for a query so far, and the name to ask for next.
#[derive(Debug)]
pub struct Chain {
    /// The answers, the first one first; at least one.
    pub legs: Vec<Leg>,
    /// The name to ask for next, in lower case.
    pub next: Box<[u8]>,
}

/// An answer that ends with an alias of a name in another zone.
#[derive(Debug)]
pub struct Leg {
    /// The upstreams that were asked.
    pub from: To,
    /// The name that they were asked for, in lower case.
    pub name: Box<[u8]>,
    /// The answer as a message.
    pub message: Vec<u8>,
}
