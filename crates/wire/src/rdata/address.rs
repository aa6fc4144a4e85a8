//! Addresses of all networks that ever were, and prefixes of them.

use super::binary;
use super::error::Fault;
use super::number;
use super::parse::Tokens;
use super::print;
use std::fmt::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Address family number of IPv4 (rfc3123#4).
const FAMILY_IPV4: u16 = 1;
/// Address family number of IPv6 (rfc3123#4).
const FAMILY_IPV6: u16 = 2;
/// An ATM address in the form of an end system (rfc1035's A record for ATM, af-saa-0069).
const ATMA_END_SYSTEM: u8 = 0;
/// An ATM address in the form of a telephone number.
const ATMA_E164: u8 = 1;

/// Reads an IPv4 address into four octets.
pub(super) fn parse_ipv4(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    out.extend_from_slice(&ipv4(text).ok_or(Fault::Ipv4)?.octets());
    Ok(())
}

/// Four decimal numbers up to 255 without leading zeros, dots between.
pub(super) fn ipv4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut rest = text;
    for (at, octet) in octets.iter_mut().enumerate() {
        let (value, tail) = match *rest {
            [a, ref tail @ ..] if is_end_of_number(tail) => (digit(a)?, tail),
            [a, b, ref tail @ ..] if is_end_of_number(tail) && a != b'0' => {
                (digit(a)? * 10 + digit(b)?, tail)
            }
            [a, b, c, ref tail @ ..] if a != b'0' => {
                (digit(a)? * 100 + digit(b)? * 10 + digit(c)?, tail)
            }
            _ => return None,
        };
        *octet = u8::try_from(value).ok()?;
        rest = match tail.split_first() {
            Some((b'.', tail)) if at < 3 => tail,
            None if at == 3 => tail,
            _ => return None,
        };
    }
    Some(octets.into())
}

/// Whether a number of a dotted address ends here.
fn is_end_of_number(rest: &[u8]) -> bool {
    matches!(rest.first(), None | Some(b'.'))
}

/// Returns the value of a decimal digit.
fn digit(octet: u8) -> Option<u16> {
    let value = octet.wrapping_sub(b'0');
    (value < 10).then_some(u16::from(value))
}

/// Reads an IPv6 address into sixteen octets.
pub(super) fn parse_ipv6(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    out.extend_from_slice(&ipv6(text).ok_or(Fault::Ipv6)?.octets());
    Ok(())
}

/// Returns an address in one of the forms of rfc4291#2.2.
pub(super) fn ipv6(text: &[u8]) -> Option<Ipv6Addr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// `N` octets as hexadecimal pairs with hyphens between.
pub(super) fn parse_hex_pairs<const N: usize>(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let fault = Fault::HexPairs(N as u8); // 6 or 8
    let mut count = 0;
    for pair in text.split(|&octet| octet == b'-') {
        let &[high, low] = pair else { return Err(fault) };
        let (Some(high), Some(low)) = (binary::hex_digit(high), binary::hex_digit(low)) else {
            return Err(fault);
        };
        out.push(high << 4 | low);
        count += 1;
    }
    if count == N { Ok(()) } else { Err(fault) }
}

/// Eight octets as four groups of one to four hexadecimal digits (rfc6742#2.1.1).
pub(super) fn parse_node_id(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut count = 0;
    for group in text.split(|&octet| octet == b':') {
        if !(1..=4).contains(&group.len()) {
            return Err(Fault::NodeId);
        }
        let value = group.iter().try_fold(0, |value: u16, &octet| {
            binary::hex_digit(octet).map(|digit| value << 4 | u16::from(digit))
        });
        out.extend_from_slice(&value.ok_or(Fault::NodeId)?.to_be_bytes());
        count += 1;
    }
    if count == 4 { Ok(()) } else { Err(Fault::NodeId) }
}

/// Address prefixes of all tokens left; none is fine (rfc3123#5).
pub(super) fn parse_prefixes(tokens: &mut Tokens<'_, '_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    while tokens.peek().is_some() {
        parse_prefix(tokens.word()?, out).ok_or(Fault::Prefix)?;
    }
    Ok(())
}

/// Reads an APL item: `[!]family:address/length` (rfc3123#5).
fn parse_prefix(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (negated, text) = match text.strip_prefix(b"!") {
        Some(text) => (0x80, text),
        None => (0, text),
    };
    let colon = text.iter().position(|&octet| octet == b':')?;
    let slash = text.iter().position(|&octet| octet == b'/')?;
    let family = number::decimal(&text[..colon], u64::from(FAMILY_IPV6)).ok()? as u16;
    let address = text.get(colon + 1..slash)?;
    let mut octets = [0; 16];
    let bits = if family == FAMILY_IPV4 {
        octets[..4].copy_from_slice(&ipv4(address)?.octets());
        32
    } else if family == FAMILY_IPV6 {
        octets = ipv6(address)?.octets();
        128
    } else {
        return None;
    };
    let prefix = number::decimal(&text[slash + 1..], bits).ok()? as u8;
    let len = octets.iter().rposition(|&octet| octet != 0).map_or(0, |last| last + 1);
    out.extend_from_slice(&family.to_be_bytes());
    out.extend_from_slice(&[prefix, negated | len as u8]); // len is at most 16
    out.extend_from_slice(&octets[..len]);
    Some(())
}

/// Returns the octets of the address prefix at the start of `rest` (rfc3123#4).
pub(super) fn prefix_len(rest: &[u8]) -> Option<usize> {
    let &[high, low, prefix, len, ..] = rest else { return None };
    let len = usize::from(len & 0x7f);
    let address = rest.get(4..4 + len)?;
    let (bits, octets) = match u16::from_be_bytes([high, low]) {
        FAMILY_IPV4 => (32, 4),
        FAMILY_IPV6 => (128, 16),
        _ => (u8::MAX, 0x7f),
    };
    let valid = prefix <= bits && len <= octets && address.last() != Some(&0);
    valid.then_some(4 + len)
}

/// `0x` and hexadecimal digits, with dots anywhere (rfc1706#5).
pub(super) fn parse_nsap(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let digits = text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X"));
    let digits = digits.ok_or(Fault::Nsap)?;
    parse_dotted_hex(digits, out).ok_or(Fault::Nsap)
}

/// Reads a telephone number behind `+`, or hexadecimal digits; both with dots anywhere.
pub(super) fn parse_atma(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let Some(number) = text.strip_prefix(b"+") else {
        out.push(ATMA_END_SYSTEM);
        return parse_dotted_hex(text, out).ok_or(Fault::Atma);
    };
    out.push(ATMA_E164);
    let start = out.len();
    out.extend(number.iter().filter(|&&octet| octet != b'.'));
    let valid = out.len() > start && out[start..].iter().all(u8::is_ascii_digit);
    if valid { Ok(()) } else { Err(Fault::Atma) }
}

/// Whether octets are a format and an address in it.
pub(super) fn is_atma(octets: &[u8]) -> bool {
    match octets.split_first() {
        Some((&ATMA_END_SYSTEM, _)) => true,
        Some((&ATMA_E164, digits)) => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Reads one or more octets in hexadecimal, with dots anywhere.
fn parse_dotted_hex(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let digits = || text.iter().filter(|&&octet| octet != b'.');
    let count = digits().count();
    if count == 0 || !count.is_multiple_of(2) {
        return None;
    }
    let mut high = None;
    for &octet in digits() {
        let digit = binary::hex_digit(octet)?;
        match high.take() {
            None => high = Some(digit),
            Some(high) => out.push(high << 4 | digit),
        }
    }
    Some(())
}

/// Address prefixes, with blanks between.
pub(super) fn print_prefixes(octets: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (at, prefix) in prefixes(octets).enumerate() {
        let [_, family, bits, flags, address @ ..] = prefix else { break };
        let sign = if flags & 0x80 != 0 { "!" } else { "" };
        let between = if at > 0 { " " } else { "" };
        write!(f, "{between}{sign}{family}:")?;
        let mut full = [0; 16];
        full[..address.len()].copy_from_slice(address);
        let len = if *family == FAMILY_IPV4 as u8 { 4 } else { 16 };
        print::print_address(&full[..len], f)?;
        write!(f, "/{bits}")?;
    }
    Ok(())
}

/// Whether all prefixes are of families that have text.
pub(super) fn has_known_families(octets: &[u8]) -> bool {
    let known = [FAMILY_IPV4, FAMILY_IPV6].map(u16::to_be_bytes);
    prefixes(octets).all(|prefix| known.iter().any(|family| prefix.starts_with(family)))
}

/// Returns the prefixes of valid data, each with its header.
fn prefixes(octets: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = octets;
    std::iter::from_fn(move || {
        let (prefix, tail) = rest.split_at_checked(prefix_len(rest)?)?;
        rest = tail;
        Some(prefix)
    })
}

/// Digits behind `+` for a telephone number, hexadecimal for an end system.
pub(super) fn print_atma(octets: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match octets {
        [ATMA_E164, digits @ ..] => {
            f.write_char('+')?;
            digits.iter().try_for_each(|&digit| f.write_char(char::from(digit)))
        }
        [_, octets @ ..] => print::print_hex(octets, f),
        [] => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_addresses_are_read_as_the_standard_library_reads_them() {
        for text in [
            "0.0.0.0",
            "192.0.2.1",
            "255.255.255.255",
            "10.20.30.4",
            "1.2.3",
            "1.2.3.4.5",
            "",
            "1.2.3.256",
            "01.2.3.4",
            "1.2.3.04",
            "1..2.3",
            "1.2.3.",
            ".1.2.3",
            "1.2.3.x",
            "00.0.0.0",
            "1.2.3.4 ",
            "1.2.3.1000",
            "999.1.1.1",
        ] {
            assert_eq!(ipv4(text.as_bytes()), text.parse().ok(), "{text}");
        }
    }
}
