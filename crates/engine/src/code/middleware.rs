//! Middleware: the user's code that sees every query and every reply.

use super::query::HandlerQuery;
use super::reply::HandlerReply;

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
