//! Numbers that nobody can foresee.

use std::hash::{BuildHasher, RandomState};

use zonda_upstream::query::CaseBits;

/// A keyed hash of a counter.
pub struct Dice {
    /// Holds the key.
    state: RandomState,
    /// What is hashed next.
    counter: u64,
}

impl Dice {
    /// With a key from the system.
    pub fn new() -> Self {
        Self { state: RandomState::new(), counter: 0 }
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.counter += 1;
        self.state.hash_one(self.counter)
    }

    /// Which letters of a name of so many octets change their case.
    pub fn case_bits(&mut self, octets: usize) -> CaseBits {
        std::array::from_fn(|word| if word * 64 < octets { self.roll() } else { 0 })
    }
}
