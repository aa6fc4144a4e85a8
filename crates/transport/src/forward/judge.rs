//! What a message from an upstream calls for.

use zonda_upstream::{Repeat, Sent, Verdict, check};
use zonda_wire::query::HEADER_BYTES;

use super::ask::Question;

/// What to do with a message.
pub enum Step {
    /// Nothing: it is not for us.
    Ignore,
    /// It is the answer.
    Accept,
    /// Ask again over TCP.
    OverTcp,
    /// Ask again, in another form.
    Otherwise { edns: bool, mixed_case: bool },
    /// Ask somebody else.
    Elsewhere,
}

/// What to do with a message that answers `query`, or says so.
pub fn judge(question: &Question, query: &[u8], message: &[u8], is_stream: bool) -> Step {
    let question_end = HEADER_BYTES + question.question_bytes();
    let asked = &query[HEADER_BYTES..question_end];
    let sent = Sent {
        id: u16::from_be_bytes([query[0], query[1]]),
        question: asked,
        mixed_case: asked[..question.name.len()] != *question.name,
        edns: query.len() > question_end,
        cookie: None,
        stream: is_stream,
    };
    match check(&sent, message) {
        Verdict::Accept(_) => Step::Accept,
        Verdict::Ignore(_) => Step::Ignore,
        Verdict::Repeat(Repeat::OverTcp) => Step::OverTcp,
        Verdict::Repeat(Repeat::WithoutEdns) => Step::Otherwise { edns: false, mixed_case: true },
        Verdict::Repeat(Repeat::WithoutMixedCase) => {
            Step::Otherwise { edns: true, mixed_case: false }
        }
        // Cookies are not sent, so that nobody can ask for another.
        Verdict::Repeat(Repeat::WithCookie(_)) | Verdict::Failed(_) => Step::Elsewhere,
    }
}
