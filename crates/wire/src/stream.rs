//! Messages of a reply that has several: what a zone transfer consists of (rfc5936#2.2).
//!
//! Names are compressed as far as they are equal octet for octet, so that the case of each letter
//! arrives as it was sent; a reply to a question ([`Reply`](crate::Reply)) ignores case.
//!
//! Deliberately absent: which records are sent, and signatures.

use crate::code::{Class, Type};
use crate::message::Reader;
use crate::name::{self, LABEL_BYTES_MAX};
use crate::query::{HEADER_BYTES, Query, option};
use crate::reply::Full;

/// Octets of a message up to which records are added. A pointer leads no further than 0x3fff, so
/// that names beyond would not be compressed.
pub const STREAM_MESSAGE_BYTES: usize = 16 << 10;
/// Octets of the longest message over TCP.
const MESSAGE_BYTES_MAX: usize = u16::MAX as usize;
/// A compression pointer has 14 bits.
const POINTER_MAX: usize = 0x3fff;
/// Places of suffixes that are remembered; a later one takes the place of another with its hash.
const PLACES: usize = 1024;
/// Most labels of a name but for the root's.
const LABELS_MAX: usize = 127;

/// Writes the messages of a stream, one at a time.
pub struct StreamWriter {
    /// The message under way.
    octets: Vec<u8>,
    /// Octets to leave free for what is appended to each message.
    reserved: usize,
    /// Records in the answer section.
    answers: u16,
    /// Records in the additional section.
    additionals: u16,
    /// Where suffixes of names stand in the message, by their hash; 0 where none does.
    places: Box<[u16; PLACES]>,
}

impl StreamWriter {
    /// A writer of messages with so many octets left free, a few hundred at most.
    #[must_use]
    pub fn new(reserved: usize) -> Self {
        let octets = Vec::with_capacity(STREAM_MESSAGE_BYTES);
        Self { octets, reserved, answers: 0, additionals: 0, places: Box::new([0; PLACES]) }
    }

    /// Begins a message with an id, flags and, if it is the first, the octets of the question.
    pub fn begin(&mut self, id: [u8; 2], flags: u16, question: Option<&[u8]>) {
        self.octets.clear();
        (self.answers, self.additionals) = (0, 0);
        self.places.fill(0);
        self.octets.extend_from_slice(&id);
        self.octets.extend_from_slice(&flags.to_be_bytes());
        self.octets.extend_from_slice(&[0, u8::from(question.is_some()), 0, 0, 0, 0, 0, 0]);
        if let Some(question) = question {
            let at = self.octets.len();
            self.octets.extend_from_slice(question);
            self.remember_all(at, &question[..question.len().saturating_sub(4)]);
        }
    }

    /// Whether the message has no record yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.answers == 0
    }

    /// Appends a record of class IN to the answer section. One that would make the message too long
    /// is left out, unless it is the first.
    ///
    /// # Errors
    /// When there is no room for the record.
    pub fn record(
        &mut self,
        owner: &[u8],
        (rtype, ttl): (Type, u32),
        rdata: &[u8],
    ) -> Result<(), Full> {
        let before = self.octets.len();
        self.name(owner);
        let [t, c] = [rtype.0, Class::IN.0].map(u16::to_be_bytes);
        let s = ttl.to_be_bytes();
        self.octets.extend_from_slice(&[t[0], t[1], c[0], c[1], s[0], s[1], s[2], s[3], 0, 0]);
        let start = self.octets.len();
        self.rdata(rtype, rdata);
        let len = self.octets.len() - start;
        let max = if self.is_empty() { MESSAGE_BYTES_MAX } else { STREAM_MESSAGE_BYTES };
        if self.octets.len() + self.reserved > max || self.answers == u16::MAX {
            // Places behind the end are not taken for names: they are compared, and lie in front.
            self.octets.truncate(before);
            return Err(Full);
        }
        self.octets[start - 2..start].copy_from_slice(&(len as u16).to_be_bytes()); // it fits
        self.answers += 1;
        Ok(())
    }

    /// Appends an OPT record, behind all other records: octets of the largest UDP message, whether
    /// the client asked for DNSSEC records, and the seconds until the zone expires, if the client
    /// asked for them (rfc7314).
    pub fn opt(&mut self, udp_bytes: u16, dnssec_ok: bool, expire_secs: Option<u32>) {
        let [high, low] = udp_bytes.to_be_bytes();
        let flags = u8::from(dnssec_ok) << 7;
        let data_len = if expire_secs.is_some() { 8 } else { 0 };
        self.octets.extend_from_slice(&[0, 0, 41, high, low, 0, 0, flags, 0, 0, data_len]);
        if let Some(secs) = expire_secs {
            self.octets.extend_from_slice(&[0, option::EXPIRE as u8, 0, 4]);
            self.octets.extend_from_slice(&secs.to_be_bytes());
        }
        self.additionals += 1;
    }

    /// Ends the message; returns it, for what is to be appended.
    pub fn finish(&mut self) -> &mut Vec<u8> {
        self.octets[6..8].copy_from_slice(&self.answers.to_be_bytes());
        self.octets[10..HEADER_BYTES].copy_from_slice(&self.additionals.to_be_bytes());
        &mut self.octets
    }

    /// Writes rdata; only the types of rfc1035 hold names that every reader can decompress.
    fn rdata(&mut self, rtype: Type, rdata: &[u8]) {
        let before = match rtype {
            Type::NS | Type::CNAME | Type::PTR | Type::MD | Type::MF => 0,
            Type::MB | Type::MG | Type::MR | Type::SOA | Type::MINFO => 0,
            Type::MX => 2.min(rdata.len()),
            _ => return self.octets.extend_from_slice(rdata),
        };
        let names = if matches!(rtype, Type::SOA | Type::MINFO) { 2 } else { 1 };
        let (head, mut rest) = rdata.split_at(before);
        self.octets.extend_from_slice(head);
        for _ in 0..names {
            let (name, behind) = rest.split_at(name::wire_len(rest).unwrap_or(0));
            self.name(name);
            rest = behind;
        }
        self.octets.extend_from_slice(rest);
    }

    /// Writes a name, its longest known suffix as a pointer.
    fn name(&mut self, wire: &[u8]) {
        let Suffixes { count, starts, hashes } = Suffixes::of(wire);
        let at = self.octets.len();
        let found = (0..count).find_map(|label| {
            let suffix = &wire[usize::from(starts[label])..];
            let place = self.places[hashes[label] as usize % PLACES];
            (place > 0 && self.equals(place, suffix)).then_some((label, place))
        });
        let end = match found {
            Some((label, place)) => {
                self.octets.extend_from_slice(&wire[..usize::from(starts[label])]);
                self.octets.extend_from_slice(&(0xc000 | place).to_be_bytes());
                label
            }
            None => {
                self.octets.extend_from_slice(wire);
                count
            }
        };
        self.remember(at, &starts[..end], &hashes);
    }

    /// Remembers all suffixes of a name that stands at an offset.
    fn remember_all(&mut self, at: usize, wire: &[u8]) {
        let Suffixes { count, starts, hashes } = Suffixes::of(wire);
        self.remember(at, &starts[..count], &hashes);
    }

    /// Remembers the suffixes of the name at an offset that begin at `starts` of it.
    fn remember(&mut self, at: usize, starts: &[u8], hashes: &[u32]) {
        for (start, hash) in starts.iter().zip(hashes) {
            let offset = at + usize::from(*start);
            if offset > POINTER_MAX {
                return;
            }
            self.places[*hash as usize % PLACES] = offset as u16;
        }
    }

    /// Whether the name at an offset is `wire`, octet for octet.
    fn equals(&self, place: u16, wire: &[u8]) -> bool {
        let (mut at, mut rest) = (usize::from(place), wire);
        loop {
            // A record that was taken back may have left a place behind the end.
            let Some(&len) = self.octets.get(at) else { return false };
            if len >= 0xc0 {
                let Some(&low) = self.octets.get(at + 1) else { return false };
                let target = usize::from(u16::from_be_bytes([len & 0x3f, low]));
                if target >= at {
                    return false;
                }
                at = target;
                continue;
            }
            let end = 1 + usize::from(len);
            match (rest.split_at_checked(end), self.octets.get(at..at + end)) {
                (Some((label, behind)), Some(written)) if label == written => rest = behind,
                _ => return false,
            }
            if len == 0 {
                return true;
            }
            at += end;
        }
    }
}

/// Returns the serial that a client has of the zone that it asks for changes of, by its SOA record
/// in the authority section (rfc1995#3); none if there is no such record. The message must be the
/// one that the query was read from.
#[must_use]
pub fn ixfr_base(query: &Query, message: &[u8]) -> Option<u32> {
    let [answers, authorities] = [message.get(6..8)?, message.get(8..10)?];
    let has_soa = answers == [0, 0] && authorities != [0, 0];
    first_serial(query, message).filter(|_| has_soa)
}

/// Returns the serial that a primary says it has of the zone that has changed, by the SOA record in
/// the answer section (rfc1996#3.7); none if there is no such record. The message must be the one
/// that the query was read from.
#[must_use]
pub fn notify_serial(query: &Query, message: &[u8]) -> Option<u32> {
    let has_soa = message.get(6..8)? != [0, 0];
    first_serial(query, message).filter(|_| has_soa)
}

/// The serial of the first record behind the question, if that is the SOA record of the zone that
/// the message is about.
fn first_serial(query: &Query, message: &[u8]) -> Option<u32> {
    /// Octets of the five numbers at the end of the data.
    const NUMBERS_BYTES: usize = 5 * 4;
    let question = message.get(HEADER_BYTES..usize::from(query.name_end))?;
    let mut reader = Reader { octets: message, at: query.question_end() };
    let mut owner = Vec::new();
    reader.name_into(&mut owner)?;
    let fixed = reader.take(8)?;
    let is_soa = fixed.starts_with(&[0, 6, 0, 1]) && owner.eq_ignore_ascii_case(question);
    let len = usize::from(reader.u16()?);
    let data = reader.take(len).filter(|_| is_soa)?;
    let numbers = data.get(data.len().checked_sub(NUMBERS_BYTES)?..)?;
    Some(u32::from_be_bytes(*numbers.first_chunk()?))
}

/// The suffixes of a name, but for the root.
struct Suffixes {
    /// The number of suffixes.
    count: usize,
    /// Where each begins.
    starts: [u8; LABELS_MAX],
    /// The hash of each.
    hashes: [u32; LABELS_MAX],
}

impl Suffixes {
    /// The suffixes of a name in wire form.
    fn of(wire: &[u8]) -> Self {
        let mut it = Self { count: 0, starts: [0; LABELS_MAX], hashes: [0; LABELS_MAX] };
        let mut at = 0;
        while let Some(&len @ 1..) = wire.get(at)
            && usize::from(len) <= LABEL_BYTES_MAX
            && let Some(start) = it.starts.get_mut(it.count)
        {
            *start = at as u8; // a name has 255 octets at most
            it.count += 1;
            at += 1 + usize::from(len);
        }
        let mut hash = 0;
        for label in (0..it.count).rev() {
            let start = usize::from(it.starts[label]);
            hash = mix(hash, wire.get(start..=start + usize::from(wire[start])).unwrap_or(&[]));
            it.hashes[label] = hash;
        }
        it
    }
}

/// The hash of a suffix from that of the suffix behind its first label.
fn mix(hash: u32, label: &[u8]) -> u32 {
    let mut chunks = label.chunks_exact(4);
    let step = |hash: u32, word: u32| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9);
    let mut hash = step(hash, label.len() as u32);
    for chunk in chunks.by_ref() {
        hash = step(hash, u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]));
    }
    let rest = chunks.remainder();
    let hash = rest.iter().fold(hash, |hash, octet| step(hash, u32::from(*octet)));
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::query::flag;
    use crate::{Message, Name};

    fn wire(text: &str) -> Vec<u8> {
        text.parse::<Name>().unwrap().as_wire().to_vec()
    }

    /// A writer whose message has the question `example.com AXFR`.
    fn writer(reserved: usize) -> StreamWriter {
        let mut writer = StreamWriter::new(reserved);
        let question = [&wire("example.com")[..], &[0, 252, 0, 1]].concat();
        writer.begin([1, 2], flag::QR | flag::AA, Some(&question));
        writer
    }

    #[test]
    fn names_are_compressed_against_all_before_them_where_no_letter_differs() {
        let mut writer = writer(0);
        let exchange = |name: &str| [&[0, 5][..], &wire(name)].concat();
        let mx = (Type::MX, 60);
        writer.record(&wire("example.com"), mx, &exchange("mx.example.com")).unwrap();
        writer.record(&wire("example.com"), mx, &exchange("MX.example.com")).unwrap();
        writer.record(&wire("example.com"), mx, &exchange("mx.example.com")).unwrap();
        let octets = writer.finish().clone();
        assert_eq!(octets.windows(2).filter(|it| *it == b"\xc0\x0c").count(), 5);
        let message = Message::parse(&octets).unwrap();
        let data: Vec<_> = message.records.iter().map(|record| record.rdata.clone()).collect();
        assert_eq!(data, ["mx", "MX", "mx"].map(|it| exchange(&format!("{it}.example.com"))));
        assert_eq!((message.id, message.flags), (0x0102, 0x8400));
    }

    #[test]
    fn a_message_ends_before_pointers_do_and_a_long_record_has_one_to_itself() {
        let mut writer = writer(100);
        let (owner, text) = (wire("a.example.com"), vec![1; 1000]);
        let sent = (0..100).take_while(|_| writer.record(&owner, (Type::TXT, 1), &text).is_ok());
        assert_eq!(sent.count(), 16);
        let len = writer.finish().len();
        assert!((15_000..=STREAM_MESSAGE_BYTES - 100).contains(&len), "{len}");
        assert_eq!(Message::parse(writer.finish()).unwrap().records.len(), 16);
        writer.begin([1, 2], flag::QR, None);
        let long = vec![1; 60_000];
        assert_eq!(writer.record(&owner, (Type::TXT, 1), &long), Ok(()));
        assert_eq!(writer.record(&owner, (Type::TXT, 1), &[1, 1]), Err(Full));
        assert_eq!(Message::parse(writer.finish()).unwrap().records.len(), 1);
        writer.begin([1, 2], flag::QR, None);
        assert_eq!(writer.record(&owner, (Type::TXT, 1), &vec![1; 65_500]), Err(Full));
    }

    #[test]
    fn a_record_that_was_taken_back_leaves_no_name_to_point_to() {
        let mut writer = writer(0);
        let mut number = 0;
        let name = |number: u32| wire(&format!("n{number}.sub.example.com"));
        let big = vec![1; 900];
        while writer.record(&name(number), (Type::TXT, 1), &big).is_ok() {
            number += 1;
        }
        for again in [number, number + 1] {
            writer.record(&name(again), (Type::A, 1), &[1, 2, 3, 4]).unwrap();
        }
        let message = Message::parse(writer.finish()).unwrap();
        let last: Vec<_> = message.records.iter().rev().take(2).map(|it| &it.owner).collect();
        assert_eq!(last.len(), 2);
        assert_eq!(last[1].as_wire(), name(number));
        assert_eq!(last[0].as_wire(), name(number + 1));
    }

    #[test]
    fn the_serial_of_a_client_is_that_of_its_soa_record_of_the_zone_it_asks_for() {
        let query = |authority: &[u8], count: u8| {
            let mut message = vec![0, 1, 0, 0, 0, 1, 0, 0, 0, count, 0, 0];
            message.extend_from_slice(b"\x01A\0\0\xfb\0\x01");
            message.extend_from_slice(authority);
            let query = Query::parse(&message).unwrap();
            ixfr_base(&query, &message)
        };
        let data = b"\0\x16\0\0\0\0\0\x07\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05";
        let soa = |owner: &[u8]| [owner, b"\0\x06\0\x01\0\0\0\0", data].concat();
        assert_eq!(query(&soa(b"\xc0\x0c"), 1), Some(7));
        assert_eq!(query(&soa(b"\x01a\0"), 1), Some(7));
        assert_eq!(query(&soa(b"\x01b\0"), 1), None);
        assert_eq!(query(&[], 0), None);
        assert_eq!(query(&[b"\xc0\x0c\0\x01\0\x01\0\0\0\0", &data[..]].concat(), 1), None);
    }

    #[test]
    fn the_serial_of_a_primary_is_that_of_the_soa_record_in_the_answer_section_of_its_notify() {
        let told = |answers: u8, record: &[u8]| {
            let mut message = vec![0, 1, 0x24, 0, 0, 1, 0, answers, 0, 0, 0, 0];
            message.extend_from_slice(b"\x01A\0\0\x06\0\x01");
            message.extend_from_slice(record);
            let query = Query::parse(&message).ok()?;
            notify_serial(&query, &message)
        };
        let data = b"\0\x16\0\0\0\0\0\x07\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x05";
        let soa = |owner: &[u8]| [owner, b"\0\x06\0\x01\0\0\0\0", data].concat();
        assert_eq!(told(1, &soa(b"\xc0\x0c")), Some(7));
        assert_eq!(told(1, &soa(b"\x01b\0")), None);
        assert_eq!(told(0, &[]), None);
        assert_eq!(told(1, &soa(b"\xc0\x0c")[..20]), None, "which is no message");
    }

    #[test]
    fn names_of_127_labels_and_the_root_are_written_as_they_are() {
        let mut writer = writer(0);
        let longest = wire(&"a.".repeat(127));
        for owner in [&longest[..], &[0], &longest] {
            writer.record(owner, (Type::NS, 1), &longest).unwrap();
        }
        writer.opt(1232, true, None);
        let message = Message::parse(writer.finish()).unwrap();
        assert!(message.records.iter().all(|record| record.rdata == longest));
        assert_eq!(message.opt.map(|opt| (opt.udp_bytes, opt.flags)), Some((1232, 0x8000)));
    }
}
