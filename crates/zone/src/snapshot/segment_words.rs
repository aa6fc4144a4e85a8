//! The words of a segment, one after the other, from pieces that are freed on the way.
//!
//! A segment is never in memory whole beside all that it is made of: the system hands out its pages
//! as they are written, and a piece is given back once its shards are.

use super::TooLarge;
use super::directory::Layout;
use super::shard::{ShardWriter, Word};
use crate::release::free_in_steps;
use std::ops::Range;
use std::sync::Arc;

/// Octets before a node in a piece: hash u64, length u32.
pub(super) const PIECE_HEADER: usize = 12;

/// Nodes of some shards, each behind its hash and its length, with their places by shard.
pub(super) struct Piece {
    /// The nodes of all shards.
    octets: Vec<u8>,
    /// The place of each node's hash, behind those of the shards before its own.
    places: Vec<usize>,
    /// Where the places of each shard begin, and where the last ones end.
    starts: Vec<usize>,
}

/// A node as it lies in a piece: the lower half of its name's hash, and its octets.
type PieceNode = (u32, Range<usize>);

impl Piece {
    /// The nodes of as many shards, of which a hash is in one.
    pub(super) fn new(octets: Vec<u8>, shards: usize, shard_of: impl Fn(u64) -> usize) -> Self {
        let mut starts = vec![0_usize; shards + 1];
        nodes_of(&octets).for_each(|(_, hash, _)| starts[shard_of(hash) + 1] += 1);
        (0..shards).for_each(|shard| starts[shard + 1] += starts[shard]);
        let (mut places, mut next) = (vec![0; starts[shards]], starts.clone());
        for (place, hash, _) in nodes_of(&octets) {
            let at = &mut next[shard_of(hash)];
            places[*at] = place;
            *at += 1;
        }
        Self { octets, places, starts }
    }

    /// The number of shards.
    fn shards(&self) -> usize {
        self.starts.len() - 1
    }

    /// Puts the nodes of a shard in the place of those before, and decides where they lie in it;
    /// returns how many words it takes.
    fn lay_out(
        &self,
        shard: usize,
        (layout, writer): (Layout, &mut ShardWriter),
        nodes: &mut Vec<PieceNode>,
    ) -> Result<usize, TooLarge> {
        let places = &self.places[self.starts[shard]..self.starts[shard + 1]];
        nodes.clear();
        nodes.extend(places.iter().filter_map(|place| {
            let (_, hash, node) = nodes_of(&self.octets[*place..]).next()?;
            let start = place + PIECE_HEADER;
            Some((hash as u32, start..start + node.len()))
        }));
        writer.lay_out(layout.slot_mask, nodes.iter().map(|(tag, node)| (*tag, node.len())))
    }
}

/// Lays out the segment of some pieces, and frees them; returns it with the number of words of each
/// shard.
pub(super) fn segment(
    pieces: Vec<Piece>,
    layout: Layout,
    writer: &mut ShardWriter,
) -> Result<(Arc<[Word]>, Vec<usize>), TooLarge> {
    let (mut nodes, mut lens) = (Vec::new(), Vec::new());
    for piece in &pieces {
        for shard in 0..piece.shards() {
            lens.push(piece.lay_out(shard, (layout, &mut *writer), &mut nodes)?);
        }
    }
    let mut words = SegmentWords {
        layout,
        writer,
        pieces: pieces.into_iter(),
        piece: Piece { octets: Vec::new(), places: Vec::new(), starts: vec![0] },
        shard: 0,
        nodes,
        left: 0,
        slot: 0,
        node: 0,
        at: 0,
    };
    // The number of words is known, so that each is written where it stays.
    let segment = (0..lens.iter().sum::<usize>()).map(|_| words.next_word()).collect();
    Ok((segment, lens))
}

/// Hands out the words of the shards of some pieces.
struct SegmentWords<'w> {
    /// How many slots a shard has.
    layout: Layout,
    /// What has laid out the present shard.
    writer: &'w mut ShardWriter,
    /// The pieces to come.
    pieces: std::vec::IntoIter<Piece>,
    /// The present piece.
    piece: Piece,
    /// The number of the next shard in it.
    shard: usize,
    /// The nodes of the present shard.
    nodes: Vec<PieceNode>,
    /// The number of words of the present shard to come.
    left: usize,
    /// The next slot of the present shard.
    slot: usize,
    /// The next node of the present shard.
    node: usize,
    /// The next octet of that node.
    at: usize,
}

impl SegmentWords<'_> {
    /// The next word.
    fn next_word(&mut self) -> Word {
        if self.left == 0 {
            self.begin_shard();
        }
        self.left = self.left.saturating_sub(1);
        if self.slot < self.writer.slot_count() {
            self.slot += 1;
            return self.writer.slot(self.slot - 1, |index| self.nodes[index].0);
        }
        let mut word = [0; 8];
        for half in word.as_chunks_mut::<4>().0 {
            let Some((_, node)) = self.nodes.get(self.node) else { break };
            let rest = &self.piece.octets[node.start + self.at..node.end];
            match rest.first_chunk() {
                Some(octets) => *half = *octets,
                None => half[..rest.len()].copy_from_slice(rest),
            }
            self.at += half.len();
            if self.at >= node.len() {
                (self.node, self.at) = (self.node + 1, 0);
            }
        }
        word
    }

    /// Goes on to the next shard.
    fn begin_shard(&mut self) {
        while self.shard >= self.piece.shards() {
            let Some(next) = self.pieces.next() else { return };
            free_in_steps(std::mem::replace(&mut self.piece, next).octets);
            self.shard = 0;
        }
        let how = (self.layout, &mut *self.writer);
        let len = self.piece.lay_out(self.shard, how, &mut self.nodes);
        self.left = len.unwrap_or(0); // it was laid out before
        self.shard += 1;
        (self.slot, self.node, self.at) = (0, 0, 0);
    }
}

impl Drop for SegmentWords<'_> {
    fn drop(&mut self) {
        free_in_steps(std::mem::take(&mut self.piece.octets));
    }
}

/// The nodes of a piece with the places and hashes before them.
pub(super) fn nodes_of(piece: &[u8]) -> impl Iterator<Item = (usize, u64, &[u8])> {
    let mut rest = piece;
    std::iter::from_fn(move || {
        let place = piece.len() - rest.len();
        let (hash, tail) = rest.split_first_chunk()?;
        let (len, tail) = tail.split_first_chunk()?;
        let (node, tail) = tail.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        rest = tail;
        Some((place, u64::from_le_bytes(*hash), node))
    })
}
