//! An open-addressing table from hashes to places.
//!
//! ```text
//! slot u64: upper half of the hash u32 | place + 1 u32      0 = free
//! ```
//!
//! A slot is eight octets, so that one cache line holds eight neighbours and a search rarely leaves
//! it. At most half the slots are taken; a search ends at the first free one.

use crate::release::free_in_steps;
use std::mem;

/// A table that finds places by hash.
pub struct Slots {
    slots: Box<[u64]>,
    taken: usize,
}

/// The table has no room for another place; build a larger one.
pub struct TableFull;

impl Default for Slots {
    fn default() -> Self {
        Self { slots: Box::new([0; 4]), taken: 0 }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        free_in_steps(mem::take(&mut self.slots).into_vec());
    }
}

impl Slots {
    /// A table with room for `count` places that holds all of `entries`.
    pub fn with_all(count: usize, entries: impl Iterator<Item = (u64, u32)>) -> Self {
        let slots = vec![0; (count * 2).next_power_of_two().max(4)].into_boxed_slice();
        let mut table = Self { slots, taken: 0 };
        for (hash, place) in entries {
            table.put(hash, place);
        }
        table
    }

    /// Adds a place.
    ///
    /// # Errors
    /// When half the slots are taken.
    pub fn insert(&mut self, hash: u64, place: u32) -> Result<(), TableFull> {
        if (self.taken + 1) * 2 > self.slots.len() {
            return Err(TableFull);
        }
        self.put(hash, place);
        Ok(())
    }

    fn put(&mut self, hash: u64, place: u32) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = (hash >> 32) << 32 | u64::from(place + 1);
        self.taken += 1;
        debug_assert!(self.taken * 2 <= self.slots.len(), "a search must find a free slot");
    }

    /// The first place under `hash` that `matches`.
    #[inline]
    pub fn find(&self, hash: u64, mut matches: impl FnMut(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at & mask];
            if slot == 0 {
                return None;
            }
            let place = (slot as u32) - 1;
            if slot >> 32 == hash >> 32 && matches(place) {
                return Some(place);
            }
            at = (at + 1) & mask;
        }
    }

    /// The place that a search will most likely look at first; reading it early fetches the slot
    /// into the cache.
    #[inline]
    pub fn first(&self, hash: u64) -> Option<u32> {
        let slot = self.slots[hash as usize & (self.slots.len() - 1)];
        (slot >> 32 == hash >> 32).then(|| (slot as u32).wrapping_sub(1))
    }

    /// The slots as they lie in memory.
    pub fn as_slice(&self) -> &[u64] {
        &self.slots
    }

    /// All places.
    pub fn places(&self) -> impl Iterator<Item = u32> {
        self.slots.iter().filter(|slot| **slot != 0).map(|slot| (*slot as u32) - 1)
    }

    /// Octets that the table takes.
    pub fn bytes(&self) -> usize {
        self.slots.len() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_under_equal_hashes_are_told_apart() {
        let table = Slots::with_all(3, [(9, 1), (9, 2), (9, 0)].into_iter());
        assert_eq!(table.find(9, |place| place == 0), Some(0));
        assert_eq!(table.find(9, |_| false), None);
        assert_eq!(table.find(9 | 1 << 40, |_| true), None);
    }

    #[test]
    fn a_table_is_full_when_half_its_slots_are_taken() {
        let mut table = Slots::default();
        assert!(table.insert(1, 1).is_ok());
        assert!(table.insert(2, 2).is_ok());
        assert!(table.insert(3, 3).is_err());
    }
}
