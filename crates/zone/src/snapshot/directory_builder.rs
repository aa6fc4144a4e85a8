//! The shards of a zone that is built, before the zone shares them.
//!
//! ```text
//! push ─► pieces of a branch: nodes ─► seal ─► segment of the branch ─► finish ─► directory
//! ```
//!
//! Nodes are collected by branch and sorted into shards branch by branch, so that memory is read
//! and written in order, or within what the processor's cache holds. The nodes of a branch that is
//! a large part of the zone lie in several pieces of memory, which are freed one by one while its
//! segment is written. Nodes in segments may still be changed, as long as they keep their lengths.

use super::directory::{BRANCH, Directory, Layout};
use super::node::Node;
use super::segment_words::{PIECE_HEADER, Piece, nodes_of, segment};
use super::shard::{Shard, ShardWriter, Word};
use super::{TooLarge, node};
use std::sync::Arc;

/// Builds the shards of a zone from its nodes, in whatever order they come.
pub(super) struct DirectoryBuilder {
    /// How many shards and slots there will be.
    layout: Layout,
    /// The number of shards whose nodes lie in one piece.
    piece_shards: u32,
    /// The branches, sealed or not.
    branches: Vec<UnfinishedBranch>,
    /// What lays out shards.
    writer: ShardWriter,
}

/// A branch while its zone is built.
#[derive(Default)]
struct UnfinishedBranch {
    /// The nodes that came before the branch was sealed, each behind its hash and its length: those
    /// of some shards in each piece.
    pieces: Vec<Vec<u8>>,
    /// The shards, one behind the other; none before the branch is sealed.
    segment: Arc<[Word]>,
    /// The number of words of each shard.
    lens: Vec<usize>,
    /// The first word of each shard, and the end of the last one.
    starts: Vec<usize>,
}

/// Where a node lies in a sealed branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodePlace {
    /// The number of the branch.
    branch: usize,
    /// The place of the node's first octet in the segment.
    octet: usize,
}

/// The least number of pieces that the nodes of a zone of several shards lie in: while the nodes of
/// one are copied, it is in memory twice. A power of two.
const PIECES_MIN: u32 = 16;
/// The least octets by which a piece grows.
const PIECE_GROWTH_MIN: usize = 64 << 10;
/// A piece grows by this part of its octets at least: so it is copied seldom, and little of its
/// memory is unused.
const PIECE_GROWTH: usize = 8;

impl DirectoryBuilder {
    /// Begins the shards of a zone of that layout.
    pub(super) fn new(layout: Layout) -> Self {
        let mut branches = Vec::new();
        let (count, of_each) = (layout.shards().div_ceil(BRANCH), layout.shards().min(BRANCH));
        let pieces = (PIECES_MIN / count).clamp(1, of_each);
        branches.resize_with(count as usize, || UnfinishedBranch {
            pieces: vec![Vec::new(); pieces as usize],
            ..UnfinishedBranch::default()
        });
        Self { layout, piece_shards: of_each / pieces, branches, writer: ShardWriter::default() }
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
        let shard = self.layout.shard_of(hash);
        let pieces = &mut self.branches[(shard / BRANCH) as usize].pieces;
        let piece = &mut pieces[(shard % BRANCH / self.piece_shards) as usize];
        let header = piece.len();
        if piece.capacity() - header < PIECE_GROWTH_MIN / 2 && header > PIECE_GROWTH_MIN {
            piece.reserve_exact(PIECE_GROWTH_MIN.max(header / PIECE_GROWTH));
        }
        piece.extend_from_slice(&hash.to_le_bytes());
        piece.extend_from_slice(&[0; 4]);
        debug_assert_eq!(piece.len(), header + PIECE_HEADER);
        write(piece)?;
        let len = u32::try_from(piece.len() - header - PIECE_HEADER).map_err(|_| TooLarge)?;
        piece[header + 8..header + PIECE_HEADER].copy_from_slice(&len.to_le_bytes());
        Ok(())
    }

    /// Lays out the shards of a branch of which all nodes have come, and frees what they were
    /// collected in.
    pub(super) fn seal(&mut self, branch: usize) -> Result<(), TooLarge> {
        let (layout, piece_shards) = (self.layout, self.piece_shards);
        let unfinished = &mut self.branches[branch];
        let in_piece = |hash| (layout.shard_of(hash) % piece_shards) as usize;
        let pieces = std::mem::take(&mut unfinished.pieces).into_iter();
        let pieces = pieces.map(|octets| Piece::new(octets, piece_shards as usize, in_piece));
        let sealed = segment(pieces.collect(), layout, &mut self.writer)?;
        (unfinished.segment, unfinished.lens) = sealed;
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
        if let [UnfinishedBranch { pieces, lens, .. }] = &self.branches[..]
            && self.layout.shards() == 1
            && lens.is_empty()
        {
            let nodes = pieces.iter().flat_map(|piece| nodes_of(piece));
            let nodes = nodes.map(|(_, hash, node)| (hash as u32, node));
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

    /// Counts more names below a node that was written as one with names below it. Takes as long as
    /// the node has sets.
    pub(super) fn count_children(&mut self, place: NodePlace, more: u32) {
        node::count_children(self.octets_from(place), more);
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
