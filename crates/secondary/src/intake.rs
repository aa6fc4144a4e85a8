//! The reply to a question for a transfer, message by message: what it amounts to.
//!
//! ```text
//! whole zone   SOA | records … | SOA                             (rfc5936#2.2)
//! changes      SOA new | { SOA old | removed … | SOA next | added … }… | SOA new   (rfc1995#4)
//! no changes   SOA
//! ```
//! Whether the reply to a question for changes is one or the other, its second record says: with
//! the serial that was asked from, an SOA record begins changes.
//!
//! # Invariants
//! - What comes out is whole, and within the limits, or nothing comes out.
//! - The SOA records at both ends are equal, but for the case of letters in their names.
//! - Changes begin with the version that was asked from, each with the serial that the one before
//!   ends with, and serials rise.

use crate::exchange::Limits;
use crate::fault::Fault;
use crate::whole_zone::WholeZone;
use std::fmt;
use zonda_wire::name::NAME_BYTES_MAX;
use zonda_wire::{Class, Ede, Name, Rcode, StreamMessage, StreamRecord, Type, name};
use zonda_zone::{Diff, HashSeed, Record, is_greater};

/// Octets of the numbers at the end of an SOA record's data.
const SOA_NUMBERS_BYTES: usize = 5 * 4;
/// Longest time to live, seconds (rfc2181#8).
const TTL_MAX: u32 = i32::MAX as u32;
/// Changes that a reply may have: each makes a version of the zone. Where there are more, the whole
/// zone takes less time.
const CHANGES_MAX: usize = 10_000;
/// Octets of memory that a record takes besides its owner and data.
const RECORD_BYTES: usize = 9;
/// Octets of records that their arena holds, whatever the limits are.
const ARENA_BYTES_MAX: u64 = u32::MAX as u64;
/// The error of more records than their arena holds.
const ARENA_FULL: Fault = Fault::TooManyOctets(ARENA_BYTES_MAX);

/// What a reply amounts to.
pub enum Transferred {
    /// The primary has no newer version, but that with this serial.
    UpToDate(u32),
    /// All records of the zone, the SOA record once.
    Zone(WholeZone),
    /// Changes that follow each other; at least one.
    Changes(Vec<Diff>),
}

impl fmt::Debug for Transferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UpToDate(serial) => write!(f, "UpToDate({serial})"),
            Self::Zone(records) => write!(f, "Zone({} records)", records.len()),
            Self::Changes(changes) => f.debug_tuple("Changes").field(changes).finish(),
        }
    }
}

/// Takes in the messages of a reply.
pub struct Intake {
    apex: Name,
    /// The serial of the version that the secondary has, if changes were asked for.
    base: Option<u32>,
    limits: Limits,
    /// The secret by which names are hashed.
    seed: HashSeed,
    state: State,
    /// The SOA record of the version that the primary has: its TTL and data.
    soa: (u32, Vec<u8>),
    /// The records of the whole zone.
    zone: WholeZone,
    /// The changes; the last may be under way.
    changes: Vec<Diff>,
    /// Records so far.
    records: u64,
    /// Octets of messages so far.
    octets: u64,
    /// Octets of memory that the records take so far: names in messages are compressed.
    stored: u64,
    /// Messages so far.
    messages: u64,
    /// Records left out, as they lie outside the zone.
    outside: u64,
    /// Memory for the record that is read.
    buffer: Vec<u8>,
    /// The seconds until the zone expires at the primary, if it says that (rfc7314).
    expire: Option<u32>,
}

/// What the next record may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first SOA record.
    Begin,
    /// The second record, which says what the reply is.
    Second,
    /// A record of the whole zone, or the SOA record at its end.
    Whole,
    /// A record that a change removes, or the SOA record of what it leads to.
    Removed,
    /// A record that a change adds, the SOA record of the next one, or that at the end.
    Added,
    /// No record: the reply is whole.
    End,
}

impl Intake {
    /// Takes in a reply about the zone with an apex, to a question for changes since the version
    /// with a serial, or else for the whole zone. The zones of the server hash names by a secret.
    #[must_use]
    pub fn new(apex: &Name, base: Option<u32>, limits: Limits, seed: HashSeed) -> Self {
        Self {
            apex: apex.to_lowercase(),
            base,
            limits,
            seed,
            state: State::Begin,
            soa: (0, Vec::new()),
            zone: WholeZone::default(),
            changes: Vec::new(),
            records: 0,
            octets: 0,
            stored: 0,
            messages: 0,
            outside: 0,
            buffer: Vec::with_capacity(512),
            expire: None,
        }
    }

    /// Whether the whole zone comes where changes were asked for, and its end has not come yet.
    #[must_use]
    pub fn is_unasked_whole_zone(&self) -> bool {
        self.base.is_some() && self.state == State::Whole
    }

    /// Whether changes have come.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Returns the octets of memory that the records take so far.
    #[must_use]
    pub fn octets_stored(&self) -> u64 {
        self.stored
    }

    /// Returns the octets of memory, at most, that the whole zone takes at some moment until it is
    /// made, besides what its records tell by their number and their octets.
    #[must_use]
    pub fn octets_besides(&self) -> u64 {
        self.zone.bytes_besides()
    }

    /// Takes the next message, of so many octets; returns whether the reply is whole.
    ///
    /// # Errors
    /// When the reply is not to be taken.
    pub fn take(&mut self, mut message: StreamMessage<'_>, octets: usize) -> Result<bool, Fault> {
        match (message.rcode(), message.ede()) {
            (Rcode::NOERROR, _) => {}
            (Rcode::SERVFAIL, Some(Ede::NOT_READY)) => {
                return Err(Fault::NotReady(Rcode::SERVFAIL));
            }
            (rcode, _) => return Err(Fault::Refused(rcode)),
        }
        self.messages += 1;
        self.octets += octets as u64;
        if self.octets > self.limits.octets_max.saturating_mul(self.factor()) {
            return Err(self.too_large(Fault::TooManyOctets(self.limits.octets_max)));
        }
        if self.state == State::Begin && message.records_left() == 0 {
            return Err(Fault::NoRecords);
        }
        self.expire = message.expire_secs().or(self.expire);
        let mut buffer = std::mem::take(&mut self.buffer);
        let taken = self.take_records(&mut message, &mut buffer);
        self.buffer = buffer;
        taken?;
        let is_single = self.state == State::Second && self.base.is_some();
        Ok(self.state == State::End || is_single && !self.is_newer())
    }

    /// Takes the records of a message.
    fn take_records(
        &mut self,
        message: &mut StreamMessage<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        while let Some(record) = message.next(buffer)? {
            self.records += 1;
            let factor = self.factor();
            if self.records > self.limits.records_max.saturating_mul(factor).saturating_add(1) {
                return Err(self.too_large(Fault::TooManyRecords(self.limits.records_max)));
            }
            self.stored += octets_of_record(record.owner.len(), record.rdata.len());
            if self.stored > self.limits.octets_max.saturating_mul(factor) {
                return Err(self.too_large(Fault::TooManyOctets(self.limits.octets_max)));
            }
            if record.class != Class::IN {
                return Err(Fault::Class(record.class));
            }
            if record.rtype.is_meta() || record.rtype.0 == 0 {
                let owner = Name::from_wire(record.owner).unwrap_or_else(|_| Name::root());
                return Err(Fault::NotData(owner, record.rtype));
            }
            self.take_record(record)?;
            // The zone would not be within its limit, however few octets its records have.
            if self.zone.parents_bytes_least() > self.limits.octets_max {
                return Err(Fault::TooManyOctets(self.limits.octets_max));
            }
        }
        Ok(())
    }

    /// How many times as large as the zone the reply may be: changes twice.
    fn factor(&self) -> u64 {
        if self.may_be_changes() { 2 } else { 1 }
    }

    /// Whether changes were asked for, and it is not the whole zone that comes.
    fn may_be_changes(&self) -> bool {
        self.base.is_some() && self.state != State::Whole
    }

    /// The fault of a reply beyond a limit: the zone that changes lead to may be within it.
    fn too_large(&self, of_zone: Fault) -> Fault {
        match (self.may_be_changes(), of_zone) {
            (true, Fault::TooManyRecords(limit)) => {
                Fault::ChangesOfTooManyRecords(limit.saturating_mul(2))
            }
            (true, Fault::TooManyOctets(limit)) => {
                Fault::ChangesOfTooManyOctets(limit.saturating_mul(2))
            }
            (_, fault) => fault,
        }
    }

    /// Takes a record of class IN.
    fn take_record(&mut self, record: StreamRecord<'_>) -> Result<(), Fault> {
        let is_soa =
            record.rtype == Type::SOA && record.owner.eq_ignore_ascii_case(self.apex.as_wire());
        let serial = if is_soa { serial_of(record.rdata)? } else { 0 };
        match (self.state, is_soa) {
            (State::Begin, true) => {
                self.soa = (record.ttl, record.rdata.to_vec());
                self.state = State::Second;
                return Ok(());
            }
            (State::Begin, false) => return Err(Fault::NoSoa),
            (State::End, _) => return Err(Fault::Surplus),
            (State::Second, true) => return self.take_second_soa(record, serial),
            (State::Second, false) => {
                self.state = State::Whole;
                self.begin_zone()?;
                self.keep(record)?;
            }
            (State::Whole, true) => {
                self.check_end(record)?;
                self.state = State::End;
            }
            (State::Removed, true) => {
                let from = self.changes.last().map_or(0, |change| change.from);
                if !is_greater(serial, from) {
                    return Err(Fault::Backwards(from, serial));
                }
                if let Some(change) = self.changes.last_mut() {
                    change.to = serial;
                }
                self.state = State::Added;
                self.keep(record)?;
            }
            (State::Added, true) => self.end_change(record, serial)?,
            (State::Whole | State::Removed | State::Added, false) => self.keep(record)?,
        }
        Ok(())
    }

    /// Takes an SOA record that follows the first one.
    fn take_second_soa(&mut self, record: StreamRecord<'_>, serial: u32) -> Result<(), Fault> {
        let is_end = is_same_soa(record.rdata, &self.soa.1);
        match self.base {
            Some(base) if serial == base && !is_end => self.begin_change(record, serial),
            _ if is_end => {
                self.begin_zone()?; // a zone of nothing but its SOA record
                self.state = State::End;
                Ok(())
            }
            Some(_) => Err(Fault::OtherBase(serial)),
            None => Err(Fault::SoaDiffers),
        }
    }

    /// Takes the SOA record behind what a change adds.
    fn end_change(&mut self, record: StreamRecord<'_>, serial: u32) -> Result<(), Fault> {
        let to = self.changes.last().map_or(0, |change| change.to);
        let last = serial_of(&self.soa.1)?;
        if to == last {
            self.check_end(record)?;
            self.state = State::End;
            return Ok(());
        }
        match serial == to {
            true => self.begin_change(record, serial),
            false => Err(Fault::Gap(to, serial)),
        }
    }

    /// Begins the change of a version with this SOA record.
    fn begin_change(&mut self, record: StreamRecord<'_>, serial: u32) -> Result<(), Fault> {
        if self.changes.len() == CHANGES_MAX {
            return Err(Fault::TooManyChanges(CHANGES_MAX));
        }
        self.changes.push(Diff { from: serial, to: serial, ..Diff::default() });
        self.state = State::Removed;
        self.keep(record)
    }

    /// Begins the whole zone with its SOA record.
    fn begin_zone(&mut self) -> Result<(), Fault> {
        let (ttl, rdata) = &self.soa;
        let (owner, rtype, ttl) = (self.apex.as_wire(), Type::SOA, capped(*ttl));
        let record = Record { owner, rtype, ttl, rdata };
        self.zone.push(record, (&self.apex, self.seed)).map_err(|_| ARENA_FULL)
    }

    /// Checks the SOA record at the end.
    fn check_end(&self, record: StreamRecord<'_>) -> Result<(), Fault> {
        is_same_soa(record.rdata, &self.soa.1).then_some(()).ok_or(Fault::SoaDiffers)
    }

    /// Keeps a record, unless it lies outside the zone.
    fn keep(&mut self, record: StreamRecord<'_>) -> Result<(), Fault> {
        let mut lower = [0; NAME_BYTES_MAX];
        let owner = lower.get_mut(..record.owner.len()).unwrap_or_default(); // names are no longer
        owner.copy_from_slice(&record.owner[..owner.len()]);
        owner.make_ascii_lowercase();
        if !name::is_at_or_below(owner, self.apex.as_wire()) {
            self.outside += 1;
            return Ok(());
        }
        let StreamRecord { rtype, ttl, rdata, .. } = record;
        let record = Record { owner, rtype, ttl: capped(ttl), rdata };
        let records = match (self.state, self.changes.last_mut()) {
            (State::Removed, Some(change)) => &mut change.removed,
            (State::Added, Some(change)) => &mut change.added,
            _ => {
                let zone = self.zone.push(record, (&self.apex, self.seed));
                return zone.map_err(|_| ARENA_FULL);
            }
        };
        let is_pushed = records.push(record, 0).is_ok();
        match (is_pushed, self.may_be_changes()) {
            (true, _) => Ok(()),
            (false, true) => Err(Fault::ChangesOfTooManyOctets(ARENA_BYTES_MAX)),
            (false, false) => Err(ARENA_FULL),
        }
    }

    /// Whether the primary has a newer version than that which was asked from.
    fn is_newer(&self) -> bool {
        let serial = serial_of(&self.soa.1).unwrap_or_default();
        self.base.is_some_and(|base| is_greater(serial, base))
    }

    /// Returns what the reply amounts to.
    ///
    /// # Errors
    /// When it is not whole.
    pub fn finish(self) -> Result<Transferred, Fault> {
        match self.state {
            State::Second if self.base.is_some() && !self.is_newer() => {
                Ok(Transferred::UpToDate(serial_of(&self.soa.1)?))
            }
            State::End if self.changes.is_empty() => Ok(Transferred::Zone(self.zone)),
            State::End => Ok(Transferred::Changes(self.changes)),
            _ => Err(Fault::Closed),
        }
    }

    /// Returns the serial of the version that the primary has, once its SOA record has come.
    #[must_use]
    pub fn serial(&self) -> Option<u32> {
        serial_of(&self.soa.1).ok()
    }

    /// Returns the seconds until the zone expires at the primary, if it says that.
    #[must_use]
    pub fn expire_secs(&self) -> Option<u32> {
        self.expire
    }

    /// Returns how many messages, records, and octets of messages there were so far, and how many
    /// of the records lie outside the zone and were left out.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let Self { messages, records, octets, outside, .. } = *self;
        Counts { messages, records, octets, outside }
    }
}

/// The size of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of messages.
    pub messages: u64,
    /// Number of records, the SOA records of all versions included.
    pub records: u64,
    /// Octets of all messages.
    pub octets: u64,
    /// Records left out, as they lie outside the zone.
    pub outside: u64,
}

/// Returns the octets of memory that a record takes whose owner and data have so many.
#[must_use]
pub fn octets_of_record(owner: usize, data: usize) -> u64 {
    (RECORD_BYTES + owner + data) as u64
}

/// A time to live that the zone may have: one that is too long counts as 0 (rfc2181#8).
fn capped(ttl: u32) -> u32 {
    if ttl > TTL_MAX { 0 } else { ttl }
}

/// Whether the data of two SOA records are equal, but for the case of letters in their names: those
/// of a message may be pointers to names that were written otherwise.
fn is_same_soa(one: &[u8], other: &[u8]) -> bool {
    let split = |soa: &[u8]| soa.len().checked_sub(SOA_NUMBERS_BYTES);
    let (Some(at), true) = (split(one), one.len() == other.len()) else { return false };
    one[..at].eq_ignore_ascii_case(&other[..at]) && one[at..] == other[at..]
}

/// Returns the serial in the data of an SOA record.
///
/// # Errors
/// When the data are too short.
pub fn serial_of(soa: &[u8]) -> Result<u32, Fault> {
    numbers_of(soa).map(|[serial, ..]| serial)
}

/// Returns the numbers at the end of an SOA record's data: serial, refresh, retry, expire, minimum
/// (rfc1035#3.3.13).
///
/// # Errors
/// When the data are too short.
pub fn numbers_of(soa: &[u8]) -> Result<[u32; 5], Fault> {
    let start = soa.len().checked_sub(SOA_NUMBERS_BYTES).ok_or(Fault::SoaData)?;
    let mut numbers = [0; 5];
    for (number, octets) in numbers.iter_mut().zip(soa[start..].as_chunks::<4>().0) {
        *number = u32::from_be_bytes(*octets);
    }
    Ok(numbers)
}
