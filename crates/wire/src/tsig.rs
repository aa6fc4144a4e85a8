//! Signatures over a whole message, by a key that both sides have (rfc8945).
//!
//! There are no keys here: every signature is by an unknown one, and its reply says so.

use crate::code::{Class, Rcode, Type};
use crate::message::Reader;
use crate::name::{self, LABEL_BYTES_MAX, NAME_BYTES_MAX};

/// Octets of a TSIG record's data behind the name of the algorithm when MAC and other data are
/// empty: time, fudge, length of the MAC, original id, error, length of the other data.
const FIXED_BYTES: usize = 6 + 2 + 2 + 2 + 2 + 2;
/// Octets of the time and the fudge, which stand in front of the MAC.
const TIME_BYTES: usize = 6 + 2;

/// Whether what lies behind the type of a TSIG record is as it should be: class ANY, a TTL of 0,
/// and data whose parts have the lengths that they say (rfc8945#4.2).
pub(crate) fn has_valid_layout(behind_type: &[u8]) -> bool {
    let [high, low] = Class::ANY.0.to_be_bytes();
    let Some(&[a, b, 0, 0, 0, 0, _, _]) = behind_type.first_chunk() else { return false };
    [a, b] == [high, low] && split(&behind_type[8..]).is_some()
}

/// Returns the name of the algorithm, the time with the fudge, and the original id, of a record's
/// data.
fn split(rdata: &[u8]) -> Option<(&[u8], &[u8], [u8; 2])> {
    let (algorithm, behind) = rdata.split_at_checked(name::wire_len(rdata)?)?;
    let (time, behind) = behind.split_at_checked(TIME_BYTES)?;
    let counted = |octets: &[u8]| Some(usize::from(u16::from_be_bytes(*octets.first_chunk()?)));
    let behind_mac = behind.get(2 + counted(behind)?..)?;
    let id = *behind_mac.first_chunk()?;
    let other = behind_mac.get(4..)?;
    (other.len() == 2 + counted(other)?).then_some((algorithm, time, id))
}

/// The TSIG record of a reply to a query that is signed by an unknown key.
pub struct UnknownKey {
    /// The key's name, uncompressed.
    name: Vec<u8>,
    /// The record's data.
    rdata: Vec<u8>,
}

impl Default for UnknownKey {
    fn default() -> Self {
        // Room for one label more, as it shows only then that a name is too long.
        let name = Vec::with_capacity(NAME_BYTES_MAX + LABEL_BYTES_MAX + 1);
        Self { name, rdata: Vec::with_capacity(NAME_BYTES_MAX + FIXED_BYTES) }
    }
}

impl UnknownKey {
    /// Makes this the record for the reply to a query whose own TSIG record begins at `at` of the
    /// message. `None` when no such record can be read there; its content is then undefined.
    #[must_use]
    pub fn set(&mut self, query: &[u8], at: usize) -> Option<()> {
        self.name.clear();
        self.rdata.clear();
        let mut reader = Reader { octets: query, at };
        reader.name_into(&mut self.name)?;
        reader.take(2 + 2 + 4)?; // type, class, TTL
        let len = reader.u16()?;
        let rdata = reader.take(usize::from(len))?;
        let (algorithm, time, id) = split(rdata)?;
        self.rdata.extend_from_slice(algorithm);
        self.rdata.extend_from_slice(time);
        self.rdata.extend_from_slice(&[0, 0]); // nothing to sign with (rfc8945#5.3.2)
        self.rdata.extend_from_slice(&id);
        self.rdata.extend_from_slice(&Rcode::BADKEY.0.to_be_bytes());
        self.rdata.extend_from_slice(&[0, 0]);
        Some(())
    }

    /// Returns the owner of the record, its type, class and TTL, and its data.
    #[must_use]
    pub fn record(&self) -> (&[u8], (Type, Class, u32), &[u8]) {
        (&self.name, (Type::TSIG, Class::ANY, 0), &self.rdata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record behind its type: class, TTL, length, algorithm `a`, time, fudge, MAC, id, error,
    /// other data.
    const SOUND: &[u8] = b"\0\xff\0\0\0\0\0\x18\x01a\0\0\0\x65\0\0\0\x01\x2c\0\x05macmaHI\0\0\0\0";

    #[test]
    fn a_signature_has_the_lengths_that_it_says() {
        assert!(has_valid_layout(SOUND));
        for end in 0..SOUND.len() {
            assert!(!has_valid_layout(&SOUND[..end]), "{end}");
        }
        assert!(!has_valid_layout(&[SOUND, b"x"].concat()));
        assert!(!has_valid_layout(&[b"\0\x01", &SOUND[2..]].concat()));
        assert!(!has_valid_layout(&[b"\0\xff\0\0\0\x01", &SOUND[6..]].concat()));
    }

    #[test]
    fn the_reply_names_the_key_and_the_error_and_is_not_signed() {
        let query = [b"\x03key\0\0\xfa", SOUND].concat();
        let mut reply = UnknownKey::default();
        for _ in 0..2 {
            assert_eq!(reply.set(&query, 0), Some(()));
            let (owner, fixed, rdata) = reply.record();
            assert_eq!((owner, fixed), (&b"\x03key\0"[..], (Type::TSIG, Class::ANY, 0)));
            assert_eq!(rdata, b"\x01a\0\0\0\x65\0\0\0\x01\x2c\0\0HI\0\x11\0\0");
        }
    }
}
