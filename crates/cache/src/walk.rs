//! All answers one after another, as an administrator or a file wants to see them.

use crate::Answer;
use crate::entry::{HEADER_WORDS, Header};
use crate::key::EVERY_TYPE;
use crate::shard::Shard;
use crate::words::copy_octets;
use std::sync::atomic::AtomicU64;
use zonda_wire::{Class, Type};

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
    /// The answer, TTLs as stored.
    pub answer: Answer<'a>,
    /// When it was stored.
    pub stored_at: u32,
    /// From when on it is stale.
    pub expires_at: u32,
    /// From when on it is worthless.
    pub stale_until: u32,
    /// How often it was found lately, 0–3.
    pub hits: u64,
}

/// Shows every entry of a shard, the oldest of each log first; forgets those for which `keep` says
/// `false`. Writers of the shard wait meanwhile, readers do not.
pub fn retain(shard: &Shard, mut keep: impl FnMut(&Entry<'_>) -> bool) {
    let (mut name, mut body) = (Vec::new(), Vec::new());
    shard
        .write()
        .retain(|header, words, hits| keep(&entry(header, words, hits, &mut name, &mut body)));
}

/// An entry with its octets copied out of their words.
fn entry<'a>(
    header: &Header,
    words: &[AtomicU64],
    hits: u64,
    name: &'a mut Vec<u8>,
    body: &'a mut Vec<u8>,
) -> Entry<'a> {
    name.resize(usize::from(header.name_len), 0);
    body.resize(usize::from(header.body_len), 0);
    copy_octets(&words[HEADER_WORDS..], name);
    copy_octets(&words[header.body_start()..], body);
    let Header { kind, flags, ede, counts, .. } = *header;
    Entry {
        name,
        qtype: (header.qtype != EVERY_TYPE).then_some(header.qtype),
        qclass: header.qclass,
        source: header.source,
        dnssec_ok: header.dnssec_ok,
        checking_disabled: header.checking_disabled,
        answer: Answer { kind, flags, ede, counts, body },
        stored_at: header.stored_at,
        expires_at: header.expires_at,
        stale_until: header.stale_until,
        hits,
    }
}
