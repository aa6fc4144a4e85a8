//! Addresses that a name of the Internet should not have: those of the local network and of the
//! machine itself.
//!
//! The owner of such a name can have a browser talk to machines behind a firewall as if they were
//! the owner's own site (DNS rebinding).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use zonda_wire::{Type, name};

/// The parameters of an SVCB or HTTPS record that hold addresses (rfc9460#14.3.2).
const IPV4_HINT: u16 = 4;
/// Key of SvcParam `ipv6hint`; see [`IPV4_HINT`].
const IPV6_HINT: u16 = 6;

/// Whether record data, its names written out, hold an address of a local network.
#[must_use]
pub fn has_private_address(rtype: Type, rdata: &[u8]) -> bool {
    match rtype {
        Type::A => v4_addresses(rdata).any(is_private_v4),
        Type::AAAA => v6_addresses(rdata).any(is_private_v6),
        Type::SVCB | Type::HTTPS => has_private_hint(rdata),
        _ => false,
    }
}

/// Whether an address means something on a local network or a machine only.
#[must_use]
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_private_v4(v4),
        IpAddr::V6(v6) => is_private_v6(v6),
    }
}

/// `0.0.0.0/8` (this machine), loopback, private, link-local, and shared between carriers and
/// customers (rfc6890#2.2.2).
fn is_private_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    let is_shared = first == 100 && second & 0xc0 == 64;
    first == 0
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || is_shared
}

/// Whether an IPv6 address is private, IPv4 addresses in it included (rfc6890#2.2.3). `::` and
/// `::1` are private, too.
fn is_private_v6(address: Ipv6Addr) -> bool {
    address.is_unique_local()
        || address.is_unicast_link_local()
        || embedded_v4(address).is_some_and(is_private_v4)
}

/// Returns the IPv4 address that packets to an IPv6 address are for, perhaps behind a translator
/// (rfc6890#2.2.3).
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let at_end = || Some(Ipv4Addr::from_bits(address.to_bits() as u32));
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] => at_end(), // compatible, mapped
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => at_end(),  // NAT64
        [0x2002, ..] => Some(Ipv4Addr::from_bits((address.to_bits() >> 80) as u32)), // 6to4
        _ => None,
    }
}

/// Returns the IPv4 addresses that stand one behind the other.
fn v4_addresses(octets: &[u8]) -> impl Iterator<Item = Ipv4Addr> {
    octets.as_chunks::<4>().0.iter().map(|octets| Ipv4Addr::from(*octets))
}

/// Returns the IPv6 addresses that stand one behind the other.
fn v6_addresses(octets: &[u8]) -> impl Iterator<Item = Ipv6Addr> {
    octets.as_chunks::<16>().0.iter().map(|octets| Ipv6Addr::from(*octets))
}

/// Whether an SVCB or HTTPS record hints at a private address (rfc9460#2.2).
fn has_private_hint(rdata: &[u8]) -> bool {
    let target = rdata.get(2..).unwrap_or_default(); // behind the priority
    let target_len = name::wire_len(target).unwrap_or(target.len());
    let mut rest = &target[target_len..];
    while let Some(([key_high, key_low, len_high, len_low], after)) = rest.split_first_chunk() {
        let len = usize::from(u16::from_be_bytes([*len_high, *len_low]));
        let Some((value, after)) = after.split_at_checked(len) else { return false };
        let is_private = match u16::from_be_bytes([*key_high, *key_low]) {
            IPV4_HINT => v4_addresses(value).any(is_private_v4),
            IPV6_HINT => v6_addresses(value).any(is_private_v6),
            _ => false,
        };
        if is_private {
            return true;
        }
        rest = after;
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn private_and_public_addresses_are_distinguished() {
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.2",
            "169.254.1.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "::",
            "::1",
            "fd00::1",
            "fc00::1",
            "fe80::1",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::1",
            "2002:a00:1::",
            "2002:c0a8:105:1::1",
        ] {
            assert!(is_private(private.parse().unwrap()), "{private}");
        }
        for public in [
            "9.255.255.255",
            "100.63.0.1",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.2.1",
            "198.51.100.1",
            "2001:db8::1",
            "::ffff:192.0.2.1",
            "::192.0.2.1",
            "64:ff9b::192.0.2.1",
            "64:ff9b:1::10.0.0.1",
            "2002:c000:201::1",
            "2001:db8::10.0.0.1",
            "ff02::1",
        ] {
            assert!(!is_private(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn hints_of_service_records_are_looked_at() {
        let record = |key: u8, value: &[u8]| {
            let alpn = [0, 1, 0, 3, 2, b'h', b'2'];
            let head = [0, key, 0, value.len() as u8];
            [b"\0\x01\x03www\0", &alpn[..], &head, value].concat()
        };
        let private = [192, 0, 2, 1, 10, 0, 0, 1];
        assert!(has_private_address(Type::HTTPS, &record(4, &private)));
        assert!(!has_private_address(Type::HTTPS, &record(4, &private[..4])));
        assert!(!has_private_address(Type::HTTPS, &record(5, &private)));
        assert!(has_private_address(Type::SVCB, &record(6, &Ipv6Addr::LOCALHOST.octets())));
        let whole = record(4, &private);
        for cut in 0..whole.len() {
            assert!(!has_private_address(Type::HTTPS, &whole[..cut]));
        }
        assert!(!has_private_address(Type::TXT, &private));
    }
}
