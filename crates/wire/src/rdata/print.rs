//! Record data as text: the octets of each field of its schema in presentation format.
//!
//! What is printed here reads back as the same octets. Data that has no such text (malformed, of an
//! unknown type, or with bits set that its text does not show) is printed as `\#` (rfc3597#5).

use super::schema::{self, Kind};
use super::wire::{self, Value};
use super::{address, bitmap, gateway, loc, number, svcb};
use crate::Type;
use crate::name;
use std::fmt::{self, Display, Formatter, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Uncompressed data of a record, to be displayed in presentation format.
#[derive(Clone, Copy, Debug)]
pub struct Presentation<'r> {
    /// The record's type.
    pub rtype: Type,
    /// The record's data, uncompressed.
    pub rdata: &'r [u8],
}

/// One field of valid data, to be displayed in presentation format.
#[derive(Clone, Copy, Debug)]
pub struct FieldText<'r> {
    /// The field with its octets.
    pub value: Value<'r>,
    /// The whole record data: the meaning of some fields depends on other fields.
    pub rdata: &'r [u8],
}

impl Display for Presentation<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let known = schema::of(self.rtype).filter(|_| is_expressible(self.rtype, self.rdata));
        let Some(schema) = known else { return print_generic(self.rdata, f) };
        let mut is_first = true;
        for value in wire::values(schema, self.rdata).map_while(Result::ok) {
            if has_no_words(&value) {
                continue;
            }
            if !is_first {
                f.write_char(' ')?;
            }
            is_first = false;
            FieldText { value, rdata: self.rdata }.fmt(f)?;
        }
        Ok(())
    }
}

/// Whether the octets are valid data of a type that is in the table, and text says all of them.
#[must_use]
pub fn is_expressible(rtype: Type, rdata: &[u8]) -> bool {
    let Some(schema) = schema::of(rtype) else { return false };
    let says_all = |value: Value<'_>| match value.field.kind {
        Kind::Loc => loc::is_canonical(value.octets),
        Kind::Services => bitmap::is_trimmed(value.octets),
        Kind::Prefixes => address::has_known_families(value.octets),
        Kind::A6 => gateway::is_a6_masked(value.octets),
        _ => true,
    };
    wire::values(schema, rdata).all(|value| value.is_ok_and(says_all))
        && wire::check_digest(rtype, rdata).is_ok()
}

/// Whether a field is empty and leaves no trace in the text.
fn has_no_words(value: &Value<'_>) -> bool {
    let optional = matches!(
        value.field.kind,
        Kind::Names(_)
            | Kind::OptionalCharString
            | Kind::OptionalBase64
            | Kind::TypeBitmap
            | Kind::FlatTypeBitmap
            | Kind::SvcParams
            | Kind::Prefixes
    );
    optional && value.octets.is_empty()
}

impl Display for FieldText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let octets = self.value.octets;
        match self.value.field.kind {
            Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 | Kind::Ttl | Kind::Algorithm => {
                number::value_of(octets).fmt(f)
            }
            Kind::Time => number::print_time(octets, f),
            Kind::Type => Type(number::value_of(octets) as u16).fmt(f), // two octets
            Kind::CertType => number::print_mnemonic(octets, number::CERT_TYPES, f),
            Kind::DsyncScheme => number::print_mnemonic(octets, number::DSYNC_SCHEMES, f),
            Kind::Ipv4 | Kind::Ipv6 => print_address(octets, f),
            Kind::Eui48 | Kind::Eui64 => print_separated(octets, 1, '-', f),
            Kind::NodeId => print_separated(octets, 2, ':', f),
            Kind::Name(_) => name::Presentation(octets).fmt(f),
            Kind::Names(_) => print_names(octets, f),
            Kind::CharString | Kind::CharStrings | Kind::OptionalCharString => {
                print_strings(octets, f)
            }
            Kind::Tag => escape(octets.get(1..).unwrap_or_default(), f),
            Kind::Text => print_quoted(octets, f),
            Kind::Hex => print_hex(octets, f),
            Kind::HexByLength => match octets {
                [] | [0, ..] => f.write_char('-'),
                [_, octets @ ..] => print_hex(octets, f),
            },
            Kind::Base32ByLength => print_base32(octets.get(1..).unwrap_or_default(), f),
            Kind::DashBase64 if octets.is_empty() => f.write_char('-'),
            Kind::Base64 | Kind::OptionalBase64 | Kind::DashBase64 => print_base64(octets, f),
            Kind::TypeBitmap => print_separated_by_blanks(bitmap::windowed_types(octets), f),
            Kind::FlatTypeBitmap => print_separated_by_blanks(bitmap::flat_types(octets), f),
            Kind::SvcParams => svcb::print(octets, f),
            Kind::Loc => loc::print(octets, f),
            Kind::Prefixes => address::print_prefixes(octets, f),
            Kind::Services => bitmap::print_services(octets, f),
            Kind::Nsap => {
                f.write_str("0x")?;
                print_hex(octets, f)
            }
            Kind::Atma => address::print_atma(octets, f),
            Kind::A6 => gateway::print_a6(octets, f),
            Kind::Gateway => gateway::print(octets, self.rdata, gateway::IPSECKEY_TYPE, f),
            Kind::RelayType => gateway::print_relay_type(octets, f),
            Kind::Relay => gateway::print(octets, self.rdata, gateway::AMTRELAY_TYPE, f),
            Kind::HipIdentity => gateway::print_hip_identity(octets, f),
        }
    }
}

/// Octets, to be displayed in upper-case hexadecimal.
pub struct Hex<'r>(pub &'r [u8]);

/// Octets, to be displayed in base 64 with padding.
pub struct Base64<'r>(pub &'r [u8]);

/// Four or sixteen octets, to be displayed as an address.
pub struct Address<'r>(pub &'r [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        print_hex(self.0, f)
    }
}

impl Display for Base64<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        print_base64(self.0, f)
    }
}

impl Display for Address<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        print_address(self.0, f)
    }
}

/// Data of any type: `\#`, its length, its octets in hexadecimal.
fn print_generic(rdata: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "\\# {}", rdata.len())?;
    if rdata.is_empty() {
        return Ok(());
    }
    f.write_char(' ')?;
    print_hex(rdata, f)
}

/// Returns an IPv4 address if there are four octets, an IPv6 address if there are sixteen.
pub(super) fn print_address(octets: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    if let Ok(four) = <[u8; 4]>::try_from(octets) {
        return Ipv4Addr::from(four).fmt(f);
    }
    match <[u8; 16]>::try_from(octets) {
        Ok(sixteen) => Ipv6Addr::from(sixteen).fmt(f),
        Err(_) => Ok(()), // the schema has no other length
    }
}

/// Lower-case hexadecimal digits of groups of octets, with a character between.
fn print_separated(
    octets: &[u8],
    group: usize,
    between: char,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    for (at, octet) in octets.iter().enumerate() {
        if at > 0 && at.is_multiple_of(group) {
            f.write_char(between)?;
        }
        write!(f, "{octet:02x}")?;
    }
    Ok(())
}

/// Items with blanks between.
fn print_separated_by_blanks(
    items: impl Iterator<Item = impl Display>,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    for (at, item) in items.enumerate() {
        if at > 0 {
            f.write_char(' ')?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

/// Names, one behind the other.
fn print_names(octets: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    let mut rest = octets;
    let names = std::iter::from_fn(|| {
        let (name, tail) = rest.split_at_checked(name::wire_len(rest)?)?;
        rest = tail;
        Some(name::Presentation(name))
    });
    print_separated_by_blanks(names, f)
}

/// Character strings, each behind its length octet.
fn print_strings(octets: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    for (at, string) in strings(octets).enumerate() {
        if at > 0 {
            f.write_char(' ')?;
        }
        print_quoted(string, f)?;
    }
    Ok(())
}

/// Returns the character strings of a field, without their lengths.
pub fn strings(octets: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = octets;
    std::iter::from_fn(move || {
        let (&len, tail) = rest.split_first()?;
        let (string, tail) = tail.split_at_checked(usize::from(len))?;
        rest = tail;
        Some(string)
    })
}

/// Returns a string in quotes.
pub(super) fn print_quoted(text: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    escape(text, f)?;
    f.write_char('"')
}

/// Returns a string as it stands between quotes (rfc1035#5.1).
fn escape(text: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    for run in text.chunk_by(|&a, &b| is_plain(a) && is_plain(b)) {
        match *run {
            [octet @ (b'"' | b'\\')] => write!(f, "\\{}", char::from(octet))?,
            [octet] if !is_plain(octet) => write!(f, "\\{octet:03}")?,
            _ => f.write_str(str::from_utf8(run).map_err(|_| fmt::Error)?)?, // ASCII
        }
    }
    Ok(())
}

/// Whether an octet stands for itself between quotes.
fn is_plain(octet: u8) -> bool {
    matches!(octet, b' '..=b'~') && octet != b'"' && octet != b'\\'
}

/// Prints octets as hexadecimal digits.
pub(super) fn print_hex(octets: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    octets.iter().try_for_each(|octet| write!(f, "{octet:02X}"))
}

/// Base 64 with padding.
pub(super) fn print_base64(octets: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for group in octets.chunks(3) {
        print_digits::<6>(group, ALPHABET, f)?;
        f.write_str(&"=="[group.len() - 1..])?;
    }
    Ok(())
}

/// Base 32 with extended alphabet, without padding.
fn print_base32(octets: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHIJKLMNOPQRSTUV";
    octets.chunks(5).try_for_each(|group| print_digits::<5>(group, ALPHABET, f))
}

/// Returns the bits of at most five octets as digits of `BITS` bits, the last one filled up with
/// zeros.
fn print_digits<const BITS: usize>(
    group: &[u8],
    alphabet: &[u8],
    f: &mut Formatter<'_>,
) -> fmt::Result {
    let mut bits = group.iter().fold(0_u64, |bits, &octet| bits << 8 | u64::from(octet));
    let count = (group.len() * 8).div_ceil(BITS);
    bits <<= count * BITS - group.len() * 8;
    for at in (0..count).rev() {
        let digit = (bits >> (at * BITS)) as usize & (alphabet.len() - 1); // a power of two
        f.write_char(char::from(alphabet[digit]))?;
    }
    Ok(())
}
