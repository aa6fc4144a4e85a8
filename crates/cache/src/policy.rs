//! Whether an answer may be kept, and for how long.
//!
//! Pure: the facts of a message that was checked before go in, a term or the reason against it come
//! out. The forwarder clamps each record's TTL by the term while it writes the body.
//!
//! Deliberately absent: which records belong to the question, and the cache itself.

use crate::Kind;
use crate::key::EVERY_TYPE;
use zonda_wire::query::flag;
use zonda_wire::{Section, Type, name};

/// How long answers are kept, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Answers with records.
    pub positive: Limits,
    /// Names without the type asked for.
    pub nodata: Limits,
    /// Limits of denials of names.
    pub nxdomain: Limits,
    /// Failures: the first, and the longest, before the next attempt (rfc9520#3.2).
    pub failure: Limits,
    /// Seconds after its expiry for which an answer may be sent when no newer one is to be had.
    pub stale_secs: u32,
}

/// The shortest and the longest time, seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Least time: shorter ones are raised to it. At most `secs_max`.
    pub secs_min: u32,
    /// Greatest time: longer ones are cut to it. 0: nothing is kept.
    pub secs_max: u32,
}

impl Default for Policy {
    /// Returns a day for answers, three hours for their absence, a second to five minutes for
    /// failures.
    fn default() -> Self {
        let up_to = |secs_max| Limits { secs_min: 0, secs_max };
        Self {
            positive: up_to(86_400),
            nodata: up_to(10_800),   // rfc2308#5
            nxdomain: up_to(10_800), // rfc2308#5
            failure: Limits { secs_min: 1, secs_max: 300 },
            stale_secs: 86_400, // rfc8767#5
        }
    }
}

/// The facts about an answer that the policy depends on.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'m> {
    /// The flags word of the message.
    pub flags: u16,
    /// The type asked for.
    pub qtype: Type,
    /// Kind of the message's answer.
    pub kind: Kind,
    /// The name at the end of the chain of aliases; the question's when there is none.
    pub last_name: &'m [u8],
    /// Seconds for which the name or type is denied where no SOA record among the records says so.
    pub denied_secs: Option<u32>,
}

/// A record, as far as it counts here.
#[derive(Clone, Copy, Debug)]
pub struct Record<'m> {
    /// Section of the record.
    pub section: Section,
    /// The owner, uncompressed.
    pub owner: &'m [u8],
    /// Type of the record.
    pub rtype: Type,
    /// Time to live, seconds.
    pub ttl: u32,
    /// Data of the record.
    pub rdata: &'m [u8],
}

/// How long an answer is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Seconds for which the answer is fresh.
    pub ttl_secs: u32,
    /// The shortest and the longest TTL that records of the answer section are stored with.
    pub answers: Limits,
    /// Limits of the records beside it, which prove the denial.
    pub proofs: Limits,
}

impl Term {
    /// Returns the TTL that a record is stored with.
    #[must_use]
    pub fn clamp(&self, section: Section, ttl: u32) -> u32 {
        let limits = if section == Section::Answer { self.answers } else { self.proofs };
        limits.clamp(plain_ttl(ttl))
    }
}

/// Why an answer is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermError {
    /// The answer is truncated (rfc2181#9).
    Truncated,
    /// The question was for a type that nothing is stored under, such as ANY, or type 0.
    Meta,
    /// The question was for signatures alone, which are no RRset: servers give some of them, each
    /// has a TTL of its own, and nothing says whether they are all (rfc4035#2.2).
    Signatures,
    /// The answer has a TTL of 0: it may be used once only.
    ZeroTtl,
    /// Answers of the kind are not to be kept.
    Unwanted,
    /// The answer is a denial without an SOA record, so that its TTL is unknown (rfc2308#5).
    NoSoa,
    /// The answer is a failure: see [`Cache::insert_failure`](crate::Cache::insert_failure).
    Failure,
}

impl Policy {
    /// Returns how long an answer may be fresh at most, seconds.
    pub(crate) fn ttl_secs_max(&self, kind: Kind) -> u32 {
        let limits = match kind {
            Kind::Positive => self.positive,
            Kind::NoData => self.nodata,
            Kind::NxDomain => self.nxdomain,
            Kind::Failure => self.failure,
        };
        limits.secs_max
    }

    /// Returns how long an answer with these records may be kept.
    ///
    /// # Errors
    /// When it may not be.
    pub fn term<'m>(
        &self,
        facts: &Facts<'_>,
        records: impl IntoIterator<Item = Record<'m>>,
    ) -> Result<Term, TermError> {
        if facts.flags & flag::TC != 0 {
            return Err(TermError::Truncated);
        }
        if facts.qtype.is_meta() || facts.qtype == EVERY_TYPE {
            return Err(TermError::Meta);
        }
        if facts.qtype == Type::RRSIG {
            return Err(TermError::Signatures);
        }
        let limits = match facts.kind {
            Kind::Positive => self.positive,
            Kind::NoData => self.nodata,
            Kind::NxDomain => self.nxdomain,
            Kind::Failure => return Err(TermError::Failure),
        };
        if limits.secs_max == 0 {
            return Err(TermError::Unwanted);
        }
        let (mut shortest, mut denied_for) = (u32::MAX, None);
        for record in records {
            shortest = shortest.min(plain_ttl(record.ttl));
            if record.section == Section::Authority && record.rtype == Type::SOA {
                let encloses = name::is_at_or_below(facts.last_name, record.owner);
                denied_for = denied_for.or(soa_minimum(record.rdata).filter(|_| encloses));
            }
        }
        if facts.kind == Kind::Positive {
            let ttl_secs = not_zero(shortest).map(|secs| limits.clamp(secs))?;
            return Ok(Term { ttl_secs, answers: limits, proofs: limits });
        }
        let denied_for = denied_for.or(facts.denied_secs.map(plain_ttl)).ok_or(TermError::NoSoa)?;
        let denied_for = not_zero(shortest.min(denied_for))?;
        let ttl_secs = limits.clamp(denied_for);
        // The SOA record's TTL says to the client how long the denial holds (rfc2308#5). Aliases
        // that lead to it hold as long as they do.
        let proofs = Limits { secs_max: ttl_secs, ..limits };
        let answers = if self.positive.secs_max == 0 { proofs } else { self.positive };
        Ok(Term { ttl_secs, answers, proofs })
    }
}

impl Limits {
    /// Returns the nearest time within the limits.
    fn clamp(self, secs: u32) -> u32 {
        secs.max(self.secs_min).min(self.secs_max)
    }

    /// Returns how long to wait after the nth failure in a row: each time twice as long.
    #[must_use]
    pub fn backoff_secs(self, failures: u8) -> u32 {
        let factor = 1_u32.checked_shl(u32::from(failures.saturating_sub(1)));
        self.clamp(self.secs_min.max(1).saturating_mul(factor.unwrap_or(u32::MAX)))
    }
}

/// Returns a TTL in seconds; one whose highest bit is set counts as zero (rfc2181#8).
fn plain_ttl(ttl: u32) -> u32 {
    if ttl > i32::MAX as u32 { 0 } else { ttl }
}

/// Returns a time to keep something.
fn not_zero(secs: u32) -> Result<u32, TermError> {
    if secs == 0 { Err(TermError::ZeroTtl) } else { Ok(secs) }
}

/// Returns the last field of an SOA record's data (rfc2308#4).
fn soa_minimum(rdata: &[u8]) -> Option<u32> {
    rdata.last_chunk().map(|field| plain_ttl(u32::from_be_bytes(*field)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an A record, or an SOA record whose minimum is 60.
    fn record(section: Section, rtype: Type, owner: &'static [u8], ttl: u32) -> Record<'static> {
        let rdata =
            if rtype == Type::SOA { &b"\0\0................\0\0\0\x3c"[..] } else { b"1234" };
        Record { section, owner, rtype, ttl, rdata }
    }

    /// Returns what is known of an answer to `a.example`.
    fn facts(flags: u16, qtype: Type, kind: Kind) -> Facts<'static> {
        Facts { flags, qtype, kind, last_name: OWNER, denied_secs: None }
    }

    /// Returns what the policy says about an answer to `a.example`.
    fn term(kind: Kind, records: &[Record<'static>]) -> Result<u32, TermError> {
        let facts = facts(0, Type::A, kind);
        Policy::default().term(&facts, records.iter().copied()).map(|term| term.ttl_secs)
    }

    const OWNER: &[u8] = b"\x01a\x07example\0";
    const ZONE: &[u8] = b"\x07EXAMPLE\0";

    #[test]
    fn answers_of_a_kind_that_is_not_to_be_kept_are_not_and_others_are() {
        let none = Limits { secs_min: 0, secs_max: 0 };
        let policy = Policy { positive: none, ..Policy::default() };
        let a = record(Section::Answer, Type::A, OWNER, 300);
        let of = |kind, records: &[Record<'static>]| {
            policy.term(&facts(0, Type::A, kind), records.iter().copied())
        };
        assert_eq!(of(Kind::Positive, &[a]), Err(TermError::Unwanted));
        let soa = record(Section::Authority, Type::SOA, ZONE, 300);
        let alias = Record { rtype: Type::CNAME, ..a };
        let denial = of(Kind::NxDomain, &[alias, soa]);
        assert_eq!(denial.map(|term| term.clamp(Section::Answer, 300)), Ok(60));
    }

    #[test]
    fn the_shortest_ttl_of_a_positive_answer_holds_within_a_day() {
        let a = |ttl| record(Section::Answer, Type::A, OWNER, ttl);
        for (ttls, expected) in [
            (&[300, 60, 86_400][..], Ok(60)),
            (&[604_800], Ok(86_400)),
            (&[60, 0], Err(TermError::ZeroTtl)),
            (&[1 << 31], Err(TermError::ZeroTtl)),
            (&[u32::MAX, 60], Err(TermError::ZeroTtl)),
        ] {
            let records: Vec<_> = ttls.iter().map(|&ttl| a(ttl)).collect();
            assert_eq!(term(Kind::Positive, &records), expected, "{ttls:?}");
        }
    }

    #[test]
    fn a_denial_holds_as_long_as_the_soa_record_and_its_minimum() {
        let soa = |owner, ttl| record(Section::Authority, Type::SOA, owner, ttl);
        for kind in [Kind::NoData, Kind::NxDomain] {
            assert_eq!(term(kind, &[soa(ZONE, 3600)]), Ok(60));
            assert_eq!(term(kind, &[soa(ZONE, 30)]), Ok(30));
            assert_eq!(term(kind, &[soa(b"\0", 3600)]), Ok(60));
            assert_eq!(term(kind, &[soa(ZONE, 0)]), Err(TermError::ZeroTtl));
            assert_eq!(term(kind, &[]), Err(TermError::NoSoa));
            assert_eq!(term(kind, &[soa(b"\x05other\0", 3600)]), Err(TermError::NoSoa));
            let alias = record(Section::Answer, Type::CNAME, OWNER, 20);
            assert_eq!(term(kind, &[alias, soa(ZONE, 3600)]), Ok(20));
            let misplaced = record(Section::Answer, Type::SOA, ZONE, 3600);
            assert_eq!(term(kind, &[misplaced]), Err(TermError::NoSoa));
        }
    }

    #[test]
    fn a_denial_without_an_soa_record_holds_as_long_as_is_said_otherwise() {
        let term = |denied_secs, records: &[Record<'static>]| {
            let facts = Facts { denied_secs, ..facts(0, Type::A, Kind::NxDomain) };
            let term = Policy::default().term(&facts, records.iter().copied());
            term.map(|term| term.ttl_secs)
        };
        let alias = record(Section::Answer, Type::CNAME, OWNER, 20);
        let soa = record(Section::Authority, Type::SOA, ZONE, 3600);
        assert_eq!(term(Some(30), &[]), Ok(30));
        assert_eq!(term(Some(30), &[alias]), Ok(20));
        assert_eq!(term(Some(1_000_000), &[]), Ok(10_800));
        assert_eq!(term(Some(1 << 31), &[]), Err(TermError::ZeroTtl));
        assert_eq!(term(Some(30), &[soa]), Ok(60), "the record goes first");
    }

    #[test]
    fn truncated_and_meta_answers_signatures_and_failures_are_not_cached() {
        let records = [record(Section::Answer, Type::A, OWNER, 60)];
        let ask = |flags, qtype, kind| {
            let facts = facts(flags, qtype, kind);
            Policy::default().term(&facts, records).map(|term| term.ttl_secs)
        };
        assert_eq!(ask(flag::TC, Type::A, Kind::Positive), Err(TermError::Truncated));
        for qtype in [Type::ANY, Type(0)] {
            assert_eq!(ask(0, qtype, Kind::Positive), Err(TermError::Meta));
        }
        for kind in [Kind::Positive, Kind::NoData] {
            assert_eq!(ask(0, Type::RRSIG, kind), Err(TermError::Signatures));
        }
        assert_eq!(ask(0, Type::A, Kind::Failure), Err(TermError::Failure));
        assert_eq!(ask(flag::AA, Type::A, Kind::Positive), Ok(60));
    }

    #[test]
    fn records_are_stored_with_ttls_within_the_limits() {
        let policy =
            Policy { positive: Limits { secs_min: 30, secs_max: 600 }, ..Policy::default() };
        let facts = facts(0, Type::A, Kind::Positive);
        let records = [5, 3600].map(|ttl| record(Section::Answer, Type::A, OWNER, ttl));
        let term = policy.term(&facts, records).expect("kept");
        assert_eq!(term.ttl_secs, 30);
        let stored = |term: Term, section, ttl| term.clamp(section, ttl);
        let ttls = [5, 100, 3600, 1 << 31].map(|ttl| stored(term, Section::Answer, ttl));
        assert_eq!(ttls, [30, 100, 600, 30]);
        let facts = Facts { kind: Kind::NxDomain, ..facts };
        let soa = [record(Section::Authority, Type::SOA, ZONE, 3600)];
        let term = policy.term(&facts, soa).expect("kept");
        let sections = [Section::Answer, Section::Authority];
        assert_eq!(term.ttl_secs, 60);
        assert_eq!(sections.map(|section| stored(term, section, 3600)), [600, 60]);
    }

    #[test]
    fn failures_are_waited_out_longer_each_time() {
        let failure = Policy::default().failure;
        let waits: Vec<u32> = (1..=11).map(|failures| failure.backoff_secs(failures)).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!([0, 255].map(|failures| failure.backoff_secs(failures)), [1, 300]);
    }
}
