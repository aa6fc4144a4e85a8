//! The answer that a query has below the user's code, as the code is shown it.
//!
//! Code may leave it unchanged. Then its records are sent, and only what depends on the client's
//! transport and on the moment is made for the client: header, OPT record, cookie, rate limit. The
//! answer was made as over TCP: one that does not fit into the client's message, or that would be
//! another one over UDP, is made again.

use crate::answer::Answer;
use crate::answer_facts::AnswerBelow;
use crate::ask::Ask;
use crate::message::Transport;
use crate::reuse::NotReused;
use crate::verdict::{Flow, reply};
use crate::worker::Worker;
use zonda_wire::Type;
use zonda_wire::query::flag;

/// Answers a query with what the code was shown, if that is also the answer to this client.
pub fn answer(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    below: &AnswerBelow,
) -> Option<Flow> {
    let facts = below.facts()?;
    // The answer to ANY depends on the transport (rfc8482#4.1), and a cut one on the room.
    let is_for_tcp = facts.flags & flag::TC != 0
        || ask.query.qtype == Type::ANY && ask.peer.transport == Transport::Udp;
    let is_of_question = facts.body.start == answer.reply.len(); // or pointers would lead astray
    if is_for_tcp || !is_of_question || facts.generation != ask.snapshot.generation {
        return None;
    }
    let body = below.message.get(facts.body.clone())?;
    answer.reply.append_body([body], facts.counts).ok()?;
    answer.flags |= facts.flags;
    answer.answering_label = facts.answering_label;
    answer.note_code(facts.bits_looked_at);
    answer.ede = facts.ede;
    answer.set_text(&mut worker.body, &facts.text);
    Some(reply(facts.rcode, facts.reason, NotReused::Below))
}
