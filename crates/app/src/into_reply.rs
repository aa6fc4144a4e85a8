//! What handlers return.

use crate::from_query::Context;
use std::any::Any;
use std::fmt::{self, Debug, Display};
use zonda_engine::code::{Ending, Record, Reply};
use zonda_server::LogBudget;
use zonda_wire::Rcode;

/// What a handler may return.
///
/// | value | reply |
/// |---|---|
/// | `()` | what the handler has put into its `&mut Reply`; left as it is, the zones answer |
/// | a record, such as [`A`](crate::A) or [`Txt`](crate::Txt) | an answer of this record |
/// | a `Vec` or an array of records | an answer of these records; NODATA without any |
/// | [`Rcode`] | a reply with this response code, such as `Rcode::NXDOMAIN` |
/// | [`Reply`] | this reply |
/// | `Option` of one of these | the value's; with `None` the reply is left as it is |
/// | `Result` of one of these | the value's; an error is SERVFAIL and a line in the log |
///
/// [`App::on_error`](crate::App::on_error) adds error handlers, which answer instead. A
/// program implements the trait for types of its own, records among them.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "expected `()`, a record, or another value that makes a reply",
    note = "a handler returns `()`, a record, a `Vec` of records, `zonda::Rcode`, `zonda::Reply`, \
            or an `Option` or a `Result` of these; implement `zonda::IntoReply` for other types"
)]
pub trait IntoReply {
    /// Puts the value into a reply.
    ///
    /// # Errors
    /// Why the handler has failed: the query is answered SERVFAIL, and the log has the reason,
    /// unless an error handler ([`App::on_error`](crate::App::on_error)) answers it.
    fn into_reply(self, reply: &mut Reply) -> Result<(), Failure>;
}

/// Why a handler has failed, for the log and for [`App::on_error`](crate::App::on_error). Clients
/// are not told, as it may hold private facts.
pub struct Failure {
    /// Text of the error, for the log.
    reason: String,
    /// The error that the handler has returned.
    error: Box<dyn Any>,
}

impl Failure {
    /// Makes a failure of an error, or of the text of its reason.
    pub fn new(error: impl Display + 'static) -> Self {
        let reason = error.to_string();
        let error: Box<dyn Any> = Box::new(error);
        error.downcast().map_or_else(|error| Self { reason, error }, |failure| *failure)
    }

    /// Returns the error that the handler has returned, if it has this type: not one in a `Box` or
    /// another error, which has its own type.
    #[must_use]
    pub fn downcast_ref<E: 'static>(&self) -> Option<&E> {
        self.error.downcast_ref()
    }
}

impl Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Failure").field(&self.reason).finish()
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Failure {}

impl IntoReply for () {
    fn into_reply(self, _: &mut Reply) -> Result<(), Failure> {
        Ok(())
    }
}

impl IntoReply for Reply {
    fn into_reply(self, reply: &mut Reply) -> Result<(), Failure> {
        let former = std::mem::replace(reply, self);
        let is_noted = |key: &str| reply.tags().any(|(known, _)| known == key);
        // Tags of the middleware in front of the handler.
        let kept: Vec<_> = former.tags().filter(|(key, _)| !is_noted(key)).collect();
        for (key, value) in kept {
            reply.tag(key.to_owned(), value);
        }
        Ok(())
    }
}

impl IntoReply for Rcode {
    fn into_reply(self, reply: &mut Reply) -> Result<(), Failure> {
        if matches!(self, Self::REFUSED | Self::SERVFAIL) {
            reply.authoritative(false);
        }
        match self {
            Self::NXDOMAIN => reply.nxdomain(),
            rcode => reply.reply(rcode),
        }
        Ok(())
    }
}

impl<R: Record> IntoReply for Vec<R> {
    fn into_reply(self, reply: &mut Reply) -> Result<(), Failure> {
        reply.answers(self);
        Ok(())
    }
}

impl<R: Record, const N: usize> IntoReply for [R; N] {
    fn into_reply(self, reply: &mut Reply) -> Result<(), Failure> {
        reply.answers(self);
        Ok(())
    }
}

impl<T: IntoReply> IntoReply for Option<T> {
    fn into_reply(self, reply: &mut Reply) -> Result<(), Failure> {
        self.map_or(Ok(()), |value| value.into_reply(reply))
    }
}

impl<T: IntoReply, E: Display + 'static> IntoReply for Result<T, E> {
    fn into_reply(self, reply: &mut Reply) -> Result<(), Failure> {
        self.map_err(Failure::new)?.into_reply(reply)
    }
}

/// A function that answers queries whose handlers have failed; it leaves those that it does not
/// answer.
pub(crate) type ErrorHandler =
    dyn Fn(&Failure, &Context<'_>, &mut Reply) -> Result<(), Failure> + Send + Sync;

/// Makes an error handler of a function for errors of type `E`; all are a [`Failure`].
pub(crate) fn error_handler<E: 'static, R: IntoReply>(
    function: impl Fn(&E, &Context<'_>, &mut Reply) -> R + Send + Sync + 'static,
) -> Box<ErrorHandler> {
    Box::new(move |failure, context, reply| {
        let error = failure.downcast_ref().or_else(|| (failure as &dyn Any).downcast_ref());
        error.map_or(Ok(()), |error| function(error, context, reply).into_reply(reply))
    })
}

/// Puts what the handler of a pattern has returned into its reply. A failure is answered by the
/// first error handler of the app that does so; if none does, it is SERVFAIL and a line in the log.
pub(crate) fn conclude(
    returned: impl IntoReply,
    pattern: &str,
    context: &Context<'_>,
    reply: &mut Reply,
) {
    static BUDGET: LogBudget = LogBudget::new();
    static OF_ERROR_HANDLERS: LogBudget = LogBudget::new();
    let Err(failure) = returned.into_reply(reply) else { return };
    for handler in context.error_handlers() {
        reply.clear(); // what was added before is not this one's
        match handler(&failure, context, reply) {
            Ok(()) if reply.ending != Ending::PassOn => return,
            Ok(()) => {}
            Err(error) => OF_ERROR_HANDLERS.spend(|left_out| {
                tracing::error!(route = %pattern, %error, left_out, "an error handler failed");
            }),
        }
    }
    BUDGET.spend(|left_out| {
        let error = &failure;
        tracing::error!(route = %pattern, %error, left_out, "the handler failed");
    });
    reply.clear(); // what error handlers have left of it
    reply.servfail("the code that answers for this name failed");
}
