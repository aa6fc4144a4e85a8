//! Servers that the generator may load without confirmation.

use std::net::{IpAddr, Ipv6Addr};

/// Queries per second that any server may be sent without confirmation.
pub const RATE_MAX: f64 = 100.0;

/// Whether an address is on this machine or in a private network.
pub fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private() || v4.is_link_local(),
        IpAddr::V6(v6) => {
            v6 == Ipv6Addr::LOCALHOST || v6.is_unique_local() || v6.is_unicast_link_local()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_unreachable_from_the_internet_are_private() {
        let private = ["127.0.0.9", "10.1.2.3", "192.168.0.1", "::1", "fd00::1", "fe80::1"];
        let public = ["192.0.2.1", "8.8.8.8", "172.32.0.1", "2001:db8::1", "::ffff:8.8.8.8"];
        let judge = |text: &str| is_private(text.parse().unwrap());
        assert!(private.into_iter().all(judge));
        assert!(!public.into_iter().any(judge));
    }
}
