//! HMAC in a program without the feature `tsig`: there is no key, so that no message is signed and
//! no signature is sound. The names are those of `hmac.rs`.

use std::convert::Infallible;

/// A secret, of which there is none.
#[derive(Clone)]
pub(super) struct Key(Infallible);

/// A code under way, of which there is none.
#[derive(Clone)]
pub(super) struct Context(Infallible);

/// A code, of which there is none.
pub(super) struct Tag(Infallible);

/// Signs octets with a key.
pub(super) fn sign(key: &Key, _octets: &[u8]) -> Tag {
    match key.0 {}
}

impl Context {
    /// Begins a code with a key.
    pub(super) fn with_key(key: &Key) -> Self {
        match key.0 {}
    }

    /// Adds octets.
    pub(super) fn update(&mut self, _octets: &[u8]) {
        match self.0 {}
    }

    /// Ends the code.
    pub(super) fn sign(self) -> Tag {
        match self.0 {}
    }
}

impl AsRef<[u8]> for Tag {
    fn as_ref(&self) -> &[u8] {
        match self.0 {}
    }
}
