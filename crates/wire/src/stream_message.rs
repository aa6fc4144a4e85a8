//! Messages of a zone transfer as the receiver reads them: record by record, names written out.
//!
//! Deliberately absent: what the records mean, and the check of signatures.

use crate::code::{Class, Ede, Rcode, Type};
use crate::message::Reader;
use crate::query::{HEADER_BYTES, flag, option};
use crate::rdata;

/// Octets of a record between its owner and its data: type, class, TTL, length.
const FIXED_BYTES: usize = 2 + 2 + 4 + 2;

/// One message of the reply to a question for a transfer (rfc5936#2.2).
pub struct StreamMessage<'m> {
    octets: &'m [u8],
    /// The place of the next record.
    at: usize,
    /// Records of the answer section that were not read yet.
    left: u16,
    /// Where the TSIG record begins, if the message has one.
    signature_at: Option<usize>,
    /// The seconds until the zone expires at the server, if it says that (rfc7314).
    expire: Option<u32>,
    /// The extended error that goes with the response code, if there is one (rfc8914).
    ede: Option<Ede>,
    /// The upper bits of the response code.
    rcode_high: u8,
}

/// A record of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRecord<'b> {
    /// The owner name, uncompressed.
    pub owner: &'b [u8],
    /// The record's type.
    pub rtype: Type,
    /// Class of the record.
    pub class: Class,
    /// Time to live, seconds.
    pub ttl: u32,
    /// The record's data, names written out.
    pub rdata: &'b [u8],
}

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFault {
    /// The octets are no message, or more than one.
    Malformed,
    /// The message is no reply.
    NotAReply,
    /// The id is not that of the query.
    OtherId,
    /// The question is not that of the query.
    OtherQuestion,
    /// The message says that it is truncated.
    Truncated,
    /// The data of a record of this type break the rules of the type.
    Data(Type),
}

impl std::fmt::Display for StreamFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Malformed => f.write_str("a message is malformed"),
            Self::NotAReply => f.write_str("a message is no reply to a query"),
            Self::OtherId => f.write_str("a message has another id than the query"),
            Self::OtherQuestion => f.write_str("a message answers another question"),
            Self::Truncated => f.write_str("a message is truncated"),
            Self::Data(rtype) => write!(f, "the data of a record of type {rtype} are malformed"),
        }
    }
}

impl std::error::Error for StreamFault {}

impl<'m> StreamMessage<'m> {
    /// Reads all of a message but the records of its answer section: the reply to a query with an
    /// id and a question in wire form, which later messages may leave out (rfc5936#2.2.1).
    ///
    /// # Errors
    /// When it is no such message.
    pub fn read(octets: &'m [u8], id: [u8; 2], question: &[u8]) -> Result<Self, StreamFault> {
        let header = octets.first_chunk::<HEADER_BYTES>().ok_or(StreamFault::Malformed)?;
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        if header[..2] != id {
            return Err(StreamFault::OtherId);
        }
        if word(2) & flag::QR == 0 || word(2) & flag::OPCODE != 0 {
            return Err(StreamFault::NotAReply);
        }
        let mut reader = Reader { octets, at: HEADER_BYTES };
        match word(4) {
            0 => {}
            1 => {
                let mut name = Vec::with_capacity(question.len());
                let fixed = reader.name_into(&mut name).and_then(|()| reader.take(4));
                name.extend_from_slice(fixed.ok_or(StreamFault::Malformed)?);
                if !name.eq_ignore_ascii_case(question) {
                    return Err(StreamFault::OtherQuestion);
                }
            }
            _ => return Err(StreamFault::OtherQuestion),
        }
        let (at, left) = (reader.at, word(6));
        let (signature_at, expire, ede, rcode_high) = (None, None, None, 0);
        let message = Self { octets, at, left, signature_at, expire, ede, rcode_high };
        let message =
            message.with_tail([word(6), word(8), word(10)]).ok_or(StreamFault::Malformed)?;
        if word(2) & flag::TC != 0 {
            return Err(StreamFault::Truncated);
        }
        Ok(message)
    }

    /// Reads what lies behind the answer section.
    fn with_tail(mut self, [answers, authorities, additionals]: [u16; 3]) -> Option<Self> {
        let mut reader = Reader { octets: self.octets, at: self.at };
        for _ in 0..u32::from(answers) + u32::from(authorities) {
            skip_record(&mut reader)?;
        }
        for number in 1..=additionals {
            let start = reader.at;
            let (rtype, ttl, rdata) = skip_record(&mut reader)?;
            match rtype {
                Type::OPT => {
                    self.rcode_high = ttl.to_be_bytes()[0];
                    let expire = data_of_option(rdata, option::EXPIRE);
                    self.expire = expire.and_then(|it| it.try_into().ok()).map(u32::from_be_bytes);
                    let ede = data_of_option(rdata, option::EDE).and_then(|it| it.first_chunk());
                    self.ede = ede.map(|code| Ede(u16::from_be_bytes(*code)));
                }
                Type::TSIG if number == additionals => self.signature_at = Some(start),
                Type::TSIG => return None, // rfc8945#5.1
                _ => {}
            }
        }
        (reader.at == self.octets.len()).then_some(self)
    }

    /// Returns the response code.
    #[must_use]
    pub fn rcode(&self) -> Rcode {
        Rcode(u16::from(self.rcode_high) << 4 | u16::from(self.octets[3] & 0x0f))
    }

    /// Whether the server says that it is authoritative for the zone.
    #[must_use]
    pub fn is_authoritative(&self) -> bool {
        u16::from_be_bytes([self.octets[2], self.octets[3]]) & flag::AA != 0
    }

    /// Returns where the TSIG record begins, if the message has one.
    #[must_use]
    pub fn signature_at(&self) -> Option<usize> {
        self.signature_at
    }

    /// Returns the seconds until the zone expires at the server, if it says that (rfc7314#3.2).
    #[must_use]
    pub fn expire_secs(&self) -> Option<u32> {
        self.expire
    }

    /// Returns the extended error that goes with the response code, if there is one (rfc8914#2).
    #[must_use]
    pub fn ede(&self) -> Option<Ede> {
        self.ede
    }

    /// Returns how many records of the answer section were not read yet.
    #[must_use]
    pub fn records_left(&self) -> usize {
        usize::from(self.left)
    }

    /// Reads the next record of the answer section into a buffer; none behind the last.
    ///
    /// # Errors
    /// When its data are malformed: names in them could not be written out.
    pub fn next<'b>(
        &mut self,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<StreamRecord<'b>>, StreamFault> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        buffer.clear();
        let mut reader = Reader { octets: self.octets, at: self.at };
        let head = reader.name_into(buffer).and_then(|()| reader.take(FIXED_BYTES));
        let head: &[u8; FIXED_BYTES] =
            head.and_then(|it| it.first_chunk()).ok_or(StreamFault::Malformed)?;
        let [t0, t1, c0, c1, s0, s1, s2, s3, l0, l1] = *head;
        let (owner_len, start) = (buffer.len(), reader.at);
        let len = usize::from(u16::from_be_bytes([l0, l1]));
        let raw = reader.take(len).ok_or(StreamFault::Malformed)?;
        let rtype = Type(u16::from_be_bytes([t0, t1]));
        match rdata::schema::of(rtype) {
            Some(schema) => {
                reader.rdata_into(schema, raw, start, buffer).ok_or(StreamFault::Data(rtype))?
            }
            None => buffer.extend_from_slice(raw), // rfc3597#4: no names in it are compressed
        }
        self.at = reader.at;
        let (owner, rdata) = buffer.split_at(owner_len);
        if rdata.len() > usize::from(u16::MAX) {
            return Err(StreamFault::Data(rtype));
        }
        let (class, ttl) = (Class(u16::from_be_bytes([c0, c1])), [s0, s1, s2, s3]);
        Ok(Some(StreamRecord { owner, rtype, class, ttl: u32::from_be_bytes(ttl), rdata }))
    }
}

/// Passes over a record; returns its type, its TTL and its data.
fn skip_record<'m>(reader: &mut Reader<'m>) -> Option<(Type, u32, &'m [u8])> {
    skip_name(reader)?;
    let fixed: &[u8; FIXED_BYTES] = reader.take(FIXED_BYTES)?.first_chunk()?;
    let [t0, t1, _, _, s0, s1, s2, s3, l0, l1] = *fixed;
    let rdata = reader.take(usize::from(u16::from_be_bytes([l0, l1])))?;
    Some((Type(u16::from_be_bytes([t0, t1])), u32::from_be_bytes([s0, s1, s2, s3]), rdata))
}

/// Passes over a name up to its end or its first pointer.
fn skip_name(reader: &mut Reader<'_>) -> Option<()> {
    loop {
        match usize::from(reader.take(1)?[0]) {
            0 => return Some(()),
            len @ 1..=63 => _ = reader.take(len)?,
            0xc0.. => return reader.take(1).map(drop),
            _ => return None,
        }
    }
}

/// The data of the first option with a code among those of an OPT record.
fn data_of_option(options: &[u8], code: u16) -> Option<&[u8]> {
    let mut reader = Reader { octets: options, at: 0 };
    loop {
        let (found, len) = (reader.u16()?, reader.u16()?);
        let data = reader.take(usize::from(len))?;
        if found == code {
            return Some(data);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const QUESTION: &[u8] = b"\x07example\0\0\xfc\0\x01";

    /// A reply with a question, one record `example. MX 10 mx.example.`, and an OPT record.
    fn reply() -> Vec<u8> {
        let mx = b"\xc0\x0c\0\x0f\0\x01\0\0\x0e\x10\0\x07\0\x0a\x02mx\xc0\x0c";
        let opt = b"\0\0\x29\x04\xd0\0\0\0\0\0\x08\0\x09\0\x04\0\0\0\x07";
        [b"\x12\x34\x84\0\0\x01\0\x01\0\0\0\x01", QUESTION, mx, opt].concat()
    }

    #[test]
    fn records_come_with_their_names_written_out() {
        let octets = reply();
        let mut message = StreamMessage::read(&octets, [0x12, 0x34], QUESTION).unwrap();
        assert_eq!((message.rcode(), message.expire_secs()), (Rcode::NOERROR, Some(7)));
        let mut buffer = Vec::new();
        let record = message.next(&mut buffer).unwrap().unwrap();
        assert_eq!(record.owner, b"\x07example\0");
        assert_eq!((record.rtype, record.class, record.ttl), (Type::MX, Class::IN, 3600));
        assert_eq!(record.rdata, b"\0\x0a\x02mx\x07example\0");
        assert_eq!(message.next(&mut buffer), Ok(None));
    }

    #[test]
    fn the_extended_error_of_a_message_is_read_beside_other_options() {
        let opt = b"\0\0\x29\x04\xd0\0\0\0\0\0\x12\0\x09\0\x04\0\0\0\x07\0\x0f\0\x06\0\x0ebusy";
        let octets = [b"\x12\x34\x84\x02\0\x01\0\0\0\0\0\x01", QUESTION, opt].concat();
        let message = StreamMessage::read(&octets, [0x12, 0x34], QUESTION).unwrap();
        assert_eq!((message.ede(), message.expire_secs()), (Some(Ede::NOT_READY), Some(7)));
        let message = StreamMessage::read(&reply(), [0x12, 0x34], QUESTION).unwrap().ede();
        assert_eq!(message, None);
    }

    #[test]
    fn a_message_that_is_not_the_reply_is_refused() {
        let read = |octets: &[u8]| StreamMessage::read(octets, [0x12, 0x34], QUESTION).err();
        let changed = |at: usize, to: u8| {
            let mut octets = reply();
            octets[at] = to;
            octets
        };
        assert_eq!(read(&changed(0, 9)), Some(StreamFault::OtherId));
        assert_eq!(read(&changed(2, 0)), Some(StreamFault::NotAReply));
        assert_eq!(read(&changed(2, 0x86)), Some(StreamFault::Truncated));
        assert_eq!(read(&changed(13, b'X')), Some(StreamFault::OtherQuestion));
        assert_eq!(read(&changed(13, b'E')), None, "the case of letters does not matter");
        assert_eq!(read(&changed(5, 2)), Some(StreamFault::OtherQuestion));
        let octets = reply();
        for end in 0..octets.len() {
            assert!(read(&octets[..end]).is_some(), "{end}");
        }
        assert_eq!(read(&[&octets[..], b"x"].concat()), Some(StreamFault::Malformed));
    }
}
