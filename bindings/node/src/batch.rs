//! Queries and replies as they cross the border, many at once.
//!
//! A batch is a sequence of parts. A part is made of numbers of 32 bits in the machine's order;
//! octets in it are filled up to whole numbers.
//!
//! ```text
//! query  octets of the part · ticket, low · high · handler
//!        · type | transport << 16 | are there guards? << 17 | IPv6 << 24
//!        · port | octets of the name << 16 · octets of the message · address, 16 octets
//!        · name in lower case, presentation format, with its final dot · message
//!        · if there are guards: their numbers in the order in which they are passed · their count
//! reply  octets of the part · ticket, low · high · ending | RCODE << 8 | extended error? << 24
//!        | vary << 25 · seconds for which it is kept · flags | extended error << 16
//!        · scope | is scope said? << 8 | was client looked at? << 9 | are there tags? << 10
//!        · octets of the error's text · text · tags, if there are any · records
//! tags   number of tags · octets of the key · key · octets of the value · value · next tag …
//! record type | section << 16 | form << 24 · TTL · octets of the owner | octets of the data << 16
//!        · owner · data
//! ```

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use zonda::Any;
use zonda_deferral::Deferred;
use zonda_engine::code::{Ending, HandlerReply, Record, Vary};
use zonda_engine::{HandlerOutcome, Reason, Transport};
use zonda_runtime::Ticket;
use zonda_wire::{Ede, Name, Query, Rcode, Section, Type, name, rdata};

/// What JavaScript sees of a query beside its octets.
const QUERY_WORDS: usize = 11;

/// Appends a query with its ticket and the number of its handler. `guards` returns the numbers of
/// the guards for a name and type.
pub fn write_query(
    out: &mut Vec<u8>,
    (ticket, handler): (Ticket, u32),
    deferred: &Deferred,
    guards: impl FnOnce(&[u8], Type) -> Vec<u32>,
) {
    let Ok(query) = Query::parse(&deferred.query) else { return }; // workers let only queries wait
    let start = out.len();
    out.resize(start + QUERY_WORDS * 4, 0);
    let wire = deferred.query.get(12..usize::from(query.name_end)).unwrap_or_default();
    write_name(out, wire);
    let name_octets = out.len() - start - QUERY_WORDS * 4;
    pad(out);
    out.extend_from_slice(&deferred.query);
    pad(out);
    let is_guarded = deferred.deferral.history.is_guarded;
    if is_guarded {
        let guards = guards(wire, query.qtype);
        let count = guards.len() as u32; // far below 2³²
        let numbers = guards.into_iter().chain([count]);
        out.extend(numbers.flat_map(u32::to_ne_bytes));
    }
    let address = deferred.peer.address;
    let is_ipv6 = u32::from(address.is_ipv6());
    let transport = u32::from(deferred.peer.transport == Transport::Tcp);
    let Ticket(number) = ticket;
    let words = [
        (out.len() - start) as u32, // far below 4 GiB
        number as u32,
        (number >> 32) as u32,
        handler,
        u32::from(query.qtype.0) | transport << 16 | u32::from(is_guarded) << 17 | is_ipv6 << 24,
        u32::from(address.port()) | (name_octets as u32) << 16, // at most four for each of 255
        deferred.query.len() as u32,                            // at most 65,535
    ];
    for (place, word) in out[start..].chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    let place = &mut out[start + words.len() * 4..start + QUERY_WORDS * 4];
    match address.ip() {
        IpAddr::V4(ip) => place[..4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => place.copy_from_slice(&ip.octets()),
    }
}

/// Appends a name in lower case and presentation format, with its final dot.
fn write_name(out: &mut Vec<u8>, wire: &[u8]) {
    let start = out.len();
    for label in name::labels(wire) {
        for octet in label {
            match octet.to_ascii_lowercase() {
                b'.' | b'"' | b'\\' | b';' | b'(' | b')' | b'@' | b'$' => {
                    out.extend_from_slice(&[b'\\', *octet]);
                }
                octet @ 0x21..=0x7e => out.push(octet),
                octet => {
                    let mut text = String::new();
                    let _ = write!(text, "\\{octet:03}"); // a string takes all
                    out.extend_from_slice(text.as_bytes());
                }
            }
        }
        out.push(b'.');
    }
    if out.len() == start {
        out.push(b'.');
    }
}

/// Fills octets up to whole numbers.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

/// A reply that says what cannot be sent.
pub struct Mistake {
    /// Place of the query in the batch.
    pub place: usize,
    /// What is wrong with the reply.
    pub what: String,
    /// Section of the wrong record and its place there; none if the reply as a whole is wrong.
    pub record: Option<(usize, usize)>,
}

/// What is wrong with a reply, and the section and place of the record that is.
type ReplyFault = (String, Option<(usize, usize)>);

/// Has each reply of a batch answered; those that cannot be sent become SERVFAIL and are returned.
pub fn read_replies(
    batch: &[u8],
    draft: &mut HandlerReply,
    mut answer: impl FnMut(Ticket, HandlerOutcome<'_>),
) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let mut rest = Parts(batch);
    let mut place = 0;
    while let Some(mut reply) = rest.part() {
        let (Some(low), Some(high)) = (reply.word(), reply.word()) else { break };
        let ticket = Ticket(u64::from(high) << 32 | u64::from(low));
        if draft.tags().next().is_some() {
            *draft = HandlerReply::default(); // they are those of another query
        }
        draft.clear();
        let read = read_reply(&mut reply, draft);
        let supplied = match read {
            Ok(Answer::HandlerReply) => HandlerOutcome::Reply(draft),
            Ok(Answer::Failed) | Err(_) => HandlerOutcome::Failed(Reason::HandlerFailed),
        };
        answer(ticket, supplied);
        if let Err((what, record)) = read {
            mistakes.push(Mistake { place, what, record });
        }
        place += 1;
    }
    mistakes
}

/// Reads records, as they stand in a reply, into a draft.
///
/// # Errors
/// What is wrong with one of them.
pub fn read_records(records: &[u8], draft: &mut HandlerReply) -> Result<(), String> {
    let (mut rest, mut counts) = (Parts(records), Counts::default());
    while !rest.0.is_empty() {
        let read = read_record(&mut rest, &mut counts, draft).ok_or("a record ends early")?;
        read.map_err(|(what, _)| what)?;
    }
    Ok(())
}

/// What a reply is.
enum Answer {
    /// What lies in the draft.
    HandlerReply,
    /// None: the code has failed.
    Failed,
}

/// Reads a reply from behind its ticket.
fn read_reply(reply: &mut Parts<'_>, draft: &mut HandlerReply) -> Result<Answer, ReplyFault> {
    let cut = || ("the reply ends early".to_owned(), None); // a fault of the JavaScript half
    let kind = reply.word().ok_or_else(cut)?;
    let kept_secs = reply.word().ok_or_else(cut)?;
    let flags = reply.word().ok_or_else(cut)?;
    let looks = reply.word().ok_or_else(cut)?;
    let text = reply.counted().ok_or_else(cut)?;
    if looks >> 8 & 1 != 0 {
        draft.client_subnet_scope(looks as u8);
    }
    draft.saw_client = looks >> 9 & 1 != 0;
    if looks >> 10 & 1 != 0 {
        read_tags(reply, draft).ok_or_else(cut)?;
    }
    draft.ending = match kind & 0xff {
        0 => Ending::PassOn,
        1 => Ending::Reply,
        2 => Ending::Drop,
        _ => return Ok(Answer::Failed),
    };
    draft.rcode = Rcode((kind >> 8) as u16);
    draft.flags = flags as u16;
    if kept_secs > 0 {
        let vary = match kind >> 25 {
            0 => Vary::Nothing,
            1 => Vary::Client,
            _ => Vary::Subnet,
        };
        draft.cache(kept_secs, vary);
    }
    if kind >> 24 & 1 != 0 {
        draft.extended_error(Ede((flags >> 16) as u16), &String::from_utf8_lossy(text));
    }
    let mut counts = Counts::default();
    while !reply.0.is_empty() {
        read_record(reply, &mut counts, draft).ok_or_else(cut)??;
    }
    Ok(Answer::HandlerReply)
}

/// Reads the tags of a query into a draft. Nothing if they end early.
fn read_tags(reply: &mut Parts<'_>, draft: &mut HandlerReply) -> Option<()> {
    for _ in 0..reply.word()? {
        let (key, value) = (reply.counted()?, reply.counted()?);
        let text = |octets| String::from_utf8_lossy(octets);
        draft.tag(text(key).into_owned(), text(value));
    }
    Some(())
}

/// Numbers of records that were read, by section.
type Counts = [usize; 3];

/// Names of the sections for programs, by the numbers that they have in a batch.
const SECTIONS: [&str; 3] = ["answers", "authorities", "additionals"];

/// Characters of wrong data that an error shows.
const SHOWN_MAX: usize = 80;

/// Reads a record into a draft. Nothing if it ends early.
fn read_record(
    reply: &mut Parts<'_>,
    counts: &mut Counts,
    draft: &mut HandlerReply,
) -> Option<Result<(), ReplyFault>> {
    let (kind, ttl, lens) = (reply.word()?, reply.word()?, reply.word()?);
    let owner = reply.octets((lens & 0xffff) as usize)?;
    let data = reply.octets((lens >> 16) as usize)?;
    let (number, section) = match kind >> 16 & 0xff {
        0 => (0, Section::Answer),
        1 => (1, Section::Authority),
        _ => (2, Section::Additional),
    };
    let place = counts[number];
    counts[number] += 1;
    let record = JsRecord { rtype: Type(kind as u16), is_wire: kind >> 24 == 0, owner, data };
    Some(record.push(section, ttl, draft).map_err(|wrong| match wrong {
        RecordMistake::Record(what) => {
            let what = format!("{}[{place}]: {what}{}", SECTIONS[number], record.shown_data());
            (what, Some((number, place)))
        }
        RecordMistake::Reply(what) => (what, None),
    }))
}

/// What is wrong with a record, or with a reply that has no room for one.
enum RecordMistake {
    /// The record is wrong.
    Record(String),
    /// The reply has no room for the record.
    Reply(String),
}

/// A record as JavaScript gives it.
struct JsRecord<'a> {
    rtype: Type,
    /// Whether its data are octets as on the wire, not text.
    is_wire: bool,
    /// The owner's text; empty for the name asked for.
    owner: &'a [u8],
    data: &'a [u8],
}

impl JsRecord<'_> {
    /// Adds the record to a draft.
    fn push(
        &self,
        section: Section,
        ttl: u32,
        draft: &mut HandlerReply,
    ) -> Result<(), RecordMistake> {
        let Self { rtype, owner, data, .. } = *self;
        if rtype.is_meta() {
            let what =
                format!("a record cannot have the type {rtype}, which is one of queries alone");
            return Err(RecordMistake::Record(what));
        }
        let name;
        let owner = match owner.is_empty() {
            true => &[][..],
            false => {
                let of = |error| format!("owner {}: {error}", String::from_utf8_lossy(owner));
                name =
                    Name::parse(owner, &[0]).map_err(|error| RecordMistake::Record(of(error)))?;
                name.as_wire()
            }
        };
        let fixed = (rtype, ttl);
        let pushed = match (self.is_wire, self.address()) {
            (true, _) => {
                let wrong = |error| RecordMistake::Record(format!("{rtype} record: {error}"));
                rdata::validate(rtype, data).map_err(wrong)?;
                draft.push(section, owner, fixed, data)
            }
            (false, Some(IpAddr::V4(ip))) => draft.push(section, owner, fixed, &ip.octets()),
            (false, Some(IpAddr::V6(ip))) => draft.push(section, owner, fixed, &ip.octets()),
            (false, None) => {
                let text = self.text().map_err(RecordMistake::Record)?;
                let wrong = |error: zonda::DataError| RecordMistake::Record(error.to_string());
                let record = Any::new(rtype, &text).map_err(wrong)?;
                draft.push_with(section, owner, fixed, |out| record.write_rdata(out))
            }
        };
        pushed.map_err(|overfull| RecordMistake::Reply(overfull.to_string()))
    }

    /// The data for an error, if they are text.
    fn shown_data(&self) -> String {
        let shown: String = match std::str::from_utf8(self.data) {
            Ok(text) if !self.is_wire => text.chars().take(SHOWN_MAX).collect(),
            _ => return String::new(),
        };
        format!("; its data are '{shown}'")
    }

    /// The address, if it is one as most are written; read without words and fields.
    fn address(&self) -> Option<IpAddr> {
        let text = || std::str::from_utf8(self.data).ok();
        match self.rtype {
            Type::A => text()?.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
            Type::AAAA => text()?.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            _ => None,
        }
    }

    /// The text of the data.
    fn text(&self) -> Result<String, String> {
        String::from_utf8(self.data.to_vec()).map_err(|_| "the data are no UTF-8".to_owned())
    }
}

/// What is left of a batch or of a part.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    /// The next number.
    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*word))
    }

    /// The next part, without the number that says how long it is.
    fn part(&mut self) -> Option<Self> {
        let (word, _) = self.0.split_first_chunk()?;
        let (part, rest) = self.0.split_at_checked(u32::from_ne_bytes(*word) as usize)?;
        self.0 = rest;
        part.get(4..).map(Self)
    }

    /// The next octets, and those that fill them up.
    fn octets(&mut self, count: usize) -> Option<&'a [u8]> {
        let (octets, rest) = self.0.split_at_checked(count.next_multiple_of(4))?;
        self.0 = rest;
        octets.get(..count)
    }

    /// The next octets, behind their number.
    fn counted(&mut self) -> Option<&'a [u8]> {
        let count = self.word()?;
        self.octets(count as usize)
    }
}
