//! Why an update is not carried out.

use std::fmt;
use zonda_wire::{Name, Rcode, Type};

/// Why an update is not carried out, whatever client sends it; the zone is as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateFault {
    /// A record with this owner and type breaks a rule of the form of messages.
    Format(Name, Type, FormatRule),
    /// The name lies outside the zone.
    OutsideZone(Name),
    /// The name must have records, and has none.
    NameMissing(Name),
    /// The name must have no records, and has some.
    NameExists(Name),
    /// The name must have records of the type, and has none.
    SetMissing(Name, Type),
    /// The name must have exactly the records of the type that are given, and has other ones.
    SetDiffers(Name, Type),
    /// The name must have no records of the type, and has some.
    SetExists(Name, Type),
}

/// A rule that a record of an update breaks (rfc2136#3.2.5, #3.4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatRule {
    /// The class is neither that of the zone nor ANY nor NONE.
    Class,
    /// The time to live is not 0, where it means nothing.
    Ttl,
    /// The time to live is over 2³¹ − 1.
    TtlTooLong,
    /// There are data where none may be.
    Data,
    /// The data are missing.
    NoData,
    /// No zone holds records of the type.
    Type,
}

impl UpdateFault {
    /// The fault of a record that breaks a rule of the form.
    pub(super) fn format(record: &zonda_wire::UpdateRecord, rule: FormatRule) -> Self {
        Self::Format(record.owner.clone(), record.rtype, rule)
    }

    /// Whether a prerequisite is not met: the message is as it should be.
    #[must_use]
    pub fn is_unmet(&self) -> bool {
        !matches!(self, Self::Format(..) | Self::OutsideZone(_))
    }

    /// Returns the response code (rfc2136#2.2).
    #[must_use]
    pub fn rcode(&self) -> Rcode {
        match self {
            Self::Format(..) => Rcode::FORMERR,
            Self::OutsideZone(_) => Rcode::NOTZONE,
            Self::NameMissing(_) => Rcode::NXDOMAIN,
            Self::NameExists(_) => Rcode::YXDOMAIN,
            Self::SetMissing(..) | Self::SetDiffers(..) => Rcode::NXRRSET,
            Self::SetExists(..) => Rcode::YXRRSET,
        }
    }
}

impl fmt::Display for UpdateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(name, rtype, rule) => write!(f, "{name} {rtype}: {rule}"),
            Self::OutsideZone(name) => write!(f, "{name} is not in the zone"),
            Self::NameMissing(name) => write!(f, "{name} has no records"),
            Self::NameExists(name) => write!(f, "{name} has records"),
            Self::SetMissing(name, rtype) => write!(f, "{name} has no {rtype} records"),
            Self::SetDiffers(name, rtype) => write!(f, "{name} has other {rtype} records"),
            Self::SetExists(name, rtype) => write!(f, "{name} has {rtype} records"),
        }
    }
}

impl std::error::Error for UpdateFault {}

impl fmt::Display for FormatRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Class => "the class is neither the zone's nor ANY nor NONE",
            Self::Ttl => "the TTL must be 0",
            Self::TtlTooLong => "the TTL is over 2147483647 seconds",
            Self::Data => "there must be no data",
            Self::NoData => "the data are missing",
            Self::Type => "no zone holds records of this type",
        })
    }
}
