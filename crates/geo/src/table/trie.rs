//! Look-up of the value of an address: a direct index, then nodes, then a bucket.
//!
//! ```text
//! address  ├─ top bits: 8, 14 or 20 ─┼─ 12 or 6 ─┼─ …        ├─ 32 ─┤
//!            index of `top`            index of a node, …      key of a bucket
//!
//! entry      63    62..40  39..32  31..0       in `top` and in wide nodes
//!            more  –       scope   value, or where the record starts in `words`
//!
//! wide node  u32            1
//!            u32            0
//!            u64 × 4096     entries
//!
//! bucket     u32            number of ranges n, 2 to 16
//!            u32 × (n - 1)  first key of each range but the first, which starts at 0
//!            u32 × n        values of the ranges
//!
//! node       u32            0
//!            u32 × 2        a bit per slot: 1 = an entry starts here
//!            u32 × 2        a bit per slot: 1 = the slot's entry is a record, not a value
//!            u32 × entries  a value, or where the record starts in `words`
//! ```
//!
//! A block of addresses with few ranges is a bucket: one cache line in most cases, whatever the
//! lengths of its prefixes. A block with many is a node of 64 smaller blocks; an entry holds for
//! its slot and those behind it up to the next start, and one that leads to a record has one slot.
//! A block with thousands, as registries of IPv6 addresses have them, is a wide node.
//!
//! # Invariants
//! - A record has two different values at least: a block with a single value is an entry of the
//!   node above. Hence the widest prefix around an address with one value lies within the block of
//!   its last record, and the scope follows from where ranges start there.
//! - The first 16 words of a record lie in one cache line, and with them what tells its entry.

use std::marker::PhantomData;

use super::TooManyPrefixes;
use super::address::Address;
use super::ranges::Ranges;

/// Bits of an address that a node looks at; a `u64` has a bit for each of its slots.
const STRIDE: u32 = 6;
/// Number of slots of a node.
const SLOTS: usize = 1 << STRIDE;
/// Words of a node before its entries.
const NODE_WORDS: usize = 5;
/// Bits of an address that a wide node looks at, two strides.
const WIDE_STRIDE: u32 = 2 * STRIDE;
/// Fewest ranges of the block of a wide node, so that each range takes 8 octets of it at most.
const WIDE_RANGES_MIN: usize = 1 << WIDE_STRIDE;
/// Words of a wide node before its entries; the first is its mark, which no bucket has.
const WIDE_HEADER: [u32; 2] = [1, 0];
/// Most ranges of a bucket. With 16, keys and values take two cache lines at most; with 8 there are
/// more nodes above, with 32 the search takes as long as a node does.
const BUCKET_RANGES_MAX: usize = 16;
/// Words of a cache line.
const LINE_WORDS: usize = 16;
/// Most words of a trie, 4 GiB; where a record starts has to fit in 32 bits.
const WORDS_MAX: usize = 1 << 30;
/// The mark of a top entry that leads to a record.
const MORE: u64 = 1 << 63;
/// Number of ranges from which on a wider direct index pays: 8 MiB, 128 KiB and 2 KiB. The rest of
/// the bits is a multiple of [`STRIDE`] in both families.
const TOP_BITS: [(usize, u32); 3] = [(1 << 18, 20), (1 << 9, 14), (0, 8)];

/// What a look-up finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// Value of the longest prefix that the address lies in.
    pub value: u32,
    /// Length of the widest prefix around the address within which all addresses have this value; 0
    /// if those of the whole family do.
    pub scope: u8,
}

/// The values of all addresses of a family.
#[derive(Debug)]
pub struct Trie<A> {
    /// Bits of an address that index `top`.
    top_bits: u32,
    /// Direct index by the top bits: values, and where records start.
    top: Box<[u64]>,
    /// Nodes and buckets, one behind the other.
    words: Box<[u32]>,
    /// Where the first record starts in `words`, at the start of a cache line.
    first: usize,
    /// The family of the addresses.
    family: PhantomData<A>,
}

impl<A: Address> Trie<A> {
    /// Lays out ranges for look-ups.
    pub fn of_ranges(ranges: &Ranges<A>) -> Result<Self, TooManyPrefixes> {
        let top_bits = TOP_BITS.iter().find(|(from, _)| ranges.len() >= *from);
        let top_bits = top_bits.map_or(8, |&(_, bits)| bits);
        let mut builder = Builder { ranges, words: Vec::new() };
        let top = builder.direct(A::default(), top_bits, A::BITS, 0)?;
        let mut words = vec![0; builder.words.len() + LINE_WORDS].into_boxed_slice();
        // Without alignment the records are right as well, and slower.
        let first = words.as_ptr().align_offset(LINE_WORDS * size_of::<u32>()).min(LINE_WORDS);
        words[first..first + builder.words.len()].copy_from_slice(&builder.words);
        Ok(Self { top_bits, top: top.into_boxed_slice(), words, first, family: PhantomData })
    }

    /// Finds the value of an address and how far it holds.
    #[inline]
    pub fn lookup(&self, address: A) -> Match {
        let mut entry = self.entry(address);
        let mut depth = self.top_bits;
        while entry & MORE != 0 {
            let record = &self.words[self.first + entry as u32 as usize..];
            match record[0] {
                0 => {
                    let slot = address.bits(depth, STRIDE) as u32;
                    let (starts, value, is_record) = in_node(record, slot);
                    if !is_record {
                        let scope = depth + STRIDE - uniform_bits(starts, slot);
                        return Match { value, scope: scope as u8 };
                    }
                    (entry, depth) = (MORE | u64::from(value), depth + STRIDE);
                }
                1 => {
                    let at = WIDE_HEADER.len() + 2 * address.bits(depth, WIDE_STRIDE);
                    entry = u64::from(record[at]) | u64::from(record[at + 1]) << 32;
                    depth += WIDE_STRIDE;
                }
                count => {
                    let bucket = &record[1..2 * count as usize];
                    let (value, shared) = in_bucket(bucket, address.key(depth));
                    return Match { value, scope: (depth + shared + 1) as u8 };
                }
            }
        }
        Match { value: entry as u32, scope: (entry >> 32) as u8 }
    }

    /// Reads the entry of the direct index that an address leads to.
    #[inline]
    pub fn entry(&self, address: A) -> u64 {
        self.top[address.bits(0, self.top_bits)]
    }

    /// Reads the start of the record that an entry leads to, and returns the entry behind a wide
    /// node: the further steps of [`touch`](super::PrefixTable::touch).
    #[inline]
    pub fn step(&self, entry: u64, address: A) -> u64 {
        let is_record = (entry >> 63) as usize;
        let at = (self.first + entry as u32 as usize) * is_record;
        if self.words[at] != WIDE_HEADER[0] || is_record == 0 {
            return entry;
        }
        let at = at + WIDE_HEADER.len() + 2 * address.bits(self.top_bits, WIDE_STRIDE);
        u64::from(self.words[at]) | u64::from(self.words[at + 1]) << 32
    }

    /// Returns the octets of memory that the trie uses.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.top) + size_of_val(&*self.words)
    }
}

/// Finds the entry of a slot of a node. Returns the slots in which entries start, the value of the
/// entry or where its record starts, and whether it is a record.
#[inline]
fn in_node(node: &[u32], slot: u32) -> (u64, u32, bool) {
    let starts = u64::from(node[1]) | u64::from(node[2]) << 32;
    let records = u64::from(node[3]) | u64::from(node[4]) << 32;
    let count = (starts << (SLOTS as u32 - 1 - slot)).count_ones();
    (starts, node[NODE_WORDS - 1 + count as usize], records >> slot & 1 == 1)
}

/// Finds the value of a key in the keys and values of a bucket, and the most bits that the key
/// shares with one outside its range.
#[inline]
fn in_bucket(bucket: &[u32], key: u32) -> (u32, u32) {
    let (keys, values) = bucket.split_at(bucket.len() / 2);
    let range = keys.iter().filter(|start| **start <= key).count();
    let before = range.checked_sub(1).map_or(0, |range| (key ^ (keys[range] - 1)).leading_zeros());
    let behind = keys.get(range).map_or(0, |next| (key ^ next).leading_zeros());
    (values[range], before.max(behind))
}

/// Returns the binary logarithm of the number of slots in the widest aligned block around a slot in
/// which no entry starts but that of the slot.
#[inline]
fn uniform_bits(starts: u64, slot: u32) -> u32 {
    // The last slot of the entry before, or 2³² - 1: either way a slot outside the block.
    let first = slot - (starts << (SLOTS as u32 - 1 - slot)).leading_zeros();
    let before = first.wrapping_sub(1);
    // The first slot of the next entry, or a number of 64 and above.
    let next = slot + 1 + (starts >> slot >> 1).trailing_zeros();
    let shared = (slot ^ before).leading_zeros().max((slot ^ next).leading_zeros());
    u32::BITS - 1 - shared
}

/// Returns the lower and the upper half of a number.
fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

/// A trie under construction.
struct Builder<'a, A> {
    /// What the trie is made of.
    ranges: &'a Ranges<A>,
    /// Records so far.
    words: Vec<u32>,
}

impl<A: Address> Builder<'_, A> {
    /// Returns the range that an address lies in, which is `range` or a later one.
    fn range_at(&self, address: A, mut range: usize) -> usize {
        while self.ranges.end(range) < address {
            range += 1;
        }
        range
    }

    /// Appends the record of a block of `1 << block_bits` addresses, of which the first lies in
    /// `range` and not all do, and the records below it. Returns where it starts.
    fn record(&mut self, start: A, block_bits: u32, range: usize) -> Result<u32, TooManyPrefixes> {
        if let Some(at) = self.bucket(start, block_bits, range) {
            return Ok(at);
        }
        let far = self.ranges.end((range + WIDE_RANGES_MIN).min(self.ranges.len()) - 1);
        if far < start.last_of(block_bits) {
            self.wide_node(start, block_bits, range)
        } else {
            self.node(start, block_bits, range)
        }
    }

    /// Returns the entries of a block that is indexed by the next `count` bits, and appends the
    /// records that they lead to.
    fn direct(
        &mut self,
        start: A,
        count: u32,
        block_bits: u32,
        mut range: usize,
    ) -> Result<Vec<u64>, TooManyPrefixes> {
        let slot_bits = block_bits - count;
        let mut entries = Vec::with_capacity(1 << count);
        for slot in 0..1 << count {
            let start = start.plus(slot, slot_bits);
            range = self.range_at(start, range);
            entries.push(if self.ranges.end(range) >= start.last_of(slot_bits) {
                let scope = u64::from(self.ranges.scope(range, start));
                scope << 32 | u64::from(self.ranges.value(range))
            } else {
                MORE | u64::from(self.record(start, slot_bits, range)?)
            });
        }
        Ok(entries)
    }

    /// Appends the wide node of a block and the records below it. Returns where it starts.
    fn wide_node(
        &mut self,
        start: A,
        block_bits: u32,
        range: usize,
    ) -> Result<u32, TooManyPrefixes> {
        let at = self.words.len();
        self.words.extend(WIDE_HEADER);
        self.words.resize(at + WIDE_HEADER.len() + (2 << WIDE_STRIDE), 0);
        let entries = self.direct(start, WIDE_STRIDE, block_bits, range)?;
        let words = entries.iter().flat_map(|entry| halves(*entry));
        for (place, word) in self.words[at + WIDE_HEADER.len()..].iter_mut().zip(words) {
            *place = word;
        }
        u32::try_from(at).map_err(|_| TooManyPrefixes)
    }

    /// Appends the bucket of a block, unless it has too many ranges or one starts within a key.
    fn bucket(&mut self, start: A, block_bits: u32, range: usize) -> Option<u32> {
        let depth = A::BITS - block_bits;
        let last = start.last_of(block_bits);
        let mut keys = [0; BUCKET_RANGES_MAX - 1];
        let mut count = 1;
        while self.ranges.end(range + count - 1) < last {
            let next = self.ranges.start(range + count);
            let key = keys.get_mut(count - 1)?;
            *key = next.key(depth);
            if !next.is_key(depth) {
                return None;
            }
            count += 1;
        }
        let at = self.begin(2 * count);
        self.words.push(count as u32);
        self.words.extend(&keys[..count - 1]);
        self.words.extend((range..range + count).map(|range| self.ranges.value(range)));
        u32::try_from(at).ok()
    }

    /// Appends the node of a block and the records below it. Returns where it starts.
    ///
    /// It leads to itself for each level below, 20 at most.
    fn node(
        &mut self,
        start: A,
        block_bits: u32,
        mut range: usize,
    ) -> Result<u32, TooManyPrefixes> {
        let slot_bits = block_bits - STRIDE;
        let (mut starts, mut records) = (0u64, 0u64);
        let mut entries = [0; SLOTS];
        let mut entry_count = 0;
        // For each record below: its slot, its entry, the range that its first address lies in.
        let mut below = [(0usize, 0usize, 0usize); SLOTS];
        let mut below_count = 0;
        let mut current = None;
        for slot in 0..SLOTS {
            let slot_start = start.plus(slot, slot_bits);
            range = self.range_at(slot_start, range);
            let is_record = self.ranges.end(range) < slot_start.last_of(slot_bits);
            if is_record {
                records |= 1 << slot;
                below[below_count] = (slot, entry_count, range);
                below_count += 1;
            }
            let entry = (!is_record).then_some(range);
            if entry.is_none() || entry != current {
                starts |= 1 << slot;
                entries[entry_count] = self.ranges.value(range);
                entry_count += 1;
            }
            current = entry;
        }
        let at = self.begin(NODE_WORDS + entry_count);
        self.words.push(0);
        self.words.extend(halves(starts).into_iter().chain(halves(records)));
        self.words.extend(&entries[..entry_count]);
        for &(slot, entry, range) in &below[..below_count] {
            let record = self.record(start.plus(slot, slot_bits), slot_bits, range)?;
            self.words[at + NODE_WORDS + entry] = record;
        }
        if self.words.len() > WORDS_MAX {
            return Err(TooManyPrefixes);
        }
        u32::try_from(at).map_err(|_| TooManyPrefixes)
    }

    /// Returns where a record of so many words starts: behind the last one, or in the next cache
    /// line if its first words would not lie in this one.
    fn begin(&mut self, words: usize) -> usize {
        let used = self.words.len() % LINE_WORDS;
        if used + words.min(LINE_WORDS) > LINE_WORDS {
            self.words.resize(self.words.len() + LINE_WORDS - used, 0);
        }
        self.words.len()
    }
}
