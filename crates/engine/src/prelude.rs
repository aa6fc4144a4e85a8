//! The beginning of a reply whose rest code answers later.

use crate::reason::Reason;
use zonda_wire::{Ede, Query};

/// The beginning of a reply: aliases that lead to a name that code has, for whose answer the query
/// waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prelude {
    /// The query of the client, as far as its reply depends on it: octets that lead to the reply's
    /// header, question and OPT record.
    pub(crate) query: Box<[u8]>,
    /// The octets behind the question of the reply so far.
    pub(crate) body: Box<[u8]>,
    /// The records in the answer, authority and additional sections of the body.
    pub(crate) counts: [u16; 3],
    /// The facts about the reply so far.
    pub(crate) facts: PreludeFacts,
    /// The text of the extended error so far; empty for the one that goes with the reason.
    pub(crate) text: Box<[u8]>,
}

/// Facts about the beginning of a reply, besides its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreludeFacts {
    /// Flags of the header besides those that every reply has.
    pub flags: u16,
    /// The label of the name asked for at which the owner of what answers it begins.
    pub answering_label: u8,
    /// The reason of the answer so far.
    pub reason: Reason,
    /// The extended error, where it is not the one that goes with the reason.
    pub ede: Option<Ede>,
}

impl Prelude {
    /// The octets of memory that it takes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.query.len() + self.body.len() + self.text.len()
    }

    /// Copies the query for the target, which lies in the first `len` octets of a buffer, into
    /// `target`, and brings back the one of the client in its place; returns its length. In a
    /// buffer without room, the other one stays.
    pub(crate) fn bring_back(&self, buffer: &mut [u8], len: usize, target: &mut Vec<u8>) -> usize {
        target.clear();
        target.extend_from_slice(&buffer[..len]);
        match buffer.get_mut(..self.query.len()) {
            Some(place) => {
                place.copy_from_slice(&self.query);
                self.query.len()
            }
            None => len,
        }
    }

    /// Puts the query of the client in place of the one for the target; returns where its question
    /// ends.
    pub fn restore_query(&self, message: &mut Vec<u8>) -> usize {
        message.clear();
        message.extend_from_slice(&self.query);
        Query::parse(&self.query).unwrap_or_else(|(query, _)| query).question_end()
    }
}
