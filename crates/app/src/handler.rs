//! What code may return.

use std::fmt::Display;
use zonda_engine::code::HandlerReply;
use zonda_server::LogBudget;

/// What a handler may return: nothing, or a `Result` whose error becomes SERVFAIL and a line in the
/// log.
pub trait HandlerResult {
    /// Puts an error into the reply.
    fn end(self, pattern: &str, reply: &mut HandlerReply);
}

impl HandlerResult for () {
    fn end(self, _: &str, _: &mut HandlerReply) {}
}

impl<E: Display> HandlerResult for Result<(), E> {
    fn end(self, pattern: &str, reply: &mut HandlerReply) {
        if let Err(error) = self {
            fail(pattern, &error, reply);
        }
    }
}

/// What asynchronous code may answer with: a reply, or a `Result` with one.
pub trait AsyncAnswer: Send {
    /// Makes the reply.
    fn into_reply(self, pattern: &str) -> HandlerReply;
}

impl AsyncAnswer for HandlerReply {
    fn into_reply(self, _: &str) -> HandlerReply {
        self
    }
}

impl<E: Display + Send> AsyncAnswer for Result<HandlerReply, E> {
    fn into_reply(self, pattern: &str) -> HandlerReply {
        self.unwrap_or_else(|error| {
            let mut reply = HandlerReply::default();
            fail(pattern, &error, &mut reply);
            reply
        })
    }
}

/// Answers SERVFAIL, and logs why. The client does not get the error, which may hold private facts.
fn fail(pattern: &str, error: &dyn Display, reply: &mut HandlerReply) {
    static BUDGET: LogBudget = LogBudget::new();
    BUDGET.spend(|left_out| {
        tracing::error!(route = %pattern, %error, left_out, "the handler failed");
    });
    reply.servfail("the code that answers for this name failed");
}
