//! Sets of types or ports, one bit each.

use super::error::Fault;
use super::number;
use super::parse::Tokens;
use crate::Type;
use std::fmt;

/// Octets in a block of 256 types.
const BLOCK: usize = 32;
/// Octets in a bitmap of types below 128.
const FLAT_LEN: usize = 16;
/// Octets in a bitmap of all ports.
const PORTS_LEN: usize = 8192;

/// Protocols that services may name (rfc1010).
const PROTOCOLS: &[(u8, &str)] = &[(1, "ICMP"), (6, "TCP"), (17, "UDP")];

/// Ports that services may name instead of numbering.
const PORTS: &[(u16, &str)] = &[
    (1, "tcpmux"),
    (7, "echo"),
    (9, "discard"),
    (20, "ftp-data"),
    (21, "ftp"),
    (22, "ssh"),
    (23, "telnet"),
    (25, "smtp"),
    (37, "time"),
    (42, "nameserver"),
    (43, "nicname"),
    (53, "domain"),
    (69, "tftp"),
    (79, "finger"),
    (80, "http"),
    (110, "pop3"),
    (111, "sunrpc"),
    (119, "nntp"),
    (123, "ntp"),
    (143, "imap"),
    (161, "snmp"),
    (443, "https"),
];

/// Two octets: a type.
pub(super) fn parse_type(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let rtype = Type::from_text(text).ok_or(Fault::Type)?;
    out.extend_from_slice(&rtype.0.to_be_bytes());
    Ok(())
}

/// Reads the types of all tokens left, in blocks; none is fine (rfc5155#3.2.1).
pub(super) fn parse_windowed(tokens: &mut Tokens<'_, '_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut bits = [0_u8; 256 * BLOCK];
    let mut blocks = 0;
    while tokens.peek().is_some() {
        let number = usize::from(Type::from_text(tokens.word()?).ok_or(Fault::Type)?.0);
        bits[number / 8] |= 0x80 >> (number % 8);
        blocks = blocks.max(number / 256 + 1);
    }
    for (number, block) in bits.chunks_exact(BLOCK).take(blocks).enumerate() {
        let used = trimmed(block);
        if !used.is_empty() {
            out.extend_from_slice(&[number as u8, used.len() as u8]);
            out.extend_from_slice(used);
        }
    }
    Ok(())
}

/// Whether octets are blocks in ascending order, without empty octets at their ends.
pub(super) fn is_windowed(mut rest: &[u8]) -> bool {
    let mut next_block = 0;
    while let [block, len, tail @ ..] = rest {
        let len = usize::from(*len);
        let in_order = u16::from(*block) >= next_block && (1..=BLOCK).contains(&len);
        if !in_order || tail.len() < len || tail[len - 1] == 0 {
            return false;
        }
        next_block = u16::from(*block) + 1;
        rest = &tail[len..];
    }
    rest.is_empty()
}

/// Reads the types of all tokens left, all below 128, by mnemonic or number; none is fine.
pub(super) fn parse_flat(tokens: &mut Tokens<'_, '_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut bits = [0_u8; FLAT_LEN];
    while tokens.peek().is_some() {
        let word = tokens.word()?;
        let number = number::decimal(word, u64::from(u16::MAX)).ok().map(|number| number as u16);
        let number = number.or_else(|| Type::from_text(word).map(|rtype| rtype.0));
        let number = usize::from(number.ok_or(Fault::Type)?);
        *bits.get_mut(number / 8).ok_or(Fault::TypeTooHigh)? |= 0x80 >> (number % 8);
    }
    out.extend_from_slice(trimmed(&bits));
    Ok(())
}

/// Whether octets are such a bitmap.
pub(super) fn is_flat(octets: &[u8]) -> bool {
    octets.len() <= FLAT_LEN && octets.last() != Some(&0)
}

/// Reads a protocol, and the ports of all tokens left.
pub(super) fn parse_services(tokens: &mut Tokens<'_, '_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let service = |_| Fault::Service;
    let protocol = number::number_or_mnemonic(tokens.word()?, u64::from(u8::MAX), PROTOCOLS);
    out.push(protocol.map_err(service)? as u8);
    let mut bits = [0_u8; PORTS_LEN];
    while tokens.peek().is_some() {
        let port = number::number_or_mnemonic(tokens.word()?, u64::from(u16::MAX), PORTS);
        let port = port.map_err(service)? as usize;
        bits[port / 8] |= 0x80 >> (port % 8);
    }
    out.extend_from_slice(trimmed(&bits));
    Ok(())
}

/// Whether octets are a protocol and a bitmap.
pub(super) fn is_services(octets: &[u8]) -> bool {
    (1..=1 + PORTS_LEN).contains(&octets.len())
}

/// Returns the types of a bitmap in blocks, in ascending order.
pub fn windowed_types(octets: &[u8]) -> impl Iterator<Item = Type> {
    let mut rest = octets;
    let blocks = std::iter::from_fn(move || {
        let [block, len, tail @ ..] = rest else { return None };
        let (bits, tail) = tail.split_at_checked(usize::from(*len))?;
        rest = tail;
        Some((usize::from(*block) * 256, bits))
    });
    blocks.flat_map(|(first, bits)| {
        let numbers = bits_set(bits).map(move |bit| first + bit);
        numbers.map(|number| Type(number as u16)) // 256 blocks of 256
    })
}

/// Returns the types of a bitmap without blocks, in ascending order.
pub fn flat_types(octets: &[u8]) -> impl Iterator<Item = Type> {
    bits_set(octets).map(|number| Type(number as u16)) // at most 16 octets
}

/// Returns the places of the bits that are set, counted from the highest of the first octet.
fn bits_set(octets: &[u8]) -> impl Iterator<Item = usize> {
    octets.iter().enumerate().flat_map(|(at, octet)| {
        (0..8).filter(move |bit| octet & (0x80 >> bit) != 0).map(move |bit| at * 8 + bit)
    })
}

/// Returns the number of a protocol, and those of its ports.
pub(super) fn print_services(octets: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some((protocol, ports)) = octets.split_first() else { return Ok(()) };
    write!(f, "{protocol}")?;
    bits_set(ports).try_for_each(|port| write!(f, " {port}"))
}

/// Whether a protocol's bitmap has no empty octets at its end, as text makes none.
pub(super) fn is_trimmed(octets: &[u8]) -> bool {
    octets.len() == 1 || octets.last() != Some(&0)
}

/// Octets up to the last that is not zero.
fn trimmed(octets: &[u8]) -> &[u8] {
    let len = octets.iter().rposition(|&octet| octet != 0).map_or(0, |last| last + 1);
    &octets[..len]
}
