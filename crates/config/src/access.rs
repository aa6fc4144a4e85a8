//! Access lists: which clients are answered, refused or ignored.

use crate::keys::CatalogPlace;
use crate::transfer_value::{AliasTransfer, HistoryLimits, RemoteServer, TransferClient};
use crate::update_value::UpdateGrant;
use crate::value::Value;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use zonda_wire::{Name, Type};

/// The action that a rule takes on a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The client is answered.
    Allow,
    /// The client gets REFUSED, with the extended error Prohibited (rfc8914#4.19).
    Refuse,
    /// The client gets an answer without records, with the extended error Filtered (rfc8914#4.18).
    Filter,
    /// The client gets no answer.
    Drop,
}

/// A list of rules, of which the first that matches the client decides.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Rules in the order in which they are tried.
    pub rules: Vec<Rule>,
    /// Action for clients that no rule matches.
    pub otherwise: Action,
    /// The terms of transfers of the zone; of a listener's list none.
    pub transfers: TransferTerms,
    /// The rights to change the zone by messages; of a listener's list none.
    pub updates: Vec<UpdateGrant>,
    /// The listeners that the zone is at, if it is not at all of them; of a listener's list none.
    pub listeners: Option<Arc<[SocketAddr]>>,
}

/// The terms of transfers of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TransferTerms {
    /// The clients that may transfer the zone.
    pub to: Vec<TransferClient>,
    /// The servers that are notified of each new version.
    pub notify: Vec<RemoteServer>,
    /// The clients that may send NOTIFY for the zone: its primaries, and those that are allowed
    /// besides; none of a zone without primaries.
    pub notify_from: Vec<TransferClient>,
    /// The clients whose updates are forwarded to the zone's primaries.
    pub update_from: Vec<TransferClient>,
    /// The addresses and ports of these primaries, in the order in which they are tried.
    pub primaries: Vec<SocketAddr>,
    /// Bounds on what is kept for clients that ask for changes.
    pub history: HistoryLimits,
    /// The form in which ALIAS records are transferred.
    pub aliases: AliasTransfer,
    /// The catalog of this server that lists the zone, if one does.
    pub catalog: Option<CatalogPlace>,
}

impl Access {
    /// Allows all clients what they ask, but no transfer and no update.
    pub(crate) fn open() -> Self {
        let (rules, updates) = (Vec::new(), Vec::new());
        let transfers = TransferTerms::default();
        Self { rules, otherwise: Action::Allow, transfers, updates, listeners: None }
    }

    /// Allows all clients what they ask at the listeners of this list; none if those are all.
    #[must_use]
    pub fn of_listeners(&self) -> Option<Self> {
        let listeners = self.listeners.clone()?;
        Some(Self { listeners: Some(listeners), ..Self::open() })
    }

    /// Allows clients of this host and of private networks: loopback, private and link-local
    /// addresses (rfc1918, rfc3927, rfc4193, rfc4291#2.5.6), and refuses all other clients.
    pub(crate) fn of_private_networks() -> Self {
        const PRIVATE: [&str; 8] = [
            "127.0.0.0/8",
            "10.0.0.0/8",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "169.254.0.0/16",
            "::1",
            "fc00::/7",
            "fe80::/10",
        ];
        let networks = PRIVATE.into_iter().filter_map(Network::from_text);
        let (key, types, action) = (None, Vec::new(), Action::Allow);
        let rule = |network| Rule { network, key: key.clone(), types: types.clone(), action };
        let rules = networks.map(rule).collect();
        Self { rules, otherwise: Action::Refuse, ..Self::open() }
    }
}

/// A rule for the clients of one network, or for those of them with a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// The addresses of the clients.
    pub network: Network,
    /// The key that their queries must be signed with, if they must.
    pub key: Option<Name>,
    /// The types of the questions that the rule is for; none: it is for all messages.
    pub types: Vec<Type>,
    /// Action for the queries of these clients.
    pub action: Action,
}

/// Addresses that share their first bits; the other bits are zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    /// The lowest address.
    pub address: IpAddr,
    /// Number of common bits: 0–32 (IPv4) or 0–128 (IPv6).
    pub prefix: u8,
}

impl Network {
    /// All addresses of both families.
    pub(crate) const ALL: [Self; 2] = [
        Self { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), prefix: 0 },
        Self { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), prefix: 0 },
    ];

    /// Whether an address is one of them. An IPv4 address is never one of IPv6.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let differing = match (self.address, address) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                u128::from(one.to_bits() ^ other.to_bits()) << 96
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => one.to_bits() ^ other.to_bits(),
            _ => return false,
        };
        differing.leading_zeros() >= u32::from(self.prefix)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Value for Network {
    fn form() -> String {
        "a network such as \"192.0.2.0/24\" or \"2001:db8::/32\", the bits behind its prefix zero"
            .into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address.parse().ok()?, Some(prefix.parse().ok()?)),
            None => (text.parse().ok()?, None),
        };
        let (width, bits) = match address {
            IpAddr::V4(v4) => (32, u128::from(u32::from(v4)) << 96),
            IpAddr::V6(v6) => (128, u128::from(v6)),
        };
        let prefix = prefix.unwrap_or(width);
        let host_bits = bits.checked_shl(u32::from(prefix)).unwrap_or(0);
        (prefix <= width && host_bits == 0).then_some(Self { address, prefix })
    }
}

/// An action for some clients.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Clause {
    /// The action on their queries.
    pub action: Action,
    /// The addresses of the clients; none: all addresses.
    pub networks: Vec<Network>,
    /// The key that their queries must be signed with, in lower case, if they must.
    pub key: Option<Name>,
    /// The types of their questions; none: all messages of theirs.
    pub types: Vec<Type>,
}

impl Clause {
    /// Whether the clause is for all messages of all clients.
    pub fn is_for_any(&self) -> bool {
        self.networks.is_empty() && self.key.is_none() && self.types.is_empty()
    }

    /// The rules that the clause stands for; none if it is for all messages of all clients.
    pub fn rules(&self) -> impl Iterator<Item = Rule> {
        let all = self.networks.is_empty() && !self.is_for_any();
        let networks = if all { &Network::ALL[..] } else { &self.networks };
        let rule = move |&network: &Network| {
            let (key, types) = (self.key.clone(), self.types.clone());
            Rule { network, key, types, action: self.action }
        };
        networks.iter().map(rule)
    }
}

/// One element of an `access` key, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AccessRule {
    /// An action for some clients.
    Rule(Clause),
    /// The rules of the list of this name.
    List(String),
}

impl Value for AccessRule {
    fn form() -> String {
        "a rule such as \"allow 192.0.2.0/24 2001:db8::/32\", \"allow key query.example\", \
         \"refuse any\", \"filter any\" or \"drop any\", or for types such as \"filter any type \
         AAAA\", or the name of a list in [access]"
            .into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let action = match words.next()? {
            "allow" => Action::Allow,
            "refuse" => Action::Refuse,
            "filter" => Action::Filter,
            "drop" => Action::Drop,
            name => return words.next().is_none().then(|| Self::List(name.to_owned())),
        };
        let words: Vec<&str> = words.collect();
        let (clients, types) = split_types(&words)?;
        let (networks, key) = match clients {
            [] => return None,
            ["any"] => (&[][..], None),
            [networks @ .., "key", name] => (networks, Some(Name::from_text(name)?.to_lowercase())),
            networks => (networks, None),
        };
        let networks = networks.iter().map(|text| Network::from_text(text));
        let networks = networks.collect::<Option<_>>()?;
        Some(Self::Rule(Clause { action, networks, key, types }))
    }
}

/// Splits the words behind an action at `type`, which is not the name of a key; none if words
/// behind it are not types.
fn split_types<'w>(words: &'w [&'w str]) -> Option<(&'w [&'w str], Vec<Type>)> {
    let is_split = |(at, word): (usize, &&str)| {
        *word == "type" && at.checked_sub(1).and_then(|at| words.get(at)) != Some(&"key")
    };
    let Some(at) = words.iter().enumerate().position(is_split) else {
        return Some((words, Vec::new()));
    };
    let (clients, types) = words.split_at(at);
    let types: Vec<Type> =
        types.iter().skip(1).map(|text| Type::from_text(text.as_bytes())).collect::<Option<_>>()?;
    // Which clients may transfer a zone, `transfer` alone says.
    let is_of_transfers = types.iter().any(|it| matches!(*it, Type::AXFR | Type::IXFR));
    (!types.is_empty() && !is_of_transfers).then_some((clients, types))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_the_addresses_that_share_its_bits() {
        for (network, address, expected) in [
            ("192.0.2.0/24", "192.0.2.255", true),
            ("192.0.2.0/24", "192.0.3.0", false),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.0", false),
            ("0.0.0.0/0", "192.0.2.1", true),
            ("0.0.0.0/0", "::1", false),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("::/0", "192.0.2.1", false),
        ] {
            let found = Network::from_text(network).zip(address.parse().ok());
            let found = found.map(|(network, address): (_, IpAddr)| network.contains(address));
            assert_eq!(found, Some(expected), "{network} {address}");
        }
    }

    #[test]
    fn a_rule_is_for_networks_for_a_key_or_for_clients_in_networks_with_a_key() {
        let read = |text| match AccessRule::from_text(text) {
            Some(AccessRule::Rule(clause)) => {
                let words = clause.rules().map(|rule| {
                    let key = rule.key.map_or_else(String::new, |key| format!(" {key}"));
                    let types = rule.types.iter().map(|rtype| format!(" {rtype}"));
                    let types = types.collect::<String>();
                    format!("{:?} {}{key}{types}", rule.action, rule.network)
                });
                let any = if clause.is_for_any() { "any" } else { "" };
                words.collect::<Vec<_>>().join(", ") + any
            }
            Some(AccessRule::List(name)) => format!("list {name}"),
            None => "wrong".to_owned(),
        };
        for (text, expected) in [
            ("refuse any", "any"),
            ("allow 192.0.2.1 ::1", "Allow 192.0.2.1/32, Allow ::1/128"),
            ("allow key A.example", "Allow 0.0.0.0/0 a.example., Allow ::/0 a.example."),
            ("drop 192.0.2.0/24 ::1 key a", "Drop 192.0.2.0/24 a., Drop ::1/128 a."),
            ("filter ::1 type AAAA HINFO", "Filter ::1/128 AAAA HINFO"),
            ("filter any type TYPE64", "Filter 0.0.0.0/0 SVCB, Filter ::/0 SVCB"),
            ("allow key type type A", "Allow 0.0.0.0/0 type. A, Allow ::/0 type. A"),
            ("office", "list office"),
            ("allow type A", "wrong"),
            ("allow any type", "wrong"),
            ("allow any type A nothing", "wrong"),
            ("allow", "wrong"),
            ("allow key", "wrong"),
            ("allow any key a", "wrong"),
            ("allow key a ::1", "wrong"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn a_network_has_no_bits_behind_its_prefix() {
        let printed = |text| Network::from_text(text).map(|network| network.to_string());
        for (text, expected) in [
            ("192.0.2.0/24", Some("192.0.2.0/24")),
            ("192.0.2.1", Some("192.0.2.1/32")),
            ("0.0.0.0/0", Some("0.0.0.0/0")),
            ("::/0", Some("::/0")),
            ("2001:db8::/32", Some("2001:db8::/32")),
            ("::1", Some("::1/128")),
            ("192.0.2.1/24", None),
            ("192.0.2.0/33", None),
            ("2001:db8::1/32", None),
            ("::/129", None),
            ("192.0.2.0/", None),
            ("192.0.2/24", None),
        ] {
            assert_eq!(printed(text).as_deref(), expected, "{text}");
        }
    }
}
