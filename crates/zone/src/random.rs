//! Octets that cannot be foreseen.

/// Octets of the system's generator for cryptography, which waits until it has been seeded.
///
/// # Panics
/// When the system has no such generator; Linux has had one since version 3.17.
#[must_use]
pub fn random_octets<const N: usize>() -> [u8; N] {
    try_random_octets().expect("the system gives random octets")
}

/// Octets as those of [`random_octets`]; none when the system gives none.
#[cfg(feature = "nsec3")]
#[must_use]
pub fn try_random_octets<const N: usize>() -> Option<[u8; N]> {
    use ring::rand::{SecureRandom, SystemRandom};

    let mut octets = [0; N];
    SystemRandom::new().fill(&mut octets).ok().map(|()| octets)
}

/// Octets as those of [`random_octets`], by the system's file of them; none when there is none.
#[cfg(not(feature = "nsec3"))]
#[must_use]
pub fn try_random_octets<const N: usize>() -> Option<[u8; N]> {
    use std::io::Read;

    let mut octets = [0; N];
    let mut file = std::fs::File::open("/dev/urandom").ok()?;
    file.read_exact(&mut octets).ok().map(|()| octets)
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
