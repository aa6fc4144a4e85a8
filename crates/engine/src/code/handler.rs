//! Handlers: what answers for the names of a route.

use super::elsewhere::Elsewhere;
use super::query::HandlerQuery;
use super::reply::HandlerReply;
use std::sync::Arc;

/// What answers for the names of a route.
#[derive(Clone)]
pub enum Handler {
    /// Code that runs in the worker, and must neither block nor take long.
    Here(Arc<dyn Source>),
    /// Code that runs elsewhere.
    Elsewhere(Elsewhere),
}

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
