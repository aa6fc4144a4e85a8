//! Addresses in names: with dashes in labels, reversed below `in-addr.arpa` and `ip6.arpa`.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use zonda_zone::{HashSeed, LookupName};

/// Octets of the longest address in a label.
pub const DASHED_BYTES_MAX: usize = 46;

/// Returns the address that a label spells with dashes (`10-1-2-3`, `fd00--1`), if it is one.
#[must_use]
pub fn from_dashed(label: &[u8]) -> Option<IpAddr> {
    let mut text = [0; DASHED_BYTES_MAX];
    let text = text.get_mut(..label.len())?;
    text.copy_from_slice(label);
    let is_v4 = label.iter().filter(|octet| **octet == b'-').count() == 3
        && label.iter().all(|octet| octet.is_ascii_digit() || *octet == b'-')
        && !label.windows(2).any(|pair| pair == b"--");
    for octet in text.iter_mut().filter(|octet| **octet == b'-') {
        *octet = if is_v4 { b'.' } else { b':' };
    }
    let text = std::str::from_utf8(text).ok()?;
    match is_v4 {
        true => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        false => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
    }
}

/// Writes an address as a label, without its length, and returns its octets. A label must not end
/// with a dash, so that a zero follows one.
pub fn to_dashed(address: IpAddr, label: &mut [u8; DASHED_BYTES_MAX]) -> usize {
    let room = label.len();
    let mut rest = &mut label[..];
    // The longest address is shorter than the label.
    let _ = write!(rest, "{address}");
    let mut len = room - rest.len();
    for octet in label[..len].iter_mut().filter(|octet| matches!(octet, b'.' | b':')) {
        *octet = b'-';
    }
    if label[..len].ends_with(b"-") {
        label[len] = b'0';
        len += 1;
    }
    len
}

/// What a name below `in-addr.arpa` or `ip6.arpa` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reversed {
    /// The name of an address.
    Address(IpAddr),
    /// The name of a network, below which there are names of addresses.
    Network,
    /// No name that an address or a network can have.
    Nothing,
}

/// Reads a reversed name (rfc1035#3.5, rfc3596#2.5).
#[must_use]
pub fn from_reversed(name: &LookupName) -> Reversed {
    let count = name.label_count();
    if count < 2 || name.label(count - 1) != b"arpa" {
        return Reversed::Nothing;
    }
    match name.label(count - 2) {
        b"in-addr" => v4_of(name, count - 2),
        b"ip6" => v6_of(name, count - 2),
        _ => Reversed::Nothing,
    }
}

/// Reads decimal octets, the last one first.
fn v4_of(name: &LookupName, count: usize) -> Reversed {
    let mut octets = [0; 4];
    if count > octets.len() {
        return Reversed::Nothing;
    }
    for (octet, label) in octets.iter_mut().zip((0..count).rev()) {
        let label = name.label(label);
        let is_canonical = label.len() == 1 || label.first() != Some(&b'0');
        let text = std::str::from_utf8(label).ok().filter(|_| is_canonical);
        let digits = text.filter(|text| text.bytes().all(|octet| octet.is_ascii_digit()));
        let Some(value) = digits.and_then(|text| text.parse().ok()) else {
            return Reversed::Nothing;
        };
        *octet = value;
    }
    match count {
        4 => Reversed::Address(IpAddr::V4(Ipv4Addr::from(octets))),
        _ => Reversed::Network,
    }
}

/// Reads hexadecimal digits, the last one first.
fn v6_of(name: &LookupName, count: usize) -> Reversed {
    if count > 32 {
        return Reversed::Nothing;
    }
    let mut value = 0_u128;
    for label in (0..count).rev() {
        let &[digit] = name.label(label) else { return Reversed::Nothing };
        let Some(digit) = char::from(digit).to_digit(16) else { return Reversed::Nothing };
        value = value << 4 | u128::from(digit);
    }
    match count {
        32 => Reversed::Address(IpAddr::V6(Ipv6Addr::from(value))),
        _ => Reversed::Network,
    }
}

/// Returns the hash of an address.
#[must_use]
pub fn hash(address: IpAddr, seed: HashSeed) -> u64 {
    let (high, low) = match address {
        IpAddr::V4(v4) => (4, u64::from(u32::from(v4))),
        IpAddr::V6(v6) => ((u128::from(v6) >> 64) as u64, u128::from(v6) as u64),
    };
    fold(fold(seed.0, high), low)
}

/// Returns the hash of a label, in lower case and without its length.
#[must_use]
pub fn hash_label(label: &[u8], seed: HashSeed) -> u64 {
    let chunks = label.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    chunks.fold(fold(seed.0, label.len() as u64), fold)
}

/// Adds a word to a hash: a folded multiplication, which spreads each bit over the result.
#[must_use]
pub fn fold(hash: u64, word: u64) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15; // 2⁶⁴ divided by the golden ratio
    let product = u128::from(hash ^ word) * u128::from((ODD ^ hash.rotate_left(32)) | 1);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use zonda_wire::Name;

    /// Returns what a name stands for.
    fn reversed(name: &str) -> Reversed {
        let name: Name = name.parse().unwrap();
        from_reversed(&LookupName::new(name.as_wire(), HashSeed(1)))
    }

    #[test]
    fn labels_with_dashes_are_addresses_and_become_them_again() {
        for (label, address) in [
            ("10-1-2-3", "10.1.2.3"),
            ("fd00--1", "fd00::1"),
            ("1-2-3-4-5-6-7-8", "1:2:3:4:5:6:7:8"),
            ("5678-abcd--1", "5678:abcd::1"),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(from_dashed(label.as_bytes()), Some(address), "{label}");
            let mut written = [0; DASHED_BYTES_MAX];
            let len = to_dashed(address, &mut written);
            assert_eq!(&written[..len], label.as_bytes());
        }
        for label in ["", "-", "10-1-2", "10-1-2-256", "a-b-c-d-", "1-2-3-4-5"] {
            assert_eq!(from_dashed(label.as_bytes()), None, "{label}");
        }
        let mut written = [0; DASHED_BYTES_MAX];
        let len = to_dashed("fd00::".parse().unwrap(), &mut written);
        assert_eq!(&written[..len], b"fd00--0");
    }

    #[test]
    fn reversed_names_are_addresses_networks_or_nothing() {
        let address = |text: &str| Reversed::Address(text.parse().unwrap());
        assert_eq!(reversed("4.3.2.10.in-addr.arpa"), address("10.2.3.4"));
        assert_eq!(reversed("2.10.in-addr.arpa"), Reversed::Network);
        assert_eq!(reversed("in-addr.arpa"), Reversed::Network);
        assert_eq!(reversed("5.4.3.2.10.in-addr.arpa"), Reversed::Nothing);
        assert_eq!(reversed("04.3.2.10.in-addr.arpa"), Reversed::Nothing);
        assert_eq!(reversed("x.3.2.10.in-addr.arpa"), Reversed::Nothing);
        assert_eq!(reversed("+4.3.2.10.in-addr.arpa"), Reversed::Nothing);
        let v6 = format!("1.{}0.0.d.f.ip6.arpa", "0.".repeat(27));
        assert_eq!(reversed(&v6), address("fd00::1"));
        assert_eq!(reversed("d.f.ip6.arpa"), Reversed::Network);
        assert_eq!(reversed("df.ip6.arpa"), Reversed::Nothing);
    }
}
