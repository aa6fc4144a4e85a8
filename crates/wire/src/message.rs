//! A received message as a client or a test sees it: read whole, names written out.
//!
//! Any octets are either a [`Message`] or [`Malformed`]; pointers only lead towards the beginning
//! of the message, so that none can lead in circles (rfc1035#4.1.4).
//!
//! Deliberately absent: speed. The answer path reads queries with [`Query`](crate::Query).

use crate::code::{Class, Opcode, Rcode, Type};
use crate::name::{LABEL_BYTES_MAX, NAME_BYTES_MAX};
use crate::query::{HEADER_BYTES, flag};
use crate::rdata;
use crate::{Name, Section};
use std::fmt;

/// A DNS message, read whole (rfc1035#4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Id that the sender chose.
    pub id: u16,
    /// The flags word of the header, operation and response code included.
    pub flags: u16,
    /// Questions; more than one is seen in wrong messages only (rfc9619).
    pub questions: Vec<Question>,
    /// All records but OPT, section after section.
    pub records: Vec<Record>,
    /// The OPT record, if there is one.
    pub opt: Option<Opt>,
}

/// A question of a message (rfc1035#4.1.2).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Question {
    /// The name, in the case it came in.
    pub name: Name,
    /// The type asked for.
    pub qtype: Type,
    /// The class asked for.
    pub qclass: Class,
}

/// A record of one of the sections.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// Section of the record.
    pub section: Section,
    /// The owner name.
    pub owner: Name,
    /// The record's type.
    pub rtype: Type,
    /// Class of the record.
    pub class: Class,
    /// Time to live, seconds.
    pub ttl: u32,
    /// Record data with its names written out; as it came if it does not follow its type's schema.
    pub rdata: Vec<u8>,
}

/// An OPT record (rfc6891#6.1.2).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opt {
    /// The largest UDP message the sender takes, octets.
    pub udp_bytes: u16,
    /// The upper eight bits of the response code.
    pub rcode_high: u8,
    /// EDNS version; only 0 exists.
    pub version: u8,
    /// The flags word; its highest bit is DO (rfc3225).
    pub flags: u16,
    /// The options: code and data.
    pub options: Vec<(u16, Vec<u8>)>,
}

impl Question {
    /// Makes the question for a name and a type, of class IN.
    #[must_use]
    pub fn new(name: Name, qtype: Type) -> Self {
        Self { name, qtype, qclass: Class::IN }
    }
}

impl Record {
    /// Makes a record of class IN; its data are wire form, with their names written out.
    #[must_use]
    pub fn new(section: Section, owner: Name, rtype: Type, ttl: u32, rdata: Vec<u8>) -> Self {
        Self { section, owner, rtype, class: Class::IN, ttl, rdata }
    }
}

impl Opt {
    /// Makes an OPT record of version 0, without flags and options.
    #[must_use]
    pub fn new(udp_bytes: u16) -> Self {
        Self { udp_bytes, rcode_high: 0, version: 0, flags: 0, options: Vec::new() }
    }
}

/// Octets that are no message: a part ends early, a name is wrong, something follows the last
/// record, or there are two OPT records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the message is malformed")
    }
}

impl std::error::Error for Malformed {}

impl Message {
    /// Makes a message of a question, without records.
    #[must_use]
    pub fn new(id: u16, flags: u16, question: Question) -> Self {
        Self { id, flags, questions: vec![question], records: Vec::new(), opt: None }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(octets: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader { octets, at: 0 };
        Self::read(&mut reader).filter(|_| reader.at == octets.len()).ok_or(Malformed)
    }

    /// Does the work of [`parse`](Self::parse) but the check that nothing follows.
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (id, flags) = (reader.u16()?, reader.u16()?);
        let questions = reader.u16()?;
        let counts = [reader.u16()?, reader.u16()?, reader.u16()?];
        debug_assert_eq!(reader.at, HEADER_BYTES);
        let questions = (0..questions).map(|_| reader.question()).collect::<Option<_>>()?;
        let mut message = Self { id, flags, questions, records: Vec::new(), opt: None };
        let sections = [Section::Answer, Section::Authority, Section::Additional];
        for (section, count) in sections.into_iter().zip(counts) {
            for _ in 0..count {
                let record = reader.record(section)?;
                if record.rtype != Type::OPT {
                    message.records.push(record);
                } else if message.opt.replace(Opt::of(&record)?).is_some() {
                    return None; // rfc6891#6.1.1
                }
            }
        }
        Some(message)
    }

    /// Returns the octets of the message, without compression.
    ///
    /// More of anything than the wire can count is left out: 65 535 records of a section, octets of
    /// a record's data or of an option.
    #[must_use]
    pub fn to_wire(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        let sections = [Section::Answer, Section::Authority, Section::Additional];
        let [an, ns, ar] = sections.map(|section| self.section(section).count());
        let counts = [self.questions.len(), an, ns, ar + usize::from(self.opt.is_some())];
        let counts = counts.map(|count| u16::try_from(count).unwrap_or(u16::MAX));
        let words = [self.id, self.flags].into_iter().chain(counts);
        out.extend(words.flat_map(u16::to_be_bytes));
        for question in self.questions.iter().take(usize::from(u16::MAX)) {
            out.extend_from_slice(question.name.as_wire());
            out.extend_from_slice(&question.qtype.0.to_be_bytes());
            out.extend_from_slice(&question.qclass.0.to_be_bytes());
        }
        for (section, count) in sections.into_iter().zip(&counts[1..]) {
            self.section(section)
                .take(usize::from(*count))
                .for_each(|record| record.write(&mut out));
        }
        if let Some(opt) = &self.opt {
            opt.to_record().write(&mut out);
        }
        out
    }

    /// Returns the operation code.
    #[must_use]
    pub fn opcode(&self) -> Opcode {
        Opcode(((self.flags & flag::OPCODE) >> 11) as u8)
    }

    /// Returns the response code with the bits that OPT carries.
    #[must_use]
    pub fn rcode(&self) -> Rcode {
        let high = self.opt.as_ref().map_or(0, |opt| u16::from(opt.rcode_high));
        Rcode(high << 4 | self.flags & 0x000f)
    }

    /// Whether any of these bits of the flags word is set.
    #[must_use]
    pub fn has(&self, bits: u16) -> bool {
        self.flags & bits != 0
    }

    /// Returns the records of a section, OPT left out.
    pub fn section(&self, section: Section) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |record| record.section == section)
    }
}

impl Record {
    /// Appends the record, uncompressed.
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.owner.as_wire());
        out.extend_from_slice(&self.rtype.0.to_be_bytes());
        out.extend_from_slice(&self.class.0.to_be_bytes());
        out.extend_from_slice(&self.ttl.to_be_bytes());
        write_counted(&self.rdata, out);
    }
}

/// Appends two octets of length and as many octets.
fn write_counted(octets: &[u8], out: &mut Vec<u8>) {
    let len = u16::try_from(octets.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&octets[..usize::from(len)]);
}

impl Opt {
    /// Returns the record that says the same.
    fn to_record(&self) -> Record {
        let mut rdata = Vec::new();
        for (code, data) in &self.options {
            rdata.extend_from_slice(&code.to_be_bytes());
            write_counted(data, &mut rdata);
        }
        let [high, low] = self.flags.to_be_bytes();
        let ttl = u32::from_be_bytes([self.rcode_high, self.version, high, low]);
        let (owner, class) = (Name::root(), Class(self.udp_bytes));
        Record { section: Section::Additional, owner, rtype: Type::OPT, class, ttl, rdata }
    }

    /// Reads an OPT record: its class and TTL mean something else (rfc6891#6.1.3).
    fn of(record: &Record) -> Option<Self> {
        let [rcode_high, version, high, low] = record.ttl.to_be_bytes();
        let flags = u16::from_be_bytes([high, low]);
        let mut reader = Reader { octets: &record.rdata, at: 0 };
        let mut options = Vec::new();
        while reader.at < record.rdata.len() {
            let (code, len) = (reader.u16()?, reader.u16()?);
            options.push((code, reader.take(usize::from(len))?.to_vec()));
        }
        let is_root = record.owner.as_wire() == [0];
        let udp_bytes = record.class.0;
        is_root.then_some(Self { udp_bytes, rcode_high, version, flags, options })
    }

    /// Whether the sender wants DNSSEC records.
    #[must_use]
    pub fn dnssec_ok(&self) -> bool {
        self.flags & 0x8000 != 0
    }

    /// Returns the data of the first option with a code.
    #[must_use]
    pub fn option(&self, code: u16) -> Option<&[u8]> {
        self.options.iter().find(|option| option.0 == code).map(|option| &option.1[..])
    }
}

/// A place in a message; every step checks that the octets are there.
pub(crate) struct Reader<'m> {
    /// The message, or its beginning.
    pub octets: &'m [u8],
    /// The next octet.
    pub at: usize,
}

impl<'m> Reader<'m> {
    /// Returns the next `count` octets.
    pub fn take(&mut self, count: usize) -> Option<&'m [u8]> {
        let taken = self.octets.get(self.at..self.at + count)?;
        self.at += count;
        Some(taken)
    }

    /// Reads two octets as a number.
    pub fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|octets| u16::from_be_bytes([octets[0], octets[1]]))
    }

    /// Reads a question.
    fn question(&mut self) -> Option<Question> {
        let name = self.name()?;
        Some(Question { name, qtype: Type(self.u16()?), qclass: Class(self.u16()?) })
    }

    /// Reads a record of a section.
    fn record(&mut self, section: Section) -> Option<Record> {
        let owner = self.name()?;
        let (rtype, class) = (Type(self.u16()?), Class(self.u16()?));
        let ttl = u32::from(self.u16()?) << 16 | u32::from(self.u16()?);
        let len = usize::from(self.u16()?);
        let start = self.at;
        let raw = self.take(len)?;
        let rdata = self.rdata(rtype, raw, start).unwrap_or_else(|| raw.to_vec());
        Some(Record { section, owner, rtype, class, ttl, rdata })
    }

    /// Data that begins at `start`, with its names written out; `None` when it is malformed.
    fn rdata(&self, rtype: Type, raw: &[u8], start: usize) -> Option<Vec<u8>> {
        let mut written = Vec::with_capacity(raw.len());
        self.rdata_into(rdata::schema::of(rtype)?, raw, start, &mut written)?;
        Some(written)
    }

    /// Appends data that begins at `start`, with its names written out. `None` when it does not
    /// follow its schema; part of the data may then have been appended.
    pub fn rdata_into(
        &self,
        schema: &rdata::Schema,
        raw: &[u8],
        start: usize,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let mut at = 0;
        for field in schema.fields {
            if let rdata::Kind::Name(_) = field.kind {
                let mut reader =
                    Reader { octets: &self.octets[..start + raw.len()], at: start + at };
                reader.name_into(out)?;
                at = reader.at - start;
            } else {
                let len = rdata::wire::field_len(field.kind, raw, at).ok()?;
                out.extend_from_slice(&raw[at..at + len]);
                at += len;
            }
        }
        (at == raw.len()).then_some(())
    }

    /// Returns a name, with pointers followed.
    fn name(&mut self) -> Option<Name> {
        let mut wire = Vec::with_capacity(32);
        self.name_into(&mut wire)?;
        Name::from_wire(&wire).ok()
    }

    /// Appends a name, with pointers followed. Each must point before all octets read so far for
    /// the name. `None` when it is malformed; part of the name may then have been appended.
    pub fn name_into(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let start = out.len();
        let mut earliest = self.at;
        let mut behind = None;
        loop {
            let len = usize::from(self.take(1)?[0]);
            match len {
                0 => break,
                1..=LABEL_BYTES_MAX => {
                    out.push(len as u8); // at most 63
                    out.extend_from_slice(self.take(len)?);
                    if out.len() - start >= NAME_BYTES_MAX {
                        return None;
                    }
                }
                0xc0.. => {
                    let target = (len & 0x3f) << 8 | usize::from(self.take(1)?[0]);
                    behind.get_or_insert(self.at);
                    if !(HEADER_BYTES..earliest).contains(&target) {
                        return None;
                    }
                    earliest = target;
                    self.at = target;
                }
                _ => return None,
            }
        }
        out.push(0);
        self.at = behind.unwrap_or(self.at);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Returns a header with flags and counts, and what follows it.
    fn message(flags: u16, counts: [u16; 4], tail: &[u8]) -> Vec<u8> {
        let words = [0x1234, flags].into_iter().chain(counts);
        let mut octets: Vec<u8> = words.flat_map(u16::to_be_bytes).collect();
        octets.extend_from_slice(tail);
        octets
    }

    /// The question `example. MX`; its name stands at 12.
    const QUESTION: &[u8] = b"\x07example\0\0\x0f\0\x01";

    #[test]
    fn compressed_names_are_written_out_in_owners_and_data() {
        let mx = b"\xc0\x0c\0\x0f\0\x01\0\0\x0e\x10\0\x07\0\x0a\x02mx\xc0\x0c";
        let read = Message::parse(&message(0x8403, [1, 1, 0, 0], &[QUESTION, mx].concat()));
        let read = read.unwrap();
        assert_eq!(
            (read.id, read.rcode(), read.opcode()),
            (0x1234, Rcode::NXDOMAIN, Opcode::QUERY)
        );
        assert!(read.has(flag::AA) && !read.has(flag::TC));
        let record = read.section(Section::Answer).next().unwrap();
        assert_eq!(record.owner.to_string(), "example.");
        assert_eq!((record.rtype, record.class, record.ttl), (Type::MX, Class::IN, 3600));
        assert_eq!(record.rdata, b"\0\x0a\x02mx\x07example\0");
    }

    #[test]
    fn opt_is_taken_apart() {
        let opt = b"\0\0\x29\x04\xd0\x01\0\x80\0\0\x07\0\x0f\0\x03\0\x0ex";
        let read = Message::parse(&message(0x8000, [1, 0, 0, 1], &[QUESTION, opt].concat()));
        let read = read.unwrap();
        assert_eq!(read.rcode(), Rcode::BADVERS);
        let opt = read.opt.unwrap();
        assert!(opt.dnssec_ok());
        assert_eq!((opt.udp_bytes, opt.option(15)), (1232, Some(&b"\0\x0ex"[..])));
        assert_eq!(opt.option(3), None);
    }

    #[test]
    fn rdata_that_breaks_its_schema_is_copied_unchanged() {
        let a = b"\0\0\x01\0\x01\0\0\0\0\0\x02\xc0\x0c";
        let read = Message::parse(&message(0, [0, 1, 0, 0], a)).unwrap();
        assert_eq!(read.records[0].rdata, b"\xc0\x0c");
    }

    #[test]
    fn a_pointer_leads_backwards_and_nowhere_else() {
        for name in [
            &b"\xc0\x0c"[..], // itself
            b"\xc0\x02",      // the header
            b"\xc0\x0e\0",    // what follows
            b"\x01a\xc0\x0c", // its own beginning
            b"\xc0\xff",      // behind the end
            b"\x40",          // another label type
            b"\x05ab",        // ends early
        ] {
            let octets = message(0, [1, 0, 0, 0], &[name, b"\0\x01\0\x01"].concat());
            assert_eq!(Message::parse(&octets), Err(Malformed), "{name:?}");
        }
    }

    #[test]
    fn octets_before_or_behind_the_records_are_malformed() {
        for (counts, tail) in [
            ([0, 0, 0, 0], &b"x"[..]),
            ([1, 0, 0, 0], b"\0\0\x01"),
            ([0, 1, 0, 0], b"\0\0\x01\0\x01\0\0\0\0\0\x05\x01\x02\x03\x04"),
            ([0, 0, 0, 2], b"\0\0\x29\0\0\0\0\0\0\0\0\0\0\x29\0\0\0\0\0\0\0\0"),
            ([0, 0, 0, 1], b"\0\0\x29\0\0\0\0\0\0\0\x01x"),
        ] {
            assert_eq!(Message::parse(&message(0, counts, tail)), Err(Malformed), "{tail:?}");
        }
        assert_eq!(Message::parse(&[0; 11]), Err(Malformed));
    }

    #[test]
    fn a_name_has_255_octets_at_most_however_it_is_compressed() {
        let mut names = Vec::new();
        for _ in 0..4 {
            names.push(63);
            names.extend_from_slice(&[b'a'; 63]);
        }
        let octets = |from: usize| {
            let name = [&names[from..], b"\0\0\x01\0\x01"].concat();
            Message::parse(&message(0, [1, 0, 0, 0], &name))
        };
        assert!(octets(64).is_ok());
        assert_eq!(octets(0), Err(Malformed));
    }
}
