//! Handlers: what answers for the names of a route.

use super::elsewhere::Elsewhere;
use super::query::Query;
use super::reply::Reply;
use std::sync::Arc;

/// The handler of a route: the code that answers for its names.
#[derive(Clone)]
pub enum Handler {
    /// Code that runs in the worker, and must neither block nor take long.
    Here(Arc<dyn Source>),
    /// Code that runs elsewhere.
    Elsewhere(Elsewhere),
}

/// A source of answers that runs in the worker; it must neither block nor take long.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as a source of answers",
    label = "expected a source",
    note = "a source implements `zonda::Source`, as functions of `&zonda::Query` and \
            `&mut zonda::Reply` do"
)]
pub trait Source: Send + Sync {
    /// Answers a query, or leaves the reply as it is.
    ///
    /// A panic is caught, and the query answered SERVFAIL.
    fn answer(&self, query: &Query<'_>, reply: &mut Reply);
}

impl<F: Fn(&Query<'_>, &mut Reply) + Send + Sync> Source for F {
    fn answer(&self, query: &Query<'_>, reply: &mut Reply) {
        self(query, reply);
    }
}
