//! What handlers return.

use std::fmt::{self, Display};
use zonda_engine::code::{Record, Reply};
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
/// A program implements the trait for types of its own, records among them.
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
    /// Why the handler has failed: the query is answered SERVFAIL, and the log has the reason.
    fn into_reply(self, reply: &mut Reply) -> Result<(), Failure>;
}

/// Why a handler has failed, for the log. Clients are not told, as it may hold private facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// Makes a failure of its reason.
    pub fn new(reason: impl Display) -> Self {
        Self(reason.to_string())
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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
        reply.reply(self);
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

impl<T: IntoReply, E: Display> IntoReply for Result<T, E> {
    fn into_reply(self, reply: &mut Reply) -> Result<(), Failure> {
        self.map_err(Failure::new)?.into_reply(reply)
    }
}

/// Puts what the handler of a pattern has returned into its reply. A failure is SERVFAIL and a line
/// in the log.
pub(crate) fn conclude(returned: impl IntoReply, pattern: &str, reply: &mut Reply) {
    static BUDGET: LogBudget = LogBudget::new();
    if let Err(error) = returned.into_reply(reply) {
        BUDGET.spend(|left_out| {
            tracing::error!(route = %pattern, %error, left_out, "the handler failed");
        });
        reply.servfail("the code that answers for this name failed");
    }
}
