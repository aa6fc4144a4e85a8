//! Answers that a worker gave before, ready to be copied.
//!
//! A table of fixed size, made at start and filled as questions come: the second time that a
//! question is met since its slot was last looked at, its answer is kept. What is met once only, as
//! under a flood of random names, costs one word of the table and evicts nothing.
//!
//! ```text
//! tags     u32 per slot: 19 bits of the hash of the question last met there
//!          | 1 bit: its answer is kept | 12 bits: the slot's place, 0 before it has one
//! entries  per place: what the answer is besides its octets
//! octets   512 per place: name asked for in lower case | body
//! ```
//!
//! A slot gets the next free place when it first keeps an answer. So the memory that is touched
//! grows with the answers that are kept, not with where their hashes fall.
//!
//! # Invariants
//! - An entry is used while no name has moved between zones and no rule has changed since it was
//!   made ([`Meta::generation`]), and its zone is what it was made from ([`Meta::version`]): a
//!   change in one zone costs no other zone its entries. Entries of a cluster have the version of
//!   their service, so that a change of one costs other services few entries. A hosts file, and a
//!   zone with names that are excepted from a forwarded one, count as a rule.
//! - A body holds neither id, flags, question nor OPT; its pointers lead into the question, whose
//!   length is part of the key, or into itself.

use crate::reason::Reason;
use crate::zones::ZoneMatch;
use zonda_wire::{Query, Rcode, Type};
use zonda_zone::LookupName;

/// Slots. The tags of all fill half a first-level cache.
const SLOTS: usize = 4096;
/// Octets of a place, for the name and the body. Larger answers are made anew each time.
const PLACE_BYTES: usize = 512;
/// The bits of a tag that are the slot's place.
const PLACE: u32 = SLOTS as u32 - 1;
/// The bit of a tag that says that the answer is kept.
const KEPT: u32 = SLOTS as u32;

/// The table.
pub struct HotTable {
    tags: Box<[u32]>,
    /// The entries of the places in use, never more than [`SLOTS`]; the first is no answer's.
    entries: Vec<Entry>,
    octets: Box<[u8]>,
    /// Raised when an entry changes, so that a place found before is known to be stale.
    changes: u64,
}

/// A kept answer.
#[derive(Clone, Copy)]
struct Entry {
    key: Key,
    name_len: u8,
    body_len: u16,
    meta: Meta,
}

/// The facts about a hot answer besides its octets.
#[derive(Clone, Copy)]
pub struct Meta {
    /// The generation of the snapshot that the answer was made from.
    pub generation: u64,
    /// The version of what answered in that snapshot, as [`ZoneEntry::version_of`] tells it.
    ///
    /// [`ZoneEntry::version_of`]: crate::zones::ZoneEntry::version_of
    pub version: u64,
    /// The zone that the answer is from.
    pub zone: ZoneMatch,
    /// The label of the name at which the owner of what answered begins.
    pub answering_label: u8,
    /// Records in the answer, authority and additional sections.
    pub counts: [u16; 3],
    /// Flags of the header.
    pub flags: u16,
    /// The response code.
    pub rcode: Rcode,
    /// The reason that counters and logs give for the answer.
    pub reason: Reason,
    /// How many records at its beginning rotate, as [`Reuse::Hot`](crate::Reuse::Hot) has it.
    pub rotating: u16,
}

/// An answer that may be kept.
pub struct HotReply<'a> {
    /// The name asked for.
    pub name: &'a LookupName,
    /// The octets behind the question, without OPT.
    pub body: &'a [u8],
    /// Facts about the answer besides its name and octets.
    pub meta: Meta,
}

/// The parts of a query, besides the octets of the name, that an answer depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key {
    hash: u64,
    qtype: Type,
    dnssec_ok: bool,
}

impl Key {
    /// The key of a question of class IN.
    #[inline]
    pub fn new(query: &Query, name: &LookupName) -> Self {
        let (qtype, dnssec_ok) = (query.qtype, query.dnssec_ok());
        let other = u64::from(qtype.0) << 1 | u64::from(dnssec_ok);
        let other = other.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { hash: name.hash(0) ^ other, qtype, dnssec_ok }
    }

    #[inline]
    fn slot(self) -> usize {
        self.hash as usize & (SLOTS - 1)
    }

    /// The tag of a slot that keeps this key's answer, without its place.
    #[inline]
    fn tag(self) -> u32 {
        ((self.hash >> 32) as u32 & !PLACE) | KEPT
    }
}

/// A kept answer that was found, valid as long as no other is kept.
#[derive(Clone, Copy)]
pub struct Hit {
    place: u16,
    changes: u64,
    /// The zone that the answer is from.
    pub zone: ZoneMatch,
}

impl Default for HotTable {
    fn default() -> Self {
        let meta = Meta {
            generation: 0,
            version: 0,
            zone: ZoneMatch { index: 0, labels: 0 },
            answering_label: 0,
            counts: [0; 3],
            flags: 0,
            rcode: Rcode::NOERROR,
            reason: Reason::Answered,
            rotating: 0,
        };
        let key = Key { hash: 0, qtype: Type(0), dnssec_ok: false };
        let nothing = Entry { key, name_len: 0, body_len: 0, meta };
        let mut entries = Vec::with_capacity(SLOTS); // the system hands out what is touched
        entries.push(nothing);
        Self {
            tags: vec![0; SLOTS].into(),
            entries,
            octets: vec![0; SLOTS * PLACE_BYTES].into(),
            changes: 0,
        }
    }
}

impl HotTable {
    /// Returns the hot entry of a question. Whether its zone has changed since is for the caller to
    /// see: it has the zone's entry at hand after the pass that looks up all messages of a batch.
    #[inline]
    pub fn lookup(&self, key: Key, name: &LookupName, generation: u64) -> Option<Hit> {
        let tag = self.tags[key.slot()];
        if (tag ^ key.tag()) & !PLACE != 0 {
            return None;
        }
        let place = (tag & PLACE) as usize;
        let entry = &self.entries[place];
        let valid = entry.key == key && entry.meta.generation == generation;
        let kept_name = &self.octets[place * PLACE_BYTES..][..usize::from(entry.name_len)];
        (valid && kept_name == name.as_wire()).then_some(Hit {
            place: place as u16, // below SLOTS
            changes: self.changes,
            zone: entry.meta.zone,
        })
    }

    /// Returns the answer of a hit, if no other answer was inserted since: the facts about it, and
    /// its body.
    #[inline]
    pub fn get(&self, hit: &Hit) -> Option<(&Meta, &[u8])> {
        if hit.changes != self.changes {
            return None;
        }
        let place = usize::from(hit.place);
        let entry = &self.entries[place];
        let body = &self.octets[place * PLACE_BYTES + usize::from(entry.name_len)..];
        Some((&entry.meta, &body[..usize::from(entry.body_len)]))
    }

    /// Whether a reply to a question is to be inserted: the question was met before. Takes note of
    /// it otherwise.
    #[inline]
    pub fn wants(&mut self, key: Key) -> bool {
        let tag = &mut self.tags[key.slot()];
        let is_known = (*tag | KEPT) & !PLACE == key.tag();
        if !is_known {
            *tag = key.tag() & !KEPT | *tag & PLACE;
        }
        is_known
    }

    /// Inserts the reply to a question, in place of the entry that its slot has, unless the reply
    /// is
    /// too large.
    #[inline(never)]
    pub fn insert(&mut self, key: Key, answer: HotReply<'_>) {
        let (name, body) = (answer.name.as_wire(), answer.body);
        if name.len() + body.len() > PLACE_BYTES {
            return;
        }
        let entry = Entry {
            key,
            name_len: name.len() as u8,  // a name has at most 255 octets
            body_len: body.len() as u16, // at most PLACE_BYTES
            meta: answer.meta,
        };
        let tag = &mut self.tags[key.slot()];
        let place = match (*tag & PLACE) as usize {
            0 if self.entries.len() == SLOTS => return, // of 4,096 slots, one has no place
            0 => {
                self.entries.push(entry); // within the capacity
                self.entries.len() - 1
            }
            place => {
                self.entries[place] = entry;
                place
            }
        };
        let octets = &mut self.octets[place * PLACE_BYTES..][..PLACE_BYTES];
        octets[..name.len()].copy_from_slice(name);
        octets[name.len()..name.len() + body.len()].copy_from_slice(body);
        *tag = key.tag() | place as u32; // below SLOTS
        self.changes += 1;
    }
}
