//! Where the next entry of a circular log goes, and which one leaves.
//!
//! ```text
//!   lap 7  ····················[tail e7 e8 e9 |lap_end]
//!   lap 8  [e10 e11 e12 head)···
//! ```
//!
//! An entry never wraps: when it does not fit before the end, it opens the next lap. A [`Position`]
//! is a lap and a word, so positions only grow, and whatever lies below the tail is gone for good.

/// Bits of a position that say which word; the rest count laps.
const OFFSET_BITS: u32 = 28;
/// Most words in a log: 2 GiB.
pub const LOG_WORDS_MAX: usize = 1 << OFFSET_BITS;

/// A place in a log that is never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

impl Position {
    /// Bits that distinguish the positions of one log at any one time, and long after.
    pub const BITS: u32 = OFFSET_BITS + 6;

    /// Makes a word of a lap.
    fn new(lap: u64, offset: usize) -> Self {
        Self(lap << OFFSET_BITS | offset as u64)
    }

    /// Returns how often the log was filled before.
    fn lap(self) -> u64 {
        self.0 >> OFFSET_BITS
    }

    /// Returns the word in the log.
    #[inline]
    pub fn offset(self) -> usize {
        self.0 as usize & (LOG_WORDS_MAX - 1)
    }

    /// Returns the next word.
    fn plus(self, words: usize) -> Self {
        Self(self.0 + words as u64)
    }

    /// Returns the first position from `tail` on whose lower bits are `low`.
    #[inline]
    pub fn from_low(low: u64, tail: Self) -> Self {
        let mask = (1 << Self::BITS) - 1;
        Self(tail.0 + (low.wrapping_sub(tail.0) & mask))
    }

    /// Returns the lower bits.
    #[inline]
    pub fn low(self) -> u64 {
        self.0 & ((1 << Self::BITS) - 1)
    }
}

/// The two ends of a log. Copies serve to try something out.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    /// Words in the log.
    capacity: usize,
    /// Position of the next entry, if it fits before the end.
    head: Position,
    /// The oldest entry; the head when there is none.
    tail: Position,
    /// End of the lap before the head's.
    lap_end: usize,
}

impl Ring {
    /// Makes an empty log of at most [`LOG_WORDS_MAX`] words.
    pub fn new(capacity: usize) -> Self {
        let start = Position::new(0, 0);
        Self { capacity: capacity.min(LOG_WORDS_MAX), head: start, tail: start, lap_end: 0 }
    }

    /// Returns the oldest entry.
    pub fn tail(&self) -> Position {
        self.tail
    }

    /// The position behind the youngest entry.
    pub fn head(&self) -> Position {
        self.head
    }

    /// Whether no entry is left.
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Returns the words in the log.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Takes `words` words at the head; `None`, and nothing changes, when entries are in the way.
    pub fn append(&mut self, words: usize) -> Option<Position> {
        let (lap, offset) = (self.head.lap(), self.head.offset());
        let opens_lap = offset + words > self.capacity;
        let at = if opens_lap { Position::new(lap + 1, 0) } else { self.head };
        if self.is_empty() && opens_lap {
            self.tail = at;
        }
        let free_until = match at.lap() - self.tail.lap() {
            0 => self.capacity,
            1 => self.tail.offset(),
            _ => 0,
        };
        if at.offset() + words > free_until {
            return None;
        }
        if opens_lap {
            self.lap_end = offset;
        }
        self.head = at.plus(words);
        Some(at)
    }

    /// Gives up the oldest entry, which has `words` words.
    pub fn release(&mut self, words: usize) {
        self.tail = self.after(self.tail, words);
    }

    /// Returns where the entry behind the one of `words` words at `at` begins.
    pub fn after(&self, at: Position, words: usize) -> Position {
        let next = at.plus(words);
        let ends_lap = next.lap() < self.head.lap() && next.offset() == self.lap_end;
        if ends_lap { Position::new(next.lap() + 1, 0) } else { next }
    }

    /// Gives up all entries.
    pub fn clear(&mut self) {
        self.tail = self.head;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn entries_leave_in_order_and_never_share_a_word() {
        for capacity in [40, 64, 101] {
            let mut ring = Ring::new(capacity);
            let mut held = VecDeque::new();
            let mut last = None;
            for turn in 0..5_000_usize {
                let words = 1 + turn * 7 % 13;
                let at = loop {
                    match ring.append(words) {
                        Some(at) => break at,
                        None => {
                            let (at, words) = held.pop_front().unwrap();
                            assert_eq!(at, ring.tail());
                            ring.release(words);
                        }
                    }
                };
                assert!(at.offset() + words <= capacity && Some(at) > last);
                assert!(at >= ring.tail());
                last = Some(at);
                for &(other, others) in &held {
                    let apart = at.offset() + words <= Position::offset(other)
                        || other.offset() + others <= at.offset();
                    assert!(apart, "{at:?}+{words} meets {other:?}+{others}");
                }
                held.push_back((at, words));
            }
            for (at, words) in held {
                assert_eq!(at, ring.tail());
                ring.release(words);
            }
            assert!(ring.is_empty());
        }
    }

    #[test]
    fn a_position_comes_back_from_its_lower_bits() {
        let tail = Position::new(77, 5);
        for at in [tail, Position::new(77, 9), Position::new(78, 3), Position::new(79, 0)] {
            assert_eq!(Position::from_low(at.low(), tail), at);
        }
    }
}
