//! The records of a large zone by the hashes of their owners, before they become a zone.
//!
//! A zone is built of them part by part, and what was built of is freed: records and zone are never
//! in memory as a whole together. A part is made of chunks, few of them, that the allocator gives
//! back to the system.
//!
//! ```text
//! part     chunk | chunk | …     the names with equal bits 40 to 44 of their hashes
//! chunk    run | run | …
//! run      octets behind the head u32 | hash u64 | owner's length u8 | owner | sets
//! set      1 | type u16 | TTL u32 | records
//! record   2 | length u8 | rdata      or    3 | length u16 | rdata
//! ```
//!
//! A run has records of one owner that came one after the other; the owner is what lies above the
//! apex, in lower case. Numbers are little-endian. Names that have names below them are noted as
//! records come, each once, since their nodes need room for the number of those, and exist without
//! records, too.
//!
//! # Invariants
//! - Each name between an owner and the apex is noted.
//! - No record lies in two chunks.

use super::directory::BRANCH;
use super::name_weights::NameWeights;
use super::{Slots, TooLarge, node_flag};
use crate::lookup_name::{HashSeed, LookupName};
use crate::records::{Record, Records, octets_len};
use crate::release::free_in_steps;
use std::mem;
use zonda_wire::{Name, Type, name};

/// Parts of the records, a power of two. More would have more chunks; fewer would be larger beside
/// the zone.
pub(super) const PARTS: usize = if cfg!(test) { 8 } else { 32 };
/// The lowest bit of a hash that says which part a name belongs to: the lowest of those that say
/// which branch of the zone.
const PART_SHIFT: u32 = 32 + BRANCH.trailing_zeros();
/// Octets of the first chunk of a part, and of the last ones of a large part. A chunk is as large
/// as all before it: memory that is not written takes none of the system's, and the allocator gives
/// some thousand pieces of memory back to the system, those of all transfers together.
const CHUNK_MIN: usize = 64 << 10;
const CHUNK_MAX: usize = 64 << 20;
/// Octets of a run before its owner.
const RUN_HEAD: usize = 4 + 8 + 1;
/// Most octets of a set and a record before the data.
const RECORD_HEAD: usize = 1 + 2 + 4 + 1 + 2;
/// What begins a set.
const SET: u8 = 1;
/// What begins a record of up to 255 octets.
const SHORT: u8 = 2;
/// What begins a longer record.
const LONG: u8 = 3;

/// The records of a zone, of which the zone can be built.
pub struct HashedRecords {
    /// The apex in lower case.
    pub(super) apex: Name,
    /// The secret by which names are hashed.
    pub(super) seed: HashSeed,
    /// The records of the apex.
    pub(super) of_apex: Records,
    /// Whether the name `*` lies below the apex.
    pub(super) has_apex_wildcard: bool,
    /// All other records, in [`PARTS`] parts.
    pub(super) parts: Vec<Part>,
    /// The owner of the last record, as it was given.
    last_owner: Vec<u8>,
    /// Where the last record belongs.
    last_place: OwnerPlace,
    /// The owner of the last record with its hashes.
    name: Box<LookupName>,
    /// The number of records.
    len: usize,
    /// Octets of memory that the names take which have names below them.
    parents_bytes: usize,
    /// Octets that the nodes of these names take in the zone, at least.
    parents_bytes_least: usize,
    /// What names take while they are built.
    weights: NameWeights,
    /// The type and TTL of the last record of the last owner that is no signature, and whether its
    /// set was counted among those with several TTLs.
    last_set: Option<(Type, u32, bool)>,
    /// The number of sets with several TTLs.
    mixed_sets: usize,
}

/// Where the records of an owner belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnerPlace {
    /// Nowhere: the owner lies outside the zone.
    Outside,
    /// Among the records of the apex.
    Apex,
    /// In the part with this number.
    Part(usize),
}

impl HashedRecords {
    /// No records of the zone of an apex.
    #[must_use]
    pub fn new(apex: &Name, seed: HashSeed) -> Self {
        let mut parts = Vec::new();
        parts.resize_with(PARTS, Part::default);
        Self {
            apex: apex.to_lowercase(),
            seed,
            of_apex: Records::default(),
            has_apex_wildcard: false,
            parts,
            last_owner: Vec::new(),
            last_place: OwnerPlace::Outside,
            name: Box::default(),
            len: 0,
            parents_bytes: 0,
            parents_bytes_least: 0,
            weights: NameWeights::default(),
            last_set: None,
            mixed_sets: 0,
        }
    }

    /// Adds a record; one outside the zone is left out.
    ///
    /// # Errors
    /// When it has no room; it is not added then.
    pub fn push(&mut self, record: Record<'_>) -> Result<(), TooLarge> {
        if record.owner != self.last_owner {
            self.set_owner(record.owner)?;
        }
        match self.last_place {
            OwnerPlace::Outside => return Ok(()),
            OwnerPlace::Apex => self.of_apex.push(record, 0).map_err(|_| TooLarge)?,
            OwnerPlace::Part(number) => {
                let relative = relative_to(&self.apex, self.name.as_wire());
                self.parts[number].push((self.name.hash(0), relative), record)?;
            }
        }
        self.len += 1;
        let octets = octets_len(record.owner.len(), record.rdata.len());
        self.weights.add(self.name.hash(0) as u32, octets);
        self.note_ttl(record);
        Ok(())
    }

    /// Counts the set of a record if it has another TTL than the one of its set before it.
    fn note_ttl(&mut self, Record { rtype, ttl, .. }: Record<'_>) {
        if rtype == Type::RRSIG {
            return; // its set is that of the type it covers
        }
        let of_set = self.last_set.filter(|(last, ..)| *last == rtype);
        let is_counted = of_set.is_some_and(|(_, last, is_counted)| is_counted || last != ttl);
        let was_counted = of_set.is_some_and(|(.., is_counted)| is_counted);
        self.mixed_sets += usize::from(is_counted && !was_counted);
        self.last_set = Some((rtype, ttl, is_counted));
    }

    /// Returns the number of sets in which a record has another TTL than the one in front of it, as
    /// primaries send the records of a set together; of signatures, none is counted.
    #[must_use]
    pub fn mixed_sets(&self) -> usize {
        self.mixed_sets
    }

    /// Returns the number of records, those that are there twice counted twice.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the octets of memory, at most, that the zone takes at some moment until it is built
    /// besides what its records tell by their number and their octets: for names that have names
    /// below them, of which a record may have over a hundred, here and in the zone; and for the
    /// largest name and the largest shard, which are there twice while they are made.
    #[must_use]
    pub fn bytes_besides(&self) -> usize {
        self.parents_bytes.saturating_add(self.weights.bytes())
    }

    /// Returns the octets that the names between the owners of the records and the apex take in the
    /// zone, at least.
    #[must_use]
    pub fn parents_bytes_least(&self) -> usize {
        self.parents_bytes_least
    }

    /// Has the next record be of another owner.
    fn set_owner(&mut self, owner: &[u8]) -> Result<(), TooLarge> {
        self.last_owner.clear();
        (self.last_place, self.last_set) = (OwnerPlace::Outside, None);
        if name::is_at_or_below(owner, self.apex.as_wire()) {
            self.name.set(owner, self.seed);
            let depth = self.name.label_count() - self.apex.label_count();
            self.last_place = match depth {
                0 => OwnerPlace::Apex,
                _ => OwnerPlace::Part(part_of(self.name.hash(0))),
            };
            if let OwnerPlace::Part(number) = self.last_place {
                self.parts[number].run = None;
                self.note_ancestors(depth)?;
            }
        }
        self.last_owner.extend_from_slice(owner);
        Ok(())
    }

    /// Notes the names between the owner, so many labels below the apex, and the apex.
    fn note_ancestors(&mut self, depth: usize) -> Result<(), TooLarge> {
        let is_wildcard = |label: usize| self.name.suffix(label).starts_with(b"\x01*");
        for label in 1..depth {
            let flags = if is_wildcard(label - 1) { node_flag::WILDCARD_CHILD } else { 0 };
            let (hash, suffix) = (self.name.hash(label), self.name.suffix(label));
            let (parents, name) =
                (&mut self.parts[part_of(hash)].parents, relative_to(&self.apex, suffix));
            if !parents.note(hash, name, flags)? {
                return Ok(()); // those above it were noted with it
            }
            self.parents_bytes += parent_bytes(name.len());
            self.parents_bytes_least += NODE_BYTES_LEAST + name.len();
        }
        self.has_apex_wildcard |= is_wildcard(depth - 1);
        Ok(())
    }
}

/// The part of the names with a hash.
pub(super) fn part_of(hash: u64) -> usize {
    (hash >> PART_SHIFT) as usize % PARTS
}

/// The octets of a name at or below an apex that lie above that.
fn relative_to<'n>(apex: &Name, name: &'n [u8]) -> &'n [u8] {
    &name[..name.len() - apex.as_wire().len()]
}

/// The records of some names, in the order in which they came.
#[derive(Default)]
pub(super) struct Part {
    /// The octets of the records.
    chunks: Vec<Vec<u8>>,
    /// The octets that the chunks have room for.
    octets: usize,
    /// Where the run begins in the last chunk that the next record belongs to, and the type and
    /// TTL of its last set; none if the record begins a run.
    run: Option<(usize, Type, u32)>,
    /// The names that have names below them.
    pub(super) parents: ParentNames,
}

impl Drop for Part {
    fn drop(&mut self) {
        mem::take(&mut self.chunks).into_iter().for_each(free_in_steps);
        free_in_steps(mem::take(&mut self.parents.octets));
    }
}

/// A run of records, or a name without records, among those of a part. Runs of one name are in the
/// order of their hash, and then as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    /// The hash of the owner.
    pub(super) hash: u64,
    /// The number of the chunk; [`Run::PARENT`] for a name that has names below it.
    chunk: u32,
    /// The run's first octet in the chunk, or the name's among those that have names below them.
    offset: u32,
}

impl Run {
    /// Stands for the chunk where there are no records.
    const PARENT: u32 = u32::MAX;

    /// Whether this is a name that has names below it, and no run of records.
    pub(super) fn is_parent(self) -> bool {
        self.chunk == Self::PARENT
    }
}

impl Part {
    /// Adds a record of an owner with a hash.
    fn push(&mut self, owner: (u64, &[u8]), record: Record<'_>) -> Result<(), TooLarge> {
        let len = u16::try_from(record.rdata.len()).map_err(|_| TooLarge)?;
        let octets = RUN_HEAD + owner.1.len() + RECORD_HEAD + record.rdata.len();
        let room = self.chunks.last().map_or(0, |chunk| chunk.capacity() - chunk.len());
        if room < octets {
            let size = self.octets.clamp(CHUNK_MIN, CHUNK_MAX).max(octets);
            self.chunks.push(Vec::with_capacity(size));
            (self.octets, self.run) = (self.octets + size, None);
        }
        let chunk = self.chunks.last_mut().ok_or(TooLarge)?;
        let (start, is_same_set) = match self.run {
            Some((start, rtype, ttl)) => (start, (rtype, ttl) == (record.rtype, record.ttl)),
            None => (begin_run(chunk, owner), false),
        };
        if !is_same_set {
            chunk.push(SET);
            chunk.extend_from_slice(&record.rtype.0.to_le_bytes());
            chunk.extend_from_slice(&record.ttl.to_le_bytes());
        }
        match u8::try_from(len) {
            Ok(len) => chunk.extend_from_slice(&[SHORT, len]),
            Err(_) => {
                chunk.push(LONG);
                chunk.extend_from_slice(&len.to_le_bytes());
            }
        }
        chunk.extend_from_slice(record.rdata);
        let behind = (chunk.len() - start - RUN_HEAD) as u32; // a chunk is smaller
        chunk[start..start + 4].copy_from_slice(&behind.to_le_bytes());
        self.run = Some((start, record.rtype, record.ttl));
        Ok(())
    }

    /// Adds a record of an owner in a run of its own.
    #[cfg(test)]
    pub(super) fn push_apart(&mut self, owner: (u64, &[u8]), record: Record<'_>) {
        self.run = None;
        assert!(self.push(owner, record).is_ok());
    }

    /// The hashes of all owners, and of all names that have names below them; some of them twice.
    pub(super) fn hashes(&self) -> impl Iterator<Item = u64> {
        self.runs().map(|run| run.hash)
    }

    /// All runs, and the names that have names below them.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run> {
        let of_chunks = (0..).zip(&self.chunks).flat_map(|(number, chunk)| {
            let mut at = 0;
            std::iter::from_fn(move || {
                let run = chunk.get(at..)?;
                let (len, rest) = run.split_first_chunk()?;
                let hash = u64::from_le_bytes(*rest.first_chunk()?);
                let offset = at as u32; // a chunk is smaller
                at += RUN_HEAD + u32::from_le_bytes(*len) as usize;
                Some(Run { hash, chunk: number, offset })
            })
        });
        of_chunks.chain(self.parents.iter())
    }

    /// The name of a run, without the apex.
    pub(super) fn owner(&self, run: Run) -> &[u8] {
        match run.is_parent() {
            true => self.parents.name(run.offset as usize),
            false => split_owner(self.behind(run)).0,
        }
    }

    /// The records of a run, their owners without the apex; none of a name that has names below
    /// it.
    pub(super) fn records(&self, run: Run) -> impl Iterator<Item = Record<'_>> {
        let (owner, mut rest) = split_owner(if run.is_parent() { &[0] } else { self.behind(run) });
        let (mut rtype, mut ttl) = (Type(0), 0);
        std::iter::from_fn(move || {
            loop {
                let (kind, behind) = rest.split_first()?;
                let (len, behind) = match *kind {
                    SET => {
                        let (number, behind) = behind.split_first_chunk()?;
                        let (secs, behind) = behind.split_first_chunk()?;
                        (rtype, ttl) =
                            (Type(u16::from_le_bytes(*number)), u32::from_le_bytes(*secs));
                        rest = behind;
                        continue;
                    }
                    SHORT => behind.split_first().map(|(len, behind)| (u16::from(*len), behind))?,
                    _ => {
                        let (len, behind) = behind.split_first_chunk()?;
                        (u16::from_le_bytes(*len), behind)
                    }
                };
                let (rdata, behind) = behind.split_at_checked(len.into())?;
                rest = behind;
                return Some(Record { owner, rtype, ttl, rdata });
            }
        })
    }

    /// What a run has behind its hash: the owner behind its length, and the sets.
    fn behind(&self, run: Run) -> &[u8] {
        let chunk = &self.chunks[run.chunk as usize][run.offset as usize..];
        let len = chunk.first_chunk().map_or(0, |len| u32::from_le_bytes(*len) as usize);
        &chunk[RUN_HEAD - 1..RUN_HEAD + len]
    }
}

/// Begins a run of an owner with a hash; returns its place.
fn begin_run(chunk: &mut Vec<u8>, (hash, owner): (u64, &[u8])) -> usize {
    let start = chunk.len();
    chunk.extend_from_slice(&[0; 4]);
    chunk.extend_from_slice(&hash.to_le_bytes());
    chunk.push(owner.len() as u8); // a name has at most 255 octets
    debug_assert_eq!(chunk.len(), start + RUN_HEAD);
    chunk.extend_from_slice(owner);
    start
}

/// Takes a name from behind its length.
fn split_owner(octets: &[u8]) -> (&[u8], &[u8]) {
    octets
        .split_first()
        .and_then(|(len, rest)| rest.split_at_checked(usize::from(*len)))
        .unwrap_or_default()
}

/// Octets of memory that a name takes which has names below it, at most: the name with what stands
/// before it, in memory for twice as many; four slots, and two of the table that these replace. Its
/// node takes less if it has no records.
pub(super) fn parent_bytes(name: usize) -> usize {
    2 * (PARENT_HEAD + name) + 6 * size_of::<u64>()
}

/// Names that have names below them, each once.
#[derive(Default)]
pub(super) struct ParentNames {
    /// Finds names by hash.
    slots: Slots,
    /// The number of names.
    count: usize,
    /// The names: hash u64, flags u8, length u8, name without the apex.
    octets: Vec<u8>,
}

/// Octets of a zone's node beside its owner, at least, if names lie below it.
const NODE_BYTES_LEAST: usize = 8;
/// Octets before the name of a parent.
const PARENT_HEAD: usize = 8 + 1 + 1;
/// The place of a parent's flags.
const PARENT_FLAGS: usize = 8;

impl ParentNames {
    /// Notes a name, and that its node has some flags; returns whether it was not known.
    fn note(&mut self, hash: u64, name: &[u8], flags: u8) -> Result<bool, TooLarge> {
        if let Some(place) = self.slots.find(hash, |place| self.name(place as usize) == name) {
            self.octets[place as usize + PARENT_FLAGS] |= flags;
            return Ok(false);
        }
        let place = u32::try_from(self.octets.len()).map_err(|_| TooLarge)?;
        self.octets.extend_from_slice(&hash.to_le_bytes());
        self.octets.extend_from_slice(&[flags, name.len() as u8]); // at most 255
        self.octets.extend_from_slice(name);
        self.count += 1;
        if self.slots.insert(hash, place).is_err() {
            let entries = self.iter().map(|run| (run.hash, run.offset));
            self.slots = Slots::with_all(self.count, entries); // twice as many slots
        }
        Ok(true)
    }

    /// The octets of memory that the names take.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.octets.capacity() + self.slots.bytes()
    }

    /// Whether there are no names.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The names that have names below them, each as a run without records.
    fn iter(&self) -> impl Iterator<Item = Run> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let hash = u64::from_le_bytes(*self.octets.get(at..)?.first_chunk()?);
            let offset = at as u32; // each was a place
            at += PARENT_HEAD + self.name(at).len();
            Some(Run { hash, chunk: Run::PARENT, offset })
        })
    }

    /// The name at a place.
    fn name(&self, place: usize) -> &[u8] {
        split_owner(&self.octets[place + PARENT_HEAD - 1..]).0
    }

    /// The flags of the node of a name.
    pub(super) fn flags(&self, run: Run) -> u8 {
        self.octets[run.offset as usize + PARENT_FLAGS]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// No records of a zone.
    fn no_records() -> HashedRecords {
        HashedRecords::new(&"example".parse().unwrap(), HashSeed(7))
    }

    /// Adds an address of a name.
    fn push(records: &mut HashedRecords, owner: &str, ttl: u32) {
        let owner: Name = owner.parse().unwrap();
        let record = Record { owner: owner.as_wire(), rtype: Type::A, ttl, rdata: &[192, 0, 2, 1] };
        records.push(record).unwrap();
    }

    #[test]
    fn names_with_others_below_them_take_no_more_memory_than_they_count_as() {
        let mut records = no_records();
        for number in 0..20_000 {
            push(&mut records, &format!("a.b{number}.example"), 60);
            let bytes: usize = records.parts.iter().map(|part| part.parents.bytes()).sum();
            let empty = PARTS * (4 * 8 + 2 * 64); // first slots, and room for the first name
            assert!(bytes <= records.parents_bytes + empty, "{number}: {bytes} octets");
        }
    }

    #[test]
    fn chunks_are_few_however_many_records_there_are() {
        let mut records = no_records();
        let rdata = [7; 60_000];
        for number in 0..3_000_u32 {
            let owner: Name = format!("a{number}.example").parse().unwrap();
            let (owner, rtype) = (owner.as_wire(), Type::TXT);
            records.push(Record { owner, rtype, ttl: 60, rdata: &rdata }).unwrap();
        }
        let most = records.parts.iter().map(|part| part.chunks.len()).max().unwrap();
        assert!(most <= 12, "{most} chunks of 22 MiB");
    }

    #[test]
    fn sets_with_several_times_to_live_are_counted_once_each() {
        let mut records = no_records();
        for (owner, ttl) in [("a", 60), ("a", 60), ("b", 60), ("b", 30), ("b", 60), ("c", 1)] {
            push(&mut records, &format!("{owner}.example"), ttl);
        }
        assert_eq!(records.mixed_sets(), 1);
    }
}
