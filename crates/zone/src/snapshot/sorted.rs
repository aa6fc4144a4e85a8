//! A sorted set of octet strings whose versions share what they have in common.
//!
//! ```text
//! branches ─► branch: leaves ─► leaf: count u16 | end of each string u16 | strings
//! ```
//!
//! A leaf is one piece of memory; a branch has the first octets of each of its leaves beside them.
//! A lookup halves the branches, the leaves of one branch and the strings of one leaf. A change
//! writes one leaf anew and copies its branch and the list of branches: all else is shared.

use std::sync::Arc;

/// Strings of a leaf that is written when many are.
const LEAF_FILL: usize = 96;
/// Most strings of a leaf; one with more becomes several.
const LEAF_MAX: usize = 128;
/// Most octets of a leaf's strings, far below what its numbers can say.
const LEAF_BYTES_MAX: usize = 32 << 10;
/// Leaves of a branch that is written when many are.
const BRANCH_FILL: usize = 96;
/// Most leaves of a branch; one with more becomes several.
const BRANCH_MAX: usize = 128;

/// A sorted set of octet strings, each shorter than 1,024 octets.
#[derive(Clone, Default)]
pub struct Sorted {
    /// The branches, none of them empty.
    branches: Arc<[Arc<Branch>]>,
}

/// Some neighbouring leaves.
#[derive(Clone, Default)]
struct Branch {
    /// The first octets of each leaf's first string, as a number of the same order.
    heads: Vec<u64>,
    /// The leaves, none of them empty.
    leaves: Vec<Arc<[u8]>>,
}

/// What becomes of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The string is in the set.
    Insert,
    /// The string is not in the set.
    Remove,
}

/// The strings of a leaf.
#[derive(Clone, Copy)]
struct Leaf<'l>(&'l [u8]);

impl<'l> Leaf<'l> {
    /// The number of strings.
    fn len(self) -> usize {
        self.number(0)
    }

    /// The number at an index; the first is the count.
    fn number(self, index: usize) -> usize {
        let octets = self.0.get(2 * index..).and_then(|octets| octets.first_chunk());
        octets.map_or(0, |octets| u16::from_le_bytes(*octets).into())
    }

    /// A string by its index.
    fn get(self, index: usize) -> &'l [u8] {
        let strings = &self.0[2 + 2 * self.len()..];
        let start = if index == 0 { 0 } else { self.number(index) };
        &strings[start..self.number(index + 1)]
    }

    /// All strings.
    fn iter(self) -> impl Iterator<Item = &'l [u8]> {
        (0..self.len()).map(move |index| self.get(index))
    }

    /// How many of the strings are not greater than another.
    fn count_to(self, wanted: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.get(middle) <= wanted { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Writes a leaf.
    fn write(strings: &[&[u8]]) -> Arc<[u8]> {
        let mut out = Vec::with_capacity(strings.iter().map(|it| 2 + it.len()).sum::<usize>() + 2);
        out.extend_from_slice(&(strings.len() as u16).to_le_bytes()); // at most LEAF_MAX
        let mut end = 0_u16;
        for string in strings {
            end += string.len() as u16; // LEAF_BYTES_MAX fits
            out.extend_from_slice(&end.to_le_bytes());
        }
        strings.iter().for_each(|string| out.extend_from_slice(string));
        out.into()
    }
}

/// The first eight octets as a number.
fn head(string: &[u8]) -> u64 {
    let mut octets = [0; 8];
    let len = string.len().min(8);
    octets[..len].copy_from_slice(&string[..len]);
    u64::from_be_bytes(octets)
}

impl Branch {
    /// The first string.
    fn first(&self) -> &[u8] {
        self.leaves.first().map_or(&[], |leaf| Leaf(leaf).get(0))
    }

    /// How many leaves begin with a string that is not greater than another.
    fn count_to(&self, wanted: &[u8]) -> usize {
        let wanted_head = head(wanted);
        let low = self.heads.partition_point(|it| *it < wanted_head);
        let high = low + self.heads[low..].partition_point(|it| *it == wanted_head);
        low + self.leaves[low..high].partition_point(|leaf| Leaf(leaf).get(0) <= wanted)
    }

    /// Appends a leaf.
    fn push(&mut self, leaf: Arc<[u8]>) {
        self.heads.push(head(Leaf(&leaf).get(0)));
        self.leaves.push(leaf);
    }
}

/// Branches while they are written.
#[derive(Default)]
struct Writer {
    /// The branches that are complete.
    branches: Vec<Arc<Branch>>,
    /// The leaves of the next branch.
    leaves: Vec<Arc<[u8]>>,
}

impl Writer {
    /// Appends sorted strings, as leaves of about [`LEAF_FILL`].
    fn strings(&mut self, strings: &[&[u8]]) {
        let mut rest = strings;
        while !rest.is_empty() {
            let wanted = if rest.len() <= LEAF_MAX { rest.len() } else { LEAF_FILL };
            let mut octets = 0;
            let fits = rest[..wanted].iter().take_while(|string| {
                octets += string.len();
                octets <= LEAF_BYTES_MAX
            });
            let (leaf, tail) = rest.split_at(fits.count().max(1));
            self.leaf(Leaf::write(leaf));
            rest = tail;
        }
    }

    /// Appends a leaf, or its strings to the last leaf if both are short.
    fn leaf(&mut self, leaf: Arc<[u8]>) {
        let octets = |last: &Arc<[u8]>| last.len() + leaf.len() <= LEAF_BYTES_MAX;
        let joins = |last: &Arc<[u8]>| Leaf(last).len() + Leaf(&leaf).len() <= LEAF_MAX / 2;
        match self.leaves.last_mut().filter(|last| octets(last) && joins(last)) {
            Some(last) => {
                let both: Vec<&[u8]> = Leaf(last).iter().chain(Leaf(&leaf).iter()).collect();
                *last = Leaf::write(&both);
            }
            None => self.leaves.push(leaf),
        }
    }

    /// Ends a branch: what was appended since the last one becomes one or several.
    fn end_branch(&mut self) {
        let leaves = std::mem::take(&mut self.leaves);
        let fill = if leaves.len() <= BRANCH_MAX { BRANCH_MAX } else { BRANCH_FILL };
        for leaves in leaves.chunks(fill) {
            let mut branch = match self.branches.last() {
                Some(last) if last.leaves.len() + leaves.len() <= BRANCH_MAX / 2 => {
                    Branch::clone(&self.branches.pop().unwrap_or_default())
                }
                _ => Branch::default(),
            };
            leaves.iter().for_each(|leaf| branch.push(Arc::clone(leaf)));
            self.branches.push(Arc::new(branch));
        }
    }
}

impl Sorted {
    /// The set of sorted strings, none of them twice.
    pub(super) fn from_sorted<'s>(strings: impl Iterator<Item = &'s [u8]>) -> Self {
        let mut writer = Writer::default();
        let mut pending: Vec<&[u8]> = Vec::with_capacity(LEAF_FILL);
        for string in strings {
            pending.push(string);
            if pending.len() == LEAF_FILL {
                writer.strings(&pending);
                pending.clear();
            }
        }
        writer.strings(&pending);
        writer.end_branch();
        Self { branches: writer.branches.into() }
    }

    /// The set after some changes, which are sorted and of different strings.
    pub(super) fn with(&self, changes: &[(&[u8], Change)]) -> Self {
        let Some(first) = self.branches.first() else {
            let inserted = changes.iter().filter(|(_, change)| *change == Change::Insert);
            return Self::from_sorted(inserted.map(|(string, _)| *string));
        };
        debug_assert!(!first.leaves.is_empty(), "a branch has leaves");
        let mut writer = Writer::default();
        let mut rest = changes;
        for (index, branch) in self.branches.iter().enumerate() {
            let end = self.branches.get(index + 1).map_or(rest.len(), |next| {
                rest.partition_point(|(string, _)| *string < next.first())
            });
            let (own, tail) = rest.split_at(end);
            rest = tail;
            if own.is_empty() {
                writer.branches.push(Arc::clone(branch));
                continue;
            }
            write_branch(branch, own, &mut writer);
            writer.end_branch();
        }
        Self { branches: writer.branches.into() }
    }

    /// Whether there are no strings.
    pub(super) fn is_empty(&self) -> bool {
        self.branches.is_empty()
    }

    /// The greatest string that is not greater than another; the very last when all are.
    pub(super) fn at_or_before(&self, wanted: &[u8]) -> Option<&[u8]> {
        let branches = self.branches.partition_point(|branch| branch.first() <= wanted);
        let Some(branch) = branches.checked_sub(1).map(|at| &self.branches[at]) else {
            let leaf = Leaf(self.branches.last()?.leaves.last()?);
            return Some(leaf.get(leaf.len() - 1));
        };
        // The first string of the branch, and so of one of its leaves, is not greater.
        let leaf = Leaf(&branch.leaves[branch.count_to(wanted).saturating_sub(1)]);
        Some(leaf.get(leaf.count_to(wanted).saturating_sub(1)))
    }

    /// The strings from the first that is not less than another.
    pub(super) fn from<'s>(&'s self, wanted: &[u8]) -> impl Iterator<Item = &'s [u8]> + use<'s> {
        let branch = self.branches.partition_point(|it| it.first() < wanted).saturating_sub(1);
        let leaves = self.branches.get(branch).map_or(0, |it| it.count_to(wanted));
        let leaf = leaves.saturating_sub(1);
        let skipped = self
            .branches
            .get(branch)
            .and_then(|it| it.leaves.get(leaf))
            .map_or(0, |it| Leaf(it).iter().take_while(|string| *string < wanted).count());
        let leaves = self.branches[branch.min(self.branches.len())..].iter();
        let leaves = leaves.flat_map(|branch| &branch.leaves).skip(leaf);
        leaves.flat_map(|leaf| Leaf(leaf).iter()).skip(skipped)
    }

    /// All strings in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.branches.iter().flat_map(|it| &it.leaves).flat_map(|leaf| Leaf(leaf).iter())
    }

    /// Octets of memory that the set takes.
    pub(super) fn bytes(&self) -> usize {
        let of_branch = |branch: &Arc<Branch>| {
            let leaves = branch.leaves.iter().map(|leaf| leaf.len());
            leaves.sum::<usize>() + branch.leaves.len() * (size_of::<Arc<[u8]>>() + 8)
        };
        self.branches.iter().map(of_branch).sum()
    }
}

/// Strings that become a set, in whatever order they come.
#[derive(Default)]
pub(super) struct Unsorted {
    /// The strings, one behind the other.
    octets: Vec<u8>,
    /// The first octets of each string as a number, its first octet's place, and its length.
    strings: Vec<(u64, u32, u16)>,
}

impl Unsorted {
    /// Adds a string; false when there is no room for it.
    #[must_use]
    pub(super) fn push(&mut self, string: &[u8]) -> bool {
        let (Ok(start), Ok(len)) = (u32::try_from(self.octets.len()), u16::try_from(string.len()))
        else {
            return false;
        };
        self.strings.push((head(string), start, len));
        self.octets.extend_from_slice(string);
        true
    }

    /// The set of them.
    pub(super) fn sort(mut self) -> Sorted {
        let octets = &self.octets;
        let string = |&(_, start, len): &(u64, u32, u16)| &octets[start as usize..][..len.into()];
        self.strings.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| string(a).cmp(string(b))));
        Sorted::from_sorted(self.strings.iter().map(string))
    }
}

/// Writes the leaves of a branch with some changes among them.
fn write_branch(branch: &Branch, changes: &[(&[u8], Change)], writer: &mut Writer) {
    let mut rest = changes;
    for (index, leaf) in branch.leaves.iter().enumerate() {
        let end = branch.leaves.get(index + 1).map_or(rest.len(), |next| {
            rest.partition_point(|(string, _)| *string < Leaf(next).get(0))
        });
        let (own, tail) = rest.split_at(end);
        rest = tail;
        if own.is_empty() {
            writer.leaves.push(Arc::clone(leaf));
            continue;
        }
        let mut strings: Vec<&[u8]> = Vec::with_capacity(Leaf(leaf).len() + own.len());
        let mut changes = own.iter().peekable();
        for string in Leaf(leaf).iter() {
            while let Some((new, change)) = changes.next_if(|(new, _)| *new < string) {
                strings.extend((*change == Change::Insert).then_some(*new));
            }
            match changes.next_if(|(new, _)| *new == string) {
                Some((_, Change::Remove)) => {}
                Some((_, Change::Insert)) | None => strings.push(string),
            }
        }
        let inserted = changes.filter(|(_, change)| *change == Change::Insert);
        strings.extend(inserted.map(|(string, _)| *string));
        writer.strings(&strings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use zonda_testkit::generate::Random;

    /// A string of the small alphabet, so that prefixes and equal heads are common.
    fn string(random: &mut Random) -> Vec<u8> {
        (0..random.below(14)).map(|_| b"abc\0\xff"[random.below(5)]).collect()
    }

    /// Whether a set has exactly these strings, and finds each one's neighbours.
    fn check(set: &Sorted, expected: &BTreeSet<Vec<u8>>, random: &mut Random) {
        assert!(set.iter().eq(expected.iter().map(Vec::as_slice)));
        for _ in 0..20 {
            let wanted = string(random);
            let before = expected.range(..=wanted.clone()).next_back().or(expected.last());
            assert_eq!(set.at_or_before(&wanted), before.map(Vec::as_slice), "{wanted:?}");
            let behind = expected.range(wanted.clone()..).map(Vec::as_slice);
            assert!(set.from(&wanted).take(300).eq(behind.take(300)), "{wanted:?}");
        }
    }

    #[test]
    fn a_set_holds_what_was_inserted_and_not_removed() {
        for (seed, most) in [(1, 3), (2, 50), (3, 3_000), (4, 20_000)] {
            let mut random = Random::new(seed);
            let (mut set, mut expected) = (Sorted::default(), BTreeSet::new());
            for round in 0..40 {
                let (old, old_expected) = (set.clone(), expected.clone());
                let mut changes: Vec<(Vec<u8>, Change)> = (0..1 + random.below(most))
                    .map(|_| match random.below(if round < 25 { 4 } else { 2 }) {
                        0 => (string(&mut random), Change::Remove),
                        _ => (string(&mut random), Change::Insert),
                    })
                    .collect();
                if round % 7 == 6 {
                    changes =
                        expected.iter().map(|it: &Vec<u8>| (it.clone(), Change::Remove)).collect();
                    changes.retain(|_| random.below(10) != 0);
                }
                changes.sort_by(|a, b| a.0.cmp(&b.0));
                changes.dedup_by(|a, b| a.0 == b.0);
                for (string, change) in &changes {
                    match change {
                        Change::Insert => expected.insert(string.clone()),
                        Change::Remove => expected.remove(string),
                    };
                }
                let changes: Vec<_> =
                    changes.iter().map(|(it, change)| (&it[..], *change)).collect();
                set = set.with(&changes);
                check(&set, &expected, &mut random);
                assert!(
                    old.iter().eq(old_expected.iter().map(Vec::as_slice)),
                    "the old set changed"
                );
            }
        }
    }

    #[test]
    fn a_change_leaves_all_other_leaves_shared() {
        let strings: Vec<String> = (0..100_000).map(|number| format!("{number:06}")).collect();
        let set = Sorted::from_sorted(strings.iter().map(String::as_bytes));
        let new = set.with(&[(b"0500005", Change::Insert)]);
        let leaves = |set: &Sorted| -> BTreeSet<usize> {
            let leaves = set.branches.iter().flat_map(|it| &it.leaves);
            leaves.map(|leaf| leaf.as_ptr().addr()).collect()
        };
        assert_eq!(leaves(&set).difference(&leaves(&new)).count(), 1);
        assert_eq!(leaves(&new).difference(&leaves(&set)).count(), 1);
    }
}
