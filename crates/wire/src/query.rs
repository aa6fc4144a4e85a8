//! A received query, read once from its bytes.
//!
//! Nothing is copied: the question is known by its place in the message. A message that cannot be
//! answered says in its [`Fault`] which response code it earns (rfc8906).

use crate::client::SubnetOption;
use crate::code::{Class, Opcode, Rcode, Type};
use crate::name::{LABEL_BYTES_MAX, NAME_BYTES_MAX};
use crate::tsig;

/// Octets of the header; the first question begins behind it (rfc1035#4.1.1).
pub const HEADER_BYTES: usize = 12;
/// Most octets in a UDP message without EDNS (rfc1035#2.3.4).
pub const UDP_BYTES_MIN: u16 = 512;

/// The header's flags word and the meaning of its bits (rfc1035#4.1.1, rfc4035#3).
pub mod flag {
    /// The message is a response.
    pub const QR: u16 = 0x8000;
    /// The answer is authoritative.
    pub const AA: u16 = 0x0400;
    /// The message is truncated.
    pub const TC: u16 = 0x0200;
    /// Recursion is desired.
    pub const RD: u16 = 0x0100;
    /// Recursion is available.
    pub const RA: u16 = 0x0080;
    /// The data is authentic.
    pub const AD: u16 = 0x0020;
    /// Checking is disabled.
    pub const CD: u16 = 0x0010;
    /// Where the operation code lies.
    pub const OPCODE: u16 = 0x7800;
}

/// What a query asks and how it wants the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The flags word of the header.
    pub flags: u16,
    /// End of the question's name, its root label included; the name begins behind the header. 12
    /// when there is no question.
    pub name_end: u16,
    /// The type asked for.
    pub qtype: Type,
    /// The class asked for.
    pub qclass: Class,
    /// The client's EDNS record, if there is one.
    pub edns: Option<Edns>,
}

/// A client's OPT record (rfc6891#6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edns {
    /// The largest UDP message the client takes, octets; below 512 counts as 512.
    pub udp_bytes: u16,
    /// The version; only 0 exists.
    pub version: u8,
    /// The client wants DNSSEC records (rfc3225).
    pub dnssec_ok: bool,
    /// Whether the client asks for the server's identity (rfc5001).
    pub nsid: bool,
    /// Whether the client sent the TCP keepalive option (rfc7828).
    pub keepalive: bool,
    /// Whether the client asks for the reason of the answer, by an extended error in the query:
    /// draft-ietf-dnsop-structured-dns-error asks for words about failures so.
    pub reason: bool,
    /// Whether the client asks when the zone expires, by an empty EXPIRE option (rfc7314#3.1).
    pub expire: bool,
    /// Offset and length of the COOKIE option's data (8 or 16–40); length 0 when there is none
    /// (rfc7873#4).
    pub cookie: (u16, u8),
    /// Offset of the CLIENT-SUBNET option's data, which are sound; 0 when there is none
    /// (rfc7871#6).
    pub subnet_at: u16,
}

impl Edns {
    /// Whether there is an option that this type tells of.
    #[inline]
    #[must_use]
    pub fn has_options(&self) -> bool {
        let flags = self.nsid | self.keepalive | self.reason | self.expire;
        u16::from(flags) | u16::from(self.cookie.1) | self.subnet_at != 0
    }
}

/// Why a message cannot be answered as a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Shorter than a header, or a response: silence (rfc8906#3.1.1).
    NotAQuery,
    /// The question cannot be read; nothing of the message can be echoed but its header.
    NoQuestion(Rcode),
    /// The question was read, what follows it is wrong.
    Malformed,
    /// A query signed by an unknown key (rfc8945#5.2): the TSIG record begins at this octet.
    Signed(u16),
}

impl Default for Query {
    /// Returns a query without a question.
    fn default() -> Self {
        let name_end = HEADER_BYTES as u16;
        Self { flags: 0, name_end, qtype: Type(0), qclass: Class(0), edns: None }
    }
}

impl Query {
    /// Returns the operation code.
    #[must_use]
    pub fn opcode(&self) -> Opcode {
        Opcode(((self.flags & flag::OPCODE) >> 11) as u8)
    }

    /// Whether the client asks for DNSSEC records.
    #[must_use]
    pub fn dnssec_ok(&self) -> bool {
        self.edns.is_some_and(|edns| edns.dnssec_ok)
    }

    /// Returns where the question ends: behind the class, or at 12 when there is none.
    #[must_use]
    pub fn question_end(&self) -> usize {
        match usize::from(self.name_end) {
            HEADER_BYTES => HEADER_BYTES,
            name_end => name_end + 4,
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// The [`Fault`] beside as much of the query as was read before it.
    pub fn parse(message: &[u8]) -> Result<Self, (Self, Fault)> {
        let mut query = Self::default();
        match query.read(message) {
            Ok(()) => Ok(query),
            Err(fault) => Err((query, fault)),
        }
    }

    /// Reads a message into a query that is reused.
    ///
    /// # Errors
    /// The [`Fault`]; the query then holds as much as was read before it.
    #[inline]
    pub fn read(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.name_end = HEADER_BYTES as u16;
        self.qtype = Type(0);
        self.qclass = Class(0);
        self.edns = None;
        let Some(header) = message.first_chunk::<HEADER_BYTES>() else {
            return Err(Fault::NotAQuery);
        };
        let words = u64::from_be_bytes(*header.last_chunk().expect("twelve octets hold eight"));
        self.flags = u16::from_be_bytes([header[2], header[3]]);
        if self.flags & flag::QR != 0 {
            return Err(Fault::NotAQuery);
        }
        let [qd, an, ns, ar] = [48, 32, 16, 0].map(|shift| (words >> shift) as u16);
        if qd > 1 {
            return Err(Fault::NoQuestion(Rcode::FORMERR)); // rfc9619
        }
        let mut reader = Reader { message, at: HEADER_BYTES };
        if qd == 1 && self.read_question(&mut reader).is_none() {
            return Err(Fault::NoQuestion(Rcode::FORMERR));
        }
        let only_question = words == 1 << 48 && reader.at == message.len();
        if !only_question {
            self.read_records(&mut reader, [an, ns, ar])?;
        }
        if qd == 0 && self.opcode() == Opcode::QUERY && self.edns.is_none_or(|e| e.cookie.1 == 0) {
            return Err(Fault::NoQuestion(Rcode::FORMERR));
        }
        Ok(())
    }

    /// Returns the options of the EDNS record of the message that this was read from: codes and
    /// data (rfc6891#6.1.2).
    pub fn options<'m>(&self, message: &'m [u8]) -> impl Iterator<Item = (u16, &'m [u8])> {
        let found = self.edns.and_then(|_| find_options(message, self.question_end()));
        let mut rest = found.unwrap_or_default();
        std::iter::from_fn(move || {
            let (code, tail) = rest.split_first_chunk()?;
            let (len, tail) = tail.split_first_chunk()?;
            let (data, tail) = tail.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
            rest = tail;
            Some((u16::from_be_bytes(*code), data))
        })
    }

    /// Returns the number of octets of the message that this was read from, with which `octets`
    /// begin; nothing if they hold less than its header counts.
    #[must_use]
    pub fn message_bytes(&self, octets: &[u8]) -> Option<usize> {
        let mut reader = Reader { message: octets, at: self.question_end() };
        for count_at in [6, 8, 10] {
            let count = octets.get(count_at..)?.first_chunk()?;
            for _ in 0..u16::from_be_bytes(*count) {
                reader.skip_to_type()?;
                reader.skip(6)?; // class and TTL
                let len = reader.u16()?;
                reader.skip(usize::from(len))?;
            }
        }
        (reader.at <= octets.len()).then_some(reader.at)
    }

    /// Reads the question behind the header.
    #[inline]
    fn read_question(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let mut at = HEADER_BYTES;
        loop {
            match usize::from(*reader.message.get(at)?) {
                0 => break,
                len @ 1..=LABEL_BYTES_MAX => at += 1 + len,
                _ => return None,
            }
        }
        at += 1;
        if at - HEADER_BYTES > NAME_BYTES_MAX {
            return None;
        }
        let fixed = reader.message.get(at..)?.first_chunk::<4>()?;
        self.qtype = Type(u16::from_be_bytes([fixed[0], fixed[1]]));
        self.qclass = Class(u16::from_be_bytes([fixed[2], fixed[3]]));
        self.name_end = at as u16; // at most 12 + 255
        reader.at = at + 4;
        Some(())
    }

    /// Reads the records behind the question; only OPT and TSIG records among the additional ones
    /// count.
    #[inline(never)]
    fn read_records(&mut self, reader: &mut Reader<'_>, counts: [u16; 3]) -> Result<(), Fault> {
        let [an, ns, ar] = counts;
        for _ in 0..u32::from(an) + u32::from(ns) {
            reader.skip_other().ok_or(Fault::Malformed)?;
        }
        for left in (0..ar).rev() {
            if reader.message.get(reader.at..reader.at + 3) != Some(&[0, 0, 41]) {
                let at = reader.at;
                if reader.skip_other().is_none() {
                    return Err(reader.signature(at, left));
                }
                continue;
            }
            reader.at += 3;
            if self.edns.is_some() {
                return Err(Fault::Malformed); // rfc6891#6.1.1
            }
            let (mut edns, end) = Edns::read(reader).ok_or(Fault::Malformed)?;
            let is_read = edns.read_options(reader, end).is_some();
            self.edns = Some(edns); // wrong or not, it is there, and the reply has one, too
            if !is_read {
                return Err(Fault::Malformed);
            }
        }
        if reader.at == reader.message.len() { Ok(()) } else { Err(Fault::Malformed) }
    }
}

/// Returns the octets of all options of the OPT record in a message that was read before.
fn find_options(message: &[u8], question_end: usize) -> Option<&[u8]> {
    let count = |at: usize| Some(u16::from_be_bytes(*message.get(at..)?.first_chunk()?));
    let mut reader = Reader { message, at: question_end };
    for _ in 0..u32::from(count(6)?) + u32::from(count(8)?) {
        reader.skip_other()?;
    }
    for _ in 0..count(10)? {
        if message.get(reader.at..reader.at + 3) != Some(&[0, 0, 41]) {
            reader.skip_other()?;
            continue;
        }
        reader.skip(9)?; // name, type, class and TTL
        let len = usize::from(reader.u16()?);
        return message.get(reader.at..reader.at + len);
    }
    None
}

impl Edns {
    /// Reads an OPT record from behind its type up to its options; also returns where they end.
    fn read(reader: &mut Reader<'_>) -> Option<(Self, usize)> {
        let udp_bytes = reader.u16()?;
        let _extended_rcode = reader.u8()?;
        let version = reader.u8()?;
        let dnssec_ok = reader.u16()? & 0x8000 != 0;
        let (nsid, keepalive, reason, expire) = (false, false, false, false);
        let (cookie, subnet_at) = ((0, 0), 0);
        let edns = Self {
            udp_bytes,
            version,
            dnssec_ok,
            nsid,
            keepalive,
            reason,
            expire,
            cookie,
            subnet_at,
        };
        let end = usize::from(reader.u16()?) + reader.at;
        Some((edns, end))
    }

    /// Reads the options.
    fn read_options(&mut self, reader: &mut Reader<'_>, end: usize) -> Option<()> {
        while reader.at < end {
            self.read_option(reader)?;
        }
        (reader.at == end).then_some(())
    }

    /// Reads one option; unknown options are skipped (rfc6891#6.1.2).
    fn read_option(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        let code = reader.u16()?;
        let len = reader.u16()?;
        let start = reader.at;
        reader.skip(usize::from(len))?;
        match code {
            option::NSID => self.nsid = true,
            option::KEEPALIVE => self.keepalive = true,
            option::EDE => self.reason = true,
            option::EXPIRE if len == 0 => self.expire = true,
            option::COOKIE if self.cookie.1 == 0 => match len {
                8 | 16..=40 => self.cookie = (u16::try_from(start).ok()?, len as u8),
                _ => return None, // rfc7873#5.2.2
            },
            option::CLIENT_SUBNET if !SubnetOption::is_sound(&reader.message[start..reader.at]) => {
                return None; // rfc7871#6, #7.1.2
            }
            option::CLIENT_SUBNET if self.subnet_at == 0 => {
                self.subnet_at = u16::try_from(start).ok()?;
            }
            _ => {}
        }
        Some(())
    }
}

/// Codes of EDNS options.
pub mod option {
    /// Name server identifier (rfc5001).
    pub const NSID: u16 = 3;
    /// DNS cookie (rfc7873).
    pub const COOKIE: u16 = 10;
    /// The client's network, as a resolver gives it (rfc7871).
    pub const CLIENT_SUBNET: u16 = 8;
    /// The seconds until a zone expires (rfc7314).
    pub const EXPIRE: u16 = 9;
    /// TCP keepalive (rfc7828).
    pub const KEEPALIVE: u16 = 11;
    /// Padding (rfc7830).
    pub const PADDING: u16 = 12;
    /// Extended error (rfc8914).
    pub const EDE: u16 = 15;
}

/// A place in a message; every step checks that the octets are there.
struct Reader<'a> {
    message: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn u8(&mut self) -> Option<u8> {
        let octet = *self.message.get(self.at)?;
        self.at += 1;
        Some(octet)
    }

    fn u16(&mut self) -> Option<u16> {
        let octets = self.message.get(self.at..self.at + 2)?;
        self.at += 2;
        Some(u16::from_be_bytes([octets[0], octets[1]]))
    }

    fn skip(&mut self, octets: usize) -> Option<()> {
        let at = self.at + octets;
        if at > self.message.len() {
            return None;
        }
        self.at = at;
        Some(())
    }

    /// Steps over a record that is neither OPT, which may stand at the root and among additional
    /// records only (rfc6891#6.1.1), nor TSIG.
    fn skip_other(&mut self) -> Option<()> {
        let rtype = self.skip_to_type()?;
        self.skip(6)?; // class and TTL
        let len = self.u16()?;
        self.skip(usize::from(len))?;
        (rtype != Type::OPT && rtype != Type::TSIG).then_some(())
    }

    /// Steps over the owner and the type of a record; returns the type.
    fn skip_to_type(&mut self) -> Option<Type> {
        loop {
            match self.u8()? {
                0 => break,
                len @ 1..=63 => self.skip(usize::from(len))?,
                0xc0.. => {
                    self.skip(1)?; // a pointer ends the name
                    break;
                }
                _ => return None,
            }
        }
        self.u16().map(Type)
    }

    /// Returns what the additional record at `at` makes of the message, with `left` records behind
    /// it, if it cannot be stepped over: a signature is the last of them (rfc8945#5.1).
    #[cold]
    fn signature(&mut self, at: usize, left: u16) -> Fault {
        self.at = at;
        let is_signature = self.skip_to_type() == Some(Type::TSIG) && left == 0;
        let behind_type = self.message.get(self.at..).unwrap_or_default();
        match u16::try_from(at) {
            Ok(at) if is_signature && tsig::has_valid_layout(behind_type) => Fault::Signed(at),
            _ => Fault::Malformed,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Returns a query for `a. A` with the given counts and tail.
    fn message(counts: [u16; 4], tail: &[u8]) -> Vec<u8> {
        let mut message = vec![0x12, 0x34, 0x01, 0x00];
        counts.iter().for_each(|count| message.extend_from_slice(&count.to_be_bytes()));
        if counts[0] > 0 {
            message.extend_from_slice(b"\x01a\0\0\x01\0\x01");
        }
        message.extend_from_slice(tail);
        message
    }

    #[test]
    fn a_message_ends_behind_the_last_record_that_its_header_counts() {
        const OPT: &[u8] = b"\0\0\x29\x04\xd0\0\0\0\0\0\x04\0\x03\0\0";
        const OTHER: &[u8] = b"\x01b\xc0\x0c\0\x10\0\x01\0\0\0\0\0\x02\x01x";
        let both = [OTHER, OPT].concat();
        for (counts, tail) in
            [([1, 0, 0, 0], &b""[..]), ([1, 0, 0, 1], OPT), ([1, 0, 1, 1], &both), ([0; 4], b"")]
        {
            let message = message(counts, tail);
            let query = Query::parse(&message).unwrap_or_else(|(query, _)| query);
            let longer = [&message[..], b"left from before"].concat();
            assert_eq!(query.message_bytes(&longer), Some(message.len()), "{counts:?}");
            let shorter = &message[..message.len() - 1];
            assert_eq!(query.message_bytes(shorter), None, "{counts:?}");
        }
    }

    #[test]
    fn a_plain_query_is_read() {
        let query = Query::parse(&message([1, 0, 0, 0], b"")).unwrap();
        assert_eq!((query.name_end, query.qtype, query.qclass), (15, Type::A, Class::IN));
        assert_eq!((query.question_end(), query.edns), (19, None));
        assert_eq!(query.flags, flag::RD);
    }

    #[test]
    fn a_query_that_is_reused_keeps_nothing_of_the_former_one() {
        let mut query = Query::parse(&message([1, 0, 0, 0], b"")).unwrap();
        assert_eq!(query.read(&[0; 5]), Err(Fault::NotAQuery));
        assert_eq!((query.qtype, query.qclass, query.edns), (Type(0), Class(0), None));
        assert_eq!(query.question_end(), HEADER_BYTES);
    }

    #[test]
    fn opt_is_found_behind_other_records() {
        let other = b"\xc0\x0c\0\x10\0\x01\0\0\0\0\0\x02\x01x".as_slice();
        let opt = b"\0\0\x29\x04\xd0\0\0\x80\0\0\x10\0\x03\0\0\0\x0a\0\x08abcdefgh".as_slice();
        let query = Query::parse(&message([1, 1, 1, 2], &[other, other, other, opt].concat()));
        let edns = query.unwrap().edns.unwrap();
        assert_eq!(
            (edns.udp_bytes, edns.version, edns.dnssec_ok, edns.nsid),
            (1232, 0, true, true)
        );
        assert_eq!(edns.cookie, (19 + 3 * 14 + 11 + 8, 8));
    }

    #[test]
    fn faults_are_distinguished() {
        let fault = |message: &[u8]| Query::parse(message).unwrap_err().1;
        assert_eq!(fault(b""), Fault::NotAQuery);
        assert_eq!(fault(&[0; 11]), Fault::NotAQuery);
        assert_eq!(fault(&[0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Fault::NotAQuery);
        let no_question = Fault::NoQuestion(Rcode::FORMERR);
        assert_eq!(fault(&message([0, 0, 0, 0], b"")), no_question);
        assert_eq!(fault(&message([2, 0, 0, 0], b"\x01a\0\0\x01\0\x01")), no_question);
        assert_eq!(fault(&message([1, 0, 0, 0], b"")[..17]), no_question);
        assert_eq!(fault(&message([1, 0, 0, 0], b"x")), Fault::Malformed);
        assert_eq!(fault(&message([1, 0, 0, 1], b"")), Fault::Malformed);
        let opt = b"\0\0\x29\x04\xd0\0\0\0\0\0\0".as_slice();
        assert_eq!(fault(&message([1, 0, 0, 2], &[opt, opt].concat())), Fault::Malformed);
        let short_cookie = b"\0\0\x29\x04\xd0\0\0\0\0\0\x05\0\x0a\0\x01x".as_slice();
        assert_eq!(fault(&message([1, 0, 0, 1], short_cookie)), Fault::Malformed);
    }

    #[test]
    fn the_options_of_a_faulty_record_leave_the_record_known() {
        let faulty = |tail: &[u8]| Query::parse(&message([1, 0, 0, 1], tail)).unwrap_err();
        let short_cookie = b"\0\0\x29\x04\xd0\0\0\x80\0\0\x05\0\x0a\0\x01x".as_slice();
        let no_subnet = b"\0\0\x29\x04\xd0\0\0\x80\0\0\x05\0\x08\0\x01x".as_slice();
        for tail in [short_cookie, no_subnet, &short_cookie[..13]] {
            let (query, fault) = faulty(tail);
            assert_eq!((fault, query.dnssec_ok()), (Fault::Malformed, true), "{tail:?}");
        }
        assert!(!faulty(&short_cookie[..10]).0.dnssec_ok(), "it has no length");
    }

    #[test]
    fn a_signature_is_found_if_it_is_the_last_record() {
        let signature = b"\x01k\0\0\xfa\0\xff\0\0\0\0\0\x13\x01a\0\0\0\0\0\0\0\0\0\0\0HI\0\0\0\0";
        let opt = b"\0\0\x29\x04\xd0\0\0\0\0\0\0".as_slice();
        let fault = |counts, tail: &[&[u8]]| Query::parse(&message(counts, &tail.concat())).err();
        let found = fault([1, 0, 0, 2], &[opt, signature])
            .map(|(query, fault)| (query.edns.is_some(), fault));
        assert_eq!(found, Some((true, Fault::Signed(19 + 11))));
        let malformed = [
            fault([1, 0, 0, 2], &[signature, opt]),
            fault([1, 0, 0, 2], &[signature, signature]),
            fault([1, 1, 0, 0], &[signature]),
            fault([1, 0, 0, 1], &[signature, b"x"]),
            fault([1, 0, 0, 1], &[&signature[..20]]),
        ];
        for found in malformed {
            assert_eq!(found.map(|(_, fault)| fault), Some(Fault::Malformed));
        }
    }

    #[test]
    fn a_cookie_may_be_asked_for_without_a_question() {
        let opt = b"\0\0\x29\x04\xd0\0\0\0\0\0\x0c\0\x0a\0\x08abcdefgh".as_slice();
        let query = Query::parse(&message([0, 0, 0, 1], opt)).unwrap(); // rfc7873#5.4
        assert_eq!(query.question_end(), HEADER_BYTES);
    }

    #[test]
    fn a_name_of_256_octets_or_a_pointer_is_no_question() {
        let mut long = message([1, 0, 0, 0], b"")[..12].to_vec();
        for _ in 0..127 {
            long.extend_from_slice(b"\x01a");
        }
        let fits = [&long[..], b"\0\0\x01\0\x01"].concat();
        assert!(Query::parse(&fits).is_ok());
        let too_long = [&long[..], b"\x01a\0\0\x01\0\x01"].concat();
        assert!(Query::parse(&too_long).is_err());
        let pointer = [&long[..12], b"\xc0\x0c\0\x01\0\x01"].concat();
        assert!(Query::parse(&pointer).is_err());
    }
}
