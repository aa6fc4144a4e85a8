//! The answer that a query has below the user's code, as the code is shown it.
//!
//! Code may leave it unchanged. Then its records are sent, and only what depends on the client's
//! transport and on the moment is made for the client: header, OPT record, cookie, rate limit. The
//! answer was made as over TCP: one that does not fit into the client's message, or that would be
//! another one over UDP, is made again.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::message::Transport;
use crate::reason::Reason;
use crate::reuse::NotReused;
use crate::verdict::{Flow, reply};
use crate::worker::Worker;
use std::ops::Range;
use zonda_wire::query::flag;
use zonda_wire::{Ede, Rcode, Type};

/// The answer to a query below the user's code: for this query alone, as access lists may have
/// another one for another client.
#[derive(Clone, Debug)]
pub struct AnswerBelow {
    /// The message that the code is shown.
    pub message: Vec<u8>,
    /// The facts that a reply with the same records needs; none if no engine has made the message,
    /// which then cannot be sent to the client.
    facts: Option<AnswerFacts>,
}

/// What a reply says and is counted by, besides its octets.
#[derive(Clone, Debug)]
pub struct AnswerFacts {
    /// The generation of the snapshot that the answer was made from.
    pub generation: u64,
    /// The octets of the message behind the question, without the OPT record.
    pub body: Range<usize>,
    /// The records in the answer, authority and additional sections of the body.
    pub counts: [u16; 3],
    /// Flags of the header besides those that every reply has.
    pub flags: u16,
    /// The response code of twelve bits.
    pub rcode: Rcode,
    /// What the query is counted as.
    pub reason: Reason,
    /// The extended error, where it is not the one that goes with the reason.
    pub ede: Option<Ede>,
    /// The text of the extended error; empty for the one that goes with the reason.
    pub text: Box<[u8]>,
    /// The label of the name at which the owner of what answers begins.
    pub answering_label: u8,
}

impl AnswerBelow {
    /// The answer whose message an engine has made, and the facts about it that the engine tells.
    #[must_use]
    pub fn new(message: Vec<u8>, facts: Option<AnswerFacts>) -> Self {
        Self { message, facts }
    }
}

/// Answers a query with what the code was shown, if that is also the answer to this client.
pub fn answer(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    below: &AnswerBelow,
) -> Option<Flow> {
    let facts = below.facts.as_ref()?;
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
    answer.ede = facts.ede;
    answer.set_text(&mut worker.body, &facts.text);
    Some(reply(facts.rcode, facts.reason, NotReused::Below))
}
