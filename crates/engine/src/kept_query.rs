//! Queries over which an alias is about to be written.
//!
//! A reply lies over its query. Where the alias leads to a name that code has, the query is needed
//! once more: code is asked the same for that name, and may be asked elsewhere.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::worker::Worker;
use zonda_wire::Type;
use zonda_wire::query::HEADER_BYTES;

/// Copies the query, of which nothing was overwritten yet, into the worker where there is code: the
/// octets are those of the last query that was kept.
#[inline]
pub fn keep(ask: &Ask<'_>, answer: &Answer<'_>, worker: &mut Worker) {
    if ask.snapshot.handlers.is_some() {
        copy(ask, answer, worker);
    }
}

/// Copies the query into the worker; none if something was written over it.
#[cold]
fn copy(ask: &Ask<'_>, answer: &Answer<'_>, worker: &mut Worker) {
    worker.kept_query.clear();
    if !answer.reply.is_empty() {
        return;
    }
    let buffer = answer.reply.buffer();
    let message = ask.query.message_bytes(buffer).and_then(|len| buffer.get(..len));
    worker.kept_query.extend_from_slice(message.unwrap_or_default());
}

/// Whether the records of a body may end with an alias: they do not where the first one is of the
/// type asked for and has the question's name, as in nearly all answers.
#[inline]
pub fn may_end_with_alias(qtype: Type, body: &[u8]) -> bool {
    let [high, low] = qtype.0.to_be_bytes();
    !body.starts_with(&[0xc0, HEADER_BYTES as u8, high, low])
}
