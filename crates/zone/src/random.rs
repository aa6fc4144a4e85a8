//! Octets that cannot be foreseen.

use ring::rand::{SecureRandom, SystemRandom};

/// Octets of the system's generator for cryptography, which waits until it has been seeded.
///
/// # Panics
/// When the system has no such generator; Linux has had one since version 3.17.
#[must_use]
pub fn random_octets<const N: usize>() -> [u8; N] {
    let mut octets = [0; N];
    SystemRandom::new().fill(&mut octets).expect("the system gives random octets");
    octets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HashSeed;

    #[test]
    fn no_two_secrets_are_alike() {
        assert_ne!(random_octets::<16>(), random_octets::<16>());
        assert_ne!(HashSeed::random(), HashSeed::random());
    }
}
