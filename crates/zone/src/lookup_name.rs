//! A name prepared for lookup: in lower case, with the hash of each of its suffixes.
//!
//! The hash runs over the labels from right to left, so that one pass over a name yields the hash
//! of every ancestor, and the hash of a child follows from that of its parent.

use std::fmt;
use zonda_wire::Name;
use zonda_wire::name::{LABELS_MAX, NAME_BYTES_MAX, Presentation};

/// A secret of the process that decides where names fall in hash tables.
///
/// All tables and names that meet must share it. Tests and instruction counts fix it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashSeed(pub u64);

impl HashSeed {
    /// Makes a seed that no other process knows.
    ///
    /// # Panics
    /// When the system gives no random octets, as [`random_octets`](crate::random_octets).
    #[must_use]
    pub fn random() -> Self {
        Self(u64::from_le_bytes(crate::random_octets()))
    }
}

/// The hash of `*` below the name with hash `parent`.
#[inline]
pub(crate) fn wildcard_hash(parent: u64) -> u64 {
    mix(parent, u64::from_le_bytes(*b"\x01*\0\0\0\0\0\0"))
}

/// One step of the hash: a folded multiplication, which spreads every input bit over the result.
#[inline]
fn mix(hash: u64, chunk: u64) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15; // 2⁶⁴ divided by the golden ratio
    let product = u128::from(hash ^ chunk) * u128::from((ODD ^ hash.rotate_left(32)) | 1);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Octets behind the name that are zero, so that it can be read eight at a time.
const PADDING: usize = 8;

/// A name in lower case, the places of its labels, and the hashes of its suffixes.
#[derive(Clone)]
pub struct LookupName {
    bytes: [u8; NAME_BYTES_MAX + PADDING],
    len: u8,
    count: u8,
    /// Where label *i* begins; `starts[count]` is the root's place.
    starts: [u8; LABELS_MAX + 1],
    /// The hash of the suffix that begins at label *i*; `hashes[count]` is the root's.
    hashes: [u64; LABELS_MAX + 1],
}

impl From<&LookupName> for Name {
    fn from(name: &LookupName) -> Self {
        Self::from_wire(name.as_wire()).unwrap_or_else(|_| Self::root()) // it is one
    }
}

impl fmt::Display for LookupName {
    /// Writes the name as in a zone file, with the final dot.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Presentation(self.as_wire()).fmt(f)
    }
}

impl fmt::Debug for LookupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LookupName({self})")
    }
}

impl Default for LookupName {
    /// The root, whose hash is not known yet.
    fn default() -> Self {
        Self {
            bytes: [0; NAME_BYTES_MAX + PADDING],
            len: 1,
            count: 0,
            starts: [0; LABELS_MAX + 1],
            hashes: [0; LABELS_MAX + 1],
        }
    }
}

impl LookupName {
    /// A name of its own; `wire` as for [`set`](Self::set).
    #[doc(hidden)]
    #[must_use]
    pub fn new(wire: &[u8], seed: HashSeed) -> Self {
        let mut name = Self::default();
        name.set(wire, seed);
        name
    }

    /// Takes over a name in uncompressed wire form, of any case.
    ///
    /// # Panics
    /// When `wire` is longer than a name can be; other octets than a name's give a name without
    /// meaning.
    #[doc(hidden)]
    pub fn set(&mut self, wire: &[u8], seed: HashSeed) {
        self.set_from(wire, wire.len(), seed);
    }

    /// Takes over the name that is the first `len` octets of `octets`. What lies behind it has no
    /// meaning, but is copied along because whole words are copied faster.
    ///
    /// # Panics
    /// As [`set`](Self::set).
    #[doc(hidden)]
    #[inline]
    pub fn set_from(&mut self, octets: &[u8], len: usize, seed: HashSeed) {
        debug_assert_eq!(zonda_wire::name::wire_len(&octets[..len]), Some(len));
        self.len = len as u8; // a name has at most 255 octets
        let whole_words = len.next_multiple_of(8);
        match octets.get(..whole_words) {
            Some(words) => self.copy_lowercase(words),
            None => {
                self.bytes[..len].copy_from_slice(&octets[..len]);
                self.bytes[..len].make_ascii_lowercase();
            }
        }
        let (mut at, mut count) = (0_usize, 0);
        while count < LABELS_MAX {
            let len = self.bytes[at];
            if len == 0 {
                break;
            }
            self.starts[count] = at as u8;
            count += 1;
            at = (at + 1 + usize::from(len)).min(NAME_BYTES_MAX);
        }
        self.starts[count] = at as u8;
        self.count = count as u8;
        let mut hash = seed.0;
        self.hashes[count] = hash;
        for label in (0..count).rev() {
            let (start, end) =
                (usize::from(self.starts[label]), usize::from(self.starts[label + 1]));
            hash = self.hash_label(hash, start, end);
            self.hashes[label] = hash;
        }
    }

    /// Copies whole words, letters in lower case. Length octets are below `A`, so the whole name is
    /// treated alike.
    #[inline]
    fn copy_lowercase(&mut self, words: &[u8]) {
        for (from, to) in words.chunks_exact(8).zip(self.bytes.chunks_exact_mut(8)) {
            let word = u64::from_le_bytes(from.try_into().expect("eight octets"));
            to.copy_from_slice(&lowercase(word).to_le_bytes());
        }
    }

    /// Adds the label between two places, its length octet included, to a hash.
    #[inline]
    fn hash_label(&self, mut hash: u64, start: usize, end: usize) -> u64 {
        let word = |at: usize| {
            let octets = self.bytes[at..at + 8].try_into().expect("eight octets");
            u64::from_le_bytes(octets)
        };
        let mut at = start;
        while at + 8 < end {
            hash = mix(hash, word(at));
            at += 8;
        }
        let unused_bits = 64 - 8 * (end - at) as u32; // one to eight octets are left
        mix(hash, word(at) & (u64::MAX >> unused_bits))
    }

    /// The name in lower case, wire form.
    #[inline]
    #[must_use]
    pub fn as_wire(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Returns the number of labels of the name, the root's not counted.
    #[inline]
    #[must_use]
    pub fn label_count(&self) -> usize {
        usize::from(self.count)
    }

    /// The octets of label `label`, without its length.
    ///
    /// # Panics
    /// When there is no such label.
    #[inline]
    #[must_use]
    pub fn label(&self, label: usize) -> &[u8] {
        &self.bytes[usize::from(self.starts[label]) + 1..usize::from(self.starts[label + 1])]
    }

    /// The octets of the suffix that begins at label `label`, up to and with the root's.
    ///
    /// # Panics
    /// When `label` is above [`label_count`](Self::label_count).
    #[inline]
    #[must_use]
    pub fn suffix(&self, label: usize) -> &[u8] {
        &self.bytes[usize::from(self.starts[label])..usize::from(self.len)]
    }

    /// The hash of the suffix that begins at label `label`.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn hash(&self, label: usize) -> u64 {
        self.hashes[label]
    }
}

/// Turns the upper-case ASCII letters among eight octets into lower case.
#[inline]
fn lowercase(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let low_bits = word & (0x7f * ONES);
    let at_least_a = low_bits + u64::from(0x80 - b'A') * ONES;
    let above_z = low_bits + u64::from(0x7f - b'Z') * ONES;
    let upper = at_least_a & !above_z & !word & (0x80 * ONES);
    word | upper >> 2
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use zonda_wire::Name;

    const SEED: HashSeed = HashSeed(7);

    fn lookup(text: &str) -> LookupName {
        LookupName::new(text.parse::<Name>().unwrap().as_wire(), SEED)
    }

    #[test]
    fn eight_octets_at_a_time_equal_one_at_a_time() {
        for octet in 0..=255_u8 {
            let word = u64::from_ne_bytes([octet, b'Z', b'[', b'@', 0xc1, b'a', octet, 0]);
            let expected = word.to_ne_bytes().map(|o| o.to_ascii_lowercase());
            assert_eq!(lowercase(word).to_ne_bytes(), expected);
        }
    }

    #[test]
    fn a_suffix_hashes_as_the_name_it_is() {
        let name = lookup("WWW.a-label-of-some-length.Example.com");
        for (label, text) in [
            "www.a-label-of-some-length.example.com",
            "a-label-of-some-length.example.COM",
            "example.com",
            "com",
            ".",
        ]
        .iter()
        .enumerate()
        {
            assert_eq!(name.hash(label), lookup(text).hash(0), "{text}");
            assert_eq!(name.suffix(label), lookup(text).as_wire(), "{text}");
        }
        assert_eq!(wildcard_hash(name.hash(2)), lookup("*.example.com").hash(0));
    }

    #[test]
    fn hashes_of_many_similar_names_differ() {
        let mut hashes: Vec<_> =
            (0..20_000).map(|i| lookup(&format!("h{i}.example")).hash(0)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 20_000);
    }

    #[test]
    fn the_longest_name_fits() {
        let text =
            format!("{}.{}.{}.{}", "a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61));
        assert_eq!(lookup(&text).as_wire().len(), 255);
        assert_eq!(lookup(&"a.".repeat(127)).label_count(), 127);
    }
}
