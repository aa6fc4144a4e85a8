//! Access lists: which clients are served, by their address.

use crate::transfer::HistoryLimits;
use std::net::{IpAddr, SocketAddr};
use zonda_wire::tsig::KeyId;

/// The verdict of an access list on a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The client is answered.
    Allow,
    /// The client is told REFUSED.
    Refuse,
    /// The client's messages are dropped.
    Drop,
}

/// A block of addresses of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix_bits: u8,
}

impl Network {
    /// The addresses that share the first `prefix_bits` bits of `address`; `None` when the address
    /// has fewer bits.
    #[must_use]
    pub fn new(address: IpAddr, prefix_bits: u8) -> Option<Self> {
        let bits = if address.is_ipv4() { 32 } else { 128 };
        (prefix_bits <= bits).then_some(Self { address, prefix_bits })
    }

    /// Whether an address lies in the block. An IPv4 address mapped into IPv6 counts as what it
    /// stands for.
    #[inline]
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                let differing = ours.to_bits() ^ theirs.to_bits();
                differing.leading_zeros() >= u32::from(self.prefix_bits)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                let differing = ours.to_bits() ^ theirs.to_bits();
                differing.leading_zeros() >= u32::from(self.prefix_bits)
            }
            _ => false,
        }
    }
}

/// Rules in order; the first whose network holds the client decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessList {
    /// The rules in their order.
    pub rules: Vec<(Network, Access)>,
    /// The verdict on a client that no rule names.
    pub otherwise: Access,
    /// The terms of transfers of the zone, for which other rules do not matter.
    pub transfers: TransferTerms,
}

/// The terms of transfers of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferTerms {
    /// The clients that may transfer the zone: those for which any of these rules is.
    pub to: Vec<TransferRule>,
    /// The servers that are notified of each new version; the answer path does not read them.
    pub notify: Vec<NotifyReceiver>,
    /// Bounds on what is kept for clients that ask for changes.
    pub history: HistoryLimits,
}

/// A server that is notified of new versions of a zone (rfc1996).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotifyReceiver {
    /// The address that messages are sent to.
    pub address: SocketAddr,
    /// The key that messages are signed with, if they are.
    pub key: Option<KeyId>,
}

/// A rule for clients that may transfer a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferRule {
    /// The addresses of the clients; none: all addresses.
    pub network: Option<Network>,
    /// The key that the query must be signed with, if it must.
    pub key: Option<KeyId>,
}

impl AccessList {
    /// A list that allows all clients what they ask, and no transfer.
    #[must_use]
    pub fn open() -> Self {
        Self { rules: Vec::new(), otherwise: Access::Allow, transfers: TransferTerms::default() }
    }

    /// Whether what a client may ask can depend on its address.
    #[must_use]
    pub fn restricts_queries(&self) -> bool {
        !self.rules.is_empty() || self.otherwise != Access::Allow
    }

    /// Whether a client may transfer the zone, whose query has a sound signature by `key`, if by
    /// any.
    #[must_use]
    pub fn allows_transfer(&self, client: IpAddr, key: Option<KeyId>) -> bool {
        self.transfers.to.iter().any(|rule| {
            rule.network.is_none_or(|network| network.contains(client))
                && rule.key.is_none_or(|wanted| key == Some(wanted))
        })
    }

    /// Returns the list's verdict on a client.
    #[inline]
    #[must_use]
    pub fn check(&self, client: IpAddr) -> Access {
        let rule = self.rules.iter().find(|(network, _)| network.contains(client));
        rule.map_or(self.otherwise, |(_, access)| *access)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn network(text: &str) -> Network {
        let (address, bits) = text.split_once('/').unwrap();
        Network::new(address.parse().unwrap(), bits.parse().unwrap()).unwrap()
    }

    #[test]
    fn the_first_rule_that_holds_the_client_decides() {
        let rules = vec![
            (network("192.0.2.128/25"), Access::Drop),
            (network("192.0.2.0/24"), Access::Allow),
            (network("2001:db8::/32"), Access::Allow),
        ];
        let list = AccessList { rules, otherwise: Access::Refuse, ..AccessList::open() };
        let check = |client: &str| list.check(client.parse().unwrap());
        assert_eq!(check("192.0.2.200"), Access::Drop);
        assert_eq!(check("192.0.2.1"), Access::Allow);
        assert_eq!(check("::ffff:192.0.2.1"), Access::Allow);
        assert_eq!(check("2001:db8:1::1"), Access::Allow);
        assert_eq!(check("2001:db9::1"), Access::Refuse);
        assert_eq!(check("198.51.100.1"), Access::Refuse);
    }

    #[test]
    fn a_prefix_of_no_bits_holds_its_whole_family() {
        assert!(network("0.0.0.0/0").contains("203.0.113.9".parse().unwrap()));
        assert!(!network("0.0.0.0/0").contains("::1".parse().unwrap()));
        assert!(Network::new("192.0.2.1".parse().unwrap(), 33).is_none());
    }
}
