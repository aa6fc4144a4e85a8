//! The client that a choice is made for.

use std::net::IpAddr;

/// The network that a query comes from: the client's address, or the subnet that its resolver
/// names (rfc7871#6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientNetwork {
    /// An address of the network; the bits behind the prefix are 0.
    pub address: IpAddr,
    /// The length of the prefix, bits.
    pub prefix: u8,
}

impl ClientNetwork {
    /// The network of a single address.
    #[must_use]
    pub fn of_address(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self { address, prefix: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// The network that a query tells, and how many more bits a scope has in the query's terms: an
    /// IPv4-mapped IPv6 address (rfc4291#2.5.5.2) is the IPv4 address that it means, whose first
    /// bit is the 97th there.
    #[inline]
    #[must_use]
    pub fn of_told(address: IpAddr, prefix: u8) -> (Self, u8) {
        match address.to_canonical() {
            mapped if mapped.is_ipv4() && address.is_ipv6() => {
                (Self { address: mapped, prefix: prefix.saturating_sub(96) }, 96)
            }
            _ => (Self { address, prefix }, 0),
        }
    }

    /// The first bits of the address as a number, for a hash: `v4` bits of an IPv4 address, `v6` of
    /// an IPv6 address, which is at most 64; and how many bits they are.
    #[inline]
    #[must_use]
    pub(crate) fn first_bits(&self, v4: u8, v6: u8) -> (u64, u8) {
        match self.address {
            IpAddr::V4(address) => {
                let bits = u64::from(u32::from(address));
                (bits >> (32 - u32::from(v4.min(32))), v4)
            }
            IpAddr::V6(address) => {
                let bits = (u128::from(address) >> 64) as u64;
                // Beside those of IPv4.
                (bits.checked_shr(64 - u32::from(v6.min(64))).unwrap_or(0) ^ 1 << 63, v6)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn bits(address: &str) -> (u64, u8) {
        ClientNetwork::of_address(address.parse().unwrap()).first_bits(24, 56)
    }

    #[test]
    fn addresses_of_one_network_have_the_same_first_bits() {
        assert_eq!(bits("192.0.2.1"), bits("192.0.2.254"));
        assert_ne!(bits("192.0.2.1"), bits("192.0.3.1"));
        assert_eq!(bits("2001:db8::1"), bits("2001:db8:0:ff:ffff::"));
        assert_ne!(bits("2001:db8::1"), bits("2001:db8:0:100::"));
        assert_eq!(bits("::ffff:192.0.2.1"), bits("192.0.2.9"));
    }

    #[test]
    fn an_ipv4_address_that_is_told_as_one_of_ipv6_is_told_its_scope_as_such() {
        let told = |text: &str, prefix| ClientNetwork::of_told(text.parse().unwrap(), prefix);
        let network = |text: &str, prefix| ClientNetwork { address: text.parse().unwrap(), prefix };
        assert_eq!(told("::ffff:192.0.2.0", 120), (network("192.0.2.0", 24), 96));
        assert_eq!(told("192.0.2.0", 24), (network("192.0.2.0", 24), 0));
        assert_eq!(told("2001:db8::", 32), (network("2001:db8::", 32), 0));
    }
}
