//! Replies that leave, and the counters of what became of messages.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::counters::{Counters, OPCODES};
use crate::labels::LabelTable;
use crate::message::Peer;
use crate::reason::Reason;
use crate::reuse::{NotReused, Reuse};
use zonda_rewrite::{Change, Revert};
use zonda_wire::query::flag;
use zonda_wire::{Opcode, Rcode};

/// A reply as it leaves.
#[derive(Clone, Copy)]
pub struct SentReply {
    /// The octets of the reply.
    pub bytes: usize,
    /// The place of the OPT record, which follows the last record of the answer.
    pub body_end: usize,
    /// The records in the three sections, without OPT.
    pub counts: [u16; 3],
    /// The response code of twelve bits.
    pub rcode: Rcode,
    /// The flags of the header besides those that every reply has.
    pub flags: u16,
    /// Whether the reply says that a forwarded name has no record of the type.
    pub is_forwarded_nodata: bool,
    /// Whether the worker may reuse the reply.
    pub reuse: Reuse,
}

impl SentReply {
    /// The messages of a transfer, which are written later.
    pub const TRANSFER: Self = Self {
        bytes: 0,
        body_end: 0,
        counts: [0; 3],
        rcode: Rcode::NOERROR,
        flags: flag::AA,
        is_forwarded_nodata: false,
        reuse: Reuse::No(NotReused::Gate),
    };

    /// Turns the reply, which lies in `buffer`, into one of at most `limit` octets to the question
    /// that the client has asked.
    #[cold]
    pub fn revert(
        &mut self,
        change: &Change,
        buffer: &mut [u8],
        limit: usize,
        memory: &mut Revert,
    ) {
        self.bytes = change.revert(buffer, self.bytes, limit, memory);
        let Some(&[high, low]) = buffer.get(2..4).and_then(|word| word.first_chunk()) else {
            return;
        };
        self.flags = u16::from_be_bytes([high, low]) & Self::FLAGS;
        self.rcode = Rcode(self.rcode.0 & !0xf | u16::from(low & 0xf));
    }

    /// Flags that are not the query's.
    const FLAGS: u16 = flag::AA | flag::TC | flag::RA | flag::AD;
}

/// Whether upstreams say that a name exists, but nothing of the type.
#[inline]
pub fn is_forwarded_nodata(answer: &Answer<'_>, rcode: Rcode, reason: Reason) -> bool {
    answer.reply.counts()[0] == 0 // first: most replies have an answer
        && rcode == Rcode::NOERROR
        && matches!(reason, Reason::Cached | Reason::Forwarded | Reason::Stale)
        && answer.flags & flag::TC == 0 // or there is too much
}

/// Counts what became of a message.
#[inline]
pub fn count(counters: &Counters, ask: &Ask<'_>, sent: Option<SentReply>, reason: Reason) {
    let Ask { query, peer, .. } = ask;
    counters.reasons[reason as usize].add(1);
    if peer.address.is_ipv6() || query.opcode() != Opcode::QUERY {
        count_other(counters, peer, query.opcode(), reason);
    }
    if let Some(sent) = sent {
        counters.reply(peer.transport, query.qtype, sent.rcode);
        if sent.flags & flag::TC != 0 {
            counters.truncated.add(1);
        }
        if sent.is_forwarded_nodata {
            counters.forwarded_nodata.add(1);
        }
    }
    if let Some(zone) = ask.zone
        && let Some(counter) = counters.zone(zone.number)
    {
        counter.add(1);
    }
    if let Some(labels) = &ask.snapshot.settings.labels
        && reason != Reason::NotAQuery
    {
        count_by_labels(counters, labels, ask, sent.map(|sent| sent.rcode));
    }
}

/// Counts a message by labels, as its client has asked it.
#[cold] // most servers do not count so
fn count_by_labels(counters: &Counters, labels: &LabelTable, ask: &Ask<'_>, rcode: Option<Rcode>) {
    let change = ask.progress.change().filter(|change| change.has_question());
    let asked = match change {
        Some(change) => (change.name(), change.qtype()),
        None => (ask.name.as_wire(), ask.query.qtype),
    };
    counters.label(labels, (ask.peer, ask.query), asked, rcode);
}

/// Counts what is not a query over IPv4.
#[inline(never)] // it would only make the path of those longer
fn count_other(counters: &Counters, peer: &Peer, opcode: Opcode, reason: Reason) {
    if matches!(reason, Reason::NotAQuery | Reason::AccessDropped) {
        return;
    }
    if peer.address.is_ipv6() {
        counters.from_v6.add(1);
    }
    if opcode != Opcode::QUERY {
        counters.opcodes[usize::from(opcode.0) % OPCODES].add(1);
    }
}
