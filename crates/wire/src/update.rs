//! Messages that change a zone (rfc2136#2), read whole.
//!
//! ```text
//! header | zone: one question | prerequisites | updates | additional records
//! ```
//!
//! Deliberately absent: what the records mean, and the additional records, of which OPT and TSIG
//! alone mean something, and are read with the [`Query`](crate::Query).

use crate::code::{Class, Type};
use crate::message::Reader;
use crate::name::Name;
use crate::query::HEADER_BYTES;
use crate::rdata;
use std::fmt;

/// Types whose records signing makes: no client may change them.
pub const SIGNING_TYPES: [Type; 5] = [Type::RRSIG, Type::NSEC, Type::NSEC3, Type::SIG, Type::NXT];
/// Types that say where a zone begins and ends, what it takes its names from, and how it is signed:
/// a right to change a zone has to name them.
pub const NAMED_TYPES: [Type; 8] = [
    Type::SOA,
    Type::NS,
    Type::DS,
    Type::DNAME,
    Type::DNSKEY,
    Type::CDS,
    Type::CDNSKEY,
    Type::NSEC3PARAM,
];
/// Octets of a record between its owner and its data: type, class, TTL, length.
const FIXED_BYTES: usize = 2 + 2 + 4 + 2;
/// Octets that the records of a message may take once their names are written out. A message of 64
/// KiB whose names are compressed as far as can be would take a hundred times as many.
const WRITTEN_OUT_MAX: usize = 1 << 20;

/// An UPDATE message: which zone it is for, what must hold, and what is to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateMessage {
    /// The name of the zone, in the case it came in.
    pub zone: Name,
    /// The type of the zone section, which must be SOA.
    pub ztype: Type,
    /// The class of the zone.
    pub class: Class,
    /// The records that say what must hold, in their order.
    pub prerequisites: Vec<UpdateRecord>,
    /// The records that say what is to change, in their order.
    pub updates: Vec<UpdateRecord>,
}

/// A record of an UPDATE message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateRecord {
    /// The owner name, in lower case.
    pub owner: Name,
    /// The record's type.
    pub rtype: Type,
    /// Class of the record, which says what is meant by it.
    pub class: Class,
    /// Time to live, seconds.
    pub ttl: u32,
    /// The record's data with their names written out; may be empty.
    pub rdata: Box<[u8]>,
}

/// Why octets cannot be read as an UPDATE message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateReadError {
    /// The octets are no message with one zone.
    Malformed,
    /// The data of a record of this type break the rules of the type.
    Data(Type),
    /// The records take too much memory once their names are written out.
    TooLarge,
}

impl fmt::Display for UpdateReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("the message is malformed"),
            Self::Data(rtype) => write!(f, "the data of a {rtype} record are malformed"),
            Self::TooLarge => f.write_str("the message has too many long names: split it"),
        }
    }
}

impl std::error::Error for UpdateReadError {}

impl UpdateMessage {
    /// Reads the first three sections of a message.
    ///
    /// # Errors
    /// When the octets are no such message. What lies behind the third section is not looked at.
    pub fn read(octets: &[u8]) -> Result<Self, UpdateReadError> {
        let header = octets.first_chunk::<HEADER_BYTES>().ok_or(UpdateReadError::Malformed)?;
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        if word(4) != 1 {
            return Err(UpdateReadError::Malformed); // rfc2136#2.3
        }
        let mut reader = Reader { octets, at: HEADER_BYTES };
        let (zone, ztype, class) = zone_section(&mut reader).ok_or(UpdateReadError::Malformed)?;
        let mut left = WRITTEN_OUT_MAX;
        let mut section = |count| -> Result<Vec<UpdateRecord>, UpdateReadError> {
            (0..count).map(|_| record(&mut reader, &mut left)).collect()
        };
        let (prerequisites, updates) = (section(word(6))?, section(word(8))?);
        Ok(Self { zone, ztype, class, prerequisites, updates })
    }
}

/// Reads the zone section.
fn zone_section(reader: &mut Reader<'_>) -> Option<(Name, Type, Class)> {
    let mut wire = Vec::with_capacity(32);
    reader.name_into(&mut wire)?;
    Some((Name::from_wire(&wire).ok()?, Type(reader.u16()?), Class(reader.u16()?)))
}

/// Reads a record, which may take `left` octets.
fn record(reader: &mut Reader<'_>, left: &mut usize) -> Result<UpdateRecord, UpdateReadError> {
    const MALFORMED: UpdateReadError = UpdateReadError::Malformed;
    let mut wire = Vec::with_capacity(32);
    reader.name_into(&mut wire).ok_or(MALFORMED)?;
    wire.make_ascii_lowercase(); // length octets are below b'A'
    let owner = Name::from_wire(&wire).map_err(|_| MALFORMED)?;
    let fixed: &[u8; FIXED_BYTES] =
        reader.take(FIXED_BYTES).and_then(|it| it.first_chunk()).ok_or(MALFORMED)?;
    let [t0, t1, c0, c1, s0, s1, s2, s3, l0, l1] = *fixed;
    let (rtype, class) = (Type(u16::from_be_bytes([t0, t1])), Class(u16::from_be_bytes([c0, c1])));
    let start = reader.at;
    let raw = reader.take(usize::from(u16::from_be_bytes([l0, l1]))).ok_or(MALFORMED)?;
    let rdata: Box<[u8]> = match rdata::schema::of(rtype) {
        // rfc2136#2.4 has records without data, whatever their type.
        Some(schema) if !raw.is_empty() => {
            let mut written = Vec::with_capacity(raw.len());
            let is_read = reader.rdata_into(schema, raw, start, &mut written).is_some();
            let is_sound = is_read && written.len() <= usize::from(u16::MAX);
            if !is_sound || rdata::validate(rtype, &written).is_err() {
                return Err(UpdateReadError::Data(rtype));
            }
            written.into()
        }
        _ => raw.into(), // rfc3597#4: no names in it are compressed
    };
    let octets = owner.as_wire().len() + rdata.len() + size_of::<UpdateRecord>();
    *left = left.checked_sub(octets).ok_or(UpdateReadError::TooLarge)?;
    let ttl = u32::from_be_bytes([s0, s1, s2, s3]);
    Ok(UpdateRecord { owner, rtype, class, ttl, rdata })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The zone section `example. IN SOA`; its name stands at 12.
    const ZONE: &[u8] = b"\x07example\0\0\x06\0\x01";

    /// An UPDATE message with these counts, and what follows the header.
    fn message(counts: [u16; 4], tail: &[u8]) -> Vec<u8> {
        let words = [0x1234, 0x2800].into_iter().chain(counts);
        let mut octets: Vec<u8> = words.flat_map(u16::to_be_bytes).collect();
        octets.extend_from_slice(tail);
        octets
    }

    #[test]
    fn sections_come_with_their_names_written_out_and_owners_in_lower_case() {
        let absent = b"\x01A\xc0\x0c\0\xff\0\xfe\0\0\0\0\0\0".as_slice();
        let mx = b"\xc0\x0c\0\x0f\0\x01\0\0\x0e\x10\0\x07\0\x0a\x02Mx\xc0\x0c".as_slice();
        let read = UpdateMessage::read(&message([1, 1, 1, 0], &[ZONE, absent, mx].concat()));
        let read = read.unwrap();
        assert_eq!((read.zone.to_string(), read.ztype), ("example.".into(), Type::SOA));
        let absent = &read.prerequisites[0];
        assert_eq!(absent.owner.to_string(), "a.example.");
        assert_eq!((absent.rtype, absent.class, absent.rdata.len()), (Type::ANY, Class::NONE, 0));
        let mx = &read.updates[0];
        assert_eq!((mx.class, mx.ttl), (Class::IN, 3600));
        assert_eq!(*mx.rdata, *b"\0\x0a\x02Mx\x07example\0", "the case of data stays");
    }

    #[test]
    fn octets_that_are_no_update_are_told_apart_from_data_that_break_their_type() {
        let read = |counts, tail: &[u8]| UpdateMessage::read(&message(counts, tail)).unwrap_err();
        assert_eq!(read([0, 0, 0, 0], b""), UpdateReadError::Malformed);
        assert_eq!(read([2, 0, 0, 0], &[ZONE, ZONE].concat()), UpdateReadError::Malformed);
        let short_a = [ZONE, b"\xc0\x0c\0\x01\0\x01\0\0\0\0\0\x03\x01\x02\x03"].concat();
        assert_eq!(read([1, 0, 1, 0], &short_a), UpdateReadError::Data(Type::A));
        let whole = message([1, 0, 1, 0], &[ZONE, b"\xc0\x0c\0\x01\0\xff\0\0\0\0\0\0"].concat());
        assert!(UpdateMessage::read(&whole).is_ok());
        for end in 0..whole.len() {
            assert!(UpdateMessage::read(&whole[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn names_that_are_compressed_to_the_utmost_do_not_take_all_memory() {
        let long: Vec<u8> = std::iter::repeat_n(*b"\x01a", 123).flatten().collect();
        let zone = [&long, b"\0\0\x06\0\x01".as_slice()].concat();
        let record = b"\xc0\x0c\0\x01\0\xff\0\0\0\0\0\0";
        let many = message([1, 0, 5000, 0], &[&zone[..], &record.repeat(5000)].concat());
        assert!(many.len() < usize::from(u16::MAX));
        assert_eq!(UpdateMessage::read(&many), Err(UpdateReadError::TooLarge));
    }
}
