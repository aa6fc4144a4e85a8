//! All answers one after another, as an administrator or a file wants to see them.

use crate::body::{change_ttl, ttl_offsets, write_message};
use crate::entry::{HEADER_WORDS, Header};
use crate::index::LogName;
use crate::key::EVERY_TYPE;
use crate::ring::Position;
use crate::shard::Shard;
use crate::words::{WORD_BYTES, copy_octets};
use crate::{Answer, Key, Kind};
use std::sync::atomic::AtomicU64;
use zonda_wire::{Class, Type};

/// Words of a log that are looked through before writers have their turn: some thousand small
/// entries, which takes less than a millisecond.
const SLICE_WORDS: usize = 64 << 10;

/// An answer as it lies in the cache. Times are seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The name asked for, in wire form and lower case.
    pub name: &'a [u8],
    /// The type asked for; `None` when the answer holds for all types.
    pub qtype: Option<Type>,
    /// The class asked for.
    pub qclass: Class,
    /// Which forward zone the answer comes from.
    pub source: u32,
    /// The question had DO.
    pub dnssec_ok: bool,
    /// The question had CD.
    pub checking_disabled: bool,
    /// Whether the answer depends on more than the question.
    pub has_variant: bool,
    /// The answer, TTLs as stored.
    pub answer: Answer<'a>,
    /// Moment of the insertion, seconds.
    pub stored_at: u32,
    /// Moment from which the answer is stale, seconds.
    pub expires_at: u32,
    /// Moment from which the answer is worthless, seconds.
    pub stale_until: u32,
    /// TTL of the records while the answer is stale.
    pub stale_ttl_secs: u32,
    /// Hits of the answer lately, 0–3.
    pub hits: u64,
    /// Octets of the entry.
    pub bytes: usize,
}

impl Entry<'_> {
    /// Returns the answer as a message, with TTLs as they are at `now_secs`; a failure has no
    /// records.
    #[must_use]
    pub fn to_message(&self, now_secs: u32) -> Vec<u8> {
        let Answer { kind, flags, counts, body, .. } = self.answer;
        let body = if kind == Kind::Failure { &[] } else { body };
        let (mut message, mut offsets) = (Vec::new(), Vec::new());
        let question = (self.name, self.qtype.unwrap_or(EVERY_TYPE), self.qclass);
        let start = write_message(flags, question, counts, body, &mut message);
        if ttl_offsets(body, counts, &mut offsets).is_ok() {
            let age_secs = now_secs.saturating_sub(self.stored_at);
            let aged = |ttl: u32| match now_secs < self.expires_at {
                true => ttl.saturating_sub(age_secs),
                false => self.stale_ttl_secs,
            };
            offsets.iter().for_each(|&at| change_ttl(&mut message[start..], at, aged));
        }
        message
    }
}

/// A walk over the entries of a shard, a slice at a time, so that writers never wait for all of it.
///
/// Whatever stays is met, and met twice if it moves meanwhile: entries move to the head of the main
/// log, which comes last.
pub struct Walk<'s> {
    shard: &'s Shard,
    log: LogName,
    at: Position,
    /// The octets of the entry that is shown.
    name: Vec<u8>,
    body: Vec<u8>,
}

impl<'s> Walk<'s> {
    /// A walk at the beginning of a shard.
    pub fn new(shard: &'s Shard) -> Self {
        Self { shard, log: LogName::Small, at: Position(0), name: Vec::new(), body: Vec::new() }
    }

    /// Shows the entries of the next slice and forgets those for which `keep` says `false`; `false`
    /// at the end.
    pub fn retain_slice(&mut self, mut keep: impl FnMut(&Entry<'_>) -> bool) -> bool {
        let Self { shard, name, body, .. } = self;
        let stale_ttl_secs = shard.freshness().stale_ttl_secs;
        let keep = |header: &Header, words: &[AtomicU64], hits| {
            keep(&entry(header, words, (hits, stale_ttl_secs), name, body))
        };
        let next = shard.write().retain(self.log, self.at, SLICE_WORDS, keep);
        let is_last = next.is_none() && self.log == LogName::Main;
        (self.log, self.at) = match next {
            Some(at) => (self.log, at),
            None => (LogName::Main, Position(0)),
        };
        !is_last
    }
}

/// Shows what is kept for the name of a question, whatever the type.
pub fn for_each_type(shard: &Shard, key: &Key<'_>, mut visit: impl FnMut(&Entry<'_>)) {
    let (mut name, mut body) = (Vec::new(), Vec::new());
    shard.write().for_each_at(key.place(), |header, words, hits| {
        let stale_ttl_secs = shard.freshness().stale_ttl_secs;
        let entry = entry(header, words, (hits, stale_ttl_secs), &mut name, &mut body);
        if header.asks_as(&Key { qtype: header.qtype, ..*key }) && entry.name == key.name {
            visit(&entry);
        }
    });
}

/// Returns an entry with its octets copied out of their words.
fn entry<'a>(
    header: &Header,
    words: &[AtomicU64],
    (hits, stale_ttl_secs): (u64, u32),
    name: &'a mut Vec<u8>,
    body: &'a mut Vec<u8>,
) -> Entry<'a> {
    name.resize(usize::from(header.name_len), 0);
    body.resize(usize::from(header.body_len), 0);
    copy_octets(&words[HEADER_WORDS..], name);
    copy_octets(&words[header.body_start()..], body);
    let Header { kind, flags, onward, ede, counts, .. } = *header;
    Entry {
        name,
        qtype: (header.qtype != EVERY_TYPE).then_some(header.qtype),
        qclass: header.qclass,
        source: header.source,
        dnssec_ok: header.dnssec_ok,
        checking_disabled: header.checking_disabled,
        has_variant: header.variant_words > 0,
        answer: Answer { kind, flags, onward, ede, counts, body },
        stored_at: header.stored_at,
        expires_at: header.expires_at,
        stale_until: header.stale_until,
        stale_ttl_secs,
        hits,
        bytes: header.words() * WORD_BYTES,
    }
}
