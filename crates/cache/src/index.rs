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

use crate::ring::Position;
use crate::words::{LINE_WORDS, Words};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Slots in a bucket.
pub const SLOTS: usize = LINE_WORDS;
/// The highest frequency that is counted; more hits write nothing (S3-FIFO).
pub const FREQUENCY_MAX: u64 = 3;

/// Says that the slot is taken.
const HELD: u64 = 1 << 3;
/// The place of the bit that tells the log.
const LOG_SHIFT: u32 = 2;
/// The place of the position.
const POSITION_SHIFT: u32 = 4;
/// The place of the tag.
const TAG_SHIFT: u32 = POSITION_SHIFT + Position::BITS;

/// A hash of everything that tells questions apart, and which of its bits decide what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(pub u64);

impl Place {
    /// Most shards that the bits suffice for.
    pub const SHARDS_MAX: usize = 1024;
    /// The bits that tell the members of a group apart; the others say where the group is.
    const MEMBER: u64 = 0xffff_fc00;

    /// The place of a member of a group, given a hash of either.
    #[inline]
    pub fn new(group: u64, member: u64) -> Self {
        Self(group & !Self::MEMBER | member & Self::MEMBER)
    }

    /// One of `shards` shards, a power of two: bits 0–9.
    #[inline]
    pub fn shard(self, shards: usize) -> usize {
        self.0 as usize & (shards - 1)
    }

    /// One of `buckets` buckets, fewer than 2³²: bits 32–63.
    #[inline]
    pub fn bucket(self, buckets: usize) -> usize {
        (((self.0 >> 32) * buckets as u64) >> 32) as usize
    }

    /// What tells the entries of a bucket apart: bits 10–35.
    #[inline]
    fn tag(self) -> u64 {
        self.0 >> 10 << TAG_SHIFT
    }

    /// What an entry is remembered by when it is gone, never zero: bits 10–41.
    pub fn fingerprint(self) -> u32 {
        ((self.0 >> 10) as u32).max(1)
    }
}

/// Which of a shard's two logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogName {
    /// Where new entries prove themselves.
    Small = 0,
    /// Where those stay that were asked for again.
    Main = 1,
}

/// A slot's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(pub u64);

impl Word {
    /// An entry.
    pub fn new(place: Place, log: LogName, position: Position, frequency: u64) -> Self {
        debug_assert!(frequency <= FREQUENCY_MAX);
        let at = position.low() << POSITION_SHIFT;
        Self(place.tag() | at | HELD | (log as u64) << LOG_SHIFT | frequency)
    }

    /// Whether there is an entry.
    #[inline]
    pub fn is_held(self) -> bool {
        self.0 & HELD != 0
    }

    /// Whether the entry may be that of `place`; wrong once in 2²² times.
    #[inline]
    pub fn may_be(self, place: Place) -> bool {
        self.is_held() && self.0 >> TAG_SHIFT == place.tag() >> TAG_SHIFT
    }

    /// The log that the entry lies in.
    #[inline]
    pub fn log(self) -> LogName {
        if self.0 >> LOG_SHIFT & 1 == 0 { LogName::Small } else { LogName::Main }
    }

    /// Where it lies, given a tail of its log that was read before the word.
    #[inline]
    pub fn position(self, tail: Position) -> Position {
        Position::from_low(self.0 >> POSITION_SHIFT, tail)
    }

    /// How often it was found since it was written or last passed over, 0–3.
    #[inline]
    pub fn frequency(self) -> u64 {
        self.0 & FREQUENCY_MAX
    }

    /// Whether both are the same entry at the same place, however often it was found.
    pub fn is_same_entry(self, other: Self) -> bool {
        (self.0 ^ other.0) & !FREQUENCY_MAX == 0
    }
}

/// The buckets.
pub struct Index {
    words: Words,
    buckets: usize,
}

impl Index {
    /// Empty buckets.
    pub fn new(buckets: usize) -> Self {
        Self { words: Words::new(buckets * SLOTS), buckets }
    }

    /// How many buckets there are.
    pub fn buckets(&self) -> usize {
        self.buckets
    }

    /// The bucket of a place.
    #[inline]
    pub fn bucket(&self, place: Place) -> &[AtomicU64] {
        let start = place.bucket(self.buckets) * SLOTS;
        &self.words.as_slice()[start..start + SLOTS]
    }

    /// The slot that holds just this entry.
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

/// Counts a hit, unless it does not count any more or somebody was quicker.
#[inline]
pub fn count_hit(slot: &AtomicU64, word: Word) {
    if word.frequency() < FREQUENCY_MAX {
        let _ = slot.compare_exchange(word.0, word.0 + 1, Relaxed, Relaxed);
    }
}
