//! What can be wrong with a zone whose records are right one by one.

use crate::diagnostic::{Place, Severity};
use crate::rules::OwnerRule;
use crate::snapshot::ITERATIONS_MAX;
use std::fmt;
use zonda_wire::{Name, Type};

/// What does not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckProblem {
    /// No SOA record at the apex.
    NoSoa,
    /// A value of the SOA record.
    Soa(SoaFault),
    /// A rule that the records of one name break.
    Owner(OwnerRule),
    /// No NS record at the apex.
    NoApexNs,
    /// Not at or below the apex.
    OutsideZone,
    /// The record at this place is the same.
    Duplicate(Place),
    /// The TTL is not that of the set's first record, given here.
    TtlsDiffer(u32),
    /// Below a delegation or a DNAME.
    Hidden {
        /// NS or DNAME.
        rtype: Type,
        /// The name above the record that has the delegation or DNAME.
        by: Name,
    },
    /// Beside the NS records of a delegation.
    BesideDelegation,
    /// The target has a CNAME.
    TargetIsAlias(Name, Server),
    /// The target is below a DNAME.
    TargetBelowDname(Name, Server),
    /// The target has no address.
    TargetWithoutAddress(Name, Server),
    /// The target is behind a delegation and has no glue.
    NoGlue(Name),
    /// The target looks like an address.
    TargetIsAddress(Name),
    /// The owner is no host name.
    OwnerIsNoHost,
    /// The target is no host name.
    TargetIsNoHost(Name),
    /// A signature over a type that is not there.
    NothingSigned(Type),
    /// A signature by another zone's key.
    ForeignSigner(Name),
    /// A signature over more labels than the name has.
    TooManyLabels,
    /// A signature whose time is over.
    Expired(Type),
    /// A signature whose time has not come.
    NotYetValid(Type),
    /// A set without a signature in a signed zone.
    Unsigned(Type),
    /// A name without NSEC record in a zone that has them.
    NoNsec,
    /// NSEC leads somewhere else than to this name.
    NsecNext(Name),
    /// NSEC lists other types than there are; this is the first.
    NsecTypes(Type),
    /// NSEC3 leads to no NSEC3 record, or not to the next one.
    Nsec3Next,
    /// NSEC3 hashes are iterated.
    Iterations(u16),
    /// A set takes so many octets, more than a message has.
    SetTooLarge(usize),
    /// An ALIAS record that is not, or not always, answered with addresses.
    Alias(AliasFault),
}

/// The reason for which an ALIAS record is not answered with the addresses of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliasFault {
    /// The name has addresses of this type itself.
    BesideAddress(Type),
    /// The zone is signed.
    SignedZone,
    /// The record leads to its own name.
    Itself,
    /// The record leads out of the zone, and no upstream can be asked for its target.
    NoUpstream,
}

/// Which server is looked for at a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// A server of the zone itself.
    Apex,
    /// Any other server.
    Other,
}

/// A fault of the values of a SOA record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoaFault {
    /// The mailbox holds an at sign.
    AtSign,
    /// Refresh or retry is 0.
    Zero,
    /// Retry is longer than refresh.
    RetryAboveRefresh,
    /// Expire is shorter than refresh and retry.
    ExpireTooShort,
    /// Minimum is longer than a day.
    MinimumTooLong,
}

impl CheckProblem {
    /// An error is what BIND or Knot refuse to load.
    pub(super) fn severity(&self) -> Severity {
        match self {
            Self::Owner(OwnerRule::DsWithoutNs | OwnerRule::Wildcard(Type::DNAME)) => {
                Severity::Warning
            }
            Self::NoSoa
            | Self::Owner(_)
            | Self::NoApexNs
            | Self::SetTooLarge(_)
            | Self::Hidden { rtype: Type::DNAME, .. }
            | Self::TargetIsAlias(_, Server::Apex)
            | Self::TargetBelowDname(_, Server::Apex)
            | Self::TargetWithoutAddress(_, Server::Apex) => Severity::Error,
            _ => Severity::Warning,
        }
    }
}

impl fmt::Display for CheckProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSoa => f.write_str("the zone has no SOA record at its apex"),
            Self::Owner(rule) => rule.fmt(f),
            Self::Soa(fault) => fault.fmt(f),
            Self::NoApexNs => f.write_str("the zone has no NS record at its apex"),
            Self::OutsideZone => f.write_str("not in this zone, and never served"),
            Self::Duplicate(place) => write!(f, "the same record as at {place}"),
            Self::TtlsDiffer(ttl) => {
                write!(f, "the TTL differs from the {ttl} of the same name and type")
            }
            Self::SetTooLarge(octets) => write!(
                f,
                "the records of this name and type take {octets} octets, and a message has 65535: \
                 they are never answered"
            ),
            Self::Hidden { rtype, by } => {
                write!(f, "hidden below the {rtype} record of {by} and never served")
            }
            Self::BesideDelegation => {
                f.write_str("hidden beside the NS records of a delegation and never served")
            }
            Self::TargetIsAlias(name, _) => write!(f, "{name} is a CNAME: name what it leads to"),
            Self::TargetBelowDname(name, _) => write!(f, "{name} is below a DNAME"),
            Self::TargetWithoutAddress(name, _) => write!(f, "{name} has no address in this zone"),
            Self::NoGlue(name) => {
                write!(f, "{name} is behind a delegation and has no glue: add its address")
            }
            Self::TargetIsAddress(name) => {
                write!(f, "{name} looks like an address: a name is needed here")
            }
            Self::OwnerIsNoHost => {
                f.write_str("no host name: only letters, digits and inner hyphens make one")
            }
            Self::TargetIsNoHost(name) => write!(f, "{name} is no host name"),
            Self::Alias(fault) => fault.fmt(f),
            _ => self.fmt_dnssec(f),
        }
    }
}

impl CheckProblem {
    /// Writes the problems of signatures and proofs.
    fn fmt_dnssec(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingSigned(rtype) => write!(f, "signs {rtype}, which is not there"),
            Self::ForeignSigner(name) => write!(f, "signed by {name}, not by this zone"),
            Self::TooManyLabels => f.write_str("signs more labels than the name has"),
            Self::Expired(rtype) => write!(f, "the signature over {rtype} has expired"),
            Self::NotYetValid(rtype) => write!(f, "the signature over {rtype} is not yet valid"),
            Self::Unsigned(rtype) => write!(f, "no signature over {rtype}"),
            Self::NoNsec => f.write_str("no NSEC record, though the zone has them"),
            Self::NsecNext(name) => write!(f, "NSEC should lead to {name}"),
            Self::NsecTypes(rtype) => {
                write!(f, "NSEC and the name's records do not agree about {rtype}")
            }
            Self::Nsec3Next => f.write_str("NSEC3 does not lead to the next NSEC3 record"),
            Self::Iterations(count) if *count > ITERATIONS_MAX => write!(
                f,
                "iterations = {count}: above {ITERATIONS_MAX}, nothing is proven, and validators \
                 take negative answers for unsigned ones, or refuse them; sign with 0"
            ),
            Self::Iterations(count) => {
                write!(f, "iterations = {count}: they cost time and hide nothing; sign with 0")
            }
            _ => Ok(()), // fmt has the rest
        }
    }
}

impl fmt::Display for AliasFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BesideAddress(rtype) => write!(
                f,
                "the {rtype} records of this name are answered instead of the target's: keep one \
                 of both"
            ),
            Self::SignedZone => f.write_str(
                "has no effect in a signed zone, as no signature would be of the addresses: write \
                 these instead, or leave out the signatures",
            ),
            Self::NoUpstream => f.write_str(
                "is SERVFAIL unless another zone of this server has its target: write upstreams \
                 as `alias-resolver` in [answers]",
            ),
            Self::Itself => f.write_str("leads to its own name: name the host that has addresses"),
        }
    }
}

impl fmt::Display for SoaFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AtSign => "the mailbox is written with a dot instead of the at sign",
            Self::Zero => "refresh and retry of 0 let secondaries ask without a pause",
            Self::RetryAboveRefresh => "retry should be shorter than refresh",
            Self::ExpireTooShort => {
                "expire should be longer than refresh and retry, or secondaries give up early"
            }
            Self::MinimumTooLong => {
                "minimum is how long names count as missing; a day is the most (rfc2308#5)"
            }
        })
    }
}
