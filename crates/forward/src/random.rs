//! Numbers that no attacker can foresee.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use zonda_upstream::query::CaseBits;
use zonda_zone::{random_octets, try_random_octets};

/// Numbers that are made with one key: one that leaks tells nothing of what was sent an hour ago.
const NUMBERS_PER_KEY: u64 = 1_000_000;

/// Octets of the system's generator for cryptography.
///
/// # Panics
/// When the system has no such generator; Linux has had one since version 3.17.
pub fn secret() -> [u8; 16] {
    random_octets()
}

/// SipHash-2-4 of a counter: a pseudorandom function, whose key is renewed.
pub struct RandomSource {
    /// Holds the key; nothing was hashed yet.
    keyed: SipHasher24,
    /// Numbers made with that key.
    counter: u64,
    /// A number of which parts were not used yet, lowest bits first.
    rest: u64,
    /// Number of unused bits of `rest`.
    rest_bits: u32,
}

impl RandomSource {
    /// A generator with a random key of the system.
    ///
    /// # Panics
    /// As [`secret`].
    pub fn new() -> Self {
        Self::with_key(&secret())
    }

    /// A generator with a given key.
    fn with_key(key: &[u8; 16]) -> Self {
        Self { keyed: SipHasher24::new_with_key(key), counter: 0, rest: 0, rest_bits: 0 }
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        if self.counter >= NUMBERS_PER_KEY {
            self.renew();
        }
        self.counter += 1;
        let mut hasher = self.keyed;
        hasher.write_u64(self.counter);
        hasher.finish()
    }

    /// The next number of 16 bits: a quarter of one of 64.
    pub fn next_u16(&mut self) -> u16 {
        if self.rest_bits == 0 {
            (self.rest, self.rest_bits) = (self.next(), u64::BITS);
        }
        let number = self.rest as u16;
        self.rest >>= u16::BITS;
        self.rest_bits -= u16::BITS;
        number
    }

    /// Takes another key. Without one from the system the former stays good.
    #[cold]
    fn renew(&mut self) {
        if let Some(key) = try_random_octets() {
            *self = Self::with_key(&key);
        }
    }

    /// Which letters of a name of so many octets change their case.
    pub fn case_bits(&mut self, octets: usize) -> CaseBits {
        std::array::from_fn(|word| if word * 64 < octets { self.next() } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_siphash_2_4_of_a_counter_and_the_key_is_renewed() {
        // Appendix A of the SipHash paper: key 00 01 … 0f.
        let key: [u8; 16] = std::array::from_fn(|octet| octet as u8);
        let mut reference = SipHasher24::new_with_key(&key);
        reference.write(&std::array::from_fn::<u8, 15, _>(|octet| octet as u8));
        assert_eq!(reference.finish(), 0xa129_ca61_49be_45e5);
        let (mut first, mut second) = (RandomSource::with_key(&key), RandomSource::with_key(&key));
        let numbers: Vec<u64> = (0..10).map(|_| first.next()).collect();
        assert!(numbers.iter().all(|number| second.next() == *number));
        first.counter = NUMBERS_PER_KEY;
        let renewed: Vec<u64> = (0..10).map(|_| first.next()).collect();
        assert_eq!(first.counter, 10);
        assert!(renewed.iter().all(|number| !numbers.contains(number)));
    }

    #[test]
    fn four_numbers_of_16_bits_are_made_of_one_and_none_of_its_bits_is_used_twice() {
        let (mut parts, mut whole) =
            (RandomSource::with_key(&[7; 16]), RandomSource::with_key(&[7; 16]));
        for _ in 0..10 {
            let of_parts =
                (0..4).fold(0, |number, at| number | u64::from(parts.next_u16()) << (16 * at));
            assert_eq!(of_parts, whole.next());
        }
    }

    #[test]
    fn two_threads_roll_different_numbers() {
        assert_ne!(RandomSource::new().next(), RandomSource::new().next());
        assert_ne!(secret(), secret());
    }
}
