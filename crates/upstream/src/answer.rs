//! The records of an answer that belong to its question.
//!
//! An upstream may send what it likes; kept is only
//! - the chain of CNAME and DNAME records that starts at the question's name,
//! - the type asked for at the end of the chain,
//! - where it ends in nothing, the SOA record that encloses the last name (rfc2308#5),
//! - with DO, the RRSIG records over these, and the NSEC and NSEC3 records of their zones.
//!
//! Everything else is left behind, so that nothing can slip into a cache beside the answer
//! (rfc5452#6). A CNAME that follows from a DNAME is made here, not taken (rfc6672#3.1).
//!
//! Upstreams are asked for a zone ([`Scope`]). A record that speaks of more names than its owner
//! (DNAME, SOA, NS, NSEC, NSEC3 and their signatures) is kept only at or below that zone's apex: a
//! DNAME above it would redirect the names of other zones.
//!
//! Deliberately absent: how long an answer may be kept, DNSSEC validation, and the question whether
//! the message may be believed at all ([`check`](mod@crate::check)).
//!
//! # Invariants
//! - Every owner is a whole name; every rdata follows its type's schema, names written out.
//! - At most [`LINKS_MAX`] links, [`RECORDS_MAX`] records and [`OCTETS_MAX`] octets, of whatever
//!   message.

mod sets;

use sets::{Sets, covers, is_wanted, soa_minimum, speaks_beyond_owner};
use std::fmt;
use std::ops::Range;
use zonda_wire::name::{self, NAME_BYTES_MAX};
use zonda_wire::query::HEADER_BYTES;
use zonda_wire::response::{RecordView, Response};
use zonda_wire::{Class, Rcode, Section, Type};

/// Most CNAME and DNAME links that are followed. Real chains have up to about 8; BIND stops at 16.
pub const LINKS_MAX: usize = 16;
/// Most records that an answer may have: what a message of 64 KiB holds of addresses, the shortest
/// records in use. It could hold half as many again of records with nothing but a root name; each
/// record is compared with each link of the chain.
pub const RECORDS_MAX: usize = 4096;
/// Most octets of accepted names and data: twice the largest message.
pub const OCTETS_MAX: usize = 128 * 1024;

/// The records that belong to a question. One is reused for many messages, so that nothing is
/// allocated once it has grown.
#[derive(Default)]
pub struct Answer {
    /// Names and data of the accepted records.
    octets: Vec<u8>,
    /// Accepted records, in order.
    kept: Vec<StoredRecord>,
    /// The names of the chain: the question's first.
    links: Vec<Range<usize>>,
    /// The zones that accepted records are known to be of.
    zones: Vec<Range<usize>>,
    /// The owners of the answer section, one after the other. They are compared with each link, and
    /// a hostile name can be in a hundred pieces.
    owners: Vec<u8>,
    /// End of each owner in the octets.
    owner_ends: Vec<usize>,
    /// An owner of another section while it is compared.
    owner: Vec<u8>,
    /// Seconds for which an SOA record that was left out denies the name or type.
    denied_secs: Option<u32>,
}

/// The records that the queried servers are trusted for.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// Apex of the zone that the servers are queried for, in wire form.
    pub apex: &'a [u8],
    /// Says whether a name belongs to another zone than the upstreams', with data or servers of its
    /// own.
    pub is_elsewhere: &'a dyn Fn(&[u8]) -> bool,
}

impl Scope<'_> {
    /// The scope of all names.
    pub const ALL: Self = Self { apex: &[0], is_elsewhere: &|_| false };
}

/// A kept record; names and data by their place in [`Answer::octets`].
#[derive(Clone, Debug)]
struct StoredRecord {
    section: Section,
    owner: Range<usize>,
    rtype: Type,
    class: Class,
    ttl: u32,
    rdata: Range<usize>,
}

/// A record that belongs to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Section of the record: answer or authority.
    pub section: Section,
    /// The owner, uncompressed.
    pub owner: &'a [u8],
    /// Type of the record.
    pub rtype: Type,
    /// The class, which is the question's.
    pub class: Class,
    /// Time to live in seconds, as received; 0 for 2³¹ and more (rfc2181#8).
    pub ttl: u32,
    /// The data, names written out.
    pub rdata: &'a [u8],
}

/// How the chain ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// With records of the type asked for.
    Positive,
    /// With a name that has none of them (rfc2308#2.2).
    NoData,
    /// With a name that does not exist (rfc2308#2.1).
    NameError,
    /// With a DNAME that would make the name too long; the reply is YXDOMAIN (rfc6672#2.2).
    NameTooLong,
    /// With an alias to a name that other servers, or this one, answer for, or for which the
    /// queried servers are not trusted.
    Elsewhere,
}

/// Why a message cannot be used although it answers the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerError {
    /// A name or data that belongs to the question breaks its format.
    Malformed,
    /// The chain of aliases returns to one of its names.
    Loop,
    /// The chain has more than [`LINKS_MAX`] links.
    LongChain,
    /// More than [`RECORDS_MAX`] records or [`OCTETS_MAX`] octets.
    TooLarge,
    /// The response code contradicts the records.
    Contradiction,
    /// The name is an alias by a DNAME above the zone that the upstream is queried for.
    AboveZone,
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "a record of the answer is malformed",
            Self::Loop => "the chain of aliases is a circle",
            Self::LongChain => "the chain of aliases is too long",
            Self::TooLarge => "the answer is too large",
            Self::Contradiction => "the response code contradicts the records",
            Self::AboveZone => "it depends on a DNAME above the zone",
        })
    }
}

impl std::error::Error for AnswerError {}

/// What a name of the chain leads to.
enum Step {
    /// Records of the type asked for.
    Answered,
    /// Another name, to which the last one is an alias.
    Alias(Range<usize>),
    /// A name of over 255 octets.
    TooLong,
    /// A name for which other servers are responsible.
    Elsewhere,
    /// The chain has ended.
    Nothing,
}

impl Answer {
    /// Takes from an accepted message what belongs to its question, whose name was `name` before
    /// its case was mixed.
    ///
    /// The name is written over the question of the message, so that names that were compressed
    /// against it come out in the case of `name`, too.
    ///
    /// # Errors
    /// When the message is of no use; nothing is kept of it.
    pub fn read(
        &mut self,
        message: &mut [u8],
        name: &[u8],
        dnssec_ok: bool,
    ) -> Result<Kind, AnswerError> {
        self.read_within(message, name, dnssec_ok, Scope::ALL)
    }

    /// Takes the same from the answer of servers that are asked for one zone. The chain ends with
    /// the first alias of a name that belongs to another zone: whatever the message says of that
    /// name is left behind.
    ///
    /// # Errors
    /// As before, and when the chain hangs on a DNAME above their zone.
    pub fn read_within(
        &mut self,
        message: &mut [u8],
        name: &[u8],
        dnssec_ok: bool,
        scope: Scope<'_>,
    ) -> Result<Kind, AnswerError> {
        self.clear();
        let asked = message.get_mut(HEADER_BYTES..HEADER_BYTES + name.len());
        let asked = asked.filter(|asked| asked.eq_ignore_ascii_case(name));
        asked.ok_or(AnswerError::Malformed)?.copy_from_slice(name);
        let kind = Response::parse(message)
            .map_err(|_| AnswerError::Malformed)
            .and_then(|response| self.collect(&response, dnssec_ok, scope));
        kind.inspect_err(|_| self.clear())
    }

    /// Returns the accepted records: the chain in its order, then those of the authority section.
    pub fn records(&self) -> impl ExactSizeIterator<Item = Record<'_>> {
        self.kept.iter().map(|kept| Record {
            section: kept.section,
            owner: &self.octets[kept.owner.clone()],
            rtype: kept.rtype,
            class: kept.class,
            ttl: kept.ttl,
            rdata: &self.octets[kept.rdata.clone()],
        })
    }

    /// Returns the name at the end of the chain: the question's own when there are no links.
    #[must_use]
    pub fn last_name(&self) -> &[u8] {
        self.links.last().map_or(&[], |link| &self.octets[link.clone()])
    }

    /// Seconds for which the name or type at the end of the chain is denied by an SOA record above
    /// the zone that the servers are asked for. The record is left out, but how long their word on
    /// a name of their own zone holds is theirs to say.
    #[must_use]
    pub fn denied_secs(&self) -> Option<u32> {
        self.denied_secs
    }

    /// Removes all records.
    fn clear(&mut self) {
        self.octets.clear();
        self.kept.clear();
        self.links.clear();
        self.zones.clear();
        self.owners.clear();
        self.owner_ends.clear();
        self.denied_secs = None;
    }

    /// Does the work of [`read`](Self::read) once the message is seen as a response.
    fn collect(
        &mut self,
        response: &Response<'_>,
        dnssec_ok: bool,
        scope: Scope<'_>,
    ) -> Result<Kind, AnswerError> {
        if response.record_count() > RECORDS_MAX {
            return Err(AnswerError::TooLarge);
        }
        let question = response.question();
        let (name, fixed) = question.split_last_chunk::<4>().ok_or(AnswerError::Malformed)?;
        let qtype = Type(u16::from_be_bytes([fixed[0], fixed[1]]));
        let class = Class(u16::from_be_bytes([fixed[2], fixed[3]]));
        if !dnssec_ok && self.collect_plain(response, (name, qtype, class))? {
            return Ok(Kind::Positive);
        }
        let is_other = |record: &RecordView<'_>| {
            record.section != Section::Additional && record.class != class
        };
        if response.records().any(|record| is_other(&record)) {
            return Err(AnswerError::Malformed); // OPT is among the additional; its class is a size
        }
        let sets = Sets { response, class, dnssec_ok, apex: scope.apex };
        self.expand_owners(&sets)?;
        self.octets.extend_from_slice(name);
        self.links.push(0..name.len());
        let step = loop {
            match self.step(&sets, qtype)? {
                Step::Alias(target) if (scope.is_elsewhere)(&self.octets[target.clone()]) => {
                    break Step::Elsewhere;
                }
                Step::Alias(target) => self.link(target)?,
                end => break end,
            }
        };
        let kind = match (step, response.rcode()) {
            (Step::Answered, Rcode::NOERROR) => Kind::Positive,
            (Step::Elsewhere, _) => Kind::Elsewhere, // the code is about what is left out
            (Step::TooLong, Rcode::NOERROR | Rcode::YXDOMAIN) => Kind::NameTooLong,
            (Step::Nothing, Rcode::NOERROR) => Kind::NoData,
            (Step::Nothing, Rcode::NXDOMAIN) => Kind::NameError, // rfc6604#3
            _ => return Err(AnswerError::Contradiction),
        };
        if matches!(kind, Kind::NoData | Kind::NameError) {
            self.keep_soa(&sets)?;
        }
        if dnssec_ok {
            self.keep_denials(&sets)?;
        }
        Ok(kind)
    }

    /// Takes the records of an answer in which all have the name and the type of the question, in
    /// one pass; false, with nothing kept, where there is anything else.
    ///
    /// That is what most answers are, and what [`collect`](Self::collect) would take of them.
    fn collect_plain(
        &mut self,
        response: &Response<'_>,
        (name, qtype, class): (&[u8], Type, Class),
    ) -> Result<bool, AnswerError> {
        let has_rules = matches!(qtype, Type::CNAME | Type::RRSIG) || speaks_beyond_owner(qtype);
        if has_rules || qtype.is_meta() || response.rcode() != Rcode::NOERROR {
            return Ok(false);
        }
        self.octets.extend_from_slice(name);
        for record in response.records() {
            let is_plain = match record.section {
                Section::Answer => record.rtype == qtype && record.points_at_question(),
                _ => true,
            };
            if record.section != Section::Additional && record.class != class || !is_plain {
                self.clear();
                return Ok(false);
            }
            if record.section == Section::Answer {
                self.keep(&record, 0..name.len())?;
            }
        }
        if self.kept.is_empty() {
            self.clear();
            return Ok(false);
        }
        self.links.push(0..name.len());
        Ok(true)
    }

    /// Goes on to the next name of the chain.
    fn link(&mut self, target: Range<usize>) -> Result<(), AnswerError> {
        let name = &self.octets[target.clone()];
        if self.links.iter().any(|link| self.octets[link.clone()].eq_ignore_ascii_case(name)) {
            return Err(AnswerError::Loop);
        }
        if self.links.len() > LINKS_MAX {
            return Err(AnswerError::LongChain);
        }
        self.links.push(target);
        Ok(())
    }

    /// Accepts what the last name of the chain has.
    fn step(&mut self, sets: &Sets<'_>, qtype: Type) -> Result<Step, AnswerError> {
        let current = self.links.last().cloned().unwrap_or_default();
        let (mut asked_for, mut cname, mut dname, mut is_above) = (false, false, None, false);
        let name = &self.octets[current.clone()];
        for (index, record) in sets.section(Section::Answer).enumerate() {
            let owner = self.owner_of(index);
            let is_own = owner.eq_ignore_ascii_case(name);
            let redirects = record.rtype == Type::DNAME && name::is_at_or_below(name, owner);
            if is_own && is_wanted(&record, qtype) || redirects && !is_own {
                match sets.may_say(&record, owner) {
                    false => is_above = true,
                    true if is_own => asked_for = true,
                    true => dname = Some(owner.len()),
                }
            }
            cname |= is_own && record.rtype == Type::CNAME;
        }
        if let Some(len) = dname {
            let step = self.substitute(sets, current, len)?;
            let ends = matches!(qtype, Type::CNAME | Type::ANY);
            return Ok(if ends && matches!(step, Step::Alias(_)) { Step::Answered } else { step });
        }
        if asked_for {
            self.keep_set(sets, current, qtype)?;
            return Ok(Step::Answered);
        }
        if cname {
            let target = self.keep_set(sets, current, Type::CNAME)?;
            return Ok(Step::Alias(target));
        }
        match is_above {
            false => Ok(Step::Nothing),
            true if sets.is_inside(&self.octets[current]) => Err(AnswerError::AboveZone),
            true => Ok(Step::Elsewhere),
        }
    }

    /// Accepts the DNAME whose owner is the last `len` octets of a name, and makes the CNAME that
    /// follows from it.
    fn substitute(
        &mut self,
        sets: &Sets<'_>,
        name: Range<usize>,
        len: usize,
    ) -> Result<Step, AnswerError> {
        let owner = name.end - len..name.end;
        let target = self.keep_set(sets, owner.clone(), Type::DNAME)?;
        let ttl = self.kept.iter().rfind(|kept| kept.rtype == Type::DNAME).map_or(0, |it| it.ttl);
        if owner.start - name.start + target.len() > NAME_BYTES_MAX {
            return Ok(Step::TooLong);
        }
        let start = self.octets.len();
        self.octets.extend_from_within(name.start..owner.start);
        self.octets.extend_from_within(target);
        let rdata = start..self.octets.len();
        let (section, rtype, class) = (Section::Answer, Type::CNAME, sets.class);
        let cname = StoredRecord { section, owner: name, rtype, class, ttl, rdata: rdata.clone() };
        self.push(cname)?;
        Ok(Step::Alias(rdata))
    }

    /// Keeps the records of a type at an owner in the answer section, and their signatures. Returns
    /// the data of the first record. Of CNAME and DNAME there is only one (rfc2181#10.1).
    fn keep_set(
        &mut self,
        sets: &Sets<'_>,
        owner: Range<usize>,
        rtype: Type,
    ) -> Result<Range<usize>, AnswerError> {
        let single = matches!(rtype, Type::CNAME | Type::DNAME);
        let mut first = None;
        for (index, record) in sets.section(Section::Answer).enumerate() {
            let wanted = is_wanted(&record, rtype) && !(single && first.is_some());
            let signature = sets.dnssec_ok && covers(&record, rtype);
            if !wanted && !signature || !sets.may_say(&record, self.owner_of(index)) {
                continue;
            }
            if self.owner_of(index).eq_ignore_ascii_case(&self.octets[owner.clone()]) {
                let rdata = self.keep(&record, owner.clone())?;
                if wanted {
                    first.get_or_insert(rdata);
                }
            }
        }
        first.ok_or(AnswerError::Malformed) // the caller has seen the set
    }

    /// Keeps the SOA record of the authority section that encloses the last name most closely: only
    /// the name's own zone can deny it (rfc2308#3), and there should be no other. Of one above the
    /// zone that the servers are asked for, only the time is kept; of several of the same name, the
    /// shortest, as of a set with several TTLs (rfc2181#5.2).
    fn keep_soa(&mut self, sets: &Sets<'_>) -> Result<(), AnswerError> {
        let (mut zone, mut above) = (0, 0); // octets of their names
        for record in sets.section(Section::Authority).filter(|r| r.rtype == Type::SOA) {
            self.expand_owner(&record)?;
            if !name::is_at_or_below(self.last_name(), &self.owner) {
                continue;
            }
            if sets.may_say(&record, &self.owner) {
                zone = zone.max(self.owner.len());
            } else if self.owner.len() >= above
                && let Some(secs) = soa_minimum(&record).map(|secs| secs.min(record.ttl))
            {
                let before = self.denied_secs.filter(|_| self.owner.len() == above);
                self.denied_secs = Some(before.map_or(secs, |before| before.min(secs)));
                above = self.owner.len();
            }
        }
        if zone == 0 {
            return Ok(());
        }
        self.denied_secs = None;
        let last = self.links.last().cloned().unwrap_or_default();
        let owner = last.end - zone..last.end;
        let mut seen = false;
        for record in sets.section(Section::Authority) {
            let soa = record.rtype == Type::SOA && !seen;
            let signature = sets.dnssec_ok && covers(&record, Type::SOA);
            if !soa && !signature {
                continue;
            }
            self.expand_owner(&record)?;
            if self.owner.eq_ignore_ascii_case(&self.octets[owner.clone()]) {
                self.keep(&record, owner.clone())?;
                seen |= soa;
            }
        }
        self.remember_zone(owner);
        Ok(())
    }

    /// Keeps the proofs of what does not exist in the zones of kept records, with their signatures:
    /// a positive answer needs one, too, when it comes from a wildcard (rfc4035#5.3.4).
    fn keep_denials(&mut self, sets: &Sets<'_>) -> Result<(), AnswerError> {
        for record in sets.section(Section::Authority) {
            let is_denial = [Type::NSEC, Type::NSEC3]
                .iter()
                .any(|&rtype| record.rtype == rtype || covers(&record, rtype));
            if !is_denial {
                continue;
            }
            self.expand_owner(&record)?;
            let within =
                |zone: &Range<usize>| name::is_at_or_below(&self.owner, &self.octets[zone.clone()]);
            if self.zones.iter().any(within) && sets.may_say(&record, &self.owner) {
                let start = self.octets.len();
                self.octets.extend_from_slice(&self.owner);
                self.keep(&record, start..self.octets.len())?;
            }
        }
        Ok(())
    }

    /// Accepts a record under an owner that is already there. Returns the place of its data.
    fn keep(
        &mut self,
        record: &RecordView<'_>,
        owner: Range<usize>,
    ) -> Result<Range<usize>, AnswerError> {
        let start = self.octets.len();
        record.rdata_into(&mut self.octets).map_err(|_| AnswerError::Malformed)?;
        let rdata = start..self.octets.len();
        if record.rtype == Type::RRSIG {
            self.remember_signer(&owner, &rdata);
        }
        let RecordView { section, rtype, class, ttl, .. } = *record;
        self.push(StoredRecord { section, owner, rtype, class, ttl, rdata: rdata.clone() })?;
        Ok(rdata)
    }

    /// Adds a record within the bounds.
    fn push(&mut self, kept: StoredRecord) -> Result<(), AnswerError> {
        if self.kept.len() == RECORDS_MAX || self.octets.len() > OCTETS_MAX {
            return Err(AnswerError::TooLarge);
        }
        self.kept.push(kept);
        Ok(())
    }

    /// Records the signer of a set, which is the set's zone, if it encloses the owner
    /// (rfc4035#5.3.1).
    fn remember_signer(&mut self, owner: &Range<usize>, rdata: &Range<usize>) {
        let rest = self.octets.get(rdata.start + SIGNER_AT..rdata.end).unwrap_or_default();
        if let Some(len) = name::wire_len(rest) {
            let signer = rdata.start + SIGNER_AT..rdata.start + SIGNER_AT + len;
            if name::is_at_or_below(&self.octets[owner.clone()], &self.octets[signer.clone()]) {
                self.remember_zone(signer);
            }
        }
    }

    /// Adds a zone once; a chain has no more zones than links.
    fn remember_zone(&mut self, zone: Range<usize>) {
        let name = &self.octets[zone.clone()];
        let same = |it: &Range<usize>| self.octets[it.clone()].eq_ignore_ascii_case(name);
        if self.zones.len() <= LINKS_MAX && !self.zones.iter().any(same) {
            self.zones.push(zone);
        }
    }

    /// Writes the owners of the answer section into [`owners`](Self::owners).
    fn expand_owners(&mut self, sets: &Sets<'_>) -> Result<(), AnswerError> {
        for record in sets.section(Section::Answer) {
            record.owner_into(&mut self.owners).map_err(|_| AnswerError::Malformed)?;
            self.owner_ends.push(self.owners.len());
        }
        Ok(())
    }

    /// Returns the owner of a record of the answer section.
    fn owner_of(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.owner_ends[before]);
        &self.owners[start..self.owner_ends[index]]
    }

    /// Writes the owner of a record into [`owner`](Self::owner).
    fn expand_owner(&mut self, record: &RecordView<'_>) -> Result<(), AnswerError> {
        self.owner.clear();
        record.owner_into(&mut self.owner).map_err(|_| AnswerError::Malformed)
    }
}

/// Octets of an RRSIG's data before the signer's name (rfc4034#3.1).
const SIGNER_AT: usize = 18;

#[cfg(test)]
mod tests;
