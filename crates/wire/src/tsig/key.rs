//! Keys that messages are signed with.

use super::{MAC_BYTES_MAX, hmac};
use crate::name::Name;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// An algorithm of signatures (rfc8945#6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// HMAC with SHA-1, for peers that know no other.
    HmacSha1,
    /// HMAC with SHA-224, which few servers have keys for.
    HmacSha224,
    /// HMAC with SHA-256, which every implementation must know.
    HmacSha256,
    /// HMAC with SHA-384.
    HmacSha384,
    /// HMAC with SHA-512.
    HmacSha512,
}

impl Algorithm {
    /// All algorithms, the oldest first.
    pub const ALL: [Self; 5] =
        [Self::HmacSha1, Self::HmacSha224, Self::HmacSha256, Self::HmacSha384, Self::HmacSha512];

    /// Returns the algorithm's name, as configurations and messages have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::HmacSha1 => "hmac-sha1",
            Self::HmacSha224 => "hmac-sha224",
            Self::HmacSha256 => "hmac-sha256",
            Self::HmacSha384 => "hmac-sha384",
            Self::HmacSha512 => "hmac-sha512",
        }
    }

    /// Returns the name in wire form and lower case.
    #[must_use]
    pub fn wire_name(self) -> &'static [u8] {
        match self {
            Self::HmacSha1 => b"\x09hmac-sha1\0",
            Self::HmacSha224 => b"\x0bhmac-sha224\0",
            Self::HmacSha256 => b"\x0bhmac-sha256\0",
            Self::HmacSha384 => b"\x0bhmac-sha384\0",
            Self::HmacSha512 => b"\x0bhmac-sha512\0",
        }
    }

    /// Octets of a MAC that is not truncated, at most [`MAC_BYTES_MAX`].
    #[must_use]
    pub fn mac_bytes(self) -> usize {
        match self {
            Self::HmacSha1 => 20,
            Self::HmacSha224 => 28,
            Self::HmacSha256 => 32,
            Self::HmacSha384 => 48,
            Self::HmacSha512 => MAC_BYTES_MAX,
        }
    }

    /// Returns the algorithm of codes.
    #[cfg(feature = "tsig")]
    fn hmac(self) -> hmac::Algorithm {
        hmac::Algorithm::Ring(match self {
            Self::HmacSha1 => ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::HmacSha224 => return hmac::Algorithm::Sha224,
            Self::HmacSha256 => ring::hmac::HMAC_SHA256,
            Self::HmacSha384 => ring::hmac::HMAC_SHA384,
            Self::HmacSha512 => ring::hmac::HMAC_SHA512,
        })
    }
}

impl FromStr for Algorithm {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_named = |it: &Self| it.name().eq_ignore_ascii_case(text);
        Self::ALL.into_iter().find(is_named).ok_or(())
    }
}

/// The identity of a key. It depends on the name of the key alone, so that it outlives a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(u64);

impl KeyId {
    /// The id of the key with this name, of any case.
    #[must_use]
    pub fn of(name: &Name) -> Self {
        let mut hasher = DefaultHasher::new();
        name.to_lowercase().as_wire().hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// A secret that a client and this server share, with its name. It is never printed.
#[derive(Clone)]
pub struct Key {
    /// The name in lower case.
    name: Name,
    /// The identity of the key.
    id: KeyId,
    /// The algorithm that the key is for.
    algorithm: Algorithm,
    /// The secret, prepared.
    pub(super) hmac: hmac::Key,
}

impl Key {
    /// The key with a name, for an algorithm.
    #[cfg(feature = "tsig")]
    #[must_use]
    pub fn new(name: &Name, algorithm: Algorithm, secret: &[u8]) -> Self {
        let hmac = hmac::Key::new(algorithm.hmac(), secret);
        Self { name: name.to_lowercase(), id: KeyId::of(name), algorithm, hmac }
    }

    /// Returns the name in lower case.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Whether another key has the same name, algorithm and secret.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        const PROBE: &[u8] = b"the same secret signs the same";
        let [own, others] = [self, other].map(|key| hmac::sign(&key.hmac, PROBE));
        self.name == other.name
            && self.algorithm == other.algorithm
            && own.as_ref() == others.as_ref()
    }

    /// Returns the identity of the key.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Returns the algorithm that the key is for.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} {}, hidden)", self.name, self.algorithm.name())
    }
}

/// All keys of a server.
#[derive(Clone, Debug, Default)]
pub struct KeyRing {
    /// The keys, by name.
    keys: Vec<Arc<Key>>,
}

impl KeyRing {
    /// A ring of keys whose names differ.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = Key>) -> Self {
        let mut keys: Vec<_> = keys.into_iter().map(Arc::new).collect();
        keys.sort_by(|one, two| one.name.as_wire().cmp(two.name.as_wire()));
        Self { keys }
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Finds the key with a name in wire form and lower case.
    pub(super) fn named(&self, name: &[u8]) -> Option<&Arc<Key>> {
        let found = self.keys.binary_search_by(|key| key.name.as_wire().cmp(name));
        found.ok().and_then(|place| self.keys.get(place))
    }

    /// Finds a key by its id.
    #[must_use]
    pub fn get(&self, id: KeyId) -> Option<&Arc<Key>> {
        self.keys.iter().find(|key| key.id == id)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_key_is_found_by_its_name_in_any_case_and_its_secret_is_not_printed() {
        let name: Name = "Transfer.Example".parse().unwrap();
        let ring = KeyRing::new([
            Key::new(&"other".parse().unwrap(), Algorithm::HmacSha1, b"x"),
            Key::new(&name, Algorithm::HmacSha512, b"topsecret"),
        ]);
        let key = ring.named(b"\x08transfer\x07example\0").unwrap();
        assert_eq!(key.id(), KeyId::of(&"transfer.example".parse().unwrap()));
        assert!(Arc::ptr_eq(key, ring.get(KeyId::of(&name)).unwrap()));
        assert!(ring.named(b"\x08transfer\0").is_none());
        assert_eq!(format!("{key:?}"), "Key(transfer.example. hmac-sha512, hidden)");
    }

    #[test]
    fn every_algorithm_has_a_name_that_is_read_again_and_as_many_octets_as_it_says() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().to_uppercase().parse(), Ok(algorithm));
            let name: Name = algorithm.name().parse().unwrap();
            assert_eq!(name.as_wire(), algorithm.wire_name());
            let key = Key::new(&name, algorithm, b"secret");
            assert_eq!(hmac::sign(&key.hmac, b"").as_ref().len(), algorithm.mac_bytes());
        }
        assert_eq!("hmac-md5".parse::<Algorithm>(), Err(()));
    }
}
