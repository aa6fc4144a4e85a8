//! A hash table in shards, which its versions share.
//!
//! ```text
//! pages  Arc per 16 shards, shared by versions until one of their shards changes
//! shard  slots of some keys in one piece of memory, none if it is empty
//! slot   hash u64 | value
//! ```
//!
//! # Invariants
//! - A version that was cloned never changes: a change copies the list of pages, one page and one
//!   shard.
//! - All slots of a hash lie in one shard, so that a key may have several values.

use std::sync::Arc;

/// Shards of a page. A change counts a further reference to each shard of a page and, with the
/// other changes of a version, to each page: most of what it costs.
const PAGE_SHARDS: usize = 16;

/// A value and its hash.
#[derive(Clone)]
struct Slot<T> {
    hash: u64,
    value: T,
}

/// The slots of the hashes that share their last bits; none if there are none.
type Shard<T> = Option<Arc<[Slot<T>]>>;

/// Shards that are copied together.
#[derive(Clone)]
struct Page<T>([Shard<T>; PAGE_SHARDS]);

impl<T> Page<T> {
    /// A page without values.
    fn empty() -> Self {
        Self([const { None }; PAGE_SHARDS])
    }
}

/// A table whose clones share their memory until they change. It gets more shards when there are
/// `LOAD` values for each: these are copied by a change, together with a reference to each shard of
/// a page, and read one after the other by a query.
#[derive(Clone)]
pub struct Table<T, const LOAD: usize> {
    pages: Arc<Vec<Arc<Page<T>>>>,
    len: usize,
}

impl<T: Clone, const LOAD: usize> Default for Table<T, LOAD> {
    fn default() -> Self {
        Self { pages: Arc::new(vec![Arc::new(Page::empty())]), len: 0 }
    }
}

impl<T: Clone, const LOAD: usize> Table<T, LOAD> {
    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The page and the shard of a hash.
    #[inline]
    fn place(&self, hash: u64) -> (usize, usize) {
        let shard = hash as usize & (self.pages.len() * PAGE_SHARDS - 1);
        (shard / PAGE_SHARDS, shard % PAGE_SHARDS)
    }

    /// Returns the slots among which those of a hash are.
    #[inline]
    fn slots(&self, hash: u64) -> &[Slot<T>] {
        let (page, shard) = self.place(hash);
        self.pages[page].0[shard].as_deref().unwrap_or_default()
    }

    /// Returns all values of a hash.
    #[inline]
    pub fn all(&self, hash: u64) -> impl Iterator<Item = &T> + Clone {
        self.slots(hash).iter().filter(move |slot| slot.hash == hash).map(|slot| &slot.value)
    }

    /// Reads the first slot of a hash's shard, so that the processor loads it into its cache.
    #[inline]
    #[must_use]
    pub fn touch(&self, hash: u64) -> u64 {
        self.slots(hash).first().map_or(0, |slot| slot.hash)
    }

    /// Adds a value, in place of the one of its hash that `is_same` accepts if there is one.
    pub fn put(&mut self, hash: u64, value: T, is_same: impl Fn(&T) -> bool) {
        if self.len >= self.pages.len() * PAGE_SHARDS * LOAD {
            self.grow();
        }
        let shard = self.shard_mut(hash);
        if let Some(slots) = shard {
            let place = slots.iter().position(|slot| slot.hash == hash && is_same(&slot.value));
            if let Some(place) = place {
                Arc::make_mut(slots)[place].value = value;
                return;
            }
        }
        let slots = shard.as_deref().unwrap_or_default();
        *shard = Some(slots.iter().cloned().chain([Slot { hash, value }]).collect());
        self.len += 1;
    }

    /// Removes the value of a hash that `is_it` accepts.
    pub fn remove(&mut self, hash: u64, is_it: impl Fn(&T) -> bool) {
        if !self.all(hash).any(&is_it) {
            return; // nothing is copied
        }
        let shard = self.shard_mut(hash);
        let slots = shard.as_deref().unwrap_or_default();
        let place = slots.iter().position(|slot| slot.hash == hash && is_it(&slot.value));
        let Some(place) = place else { return };
        let left = || slots[..place].iter().chain(&slots[place + 1..]).cloned();
        *shard = (slots.len() > 1).then(|| left().collect());
        self.len -= 1;
    }

    /// The shard of a hash, in memory that no other version has.
    fn shard_mut(&mut self, hash: u64) -> &mut Shard<T> {
        let (page, shard) = self.place(hash);
        let page = &mut Arc::make_mut(&mut self.pages)[page];
        &mut Arc::make_mut(page).0[shard]
    }

    /// Gives the table twice as many shards.
    fn grow(&mut self) {
        let pages = self.pages.len() * 2;
        let mask = pages * PAGE_SHARDS - 1;
        let mut shards: Vec<Vec<Slot<T>>> = vec![Vec::new(); pages * PAGE_SHARDS];
        for slot in self.slots_of_all() {
            shards[slot.hash as usize & mask].push(slot.clone());
        }
        let shard = |slots: Vec<Slot<T>>| (!slots.is_empty()).then(|| slots.into());
        let mut shards = shards.into_iter().map(shard);
        let page = |_| Arc::new(Page(std::array::from_fn(|_| shards.next().flatten())));
        self.pages = Arc::new((0..pages).map(page).collect());
    }

    /// Returns all values.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.slots_of_all().map(|slot| &slot.value)
    }

    /// Returns the slots of all values.
    fn slots_of_all(&self) -> impl Iterator<Item = &Slot<T>> {
        let shards = self.pages.iter().flat_map(|page| &page.0);
        shards.flat_map(|shard| shard.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hash of a number, spread over all bits.
    fn hash(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    }

    #[test]
    fn values_are_found_replaced_and_removed_while_the_table_grows() {
        let mut table = Table::<u64, 4>::default();
        for number in 0..5000 {
            table.put(hash(number), number, |_| true);
        }
        table.put(hash(7), 7, |_| true);
        assert_eq!(table.len(), 5000);
        assert!((0..5000).all(|number| table.all(hash(number)).eq([&number])));
        (0..5000).step_by(2).for_each(|number| table.remove(hash(number), |_| true));
        assert_eq!((table.len(), table.slots_of_all().count()), (2500, 2500));
        assert_eq!(table.all(hash(8)).count(), 0);
    }

    #[test]
    fn a_former_version_keeps_its_values() {
        let mut table = Table::<u64, 4>::default();
        (0..100).for_each(|number| table.put(hash(number), number, |_| true));
        let former = table.clone();
        table.remove(hash(1), |_| true);
        table.put(hash(2), 200, |_| true);
        assert!(former.all(hash(1)).eq([&1]) && former.all(hash(2)).eq([&2]));
        assert!(table.all(hash(1)).next().is_none() && table.all(hash(2)).eq([&200]));
    }

    #[test]
    fn a_hash_may_have_several_values() {
        let mut table = Table::<u64, 4>::default();
        [1, 2, 3].into_iter().for_each(|value| table.put(9, value, |it| *it == value));
        table.remove(9, |value| *value == 2);
        assert!(table.all(9).eq([&1, &3]));
    }
}
