//! HMAC by each algorithm that keys may have: `ring` has all but that with SHA-224.

use ::hmac::{Hmac, KeyInit, Mac};
use ring::hmac as of_ring;
use sha2::Sha224;

/// HMAC with SHA-224 under way.
type Sha224Context = Hmac<Sha224>;
/// Octets of the code that SHA-224 makes.
const SHA224_BYTES: usize = 28;

/// An algorithm of codes.
pub(super) enum Algorithm {
    /// An algorithm that `ring` has.
    Ring(of_ring::Algorithm),
    /// HMAC with SHA-224.
    Sha224,
}

/// A secret, prepared for an algorithm.
#[derive(Clone)]
pub(super) struct Key(Context);

/// A code under way.
#[derive(Clone)]
pub(super) enum Context {
    /// A code of an algorithm that `ring` has.
    Ring(of_ring::Context),
    /// A code by SHA-224.
    Sha224(Sha224Context),
}

/// A code.
pub(super) enum Tag {
    /// A code of an algorithm that `ring` has.
    Ring(of_ring::Tag),
    /// A code by SHA-224.
    Sha224([u8; SHA224_BYTES]),
}

impl Key {
    /// Prepares a secret.
    pub(super) fn new(algorithm: Algorithm, secret: &[u8]) -> Self {
        Self(match algorithm {
            Algorithm::Ring(algorithm) => {
                Context::Ring(of_ring::Context::with_key(&of_ring::Key::new(algorithm, secret)))
            }
            Algorithm::Sha224 => Context::Sha224(
                Sha224Context::new_from_slice(secret).expect("HMAC takes a secret of any length"),
            ),
        })
    }
}

/// Signs octets with a key.
pub(super) fn sign(key: &Key, octets: &[u8]) -> Tag {
    let mut context = Context::with_key(key);
    context.update(octets);
    context.sign()
}

impl Context {
    /// Begins a code with a key.
    pub(super) fn with_key(key: &Key) -> Self {
        key.0.clone()
    }

    /// Adds octets.
    pub(super) fn update(&mut self, octets: &[u8]) {
        match self {
            Self::Ring(context) => context.update(octets),
            Self::Sha224(context) => context.update(octets),
        }
    }

    /// Ends the code.
    pub(super) fn sign(self) -> Tag {
        match self {
            Self::Ring(context) => Tag::Ring(context.sign()),
            Self::Sha224(context) => Tag::Sha224(context.finalize().into_bytes().into()),
        }
    }
}

impl AsRef<[u8]> for Tag {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Ring(tag) => tag.as_ref(),
            Self::Sha224(tag) => tag,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hmac_sha224_has_the_codes_of_rfc_4231() {
        // rfc4231#4.2, #4.3 and #4.7
        for (secret, octets, expected) in [
            (
                &[0x0b; 20][..],
                &b"Hi There"[..],
                "896fb1128abbdf196832107cd49df33f47b4b1169912ba4f53684b22",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "a30e01098bc6dbbf45690f3a7e9e6d0f8bbea2a39e6148008fd05e44",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "95e9a0db962095adaebe9b2d6f0dbce2d499f112f2d2b7273fa6870e",
            ),
        ] {
            let tag = sign(&Key::new(Algorithm::Sha224, secret), octets);
            let hex: String = tag.as_ref().iter().map(|octet| format!("{octet:02x}")).collect();
            assert_eq!(hex, expected);
        }
    }
}
