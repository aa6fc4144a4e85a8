//! What can be wrong with a JSON zone.

use crate::disk::Unreadable;
use std::fmt;
use zonda_wire::rdata::Fault;
use zonda_wire::{Name, NameError, Type};

/// A fault of a JSON value, with the path to the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonProblem {
    /// The way to the value from the file's outermost one, as in `[0].records[3].data.ip`; empty
    /// for that one itself.
    pub path: Box<str>,
    /// The fault of the value.
    pub fault: JsonFault,
}

/// A fault of a JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonFault {
    /// The file cannot be read.
    Unreadable(Unreadable),
    /// The file is not UTF-8.
    Encoding,
    /// Not JSON: what the parser says.
    Syntax(Box<str>),
    /// A value of another kind.
    Expected(&'static str),
    /// Not a whole number in this range.
    Number {
        /// The least number allowed.
        min: i64,
        /// The greatest number allowed.
        max: i64,
    },
    /// A member that must be there is not.
    Missing(&'static str),
    /// A member without a meaning.
    Unknown,
    /// A member of a change that has no meaning; those that have one.
    Unwanted(&'static str),
    /// A member that stands there for the second time.
    Repeated,
    /// Not a domain name.
    Name(NameError),
    /// Not a record type that is known: one of the zone's maker, such as `POOL`.
    Type,
    /// Not a record type that is known, in a change.
    NoType,
    /// A type that cannot stand in a zone.
    MetaType(Type),
    /// The class is not IN.
    Class,
    /// Not what the field of a record's data takes.
    Data(Fault),
    /// `data` is not there, or `null`.
    NoData,
    /// `context` has a meaning to erldns only.
    Context,
    /// `keys` have a meaning to erldns only.
    Keys,
    /// The zone has over 4 GiB of records.
    TooManyRecords,
    /// The file does not have the zone that it is read for.
    NoZone(Name),
}

impl JsonFault {
    /// Whether the zone can be served nevertheless.
    pub(super) fn is_warning(&self) -> bool {
        matches!(self, Self::Unknown | Self::Type | Self::NoData | Self::Context | Self::Keys)
    }
}

impl fmt::Display for JsonProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        self.fault.fmt(f)
    }
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable(why) => return why.fmt(f),
            Self::Syntax(said) => return write!(f, "not JSON: {said}"),
            Self::Expected(what) => return write!(f, "expected {what}"),
            Self::Number { min, max } => {
                return write!(f, "expected a whole number from {min} to {max}");
            }
            Self::Missing(what) => return write!(f, "expected a member \"{what}\" in this object"),
            Self::Name(error) => return error.fmt(f),
            Self::MetaType(rtype) => {
                return write!(f, "records of type {rtype} cannot stand in a zone");
            }
            Self::Data(fault) => return fault.fmt(f),
            Self::NoZone(name) => return write!(f, "there is no zone {name} in this file"),
            Self::Unwanted(known) => return write!(f, "unknown here; what may be here: {known}"),
            Self::NoType => "unknown type: expected one such as \"AAAA\", or its number",
            Self::Encoding => "the text is not UTF-8 from here on",
            Self::Unknown => "unknown here, and ignored",
            Self::Repeated => "stands here for the second time",
            Self::Type => {
                "unknown here, and the record is left out: expected a type such as \"AAAA\", \
                 or its number"
            }
            Self::Class => "only class IN is served",
            Self::NoData => "the record has no data and is left out",
            Self::Context => "contexts are not supported: the record is served to everybody",
            Self::Keys => "keys are not used: the zone is served as it is, nothing is signed",
            Self::TooManyRecords => "a zone has at most 4 GiB of records",
        })
    }
}
