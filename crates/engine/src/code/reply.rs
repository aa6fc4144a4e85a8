//! A reply that code puts together, record by record, in any order.
//!
//! The caller of the code keeps and reuses it, so that a reply allocates nothing once its
//! predecessors have grown the buffers.

use super::elsewhere::Elsewhere;
use super::ending::{Ending, Overfull};
use super::history::Tags;
use super::keep::{Keep, Vary};
use super::made_soa::{NegativeSoa, write_made_soa};
use super::query_state::QueryState;
use super::record::Record;
use std::borrow::Cow;
use std::fmt::Display;
use std::ops::Range;
use zonda_wire::Reply as ReplyWriter;
use zonda_wire::name;
use zonda_wire::query::{HEADER_BYTES, flag};
use zonda_wire::{Class, Ede, Full, Name, Owner, Rcode, Section, Type};

/// Octets of all records at most: no message holds more.
const RECORD_BYTES_MAX: usize = u16::MAX as usize;

/// The longest time to live (rfc2181#8).
const TTL_SECS_MAX: u32 = 0x7fff_ffff;

/// The longest scope: all bits of an IPv6 address.
const SCOPE_BITS_MAX: u8 = 128;

/// A reply that code puts together.
#[derive(Clone)]
pub struct Reply {
    /// Owners and data, uncompressed.
    octets: Vec<u8>,
    /// Where owner and data of each record lie, and its other fields.
    records: Vec<RecordPlace>,
    /// Whether anything was changed since it was read from a reply.
    is_changed: bool,
    /// Whether more was added to it than any message holds, since it was cleared.
    is_overfull: bool,
    /// How the query is to end.
    #[doc(hidden)]
    pub ending: Ending,
    /// The response code.
    pub rcode: Rcode,
    /// Bits of the header's flags: AA, RA, AD and TC.
    pub flags: u16,
    /// Response code and flags of the reply that it was read from.
    read: (Rcode, u16),
    /// The type asked for, if the reply was read: aliases of that type are no way to another name.
    qtype: Type,
    /// The extended error (rfc8914); its text is [`Reply::extended_error`]'s.
    ede: Option<Ede>,
    /// Whether the reply may be given again to the same question, and to which clients.
    #[doc(hidden)]
    pub keep: Option<Keep>,
    /// The number of first bits of the client's network that the reply depends on, if the code says
    /// it; at most 128.
    #[doc(hidden)]
    pub scope: Option<u8>,
    /// Whether the code that made it has read what differs between clients; then it is not kept for
    /// all of them. Set by the caller of the code.
    #[doc(hidden)]
    pub saw_client: bool,
    /// How long resolvers are to cache the reply if it is negative, seconds; none if that is left
    /// to the records that it has.
    negative_ttl_secs: Option<u32>,
    /// Text of the extended error, or the reason for a failure.
    text: String,
    /// Tags of the query for the log.
    pub(crate) tags: Tags,
    /// The values that code has left with the query.
    pub(crate) state: QueryState,
}

/// Where a record of a reply lies, and what it has beside owner and data.
#[derive(Clone, Copy, Debug)]
struct RecordPlace {
    section: Section,
    rtype: Type,
    ttl: u32,
    /// Where the record's owner begins; its data follow.
    start: u32,
    /// Octets of the owner; 0 for the name asked for.
    owner_bytes: u8,
    /// Octets of the data.
    rdata_bytes: u16,
}

impl Default for Reply {
    /// A reply that passes the query on; records that are added to it are authoritative.
    fn default() -> Self {
        Self {
            octets: Vec::new(),
            records: Vec::new(),
            is_changed: false,
            is_overfull: false,
            ending: Ending::PassOn,
            rcode: Rcode::NOERROR,
            flags: flag::AA,
            read: (Rcode::NOERROR, 0),
            qtype: Type(0),
            ede: None,
            keep: None,
            scope: None,
            saw_client: false,
            negative_ttl_secs: None,
            text: String::new(),
            tags: Tags::default(),
            state: QueryState::default(),
        }
    }
}

impl Reply {
    /// Makes the reply as new, but for its memory and for tags and values, which are the query's.
    pub fn clear(&mut self) {
        self.clear_records();
        self.ending = Ending::PassOn;
        self.rcode = Rcode::NOERROR;
        self.flags = flag::AA;
        self.qtype = Type(0);
        self.ede = None;
        self.keep = None;
        self.scope = None;
        self.saw_client = false;
        self.negative_ttl_secs = None;
        self.text.clear();
    }

    /// Notes a value about the query under a key, for the query log and observers, instead of what
    /// was noted under that key before. Clients do not get to see it.
    pub fn tag(&mut self, key: impl Into<Cow<'static, str>>, value: impl Display) {
        self.tags.set(key.into(), &value);
    }

    /// Returns the tags of the query: keys and values, in the order in which they were added.
    pub fn tags(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tags.iter()
    }

    /// Leaves all records out.
    pub fn clear_records(&mut self) {
        self.is_changed = true;
        self.is_overfull = false;
        self.octets.clear();
        self.records.clear();
    }

    /// Whether more was added to it than any message holds.
    pub(super) fn is_overfull(&self) -> bool {
        self.is_overfull
    }

    /// Notes that more was added to it than any message holds.
    pub(super) fn note_overfull(&mut self) {
        self.is_overfull = true;
    }

    /// Takes over a reply to a query for a type. Records that cannot be read are left out; the
    /// engine writes none such.
    pub(crate) fn read(
        &mut self,
        reply: &ReplyWriter<'_>,
        qtype: Type,
        (rcode, flags): (Rcode, u16),
    ) {
        self.clear();
        self.qtype = qtype;
        for record in reply.records() {
            let start = self.octets.len();
            let owner = record.owner_into(&mut self.octets);
            let middle = self.octets.len();
            if owner.is_err() || record.rdata_into(&mut self.octets).is_err() {
                self.octets.truncate(start);
                continue;
            }
            // There is room: names written out make a message longer, but not all messages long.
            let _ = self.close(record.section, (record.rtype, record.ttl), [start, middle]);
        }
        (self.rcode, self.flags, self.ending) = (rcode, flags, Ending::Reply);
        self.read = (rcode, flags);
        self.is_changed = false;
    }

    /// Whether code has changed the reply since it was read.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed || self.read != (self.rcode, self.flags)
    }

    /// Adds a record. `owner` is a name in uncompressed wire form, or empty for the name asked for;
    /// `rdata` are data in uncompressed wire form that fit the type.
    ///
    /// # Errors
    /// When there is no room for it in any message.
    #[doc(hidden)]
    pub fn push(
        &mut self,
        section: Section,
        owner: &[u8],
        (rtype, ttl): (Type, u32),
        rdata: &[u8],
    ) -> Result<(), Overfull> {
        self.push_with(section, owner, (rtype, ttl), |out| out.extend_from_slice(rdata))
    }

    /// Adds a record as [`push`](Self::push) does, with data that `write` appends.
    ///
    /// # Errors
    /// When there is no room for it in any message.
    #[doc(hidden)]
    pub fn push_with(
        &mut self,
        section: Section,
        owner: &[u8],
        fixed: (Type, u32),
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Overfull> {
        debug_assert!(owner.is_empty() || name::wire_len(owner) == Some(owner.len()));
        let start = self.octets.len();
        self.octets.extend_from_slice(owner);
        let middle = self.octets.len();
        write(&mut self.octets);
        self.close(section, fixed, [start, middle])
    }

    /// Notes the record whose owner and data begin at these places.
    fn close(
        &mut self,
        section: Section,
        (rtype, ttl): (Type, u32),
        [start, middle]: [usize; 2],
    ) -> Result<(), Overfull> {
        self.is_changed = true;
        let end = self.octets.len();
        if end > RECORD_BYTES_MAX {
            self.octets.truncate(start);
            return Err(Overfull);
        }
        self.records.push(RecordPlace {
            section,
            rtype,
            ttl,
            start: start as u32,                 // at most RECORD_BYTES_MAX
            owner_bytes: (middle - start) as u8, // at most 255
            rdata_bytes: (end - middle) as u16,  // at most RECORD_BYTES_MAX
        });
        Ok(())
    }

    /// Sets the extended error, which says why there is no answer, or a different one (rfc8914).
    pub fn extended_error(&mut self, code: Ede, text: &str) {
        self.is_changed = true;
        self.ede = Some(code);
        self.text.clear();
        self.text.push_str(text);
    }

    /// Returns the extended error and its text.
    #[must_use]
    pub fn error(&self) -> Option<(Ede, &str)> {
        self.ede.map(|code| (code, &*self.text))
    }

    /// The records: section, owner (empty for the name asked for), type, TTL, data.
    pub fn records(&self) -> impl Iterator<Item = (Section, &[u8], Type, u32, &[u8])> {
        self.records.iter().map(|record| {
            let (owner, rdata) = record.places();
            let RecordPlace { section, rtype, ttl, .. } = *record;
            (section, &self.octets[owner], rtype, ttl, &self.octets[rdata])
        })
    }

    /// Whether the record that was added last is an alias.
    pub(crate) fn ends_with_alias(&self) -> bool {
        self.records.last().is_some_and(|record| record.rtype == Type::CNAME)
    }

    /// The least TTL of all records, and of the one by which a negative reply is cached; nothing if
    /// there are none, which say for how long they hold.
    #[must_use]
    pub fn shortest_ttl_secs(&self) -> Option<u32> {
        self.records.iter().map(|record| record.ttl).chain(self.ttl_of_denial()).min()
    }

    /// Copies another reply into this one, with TTLs that have counted down by `age_secs`. The tags
    /// of this reply stay, and those of the other are not copied.
    pub fn copy_aged(&mut self, other: &Self, age_secs: u32) {
        self.clear();
        self.octets.extend_from_slice(&other.octets);
        let aged = |record: &RecordPlace| RecordPlace {
            ttl: record.ttl.saturating_sub(age_secs),
            ..*record
        };
        self.records.extend(other.records.iter().map(aged));
        (self.ending, self.rcode, self.flags) = (other.ending, other.rcode, other.flags);
        (self.ede, self.scope) = (other.ede, other.scope);
        self.negative_ttl_secs = other.negative_ttl_secs.map(|ttl| ttl.saturating_sub(age_secs));
        self.text.push_str(&other.text);
    }

    /// Keeps those records only for which `keep` is true; it is given their section, type and data.
    pub fn retain(&mut self, mut keep: impl FnMut(Section, Type, &[u8]) -> bool) {
        self.is_changed = true;
        let octets = &self.octets;
        self.records
            .retain(|record| keep(record.section, record.rtype, &octets[record.places().1]));
    }

    /// Writes the records, the sections in their order, and `soa`, if there is one, into the
    /// authority section. What does not fit of the additional section is left out.
    ///
    /// # Errors
    /// When the other records do not fit; the reply then is as it was before.
    pub(crate) fn write(
        &self,
        reply: &mut ReplyWriter<'_>,
        soa: Option<NegativeSoa<'_>>,
    ) -> Result<(), Full> {
        let mark = reply.mark();
        let is_root = reply.buffer().get(HEADER_BYTES) == Some(&0); // pointers lead to longer names
        for wanted in [Section::Answer, Section::Authority, Section::Additional] {
            for record in self.records.iter().filter(|record| record.section == wanted) {
                let (owner, rdata) = record.places();
                let owner = match record.owner_bytes {
                    0 if is_root => Owner::Name(&[0]),
                    0 => Owner::Question { skip: 0 },
                    _ => Owner::Name(&self.octets[owner]),
                };
                let fixed = (record.rtype, Class::IN, record.ttl);
                match reply.record(wanted, owner, fixed, &self.octets[rdata]) {
                    Err(Full) if wanted != Section::Additional => {
                        reply.rewind(mark);
                        return Err(Full);
                    }
                    _ => {}
                }
            }
            if wanted == Section::Authority
                && let Some(NegativeSoa { apex, ttl_secs, rdata }) = soa
            {
                let fixed = (Type::SOA, Class::IN, ttl_secs);
                if reply.record(wanted, Owner::Name(apex), fixed, rdata).is_err() {
                    reply.rewind(mark);
                    return Err(Full);
                }
            }
        }
        Ok(())
    }

    /// Adds a record to the answer.
    pub fn answer(&mut self, record: impl Record) {
        self.add(Section::Answer, &record);
    }

    /// Adds records to the answer.
    pub fn answers<R: Record>(&mut self, records: impl IntoIterator<Item = R>) {
        for record in records {
            self.add(Section::Answer, &record);
        }
        self.reply(self.rcode);
    }

    /// Ends the query by an NXDOMAIN reply, as [`nxdomain`](Self::nxdomain) does, and says how long
    /// resolvers cache it: `60` seconds, say, as [`cache_negative`](Self::cache_negative) does, or
    /// an SOA record, which is sent as it is.
    pub fn nxdomain_with(&mut self, caching: impl NegativeCaching) {
        self.nxdomain();
        caching.apply(self);
    }

    /// Ends the query by a NODATA reply, as [`no_data`](Self::no_data) does, and says how long
    /// resolvers cache it, as [`nxdomain_with`](Self::nxdomain_with) does.
    pub fn no_data_with(&mut self, caching: impl NegativeCaching) {
        self.no_data();
        caching.apply(self);
    }

    /// Adds a record to the authority section: SOA beside a negative answer, NS in a referral.
    pub fn authority(&mut self, record: impl Record) {
        self.add(Section::Authority, &record);
    }

    /// Adds a record to the additional section, which is sent if there is room for it.
    pub fn additional(&mut self, record: impl Record) {
        self.add(Section::Additional, &record);
    }

    /// Adds a record. A reply that grows too long for any message becomes SERVFAIL without records,
    /// and stays that until it is cleared.
    fn add(&mut self, section: Section, record: &dyn Record) {
        self.ending = Ending::Reply;
        if self.is_overfull() {
            return;
        }
        let owner = record.owner().map_or(&[][..], Name::as_wire);
        let fixed = (record.rtype(), record.ttl_secs().min(TTL_SECS_MAX));
        let pushed = self.push_with(section, owner, fixed, |out| record.write_rdata(out));
        if let Err(overfull) = pushed {
            self.servfail(&overfull.to_string());
            self.note_overfull();
        }
    }

    /// Ends the query by a reply with a response code, and with the records that were added;
    /// SERVFAIL if those were too many for any message.
    pub fn reply(&mut self, rcode: Rcode) {
        let rcode = if self.is_overfull() { Rcode::SERVFAIL } else { rcode };
        (self.rcode, self.ending) = (rcode, Ending::Reply);
    }

    /// Ends the query by a NODATA reply: the name exists, but has no records of the type. Of the
    /// records that the reply has, only aliases that lead to the name stay, and an SOA record.
    pub fn no_data(&mut self) {
        self.deny(Rcode::NOERROR, self.qtype);
    }

    /// Ends the query by an NXDOMAIN reply: there is no such name. Of the records that the reply
    /// has, only aliases that lead to the name stay, and an SOA record.
    pub fn nxdomain(&mut self) {
        self.deny(Rcode::NXDOMAIN, self.qtype);
    }

    /// Ends the query for a type by a negative reply. Aliases stay, which lead to the name that is
    /// denied (rfc2308#2.1), with their signatures, and an SOA record.
    #[doc(hidden)]
    pub fn deny(&mut self, rcode: Rcode, qtype: Type) {
        let is_alias = |rtype: Type| {
            matches!(rtype, Type::CNAME | Type::DNAME) && rtype != qtype && qtype != Type::ANY
        };
        if !self.records.is_empty() {
            self.retain(|section, rtype, rdata| match (section, rtype, rdata.first_chunk()) {
                (Section::Answer, Type::RRSIG, Some(covered)) => {
                    is_alias(Type(u16::from_be_bytes(*covered)))
                }
                (Section::Answer, ..) => is_alias(rtype),
                (Section::Authority, ..) => rtype == Type::SOA,
                _ => false,
            });
        }
        self.reply(rcode);
    }

    /// Has resolvers cache a negative reply, NXDOMAIN or NODATA, for some seconds: it is sent with
    /// an SOA record for that (rfc2308#5), in place of one that the reply has. The record is that
    /// of the zone of this server that holds the name asked for, with the seconds in place of its
    /// minimum. If no zone with data here holds the name, the record is made for what the handler's
    /// pattern spells out behind its captures, or else for the name itself.
    ///
    /// A reply is negative that is NXDOMAIN, or NOERROR, has no records in its answer and is not a
    /// referral. Other replies get none, among them NXDOMAIN behind an alias, which is about
    /// another name, nor do those to which code adds an SOA record afterwards.
    pub fn cache_negative(&mut self, ttl_secs: u32) {
        self.clear_soa();
        self.negative_ttl_secs = Some(ttl_secs.min(TTL_SECS_MAX));
    }

    /// Leaves the SOA record of the authority section out.
    pub(super) fn clear_soa(&mut self) {
        self.retain(|section, rtype, _| (section, rtype) != (Section::Authority, Type::SOA));
    }

    /// Returns how long resolvers are to cache the reply, seconds, if it is negative and lacks the
    /// SOA record that says so.
    pub(crate) fn ttl_of_denial(&self) -> Option<u32> {
        let ttl_secs = self.negative_ttl_secs?;
        let has = |section, rtype| {
            self.records.iter().any(|it| it.section == section && rtype == it.rtype)
        };
        let is_denial = matches!(self.rcode, Rcode::NXDOMAIN | Rcode::NOERROR)
            && self.records.iter().all(|it| it.section != Section::Answer);
        let is_told = has(Section::Authority, Type::SOA) || has(Section::Authority, Type::NS);
        (is_denial && !is_told).then_some(ttl_secs)
    }

    /// Adds the SOA record by which resolvers cache a negative reply for some seconds, in place of
    /// one that the reply has, made for a zone of this name.
    #[doc(hidden)]
    pub fn push_soa_of(&mut self, zone: &Name, ttl_secs: u32) {
        if self.is_overfull() {
            return;
        }
        self.clear_authority();
        let zone = zone.as_wire();
        let pushed = self.push_with(Section::Authority, zone, (Type::SOA, ttl_secs), |out| {
            write_made_soa(zone, ttl_secs, out);
        });
        if let Err(overfull) = pushed {
            self.servfail(&overfull.to_string());
            self.note_overfull();
        }
    }

    /// Leaves the records of the authority section out.
    #[doc(hidden)]
    pub fn clear_authority(&mut self) {
        self.retain(|section, _, _| section != Section::Authority);
    }

    /// Refuses to answer.
    pub fn refused(&mut self) {
        self.flags &= !flag::AA;
        self.reply(Rcode::REFUSED);
    }

    /// Ends the query by a SERVFAIL reply and says why; the client may ask another server.
    pub fn servfail(&mut self, why: &str) {
        self.clear_records();
        self.flags &= !flag::AA;
        self.extended_error(Ede::OTHER, why);
        self.reply(Rcode::SERVFAIL);
    }

    /// Has the same answer given to the same question for so many seconds, without asking the code
    /// again: to all clients, or as `vary` says. Without that, an answer is not kept if the code
    /// has read the client's data.
    pub fn cache(&mut self, ttl_secs: u32, vary: Vary) {
        self.keep = Some(Keep { ttl_secs, vary });
    }

    /// Says that the reply depends on the first `bits` bits of the client's network alone: the
    /// scope with which it repeats the client subnet of the query (rfc7871#7.2.1), so that a
    /// resolver keeps the reply for those of its clients that it is for. 0: it is the same for all.
    ///
    /// Code that says nothing of it gets 0 if it has not read what differs between clients, else as
    /// many bits as the query tells. A denial is for all clients, whatever the code says, and a
    /// query without the option gets none (rfc7871#7.4, #7.2.1).
    ///
    /// With [`cache`](Self::cache), the server too keeps the reply for queries whose client subnet
    /// has the same first bits. Two scopes of one name must not overlap (rfc7871#7.2.1).
    pub fn client_subnet_scope(&mut self, bits: u8) {
        self.scope = Some(bits.min(SCOPE_BITS_MAX));
    }

    /// Sends nothing.
    #[expect(clippy::should_implement_trait, reason = "the word of all three languages")]
    pub fn drop(&mut self) {
        self.ending = Ending::Drop;
    }

    /// Leaves the query to the handler of the next wider pattern, and behind the last one to the
    /// zones, as if there were no handler.
    pub fn pass_on(&mut self) {
        self.ending = Ending::PassOn;
    }

    /// Has code elsewhere answer, which may wait. What that leaves as it is, goes on from here: a
    /// middleware's query at what follows it, a handler's as if that had passed it on. What is in
    /// this reply is not sent. Code that has waited itself cannot say so: its answer is SERVFAIL
    /// then.
    pub fn defer_to(&mut self, code: Elsewhere) {
        self.ending = Ending::Defer(code);
    }

    /// Whether the reply has AA: it has unless this was set otherwise, and REFUSED and SERVFAIL
    /// have not.
    pub fn authoritative(&mut self, is_authoritative: bool) {
        self.flags = if is_authoritative { self.flags | flag::AA } else { self.flags & !flag::AA };
    }
}

impl RecordPlace {
    /// Where owner and data lie.
    fn places(&self) -> (Range<usize>, Range<usize>) {
        let start = self.start as usize;
        let middle = start + usize::from(self.owner_bytes);
        (start..middle, middle..middle + usize::from(self.rdata_bytes))
    }
}

/// How long resolvers are to cache a negative reply: a number of seconds, or the SOA record that
/// says it (rfc2308#5). Another record is SERVFAIL.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how long resolvers cache a negative reply",
    label = "expected seconds or a record",
    note = "give a number of seconds, a `u32`, or a `zonda::Soa` record"
)]
pub trait NegativeCaching {
    /// Has a negative reply say it.
    #[doc(hidden)]
    fn apply(self, reply: &mut Reply);
}

impl NegativeCaching for u32 {
    fn apply(self, reply: &mut Reply) {
        reply.cache_negative(self);
    }
}

impl<R: Record> NegativeCaching for R {
    fn apply(self, reply: &mut Reply) {
        if self.rtype() != Type::SOA {
            return reply.servfail("the record that says how long to cache it is no SOA record");
        }
        reply.clear_soa();
        reply.authority(self);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_negative_reply_has_the_soa_record_that_says_how_long_it_is_cached() {
        let long = format!("{}{}", "a123456789b123456789.".repeat(11), "c1234567890123");
        for (zone, mailbox) in [("users.example", "hostmaster.users.example"), (&*long, &*long)] {
            let (zone, mailbox): (Name, Name) = (zone.parse().unwrap(), mailbox.parse().unwrap());
            let mut reply = Reply::default();
            reply.nxdomain();
            reply.push_soa_of(&zone, 60);
            let (section, owner, rtype, ttl, rdata) = reply.records().next().unwrap();
            assert_eq!((section, owner), (Section::Authority, zone.as_wire()));
            assert_eq!((rtype, ttl, reply.rcode), (Type::SOA, 60, Rcode::NXDOMAIN));
            assert!(zonda_wire::rdata::validate(Type::SOA, rdata).is_ok());
            let names = [zone.as_wire(), mailbox.as_wire()].concat();
            assert!(rdata.starts_with(&names) && rdata.ends_with(&60_u32.to_be_bytes()));
        }
    }
}
