//! What one step changes in a zone.
//!
//! The unit of dynamic update, transfer, programs, stores and signing: whole RRsets, and what
//! becomes of the serial.

use super::{BuildError, TooLarge};
use crate::rules::OwnerRule;
use std::fmt;
use zonda_wire::rdata::RdataError;
use zonda_wire::{Name, Type};

/// Longest time to live, seconds (rfc2181#8).
pub(crate) const TTL_MAX: u32 = i32::MAX as u32;

/// Data of the records of a set, each in wire form without compression.
pub type Rdatas = Vec<Box<[u8]>>;

/// Changes of a zone that take effect together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeSet {
    /// The sets that change, in this order: of several changes of a set the last one counts.
    pub sets: Vec<SetChange>,
    /// The serial that the zone has afterwards.
    pub serial: Serial,
}

/// A change of one RRset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetChange {
    /// The owner has this set, whether or not it had one of the type. Of RRSIG, the signatures over
    /// one type are a set of their own.
    Put {
        /// The name of the records.
        owner: Name,
        /// The type of the records.
        rtype: Type,
        /// The records' time to live, seconds.
        ttl: u32,
        /// The records' data; at least one, in any order.
        data: Rdatas,
    },
    /// The owner has no set of this type, whether or not it had one; of RRSIG, no signatures.
    Remove {
        /// The name of the records.
        owner: Name,
        /// The type of the records.
        rtype: Type,
    },
    /// The owner has no records, whether or not it had some.
    RemoveName {
        /// The name of the records.
        owner: Name,
    },
    /// The owner has no signatures over this type, whether or not it had some.
    RemoveSignatures {
        /// The name of the records.
        owner: Name,
        /// The type of the records that the signatures sign.
        covered: Type,
    },
}

impl SetChange {
    /// The name whose records change.
    #[must_use]
    pub fn owner(&self) -> &Name {
        match self {
            Self::Put { owner, .. }
            | Self::Remove { owner, .. }
            | Self::RemoveName { owner }
            | Self::RemoveSignatures { owner, .. } => owner,
        }
    }

    /// The type of the records that change; ANY, where those of all types do.
    #[must_use]
    pub fn rtype(&self) -> Type {
        match self {
            Self::Put { rtype, .. } | Self::Remove { rtype, .. } => *rtype,
            Self::RemoveName { .. } => Type::ANY,
            Self::RemoveSignatures { .. } => Type::RRSIG,
        }
    }
}

/// What becomes of a zone's serial when the zone changes. A change that changes nothing leaves it,
/// unless it says exactly which one the zone has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Serial {
    /// The serial stays, or is that of the SOA record that the change puts.
    #[default]
    Keep,
    /// The serial becomes greater by a policy, unless the change puts an SOA record with a greater
    /// one.
    Bump(SerialPolicy),
    /// The serial becomes this, be it greater or not.
    Exactly(u32),
}

/// How a zone's next serial is found. Where a policy's own value is not greater than the present
/// serial, the next one is the present one plus 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SerialPolicy {
    /// The present serial plus 1, never 0.
    Increment,
    /// The seconds since 1970, which are given.
    UnixTime(u32),
    /// The day as YYYYMMDD with two digits behind it, which begin with 00; the seconds since 1970
    /// are given.
    Date(u32),
}

impl SerialPolicy {
    /// Returns the serial that follows another.
    #[must_use]
    pub fn next(self, serial: u32) -> u32 {
        let wanted = match self {
            Self::Increment => serial,
            Self::UnixTime(secs) => secs,
            Self::Date(secs) => date(secs),
        };
        match is_greater(wanted, serial) {
            true => wanted,
            false => serial.checked_add(1).unwrap_or(1), // some secondaries take 0 for "unknown"
        }
    }
}

/// Whether a serial is greater than another one (rfc1982#3.2).
#[must_use]
pub fn is_greater(serial: u32, than: u32) -> bool {
    serial != than && serial.wrapping_sub(than) < 1 << 31
}

/// The day of some seconds since 1970, as YYYYMMDD00.
fn date(secs: u32) -> u32 {
    // Days are counted from the first of March of the year 0, so that leap days end a year; 400
    // years have 146,097 days.
    let days = secs / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // 0 is March
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        ..10 => (year + 400 * era, month + 3),
        _ => (year + 400 * era + 1, month - 9),
    };
    ((year * 100 + month) * 100 + day) * 100
}

/// The serial in the data of an SOA record (rfc1035#3.3.13).
pub(crate) fn serial_of(soa: &[u8]) -> u32 {
    let at = soa.len().saturating_sub(20);
    soa[at..].first_chunk().map_or(0, |octets| u32::from_be_bytes(*octets))
}

/// Why a change is refused; the zone stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeError {
    /// The name of the record that is refused.
    pub owner: Name,
    /// The type of the record that is refused.
    pub rtype: Type,
    /// The rule that the change breaks.
    pub rule: ChangeRule,
}

/// A rule that a change breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeRule {
    /// The name lies outside the zone.
    OutsideZone,
    /// No zone holds records of the type.
    NotData,
    /// A set has no records.
    NoRecords,
    /// The time to live is over 2³¹ − 1.
    TtlTooLong,
    /// The data are not those of a record of the type.
    Data(RdataError),
    /// Signatures of one set sign several types.
    SeveralCovered,
    /// The zone would have no SOA record.
    NoSoa,
    /// The records of the name do not go together.
    Owner(OwnerRule),
    /// A difference removes a record that the zone does not have.
    NoSuchRecord,
    /// A difference adds a record that the zone has.
    RecordExists,
    /// The zone, or the set, would be larger than its form in memory can hold.
    TooLarge,
    /// Absence would be proven by NSEC3, which this program was built without.
    NoNsec3,
}

impl ChangeError {
    /// The error of a record.
    pub(super) fn new(owner: &[u8], rtype: Type, rule: ChangeRule) -> Self {
        Self { owner: Name::from_wire(owner).unwrap_or_else(|_| Name::root()), rtype, rule }
    }

    /// The error of a zone that would be too large.
    pub(super) fn too_large(owner: &[u8]) -> impl Fn(TooLarge) -> Self + '_ {
        |_| Self::new(owner, Type::ANY, ChangeRule::TooLarge)
    }
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.owner, self.rtype, self.rule)
    }
}

impl std::error::Error for ChangeError {}

impl fmt::Display for ChangeRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutsideZone => f.write_str("the name is not in this zone"),
            Self::NotData => f.write_str("no zone holds records of this type"),
            Self::NoRecords => {
                f.write_str("the set has no records: give at least one, or remove the set")
            }
            Self::TtlTooLong => write!(f, "the TTL is over {TTL_MAX} seconds"),
            Self::Data(error) => write!(f, "the data are malformed: {error}"),
            Self::SeveralCovered => {
                f.write_str("signatures over several types: put those over each type by themselves")
            }
            Self::NoSoa => f.write_str("the zone would have no SOA record at its apex"),
            Self::Owner(rule) => rule.fmt(f),
            Self::NoSuchRecord => f.write_str("the zone does not have the record to be removed"),
            Self::RecordExists => f.write_str("the zone has the record to be added already"),
            Self::TooLarge => f.write_str(
                "the zone would be larger than its form in memory allows; a set has at most 65535 \
                 records",
            ),
            Self::NoNsec3 => BuildError::NoNsec3.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_becomes_greater_by_each_policy() {
        const NOON: u32 = 1_709_208_000; // 2024-02-29 12:00:00 UTC
        for (policy, serial, expected) in [
            (SerialPolicy::Increment, 7, 8),
            (SerialPolicy::Increment, u32::MAX, 1),
            (SerialPolicy::UnixTime(NOON), 7, NOON),
            (SerialPolicy::UnixTime(NOON), NOON, NOON + 1),
            (SerialPolicy::UnixTime(NOON), NOON + 9, NOON + 10),
            (SerialPolicy::UnixTime(NOON), 2_024_022_900, 2_024_022_901),
            (SerialPolicy::UnixTime(NOON), 4_000_000_000, NOON), // beyond the wrap
            (SerialPolicy::Date(NOON), 7, 2_024_022_900),
            (SerialPolicy::Date(NOON), 2_024_022_900, 2_024_022_901),
            (SerialPolicy::Date(NOON), 2_024_022_999, 2_024_023_000),
        ] {
            assert_eq!(policy.next(serial), expected, "{policy:?} {serial}");
            assert!(is_greater(policy.next(serial), serial), "{policy:?} {serial}");
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for (secs, expected) in [
            (0, 1_970_010_100),
            (951_782_399, 2_000_022_800),
            (951_782_400, 2_000_022_900),
            (951_868_800, 2_000_030_100),
            (1_735_689_599, 2_024_123_100),
            (1_735_689_600, 2_025_010_100),
            (4_107_542_400, 2_100_030_100),
        ] {
            assert_eq!(date(secs), expected, "{secs}");
        }
    }
}
