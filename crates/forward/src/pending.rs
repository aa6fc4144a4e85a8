//! A deferred query on its way through the forwarder threads.

use zonda_deferral::Deferred;

use crate::chain::Chain;

/// A deferred query, and what was fetched for it before.
#[derive(Debug)]
pub struct PendingQuery {
    /// The query as it was deferred.
    pub query: Deferred,
    /// The answers that lead from one zone into another, if there are any yet.
    pub chain: Option<Box<Chain>>,
}

impl From<Deferred> for PendingQuery {
    fn from(query: Deferred) -> Self {
        Self { query, chain: None }
    }
}
