//! Answers as they are kept and passed on.

use std::cell::Cell;

use zonda_cache::policy::{Facts, Record, Term};
use zonda_cache::{Kind, Onward};
use zonda_engine::zones::{Source, ZoneTable};
use zonda_upstream::answer::{self, Scope};
use zonda_upstream::{Answer, AnswerError, rebinding};
use zonda_wire::query::{HEADER_BYTES, flag};
use zonda_wire::{Owner, Places, Query, Rcode, Reply, Response, Section};

use crate::fetch_key::FetchKey;
use crate::group::Group;

/// The longest body: more would not fit behind any question.
const BODY_BYTES_MAX: usize = u16::MAX as usize;

/// What belongs to a question.
#[derive(Debug)]
pub struct Body {
    /// The response code.
    pub rcode: Rcode,
    /// The server says that it has validated it (rfc4035#3.2.3).
    pub is_authentic: bool,
    /// The sender of the answer has seen the query: it came over a stream, or with the cookie of
    /// the query.
    pub is_confirmed: bool,
    /// The kind of the answer.
    pub kind: Kind,
    /// Records of each section.
    pub counts: [u16; 3],
    /// The records behind the question, in wire form.
    pub octets: Vec<u8>,
    /// For how long it is kept, if it may be.
    pub term: Option<Term>,
    /// Whether the answer was emptied because of a private address.
    pub is_blocked: bool,
    /// Where the chain goes on, if it ends with an alias of a name in another zone of this server.
    pub onward: Option<Onward>,
}

/// Where the chain goes on at a name, in wire form, if the servers of a group do not answer for it.
fn onward_of(
    name: &[u8],
    (wanted, group): (&FetchKey, &Group),
    zones: &ZoneTable,
) -> Option<Onward> {
    match &zones.answering(name, wanted.qtype)?.0.source {
        Source::Forward(_) if group.is_alias_resolver => None,
        Source::Forward(forward) if forward.number == wanted.group => None,
        Source::Forward(_) => Some(Onward::Others),
        _ => Some(Onward::Here),
    }
}

/// Takes out of answers what belongs to their questions. Memory is kept from one to the next.
pub struct BodyReader {
    /// The records of the last message read.
    answer: Answer,
    /// Where bodies are written.
    buffer: Box<[u8]>,
    /// The names in the last answer.
    places: Places,
    /// Empty memory for the octets of the next body.
    spare: Vec<u8>,
}

/// The longest memory of a body that is kept for the next.
const SPARE_BYTES_MAX: usize = 4096;

impl BodyReader {
    /// A reader that has read no message yet.
    pub fn new() -> Self {
        let buffer = vec![0; BODY_BYTES_MAX].into();
        Self { answer: Answer::default(), buffer, places: Places::default(), spare: Vec::new() }
    }

    /// Takes back the octets of a body that was passed on.
    pub fn take_back(&mut self, mut octets: Vec<u8>) {
        octets.clear();
        if octets.capacity() <= SPARE_BYTES_MAX {
            self.spare = octets;
        }
    }

    /// Reads an answer that was found to be one to the question of a fetch. It is not confirmed
    /// yet.
    ///
    /// # Errors
    /// When it is of no use.
    pub fn read(
        &mut self,
        wanted: &FetchKey,
        group: &Group,
        zones: &ZoneTable,
        message: &mut [u8],
    ) -> Result<Body, AnswerError> {
        let onward = Cell::new(None);
        let is_elsewhere = |name: &[u8]| {
            onward.set(onward_of(name, (wanted, group), zones));
            onward.get().is_some()
        };
        let (name, dnssec_ok) = (&wanted.name, wanted.dnssec_ok);
        let scope = Scope { apex: group.apex.as_wire(), is_elsewhere: &is_elsewhere };
        let found = self.answer.read_within(message, name, dnssec_ok, scope)?;
        let (rcode, kind) = match found {
            answer::Kind::Positive => (Rcode::NOERROR, Kind::Positive),
            answer::Kind::NameTooLong => (Rcode::YXDOMAIN, Kind::Positive),
            answer::Kind::NoData => (Rcode::NOERROR, Kind::NoData),
            answer::Kind::NameError => (Rcode::NXDOMAIN, Kind::NxDomain),
            answer::Kind::Elsewhere => (Rcode::NOERROR, Kind::Positive),
        };
        let onward = onward.get();
        let flags = u16::from_be_bytes([message[2], message[3]]); // it was read as a message
        let is_authentic = flags & flag::AD != 0 && found != answer::Kind::Elsewhere;
        let last_name = self.answer.last_name();
        let denied_secs = self.answer.denied_secs();
        let facts = Facts { flags, qtype: wanted.qtype, kind, last_name, denied_secs };
        let records = self.answer.records().map(|record| Record {
            section: record.section,
            owner: record.owner,
            rtype: record.rtype,
            ttl: record.ttl,
            rdata: record.rdata,
        });
        let term = group.policy.term(&facts, records).ok();
        if !group.may_be_private(&wanted.name) && self.has_private_address() {
            let (rcode, kind, counts, octets) = (Rcode::NOERROR, Kind::NoData, [0; 3], Vec::new());
            // The answer that stands in its place is made here, not sent by the upstream.
            let (is_authentic, is_confirmed) = (false, false);
            let (is_blocked, onward) = (true, None);
            return Ok(Body {
                rcode,
                is_authentic,
                is_confirmed,
                kind,
                counts,
                octets,
                term,
                is_blocked,
                onward,
            });
        }
        let (counts, octets) = self.write(wanted, message, term, onward)?;
        let (is_confirmed, is_blocked) = (false, false);
        Ok(Body {
            rcode,
            is_authentic,
            is_confirmed,
            kind,
            counts,
            octets,
            term,
            is_blocked,
            onward,
        })
    }

    /// Puts the records of messages behind the question of the first, section by section; those of
    /// the answer section alone if records of Zonda's own data are to follow them. Returns how many
    /// there are, and their octets.
    ///
    /// # Errors
    /// When they are too many.
    pub fn join(
        &mut self,
        messages: &[Vec<u8>],
        goes_on: bool,
    ) -> Result<([u16; 3], Vec<u8>), AnswerError> {
        let parsed = messages.iter().map(|message| Response::parse(message));
        let parsed = parsed.collect::<Result<Vec<_>, _>>().map_err(|_| AnswerError::Malformed)?;
        let question = parsed.first().ok_or(AnswerError::Malformed)?.question();
        let asked =
            messages[0].get(..HEADER_BYTES + question.len()).ok_or(AnswerError::Malformed)?;
        self.buffer[..asked.len()].copy_from_slice(asked);
        let name_end = (asked.len() - 4) as u16; // a name has at most 255 octets
        let query = Query { name_end, ..Query::default() };
        let mut reply = Reply::new(&mut self.buffer, &query, BODY_BYTES_MAX, &mut self.places);
        let (mut owner, mut rdata) = (Vec::new(), Vec::new());
        for section in [Section::Answer, Section::Authority] {
            if goes_on && section == Section::Authority {
                break;
            }
            let records = parsed.iter().flat_map(Response::records);
            for record in records.filter(|record| record.section == section) {
                owner.clear();
                rdata.clear();
                let read = record.owner_into(&mut owner).and(record.rdata_into(&mut rdata));
                read.map_err(|_| AnswerError::Malformed)?;
                let fixed = (record.rtype, record.class, record.ttl);
                let written = reply.record(section, Owner::Name(&owner), fixed, &rdata);
                written.map_err(|_| AnswerError::TooLarge)?;
            }
        }
        Ok((reply.counts(), reply.body().to_vec()))
    }

    /// Whether a record of the last answer holds a private address.
    fn has_private_address(&self) -> bool {
        self.answer.records().any(|it| rebinding::has_private_address(it.rtype, it.rdata))
    }

    /// Writes the records behind the question of `message`; returns how many there are, and their
    /// octets. Proofs are left out where records of Zonda's own data follow, which go before them.
    fn write(
        &mut self,
        wanted: &FetchKey,
        message: &[u8],
        term: Option<Term>,
        onward: Option<Onward>,
    ) -> Result<([u16; 3], Vec<u8>), AnswerError> {
        let name_end = HEADER_BYTES + wanted.name.len();
        let asked = message.get(..name_end + 4).ok_or(AnswerError::Malformed)?;
        self.buffer[..asked.len()].copy_from_slice(asked);
        let name_end = name_end as u16; // a name has at most 255 octets
        let query = Query { name_end, ..Query::default() };
        let mut reply = Reply::new(&mut self.buffer, &query, BODY_BYTES_MAX, &mut self.places);
        let is_left_out = |section| onward == Some(Onward::Here) && section != Section::Answer;
        for record in self.answer.records().filter(|record| !is_left_out(record.section)) {
            let ttl = term.map_or(record.ttl, |term| term.clamp(record.section, record.ttl));
            // The writer would find it as well, but looks at all names that it has written.
            let owner = match *record.owner == *wanted.name && wanted.name.len() > 1 {
                true => Owner::Question { skip: 0 },
                false => Owner::Name(record.owner),
            };
            let fixed = (record.rtype, record.class, ttl);
            let written = reply.record(record.section, owner, fixed, record.rdata);
            written.map_err(|_| AnswerError::TooLarge)?;
        }
        let mut octets = std::mem::take(&mut self.spare);
        octets.extend_from_slice(reply.body());
        Ok((reply.counts(), octets))
    }
}
