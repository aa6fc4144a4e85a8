//! Fields that take several words or depend on other fields: gateways, relays, host identities, A6.

use super::error::Fault;
use super::number;
use super::parse::{Scope, Tokens, parse_name};
use super::{address, binary, print, wire};
use crate::{NameError, name};
use std::fmt::{self, Display, Write};

/// Which bits of the rdata's second octet say what an IPSECKEY's gateway is (rfc4025#2.3).
pub(super) const IPSECKEY_TYPE: u8 = 0xff;
/// Which bits of the rdata's second octet say what an AMTRELAY's relay is (rfc8777#4.2.3).
pub(super) const AMTRELAY_TYPE: u8 = 0x7f;
/// AMTRELAY's discovery bit (rfc8777#4.2.2).
const DISCOVERY: u8 = 0x80;

/// Nothing, an address or a name, as the bits `mask` of the second octet say.
pub(super) fn parse(
    tokens: &mut Tokens<'_, '_>,
    scope: Scope<'_>,
    mask: u8,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let kind = out.get(scope.start + 1).ok_or(Fault::Malformed)? & mask;
    let word = tokens.word()?;
    match kind {
        0 if word == b"." => Ok(()),
        0 => Err(Fault::NoGateway),
        1 => address::parse_ipv4(word, out),
        2 => address::parse_ipv6(word, out),
        3 => parse_name(word, scope.origin, out),
        _ => Err(Fault::GatewayType),
    }
}

/// Returns the octets of the gateway or relay at `at`.
pub(super) fn len(rdata: &[u8], at: usize, mask: u8) -> Result<usize, Fault> {
    let len = match rdata.get(1).ok_or(Fault::Truncated)? & mask {
        0 => 0,
        1 => 4,
        2 => 16,
        3 => return wire::name_len(&rdata[at..]),
        _ => return Err(Fault::GatewayType),
    };
    if rdata.len() - at < len { Err(Fault::Truncated) } else { Ok(len) }
}

/// Whether the gateway or relay of valid data is a name.
pub(super) fn is_name(rdata: &[u8]) -> bool {
    rdata.get(1).is_some_and(|kind| kind & AMTRELAY_TYPE == 3)
}

/// Reads the discovery bit and the relay's type: two numbers, one octet.
pub(super) fn parse_relay_type(
    tokens: &mut Tokens<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let discovery = if number::decimal(tokens.word()?, 1)? == 1 { DISCOVERY } else { 0 };
    let kind = number::decimal(tokens.word()?, u64::from(AMTRELAY_TYPE))? as u8;
    if kind > 3 {
        return Err(Fault::GatewayType);
    }
    out.push(discovery | kind);
    Ok(())
}

/// Algorithm, host identity tag in hexadecimal, public key in base 64 (rfc8005#6).
pub(super) fn parse_hip_identity(
    tokens: &mut Tokens<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let start = out.len();
    let algorithm = number::decimal(tokens.word()?, u64::from(u8::MAX))? as u8;
    out.extend_from_slice(&[0, algorithm, 0, 0]);
    binary::hex_word(tokens.word()?, out)?;
    let tag_len = out.len() - start - 4;
    out[start] = u8::try_from(tag_len).map_err(|_| Fault::StringTooLong)?;
    if tag_len == 0 {
        return Err(Fault::Hex);
    }
    binary::base64_word(tokens.word()?, out)?;
    let key_len = u16::try_from(out.len() - start - 4 - tag_len).map_err(|_| Fault::TooLong)?;
    out[start + 2..start + 4].copy_from_slice(&key_len.to_be_bytes());
    Ok(())
}

/// Returns the octets of a host identity.
pub(super) fn hip_len(rest: &[u8]) -> Result<usize, Fault> {
    let &[tag_len, _, high, low, ..] = rest else { return Err(Fault::Truncated) };
    let key_len = u16::from_be_bytes([high, low]);
    if tag_len == 0 || key_len == 0 {
        return Err(Fault::Malformed);
    }
    let len = 4 + usize::from(tag_len) + usize::from(key_len);
    if rest.len() < len { Err(Fault::Truncated) } else { Ok(len) }
}

/// Prefix length, address suffix unless that is 128, prefix name unless it is 0 (rfc2874#3.2).
pub(super) fn parse_a6(
    tokens: &mut Tokens<'_, '_>,
    scope: Scope<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let prefix = number::decimal(tokens.word()?, 128)? as u8;
    out.push(prefix);
    if prefix < 128 {
        let mut octets = address::ipv6(tokens.word()?).ok_or(Fault::Ipv6)?.octets();
        let first = usize::from(prefix / 8);
        octets[first] &= 0xff >> (prefix % 8);
        out.extend_from_slice(&octets[first..]);
    }
    if prefix > 0 { parse_name(tokens.word()?, scope.origin, out) } else { Ok(()) }
}

/// Returns the octets of an A6 record's data.
pub(super) fn a6_len(rest: &[u8]) -> Result<usize, Fault> {
    let &prefix = rest.first().ok_or(Fault::Truncated)?;
    if prefix > 128 {
        return Err(Fault::Number(128));
    }
    let name_at = a6_name_at(rest);
    let tail = rest.get(name_at..).ok_or(Fault::Truncated)?;
    match prefix {
        0 => Ok(name_at),
        _ => wire::name_len(tail)
            .map(|len| name_at + len)
            .map_err(|_| Fault::Name(NameError::Malformed)),
    }
}

/// Returns where the name of an A6 record begins: behind the prefix length and the suffix.
pub(super) fn a6_name_at(rest: &[u8]) -> usize {
    let prefix = rest.first().copied().unwrap_or(0);
    1 + (128 - usize::from(prefix).min(128)).div_ceil(8)
}

/// Returns a dot, an address or a name, as the bits `mask` of the data's second octet say.
pub(super) fn print(
    octets: &[u8],
    rdata: &[u8],
    mask: u8,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match rdata.get(1).map_or(0, |kind| kind & mask) {
        0 => f.write_char('.'),
        3 => name::Presentation(octets).fmt(f),
        _ => print::print_address(octets, f),
    }
}

/// Returns the discovery bit and the relay's type.
pub(super) fn print_relay_type(octets: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let octet = octets.first().copied().unwrap_or(0);
    write!(f, "{} {}", u8::from(octet & DISCOVERY != 0), octet & AMTRELAY_TYPE)
}

/// Algorithm, host identity tag, public key.
pub(super) fn print_hip_identity(octets: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some((algorithm, tag, key)) = hip_parts(octets) else { return Ok(()) };
    write!(f, "{algorithm} ")?;
    print::print_hex(tag, f)?;
    f.write_char(' ')?;
    print::print_base64(key, f)
}

/// Algorithm, host identity tag and public key of a host identity.
pub fn hip_parts(octets: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let &[tag_len, algorithm, _, _, ref rest @ ..] = octets else { return None };
    let (tag, key) = rest.split_at_checked(usize::from(tag_len))?;
    Some((algorithm, tag, key))
}

/// Prefix length, address suffix unless that is 128, prefix name unless it is 0.
pub(super) fn print_a6(octets: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let name_at = a6_name_at(octets);
    let (Some(&prefix), Some(suffix)) = (octets.first(), octets.get(1..name_at)) else {
        return Ok(());
    };
    write!(f, "{prefix}")?;
    if prefix < 128 {
        let mut address = [0; 16];
        address[16 - suffix.len()..].copy_from_slice(suffix);
        f.write_char(' ')?;
        print::print_address(&address, f)?;
    }
    match octets.get(name_at..) {
        Some(name @ [_, ..]) => write!(f, " {}", name::Presentation(name)),
        _ => Ok(()),
    }
}

/// Whether the suffix has no bits set that belong to the prefix; text drops them.
pub(super) fn is_a6_masked(octets: &[u8]) -> bool {
    match *octets {
        [prefix @ 0..128, first, ..] => first & !(0xff >> (prefix % 8)) == 0,
        _ => true,
    }
}
