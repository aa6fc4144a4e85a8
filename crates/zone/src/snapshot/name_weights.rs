//! What the largest names of a zone may take while it is built.
//!
//! The records of a name are sorted together, and a shard is there twice while it is laid out. Both
//! are small parts of most zones; a zone may have one name with all records, though, or few names
//! with long ones. No name is looked up for this: names are told apart by some bits of their
//! hashes, so that what counts as one name may be several.

use super::hashed_records::parent_bytes;
use super::record_sorter::SORTED_BYTES;
use super::{Zone, node_flag};
use crate::records::octets_len;
use std::iter;

/// How many names are told apart, a power of two. Fewer would count a large zone of equal names as
/// larger; more would take more memory beside each large zone.
const COUNT: usize = 4096;
/// Names of the largest shard: 256 on average at most, and six times the root of that more.
const SHARD_NAMES_MAX: usize = 352;

/// The octets that the names of a zone take while it is built.
pub(super) struct NameWeights {
    /// The octets by the lowest bits of the names' hashes.
    by_bits: Box<[usize]>,
    /// The largest of these.
    most: usize,
    /// The octets of all names.
    all: usize,
}

impl Default for NameWeights {
    /// The octets of no names.
    fn default() -> Self {
        Self { by_bits: vec![0; COUNT].into(), most: 0, all: 0 }
    }
}

impl NameWeights {
    /// Adds a record of so many octets at a name with a hash, of which the lower half is enough.
    pub(super) fn add(&mut self, hash: u32, octets: usize) {
        let octets = octets + SORTED_BYTES;
        let of_name = &mut self.by_bits[hash as usize % COUNT];
        *of_name += octets;
        self.most = self.most.max(*of_name);
        self.all += octets;
    }

    /// The octets, at most, that the largest name or the largest shard takes besides.
    pub(super) fn bytes(&self) -> usize {
        self.all.min(self.most.saturating_mul(SHARD_NAMES_MAX))
    }
}

impl Zone {
    /// Returns the octets that a transfer of the zone's records takes besides, as
    /// [`HashedRecords::bytes_besides`](super::HashedRecords::bytes_besides) says, and a little
    /// more at most. Looks at each record.
    #[must_use]
    pub fn bytes_besides(&self) -> usize {
        let (mut parents, mut weights) = (0, NameWeights::default());
        let shards = 0..self.directory.layout().shards();
        let below = shards.flat_map(|shard| self.directory.nodes_of(shard));
        for (hash, node) in iter::once((0, self.apex_node())).chain(below) {
            let owner = node.relative_owner().len() + self.apex().len();
            if node.flags() & node_flag::HAS_CHILDREN != 0 {
                parents += parent_bytes(owner);
            }
            for rdata in node.sets().flat_map(|set| set.rdatas()) {
                weights.add(hash, octets_len(owner, rdata.len()));
            }
        }
        parents + weights.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_names_with_many_records_weigh_as_much_as_the_zone_and_many_names_a_small_part_of_it() {
        let mut few = NameWeights::default();
        (0..100_000).for_each(|number| few.add(number % 7, 40));
        assert_eq!(few.bytes(), few.all);
        let mut many = NameWeights::default();
        (0..1_000_000_u32).for_each(|number| many.add(number.wrapping_mul(0x9e37_79b9), 40));
        assert!(many.bytes() * 8 < many.all, "{} of {}", many.bytes(), many.all);
    }
}
