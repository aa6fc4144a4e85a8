//! What is told of every query: the query log.

use crate::code::Tags;
use crate::message::{Now, Peer};
use crate::reason::Reason;
use crate::reuse::Reuse;
use std::net::IpAddr;
use std::time::Duration;
use zonda_wire::query::flag;
use zonda_wire::{Query, Rcode};

/// Is told of every message and what became of it: the query log.
///
/// Called on the answer path: must neither block nor take long.
pub trait Observer: Send {
    /// A message was answered or dropped.
    fn observe(&mut self, event: &Event<'_>);

    /// Whether it takes note of queries at the moment: it is asked once a batch, and queries of a
    /// batch are told to no observer unless one does.
    fn is_active(&self) -> bool {
        true
    }
}

impl<F: FnMut(&Event<'_>) + Send> Observer for F {
    fn observe(&mut self, event: &Event<'_>) {
        self(event);
    }
}

/// A query and its outcome, as an [`Observer`] gets them.
pub struct Event<'e> {
    /// The time of the reply.
    pub now: Now,
    /// The client that asked.
    pub peer: &'e Peer,
    /// The query, as far as it could be read.
    pub query: &'e Query,
    /// The name asked for in lower case, wire form.
    pub name: &'e [u8],
    /// The response code; `None` for silence.
    pub rcode: Option<Rcode>,
    /// The reason that counters and logs give for the reply.
    pub reason: Reason,
    /// Whether the worker may reuse the reply; `None` for silence.
    pub reuse: Option<Reuse>,
    /// The first bits of the client's network that the reply depends on: the scope by which it
    /// answers a client subnet (rfc7871#7.2.1).
    pub scope: u8,
    /// The client's network that sources go by: an address of it, and the bits that count.
    pub network: (IpAddr, u8),
    /// The answer in the reply; none with silence.
    pub answer: SentAnswer,
    /// Octets of the reply.
    pub reply_bytes: usize,
    /// How long the query has waited for upstreams and code; no clock is read for what is answered
    /// at once.
    pub waited: Duration,
    /// Tags that the user's code has added to the query.
    pub tags: &'e Tags,
}

/// The answer in a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentAnswer {
    /// Records in the answer section.
    pub records: u16,
    /// Whether the reply is truncated, so that the answer is missing in it, or a part.
    pub is_truncated: bool,
}

impl SentAnswer {
    /// The answer in a message, by its header (rfc1035#4.1.1).
    pub(crate) fn of(message: &[u8]) -> Self {
        let word = |at: usize| message.get(at..).and_then(<[u8]>::first_chunk);
        let word = |at| word(at).map_or(0, |octets| u16::from_be_bytes(*octets));
        Self { records: word(6), is_truncated: word(2) & flag::TC != 0 }
    }
}
