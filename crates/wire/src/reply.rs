//! A reply, written over the query in the same buffer.
//!
//! ```text
//! header | question as it came | answer | authority | additional
//! ```
//!
//! The writer compresses names against all it has written (rfc1035#4.1.4) and never exceeds its
//! limit: what does not fit is undone to a mark that the caller chose, so that only whole RRsets
//! are ever sent (rfc2181#9).
//!
//! Deliberately absent: which records belong into a reply, OPT, and allocation.

use crate::code::{Class, Rcode, Type};
use crate::name;
use crate::query::{HEADER_BYTES, Query, flag};
use crate::response::Records;

/// Most places of names remembered for compression. A reply with more still is right, only longer;
/// 48 hold the names of a referral to 13 servers.
const PLACES_MAX: usize = 48;
/// A compression pointer has 14 bits.
const POINTER_MAX: usize = 0x3fff;

/// The sections of a message that hold records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Section {
    /// The records asked for.
    Answer,
    /// The servers that are responsible, or why there is no answer.
    Authority,
    /// Records that save further questions.
    Additional,
}

/// The owner of a record, as far as possible by its place in the question.
#[derive(Clone, Copy, Debug)]
pub enum Owner<'n> {
    /// The question's name without its first `skip` octets, which are whole labels; not the root.
    Question {
        /// Octets to leave out.
        skip: u16,
    },
    /// Any name in wire form.
    Name(&'n [u8]),
}

/// The message does not fit; nothing of the record was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Names written so far, by the place of each of their suffixes.
///
/// Kept by the worker and reused, so that a reply does not pay for clearing it.
pub struct Places {
    count: usize,
    entries: [Place; PLACES_MAX],
}

/// A suffix of a name in the message.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Offset in the message.
    offset: u16,
    /// Number of octets in wire form without compression.
    len: u8,
    /// Lower-case first octet of its first label.
    first: u8,
}

impl Default for Places {
    fn default() -> Self {
        Self { count: 0, entries: [Place::default(); PLACES_MAX] }
    }
}

/// A state of the reply that can be gone back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    len: usize,
    places: usize,
    counts: [u16; 3],
}

/// Writes a reply.
pub struct Reply<'a> {
    buffer: &'a mut [u8],
    len: usize,
    limit: usize,
    counts: [u16; 3],
    places: &'a mut Places,
    question_end: usize,
}

impl<'a> Reply<'a> {
    /// Makes a reply to the query in `buffer`, of at most `limit` octets, with its question.
    #[must_use]
    pub fn new(buffer: &'a mut [u8], query: &Query, limit: usize, places: &'a mut Places) -> Self {
        let question_end = query.question_end();
        places.count = 0;
        let limit = limit.min(buffer.len());
        Self { buffer, len: question_end, limit, counts: [0; 3], places, question_end }
    }

    /// Octets written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing but the header and the question is there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == self.question_end
    }

    /// Records in the answer, authority and additional sections.
    #[must_use]
    pub fn counts(&self) -> [u16; 3] {
        self.counts
    }

    /// Returns the octets behind the question.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.buffer[self.question_end..self.len]
    }

    /// Takes over a whole body that was written behind the same question before, given in pieces.
    ///
    /// # Errors
    /// When it does not fit.
    #[inline]
    pub fn append_body<const PIECES: usize>(
        &mut self,
        pieces: [&[u8]; PIECES],
        counts: [u16; 3],
    ) -> Result<(), Full> {
        if self.len + pieces.iter().map(|piece| piece.len()).sum::<usize>() > self.limit {
            return Err(Full);
        }
        for piece in pieces {
            self.append(piece)?;
        }
        self.counts = counts;
        Ok(())
    }

    /// Writes the target of the last CNAME record of the answer, if there is one, over `target`.
    pub fn last_alias(&self, target: &mut Vec<u8>) -> bool {
        let in_answer = self.records().take_while(|record| record.section == Section::Answer);
        let last = in_answer.filter(|record| record.rtype == Type::CNAME).last();
        target.clear();
        last.is_some_and(|cname| cname.rdata_into(target).is_ok())
    }

    /// Octets of the query that the reply has not overwritten yet.
    #[must_use]
    pub fn not_overwritten(&self, offset: usize, len: usize) -> Option<&[u8]> {
        if offset < self.len { None } else { self.buffer.get(offset..offset + len) }
    }

    /// Returns the whole buffer: the query, as far as nothing was written over it yet, and whatever
    /// lies behind it.
    #[must_use]
    pub fn buffer(&self) -> &[u8] {
        self.buffer
    }

    /// Returns the whole buffer, in which the reply lies once it is finished.
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        self.buffer
    }

    /// Returns the records written so far.
    pub fn records(&self) -> Records<'_> {
        Records::new(&self.buffer[..self.len], self.question_end, self.counts)
    }

    /// Undoes all but the header and the question.
    pub fn clear(&mut self) {
        self.len = self.question_end;
        self.counts = [0; 3];
        self.places.count = 0; // nothing is left to be written but OPT
    }

    /// Begins anew as the reply to another message, whose question ends at `question_end`, and
    /// which is copied into the buffer.
    ///
    /// # Errors
    /// When the buffer has no room for the message; the reply is as it was then.
    pub fn restart(&mut self, message: &[u8], question_end: usize) -> Result<(), Full> {
        self.buffer.get_mut(..message.len()).ok_or(Full)?.copy_from_slice(message);
        (self.question_end, self.len) = (question_end, question_end);
        self.counts = [0; 3];
        self.places.count = 0;
        Ok(())
    }

    /// Appends a whole record in wire form.
    ///
    /// # Errors
    /// When it does not fit.
    #[inline]
    pub fn raw_record(&mut self, section: Section, record: &[u8]) -> Result<(), Full> {
        self.append(record)?;
        self.counts[section as usize] += 1;
        Ok(())
    }

    /// Returns the present state.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark { len: self.len, places: self.places.count, counts: self.counts }
    }

    /// Undoes all that was written after `mark`.
    pub fn rewind(&mut self, mark: Mark) {
        self.len = mark.len;
        self.places.count = mark.places;
        self.counts = mark.counts;
    }

    /// Octets that may still be written.
    #[inline]
    #[must_use]
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.len)
    }

    /// Lets the rest of the reply grow to `limit` octets.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.min(self.buffer.len());
    }

    /// Writes a record; the names in `rdata` that may be compressed are (rfc3597#4).
    ///
    /// # Errors
    /// When it does not fit.
    #[inline]
    pub fn record(
        &mut self,
        section: Section,
        owner: Owner<'_>,
        (rtype, class, ttl): (Type, Class, u32),
        rdata: &[u8],
    ) -> Result<(), Full> {
        let mark = self.mark();
        let written = self.open(owner, (rtype, class, ttl)).and_then(|len_at| {
            self.rdata(rtype, rdata)?;
            self.close(section, len_at);
            Ok(())
        });
        written.inspect_err(|_| self.rewind(mark))
    }

    /// Writes the SOA record of the zone whose apex is the question's name without its first `skip`
    /// octets, which are whole labels, as [`record`](Self::record) does. Where both names of it lie
    /// in the zone, as most do, they become pointers to the apex without a search.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn soa(
        &mut self,
        section: Section,
        skip: u16,
        (class, ttl): (Class, u32),
        rdata: &[u8],
    ) -> Result<(), Full> {
        let (owner, fixed) = (Owner::Question { skip }, (Type::SOA, class, ttl));
        let start = HEADER_BYTES + usize::from(skip);
        let apex = self.buffer.get(start..self.question_end.saturating_sub(4)).unwrap_or_default();
        let server = labels_below(apex, rdata);
        let behind = rdata.get(server.map_or(0, |len| len + apex.len())..).unwrap_or_default();
        let names = server.zip(labels_below(apex, behind));
        let Some((server_len, mailbox_len)) = names.filter(|_| apex.len() > 1) else {
            return self.record(section, owner, fixed, rdata);
        };
        let (server, mailbox) = (&rdata[..server_len], &behind[..mailbox_len]);
        let numbers = &behind[mailbox_len + apex.len()..];
        let pointer = (0xc000 | start as u16).to_be_bytes(); // the question lies within 267 octets
        let mark = self.mark();
        let written = self.open(owner, fixed).and_then(|len_at| {
            for octets in [server, &pointer, mailbox, &pointer, numbers] {
                self.append(octets)?;
            }
            self.close(section, len_at);
            Ok(())
        });
        written.inspect_err(|_| self.rewind(mark))
    }

    /// Writes rdata; only the types of rfc1035 hold names that every reader can decompress.
    #[inline]
    fn rdata(&mut self, rtype: Type, rdata: &[u8]) -> Result<(), Full> {
        match rtype {
            Type::A | Type::AAAA => self.append(rdata),
            Type::NS | Type::CNAME | Type::PTR | Type::MD | Type::MF => self.name(rdata),
            Type::MB | Type::MG | Type::MR => self.name(rdata),
            Type::MX => {
                let (preference, exchange) = rdata.split_at(2.min(rdata.len()));
                self.append(preference)?;
                self.name(exchange)
            }
            Type::SOA | Type::MINFO => {
                let first = name::wire_len(rdata).unwrap_or(0);
                let second = name::wire_len(&rdata[first..]).unwrap_or(0);
                self.name(&rdata[..first])?;
                self.name(&rdata[first..first + second])?;
                self.append(&rdata[first + second..])
            }
            _ => self.append(rdata),
        }
    }

    /// Writes a record up to its length, whose place it returns.
    #[inline]
    fn open(&mut self, owner: Owner<'_>, fixed: (Type, Class, u32)) -> Result<usize, Full> {
        match owner {
            Owner::Question { skip } => {
                let place = 0xc000 | (HEADER_BYTES as u16 + skip);
                self.append(&place.to_be_bytes())?;
            }
            Owner::Name(name) => self.name(name)?,
        }
        let (rtype, class, ttl) = fixed;
        let fixed = u64::from(rtype.0) << 48 | u64::from(class.0) << 32 | u64::from(ttl);
        self.append(&fixed.to_be_bytes())?;
        self.append(&[0, 0])?;
        Ok(self.len - 2)
    }

    /// Writes the length of the rdata that begins behind `len_at`, and counts the record.
    #[inline]
    fn close(&mut self, section: Section, len_at: usize) {
        let len = (self.len - len_at - 2) as u16; // rdata is at most 65 535 octets
        self.buffer[len_at..len_at + 2].copy_from_slice(&len.to_be_bytes());
        self.counts[section as usize] += 1;
    }

    /// Appends octets, within the limit.
    #[inline]
    fn append(&mut self, octets: &[u8]) -> Result<(), Full> {
        let end = self.len + octets.len();
        if end > self.limit {
            return Err(Full);
        }
        self.buffer[self.len..end].copy_from_slice(octets);
        self.len = end;
        Ok(())
    }

    /// Writes a name, its longest known suffix as a pointer.
    fn name(&mut self, wire: &[u8]) -> Result<(), Full> {
        if self.places.count == 0 {
            self.remember_question();
        }
        let mut at = 0;
        while at < wire.len() && wire[at] != 0 {
            if let Some(offset) = self.find(&wire[at..]) {
                let start = self.len;
                self.append(&wire[..at])?;
                self.append(&(0xc000 | offset).to_be_bytes())?;
                if at > 0 {
                    self.remember_until(start, wire, at);
                }
                return Ok(());
            }
            at += 1 + usize::from(wire[at]);
        }
        let start = self.len;
        self.append(wire)?;
        self.remember_until(start, wire, at);
        Ok(())
    }

    /// Returns where a name equal to `wire` but for case stands in the message.
    #[inline]
    fn find(&self, wire: &[u8]) -> Option<u16> {
        let first = wire[1].to_ascii_lowercase();
        let places = &self.places.entries[..self.places.count];
        let same = |p: &&Place| usize::from(p.len) == wire.len() && p.first == first;
        places.iter().filter(same).map(|p| p.offset).find(|&offset| self.equals(offset, wire))
    }

    /// Whether the name at `offset` in the message is `wire`, case ignored.
    fn equals(&self, offset: u16, wire: &[u8]) -> bool {
        let (mut at, mut rest) = (usize::from(offset), wire);
        loop {
            let len = self.buffer[at];
            if len >= 0xc0 {
                // Every pointer in a reply was written here, and leads backwards to a name written
                // before.
                at = usize::from(u16::from_be_bytes([len & 0x3f, self.buffer[at + 1]]));
                continue;
            }
            let end = 1 + usize::from(len);
            if rest[0] != len || !rest[1..end].eq_ignore_ascii_case(&self.buffer[at + 1..at + end])
            {
                return false;
            }
            if len == 0 {
                return true;
            }
            at += end;
            rest = &rest[end..];
        }
    }

    /// Remembers every suffix of the question's name.
    fn remember_question(&mut self) {
        let name_end = self.question_end.saturating_sub(4).max(HEADER_BYTES);
        let mut at = HEADER_BYTES;
        while at < name_end && self.buffer[at] != 0 && self.places.count < PLACES_MAX {
            let place = Place {
                offset: at as u16, // the question lies within the first 267 octets
                len: (name_end - at) as u8,
                first: self.buffer[at + 1].to_ascii_lowercase(),
            };
            self.places.entries[self.places.count] = place;
            self.places.count += 1;
            at += 1 + usize::from(self.buffer[at]);
        }
    }

    /// Remembers the suffixes of `wire`, written at `offset`, that begin before `end` of it.
    fn remember_until(&mut self, offset: usize, wire: &[u8], end: usize) {
        let mut at = 0;
        while at < end && self.places.count < PLACES_MAX && offset + at <= POINTER_MAX {
            let place = Place {
                offset: (offset + at) as u16, // at most POINTER_MAX
                len: (wire.len() - at) as u8,
                first: wire[at + 1].to_ascii_lowercase(),
            };
            self.places.entries[self.places.count] = place;
            self.places.count += 1;
            at += 1 + usize::from(wire[at]);
        }
    }

    /// Writes the header and returns the length of the reply. `flags` are added to QR, to the
    /// query's opcode and, where that is QUERY, to its RD and CD, which mean something there alone;
    /// only the lower four bits of `rcode` have room here.
    #[inline]
    pub fn finish(&mut self, query: &Query, flags: u16, rcode: Rcode) -> usize {
        let kept = match query.flags & flag::OPCODE {
            0 => query.flags & (flag::RD | flag::CD), // rfc1035#4.1.1, rfc4035#3.1.6
            opcode => opcode,
        };
        let flags = flag::QR | kept | flags | (rcode.0 & 0xf);
        let question = u16::from(self.question_end > HEADER_BYTES);
        let [answer, authority, additional] = self.counts;
        let words = [flags, question, answer, authority, additional];
        let header = &mut self.buffer[2..HEADER_BYTES];
        for (octets, word) in header.chunks_exact_mut(2).zip(words) {
            octets.copy_from_slice(&word.to_be_bytes());
        }
        self.len
    }
}

/// Returns the octets of the labels that a name, which other octets may follow, has below an apex;
/// none if it does not lie in that zone.
#[inline]
fn labels_below(apex: &[u8], octets: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = octets.get(at..)?;
        let len = *rest.first()?;
        let is_apex = apex.first() == Some(&len)
            && rest.get(..apex.len()).is_some_and(|it| it == apex || it.eq_ignore_ascii_case(apex));
        match len {
            _ if is_apex => return Some(at),
            0 => return None,
            _ => at += 1 + usize::from(len),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Name;

    fn wire(text: &str) -> Vec<u8> {
        text.parse::<Name>().unwrap().as_wire().to_vec()
    }

    /// Returns a buffer that holds a query for `qname A`.
    fn asked(qname: &str) -> (Vec<u8>, Query) {
        let mut buffer = vec![0; 600];
        let question = [&wire(qname)[..], &[0, 1, 0, 1]].concat();
        buffer[5] = 1;
        buffer[12..12 + question.len()].copy_from_slice(&question);
        let query = Query::parse(&buffer[..12 + question.len()]).unwrap();
        (buffer, query)
    }

    const FIXED: (Type, Class, u32) = (Type::MX, Class::IN, 60);
    const TEXT: (Type, Class, u32) = (Type::TXT, Class::IN, 60);

    #[test]
    fn names_are_compressed_against_the_question_and_each_other() {
        let (mut buffer, query) = asked("www.Example.com");
        let mut places = Places::default();
        let mut reply = Reply::new(&mut buffer, &query, 512, &mut places);
        let rdata = [&[0, 5][..], &wire("mx.mail.example.com")].concat();
        for _ in 0..2 {
            reply
                .record(Section::Answer, Owner::Name(&wire("example.COM")), FIXED, &rdata)
                .unwrap();
        }
        let expected: &[u8] = b"\xc0\x10\0\x0f\0\x01\0\0\0\x3c\0\x0c\0\x05\x02mx\x04mail\xc0\x10\
            \xc0\x10\0\x0f\0\x01\0\0\0\x3c\0\x04\0\x05\xc0\x2f";
        assert_eq!(reply.body(), expected);
        assert_eq!(reply.finish(&query, flag::AA, Rcode::NOERROR), 33 + expected.len());
        assert_eq!(buffer[2..12], [0x84, 0, 0, 1, 0, 2, 0, 0, 0, 0]);
    }

    #[test]
    fn a_record_that_does_not_fit_leaves_no_trace() {
        let (mut buffer, query) = asked("a.b");
        let mut places = Places::default();
        let mut reply = Reply::new(&mut buffer, &query, 12 + 9 + 20, &mut places);
        let rdata = [&[0, 5][..], &wire("long.name.that.does.not.fit")].concat();
        let result = reply.record(Section::Answer, Owner::Name(&wire("b")), FIXED, &rdata);
        assert_eq!((result, reply.len(), reply.counts()), (Err(Full), 21, [0; 3]));
        assert_eq!(
            reply.record(Section::Answer, Owner::Question { skip: 0 }, TEXT, &[1; 8]),
            Ok(())
        );
        assert_eq!(reply.len(), 41);
    }

    /// The names of an SOA record, with its numbers behind them.
    fn soa(server: &str, mailbox: &str) -> Vec<u8> {
        [&wire(server)[..], &wire(mailbox), &[7; 20]].concat()
    }

    #[test]
    fn an_soa_record_is_written_as_any_other_record() {
        for (server, mailbox) in [
            ("ns.dns.example.com", "Host.EXAMPLE.com"), // in the zone
            ("example.com", "example.com"),             // its apex
            ("ns.example.com", "host.example.net"),
            ("ns.example.net", "host.example.net"),
            ("ns.notexample.com", "host.example.com"), // ends alike, and not at a label
            (".", "."),
        ] {
            let rdata = soa(server, mailbox);
            let written = [false, true].map(|as_soa| {
                let (mut buffer, query) = asked("www.eXample.com");
                let mut places = Places::default();
                let mut reply = Reply::new(&mut buffer, &query, 512, &mut places);
                match as_soa {
                    true => reply.soa(Section::Authority, 4, (Class::IN, 60), &rdata).unwrap(),
                    false => {
                        let fixed = (Type::SOA, Class::IN, 60);
                        let owner = Owner::Question { skip: 4 };
                        reply.record(Section::Authority, owner, fixed, &rdata).unwrap();
                    }
                }
                (reply.body().to_vec(), reply.counts())
            });
            assert_eq!(written[0], written[1], "{server} {mailbox}");
        }
    }

    #[test]
    fn an_soa_record_that_does_not_fit_leaves_no_trace() {
        let (mut buffer, query) = asked("a.b");
        let mut places = Places::default();
        let mut reply = Reply::new(&mut buffer, &query, 12 + 9 + 40, &mut places);
        let rdata = soa("ns.b", "host.b");
        assert_eq!(reply.soa(Section::Authority, 2, (Class::IN, 60), &rdata), Err(Full));
        assert_eq!((reply.len(), reply.counts()), (21, [0; 3]));
    }

    #[test]
    fn an_soa_record_without_its_names_is_written_as_it_is() {
        for rdata in [&[][..], &[3, b'a'], &[1, b'b', 0], &[0]] {
            let (mut buffer, query) = asked("a.b");
            let mut places = Places::default();
            let mut reply = Reply::new(&mut buffer, &query, 512, &mut places);
            let written = reply.soa(Section::Authority, 2, (Class::IN, 60), rdata);
            assert_eq!((written, reply.counts()), (Ok(()), [0, 1, 0]), "{rdata:?}");
        }
    }

    #[test]
    fn the_root_is_written_as_one_octet() {
        let (mut buffer, query) = asked(".");
        let mut places = Places::default();
        let mut reply = Reply::new(&mut buffer, &query, 512, &mut places);
        reply.record(Section::Answer, Owner::Name(&[0]), TEXT, &[]).unwrap();
        assert_eq!(reply.body()[0], 0);
        assert_eq!(reply.body().len(), 11);
    }
}
