//! The TSIG record of a query, read.

use super::key::KeyRing;
use super::sign::{Digest, QuerySignature, SignatureCheck};
use super::{FIXED_BYTES, MAC_BYTES_MAX, TIME_BYTES, split};
use crate::code::{Class, Rcode, Type};
use crate::message::Reader;
use crate::name::{LABEL_BYTES_MAX, NAME_BYTES_MAX};

/// The least octets of a truncated MAC, if half of the whole one is not more (rfc8945#5.2.2.1).
const TRUNCATED_BYTES_MIN: usize = 10;

/// The TSIG record of a query, and memory for its names that is used again.
pub struct SignatureRecord {
    /// The key's name as it came, uncompressed.
    name: Vec<u8>,
    /// The name of the key, then that of the algorithm, in lower case.
    names: Vec<u8>,
    /// The data of a reply's record.
    rdata: Vec<u8>,
}

impl Default for SignatureRecord {
    fn default() -> Self {
        // Room for one label more, as it shows only then that a name is too long.
        let name = Vec::with_capacity(NAME_BYTES_MAX + LABEL_BYTES_MAX + 1);
        let names = Vec::with_capacity(2 * NAME_BYTES_MAX);
        Self { name, names, rdata: Vec::with_capacity(NAME_BYTES_MAX + FIXED_BYTES) }
    }
}

impl SignatureRecord {
    /// Reads the names of the record that begins at `at` of a query; returns its data.
    fn read<'q>(&mut self, query: &'q [u8], at: usize) -> Option<&'q [u8]> {
        self.name.clear();
        let mut reader = Reader { octets: query, at };
        reader.name_into(&mut self.name)?;
        reader.take(2 + 2 + 4)?; // type, class, TTL
        let len = reader.u16()?;
        reader.take(usize::from(len))
    }

    /// Checks the signature of a query whose TSIG record begins at `at` and ends with it; seconds
    /// since 1970. `None` when no such record can be read there, or its MAC has a length that no
    /// signature may have (rfc8945#5.2.2.1).
    #[must_use]
    pub fn verify(
        &mut self,
        query: &[u8],
        at: usize,
        keys: &KeyRing,
        now_secs: u64,
    ) -> Option<QuerySignature> {
        let rdata = self.read(query, at)?;
        let parts = split(rdata)?;
        self.names.clear();
        self.names.extend(self.name.iter().map(u8::to_ascii_lowercase));
        let algorithm = parts.algorithm;
        let key = keys.named(&self.names).filter(|key| {
            algorithm.eq_ignore_ascii_case(key.algorithm().wire_name()) // rfc8945#5.2.1
        });
        let Some(key) = key else { return Some(QuerySignature::UNKNOWN_KEY) };
        let whole = key.algorithm().mac_bytes();
        let least = TRUNCATED_BYTES_MIN.max(whole.div_ceil(2));
        if !(least..=whole).contains(&parts.mac.len()) {
            return None;
        }
        let mut signature = QuerySignature::of(key, &parts)?;
        let mut digest = Digest::begin(key, parts.id);
        digest.message(query.get(..at)?, 1);
        digest.variables(key, parts.time, parts.error, parts.other);
        signature.check = if !is_equal(&digest.finish().as_ref()[..parts.mac.len()], parts.mac) {
            SignatureCheck::WrongMac
        } else if !signature.is_in_time(now_secs) {
            SignatureCheck::WrongTime
        } else if parts.mac.len() < whole {
            SignatureCheck::Truncated
        } else {
            SignatureCheck::Sound
        };
        Some(signature)
    }

    /// Makes this the record of a reply that is not signed, to a query whose own TSIG record begins
    /// at `at`, with an error (rfc8945#5.3.2). `None` when no such record can be read there; its
    /// content is then undefined.
    #[must_use]
    pub fn reject(&mut self, query: &[u8], at: usize, error: Rcode) -> Option<()> {
        let parts = split(self.read(query, at)?)?;
        self.rdata.clear();
        self.rdata.extend_from_slice(parts.algorithm);
        self.rdata.extend_from_slice(&parts.time[..TIME_BYTES]);
        self.rdata.extend_from_slice(&[0, 0]); // nothing to sign with
        self.rdata.extend_from_slice(&parts.id);
        self.rdata.extend_from_slice(&error.0.to_be_bytes());
        self.rdata.extend_from_slice(&[0, 0]);
        Some(())
    }

    /// Returns the owner of the record, its type, class and TTL, and its data.
    #[must_use]
    pub fn rejection(&self) -> (&[u8], (Type, Class, u32), &[u8]) {
        (&self.name, (Type::TSIG, Class::ANY, 0), &self.rdata)
    }
}

/// Whether two MACs are the same; takes as long wherever they differ, so that the time tells
/// nothing of the right one.
pub(super) fn is_equal(one: &[u8], other: &[u8]) -> bool {
    debug_assert!(one.len() <= MAC_BYTES_MAX);
    let pairs = one.iter().zip(other);
    let differing = pairs.fold(0, |bits, (a, b)| std::hint::black_box(bits | (a ^ b)));
    one.len() == other.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record behind its type: class, TTL, length, algorithm `a`, time, fudge, MAC, id, error,
    /// other data.
    const SOUND: &[u8] = b"\0\xff\0\0\0\0\0\x18\x01a\0\0\0\x65\0\0\0\x01\x2c\0\x05macmaHI\0\0\0\0";

    #[test]
    fn the_reply_names_the_key_and_the_error_and_is_not_signed() {
        let query = [b"\x03Key\0\0\xfa", SOUND].concat();
        let mut record = SignatureRecord::default();
        for _ in 0..2 {
            assert_eq!(record.reject(&query, 0, Rcode::BADKEY), Some(()));
            let (owner, fixed, rdata) = record.rejection();
            assert_eq!((owner, fixed), (&b"\x03Key\0"[..], (Type::TSIG, Class::ANY, 0)));
            assert_eq!(rdata, b"\x01a\0\0\0\x65\0\0\0\x01\x2c\0\0HI\0\x11\0\0");
        }
    }

    #[test]
    fn macs_are_equal_only_if_all_octets_are() {
        assert!(is_equal(b"abc", b"abc"));
        assert!(!is_equal(b"abc", b"abd") && !is_equal(b"abc", b"ab") && !is_equal(b"xbc", b"abc"));
    }
}
