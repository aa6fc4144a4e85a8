//! Queries to upstreams: how they are written, and what of their answers is kept.

use std::hash::{BuildHasher, RandomState};

use zonda_upstream::Answer;
use zonda_upstream::answer::Kind;
use zonda_wire::query::{HEADER_BYTES, flag};
use zonda_wire::{Class, Owner, Places, Query, Rcode, Reply, Section, Type};

/// Octets of UDP answers that we take, and tell upstreams; rfc9715#3.1
const UDP_BYTES: u16 = 1232;
/// The longest body: more would not fit behind any question.
const BODY_BYTES_MAX: usize = u16::MAX as usize;

/// What is asked, apart from who asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// The number of the group that is asked.
    pub group: u32,
    /// The name, in wire form and lower case.
    pub name: Box<[u8]>,
    /// The type.
    pub qtype: Type,
    /// The client takes DNSSEC records.
    pub dnssec_ok: bool,
    /// The client takes what was not validated.
    pub checking_disabled: bool,
}

impl Question {
    /// What a query asks; nothing if it cannot be read, which the engine has done before.
    pub fn of(group: u32, message: &[u8]) -> Option<Self> {
        let query = Query::parse(message).ok()?;
        let name = message[HEADER_BYTES..usize::from(query.name_end)].to_ascii_lowercase().into();
        Some(Self {
            group,
            name,
            qtype: query.qtype,
            dnssec_ok: query.dnssec_ok(),
            checking_disabled: query.flags & flag::CD != 0,
        })
    }

    /// A query to an upstream: the message, of which name, type and class begin at
    /// [`HEADER_BYTES`] and have [`question_bytes`](Self::question_bytes).
    pub fn query(&self, id: u16, how: How, dice: &mut Dice) -> Vec<u8> {
        let mut flags = flag::RD;
        if self.checking_disabled {
            flags |= flag::CD;
        }
        let additional = u16::from(how.edns);
        let words = [id, flags, 1, 0, 0, additional];
        let mut message: Vec<u8> = words.into_iter().flat_map(u16::to_be_bytes).collect();
        message.extend_from_slice(&self.name);
        if how.mixed_case {
            dice.mix_case(&mut message[HEADER_BYTES..]);
        }
        message.extend_from_slice(&self.qtype.0.to_be_bytes());
        message.extend_from_slice(&Class::IN.0.to_be_bytes());
        if how.edns {
            let [high, low] = UDP_BYTES.to_be_bytes();
            let dnssec_ok = u8::from(self.dnssec_ok) << 7;
            message.extend_from_slice(&[0, 0, 41, high, low, 0, 0, dnssec_ok, 0, 0, 0]);
        }
        message
    }

    /// Octets of name, type and class.
    pub fn question_bytes(&self) -> usize {
        self.name.len() + 4
    }
}

/// In which form a query is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// With an OPT record.
    pub edns: bool,
    /// With the name in a case that a forger has to guess (draft-vixie-dnsext-dns0x20).
    pub mixed_case: bool,
}

/// Numbers that nobody can foresee: a keyed hash of a counter.
pub struct Dice {
    /// Holds the key.
    state: RandomState,
    /// What is hashed next.
    counter: u64,
}

impl Dice {
    /// With a key from the system.
    pub fn new() -> Self {
        Self { state: RandomState::new(), counter: 0 }
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.counter += 1;
        self.state.hash_one(self.counter)
    }

    /// Puts each letter of a name in upper or lower case.
    fn mix_case(&mut self, name: &mut [u8]) {
        for chunk in name.chunks_mut(64) {
            let bits = self.roll();
            for (place, octet) in chunk.iter_mut().enumerate() {
                // Lengths of labels are below 64 and so no letters.
                if octet.is_ascii_lowercase() && bits >> place & 1 == 1 {
                    *octet = octet.to_ascii_uppercase();
                }
            }
        }
    }
}

/// An answer as it is kept and passed on.
#[derive(Debug)]
pub struct Body {
    /// The response code.
    pub rcode: Rcode,
    /// What the answer says.
    pub kind: zonda_cache::Kind,
    /// Records of each section.
    pub counts: [u16; 3],
    /// What stands behind the question.
    pub octets: Vec<u8>,
    /// For how many seconds it may be kept; 0 is not at all.
    pub ttl_secs: u32,
}

/// Takes out of answers what belongs to their questions. Memory is kept from one to the next.
pub struct BodyReader {
    /// The records of the last one.
    answer: Answer,
    /// Where bodies are written.
    buffer: Box<[u8]>,
    /// The names in the last one.
    places: Places,
}

impl BodyReader {
    /// One that has read nothing yet.
    pub fn new() -> Self {
        let buffer = vec![0; BODY_BYTES_MAX].into();
        Self { answer: Answer::default(), buffer, places: Places::default() }
    }

    /// Reads an answer that was found to be one to `question`; nothing if it is of no use.
    pub fn read(&mut self, question: &Question, message: &mut [u8]) -> Option<Body> {
        let kind = self.answer.read(message, &question.name, question.dnssec_ok).ok()?;
        let asked = &message[..HEADER_BYTES + question.question_bytes()];
        self.buffer[..asked.len()].copy_from_slice(asked);
        let name_end = (HEADER_BYTES + question.name.len()) as u16; // a name has at most 255 octets
        let query = Query { name_end, ..Query::default() };
        let mut reply = Reply::new(&mut self.buffer, &query, BODY_BYTES_MAX, &mut self.places);
        let (mut ttl, mut negative_ttl) = (u32::MAX, 0);
        for record in self.answer.records() {
            let fixed = (record.rtype, record.class, record.ttl);
            reply.record(record.section, Owner::Name(record.owner), fixed, record.rdata).ok()?;
            ttl = ttl.min(record.ttl);
            if record.section == Section::Authority && record.rtype == Type::SOA {
                // rfc2308#5: the lesser of the record's own TTL and its last field.
                let minimum = record.rdata.last_chunk().map_or(0, |it| u32::from_be_bytes(*it));
                negative_ttl = record.ttl.min(minimum);
            }
        }
        let negative_ttl = negative_ttl.min(ttl);
        let (rcode, kind, ttl_secs) = match kind {
            Kind::Positive => (Rcode::NOERROR, zonda_cache::Kind::Positive, ttl),
            Kind::NameTooLong => (Rcode::YXDOMAIN, zonda_cache::Kind::Positive, ttl),
            Kind::NoData => (Rcode::NOERROR, zonda_cache::Kind::NoData, negative_ttl),
            Kind::NameError => (Rcode::NXDOMAIN, zonda_cache::Kind::NxDomain, negative_ttl),
        };
        Some(Body { rcode, kind, counts: reply.counts(), octets: reply.body().to_vec(), ttl_secs })
    }
}
