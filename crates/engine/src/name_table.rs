//! A persistent table of what has a name: versions of it share what stayed the same.
//!
//! ```text
//! directory  upper bits of a name's hash ─► shard (several entries may lead to one shard)
//! shard      open addressing; slot u64: upper half of the hash u32 | index + 1 u32; 0 = free
//! chunks     index ─► value, 1,024 to a chunk
//! ```
//!
//! A change copies the shard and the chunk that it concerns, and the lists of both, each at most
//! once between two versions: with a million names some 56 KB, whatever is changed.
//!
//! # Invariants
//! - A version that was shared never changes.
//! - A value keeps its index as long as its name stays; the index of a name that is gone is given
//!   to another name later.
//! - All that tells where a slot belongs is in the slot: no name is hashed twice.

use std::sync::Arc;
use zonda_wire::Name;
use zonda_zone::{HashSeed, LookupName};

/// Values in a chunk: with a million of them, the list of chunks is as long as a chunk.
const CHUNK: usize = 1024;
/// Slots of a shard before it is split; at most half of them are taken.
const SHARD_SLOTS: usize = 4096;
/// Slots of the first shard of a table.
const FIRST_SLOTS: usize = 4;
/// Most bits of a hash that the directory is indexed by. Shards that have as many grow instead.
const DIRECTORY_BITS_MAX: u32 = 16;

/// A value that a [`NameTable`] finds by its name.
pub trait NamedValue {
    /// The name in lower case.
    fn name(&self) -> &Name;
}

/// A list of chunks of values, by index.
type Chunks<T> = Vec<Arc<Vec<Option<Arc<T>>>>>;

/// A version of the table.
pub struct NameTable<T> {
    seed: HashSeed,
    /// The number of bits of a hash that the directory is indexed by.
    bits: u32,
    /// The number of names in the table.
    len: usize,
    directory: Arc<Vec<Arc<Shard>>>,
    chunks: Arc<Chunks<T>>,
}

impl<T> Clone for NameTable<T> {
    /// Makes another version, which shares all memory until either is changed.
    fn clone(&self) -> Self {
        let (directory, chunks) = (Arc::clone(&self.directory), Arc::clone(&self.chunks));
        Self { directory, chunks, ..*self }
    }
}

/// The names whose hashes begin with the same bits.
#[derive(Clone, Default)]
struct Shard {
    /// The number of bits that all hashes in it have in common.
    bits: u32,
    /// The number of slots that are taken.
    taken: usize,
    slots: Vec<u64>,
}

/// The octets that a change of a [`NameTable`] copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopiedOctets(pub usize);

impl<T: NamedValue> NameTable<T> {
    /// A table without names, which are hashed with `seed`.
    #[must_use]
    pub fn new(seed: HashSeed) -> Self {
        let shard = Shard { bits: 0, taken: 0, slots: vec![0; FIRST_SLOTS] };
        let directory = Arc::new(vec![Arc::new(shard)]);
        Self { seed, bits: 0, len: 0, directory, chunks: Arc::default() }
    }

    /// The seed that names looked up here must be hashed with.
    #[inline]
    #[must_use]
    pub fn seed(&self) -> HashSeed {
        self.seed
    }

    /// The number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value at an index.
    ///
    /// # Panics
    /// When there is none.
    #[inline]
    #[must_use]
    pub fn get(&self, index: u32) -> &Arc<T> {
        let chunk = &self.chunks[index as usize / CHUNK];
        chunk[index as usize % CHUNK].as_ref().expect("the index is one of this version")
    }

    /// All values, by index.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).flatten()
    }

    /// The index of a name with this hash, in lower case and wire form.
    #[inline]
    #[must_use]
    pub fn find(&self, hash: u64, name: &[u8]) -> Option<u32> {
        let shard = &self.directory[place(hash, self.bits)];
        shard.find(hash, |index| self.get(index).name().as_wire() == name)
    }

    /// The index of a name of any case.
    #[must_use]
    pub fn index_of(&self, name: &Name) -> Option<u32> {
        let name = LookupName::new(name.as_wire(), self.seed);
        self.find(name.hash(0), name.as_wire())
    }

    /// The value of a name of any case.
    #[must_use]
    pub fn value(&self, name: &Name) -> Option<&Arc<T>> {
        self.index_of(name).map(|index| self.get(index))
    }

    /// The place of an index, for a change; counts what is copied for it.
    fn place_mut(&mut self, index: u32, copied: &mut CopiedOctets) -> &mut Option<Arc<T>> {
        let chunks = own(&mut self.chunks, |list| list.len() * 8, copied);
        let (chunk, place) = (index as usize / CHUNK, index as usize % CHUNK);
        while chunks.len() <= chunk {
            chunks.push(Arc::default());
        }
        let chunk = own(&mut chunks[chunk], |chunk| chunk.len() * 8, copied);
        if chunk.len() <= place {
            chunk.resize(place + 1, None);
        }
        &mut chunk[place]
    }

    /// The shard at a place of the directory, for a change; counts what is copied for it.
    fn change_shard<R>(
        &mut self,
        at: usize,
        copied: &mut CopiedOctets,
        change: impl FnOnce(&mut Shard) -> R,
    ) -> R {
        let directory = own(&mut self.directory, |list| list.len() * 8, copied);
        let places = 1 << (self.bits - directory[at].bits);
        let first = at & !(places - 1);
        // A shard that several places lead to is taken from all of them, or it would be copied.
        let (last, placeholder) = (first + places - 1, Arc::default());
        directory[first..last].fill(placeholder);
        let shard = &mut directory[last];
        let result = change(own(shard, |shard| shard.slots.len() * 8, copied));
        let shard = Arc::clone(shard);
        directory[first..last].fill(shard);
        result
    }

    /// Has the name with this hash found at an index.
    fn add_slot(&mut self, hash: u64, index: u32, copied: &mut CopiedOctets) {
        let slot = (hash >> 32) << 32 | u64::from(index + 1);
        let at = place(hash, self.bits);
        if !self.change_shard(at, copied, |shard| shard.add(slot)) {
            self.split(at, copied);
            self.add_slot(hash, index, copied); // at most once more for each bit of the directory
        }
    }

    /// Splits the shard at a place of the directory into two.
    fn split(&mut self, mut at: usize, copied: &mut CopiedOctets) {
        let directory = own(&mut self.directory, |list| list.len() * 8, copied);
        let shard = Arc::clone(&directory[at]);
        if shard.bits == self.bits {
            let doubled = directory.iter().flat_map(|it| [Arc::clone(it), Arc::clone(it)]);
            *directory = doubled.collect();
            copied.0 += directory.len() * 8;
            self.bits += 1;
            at *= 2;
        }
        let bits = shard.bits + 1;
        let empty = || Shard { bits, taken: 0, slots: vec![0; SHARD_SLOTS] };
        let mut halves = [empty(), empty()];
        for slot in shard.slots.iter().filter(|slot| **slot != 0) {
            halves[place(*slot, bits) & 1].put(*slot);
        }
        copied.0 += 2 * SHARD_SLOTS * 8;
        let each = 1 << (self.bits - bits);
        let first = at & !(2 * each - 1);
        for (half, places) in halves.into_iter().zip(directory[first..].chunks_mut(each)) {
            places.fill(Arc::new(half));
        }
    }
}

/// The place in a directory that is indexed by so many bits of a hash.
#[inline]
fn place(hash: u64, bits: u32) -> usize {
    ((hash >> 1) >> (63 - bits)) as usize
}

/// Returns the target of a pointer for a change: a copy unless no other version has it.
fn own<'a, V: Clone>(
    it: &'a mut Arc<V>,
    bytes: impl FnOnce(&V) -> usize,
    copied: &mut CopiedOctets,
) -> &'a mut V {
    if Arc::strong_count(it) > 1 {
        copied.0 += bytes(it);
    }
    Arc::make_mut(it)
}

impl Shard {
    /// The place at which a search for a slot begins.
    #[inline]
    fn home(&self, slot: u64) -> usize {
        (slot >> 32) as usize & (self.slots.len() - 1)
    }

    /// Adds a slot; whether there was room for it, or the shard is to be split.
    fn add(&mut self, slot: u64) -> bool {
        if (self.taken + 1) * 2 > self.slots.len() {
            if self.slots.len() >= SHARD_SLOTS && self.bits < DIRECTORY_BITS_MAX {
                return false;
            }
            let slots = vec![0; self.slots.len() * 2];
            let former = std::mem::replace(&mut self.slots, slots);
            self.taken = 0;
            former.into_iter().filter(|slot| *slot != 0).for_each(|slot| self.put(slot));
        }
        self.put(slot);
        true
    }

    /// Puts a slot where a search finds it; one place at least is free.
    fn put(&mut self, slot: u64) {
        let mask = self.slots.len() - 1;
        let mut at = self.home(slot);
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
        self.taken += 1;
    }

    /// The first index under a hash that matches.
    #[inline]
    fn find(&self, hash: u64, mut matches: impl FnMut(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at & mask];
            if slot == 0 {
                return None;
            }
            let index = (slot as u32) - 1;
            if slot >> 32 == hash >> 32 && matches(index) {
                return Some(index);
            }
            at = (at + 1) & mask;
        }
    }

    /// Takes a slot away, and moves those behind it that a search would not find any more.
    fn remove(&mut self, slot: u64) {
        let mask = self.slots.len() - 1;
        let mut free = self.home(slot);
        while self.slots[free] != slot {
            if self.slots[free] == 0 {
                return;
            }
            free = (free + 1) & mask;
        }
        let mut at = free;
        loop {
            self.slots[free] = 0;
            loop {
                at = (at + 1) & mask;
                if self.slots[at] == 0 {
                    self.taken -= 1;
                    return;
                }
                // Whether its home is not between the free place and its own.
                let home = self.home(self.slots[at]);
                if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(free) & mask) {
                    break;
                }
            }
            self.slots[free] = self.slots[at];
            free = at;
        }
    }
}

/// The one owner of a table, which makes its versions.
pub struct NameTableOwner<T> {
    table: NameTable<T>,
    /// The indices of names that are gone.
    free: Vec<u32>,
    /// Number of octets that all changes have copied so far.
    copied: CopiedOctets,
}

impl<T: NamedValue> NameTableOwner<T> {
    /// A table without names, which are hashed with `seed`.
    #[must_use]
    pub fn new(seed: HashSeed) -> Self {
        Self { table: NameTable::new(seed), free: Vec::new(), copied: CopiedOctets::default() }
    }

    /// The present version; its clones share memory until the next change.
    #[must_use]
    pub fn table(&self) -> &NameTable<T> {
        &self.table
    }

    /// The octets that all changes have copied so far.
    #[must_use]
    pub fn copied(&self) -> CopiedOctets {
        self.copied
    }

    /// Puts a value under its name; returns the one that it replaces.
    pub fn put(&mut self, value: Arc<T>) -> Option<Arc<T>> {
        let name = LookupName::new(value.name().as_wire(), self.table.seed);
        if let Some(index) = self.table.find(name.hash(0), name.as_wire()) {
            return self.table.place_mut(index, &mut self.copied).replace(value);
        }
        let next = self.table.len as u32; // all lower ones are taken if none is free
        let index = self.free.pop().unwrap_or(next);
        *self.table.place_mut(index, &mut self.copied) = Some(value);
        self.table.add_slot(name.hash(0), index, &mut self.copied);
        self.table.len += 1;
        None
    }

    /// Removes a name and returns its value.
    pub fn remove(&mut self, name: &Name) -> Option<Arc<T>> {
        let name = LookupName::new(name.as_wire(), self.table.seed);
        let (hash, table) = (name.hash(0), &mut self.table);
        let index = table.find(hash, name.as_wire())?;
        let value = table.place_mut(index, &mut self.copied).take();
        let (at, slot) = (place(hash, table.bits), (hash >> 32) << 32 | u64::from(index + 1));
        table.change_shard(at, &mut self.copied, |shard| shard.remove(slot));
        table.len -= 1;
        self.free.push(index);
        value
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SEED: HashSeed = HashSeed(1);

    /// A name and what was last put under it.
    struct Value(Name, u32);

    impl NamedValue for Value {
        fn name(&self) -> &Name {
            &self.0
        }
    }

    fn name(number: u32) -> Name {
        format!("z{number}.example").parse().unwrap()
    }

    /// A table of so many names, each with its number.
    fn owner(names: u32) -> NameTableOwner<Value> {
        let mut owner = NameTableOwner::new(SEED);
        (0..names).for_each(|number| drop(owner.put(Arc::new(Value(name(number), number)))));
        owner
    }

    fn found(table: &NameTable<Value>, number: u32) -> Option<u32> {
        table.value(&name(number)).map(|value| value.1)
    }

    #[test]
    fn every_name_is_found_while_names_come_and_go() {
        let mut owner = owner(20_000);
        let is_there = |number: u32| !number.is_multiple_of(3);
        (0..20_000).filter(|it| !is_there(*it)).for_each(|it| {
            assert_eq!(owner.remove(&name(it)).unwrap().1, it);
        });
        for number in 0..20_000 {
            let expected = is_there(number).then_some(number);
            assert_eq!(found(owner.table(), number), expected, "{number}");
        }
        assert!(owner.remove(&name(0)).is_none());
        (0..20_000).for_each(|it| drop(owner.put(Arc::new(Value(name(it), it + 1)))));
        assert_eq!((owner.table().len(), owner.table().iter().count()), (20_000, 20_000));
        (0..20_000).for_each(|it| assert_eq!(found(owner.table(), it), Some(it + 1)));
    }

    #[test]
    fn a_version_that_was_shared_stays_as_it_is() {
        let mut owner = owner(5000);
        let former = owner.table().clone();
        owner.put(Arc::new(Value(name(7), 70)));
        owner.remove(&name(8));
        owner.put(Arc::new(Value(name(5000), 5000)));
        let numbers = [7, 8, 5000];
        assert_eq!(numbers.map(|it| found(&former, it)), [Some(7), Some(8), None]);
        assert_eq!(numbers.map(|it| found(owner.table(), it)), [Some(70), None, Some(5000)]);
    }

    #[test]
    fn an_index_stays_with_its_name_and_is_given_out_again() {
        let mut owner = owner(3);
        owner.put(Arc::new(Value(name(1), 9)));
        let indices = |owner: &NameTableOwner<Value>| {
            [0, 1, 2, 3].map(|it| owner.table().index_of(&name(it)))
        };
        assert_eq!(indices(&owner), [Some(0), Some(1), Some(2), None]);
        owner.remove(&name(1));
        owner.put(Arc::new(Value(name(3), 3)));
        assert_eq!(indices(&owner), [Some(0), None, Some(2), Some(1)]);
    }

    #[test]
    fn one_name_more_or_less_copies_little_of_a_hundred_thousand() {
        /// The shard, the chunk and both lists; the shard may be split.
        const COPIED_MAX: usize = 3 * SHARD_SLOTS * 8 + CHUNK * 8 + 4096;
        let mut owner = owner(100_000);
        type Change = fn(&mut NameTableOwner<Value>);
        let changes: [Change; 3] = [
            |owner| drop(owner.put(Arc::new(Value(name(100_000), 0)))),
            |owner| drop(owner.put(Arc::new(Value(name(50_000), 0)))),
            |owner| drop(owner.remove(&name(20_000))),
        ];
        for change in changes {
            let (former, before) = (owner.table().clone(), owner.copied().0);
            change(&mut owner);
            let copied = owner.copied().0 - before;
            assert!((1..COPIED_MAX).contains(&copied), "{copied} octets");
            drop(former);
        }
    }

    #[test]
    #[ignore = "a measurement: it takes a minute without optimisation"]
    fn a_change_among_a_million_names_takes_less_than_a_millisecond() {
        const CHANGES: u32 = 1000;
        let mut owner = owner(1_000_000);
        let before = owner.copied().0;
        let started = std::time::Instant::now();
        for number in 0..CHANGES {
            let former = owner.table().clone();
            owner.put(Arc::new(Value(name(1_000_000 + number), 0)));
            drop(former);
            let former = owner.table().clone();
            owner.remove(&name(number * 7));
            drop(former);
        }
        let each = started.elapsed() / (2 * CHANGES);
        let copied = (owner.copied().0 - before) / (2 * CHANGES as usize);
        eprintln!("{each:?} and {copied} octets a change");
        assert!(each < std::time::Duration::from_millis(1), "{each:?}");
    }
}
