//! Numbers that nobody can foresee.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use zonda_upstream::query::CaseBits;

/// A keyed hash, of a counter or of what it is asked for.
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

    /// Which letters of a name change their case.
    pub fn case_bits(&mut self) -> CaseBits {
        std::array::from_fn(|_| self.roll())
    }

    /// The client cookie for an upstream, the same each time (rfc7873#4.1).
    pub fn cookie(&self, upstream: SocketAddr) -> [u8; 8] {
        self.state.hash_one(upstream).to_be_bytes()
    }
}
