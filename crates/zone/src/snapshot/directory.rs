//! The shards of a zone, shared between its versions.
//!
//! ```text
//! small zone   one shard
//! other        branches ─► branch: entries ─► shard in the branch's segment, or of its own
//!                                  segment  =  shard | shard | …
//! ```
//!
//! Bits 32 and up of a name's hash say which shard the name belongs to. A change writes the shards
//! of the changed names anew, each into memory of its own, and copies the entries of their branches
//! and the list of branches; all else is shared. The segment of a branch is written anew once more
//! than a quarter of its shards have left it, so that what lies there unused is bounded.

use super::TooLarge;
use super::shard::{Shard, ShardWriter};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names that a shard has on average at most. A change copies one shard, some 20 KiB of a common
/// zone; smaller ones would make the list of shards longer, which every lookup reads.
const SHARD_NAMES: usize = 256;
/// Slots of a shard, when a zone has several.
const SHARD_SLOTS: u32 = 512;
/// Names per shard up to which a zone that grows keeps its shards: slots taken to nine sixteenths.
const GROWN_NAMES: usize = 288;
/// Names per shard below which a zone that shrinks gets fewer shards.
const SHRUNK_NAMES: usize = 64;
/// Shards of a branch. A change copies 16 octets for each; their segment of some 4 MiB is large
/// enough for huge pages, and small enough to be written anew within two milliseconds.
const BRANCH: u32 = 256;
/// The part of a branch's shards, one in so many, that may lie outside its segment.
const OUTSIDE_PART: usize = 4;
/// Segments are addressed in units of so many octets.
const UNIT: usize = 8;

/// How many shards a zone has, and how many slots a shard has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The number of shards, a power of two.
    pub(super) shards: u32,
    /// The number of slots less one, of which there are a power of two.
    pub(super) slot_mask: u32,
}

impl Layout {
    /// The layout of a zone with so many names.
    pub(super) fn for_names(names: usize) -> Self {
        if names <= SHARD_NAMES {
            let slots = (names * 2).next_power_of_two().max(4) as u32;
            return Self { shards: 1, slot_mask: slots - 1 };
        }
        let shards = names.div_ceil(SHARD_NAMES).next_power_of_two();
        Self { shards: u32::try_from(shards).unwrap_or(1 << 31), slot_mask: SHARD_SLOTS - 1 }
    }

    /// The layout of the same zone when it has so many names: mostly the same.
    pub(super) fn after_change(self, names: usize) -> Self {
        let shards = self.shards as usize;
        let stays = (shards * SHRUNK_NAMES..=shards * GROWN_NAMES).contains(&names);
        if self.shards > 1 && stays { self } else { Self::for_names(names) }
    }

    /// The shard of a name.
    #[inline]
    pub(super) fn shard_of(self, hash: u64) -> u32 {
        (hash >> 32) as u32 & (self.shards - 1)
    }
}

/// The shards of a version of a zone.
#[derive(Clone)]
pub(super) struct Directory {
    /// How many shards and slots there are.
    layout: Layout,
    /// Where the shards lie.
    form: Form,
}

/// Where shards lie.
#[derive(Clone)]
enum Form {
    /// The only shard.
    One(Arc<[u8]>),
    /// The branches, of [`BRANCH`] shards each but for the last.
    Many(Arc<[Branch]>),
}

/// Some of the shards of a zone.
#[derive(Clone)]
struct Branch {
    /// The shards that have not changed since the branch was written.
    segment: Arc<[u8]>,
    /// Where each shard lies.
    entries: Arc<[Entry]>,
}

/// Where a shard lies.
#[derive(Clone)]
enum Entry {
    /// In the segment of its branch.
    Inside {
        /// Its first octet, in units of [`UNIT`].
        start: u32,
        /// The number of its octets.
        len: u32,
    },
    /// In memory of its own.
    Outside(Arc<[u8]>),
}

impl Branch {
    /// A shard of the branch.
    #[inline]
    fn shard(&self, index: u32) -> &[u8] {
        match &self.entries[index as usize] {
            Entry::Inside { start, len } => {
                &self.segment[*start as usize * UNIT..][..*len as usize]
            }
            Entry::Outside(shard) => shard,
        }
    }

    /// The branch with some shards replaced.
    fn with_replaced(&self, changed: &[(u32, Arc<[u8]>)]) -> Result<Self, TooLarge> {
        let mut entries = self.entries.to_vec();
        for (index, shard) in changed {
            entries[*index as usize] = Entry::Outside(Arc::clone(shard));
        }
        let is_outside = |entry: &&Entry| matches!(entry, Entry::Outside(_));
        let outside = entries.iter().filter(is_outside).count();
        let branch = Self { segment: Arc::clone(&self.segment), entries: entries.into() };
        match outside * OUTSIDE_PART > branch.entries.len() {
            true => branch.repacked(),
            false => Ok(branch),
        }
    }

    /// The branch with all shards in a new segment.
    fn repacked(&self) -> Result<Self, TooLarge> {
        let shards = || (0..self.entries.len() as u32).map(|index| self.shard(index));
        let octets = shards().map(|shard| shard.len().next_multiple_of(UNIT)).sum();
        let mut segment = Segment { octets: Vec::with_capacity(octets), entries: Vec::new() };
        for shard in shards() {
            segment.write(|out| {
                out.extend_from_slice(shard);
                Ok(())
            })?;
        }
        Ok(segment.into())
    }
}

/// A segment while it is written.
struct Segment {
    /// The shards written so far.
    octets: Vec<u8>,
    /// Where each of them lies.
    entries: Vec<Entry>,
}

impl Segment {
    /// Appends the shard that a function writes.
    fn write(
        &mut self,
        shard: impl FnOnce(&mut Vec<u8>) -> Result<(), TooLarge>,
    ) -> Result<(), TooLarge> {
        self.octets.resize(self.octets.len().next_multiple_of(UNIT), 0);
        let at = self.octets.len();
        shard(&mut self.octets)?;
        let start = u32::try_from(at / UNIT).map_err(|_| TooLarge)?;
        let len = u32::try_from(self.octets.len() - at).map_err(|_| TooLarge)?;
        self.entries.push(Entry::Inside { start, len });
        Ok(())
    }
}

impl From<Segment> for Branch {
    fn from(segment: Segment) -> Self {
        Self { segment: segment.octets.into(), entries: segment.entries.into() }
    }
}

impl Directory {
    /// How many shards and slots there are.
    #[inline]
    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    /// A shard by its number.
    #[inline]
    pub(super) fn shard(&self, index: u32) -> Shard<'_> {
        Shard(match &self.form {
            Form::One(shard) => shard,
            Form::Many(branches) => branches[(index / BRANCH) as usize].shard(index % BRANCH),
        })
    }

    /// All shards.
    pub(super) fn shards(&self) -> impl Iterator<Item = Shard<'_>> {
        (0..self.layout.shards).map(|index| self.shard(index))
    }

    /// The same shards but for some that are replaced.
    pub(super) fn with_replaced(
        &self,
        changed: BTreeMap<u32, Arc<[u8]>>,
        layout: Layout,
    ) -> Result<Self, TooLarge> {
        debug_assert_eq!(self.layout.shards, layout.shards);
        let form = match &self.form {
            Form::One(shard) => {
                Form::One(changed.into_values().next().unwrap_or_else(|| Arc::clone(shard)))
            }
            Form::Many(branches) => {
                let mut branches = branches.to_vec();
                let changed: Vec<(u32, Arc<[u8]>)> = changed.into_iter().collect();
                for of_branch in changed.chunk_by(|one, two| one.0 / BRANCH == two.0 / BRANCH) {
                    let branch = &mut branches[(of_branch[0].0 / BRANCH) as usize];
                    let inner: Vec<_> = of_branch
                        .iter()
                        .map(|(index, shard)| (index % BRANCH, Arc::clone(shard)))
                        .collect();
                    *branch = branch.with_replaced(&inner)?;
                }
                Form::Many(branches.into())
            }
        };
        Ok(Self { layout, form })
    }

    /// The large pieces of memory that lookups read at random.
    pub(super) fn memory(&self) -> impl Iterator<Item = &[u8]> {
        let (one, many): (Option<&[u8]>, &[Branch]) = match &self.form {
            Form::One(shard) => (Some(shard), &[]),
            Form::Many(branches) => (None, branches),
        };
        one.into_iter().chain(many.iter().map(|branch| &*branch.segment))
    }

    /// Octets of memory that the shards take, with what lies unused in segments.
    pub(super) fn bytes(&self) -> usize {
        let Form::Many(branches) = &self.form else { return self.shard(0).0.len() };
        let entries = branches.iter().flat_map(|branch| branch.entries.iter());
        let outside = entries.map(|entry| match entry {
            Entry::Inside { .. } => size_of::<Entry>(),
            Entry::Outside(shard) => size_of::<Entry>() + shard.len(),
        });
        let segments = branches.iter().map(|it| size_of::<Branch>() + it.segment.len());
        outside.sum::<usize>() + segments.sum::<usize>()
    }
}

/// Builds the shards of a zone from its nodes, in whatever order they come.
///
/// Nodes are collected by branch and sorted into shards branch by branch, so that memory is read
/// and written in order, or within what the processor's cache holds.
pub(super) struct DirectoryBuilder {
    /// How many shards and slots there will be.
    layout: Layout,
    /// The nodes of each branch, each behind its hash and its length.
    parts: Vec<Vec<u8>>,
}

/// Octets before a node in a part: hash u64, length u32.
const PART_HEADER: usize = 12;

impl DirectoryBuilder {
    /// Begins the shards of a zone of that layout.
    pub(super) fn new(layout: Layout) -> Self {
        Self { layout, parts: vec![Vec::new(); layout.shards.div_ceil(BRANCH) as usize] }
    }

    /// Adds the node that a function appends to a buffer, under a hash.
    pub(super) fn push<E: From<TooLarge>>(
        &mut self,
        hash: u64,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let part = &mut self.parts[(self.layout.shard_of(hash) / BRANCH) as usize];
        let header = part.len();
        part.extend_from_slice(&hash.to_le_bytes());
        part.extend_from_slice(&[0; 4]);
        debug_assert_eq!(part.len(), header + PART_HEADER);
        write(part)?;
        let len = u32::try_from(part.len() - header - PART_HEADER).map_err(|_| TooLarge)?;
        part[header + 8..header + PART_HEADER].copy_from_slice(&len.to_le_bytes());
        Ok(())
    }

    /// Ends with all shards.
    pub(super) fn finish(self) -> Result<Directory, TooLarge> {
        let layout = self.layout;
        let mut writer = ShardWriter::default();
        if layout.shards == 1 {
            let mut out = Vec::new();
            let part = &self.parts[0];
            let nodes: Vec<_> = nodes_of(part).map(|(hash, node)| (hash as u32, node)).collect();
            writer.write(&mut out, layout.slot_mask, &nodes)?;
            return Ok(Directory { layout, form: Form::One(out.into()) });
        }
        let mut branches = Vec::with_capacity(self.parts.len());
        for part in self.parts {
            branches.push(branch_of(&part, layout, &mut writer)?);
        }
        Ok(Directory { layout, form: Form::Many(branches.into()) })
    }
}

/// The nodes of a part with their hashes.
fn nodes_of(part: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut rest = part;
    std::iter::from_fn(move || {
        let (hash, tail) = rest.split_first_chunk()?;
        let (len, tail) = tail.split_first_chunk()?;
        let (node, tail) = tail.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        rest = tail;
        Some((u64::from_le_bytes(*hash), node))
    })
}

/// Sorts the nodes of a part into the shards of a branch.
fn branch_of(part: &[u8], layout: Layout, writer: &mut ShardWriter) -> Result<Branch, TooLarge> {
    let count = layout.shards.min(BRANCH) as usize;
    let shard_of = |hash: u64| (layout.shard_of(hash) % BRANCH) as usize;
    // Where the nodes of each shard begin, then where its next one goes.
    let mut starts = vec![0_usize; count + 1];
    nodes_of(part).for_each(|(hash, _)| starts[shard_of(hash) + 1] += 1);
    (0..count).for_each(|shard| starts[shard + 1] += starts[shard]);
    let mut nodes: Vec<(u32, &[u8])> = vec![(0, &[]); starts[count]];
    let mut next = starts.clone();
    for (hash, node) in nodes_of(part) {
        let at = &mut next[shard_of(hash)];
        nodes[*at] = (hash as u32, node);
        *at += 1;
    }
    let slots = count * (layout.slot_mask as usize + 1) * 8;
    let mut segment = Segment { octets: Vec::with_capacity(part.len() + slots), entries: vec![] };
    for shard in 0..count {
        let nodes = &nodes[starts[shard]..starts[shard + 1]];
        segment.write(|out| writer.write(out, layout.slot_mask, nodes))?;
    }
    Ok(segment.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A directory of so many nodes; each has its number as its owner.
    fn directory(nodes: u64) -> Directory {
        let mut builder = DirectoryBuilder::new(Layout::for_names(nodes as usize));
        for number in 0..nodes {
            let write = |out: &mut Vec<u8>| {
                super::super::node::NodeWriter::begin(out, 0, number.to_string().as_bytes()).end(0);
                Ok::<_, TooLarge>(())
            };
            builder.push(number.wrapping_mul(0x9e37_79b9_7f4a_7c15), write).unwrap();
        }
        builder.finish().unwrap()
    }

    #[test]
    fn each_node_is_in_the_shard_of_its_hash() {
        for count in [1, 256, 257, 3000, 200_000] {
            let directory = directory(count);
            assert_eq!(
                directory.shards().map(|it| it.nodes().count()).sum::<usize>(),
                count as usize
            );
            for number in (0..count).step_by(97) {
                let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let is_it = |node: &[u8]| node[4..].starts_with(number.to_string().as_bytes());
                let layout = directory.layout();
                let shard = directory.shard(layout.shard_of(hash));
                assert!(shard.find(layout.slot_mask, hash, is_it).is_some());
            }
        }
    }

    #[test]
    fn a_branch_is_written_anew_when_a_quarter_of_its_shards_has_left() {
        let mut directory = directory(20_000); // 128 shards
        let Form::Many(first) = directory.form.clone() else { panic!() };
        for index in 0..33 {
            let Form::Many(branches) = &directory.form else { panic!() };
            assert!(Arc::ptr_eq(&branches[0].segment, &first[0].segment), "{index}");
            let shard: Arc<[u8]> = directory.shard(index).0.into();
            let layout = directory.layout();
            directory = directory.with_replaced([(index, shard)].into(), layout).unwrap();
        }
        let Form::Many(branches) = &directory.form else { panic!() };
        assert!(!Arc::ptr_eq(&branches[0].segment, &first[0].segment));
        assert!(branches[0].entries.iter().all(|it| matches!(it, Entry::Inside { .. })));
        assert_eq!(directory.shards().map(|it| it.nodes().count()).sum::<usize>(), 20_000);
    }
}
