//! A received response, read in place: what a forwarder looks at before it believes an upstream.
//!
//! Every record is stepped over once, so that what follows cannot run out of octets; names and data
//! are written out only when the caller wants them, into a buffer that is reused.
//!
//! Deliberately absent: whether the response answers anything, and allocation of its own.

use crate::code::{Class, Opcode, Rcode, Type};
use crate::message::{Malformed, Reader};
use crate::name::{self, LABEL_BYTES_MAX};
use crate::query::{HEADER_BYTES, flag, option};
use crate::rdata;
use crate::reply::Section;

/// A response whose records all have their place.
#[derive(Clone, Copy, Debug)]
pub struct Response<'m> {
    /// The whole message.
    octets: &'m [u8],
    /// The flags word of the header.
    pub flags: u16,
    /// End of the question; 12 when there is none.
    question_end: usize,
    /// Records of the answer, authority and additional sections, OPT included.
    counts: [u16; 3],
    /// OPT record of the response, if there is one.
    pub opt: Option<OptView<'m>>,
}

/// An OPT record in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptView<'m> {
    /// The upper eight bits of the response code.
    pub rcode_high: u8,
    /// EDNS version; only 0 exists.
    pub version: u8,
    /// All options, whole.
    options: &'m [u8],
}

/// A record of a response, by its place.
#[derive(Clone, Copy, Debug)]
pub struct RecordView<'m> {
    /// The whole message.
    octets: &'m [u8],
    /// Offset of the owner.
    owner_at: usize,
    /// Offset of the data.
    rdata_at: usize,
    /// Section of the record.
    pub section: Section,
    /// Type of the record.
    pub rtype: Type,
    /// Class of the record.
    pub class: Class,
    /// Time to live, seconds; 0 when the highest bit was set (rfc2181#8).
    pub ttl: u32,
    /// Record data as it came, names perhaps compressed.
    pub raw: &'m [u8],
}

impl<'m> Response<'m> {
    /// Reads a response with at most one question. QR is not looked at.
    ///
    /// # Errors
    /// When a part of it ends early, something follows the last record, there is a second question,
    /// or OPT is wrong or there twice.
    pub fn parse(octets: &'m [u8]) -> Result<Self, Malformed> {
        Self::read(octets).ok_or(Malformed)
    }

    /// Does the work of [`parse`](Self::parse).
    fn read(octets: &'m [u8]) -> Option<Self> {
        let mut reader = Reader { octets, at: 2 };
        let (flags, questions) = (reader.u16()?, reader.u16()?);
        let counts = [reader.u16()?, reader.u16()?, reader.u16()?];
        if questions > 1 {
            return None; // rfc9619
        }
        if questions == 1 {
            let name = name::wire_len(&octets[HEADER_BYTES..])?;
            reader.take(name + 4)?;
        }
        let mut response = Self { octets, flags, question_end: reader.at, counts, opt: None };
        let mut records = response.records();
        for record in records.by_ref() {
            if record.rtype == Type::OPT && record.section == Section::Additional {
                let opt = OptView::of(&record)?;
                if response.opt.replace(opt).is_some() {
                    return None; // rfc6891#6.1.1
                }
            }
        }
        (records.left == [0; 3] && records.reader.at == octets.len()).then_some(response)
    }

    /// Returns the name, type and class of the question as they came, uncompressed; empty without
    /// one.
    #[must_use]
    pub fn question(&self) -> &'m [u8] {
        &self.octets[HEADER_BYTES..self.question_end]
    }

    /// Returns the operation code.
    #[must_use]
    pub fn opcode(&self) -> Opcode {
        Opcode(((self.flags & flag::OPCODE) >> 11) as u8)
    }

    /// Returns the response code with the bits that OPT carries.
    #[must_use]
    pub fn rcode(&self) -> Rcode {
        let high = self.opt.map_or(0, |opt| u16::from(opt.rcode_high));
        Rcode(high << 4 | self.flags & 0x000f)
    }

    /// Writes the target of the last CNAME record of the answer, if there is one, over `target`.
    pub fn last_alias(&self, target: &mut Vec<u8>) -> bool {
        let in_answer = self.records().take_while(|record| record.section == Section::Answer);
        let last = in_answer.filter(|record| record.rtype == Type::CNAME).last();
        target.clear();
        last.is_some_and(|cname| cname.rdata_into(target).is_ok())
    }

    /// Returns how many records there are, OPT included.
    #[must_use]
    pub fn record_count(&self) -> usize {
        self.counts.iter().map(|&count| usize::from(count)).sum()
    }

    /// Returns all records in their order, OPT included.
    #[must_use]
    pub fn records(&self) -> Records<'m> {
        Records::new(self.octets, self.question_end, self.counts)
    }
}

/// The records of a response in their order; ends early when one ends behind the message.
pub struct Records<'m> {
    reader: Reader<'m>,
    /// Records still to come, by section.
    left: [u16; 3],
}

impl<'m> Records<'m> {
    /// Returns the records of a message that begin at `at`, so many in each section.
    pub(crate) fn new(octets: &'m [u8], at: usize, left: [u16; 3]) -> Self {
        Self { reader: Reader { octets, at }, left }
    }
}

impl<'m> Iterator for Records<'m> {
    type Item = RecordView<'m>;

    fn next(&mut self) -> Option<RecordView<'m>> {
        let at = self.left.iter().position(|&left| left > 0)?;
        let section = [Section::Answer, Section::Authority, Section::Additional][at];
        let reader = &mut self.reader;
        let owner_at = reader.at;
        skip_name(reader)?;
        let fixed = reader.octets.get(reader.at..)?.first_chunk::<10>()?;
        reader.at += fixed.len();
        let word = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let (rtype, class, len) = (Type(word(0)), Class(word(2)), usize::from(word(8)));
        let ttl = u32::from(word(4)) << 16 | u32::from(word(6));
        let (octets, rdata_at) = (reader.octets, reader.at);
        let raw = reader.take(len)?;
        self.left[at] -= 1;
        let ttl = if ttl > i32::MAX as u32 && rtype != Type::OPT { 0 } else { ttl };
        Some(RecordView { octets, owner_at, rdata_at, section, rtype, class, ttl, raw })
    }
}

/// Steps over a name without following its pointer.
fn skip_name(reader: &mut Reader<'_>) -> Option<()> {
    let mut at = reader.at;
    loop {
        at += match usize::from(*reader.octets.get(at)?) {
            0 => {
                reader.at = at + 1;
                return Some(());
            }
            len @ 1..=LABEL_BYTES_MAX => 1 + len,
            0xc0.. => {
                reader.at = at + 2; // a pointer ends the name
                return (reader.at <= reader.octets.len()).then_some(());
            }
            _ => return None,
        };
    }
}

impl RecordView<'_> {
    /// Returns where its TTL begins in the message; it has four octets.
    #[must_use]
    pub fn ttl_at(&self) -> usize {
        self.rdata_at - 6 // two octets of length stand between
    }

    /// Whether the owner is a pointer to the name of the question (rfc1035#4.1.4), as most are.
    #[must_use]
    pub fn points_at_question(&self) -> bool {
        self.octets.get(self.owner_at..self.owner_at + 2) == Some(&[0xc0, HEADER_BYTES as u8])
    }

    /// Appends the owner, uncompressed.
    ///
    /// # Errors
    /// When it is no name; part of it may then have been appended.
    pub fn owner_into(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        Reader { octets: self.octets, at: self.owner_at }.name_into(out).ok_or(Malformed)
    }

    /// Appends the data with its names written out; data of a type without schema as it came.
    ///
    /// # Errors
    /// When it does not follow its type's schema; part of them may then have been appended.
    pub fn rdata_into(&self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let Some(schema) = rdata::schema::of(self.rtype) else {
            out.extend_from_slice(self.raw);
            return Ok(());
        };
        let reader = Reader { octets: self.octets, at: self.rdata_at };
        reader.rdata_into(schema, self.raw, self.rdata_at, out).ok_or(Malformed)
    }
}

impl<'m> OptView<'m> {
    /// Reads an OPT record: its TTL means something else (rfc6891#6.1.3).
    fn of(record: &RecordView<'m>) -> Option<Self> {
        let [rcode_high, version, ..] = record.ttl.to_be_bytes();
        let opt = Self { rcode_high, version, options: record.raw };
        let mut reader = Reader { octets: opt.options, at: 0 };
        while reader.at < reader.octets.len() {
            let (_code, len) = (reader.u16()?, reader.u16()?);
            reader.take(usize::from(len))?;
        }
        (record.octets.get(record.owner_at) == Some(&0)).then_some(opt)
    }

    /// Returns the data of the first option with a code.
    #[must_use]
    pub fn option(&self, wanted: u16) -> Option<&'m [u8]> {
        let mut reader = Reader { octets: self.options, at: 0 };
        loop {
            let (code, len) = (reader.u16()?, reader.u16()?);
            let data = reader.take(usize::from(len))?;
            if code == wanted {
                return Some(data);
            }
        }
    }

    /// Returns the data of the COOKIE option (rfc7873#4).
    #[must_use]
    pub fn cookie(&self) -> Option<&'m [u8]> {
        self.option(option::COOKIE)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Returns a response to `example. MX` with counts and what follows the question.
    fn response(counts: [u16; 3], tail: &[u8]) -> Vec<u8> {
        let words = [0x1234, 0x8180, 1].into_iter().chain(counts);
        let mut octets: Vec<u8> = words.flat_map(u16::to_be_bytes).collect();
        octets.extend_from_slice(b"\x07example\0\0\x0f\0\x01");
        octets.extend_from_slice(tail);
        octets
    }

    const MX: &[u8] = b"\xc0\x0c\0\x0f\0\x01\0\0\x0e\x10\0\x07\0\x0a\x02mx\xc0\x0c";
    const OPT: &[u8] = b"\0\0\x29\x04\xd0\x01\0\x80\0\0\x0c\0\x0a\0\x08abcdefgh";

    #[test]
    fn records_are_seen_with_their_names_written_out() {
        let octets = response([1, 0, 1], &[MX, OPT].concat());
        let read = Response::parse(&octets).unwrap();
        assert_eq!(read.question(), b"\x07example\0\0\x0f\0\x01");
        assert_eq!(read.rcode(), Rcode::BADVERS);
        assert_eq!(read.opt.unwrap().cookie(), Some(&b"abcdefgh"[..]));
        let mx = read.records().next().unwrap();
        assert_eq!((mx.section, mx.rtype, mx.ttl), (Section::Answer, Type::MX, 3600));
        assert_eq!(read.record_count(), 2);
        let (mut owner, mut data) = (Vec::new(), Vec::new());
        mx.owner_into(&mut owner).unwrap();
        mx.rdata_into(&mut data).unwrap();
        assert_eq!(
            (&owner[..], &data[..]),
            (&b"\x07example\0"[..], &b"\0\x0a\x02mx\x07example\0"[..])
        );
    }

    #[test]
    fn a_ttl_with_the_highest_bit_set_is_zero() {
        let mut mx = MX.to_vec();
        for (high, ttl) in [(0x7f, 0x7f00_0e10), (0x80, 0), (0xff, 0)] {
            mx[6] = high;
            let octets = response([1, 0, 0], &mx);
            assert_eq!(Response::parse(&octets).unwrap().records().next().unwrap().ttl, ttl);
        }
    }

    #[test]
    fn what_ends_early_or_late_is_malformed() {
        let whole = response([1, 0, 1], &[MX, OPT].concat());
        for end in 0..whole.len() {
            assert!(Response::parse(&whole[..end]).is_err(), "{end}");
        }
        assert!(Response::parse(&[&whole[..], b"x"].concat()).is_err());
        assert!(Response::parse(&response([0, 0, 2], &[OPT, OPT].concat())).is_err());
    }

    #[test]
    fn rdata_that_breaks_its_schema_is_reported_when_it_is_read() {
        let a = b"\xc0\x0c\0\x01\0\x01\0\0\0\0\0\x02\xc0\x0c";
        let octets = response([1, 0, 0], a);
        let record = Response::parse(&octets).unwrap().records().next().unwrap();
        assert_eq!(record.rdata_into(&mut Vec::new()), Err(Malformed));
    }
}
