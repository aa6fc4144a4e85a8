//! Tables by numbers: by numbers that this server makes, which need no keyed hash, and by numbers
//! that a remote host chooses, which do.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

/// A table by numbers that no client chooses, or that no client can learn.
pub type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// A table by numbers that clients choose; without the secret, they could fill one place of a table
/// whose hash they know.
pub type UntrustedKeyMap<K, V> = HashMap<K, V, Secret>;

/// An odd number whose product spreads a number over the upper bits: 2⁶⁴ over the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes one number.
#[derive(Clone, Copy, Debug, Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, octets: &[u8]) {
        for part in octets.chunks(8) {
            let mut number = [0; 8];
            number[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(number));
        }
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(SPREAD);
    }

    /// Mixes the number: the table takes the place from the lower bits and a check from the upper
    /// ones.
    fn finish(&self) -> u64 {
        self.0.rotate_left(32)
    }
}

/// What a hash begins and ends with.
#[derive(Clone, Copy, Debug)]
pub struct Secret([u64; 2]);

impl Default for Secret {
    fn default() -> Self {
        let random = RandomState::new();
        Self([0, 1].map(|number: u64| random.hash_one(number)))
    }
}

impl BuildHasher for Secret {
    type Hasher = SecretHasher;

    fn build_hasher(&self) -> SecretHasher {
        let Self([state, last]) = *self;
        SecretHasher { state, last }
    }
}

/// Hashes one number with a secret.
#[derive(Clone, Copy, Debug)]
pub struct SecretHasher {
    /// The hash so far.
    state: u64,
    /// The other half of the secret.
    last: u64,
}

impl Hasher for SecretHasher {
    fn write(&mut self, octets: &[u8]) {
        octets.iter().for_each(|octet| self.write_u64((*octet).into()));
    }

    fn write_u64(&mut self, number: u64) {
        self.state = fold(self.state ^ number);
    }

    fn finish(&self) -> u64 {
        fold(self.state ^ self.last)
    }
}

/// Returns both halves of a product.
fn fold(number: u64) -> u64 {
    let product = u128::from(number) * u128::from(SPREAD);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::net::SocketAddr;

    /// Returns how many places of 1024, and how many of 128 checks, are hit by so many hashes.
    fn spread(hashes: impl Iterator<Item = u64> + Clone) -> (usize, usize) {
        let places: HashSet<u64> = hashes.clone().map(|hash| hash % 1024).collect();
        let checks: HashSet<u64> = hashes.map(|hash| hash >> 57).collect();
        (places.len(), checks.len())
    }

    #[test]
    fn numbers_in_a_row_are_spread_over_a_table() {
        let hash = BuildHasherDefault::<NumberHasher>::default();
        let (places, checks) = spread((0..1000_u16).map(|number| hash.hash_one(number)));
        assert!(places > 500 && checks > 100, "{places} places of 1024, {checks} checks of 128");
        let secret = Secret::default();
        let (places, checks) = spread((0..1000_u64).map(|number| secret.hash_one(number)));
        assert!(places > 500 && checks > 100, "{places} places of 1024, {checks} checks of 128");
    }

    #[test]
    fn addresses_differ_by_host_and_port() {
        let hash = BuildHasherDefault::<NumberHasher>::default();
        let address = |port: u16| SocketAddr::from(([10, 0, (port >> 8) as u8, port as u8], port));
        let (places, checks) = spread((0..1000).map(|port| hash.hash_one(address(port))));
        assert!(places > 500 && checks > 100, "{places} places of 1024, {checks} checks of 128");
    }

    #[test]
    fn numbers_that_share_a_place_in_one_table_do_not_in_another() {
        let known = Secret::default();
        let alike = |number: &u64| known.hash_one(number).is_multiple_of(1024);
        let chosen: Vec<u64> = (0..1 << 20).filter(alike).take(500).collect();
        let other = Secret::default();
        let (places, _) = spread(chosen.iter().map(|number| other.hash_one(number)));
        assert!(chosen.len() == 500 && places > 300, "{places} of 1024");
    }
}
