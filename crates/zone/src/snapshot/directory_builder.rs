//! The shards of a zone that is built, before the zone shares them.
//!
//! ```text
//! push ─► part of a branch: nodes ─► seal ─► segment of the branch ─► finish ─► directory
//! ```
//!
//! Nodes are collected by branch and sorted into shards branch by branch, so that memory is read
//! and written in order, or within what the processor's cache holds. Nodes in segments may still be
//! changed, as long as they keep their lengths.

use super::directory::{BRANCH, Directory, Layout, segment_of};
use super::node::Node;
use super::shard::{Entry, Shard, ShardWriter, Word};
use super::{TooLarge, node};
use std::sync::Arc;

/// Builds the shards of a zone from its nodes, in whatever order they come.
pub(super) struct DirectoryBuilder {
    /// How many shards and slots there will be.
    layout: Layout,
    /// The branches, sealed or not.
    branches: Vec<UnfinishedBranch>,
    /// What lays out shards.
    writer: ShardWriter,
}

/// A branch while its zone is built.
#[derive(Default)]
struct UnfinishedBranch {
    /// The nodes that came before the branch was sealed, each behind its hash and its length.
    part: Vec<u8>,
    /// The shards, one behind the other; none before the branch is sealed.
    segment: Arc<[Word]>,
    /// The number of words of each shard.
    lens: Vec<usize>,
    /// The first word of each shard, and the end of the last one.
    starts: Vec<usize>,
}

/// Where a node lies in a sealed branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodePlace {
    /// The number of the branch.
    branch: usize,
    /// The place of the node's first octet in the segment.
    octet: usize,
}

/// Octets before a node in a part: hash u64, length u32.
const PART_HEADER: usize = 12;
/// The least octets by which a part grows.
const PART_GROWTH_MIN: usize = 64 << 10;
/// A part grows by this part of its octets at least: so it is copied seldom, and little of its
/// memory is unused.
const PART_GROWTH: usize = 8;

impl DirectoryBuilder {
    /// Begins the shards of a zone of that layout.
    pub(super) fn new(layout: Layout) -> Self {
        let mut branches = Vec::new();
        let count = layout.shards().div_ceil(BRANCH) as usize;
        branches.resize_with(count, UnfinishedBranch::default);
        Self { layout, branches, writer: ShardWriter::default() }
    }

    /// How many shards and slots there will be.
    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    /// The number of branches.
    pub(super) fn branch_count(&self) -> usize {
        self.branches.len()
    }

    /// Adds the node that a function appends to a buffer, under a hash, to a branch that is not
    /// sealed.
    pub(super) fn push<E: From<TooLarge>>(
        &mut self,
        hash: u64,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let part = &mut self.branches[(self.layout.shard_of(hash) / BRANCH) as usize].part;
        let header = part.len();
        if part.capacity() - header < PART_GROWTH_MIN / 2 && header > PART_GROWTH_MIN {
            part.reserve_exact(PART_GROWTH_MIN.max(header / PART_GROWTH));
        }
        part.extend_from_slice(&hash.to_le_bytes());
        part.extend_from_slice(&[0; 4]);
        debug_assert_eq!(part.len(), header + PART_HEADER);
        write(part)?;
        let len = u32::try_from(part.len() - header - PART_HEADER).map_err(|_| TooLarge)?;
        part[header + 8..header + PART_HEADER].copy_from_slice(&len.to_le_bytes());
        Ok(())
    }

    /// Lays out the shards of a branch of which all nodes have come, and frees what they were
    /// collected in.
    pub(super) fn seal(&mut self, branch: usize) -> Result<(), TooLarge> {
        let layout = self.layout;
        let unfinished = &mut self.branches[branch];
        let part = std::mem::take(&mut unfinished.part);
        let sorted = SortedPart::new(&part, layout);
        let mut nodes = Vec::new();
        let lens = (0..sorted.shards()).map(|shard| {
            sorted.nodes_of(shard, &mut nodes);
            self.writer.lay_out(layout.slot_mask, &nodes)
        });
        unfinished.lens = lens.collect::<Result<_, _>>()?;
        let mut nodes = Vec::new();
        unfinished.segment = segment_of(&unfinished.lens, |shard, words| {
            sorted.nodes_of(shard, &mut nodes);
            self.writer.lay_out(layout.slot_mask, &nodes)?;
            self.writer.write(&nodes, words);
            Ok(())
        })?;
        let mut end = 0;
        unfinished.starts.push(end);
        unfinished.starts.extend(unfinished.lens.iter().map(|len| {
            end += len;
            end
        }));
        Ok(())
    }

    /// Ends with all shards; seals the branches that are not yet.
    pub(super) fn finish(mut self) -> Result<Directory, TooLarge> {
        if let [UnfinishedBranch { part, lens, .. }] = &self.branches[..]
            && self.layout.shards() == 1
            && lens.is_empty()
        {
            let nodes = nodes_of(part).map(|(_, hash, node)| (hash as u32, node));
            let shard = self.writer.make(self.layout.slot_mask, &nodes.collect::<Vec<_>>())?;
            return Ok(Directory::of_shard(self.layout, shard));
        }
        for branch in 0..self.branch_count() {
            if self.branches[branch].lens.is_empty() {
                self.seal(branch)?;
            }
        }
        let segments = self.branches.into_iter().map(|branch| (branch.segment, branch.lens));
        Directory::of_segments(self.layout, &segments.collect::<Vec<_>>())
    }

    /// The nodes of a shard in a sealed branch, with their places.
    pub(super) fn nodes_of(&self, shard: u32) -> impl Iterator<Item = (NodePlace, Node<'_>)> {
        let (branch, words) = self.shard(shard);
        let start = self.branches[branch].segment.as_ptr().addr();
        let nodes = Shard(words).nodes();
        nodes.map(move |(_, node)| (NodePlace { branch, octet: node.address() - start }, node))
    }

    /// The node with a hash whose owner above the apex matches, if its branch is sealed.
    pub(super) fn find(
        &self,
        hash: u64,
        mut matches: impl FnMut(&[u8]) -> bool,
    ) -> Option<(NodePlace, Node<'_>)> {
        let (branch, words) = self.shard(self.layout.shard_of(hash));
        let is_it = |octets| matches(Node::new(octets).relative_owner());
        let node = Node::new(Shard(words).find(self.layout.slot_mask, hash, is_it)?);
        let start = self.branches[branch].segment.as_ptr().addr();
        Some((NodePlace { branch, octet: node.address() - start }, node))
    }

    /// Sets flags of a node.
    pub(super) fn add_flags(&mut self, place: NodePlace, flags: u8) {
        if let Some(octet) = self.octets_from(place).first_mut() {
            *octet |= flags;
        }
    }

    /// Counts one more name below a node that was written as one with names below it.
    pub(super) fn count_child(&mut self, place: NodePlace) {
        node::count_child(self.octets_from(place));
    }

    /// The octets from the first of a node on.
    fn octets_from(&mut self, place: NodePlace) -> &mut [u8] {
        let segment = Arc::get_mut(&mut self.branches[place.branch].segment);
        let octets = segment.map(<[Word]>::as_flattened_mut); // nothing else has it yet
        octets.and_then(|octets| octets.get_mut(place.octet..)).unwrap_or_default()
    }

    /// The branch of a shard, and the shard's words; none before the branch is sealed.
    fn shard(&self, shard: u32) -> (usize, &[Word]) {
        let branch = (shard / BRANCH) as usize;
        let UnfinishedBranch { segment, starts, .. } = &self.branches[branch];
        let index = (shard % BRANCH) as usize;
        match (starts.get(index), starts.get(index + 1)) {
            (Some(start), Some(end)) => (branch, &segment[*start..*end]),
            _ => (branch, &[]),
        }
    }
}

/// The nodes of a part, in the order of their shards.
struct SortedPart<'p> {
    /// The part.
    part: &'p [u8],
    /// The place of each node in the part, behind those of the shards before its own.
    places: Vec<usize>,
    /// Where the places of each shard begin, and where the last ones end.
    starts: Vec<usize>,
}

impl<'p> SortedPart<'p> {
    /// The nodes of a branch of a zone of that layout.
    fn new(part: &'p [u8], layout: Layout) -> Self {
        let count = layout.shards().min(BRANCH) as usize;
        let shard_of = |hash: u64| (layout.shard_of(hash) % BRANCH) as usize;
        let mut starts = vec![0_usize; count + 1];
        nodes_of(part).for_each(|(_, hash, _)| starts[shard_of(hash) + 1] += 1);
        (0..count).for_each(|shard| starts[shard + 1] += starts[shard]);
        let (mut places, mut next) = (vec![0; starts[count]], starts.clone());
        for (place, hash, _) in nodes_of(part) {
            let at = &mut next[shard_of(hash)];
            places[*at] = place;
            *at += 1;
        }
        Self { part, places, starts }
    }

    /// The number of shards.
    fn shards(&self) -> usize {
        self.starts.len() - 1
    }

    /// Puts the nodes of a shard, with the lower halves of their hashes, in the place of others.
    fn nodes_of(&self, shard: usize, nodes: &mut Vec<Entry<'p>>) {
        let places = &self.places[self.starts[shard]..self.starts[shard + 1]];
        let node_at = |place: &usize| nodes_of(&self.part[*place..]).next();
        nodes.clear();
        let found = places.iter().filter_map(node_at);
        nodes.extend(found.map(|(_, hash, node)| (hash as u32, node)));
    }
}

/// The nodes of a part with their places and hashes.
fn nodes_of(part: &[u8]) -> impl Iterator<Item = (usize, u64, &[u8])> {
    let mut rest = part;
    std::iter::from_fn(move || {
        let place = part.len() - rest.len();
        let (hash, tail) = rest.split_first_chunk()?;
        let (len, tail) = tail.split_first_chunk()?;
        let (node, tail) = tail.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        rest = tail;
        Some((place, u64::from_le_bytes(*hash), node))
    })
}
