//! A part of a zone's names: a hash table and the nodes that it finds, in one piece of memory.
//!
//! ```text
//! shard   slots | nodes, each at a multiple of four
//! slot    place of a node, in units of four octets u32 | lower half of its name's hash u32
//!         0 = free
//! ```
//!
//! A search begins at the slot that the lowest bits of the hash say and ends at a free one. It does
//! not go around at the end: the slots are followed by as many more as stick out, and a free one.
//! A slot is eight octets, so that one cache line holds eight neighbours and a search rarely leaves
//! it. How many slots there are at first is the same for all shards of a zone, and not written
//! down, so that no octet of a shard is read before the slot.

use super::TooLarge;
use super::node::{ALIGNMENT, Node};

/// Octets of a slot.
const SLOT: usize = 8;

/// The slots of a shard with its nodes behind them.
#[derive(Clone, Copy)]
pub(super) struct Shard<'z>(pub(super) &'z [u8]);

impl<'z> Shard<'z> {
    /// The slot at an octet; free behind the last one.
    #[inline]
    fn slot(self, at: usize) -> u64 {
        let octets = self.0.get(at..).and_then(|octets| octets.first_chunk());
        octets.map_or(0, |octets| u64::from_le_bytes(*octets))
    }

    /// The place of the first node under `hash` that `matches`.
    #[inline]
    pub(super) fn find(
        self,
        slot_mask: u32,
        hash: u64,
        mut matches: impl FnMut(&'z [u8]) -> bool,
    ) -> Option<u32> {
        let mut at = (hash as u32 & slot_mask) as usize * SLOT;
        loop {
            let slot = self.slot(at);
            if slot == 0 {
                return None;
            }
            if (slot >> 32) as u32 == hash as u32 && matches(self.node(slot as u32)) {
                return Some(slot as u32);
            }
            at += SLOT;
        }
    }

    /// The octets from the first of the node at a place on.
    #[inline]
    pub(super) fn node(self, place: u32) -> &'z [u8] {
        &self.0[place as usize * ALIGNMENT..]
    }

    /// The place that a search will most likely look at first; reading it early fetches the slot
    /// into the processor's cache.
    #[inline]
    pub(super) fn first(self, slot_mask: u32, hash: u64) -> Option<u32> {
        let slot = self.slot((hash as u32 & slot_mask) as usize * SLOT);
        ((slot >> 32) as u32 == hash as u32).then_some(slot as u32)
    }

    /// The nodes with the lower halves of their hashes, in no particular order.
    pub(super) fn nodes(self) -> impl Iterator<Item = (u32, Node<'z>)> {
        // The first node in memory lies right behind the last slot, and is found before that.
        let (mut at, mut end) = (0, self.0.len());
        std::iter::from_fn(move || {
            while at < end {
                let slot = self.slot(at);
                at += SLOT;
                if slot != 0 {
                    let place = slot as u32;
                    end = end.min(place as usize * ALIGNMENT);
                    let tag = (slot >> 32) as u32;
                    return Some((tag, Node::new(self.node(place), place.into())));
                }
            }
            None
        })
    }
}

/// Writes shards; keeps its memory from one to the next.
#[derive(Default)]
pub(super) struct ShardWriter {
    /// The index of the node in each slot, plus one.
    slots: Vec<u32>,
}

impl ShardWriter {
    /// Appends a shard to a buffer; it begins at a multiple of eight octets. `nodes` are the lower
    /// halves of the hashes and the octets of each node.
    pub(super) fn write(
        &mut self,
        out: &mut Vec<u8>,
        slot_mask: u32,
        nodes: &[(u32, &[u8])],
    ) -> Result<(), TooLarge> {
        self.fill(slot_mask, nodes);
        out.resize(out.len().next_multiple_of(SLOT), 0);
        let start = out.len();
        let octets: usize = nodes.iter().map(|(_, node)| node.len() + ALIGNMENT).sum();
        out.reserve(self.slots.len() * SLOT + octets);
        let mut place = self.slots.len() * SLOT;
        let places: Vec<u32> = nodes
            .iter()
            .map(|(_, node)| {
                let at = place / ALIGNMENT;
                place = (place + node.len()).next_multiple_of(ALIGNMENT);
                u32::try_from(at).map_err(|_| TooLarge)
            })
            .collect::<Result<_, _>>()?;
        for &index in &self.slots {
            let slot = match index.checked_sub(1) {
                None => 0,
                Some(index) => {
                    let index = index as usize;
                    u64::from(nodes[index].0) << 32 | u64::from(places[index])
                }
            };
            out.extend_from_slice(&slot.to_le_bytes());
        }
        for (_, node) in nodes {
            out.extend_from_slice(node);
            out.resize(start + (out.len() - start).next_multiple_of(ALIGNMENT), 0);
        }
        debug_assert_eq!(out.len() - start, place);
        Ok(())
    }

    /// Gives each node a slot; the last slot is free.
    fn fill(&mut self, slot_mask: u32, nodes: &[(u32, &[u8])]) {
        self.slots.clear();
        self.slots.resize(slot_mask as usize + 2, 0);
        for (number, (tag, _)) in (1..).zip(nodes) {
            let mut at = (tag & slot_mask) as usize;
            while self.slots.get(at).is_some_and(|slot| *slot != 0) {
                at += 1;
            }
            if at + 1 >= self.slots.len() {
                self.slots.resize(at + 2, 0);
            }
            self.slots[at] = number;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::snapshot::node::NodeWriter;

    /// A shard of nodes with these hashes; each node's owner is its number.
    fn shard(slot_mask: u32, hashes: &[u64]) -> Vec<u8> {
        let nodes: Vec<Vec<u8>> = (0..hashes.len())
            .map(|number| {
                let mut node = Vec::new();
                NodeWriter::begin(&mut node, 0, &[number as u8]).end(0);
                node
            })
            .collect();
        let entries: Vec<(u32, &[u8])> =
            hashes.iter().zip(&nodes).map(|(hash, node)| (*hash as u32, &node[..])).collect();
        let mut out = vec![0; 3];
        ShardWriter::default().write(&mut out, slot_mask, &entries).unwrap();
        out.split_off(8)
    }

    /// Whether the shard has a node of that hash and number.
    fn has(shard: &[u8], slot_mask: u32, hash: u64, number: u8) -> bool {
        let owner = |node: &[u8]| Node::new(node, 0).relative_owner() == [number];
        Shard(shard).find(slot_mask, hash, owner).is_some()
    }

    #[test]
    fn nodes_under_equal_hashes_are_told_apart() {
        let shard = shard(3, &[9, 9, 9]);
        assert!((0..3).all(|number| has(&shard, 3, 9, number)));
        assert!(!has(&shard, 3, 9, 3));
        assert!(!has(&shard, 3, 9 | 1 << 16, 0));
    }

    #[test]
    fn nodes_that_fall_behind_the_last_slot_are_found_and_counted_once() {
        let hashes = [3, 7, 11, 15, 19, 2, 6];
        let shard = shard(3, &hashes);
        assert!((0..).zip(hashes).all(|(number, hash)| has(&shard, 3, hash, number)));
        let mut owners: Vec<u8> =
            Shard(&shard).nodes().map(|(_, node)| node.relative_owner()[0]).collect();
        owners.sort_unstable();
        assert_eq!(owners, [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn an_empty_shard_has_no_nodes() {
        let shard = shard(0, &[]);
        assert!(!has(&shard, 0, 5, 0));
        assert_eq!(Shard(&shard).nodes().count(), 0);
    }
}
