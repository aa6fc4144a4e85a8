//! Access lists: which clients are served, by their address.

pub use crate::client_rule::{Network, TransferRule};
use crate::grant::UpdateGrant;
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

/// Rules in order; the first whose network holds the client decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessList {
    /// The rules in their order.
    pub rules: Vec<(Network, Access)>,
    /// The verdict on a client that no rule names.
    pub otherwise: Access,
    /// The terms of transfers of the zone, for which other rules do not matter.
    pub transfers: TransferTerms,
    /// The rights to change the zone by messages, for which other rules do not matter either.
    pub updates: Vec<UpdateGrant>,
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

impl AccessList {
    /// A list that allows all clients what they ask, no transfer and no update.
    #[must_use]
    pub fn open() -> Self {
        let (transfers, updates) = (TransferTerms::default(), Vec::new());
        Self { rules: Vec::new(), otherwise: Access::Allow, transfers, updates }
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
        self.transfers.to.iter().any(|rule| rule.is_for(client, key))
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
