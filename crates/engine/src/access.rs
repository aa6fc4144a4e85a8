//! Access lists: which clients are served, by their address and by the key of their message.

pub use crate::client_rule::{Network, TransferRule};
use crate::grant::UpdateGrant;
use crate::transfer::HistoryLimits;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use zonda_wire::tsig::{KeyId, QuerySignature};
use zonda_wire::{Name, Type};

/// The verdict of an access list on a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The client is answered.
    Allow,
    /// The client is told REFUSED.
    Refuse,
    /// The client is told that there are no records of the type (extended error 17, Filtered).
    Filter,
    /// The client's messages are dropped.
    Drop,
}

/// A rule of an access list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRule {
    /// The addresses of the clients that the rule is for.
    pub network: Network,
    /// The key that their messages must be signed with, if they must.
    pub key: Option<KeyId>,
    /// The types of the questions that the rule is for, at least one; `None`: it is for messages of
    /// every kind. Rules of listeners are.
    pub types: Option<Box<[Type]>>,
    /// The verdict on these clients.
    pub access: Access,
}

/// Rules in order; the first that is for the client decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessList {
    /// The rules in their order.
    pub rules: Vec<AccessRule>,
    /// The verdict on a client that no rule names.
    pub otherwise: Access,
    /// The terms of transfers of the zone, for which other rules do not matter.
    pub transfers: TransferTerms,
    /// The rights to change the zone by messages, for which other rules do not matter either.
    pub updates: Vec<UpdateGrant>,
    /// The addresses of the listeners that the zone is at, if it is not at all of them. The answer
    /// path does not read them: the snapshot of another listener lacks the zone.
    pub listeners: Option<Arc<[SocketAddr]>>,
}

/// The terms of transfers of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferTerms {
    /// The clients that may transfer the zone: those for which any of these rules is.
    pub to: Vec<TransferRule>,
    /// The servers that are notified of each new version; the answer path does not read them.
    pub notify: Vec<NotifyReceiver>,
    /// The clients that may say that the zone has changed (NOTIFY, rfc1996): its primaries, and
    /// those that are allowed besides; none of a zone that has no primaries.
    pub notify_from: Vec<TransferRule>,
    /// The terms under which updates are forwarded to the zone's primaries, if any are.
    pub relay: Option<Box<UpdateRelay>>,
    /// Bounds on what is kept for clients that ask for changes.
    pub history: HistoryLimits,
    /// Whether a transfer has the addresses of targets in place of ALIAS records.
    pub expands_aliases: bool,
    /// The catalog of this server that lists the zone, if one does, and the group that the zone has
    /// there; the answer path does not read them.
    pub catalog: Option<(Name, Option<Box<str>>)>,
}

/// The terms under which updates for a zone are forwarded to its primaries (rfc2136#6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateRelay {
    /// The clients whose updates are forwarded: those for which any of these rules is.
    pub from: Vec<TransferRule>,
    /// The addresses and ports of the primaries, in the order in which they are tried.
    pub to: Vec<SocketAddr>,
}

/// A server that is notified of new versions of a zone (rfc1996).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotifyReceiver {
    /// The address that messages are sent to.
    pub address: SocketAddr,
    /// The key that messages are signed with, if they are.
    pub key: Option<KeyId>,
}

impl UpdateRelay {
    /// Whether updates of a client are forwarded whose message has a sound signature by `key`, if
    /// by any that is known here.
    #[must_use]
    pub fn is_for(&self, client: IpAddr, key: Option<KeyId>) -> bool {
        self.from.iter().any(|rule| rule.is_for(client, key))
    }
}

impl AccessList {
    /// A list that allows all clients what they ask, no transfer and no update.
    #[must_use]
    pub fn open() -> Self {
        let (transfers, updates) = (TransferTerms::default(), Vec::new());
        let (rules, otherwise) = (Vec::new(), Access::Allow);
        Self { rules, otherwise, transfers, updates, listeners: None }
    }

    /// Whether what a client may ask can depend on its address or its key.
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

    /// Whether the zone has primaries, so that NOTIFY is taken for it.
    #[must_use]
    pub fn has_primaries(&self) -> bool {
        !self.transfers.notify_from.is_empty()
    }

    /// Whether a client may send NOTIFY for the zone, whose message has a sound signature by `key`,
    /// if by any.
    #[must_use]
    pub fn allows_notify(&self, client: IpAddr, key: Option<KeyId>) -> bool {
        self.transfers.notify_from.iter().any(|rule| rule.is_for(client, key))
    }

    /// Returns the list's verdict on a client whose message has this signature, if any, and asks
    /// for records of a type; `None` of a message that does not ask, for which rules for types are
    /// not.
    #[inline]
    #[must_use]
    pub fn check(
        &self,
        client: IpAddr,
        signature: Option<&QuerySignature>,
        qtype: Option<Type>,
    ) -> Access {
        let rule = self.rules.iter().find(|rule| rule.is_for(client, signature, qtype));
        rule.map_or(self.otherwise, |rule| rule.access)
    }

    /// Whether the signature of a client's message is to be checked: the client is allowed without
    /// one, or a rule with a key is for its address.
    #[must_use]
    pub fn depends_on_signature(&self, client: IpAddr) -> bool {
        let first = self.rules.iter().find(|rule| rule.network.contains(client));
        let allows = first.map_or(self.otherwise, |rule| rule.access) == Access::Allow;
        allows || first.is_some_and(|rule| rule.key.is_some())
    }

    /// Whether a client is allowed if its message turns out to be signed with the right key.
    #[must_use]
    pub fn may_allow(&self, client: IpAddr) -> bool {
        let mut rules = self.rules.iter().filter(|rule| rule.network.contains(client));
        let deciding = rules.find(|rule| rule.key.is_none() || rule.access == Access::Allow);
        deciding.map_or(self.otherwise, |rule| rule.access) == Access::Allow
    }
}

impl AccessRule {
    /// Whether the rule is for a client whose message has this signature, if any, and asks for this
    /// type, if it asks.
    #[inline]
    fn is_for(
        &self,
        client: IpAddr,
        signature: Option<&QuerySignature>,
        qtype: Option<Type>,
    ) -> bool {
        self.network.contains(client)
            && self
                .key
                .is_none_or(|key| signature.and_then(QuerySignature::proven_key) == Some(key))
            && self.types.as_ref().is_none_or(|it| qtype.is_some_and(|qtype| it.contains(&qtype)))
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

    fn rule(text: &str, access: Access) -> AccessRule {
        AccessRule { network: network(text), key: None, types: None, access }
    }

    #[test]
    fn a_client_may_be_allowed_if_a_rule_with_a_key_comes_before_the_one_that_decides_without() {
        let key = Some(KeyId::of(&"key.example".parse().unwrap()));
        let keyed = |text, access| AccessRule { key, ..rule(text, access) };
        let rules = vec![
            keyed("192.0.2.0/24", Access::Drop),
            rule("192.0.2.128/25", Access::Refuse),
            keyed("192.0.2.0/24", Access::Allow),
            rule("2001:db8::/32", Access::Allow),
        ];
        let list = AccessList { rules, otherwise: Access::Refuse, ..AccessList::open() };
        let may_allow = |client: &str| list.may_allow(client.parse().unwrap());
        assert!(may_allow("192.0.2.1") && may_allow("2001:db8::1"));
        assert!(!may_allow("192.0.2.200") && !may_allow("198.51.100.1"));
        let depends = |client: &str| list.depends_on_signature(client.parse().unwrap());
        assert!(depends("192.0.2.200"), "a key may have its message dropped");
        assert!(depends("2001:db8::1") && !depends("198.51.100.1"));
        assert_eq!(list.check("192.0.2.1".parse().unwrap(), None, None), Access::Refuse);
    }

    #[test]
    fn the_first_rule_that_holds_the_client_decides() {
        let rules = vec![
            rule("192.0.2.128/25", Access::Drop),
            rule("192.0.2.0/24", Access::Allow),
            rule("2001:db8::/32", Access::Allow),
        ];
        let list = AccessList { rules, otherwise: Access::Refuse, ..AccessList::open() };
        let check = |client: &str| list.check(client.parse().unwrap(), None, None);
        assert_eq!(check("192.0.2.200"), Access::Drop);
        assert_eq!(check("192.0.2.1"), Access::Allow);
        assert_eq!(check("::ffff:192.0.2.1"), Access::Allow);
        assert_eq!(check("2001:db8:1::1"), Access::Allow);
        assert_eq!(check("2001:db9::1"), Access::Refuse);
        assert_eq!(check("198.51.100.1"), Access::Refuse);
    }

    #[test]
    fn a_rule_for_types_is_for_their_questions_alone() {
        let types = Some(Box::from([Type::AAAA, Type::HINFO]));
        let typed = AccessRule { types, ..rule("192.0.2.0/24", Access::Filter) };
        let rules = vec![typed, rule("192.0.2.7/32", Access::Drop)];
        let list = AccessList { rules, ..AccessList::open() };
        for (client, qtype, expected) in [
            ("192.0.2.7", Some(Type::AAAA), Access::Filter),
            ("192.0.2.7", Some(Type::A), Access::Drop),
            ("192.0.2.7", None, Access::Drop),
            ("192.0.2.8", Some(Type::HINFO), Access::Filter),
            ("192.0.2.8", Some(Type::ANY), Access::Allow),
            ("198.51.100.1", Some(Type::AAAA), Access::Allow),
        ] {
            assert_eq!(list.check(client.parse().unwrap(), None, qtype), expected, "{client}");
        }
    }

    #[test]
    fn a_prefix_of_no_bits_holds_its_whole_family() {
        assert!(network("0.0.0.0/0").contains("203.0.113.9".parse().unwrap()));
        assert!(!network("0.0.0.0/0").contains("::1".parse().unwrap()));
        assert!(Network::new("192.0.2.1".parse().unwrap(), 33).is_none());
    }
}
