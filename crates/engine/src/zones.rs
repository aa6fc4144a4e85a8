//! The zones of a server, and which of them holds a name.
//!
//! # Invariants
//! - A table never changes; a change makes a new one that shares what stayed the same: one zone
//!   replaced copies the list of chunks and one chunk, whatever the number of zones.

use crate::access::{Access, AccessList};
use crate::reason::Reason;
use std::net::IpAddr;
use std::sync::Arc;
use zonda_cache::Cache;
use zonda_wire::query::flag;
use zonda_wire::{Name, Query, Type};
use zonda_zone::snapshot::Slots;
use zonda_zone::{HashSeed, LookupName, Zone};

/// Zones in a chunk. A change copies the chunk and the list of chunks, so the square root of a
/// million is best at the upper end and wastes nothing at the lower.
const CHUNK: usize = 1024;

/// A zone is a name and a source of answers.
pub struct ZoneEntry {
    /// The apex in lower case.
    pub apex: Name,
    /// Where its answers come from.
    pub source: Source,
    /// Who may ask; everybody when there is none.
    pub access: Option<Arc<AccessList>>,
    /// A number of its own, under which its queries are counted.
    pub number: u32,
}

impl ZoneEntry {
    /// Whether a client at an address may ask for what the zone holds.
    #[must_use]
    pub fn allows(&self, client: IpAddr) -> bool {
        self.access.as_deref().is_none_or(|list| list.check(client) == Access::Allow)
    }
}

/// Where a zone's answers come from.
pub enum Source {
    /// Zone data.
    Data(Arc<Zone>),
    /// Other servers.
    Forward(Arc<Forward>),
    /// This server, so that others are not asked.
    Local(Arc<Local>),
    /// Nobody: the names are kept from being forwarded, and no other zone holds them.
    Excepted,
    /// Nothing yet: the data could not be loaded, so that every answer is SERVFAIL.
    Unavailable,
}

/// Other servers that are asked for what a zone holds.
pub struct Forward {
    /// Tells them from all others, also from those of former snapshots.
    pub number: u32,
    /// Answers that they gave, and others.
    pub cache: Arc<Cache>,
    /// Whether nothing is asked for below a name that is known not to exist (rfc8020).
    pub nxdomain_cut: bool,
    /// Names that they are not asked for; the first that has a name answers.
    pub overlays: Vec<Overlay>,
}

/// What a server that forwards answers itself.
pub struct Local {
    /// The data.
    pub zone: Arc<Zone>,
    /// Names that come before them; the first that has a name answers.
    pub overlays: Vec<Overlay>,
}

/// Single names of our own in front of a zone.
#[derive(Clone)]
pub struct Overlay {
    /// Holds them. Names without records of their own, and its SOA record, do not count.
    pub zone: Arc<Zone>,
    /// What becomes of queries for them; [`Reason::Answered`] for whatever the data say.
    pub reason: Reason,
}

impl Forward {
    /// Under which a question's answer is kept.
    #[inline]
    #[must_use]
    pub fn cache_key<'n>(&self, query: &Query, name: &'n LookupName) -> zonda_cache::Key<'n> {
        zonda_cache::Key {
            name: name.as_wire(),
            hash: name.hash(0),
            qtype: query.qtype,
            qclass: query.qclass,
            source: self.number,
            dnssec_ok: query.dnssec_ok(),
            checking_disabled: query.flags & flag::CD != 0,
            variant: zonda_cache::Variant::default(),
        }
    }
}

/// All zones, found by the longest matching suffix of a name.
pub struct ZoneTable {
    seed: HashSeed,
    slots: Arc<Slots>,
    /// Bit *n*: there is a zone whose apex has *n* labels.
    depths: u128,
    /// The zone that holds all names, if there is one.
    root: Option<u32>,
    chunks: Vec<Arc<Vec<Arc<ZoneEntry>>>>,
    /// Whether others answer for any of them.
    has_forwards: bool,
}

/// A zone found for a name.
#[derive(Clone, Copy)]
pub struct ZoneMatch {
    /// The zone's index in its table.
    pub index: u32,
    /// How many labels its apex has.
    pub labels: u8,
}

impl ZoneTable {
    /// A table of `entries`, whose names must differ.
    #[must_use]
    pub fn new(entries: Vec<Arc<ZoneEntry>>, seed: HashSeed) -> Self {
        let mut depths = 0;
        let mut hashes = Vec::with_capacity(entries.len());
        let mut name = LookupName::default();
        for entry in &entries {
            name.set(entry.apex.as_wire(), seed);
            depths |= 1 << name.label_count();
            hashes.push(name.hash(0));
        }
        let slots = Arc::new(Slots::with_all(entries.len(), hashes.into_iter().zip(0..)));
        let chunks = entries.chunks(CHUNK).map(|chunk| Arc::new(chunk.to_vec())).collect();
        let is_forward = |entry: &Arc<ZoneEntry>| matches!(entry.source, Source::Forward(_));
        let has_forwards = entries.iter().any(is_forward);
        let root = entries.iter().zip(0..).find(|(entry, _)| entry.apex.as_wire() == [0]);
        let root = root.map(|(_, index)| index);
        Self { seed, slots, depths, root, chunks, has_forwards }
    }

    /// The same zones with the entries at some indices replaced by others of the same names, which
    /// others answer for if they did before.
    #[must_use]
    pub fn with_replaced(&self, changed: impl IntoIterator<Item = (u32, Arc<ZoneEntry>)>) -> Self {
        let mut chunks = self.chunks.clone();
        for (index, entry) in changed {
            let index = index as usize;
            let old = &mut Arc::make_mut(&mut chunks[index / CHUNK])[index % CHUNK];
            debug_assert_eq!(old.apex, entry.apex);
            *old = entry;
        }
        Self { slots: Arc::clone(&self.slots), chunks, ..*self }
    }

    /// The seed that names looked up here must be hashed with.
    #[must_use]
    pub fn seed(&self) -> HashSeed {
        self.seed
    }

    /// Whether others answer for any of the zones.
    #[inline]
    #[must_use]
    pub fn has_forwards(&self) -> bool {
        self.has_forwards
    }

    /// The zone at an index.
    ///
    /// # Panics
    /// When there is none.
    #[inline]
    #[must_use]
    pub fn get(&self, index: u32) -> &Arc<ZoneEntry> {
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    /// The zone through which any name can be looked up: that of the root, if others answer for it.
    #[inline]
    #[must_use]
    pub fn recursion(&self) -> Option<&ZoneEntry> {
        let entry = self.get(self.root?);
        matches!(entry.source, Source::Forward(_)).then_some(entry)
    }

    /// All zones, by index.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ZoneEntry>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// The index of the zone with exactly this name.
    #[must_use]
    pub fn index_of(&self, apex: &Name) -> Option<u32> {
        let name = LookupName::new(apex.as_wire(), self.seed);
        self.at(&name, name.label_count())
    }

    /// The zone that holds `name`: the one with the longest matching apex of at most `labels_max`
    /// labels.
    #[inline]
    #[must_use]
    pub fn find(&self, name: &LookupName, labels_max: usize) -> Option<ZoneMatch> {
        let mut depths = self.depths & (u128::MAX >> (127 - labels_max));
        while depths != 0 {
            let labels = 127 - depths.leading_zeros() as usize;
            if let Some(index) = self.at(name, labels) {
                return Some(ZoneMatch { index, labels: labels as u8 });
            }
            depths &= !(1 << labels);
        }
        None
    }

    /// The zone that answers a question for `name`. DS records lie above the cut
    /// (rfc4035#3.1.4.1), so at an apex they are the parent's, if that is ours.
    #[inline]
    #[must_use]
    pub fn find_answering(&self, name: &LookupName, qtype: Type) -> Option<ZoneMatch> {
        let labels = name.label_count();
        let found = self.find(name, labels);
        if qtype == Type::DS
            && labels > 0
            && found.is_some_and(|zone| usize::from(zone.labels) == labels)
        {
            return self.find(name, labels - 1).or(found);
        }
        found
    }

    /// The zone that answers a question for a name in wire form, and the name's hash.
    #[must_use]
    pub fn answering(&self, name: &[u8], qtype: Type) -> Option<(&ZoneEntry, u64)> {
        let name = LookupName::new(name, self.seed);
        let entry: &ZoneEntry = self.get(self.find_answering(&name, qtype)?.index);
        Some((entry, name.hash(0)))
    }

    /// The zone whose apex is the last `labels` labels of `name`.
    #[inline]
    fn at(&self, name: &LookupName, labels: usize) -> Option<u32> {
        let label = name.label_count() - labels;
        let suffix = name.suffix(label);
        self.slots.find(name.hash(label), |index| self.get(index).apex.as_wire() == suffix)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SEED: HashSeed = HashSeed(1);

    fn entry(apex: &str, number: u32) -> Arc<ZoneEntry> {
        let apex = apex.parse().unwrap();
        Arc::new(ZoneEntry { apex, source: Source::Unavailable, access: None, number })
    }

    fn found(table: &ZoneTable, name: &str) -> Option<String> {
        let name = LookupName::new(name.parse::<Name>().unwrap().as_wire(), SEED);
        let found = table.find(&name, name.label_count())?;
        Some(table.get(found.index).apex.to_string())
    }

    #[test]
    fn the_longest_matching_zone_wins() {
        let names = ["example", "a.b.example", "c.example"];
        let table = ZoneTable::new(names.iter().map(|name| entry(name, 0)).collect(), SEED);
        assert_eq!(found(&table, "x.a.B.example"), Some("a.b.example.".into()));
        assert_eq!(found(&table, "b.example"), Some("example.".into()));
        assert_eq!(found(&table, "xc.example"), Some("example.".into()));
        assert_eq!(found(&table, "other"), None);
        assert_eq!(found(&table, "."), None);
    }

    #[test]
    fn the_root_zone_holds_every_name() {
        let table = ZoneTable::new(vec![entry(".", 0)], SEED);
        assert_eq!(found(&table, &"a.".repeat(127)), Some(".".into()));
        assert_eq!(found(&table, "."), Some(".".into()));
    }

    #[test]
    fn a_replaced_zone_is_seen_in_the_new_table_alone() {
        let names = (0..3000).map(|i| entry(&format!("z{i}.example"), i)).collect();
        let old = ZoneTable::new(names, SEED);
        let index = old.index_of(&"z2500.example".parse().unwrap()).unwrap();
        let new = old.with_replaced([(index, entry("z2500.example", 7))]);
        assert_eq!((old.get(index).number, new.get(index).number), (2500, 7));
        assert!(Arc::ptr_eq(&old.chunks[0], &new.chunks[0]));
    }
}
