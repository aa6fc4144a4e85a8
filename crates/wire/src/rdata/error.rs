//! What can be wrong with record data, on the wire or in text.

use super::svcb::SvcFault;
use crate::NameError;
use std::fmt;

/// Record data that does not follow its type's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RdataError {
    /// The schema's name of the field at fault; empty when it is none of them.
    pub field: &'static str,
    /// Fault of the field.
    pub fault: Fault,
}

/// Text that is not record data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextError {
    /// Index of the token at fault; one behind the last when a token is missing.
    pub token: usize,
    /// Error of the field.
    pub error: RdataError,
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The data ends before the field does.
    Truncated,
    /// The data goes on behind the last field.
    Trailing,
    /// Octets that the field may not hold.
    Malformed,
    /// The text ends before the field.
    Missing,
    /// The text goes on behind the last field.
    Unexpected,
    /// A quoted string where a plain word is due.
    Quoted,
    /// Not a decimal number between 0 and the given one.
    Number(u64),
    /// Not seconds with or without units.
    Ttl,
    /// Neither `YYYYMMDDHHmmSS` nor seconds.
    Time,
    /// Not a record type.
    Type,
    /// A type that this form of bitmap cannot hold.
    TypeTooHigh,
    /// Neither a number in range nor a known mnemonic.
    Mnemonic,
    /// Not an IPv4 address.
    Ipv4,
    /// Not an IPv6 address.
    Ipv6,
    /// Not this many hexadecimal pairs with hyphens between.
    HexPairs(u8),
    /// Not four groups of hexadecimal digits.
    NodeId,
    /// Not a domain name.
    Name(NameError),
    /// A backslash without a character or three digits up to 255 behind it.
    Escape,
    /// Over 255 octets.
    StringTooLong,
    /// Not letters and digits only.
    Tag,
    /// Not hexadecimal digits, or an odd number of them.
    Hex,
    /// Not base 32 with extended alphabet.
    Base32,
    /// Not base 64.
    Base64,
    /// A digest whose length is not that of its algorithm.
    DigestLength(u8),
    /// A service parameter.
    Svc(SvcFault),
    /// Not a place on Earth.
    Loc,
    /// The word is not `[!]family:address/length`.
    Prefix,
    /// Not a protocol or a port.
    Service,
    /// Not `0x` and hexadecimal digits.
    Nsap,
    /// Neither `+` and decimal digits nor hexadecimal digits.
    Atma,
    /// A type of gateway or relay that has no defined form.
    GatewayType,
    /// Not the `.` that stands for no gateway or relay.
    NoGateway,
    /// The data is longer than 65 535 octets.
    TooLong,
    /// `\#` is not followed by a length and as many octets in hexadecimal.
    Generic,
    /// The type has no presentation format of its own.
    OpaqueType,
    /// A quoted string whose closing quote is missing.
    OpenQuote,
}

impl fmt::Display for RdataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        self.fault.fmt(f)
    }
}

impl std::error::Error for RdataError {}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for TextError {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number(max) => return write!(f, "expected a number from 0 to {max}"),
            Self::HexPairs(count) => {
                return write!(f, "expected {count} pairs of hexadecimal digits, as in 00-00-5e");
            }
            Self::DigestLength(octets) => {
                return write!(f, "expected {octets} octets, the length of this kind of digest");
            }
            Self::Name(error) => return error.fmt(f),
            Self::Svc(fault) => return fault.fmt(f),
            Self::Truncated => "the data ends too early",
            Self::Trailing => "the data is too long for its type",
            Self::Malformed => "the octets are malformed",
            Self::Missing => "expected data, found the end of the record",
            Self::Unexpected => "unexpected text behind the record's data",
            Self::Quoted => "expected a word without quotes",
            Self::Ttl => "expected seconds, or a time with units such as 1h30m",
            Self::Time => "expected a time as YYYYMMDDHHmmSS, or seconds since 1970",
            Self::Type => "expected a record type such as AAAA or TYPE65280",
            Self::TypeTooHigh => "expected a record type below 128",
            Self::Mnemonic => "expected a number or a known mnemonic",
            Self::Ipv4 => "expected an IPv4 address such as 192.0.2.1",
            Self::Ipv6 => "expected an IPv6 address such as 2001:db8::1",
            Self::NodeId => "expected four groups of hexadecimal digits, as in 0014:4fff:ff20:ee64",
            Self::Escape => "a backslash needs a character or three digits (000-255) after it",
            Self::StringTooLong => "a string has at most 255 octets: split it into several",
            Self::Tag => "expected letters and digits only",
            Self::Hex => "expected pairs of hexadecimal digits",
            Self::Base32 => "expected base 32 (0-9, a-v) without padding",
            Self::Base64 => "expected base 64",
            Self::Loc => "expected a location such as 52 22 23.0 N 4 53 32.0 E -2m 0m 10000m 10m",
            Self::Prefix => "expected an address prefix such as 1:192.0.2.0/24 or !2:2001:db8::/32",
            Self::Service => "expected a protocol and ports such as TCP 25 53",
            Self::Nsap => "expected 0x and pairs of hexadecimal digits",
            Self::Atma => "expected + and digits, or pairs of hexadecimal digits",
            Self::GatewayType => "expected 0 (none), 1 (IPv4), 2 (IPv6) or 3 (name)",
            Self::NoGateway => "expected a dot, as the type is 0 (none)",
            Self::TooLong => "record data has at most 65535 octets",
            Self::Generic => "expected \\#, the number of octets, and as many in hexadecimal",
            Self::OpaqueType => "this type has no text form: write \\#, a length and hexadecimal",
            Self::OpenQuote => "a quote is not closed",
        })
    }
}
