//! What code may return.

use std::fmt::Display;
use zonda_engine::code::Reply;
use zonda_server::LogBudget;

/// What a handler may return: nothing, or a `Result` whose error becomes SERVFAIL and a line in the
/// log.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "expected `()` or a `Result`",
    note = "a handler fills in its `&mut zonda::Reply` and returns nothing, or a `Result<(), E>` \
            whose error has `Display`"
)]
pub trait HandlerResult {
    /// Puts an error into the reply.
    fn end(self, pattern: &str, reply: &mut Reply);
}

impl HandlerResult for () {
    fn end(self, _: &str, _: &mut Reply) {}
}

impl<E: Display> HandlerResult for Result<(), E> {
    fn end(self, pattern: &str, reply: &mut Reply) {
        if let Err(error) = self {
            fail(pattern, &error, reply);
        }
    }
}

/// What asynchronous code may answer with: a reply, or a `Result` with one.
#[diagnostic::on_unimplemented(
    message = "asynchronous code cannot answer with `{Self}`",
    label = "expected a `zonda::Reply`, or a `Result` with one",
    note = "make one with `zonda::Reply::default()` and return it"
)]
pub trait AsyncAnswer: Send {
    /// Makes the reply.
    fn into_reply(self, pattern: &str) -> Reply;
}

impl AsyncAnswer for Reply {
    fn into_reply(self, _: &str) -> Reply {
        self
    }
}

impl<E: Display + Send> AsyncAnswer for Result<Reply, E> {
    fn into_reply(self, pattern: &str) -> Reply {
        self.unwrap_or_else(|error| {
            let mut reply = Reply::default();
            fail(pattern, &error, &mut reply);
            reply
        })
    }
}

/// Answers SERVFAIL, and logs why. The client does not get the error, which may hold private facts.
fn fail(pattern: &str, error: &dyn Display, reply: &mut Reply) {
    static BUDGET: LogBudget = LogBudget::new();
    BUDGET.spend(|left_out| {
        tracing::error!(route = %pattern, %error, left_out, "the handler failed");
    });
    reply.servfail("the code that answers for this name failed");
}
