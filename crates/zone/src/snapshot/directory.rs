//! The shards of a zone, shared between its versions.
//!
//! ```text
//! small zone   shard
//! other        branches ─► branch: entries ─► shard, in the branch's segment or of its own
//! segment      shard | shard | …
//! ```
//!
//! Bits 32 and up of a name's hash say which shard the name belongs to. A change writes the shards
//! of the changed names anew, each into memory of its own, and copies the entries of their branches
//! and the list of branches; all else is shared. Once what lies unused in the segment of a branch
//! is more than a sixth of the branch's words, the shards that never changed move to a new segment.
//! So shards that change stay out of segments, and a branch has its segment written anew five times
//! at most.

use super::shard::{Shard, Word, zeros};
use super::{Node, TooLarge};
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
/// Shards of a branch. A change copies 24 octets for each; their segment of some 4 MiB is large
/// enough for huge pages, and small enough to be written anew within two milliseconds. A power of
/// two; tests have zones of several branches with few names.
pub(super) const BRANCH: u32 = if cfg!(test) { 16 } else { 256 };
/// The part of a branch, one in so many of its words, that may lie unused in its segment. A larger
/// part costs memory, a smaller one time: a shard that changes for the first time has two or
/// three other shards copied on average.
const UNUSED_PART: usize = 6;

/// How many shards a zone has, and how many slots a shard has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The number of shards less one, of which there are a power of two.
    shard_mask: u32,
    /// The number of slots less one, of which there are a power of two.
    pub(super) slot_mask: u32,
}

impl Layout {
    /// The layout of a zone with so many names.
    pub(super) fn for_names(names: usize) -> Self {
        if names <= SHARD_NAMES {
            let slots = (names * 2).next_power_of_two().max(4) as u32;
            return Self { shard_mask: 0, slot_mask: slots - 1 };
        }
        let shards = names.div_ceil(SHARD_NAMES).next_power_of_two();
        let shard_mask = u32::try_from(shards - 1).unwrap_or(u32::MAX >> 1);
        Self { shard_mask, slot_mask: SHARD_SLOTS - 1 }
    }

    /// The layout of the same zone when it has so many names: mostly the same.
    pub(super) fn after_change(self, names: usize) -> Self {
        let shards = self.shards() as usize;
        let stays = (shards * SHRUNK_NAMES..=shards * GROWN_NAMES).contains(&names);
        if shards > 1 && stays { self } else { Self::for_names(names) }
    }

    /// The number of shards.
    pub(super) fn shards(self) -> u32 {
        self.shard_mask + 1
    }

    /// The shard of a name.
    #[inline]
    pub(super) fn shard_of(self, hash: u64) -> u32 {
        (hash >> 32) as u32 & self.shard_mask
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
    One(Arc<[Word]>),
    /// The branches, of [`BRANCH`] shards each but for the last.
    Many(Arc<[Branch]>),
}

/// Some of the shards of a zone.
type Branch = Arc<[Entry]>;

/// Where a shard lies.
#[derive(Clone)]
struct Entry {
    /// The segment of the branch, or memory of the shard's own.
    memory: Arc<[Word]>,
    /// The shard's first word.
    start: u32,
    /// The number of the shard's words.
    len: u32,
}

impl Entry {
    /// The shard with a memory of its own.
    fn of_own(memory: Arc<[Word]>) -> Result<Self, TooLarge> {
        let len = u32::try_from(memory.len()).map_err(|_| TooLarge)?;
        Ok(Self { memory, start: 0, len })
    }

    /// Whether the shard has memory of its own.
    fn is_outside(&self) -> bool {
        self.len as usize == self.memory.len()
    }

    /// The shard's words.
    fn words(&self) -> &[Word] {
        &self.memory[self.start as usize..][..self.len as usize]
    }
}

/// A segment of shards, each of so many words, that a function writes.
fn segment_of(
    lens: &[usize],
    mut write: impl FnMut(usize, &mut [Word]) -> Result<(), TooLarge>,
) -> Result<Arc<[Word]>, TooLarge> {
    let mut memory = zeros(lens.iter().sum());
    let mut rest = Arc::get_mut(&mut memory).unwrap_or_default(); // nothing else has it yet
    for (index, len) in lens.iter().enumerate() {
        let (shard, tail) = rest.split_at_mut(*len);
        write(index, shard)?;
        rest = tail;
    }
    Ok(memory)
}

/// The branch whose shards, each of so many words, lie in a segment.
fn branch_of_segment(memory: &Arc<[Word]>, lens: &[usize]) -> Result<Branch, TooLarge> {
    let mut start = 0;
    let entries = lens.iter().map(|len| {
        let narrow = |words: usize| u32::try_from(words).map_err(|_| TooLarge);
        let entry = Entry { memory: Arc::clone(memory), start: narrow(start)?, len: narrow(*len)? };
        start += len;
        Ok(entry)
    });
    entries.collect()
}

/// The branch with some shards replaced; those that are left in its segment lie in a new one if too
/// much of the old one is unused.
fn with_replaced(branch: &Branch, changed: &[(u32, Arc<[Word]>)]) -> Result<Branch, TooLarge> {
    let mut entries = branch.to_vec();
    for (index, shard) in changed {
        entries[(index % BRANCH) as usize] = Entry::of_own(Arc::clone(shard))?;
    }
    let (mut words, mut used, mut segment) = (0, 0, 0);
    for entry in &entries {
        words += entry.len as usize;
        if !entry.is_outside() {
            (used, segment) = (used + entry.len as usize, entry.memory.len());
        }
    }
    if (segment - used) * UNUSED_PART <= words {
        return Ok(entries.into());
    }
    let inside: Vec<usize> =
        (0..entries.len()).filter(|place| !entries[*place].is_outside()).collect();
    let lens: Vec<usize> = inside.iter().map(|place| entries[*place].len as usize).collect();
    let moved = segment_of(&lens, |index, words| {
        words.copy_from_slice(entries[inside[index]].words());
        Ok(())
    })?;
    let moved = branch_of_segment(&moved, &lens)?;
    for (place, entry) in inside.iter().zip(moved.iter()) {
        entries[*place] = entry.clone();
    }
    Ok(entries.into())
}

impl Directory {
    /// The shards in these segments, each with the words that its shards take: one for each branch.
    pub(super) fn of_segments(
        layout: Layout,
        segments: &[(Arc<[Word]>, Vec<usize>)],
    ) -> Result<Self, TooLarge> {
        if let ([(shard, _)], 1) = (segments, layout.shards()) {
            return Ok(Self::of_shard(layout, Arc::clone(shard)));
        }
        let branches = segments.iter().map(|(memory, lens)| branch_of_segment(memory, lens));
        Ok(Self { layout, form: Form::Many(branches.collect::<Result<_, _>>()?) })
    }

    /// The only shard of a small zone.
    pub(super) fn of_shard(layout: Layout, shard: Arc<[Word]>) -> Self {
        Self { layout, form: Form::One(shard) }
    }

    /// How many shards and slots there are.
    #[inline]
    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    /// A shard by its number, and what follows it: enough for lookups.
    #[inline]
    pub(super) fn shard(&self, index: u32) -> Shard<'_> {
        Shard(match &self.form {
            Form::One(shard) => shard,
            Form::Many(branches) => {
                let entry = &branches[(index / BRANCH) as usize][(index % BRANCH) as usize];
                &entry.memory[entry.start as usize..]
            }
        })
    }

    /// All shards.
    pub(super) fn shards(&self) -> impl Iterator<Item = Shard<'_>> {
        let (one, many): (Option<&[Word]>, &[Branch]) = match &self.form {
            Form::One(shard) => (Some(shard), &[]),
            Form::Many(branches) => (None, branches),
        };
        let many = many.iter().flat_map(|branch| branch.iter().map(Entry::words));
        one.into_iter().chain(many).map(Shard)
    }

    /// The nodes of a shard with the lower halves of their hashes.
    pub(super) fn nodes_of(&self, index: u32) -> impl Iterator<Item = (u32, Node<'_>)> {
        self.whole_shard(index).nodes()
    }

    /// A shard by its number, which ends where it does.
    pub(super) fn whole_shard(&self, index: u32) -> Shard<'_> {
        Shard(match &self.form {
            Form::One(shard) => shard,
            Form::Many(branches) => {
                branches[(index / BRANCH) as usize][(index % BRANCH) as usize].words()
            }
        })
    }

    /// The same shards but for some that are replaced.
    pub(super) fn with_replaced(
        &self,
        changed: BTreeMap<u32, Arc<[Word]>>,
        layout: Layout,
    ) -> Result<Self, TooLarge> {
        debug_assert_eq!(self.layout.shard_mask, layout.shard_mask);
        let form = match &self.form {
            Form::One(shard) => {
                Form::One(changed.into_values().next().unwrap_or_else(|| Arc::clone(shard)))
            }
            Form::Many(branches) => {
                let mut branches = branches.to_vec();
                let changed: Vec<(u32, Arc<[Word]>)> = changed.into_iter().collect();
                for of_branch in changed.chunk_by(|one, two| one.0 / BRANCH == two.0 / BRANCH) {
                    let branch = &mut branches[(of_branch[0].0 / BRANCH) as usize];
                    *branch = with_replaced(branch, of_branch)?;
                }
                Form::Many(branches.into())
            }
        };
        Ok(Self { layout, form })
    }

    /// Takes the shards of another directory of the same layout in the place of its own, but for
    /// some that differ, each of which gets memory of its own. Branch by branch, so that what is
    /// not used any more is freed before the next one is copied.
    pub(super) fn share_with(&mut self, former: &Self, differing: &[u32]) -> Result<(), TooLarge> {
        debug_assert_eq!(self.layout, former.layout);
        let (Form::Many(own), Form::Many(others)) = (&mut self.form, &former.form) else {
            return Ok(());
        };
        let Some(own) = Arc::get_mut(own) else { return Ok(()) }; // a zone that was just built
        for (number, (branch, other)) in (0..).zip(own.iter_mut().zip(others.iter())) {
            let first = differing.partition_point(|shard| shard / BRANCH < number);
            let of_branch = differing[first..].iter().take_while(|shard| *shard / BRANCH == number);
            let copy = |shard: &u32| (*shard, branch[(shard % BRANCH) as usize].words().into());
            let changed: Vec<(u32, Arc<[Word]>)> = of_branch.map(copy).collect();
            *branch = match changed.is_empty() {
                true => Arc::clone(other),
                false => with_replaced(other, &changed)?,
            };
        }
        Ok(())
    }

    /// The only shard of a small zone.
    pub(super) fn only_shard(&mut self) -> Option<&mut Arc<[Word]>> {
        match &mut self.form {
            Form::One(shard) => Some(shard),
            Form::Many(_) => None,
        }
    }

    /// The large pieces of memory that lookups read at random.
    pub(super) fn memory(&self) -> impl Iterator<Item = &[Word]> {
        let (one, many): (Option<&[Word]>, &[Branch]) = match &self.form {
            Form::One(shard) => (Some(shard), &[]),
            Form::Many(branches) => (None, branches),
        };
        let segments = many.iter().filter_map(|branch| {
            branch.iter().find(|entry| !entry.is_outside()).map(|entry| &*entry.memory)
        });
        one.into_iter().chain(segments)
    }

    /// Octets of memory that the shards take, with what lies unused in segments.
    pub(super) fn bytes(&self) -> usize {
        let Form::Many(branches) = &self.form else { return self.shard(0).0.len() * 8 };
        let outside = branches.iter().flat_map(|branch| branch.iter()).map(|entry| {
            let own = if entry.is_outside() { entry.memory.len() } else { 0 };
            size_of::<Entry>() + own * size_of::<Word>()
        });
        outside.sum::<usize>() + self.memory().map(size_of_val).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::directory_builder::DirectoryBuilder;
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
    fn shards_that_never_changed_move_when_a_sixth_of_the_branch_lies_unused_in_its_segment() {
        let mut directory = directory(2_500); // 16 shards, one branch
        let first = directory.bytes();
        let segment = |directory: &Directory| directory.memory().next().map(<[Word]>::as_ptr);
        let (mut present, mut moves) = (segment(&directory), 0);
        for index in (0..16).chain(0..16) {
            let shard = directory.shards().nth(index).map(|shard| shard.0.into()).unwrap();
            let layout = directory.layout();
            directory = directory.with_replaced([(index as u32, shard)].into(), layout).unwrap();
            let bytes = directory.bytes();
            assert!(bytes * 5 <= first * 6, "{index}: {bytes} octets where there were {first}");
            moves += usize::from(segment(&directory) != present);
            present = segment(&directory);
        }
        assert_eq!((moves, present), (5, None), "the last move is that of the last shard");
        assert_eq!(directory.shards().map(|it| it.nodes().count()).sum::<usize>(), 2_500);
    }
}
