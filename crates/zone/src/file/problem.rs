//! What can be wrong with the text of a master file.

use crate::disk::Unreadable;
use std::fmt;
use std::path::PathBuf;
use zonda_wire::rdata::TextError;
use zonda_wire::{Class, NameError, Type};

/// What is wrong with the text of a master file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileProblem {
    /// The file cannot be read.
    Unreadable(Unreadable),
    /// An octet that text does not hold.
    ControlOctet(u8),
    /// A quote without its partner on the same line.
    UnclosedQuote,
    /// An opening parenthesis without its partner.
    UnclosedParenthesis,
    /// A closing parenthesis without its partner.
    UnopenedParenthesis,
    /// Too many parentheses without partners: the rest of the file is not read.
    TooManyUnclosed,
    /// A record of more octets than this.
    RecordTooLong(usize),
    /// The owner is not a name.
    Owner(NameError),
    /// The owner is quoted.
    QuotedOwner,
    /// The first record begins with a blank.
    NoOwner,
    /// The owner is taken over from before an `$ORIGIN`.
    OwnerBeforeOrigin,
    /// A class other than IN.
    WrongClass(Class),
    /// Neither a TTL nor a class nor a type.
    UnknownType,
    /// A directive behind blanks.
    IndentedDirective,
    /// The record ends before its type.
    NoType,
    /// A type that records cannot have.
    MetaType(Type),
    /// The data is not that of its type.
    Data(TextError, Snippet),
    /// No TTL is given, and none before it either.
    NoTtl,
    /// A TTL above 2³¹ − 1.
    TtlTooHigh,
    /// No TTL is given: that of the record before is taken.
    TtlOfRecordBefore,
    /// No TTL is given: the minimum of the SOA is taken.
    TtlOfSoa,
    /// More records than can be stored.
    TooManyRecords,
    /// A fault of a directive.
    Directive(DirectiveProblem),
}

/// What is wrong with a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectiveProblem {
    /// Not a directive.
    Unknown,
    /// A directive's argument is missing: what it should be.
    MissingArgument(&'static str),
    /// A directive has more arguments than it takes.
    ExtraArgument,
    /// The argument of `$ORIGIN` or `$INCLUDE` is not a name.
    Origin(NameError),
    /// The argument of `$TTL` is not a time.
    Ttl(Snippet),
    /// The file named cannot be read.
    Included(PathBuf, Unreadable),
    /// The file named lies outside the directory that files may be included from.
    IncludeOutside,
    /// Files must not be included here.
    IncludeForbidden,
    /// The file named is being read already.
    IncludeCycle,
    /// Files include files to this depth.
    IncludeTooDeep(usize),
    /// More files than this are included.
    TooManyIncludes(usize),
    /// `$GENERATE` is not followed by a range.
    Range(Snippet),
    /// `$GENERATE` would make more records than this.
    RangeTooLong(u32),
    /// `${` is not followed by what belongs there.
    Modifier,
    /// `$GENERATE` made this record, in which there is something wrong.
    Generated(Snippet, Box<FileProblem>),
}

impl FileProblem {
    /// Whether the zone can be served nevertheless.
    pub(super) fn is_warning(&self) -> bool {
        matches!(
            self,
            Self::OwnerBeforeOrigin | Self::TtlTooHigh | Self::TtlOfRecordBefore | Self::TtlOfSoa
        )
    }
}

/// A piece of the text, short and printable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet(Box<str>);

impl Snippet {
    /// Most octets that are shown.
    const OCTETS_MAX: usize = 60;

    /// The beginning of a text.
    pub(crate) fn new(text: &[u8]) -> Self {
        let shown = &text[..text.len().min(Self::OCTETS_MAX)];
        let mut printable = String::from_utf8_lossy(shown).into_owned();
        if shown.len() < text.len() {
            printable.push('…');
        }
        Self(printable.replace(|c: char| c.is_control(), "\u{fffd}").into())
    }
}

impl fmt::Display for Snippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => why.fmt(f),
            Self::ControlOctet(octet) => {
                write!(f, "octet {octet} is not text: write \\{octet:03} if it is meant")
            }
            Self::UnclosedQuote => f.write_str("this quote is not closed on its line"),
            Self::UnclosedParenthesis => f.write_str("this parenthesis is not closed"),
            Self::UnopenedParenthesis => f.write_str("no parenthesis is open here"),
            Self::TooManyUnclosed => {
                f.write_str("too many open parentheses: the rest of the file was not read")
            }
            Self::RecordTooLong(max) => write!(f, "the record is longer than {max} octets"),
            Self::Owner(error) => error.fmt(f),
            Self::QuotedOwner => {
                f.write_str("an owner name takes no quotes: write \\032 for blanks")
            }
            Self::NoOwner => f.write_str("the first record must begin with its owner name"),
            Self::OwnerBeforeOrigin => {
                f.write_str("the owner is taken over from before $ORIGIN: write it out")
            }
            Self::WrongClass(class) => write!(f, "class {class} is not served: write IN"),
            Self::UnknownType => f.write_str("expected a TTL, IN or a record type"),
            Self::IndentedDirective => {
                f.write_str("a directive must stand at the beginning of the line")
            }
            Self::NoType => f.write_str("the record ends before its type"),
            Self::MetaType(rtype) => write!(f, "records of type {rtype} cannot stand in a zone"),
            Self::Data(error, found) if found.0.is_empty() => error.fmt(f),
            Self::Data(error, found) => write!(f, "{error}, found {found}"),
            Self::NoTtl => f.write_str("no TTL: write it, or $TTL at the beginning of the file"),
            Self::TtlTooHigh => f.write_str("a TTL above 2147483647 is taken as 0"),
            Self::TtlOfRecordBefore => {
                f.write_str("no TTL: that of the record before is taken, write $TTL to be sure")
            }
            Self::TtlOfSoa => {
                f.write_str("no TTL: the minimum of the SOA record is taken, write $TTL to be sure")
            }
            Self::TooManyRecords => f.write_str("a zone has at most 4 GiB of records"),
            Self::Directive(problem) => problem.fmt(f),
        }
    }
}

impl From<DirectiveProblem> for FileProblem {
    fn from(problem: DirectiveProblem) -> Self {
        Self::Directive(problem)
    }
}

impl fmt::Display for DirectiveProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("expected $ORIGIN, $TTL, $INCLUDE or $GENERATE"),
            Self::MissingArgument(what) => write!(f, "expected {what}"),
            Self::Origin(error) => error.fmt(f),
            Self::ExtraArgument => f.write_str("unexpected text behind the directive"),
            Self::Ttl(found) => {
                write!(f, "expected seconds, or a time with units such as 1h30m, found {found}")
            }
            Self::Included(file, why) => write!(f, "{} {why}", file.display()),
            Self::IncludeOutside => {
                f.write_str("this file lies outside the directory that zone files are read from")
            }
            Self::IncludeForbidden => f.write_str("no files can be included here"),
            Self::IncludeCycle => f.write_str("this file includes itself"),
            Self::IncludeTooDeep(max) => write!(f, "files include files at most {max} deep"),
            Self::TooManyIncludes(max) => write!(f, "a zone includes at most {max} files"),
            Self::Range(found) => {
                write!(f, "expected a range such as 1-10 or 0-100/2, found {found}")
            }
            Self::RangeTooLong(max) => write!(f, "$GENERATE makes at most {max} records"),
            Self::Modifier => f.write_str("expected ${offset,width,base}, the base one of doxXnN"),
            Self::Generated(text, problem) => write!(f, "{problem}, in the generated {text}"),
        }
    }
}
