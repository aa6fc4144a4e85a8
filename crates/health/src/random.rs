//! Random numbers for the schedule.

use std::hash::{BuildHasher, RandomState};

/// A generator for jitter, where nothing is gained by guessing what comes next (SplitMix64).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Makes a generator that no two processes have the same of.
    pub fn new() -> Self {
        Self(RandomState::new().hash_one(0))
    }

    /// Makes a generator that repeats itself.
    #[cfg(test)]
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * u128::from(end)) >> 64) as u64
    }
}
