//! A part of a zone's names: a hash table and the nodes that it finds, in one piece of memory.
//!
//! ```text
//! shard   slots | nodes, each at a multiple of four
//! slot    place of a node, in units of four octets u32 | lower half of its name's hash u32;
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
use std::iter;
use std::sync::Arc;

/// The unit of memory of shards: a slot, or eight octets of nodes.
pub(super) type Word = [u8; 8];

/// The slots of a shard with its nodes behind them. Lookups may be given what follows it as well.
#[derive(Clone, Copy)]
pub(super) struct Shard<'z>(pub(super) &'z [Word]);

impl<'z> Shard<'z> {
    /// The octets from the first of a node under `hash` on, the first such that `matches`.
    #[inline]
    pub(super) fn find(
        self,
        slot_mask: u32,
        hash: u64,
        mut matches: impl FnMut(&'z [u8]) -> bool,
    ) -> Option<&'z [u8]> {
        let mut at = (hash as u32 & slot_mask) as usize;
        loop {
            let slot = u64::from_le_bytes(*self.0.get(at)?);
            if slot == 0 {
                return None;
            }
            if (slot >> 32) as u32 == hash as u32 {
                let node = self.node(slot as u32);
                if matches(node) {
                    return Some(node);
                }
            }
            at += 1;
        }
    }

    /// The octets from the first of the node at a place on.
    #[inline]
    fn node(self, place: u32) -> &'z [u8] {
        &self.0.as_flattened()[place as usize * ALIGNMENT..]
    }

    /// The slot that a search looks at first.
    #[inline]
    pub(super) fn first_slot(self, slot_mask: u32, hash: u64) -> u64 {
        let slot = self.0.get((hash as u32 & slot_mask) as usize);
        slot.map_or(0, |octets| u64::from_le_bytes(*octets))
    }

    /// The octets from the first of the node on that a search probably ends at; none if the slot
    /// that it looks at first is another's.
    #[inline]
    pub(super) fn first(self, slot_mask: u32, hash: u64) -> &'z [u8] {
        let slot = self.first_slot(slot_mask, hash);
        let is_its = (slot >> 32) as u32 == hash as u32;
        let octets = self.0.as_flattened();
        let node = is_its.then(|| octets.get(slot as u32 as usize * ALIGNMENT..));
        node.flatten().unwrap_or_default()
    }

    /// The same shard with a node under the lower half of its hash, in the place of an old one if
    /// there is one; `None` where that takes other slots. All that stays is copied in three
    /// pieces, so that no other node is looked at but the last.
    pub(super) fn with_node(
        self,
        slot_mask: u32,
        old: Option<Node<'_>>,
        (tag, new): Entry<'_>,
    ) -> Option<Arc<[Word]>> {
        let octets = self.0.as_flattened();
        let slot_of = |word: &Word| Some(u64::from_le_bytes(*word)).filter(|slot| *slot != 0);
        let (mut first, mut last, mut slots) = (self.0.len(), 0, 0);
        while slots < first {
            if let Some(slot) = slot_of(&self.0[slots]) {
                let at = slot as u32 as usize * ALIGNMENT;
                (first, last) = (first.min(at / size_of::<Word>()), last.max(at));
            }
            slots += 1;
        }
        if last == 0 {
            return None; // nothing says where the slots end
        }
        let padded = |len: usize| len.next_multiple_of(ALIGNMENT);
        let end = last + padded(Node::new(&octets[last..]).octets().len());
        let start = |node: Node<'_>| node.address().checked_sub(octets.as_ptr().addr());
        let (at, old_len) = match old {
            Some(old) => (start(old)?, padded(old.octets().len())),
            None => (end, 0),
        };
        let place = u32::try_from(at / ALIGNMENT).ok()?;
        let (behind, new_len) = (octets.get(at + old_len..end)?, padded(new.len()));
        let next_end = end - old_len + new_len;
        let shift =
            |from: u32| u32::try_from(from as usize + new_len / ALIGNMENT - old_len / ALIGNMENT);
        let mut shard = zeros(next_end.div_ceil(size_of::<Word>()));
        let words = Arc::get_mut(&mut shard)?; // nothing else has it yet
        let (mut is_placed, own) = (false, u64::from(tag) << 32 | u64::from(place));
        for (word, former) in words.iter_mut().zip(&self.0[..slots]) {
            let Some(slot) = slot_of(former) else { continue };
            let from = slot as u32;
            is_placed |= slot == own;
            let to = if from > place { shift(from).ok()? } else { from };
            *word = (slot >> 32 << 32 | u64::from(to)).to_le_bytes();
        }
        if old.is_none() {
            let mut probed = (tag & slot_mask) as usize..slots - 1; // the last slot stays free
            let free = probed.find(|at| words[*at] == [0; 8])?;
            words[free] = own.to_le_bytes();
            is_placed = true;
        }
        let (slots_end, next) = (slots * size_of::<Word>(), words.as_flattened_mut());
        next[slots_end..at].copy_from_slice(&octets[slots_end..at]);
        next[at..at + new.len()].copy_from_slice(new);
        next[at + new_len..next_end].copy_from_slice(behind);
        is_placed.then_some(shard)
    }

    /// The nodes with the lower halves of their hashes, in no particular order. The shard must end
    /// where it does.
    pub(super) fn nodes(self) -> impl Iterator<Item = (u32, Node<'z>)> {
        let mut cursor = ShardCursor::default();
        iter::from_fn(move || cursor.next(self))
    }
}

/// A place among the nodes of a shard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShardCursor {
    /// The slot to look at next.
    at: usize,
    /// The place of the first node in memory so far, in words, where slots end; 0 before any.
    end: usize,
}

impl ShardCursor {
    /// The next node with the lower half of its hash; the shard must be the same each time, and end
    /// where it does.
    pub(super) fn next<'z>(&mut self, shard: Shard<'z>) -> Option<(u32, Node<'z>)> {
        // The first node in memory lies right behind the last slot, and is found before that.
        let mut end = if self.end == 0 { shard.0.len() } else { self.end };
        while self.at < end {
            let slot = u64::from_le_bytes(shard.0[self.at]);
            self.at += 1;
            if slot != 0 {
                let place = slot as u32;
                end = end.min(place as usize * ALIGNMENT / size_of::<Word>());
                self.end = end;
                let tag = (slot >> 32) as u32;
                return Some((tag, Node::new(shard.node(place))));
            }
        }
        None
    }
}

/// Returns `words` words of zeros.
pub(super) fn zeros(words: usize) -> Arc<[Word]> {
    iter::repeat_n([0; 8], words).collect()
}

/// The apex's node, in memory of its own or behind the only shard of a small zone.
#[derive(Clone)]
pub(super) struct ApexNode {
    /// The memory that holds the node.
    memory: Arc<[Word]>,
    /// The node's first word.
    start: u32,
}

impl ApexNode {
    /// The node of these octets, in memory of its own.
    pub(super) fn new(octets: &[u8]) -> Self {
        let mut memory = zeros(octets.len().div_ceil(size_of::<Word>()));
        let words = Arc::get_mut(&mut memory).unwrap_or_default(); // nothing else has it yet
        words.as_flattened_mut()[..octets.len()].copy_from_slice(octets);
        Self { memory, start: 0 }
    }

    /// The node behind a shard, in memory that holds both.
    pub(super) fn behind(shard: &[Word], apex: Node<'_>) -> Result<(Arc<[Word]>, Self), TooLarge> {
        let (start, apex) = (shard.len(), apex.octets());
        let mut memory = zeros(start + apex.len().div_ceil(size_of::<Word>()));
        let words = Arc::get_mut(&mut memory).unwrap_or_default(); // nothing else has it yet
        words[..start].copy_from_slice(shard);
        words[start..].as_flattened_mut()[..apex.len()].copy_from_slice(apex);
        let node = Self {
            memory: Arc::clone(&memory),
            start: u32::try_from(start).map_err(|_| TooLarge)?,
        };
        Ok((memory, node))
    }

    /// The node.
    #[inline]
    pub(super) fn node(&self) -> Node<'_> {
        Node::new(self.memory[self.start as usize..].as_flattened())
    }

    /// Octets of memory that the node takes, but for what it has in a shard's.
    pub(super) fn bytes(&self) -> usize {
        if self.start == 0 { size_of_val(&*self.memory) } else { 0 }
    }
}

/// A node as it goes into a shard: the lower half of its name's hash, and its octets.
pub(super) type Entry<'n> = (u32, &'n [u8]);

/// Writes shards; keeps its memory from one to the next.
#[derive(Default)]
pub(super) struct ShardWriter {
    /// The index of the node in each slot, plus one.
    slots: Vec<u32>,
    /// The place of each node.
    places: Vec<u32>,
}

impl ShardWriter {
    /// A shard of some nodes, in memory of its own.
    pub(super) fn make(
        &mut self,
        slot_mask: u32,
        nodes: &[Entry<'_>],
    ) -> Result<Arc<[Word]>, TooLarge> {
        let lens = nodes.iter().map(|(tag, node)| (*tag, node.len()));
        let mut shard = zeros(self.lay_out(slot_mask, lens)?);
        if let Some(words) = Arc::get_mut(&mut shard) {
            self.write(nodes, words); // nothing else has the shard yet
        }
        Ok(shard)
    }

    /// Decides where some nodes, each of a tag and a length, and their slots lie; returns how many
    /// words the shard takes.
    pub(super) fn lay_out(
        &mut self,
        slot_mask: u32,
        nodes: impl Iterator<Item = (u32, usize)> + Clone,
    ) -> Result<usize, TooLarge> {
        self.slots.clear();
        self.slots.resize(slot_mask as usize + 2, 0);
        for (number, (tag, _)) in (1..).zip(nodes.clone()) {
            let mut at = (tag & slot_mask) as usize;
            while self.slots.get(at).is_some_and(|slot| *slot != 0) {
                at += 1;
            }
            if at + 1 >= self.slots.len() {
                self.slots.resize(at + 2, 0); // the last slot is free
            }
            self.slots[at] = number;
        }
        self.places.clear();
        let mut at = self.slots.len() * size_of::<Word>();
        for (_, len) in nodes {
            self.places.push(u32::try_from(at / ALIGNMENT).map_err(|_| TooLarge)?);
            at = (at + len).next_multiple_of(ALIGNMENT);
        }
        Ok(at.div_ceil(size_of::<Word>()))
    }

    /// The number of slots of the shard that was laid out.
    pub(super) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// A slot of the shard that was laid out, whose nodes have these tags.
    pub(super) fn slot(&self, at: usize, tag_of: impl FnOnce(usize) -> u32) -> Word {
        let Some(index) = self.slots[at].checked_sub(1) else { return [0; 8] };
        let index = index as usize;
        (u64::from(tag_of(index)) << 32 | u64::from(self.places[index])).to_le_bytes()
    }

    /// Writes the nodes that were laid out, with their slots, into as many words of zeros.
    fn write(&self, nodes: &[Entry<'_>], words: &mut [Word]) {
        for (at, word) in words.iter_mut().enumerate().take(self.slots.len()) {
            *word = self.slot(at, |index| nodes[index].0);
        }
        let octets = words.as_flattened_mut();
        for ((_, node), place) in nodes.iter().zip(&self.places) {
            let at = *place as usize * ALIGNMENT;
            octets[at..at + node.len()].copy_from_slice(node);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::snapshot::node::NodeWriter;

    /// A shard of nodes with these hashes; each node's owner is its number.
    fn shard(slot_mask: u32, hashes: &[u64]) -> Arc<[Word]> {
        let nodes: Vec<Vec<u8>> = (0..hashes.len())
            .map(|number| {
                let mut node = Vec::new();
                NodeWriter::begin(&mut node, 0, &[number as u8]).end(0);
                node
            })
            .collect();
        let entries: Vec<(u32, &[u8])> =
            hashes.iter().zip(&nodes).map(|(hash, node)| (*hash as u32, &node[..])).collect();
        ShardWriter::default().make(slot_mask, &entries).unwrap()
    }

    /// Whether the shard has a node of that hash and number.
    fn has(shard: &[Word], slot_mask: u32, hash: u64, number: u8) -> bool {
        let owner = |node: &[u8]| Node::new(node).relative_owner() == [number];
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

    /// The owners of a shard's nodes with the lower halves of their hashes, in ascending order.
    fn listed(shard: &[Word]) -> Vec<(u32, Vec<u8>)> {
        let nodes = Shard(shard).nodes();
        let mut listed: Vec<_> =
            nodes.map(|(tag, node)| (tag, node.relative_owner().to_vec())).collect();
        listed.sort();
        listed
    }

    #[test]
    fn a_node_that_comes_or_changes_its_length_leaves_all_others_where_they_are_found() {
        const MASK: u32 = 31;
        let node = |owner: &[u8]| {
            let mut node = Vec::new();
            NodeWriter::begin(&mut node, 0, owner).end(0);
            node
        };
        let (mut present, mut random) = (shard(MASK, &[5]), 1_u32);
        let mut expected = listed(&present);
        for _ in 0..2000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let place = (random >> 8) as usize % expected.len();
            let owner = vec![random.to_le_bytes()[3]; 1 + (random >> 16) as usize % 9];
            let owner = owner.to_ascii_lowercase(); // as nodes have it
            let is_new = expected.len() < 24 && random >> 31 == 1;
            let tag = if is_new { random >> 4 } else { expected[place].0 };
            let former = (!is_new).then(|| expected[place].1.clone());
            let old = former.as_ref().map(|former| {
                let is_it = |octets: &[u8]| Node::new(octets).relative_owner() == former;
                Node::new(Shard(&present).find(MASK, tag.into(), is_it).unwrap())
            });
            let next = Shard(&present).with_node(MASK, old, (tag, &node(&owner)));
            let Some(next) = next else { continue };
            match former {
                Some(_) => expected[place].1 = owner,
                None => expected.push((tag, owner)),
            }
            expected.sort();
            present = next;
            assert_eq!(listed(&present), expected);
            for (tag, owner) in &expected {
                let is_it = |octets: &[u8]| Node::new(octets).relative_owner() == owner;
                assert!(Shard(&present).find(MASK, (*tag).into(), is_it).is_some());
            }
            let nodes: Vec<Vec<u8>> = expected.iter().map(|(_, owner)| node(owner)).collect();
            let nodes: Vec<(u32, &[u8])> =
                expected.iter().zip(&nodes).map(|((tag, _), node)| (*tag, &node[..])).collect();
            let least = ShardWriter::default().make(MASK, &nodes).unwrap().len();
            assert!(present.len() <= least, "{} words where {least} do", present.len());
        }
        assert_eq!(expected.len(), 24);
        let misplaced = (expected[0].0 ^ 1 << 20, &node(b"x")[..]);
        let old = Shard(&present).nodes().find(|(tag, _)| *tag == expected[0].0).unwrap().1;
        assert!(Shard(&present).with_node(MASK, Some(old), misplaced).is_none());
    }

    #[test]
    fn an_empty_shard_has_no_nodes() {
        let shard = shard(0, &[]);
        assert!(!has(&shard, 0, 5, 0));
        assert_eq!(Shard(&shard).nodes().count(), 0);
    }
}
