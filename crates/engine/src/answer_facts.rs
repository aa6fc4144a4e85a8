//! The answer that a query has below the user's code, and the facts about it.

use crate::reason::Reason;
use std::ops::Range;
use zonda_wire::{Ede, Rcode};

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

/// Facts about a reply besides its octets, by which it is counted and observed.
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
    /// The reason that the query is counted by.
    pub reason: Reason,
    /// The extended error, where it is not the one that goes with the reason.
    pub ede: Option<Ede>,
    /// The text of the extended error; empty for the one that goes with the reason.
    pub text: Box<[u8]>,
    /// The label of the name at which the owner of what answers begins.
    pub answering_label: u8,
    /// The number of first bits of the client's network that the answer was made by.
    pub bits_looked_at: u8,
}

impl AnswerBelow {
    /// The answer whose message an engine has made, and the facts about it that the engine tells.
    #[must_use]
    pub fn new(message: Vec<u8>, facts: Option<AnswerFacts>) -> Self {
        Self { message, facts }
    }

    /// The facts that a reply with the same records needs, if an engine has made the message.
    pub(crate) fn facts(&self) -> Option<&AnswerFacts> {
        self.facts.as_ref()
    }
}
