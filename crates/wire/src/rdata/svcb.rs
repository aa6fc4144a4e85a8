//! Service parameters (rfc9460#2).
//!
//! ```text
//! key u16 | length u16 | value        in strictly ascending order of keys
//! ```

use super::error::Fault;
use super::parse::Tokens;
use super::{address, binary, number, print, string};
use crate::name;
use std::fmt::{self, Display, Write};

/// Keys that the client must understand (rfc9460#8).
pub const MANDATORY: u16 = 0;
/// Protocols (rfc9460#7.1).
pub const ALPN: u16 = 1;
/// The scheme's default protocol is not offered (rfc9460#7.1).
pub const NO_DEFAULT_ALPN: u16 = 2;
/// Port (rfc9460#7.2).
pub const PORT: u16 = 3;
/// IPv4 addresses (rfc9460#7.3).
pub const IPV4HINT: u16 = 4;
/// Encrypted client hello (rfc9848).
pub const ECH: u16 = 5;
/// IPv6 addresses (rfc9460#7.3).
pub const IPV6HINT: u16 = 6;
/// Path template for DNS over HTTPS (rfc9461#5).
pub const DOHPATH: u16 = 7;
/// Oblivious HTTP (rfc9540#4).
pub const OHTTP: u16 = 8;
/// Groups for the key exchange of TLS, by their numbers (the IANA registry).
pub const TLS_SUPPORTED_GROUPS: u16 = 9;

/// Names of keys, in ascending order.
pub const KEYS: &[(u16, &str)] = &[
    (MANDATORY, "mandatory"),
    (ALPN, "alpn"),
    (NO_DEFAULT_ALPN, "no-default-alpn"),
    (PORT, "port"),
    (IPV4HINT, "ipv4hint"),
    (ECH, "ech"),
    (IPV6HINT, "ipv6hint"),
    (DOHPATH, "dohpath"),
    (OHTTP, "ohttp"),
    (TLS_SUPPORTED_GROUPS, "tls-supported-groups"),
];

/// The key that stands for none (rfc9460#14.3.2).
const INVALID_KEY: u16 = 65_535;

/// What is wrong with service parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SvcFault {
    /// Not the name of a key.
    Key,
    /// A key given twice, or octets out of order.
    Order,
    /// A value that is not one of this key.
    Value(u16),
    /// A key that `mandatory` lists is not there, or may not be listed.
    Mandatory,
    /// `no-default-alpn` without `alpn`.
    NoAlpn,
    /// More octets, or fewer, than the lengths say.
    Length,
}

impl Display for SvcFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "expected a key such as alpn or key667",
            Self::Order => "a key stands here for the second time",
            Self::Value(MANDATORY) => "mandatory= takes keys with commas between, each once",
            Self::Value(ALPN) => "alpn= takes protocols with commas between, as in alpn=h2,h3",
            Self::Value(NO_DEFAULT_ALPN | OHTTP) => "this key takes no value",
            Self::Value(PORT) => "port= takes a number from 0 to 65535",
            Self::Value(IPV4HINT) => "ipv4hint= takes IPv4 addresses with commas between",
            Self::Value(ECH) => "ech= takes base 64",
            Self::Value(IPV6HINT) => "ipv6hint= takes IPv6 addresses with commas between",
            Self::Value(DOHPATH) => "dohpath= takes a path such as /dns-query{?dns}",
            Self::Value(TLS_SUPPORTED_GROUPS) => {
                "tls-supported-groups= takes numbers with commas between, each once"
            }
            Self::Value(_) => "the value of this key is malformed",
            Self::Mandatory => "mandatory= may list only keys of this record, and not itself",
            Self::NoAlpn => "no-default-alpn needs alpn= beside it",
            Self::Length => "the parameters do not have the lengths they say",
        })
    }
}

/// Appends the parameters of all tokens left, sorted.
pub(super) fn parse(tokens: &mut Tokens<'_, '_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let start = out.len();
    let mut value = Vec::new();
    while tokens.peek().is_some() {
        let word = tokens.word()?;
        let quoted = tokens.peek().filter(|next| next.quoted && next.glued);
        let quoted = quoted.filter(|_| word.ends_with(b"="));
        if quoted.is_some() {
            tokens.take()?;
        }
        let text = quoted.map(|token| token.text);
        parse_param(word, text, start, &mut value, out).map_err(Fault::Svc)?;
        if out.len() - start > usize::from(u16::MAX) {
            return Err(Fault::TooLong);
        }
    }
    check(&out[start..]).map_err(Fault::Svc)
}

/// Puts `key`, `key=value` or `key="value"` where it belongs among the parameters from `start` on.
fn parse_param(
    word: &[u8],
    quoted: Option<&[u8]>,
    start: usize,
    value: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), SvcFault> {
    let equals = word.iter().position(|&octet| octet == b'=');
    let key = key_of(&word[..equals.unwrap_or(word.len())]).ok_or(SvcFault::Key)?;
    let plain = equals.map_or(&b""[..], |at| &word[at + 1..]);
    value.clear();
    string::unescape_into(quoted.unwrap_or(plain), value).map_err(|_| SvcFault::Value(key))?;

    let place = place_of(key, start, out)?;
    let appended = out.len();
    out.extend_from_slice(&key.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    parse_value(key, value, out).ok_or(SvcFault::Value(key))?;
    let len = u16::try_from(out.len() - appended - 4).map_err(|_| SvcFault::Value(key))?;
    out[appended + 2..appended + 4].copy_from_slice(&len.to_be_bytes());
    let added = out.len() - appended;
    out[place..].rotate_right(added);
    Ok(())
}

/// Returns where a parameter with this key goes.
fn place_of(key: u16, start: usize, out: &[u8]) -> Result<usize, SvcFault> {
    let mut at = start;
    for param in params(&out[start..]) {
        let (present, value) = param?;
        if present == key {
            return Err(SvcFault::Order);
        }
        if present > key {
            break;
        }
        at += 4 + value.len();
    }
    Ok(at)
}

/// Returns the number of `alpn` or `key667`.
#[must_use]
pub fn key_of(text: &[u8]) -> Option<u16> {
    if let Some(known) = KEYS.iter().find(|known| known.1.as_bytes() == text) {
        return Some(known.0);
    }
    let digits = text.strip_prefix(b"key")?;
    let plain = digits.len() == 1 || digits.first() != Some(&b'0');
    let number = number::decimal(digits, u64::from(INVALID_KEY) - 1).ok()?;
    plain.then_some(number as u16)
}

/// Appends a value whose escapes, but for those of lists, are resolved.
fn parse_value(key: u16, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let commas = || text.split(|&octet| octet == b',');
    match key {
        MANDATORY => {
            let mut keys = commas().map(key_of).collect::<Option<Vec<u16>>>()?;
            keys.sort_unstable();
            keys.iter().for_each(|key| out.extend_from_slice(&key.to_be_bytes()));
        }
        ALPN => parse_list(text, out)?,
        PORT => number::parse_u16(text, out).ok()?,
        IPV4HINT => commas().try_for_each(|item| address::parse_ipv4(item, out).ok())?,
        ECH => binary::base64_word(text, out).ok()?,
        IPV6HINT => commas().try_for_each(|item| address::parse_ipv6(item, out).ok())?,
        TLS_SUPPORTED_GROUPS => commas().try_for_each(|item| number::parse_u16(item, out).ok())?,
        _ => out.extend_from_slice(text),
    }
    Some(())
}

/// Items with commas between; a backslash keeps a comma or a backslash (rfc9460#A.1).
fn parse_list(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = text;
    let mut length_at = out.len();
    out.push(0);
    loop {
        let octet = rest.split_off_first();
        if matches!(octet, None | Some(b',')) {
            let len = u8::try_from(out.len() - length_at - 1).ok().filter(|&len| len > 0)?;
            out[length_at] = len;
            length_at = out.len();
        }
        match octet {
            None => return Some(()),
            Some(b',') => out.push(0),
            Some(b'\\') => out.push(name::unescape(&mut rest).ok()?),
            Some(&plain) => out.push(plain),
        }
    }
}

/// Returns the parameters of wire data: key and value.
pub fn params(octets: &[u8]) -> impl Iterator<Item = Result<(u16, &[u8]), SvcFault>> {
    let mut rest = octets;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let param = split_param(rest);
        rest = param.map_or(&[], |(_, _, tail)| tail);
        Some(param.map(|(key, value, _)| (key, value)).ok_or(SvcFault::Length))
    })
}

/// Key, value, and what follows.
fn split_param(octets: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (head, tail) = octets.split_first_chunk::<4>()?;
    let len = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let (value, tail) = tail.split_at_checked(len)?;
    Some((u16::from_be_bytes([head[0], head[1]]), value, tail))
}

/// Whether octets are parameters in order, with values of the right form.
pub(super) fn check(octets: &[u8]) -> Result<(), SvcFault> {
    let mut next_key = 0;
    let mut mandatory: &[u8] = &[];
    let mut has_alpn = false;
    let mut needs_alpn = false;
    for param in params(octets) {
        let (key, value) = param?;
        if u32::from(key) < next_key || key == INVALID_KEY {
            return Err(SvcFault::Order);
        }
        next_key = u32::from(key) + 1;
        if !is_value(key, value) {
            return Err(SvcFault::Value(key));
        }
        match key {
            MANDATORY => mandatory = value,
            ALPN => has_alpn = true,
            NO_DEFAULT_ALPN => needs_alpn = true,
            _ => {}
        }
    }
    if needs_alpn && !has_alpn {
        return Err(SvcFault::NoAlpn); // rfc9460#7.1.1
    }
    check_mandatory(mandatory, octets)
}

/// Checks the mandatory keys: they ascend as the parameters do, so one walk over both is enough.
fn check_mandatory(listed: &[u8], octets: &[u8]) -> Result<(), SvcFault> {
    let mut present = params(octets).filter_map(|param| param.ok().map(|(key, _)| key));
    for key in listed.chunks_exact(2).map(|key| u16::from_be_bytes([key[0], key[1]])) {
        if key == MANDATORY || !present.any(|present| present == key) {
            return Err(SvcFault::Mandatory);
        }
    }
    Ok(())
}

/// Whether octets are a value of this key.
fn is_value(key: u16, value: &[u8]) -> bool {
    let whole = |item: usize| !value.is_empty() && value.len().is_multiple_of(item);
    match key {
        MANDATORY => whole(2) && value.chunks_exact(2).is_sorted_by(|a, b| a < b),
        ALPN => is_list(value),
        NO_DEFAULT_ALPN | OHTTP => value.is_empty(),
        PORT => value.len() == 2,
        IPV4HINT => whole(4),
        ECH => whole(1),
        IPV6HINT => whole(16),
        TLS_SUPPORTED_GROUPS => whole(2) && is_without_repetition(value),
        DOHPATH => value.starts_with(b"/") && std::str::from_utf8(value).is_ok(),
        _ => true,
    }
}

/// Whether numbers of two octets are all different.
fn is_without_repetition(value: &[u8]) -> bool {
    let mut numbers: Vec<&[u8]> = value.chunks_exact(2).collect();
    numbers.sort_unstable();
    numbers.is_sorted_by(|a, b| a < b)
}

/// Whether octets are one or more strings that are not empty.
fn is_list(mut rest: &[u8]) -> bool {
    let filled = !rest.is_empty();
    while let Some((&len, tail)) = rest.split_first() {
        match tail.get(usize::from(len)..) {
            Some(tail) if len > 0 => rest = tail,
            _ => return false,
        }
    }
    filled
}

/// Parameters with blanks between.
pub(super) fn print(octets: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (at, (key, value)) in params(octets).map_while(Result::ok).enumerate() {
        if at > 0 {
            f.write_char(' ')?;
        }
        KeyName(key).fmt(f)?;
        if !value.is_empty() {
            f.write_char('=')?;
            print_value(key, value, f)?;
        }
    }
    Ok(())
}

/// The name of a key: `alpn`, `key667`.
pub struct KeyName(pub u16);

impl Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match KEYS.iter().find(|known| known.0 == self.0) {
            Some(known) => f.write_str(known.1),
            None => write!(f, "key{}", self.0),
        }
    }
}

/// Returns a value that is not empty.
fn print_value(key: u16, value: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match key {
        MANDATORY => print_list(value, 2, f, |key, f| KeyName(number::value_of(key) as u16).fmt(f)),
        IPV4HINT => print_list(value, 4, f, print::print_address),
        IPV6HINT => print_list(value, 16, f, print::print_address),
        TLS_SUPPORTED_GROUPS => print_list(value, 2, f, |group, f| number::value_of(group).fmt(f)),
        PORT => number::value_of(value).fmt(f),
        ECH => print::print_base64(value, f),
        ALPN => print::print_quoted(&joined(value), f),
        _ => print::print_quoted(value, f),
    }
}

/// Items of `len` octets with commas between.
fn print_list(
    value: &[u8],
    len: usize,
    f: &mut fmt::Formatter<'_>,
    print: fn(&[u8], &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    for (at, item) in value.chunks(len).enumerate() {
        if at > 0 {
            f.write_char(',')?;
        }
        print(item, f)?;
    }
    Ok(())
}

/// Strings with commas between; a backslash keeps their own commas and backslashes (rfc9460#A.1).
fn joined(value: &[u8]) -> Vec<u8> {
    let mut list = Vec::with_capacity(value.len());
    for (at, item) in print::strings(value).enumerate() {
        if at > 0 {
            list.push(b',');
        }
        for &octet in item {
            if matches!(octet, b',' | b'\\') {
                list.push(b'\\');
            }
            list.push(octet);
        }
    }
    list
}
