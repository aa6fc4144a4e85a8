//! Stages: the user's code in the worker that sees every query and every reply.

use super::query::Query;
use super::reply::Reply;

/// Middleware in the worker that sees queries before they are answered, and replies before they
/// leave.
///
/// Both methods run in the worker, and must neither block nor take long. A query that is deferred
/// passes the first before that and the second when its reply is there.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as a stage",
    label = "expected a stage",
    note = "a stage implements `zonda::Stage`, as functions of `&zonda::Query` and \
            `&mut zonda::Reply` do"
)]
pub trait Stage: Send + Sync {
    /// Sees a query; what it puts into the reply is sent.
    fn before(&self, _query: &Query<'_>, _reply: &mut Reply) {}

    /// Sees a reply and may change it.
    fn after(&self, _query: &Query<'_>, _reply: &mut Reply) {}
}

impl<F: Fn(&Query<'_>, &mut Reply) + Send + Sync> Stage for F {
    fn before(&self, query: &Query<'_>, reply: &mut Reply) {
        self(query, reply);
    }
}
