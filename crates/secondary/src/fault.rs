//! Why a primary's reply is not taken.

use std::fmt;
use std::io;
use std::time::Duration;
use zonda_wire::tsig::SignatureFault;
use zonda_wire::{Class, Name, Rcode, StreamFault, Type};

/// Why a primary's reply is not taken; the version that the secondary has stays in force.
#[derive(Debug)]
pub enum Fault {
    /// The primary cannot be reached, or the connection broke.
    Io(io::Error),
    /// The primary sent nothing that could be used for this long.
    Silence(Duration),
    /// The transfer was not whole after this time.
    TooSlow(Duration),
    /// The primary closed the connection before the reply was whole.
    Closed,
    /// A message cannot be read.
    Message(StreamFault),
    /// A message is not known to come from a holder of the key.
    Signature(SignatureFault),
    /// The primary answers with an error.
    Refused(Rcode),
    /// The primary answers with an error that is not signed, though the query was.
    RefusedUnsigned(Rcode),
    /// The primary answers with an error, and says that it is not ready for the question now
    /// (rfc8914#4.15): other transfers may have all places.
    NotReady(Rcode),
    /// The primary is not authoritative for the zone.
    NotAuthoritative,
    /// The reply has no records.
    NoRecords,
    /// The first record is not the SOA record of the zone.
    NoSoa,
    /// The data of an SOA record are too short.
    SoaData,
    /// The SOA record at the end is not the one at the beginning.
    SoaDiffers,
    /// A record of another class.
    Class(Class),
    /// A record of a type that no zone holds.
    NotData(Name, Type),
    /// Changes that do not begin with the version that the secondary has, but with this serial.
    OtherBase(u32),
    /// Changes that end with one serial and go on with another.
    Gap(u32, u32),
    /// Changes that lead from one serial to another that is not greater.
    Backwards(u32, u32),
    /// Records follow the end of the zone.
    Surplus,
    /// More records than the limit.
    TooManyRecords(u64),
    /// More octets than the limit.
    TooManyOctets(u64),
    /// Changes with more records than they may have; the zone that they lead to may have few.
    ChangesOfTooManyRecords(u64),
    /// Changes with more octets than they may have, likewise.
    ChangesOfTooManyOctets(u64),
    /// A set of a name and type with more records than the limit.
    TooManyOfSet(Name, Type, usize),
    /// A name with records of more types than the limit.
    TooManyTypes(Name, usize),
    /// More changes than are taken one by one.
    TooManyChanges(usize),
    /// Fewer octets than so many in a time.
    TooFewOctets(u64, Duration),
    /// Other transfers have the memory that this one needs.
    NoMemory {
        /// Octets that it would have needed so far.
        octets: u64,
        /// Whether the whole zone came where changes were asked for.
        is_of_whole_zone: bool,
    },
    /// The server is stopping.
    Stopped,
}

/// What a fault says of a primary that was asked for changes of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangesLack {
    /// The primary may send none of this zone, or was busy: a second question tells.
    Possible,
    /// The primary sends none of this zone.
    Certain,
}

impl Fault {
    /// Whether the zone as a whole is to be asked for when changes were asked for, of the same
    /// primary: not where the key is wrong, no more time is left, or the version itself is one that
    /// cannot be taken.
    #[must_use]
    pub fn allows_whole_zone(&self) -> bool {
        !matches!(
            self,
            Self::Signature(_)
                | Self::NoMemory { .. }
                | Self::Stopped
                | Self::Class(_)
                | Self::NotData(..)
                | Self::TooManyRecords(_)
                | Self::TooManyOctets(_)
                | Self::TooSlow(_)
                | Self::TooFewOctets(..)
        )
    }

    /// Whether the primary does not know how to send changes of any zone, so that it need not be
    /// asked for them for a while.
    #[must_use]
    pub fn is_lack_of_changes(&self) -> bool {
        matches!(self, Self::Refused(Rcode::NOTIMP | Rcode::FORMERR))
    }

    /// Whether the primary has sent no changes at all, be it that it cannot for this zone. A
    /// primary that has no place for a transfer has the same errors as one that cannot, unless it
    /// says that it is not ready.
    #[must_use]
    pub fn without_changes(&self) -> Option<ChangesLack> {
        match self {
            Self::Refused(Rcode::SERVFAIL | Rcode::REFUSED)
            | Self::RefusedUnsigned(Rcode::SERVFAIL | Rcode::REFUSED)
            | Self::Silence(_)
            | Self::Closed => Some(ChangesLack::Possible),
            Self::Refused(_)
            | Self::RefusedUnsigned(_)
            | Self::Message(_)
            | Self::NoRecords
            | Self::NoSoa => Some(ChangesLack::Certain),
            _ => None,
        }
    }

    /// Whether a signature is wrong, or missing in an error.
    #[must_use]
    pub fn is_of_signature(&self) -> bool {
        matches!(self, Self::Signature(_) | Self::RefusedUnsigned(_))
    }

    /// Whether the version of the zone is at fault, so that it cannot be taken the next time either
    /// unless the primary or the configuration changes.
    #[must_use]
    pub fn is_of_version(&self) -> bool {
        matches!(
            self,
            Self::Class(_)
                | Self::NotData(..)
                | Self::NoSoa
                | Self::SoaData
                | Self::SoaDiffers
                | Self::Surplus
                | Self::NoRecords
                | Self::TooManyRecords(_)
                | Self::TooManyOctets(_)
                | Self::TooSlow(_)
                | Self::TooFewOctets(..)
        )
    }

    /// Whether the primary sends too slowly: of changes, the next attempt is to be without them.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        matches!(self, Self::TooSlow(_) | Self::TooFewOctets(..))
    }

    /// Whether the primary did not answer at all.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Io(_) | Self::Silence(_))
    }

    /// Writes which limit of records the reply is beyond; nothing for other faults.
    fn write_limit(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyRecords(limit) => write!(
                f,
                "the zone has more than {limit} records: raise `records-max` of [zone.secondary]"
            ),
            Self::TooManyOctets(limit) => write!(
                f,
                "the zone has more than {limit} octets: raise `size-max` of [zone.secondary]"
            ),
            Self::ChangesOfTooManyRecords(limit) => {
                write!(f, "the changes have more than {limit} records")
            }
            Self::ChangesOfTooManyOctets(limit) => {
                write!(f, "the changes have more than {limit} octets")
            }
            Self::TooManyOfSet(name, rtype, limit) => write!(
                f,
                "{name} has more than {limit} records of type {rtype}: raise \
                 `records-per-set-max` of [zone.secondary]"
            ),
            Self::TooManyTypes(name, limit) => write!(
                f,
                "{name} has records of more than {limit} types: raise `types-per-name-max` of \
                 [zone.secondary]"
            ),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Silence(time) => write!(f, "no answer within {time:?}"),
            Self::TooSlow(time) => write!(
                f,
                "the transfer was not whole after {time:?}: raise `time-max` of [zone.secondary] \
                 if the zone is large"
            ),
            Self::Closed => f.write_str("the connection was closed before the reply was whole"),
            Self::Message(fault) => fault.fmt(f),
            Self::Signature(fault) => fault.fmt(f),
            Self::Refused(Rcode::REFUSED) => f.write_str(
                "the primary answers REFUSED: let it transfer the zone to this server's address \
                 and key",
            ),
            Self::Refused(Rcode::NOTAUTH) => f.write_str(
                "the primary answers NOTAUTH: it does not serve the zone, or not with this key",
            ),
            Self::Refused(rcode) => write!(f, "the primary answers {rcode}"),
            Self::RefusedUnsigned(rcode) => write!(
                f,
                "the primary answers {rcode} without a signature: let it transfer the zone to \
                 this server's address and key"
            ),
            Self::NotReady(rcode) => write!(
                f,
                "the primary answers {rcode} and that it is not ready: all its places for \
                 transfers may be taken"
            ),
            Self::NotAuthoritative => f.write_str("the primary is not authoritative for the zone"),
            Self::NoRecords => f.write_str("the reply has no records"),
            Self::NoSoa => f.write_str("the first record is not the SOA record of the zone"),
            Self::SoaData => f.write_str("the data of an SOA record are too short"),
            Self::SoaDiffers => f.write_str("the SOA records at the beginning and the end differ"),
            Self::Class(class) => write!(f, "a record has the class {}, not IN", class.0),
            Self::NotData(owner, rtype) => {
                write!(f, "{owner} {rtype}: no zone holds records of this type")
            }
            Self::OtherBase(serial) => {
                write!(f, "the changes begin with serial {serial}, which was not asked for")
            }
            Self::Gap(end, begin) => {
                write!(f, "changes are missing between serial {end} and serial {begin}")
            }
            Self::Backwards(from, to) => {
                write!(f, "the changes lead from serial {from} to {to}, which is not greater")
            }
            Self::Surplus => f.write_str("records follow the end of the zone"),
            Self::TooManyRecords(_)
            | Self::TooManyOctets(_)
            | Self::ChangesOfTooManyRecords(_)
            | Self::ChangesOfTooManyOctets(_)
            | Self::TooManyOfSet(..)
            | Self::TooManyTypes(..) => self.write_limit(f),
            Self::TooManyChanges(limit) => write!(f, "there are more than {limit} changes"),
            Self::TooFewOctets(octets, time) => {
                write!(f, "the primary sends fewer than {octets} octets in {time:?}")
            }
            Self::NoMemory { octets, .. } => {
                write!(f, "other transfers have the {octets} octets of memory that it needs")
            }
            Self::Stopped => f.write_str("the server is stopping"),
        }
    }
}

impl std::error::Error for Fault {}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<StreamFault> for Fault {
    fn from(fault: StreamFault) -> Self {
        Self::Message(fault)
    }
}

impl From<SignatureFault> for Fault {
    fn from(fault: SignatureFault) -> Self {
        Self::Signature(fault)
    }
}
