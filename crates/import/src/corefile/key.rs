//! Keys of server blocks and names of zones: `dns://example.com:1053`, `10.0.0.0/24`.

use super::lexer::Token;
use crate::error::{ImportError, Problem};
use crate::tree::fail;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use zonda_wire::Name;

/// The port of DNS.
const DNS_PORT: u16 = 53;
/// Schemes of transports with the ports that they have by default.
const SCHEMES: [(&str, u16); 6] = [
    ("dns", DNS_PORT),
    ("tls", 853),
    ("quic", 853),
    ("grpc", 443),
    ("https", 443),
    ("https3", 443),
];

/// A key of a server block.
pub struct Key {
    /// Zones that the key stands for: several for a network between two octets.
    pub zones: Vec<Name>,
    /// Port at which queries for them are answered.
    pub port: u16,
    /// Scheme of the transport.
    pub scheme: &'static str,
    /// Token of the key.
    pub token: Token,
}

/// Reads a key.
///
/// # Errors
/// When it is none.
pub fn key(token: &Token) -> Result<Key, ImportError> {
    let (scheme, default_port, rest) = match token.text.split_once("://") {
        None => ("dns", DNS_PORT, token.text.as_str()),
        Some((scheme, rest)) => {
            let known = SCHEMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(scheme));
            let (scheme, port) = known.ok_or_else(|| token.expected("`dns://`"))?;
            (*scheme, *port, rest)
        }
    };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit()) => {
            let port = port.parse().ok().filter(|port| *port > 0);
            (host, port.ok_or_else(|| token.expected("a port from 1 to 65535"))?)
        }
        _ => (rest, default_port),
    };
    let zones = zones_of(host, token)?;
    Ok(Key { zones, port, scheme, token: token.clone() })
}

/// Reads the zones that a word stands for, as plugins have them.
///
/// # Errors
/// When it is neither a name nor a network.
pub fn zones(token: &Token) -> Result<Vec<Name>, ImportError> {
    Ok(key(token)?.zones)
}

/// Reads the zones of several words.
pub fn all_zones(tokens: &[Token]) -> Result<Vec<Name>, ImportError> {
    let mut all = Vec::new();
    for token in tokens {
        all.extend(zones(token)?);
    }
    Ok(all)
}

/// Returns the zones of a name or of a network.
fn zones_of(host: &str, token: &Token) -> Result<Vec<Name>, ImportError> {
    if let Some((address, length)) = host.split_once('/') {
        let network = address.parse().ok().zip(length.parse().ok());
        let reverse = network.and_then(|(address, length)| reverse_zones(address, length));
        return reverse.ok_or_else(|| token.expected("a network such as 10.0.0.0/8"));
    }
    let name: Result<Name, _> = if host.is_empty() { Ok(Name::root()) } else { host.parse() };
    let name =
        name.map_err(|why| fail(token.place.clone(), Problem::NotAName(token.text.clone(), why)))?;
    Ok(vec![name.to_lowercase()])
}

/// Returns the reverse zones of a network: one, or as many as its prefix leaves open up to the next
/// octet (IPv4) or hexadecimal digit (IPv6).
fn reverse_zones(address: IpAddr, length: u8) -> Option<Vec<Name>> {
    let (octets, step, suffix) = match address {
        IpAddr::V4(address) => (address.octets().to_vec(), 8, "in-addr.arpa"),
        IpAddr::V6(address) => (address.octets().to_vec(), 4, "ip6.arpa"),
    };
    if usize::from(length) > octets.len() * 8 {
        return None;
    }
    let parts: Vec<u16> = match step {
        8 => octets.iter().map(|octet| u16::from(*octet)).collect(),
        _ => octets.iter().flat_map(|it| [u16::from(it >> 4), u16::from(it & 15)]).collect(),
    };
    let whole = usize::from(length / step);
    let spare = length % step;
    let zone = |parts: &[u16]| {
        let mut text = String::new();
        for part in parts.iter().rev() {
            let part = if step == 8 { part.to_string() } else { format!("{part:x}") };
            text.push_str(&part);
            text.push('.');
        }
        text.push_str(suffix);
        text.parse::<Name>().ok()
    };
    if spare == 0 {
        return Some(vec![zone(parts.get(..whole)?)?]);
    }
    let count = 1_u16 << (step - spare);
    let first = parts.get(whole)? / count * count;
    let mut parts: Vec<u16> = parts.get(..=whole)?.to_vec();
    let mut all = Vec::new();
    for last in first..first + count {
        *parts.last_mut()? = last;
        all.push(zone(&parts)?);
    }
    Some(all)
}

/// Returns the network whose reverse zone a name is; none if it has labels of another kind.
pub fn network(zone: &Name) -> Option<String> {
    let text = written(zone);
    let (parts, is_v4) = match text.strip_suffix("in-addr.arpa") {
        Some(parts) => (parts, true),
        None => (text.strip_suffix("ip6.arpa")?, false),
    };
    let mut parts: Vec<&str> = parts.split('.').filter(|part| !part.is_empty()).collect();
    parts.reverse();
    let radix = if is_v4 { 10 } else { 16 };
    let (most, bits): (u32, u32) = if is_v4 { (4, 8) } else { (32, 4) };
    let mut address: u128 = 0;
    for part in &parts {
        let part = u128::from(u8::from_str_radix(part, radix).ok()?);
        address = (address << bits) | (part < 1 << bits).then_some(part)?;
    }
    let count = u32::try_from(parts.len()).ok()?;
    let rest = bits * most.checked_sub(count)?;
    let address = address.checked_shl(rest).unwrap_or(0);
    let length = count * bits;
    match is_v4 {
        true => Some(format!("{}/{length}", Ipv4Addr::from(u32::try_from(address).ok()?))),
        false => Some(format!("{}/{length}", Ipv6Addr::from(address))),
    }
}

/// Returns a name as a `zonda.toml` has it: without the dot at its end.
pub fn written(name: &Name) -> String {
    let text = name.to_string();
    if text == "." { text } else { text.trim_end_matches('.').to_owned() }
}

/// Whether a name is a zone of reverse names.
pub fn is_reverse(name: &Name) -> bool {
    let is_in = |arpa: &str| is_in(name, &arpa.parse().unwrap_or_else(|_| Name::root()));
    is_in("in-addr.arpa") || is_in("ip6.arpa")
}

/// Whether a name is a zone or lies in it.
pub fn is_in(name: &Name, zone: &Name) -> bool {
    zonda_wire::name::is_at_or_below(name.as_wire(), zone.as_wire())
}
