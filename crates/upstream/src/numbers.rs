//! Tables by numbers of our own, which need no hash that a stranger cannot foresee.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by numbers that nobody outside chooses, or that he cannot learn.
pub type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// An odd number whose product spreads a number over the upper bits: 2⁶⁴ over the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes one number.
#[derive(Clone, Copy, Debug, Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, octets: &[u8]) {
        octets.iter().for_each(|octet| self.write_u64((*octet).into()));
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(SPREAD);
    }

    /// The table takes the place from the lower bits and a check from the upper ones.
    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    #[test]
    fn numbers_in_a_row_are_spread_over_a_table() {
        let hash = BuildHasherDefault::<NumberHasher>::default();
        let places: HashSet<u64> =
            (0..1000_u16).map(|number| hash.hash_one(number) % 1024).collect();
        assert!(places.len() > 500, "{} places of 1024", places.len());
        let checks: HashSet<u64> =
            (0..1000_u16).map(|number| hash.hash_one(number) >> 57).collect();
        assert!(checks.len() > 100, "{} checks of 128", checks.len());
    }
}
