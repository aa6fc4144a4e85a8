//! Which entries there are: buckets of eight words, a cache line each.
//!
//! ```text
//! 63         38 37                    4    3     2     1 0
//! [    tag     |  position, low bits  | held | log | frequency ]
//! ```
//!
//! A bucket is bounded: when it is full, one of its entries makes room, so names chosen to collide
//! hurt each other and never the time that a look-up takes. All types of a name share a bucket. A
//! cache filled to 95 % with the smallest answers had lost 2 % of them so when each name had one
//! type, 6 % with two and 11 % with three; half full 0, 1 and 3 %.
//!
//! Not all buckets are in use from the start: entries would lie in as many pages of memory as there
//! are entries. The buckets in use are the first ones, and grow by one with each
//! [split](Index::next_split), as in linear hashing (Litwin, 1980):
//!
//! ```text
//!  base · 2ʲ buckets, the first two of them split     b0 b1 | b2 b3 … | b0' b1'
//!  what b0 held is now in b0 or in b0', by one bit      └──────────────┴┘
//! ```

use crate::ring::Position;
use crate::words::{LINE_WORDS, Words};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Slots in a bucket.
pub const SLOTS: usize = LINE_WORDS;
/// The highest frequency that is counted; more hits write nothing (S3-FIFO).
pub const FREQUENCY_MAX: u64 = 3;

/// Bit of a slot that is in use.
const HELD: u64 = 1 << 3;
/// Place of the bit that names the log.
const LOG_SHIFT: u32 = 2;
/// The place of the position.
const POSITION_SHIFT: u32 = 4;
/// The place of the tag.
const TAG_SHIFT: u32 = POSITION_SHIFT + Position::BITS;

/// A hash of everything that distinguishes questions, and which of its bits decide what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub u64);

impl Place {
    /// Most shards that the bits suffice for.
    pub const SHARDS_MAX: usize = 1024;
    /// The bits that distinguish the members of a group; the other bits say where the group is.
    const MEMBER: u64 = 0xffff_fc00;

    /// Returns the place of a member of a group, given a hash of either.
    #[inline]
    pub fn new(group: u64, member: u64) -> Self {
        Self(group & !Self::MEMBER | member & Self::MEMBER)
    }

    /// Returns which of `shards` shards it is, a power of two: bits 0–9.
    #[inline]
    pub fn shard(self, shards: usize) -> usize {
        self.0 as usize & (shards - 1)
    }

    /// Returns which of `buckets` buckets of the ghosts it is, fewer than 2³²: bits 32–63.
    #[inline]
    pub fn ghost_bucket(self, buckets: usize) -> usize {
        (((self.0 >> 32) * buckets as u64) >> 32) as usize
    }

    /// Returns which of `base` buckets it is before any is split, fewer than 2¹⁶: bits 48–63.
    #[inline]
    fn base_bucket(self, base: usize) -> usize {
        ((self.0 >> 48) as usize * base) >> 16
    }

    /// Returns the bits that say where an entry goes when its bucket is split: bits 32–47.
    #[inline]
    fn split_bits(self) -> usize {
        (self.0 >> 32) as usize & 0xffff
    }

    /// Returns the bits that distinguish the entries of a bucket: 10–35.
    #[inline]
    fn tag(self) -> u64 {
        self.0 >> 10 << TAG_SHIFT
    }

    /// Returns what an entry is remembered by when it is gone, never zero: bits 10–41.
    pub fn fingerprint(self) -> u32 {
        ((self.0 >> 10) as u32).max(1)
    }
}

/// Which of a shard's two logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogName {
    /// The small log, for new entries.
    Small = 0,
    /// The main log, for entries that were found again.
    Main = 1,
}

/// A slot's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(pub u64);

impl Word {
    /// Makes the word of an entry.
    pub fn new(place: Place, log: LogName, position: Position, frequency: u64) -> Self {
        debug_assert!(frequency <= FREQUENCY_MAX);
        let at = position.low() << POSITION_SHIFT;
        Self(place.tag() | at | HELD | (log as u64) << LOG_SHIFT | frequency)
    }

    /// Whether the slot holds an entry.
    #[inline]
    pub fn is_occupied(self) -> bool {
        self.0 & HELD != 0
    }

    /// Whether the entry may be that of `place`; wrong once in 2²² times.
    #[inline]
    pub fn may_be(self, place: Place) -> bool {
        self.is_occupied() && self.0 >> TAG_SHIFT == place.tag() >> TAG_SHIFT
    }

    /// Returns the log that the entry lies in.
    #[inline]
    pub fn log(self) -> LogName {
        if self.0 >> LOG_SHIFT & 1 == 0 { LogName::Small } else { LogName::Main }
    }

    /// Returns where it lies, given a tail of its log that was read before the word.
    #[inline]
    pub fn position(self, tail: Position) -> Position {
        Position::from_low(self.0 >> POSITION_SHIFT, tail)
    }

    /// Returns how often it was found since it was written or last passed over, 0–3.
    #[inline]
    pub fn frequency(self) -> u64 {
        self.0 & FREQUENCY_MAX
    }

    /// Whether both are the same entry at the same place, however often it was found.
    pub fn is_same_entry(self, other: Self) -> bool {
        (self.0 ^ other.0) & !FREQUENCY_MAX == 0
    }
}

/// Buckets in use from the start: between this and twice as many. They fill a page of memory.
const BASE_MIN: usize = 64;
/// How often each bucket can be split: [`Place::split_bits`] has as many bits.
const DOUBLINGS_MAX: u32 = 16;

/// The hash table: buckets of eight words, one cache line each.
pub struct Index {
    words: Words,
    /// Buckets in use from the start.
    base: usize,
    /// Number of times that the buckets can double.
    doublings: u32,
    /// Which buckets are in use, an [`Extent`]; changed by the writer of the shard alone.
    extent: AtomicU64,
}

/// How many buckets are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    /// Number of buckets, from `base · 2ʲ` to `base · 2ʲ⁺¹`.
    count: u32,
    /// The bits of [`Place::split_bits`] that decide: `2ʲ⁺¹ − 1`.
    mask: u32,
}

impl Extent {
    fn from_word(word: u64) -> Self {
        Self { count: word as u32, mask: (word >> 32) as u32 }
    }

    fn to_word(self) -> u64 {
        u64::from(self.mask) << 32 | u64::from(self.count)
    }

    /// Returns the bucket of a place.
    #[inline]
    fn bucket(self, place: Place, base: usize) -> usize {
        let number = place.base_bucket(base) + base * (place.split_bits() & self.mask as usize);
        // A bucket that is not there yet has not been split from its lower half.
        let half = base * ((self.mask as usize + 1) >> 1);
        if number < self.count as usize { number } else { number - half }
    }
}

/// The next bucket to be divided in two.
pub struct Split<'i> {
    /// The slots of the bucket.
    pub from: &'i [AtomicU64],
    /// The slots of the bucket that takes some of its entries, all empty.
    pub to: &'i [AtomicU64],
    /// Number of the new bucket.
    to_number: usize,
    /// Extent of the index afterwards.
    next: Extent,
}

impl Index {
    /// Empty buckets, of which at most `buckets` and, but for less than one in 64, as many will be
    /// in use.
    pub fn new(buckets: usize) -> Self {
        let doublings = (buckets / BASE_MIN).max(1).ilog2().min(DOUBLINGS_MAX);
        let base = (buckets >> doublings).max(1);
        let extent = Extent { count: base as u32, mask: 0 }; // at most 2³² / SLOTS
        Self {
            words: Words::new((base << doublings) * SLOTS),
            base,
            doublings,
            extent: AtomicU64::new(extent.to_word()),
        }
    }

    /// Returns how many buckets are in use.
    pub fn buckets(&self) -> usize {
        self.extent().count as usize
    }

    /// Returns which buckets are in use.
    #[inline]
    fn extent(&self) -> Extent {
        Extent::from_word(self.extent.load(Acquire))
    }

    /// Returns the number of the bucket of a place. It is another one after the bucket was split
    /// and the place's entries have moved, which a reader that has not found one must look for.
    #[inline]
    pub fn number(&self, place: Place) -> usize {
        self.extent().bucket(place, self.base)
    }

    /// Returns the bucket of a place; without a slot as long as nothing was ever stored.
    #[inline]
    pub fn bucket(&self, place: Place) -> &[AtomicU64] {
        self.slots(self.number(place))
    }

    /// Returns the slots of a bucket.
    #[inline]
    pub fn slots(&self, number: usize) -> &[AtomicU64] {
        self.words.as_slice().get(number * SLOTS..(number + 1) * SLOTS).unwrap_or_default()
    }

    /// Allocates the slots of all buckets; whether they are there.
    #[must_use]
    pub fn allocate(&self) -> bool {
        self.words.allocate()
    }

    /// Returns the bucket whose turn it is to be divided; `None` when all are in use.
    pub fn next_split(&self) -> Option<Split<'_>> {
        let Extent { count, mask } = self.extent();
        if count as usize == self.base << self.doublings {
            return None;
        }
        let is_doubled = count as usize == self.base * (mask as usize + 1);
        let mask = if is_doubled { mask << 1 | 1 } else { mask };
        let (to_number, half) = (count as usize, self.base * ((mask as usize + 1) >> 1));
        let (from, to) = (self.slots(to_number - half), self.slots(to_number));
        Some(Split { from, to, to_number, next: Extent { count: count + 1, mask } })
    }

    /// Divides a bucket in two: `place_of` says where the entry of a word belongs.
    ///
    /// An entry that moves is in both buckets when readers learn of the second, and leaves the
    /// first then. A reader that comes to the first too late finds that its number has changed.
    pub fn split(&self, split: &Split<'_>, place_of: impl Fn(Word) -> Option<Place>) {
        let moves = |slot: &AtomicU64| {
            let word = Word(slot.load(Relaxed));
            let place = Some(word).filter(|word| word.is_occupied()).and_then(&place_of)?;
            (split.next.bucket(place, self.base) == split.to_number).then_some(word)
        };
        let mut moved = [false; SLOTS];
        for ((from, to), moved) in split.from.iter().zip(split.to).zip(&mut moved) {
            if let Some(word) = moves(from) {
                to.store(word.0, Release);
                *moved = true;
            }
        }
        self.extent.store(split.next.to_word(), Release);
        for (from, _) in split.from.iter().zip(moved).filter(|(_, moved)| *moved) {
            from.store(0, Release); // hits counted meanwhile are lost
        }
    }

    /// Returns the slot that holds just this entry.
    pub fn slot_of(&self, place: Place, word: Word) -> Option<&AtomicU64> {
        let mut slots = self.bucket(place).iter();
        slots.find(|slot| Word(slot.load(Relaxed)).is_same_entry(word))
    }

    /// Empties every bucket.
    pub fn clear(&self) {
        for slot in self.words.as_slice() {
            if slot.load(Relaxed) != 0 {
                slot.store(0, Relaxed); // a page that was never written stays so
            }
        }
    }
}

/// Counts a hit, unless the count is full or another reader changed it first.
#[inline]
pub fn count_hit(slot: &AtomicU64, word: Word) {
    if word.frequency() < FREQUENCY_MAX {
        let _ = slot.compare_exchange(word.0, word.0 + 1, Relaxed, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Whether a bucket has a word.
    fn has(slots: &[AtomicU64], word: Word) -> bool {
        slots.iter().any(|slot| slot.load(Relaxed) == word.0)
    }

    #[test]
    fn every_split_leaves_each_entry_in_its_bucket_and_reports_those_that_moved() {
        let index = Index::new(1000);
        assert!(index.allocate());
        let spread = |number: u64| Place(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut entries = Vec::new();
        for number in 1..300_u32 {
            let place = spread(number.into());
            let word = Word::new(place, LogName::Small, Position(number.into()), 0);
            let empty = index.bucket(place).iter().find(|slot| slot.load(Relaxed) == 0);
            if let Some(slot) = empty {
                slot.store(word.0, Relaxed);
                entries.push((place, word));
            }
        }
        assert!(entries.len() > 250);
        let mut moves = 0;
        while let Some(split) = index.next_split() {
            let before: Vec<usize> =
                entries.iter().map(|(place, _)| index.number(*place)).collect();
            let place_of = |word: Word| entries.iter().find(|(_, it)| *it == word).map(|it| it.0);
            index.split(&split, place_of);
            for ((place, word), before) in entries.iter().zip(before) {
                assert!(has(index.bucket(*place), *word), "{} buckets", index.buckets());
                if index.number(*place) != before {
                    assert!(!has(index.slots(before), *word), "it has left the former one");
                    moves += 1;
                }
            }
        }
        assert_eq!((index.buckets(), moves > entries.len()), (1000, true));
    }
}
