//! Values of keys about signed messages and transfers.

use crate::access::Network;
use crate::keys::HistoryKeys;
use crate::value::{ServerAddress, Value, words};
use std::fmt;
use std::net::SocketAddr;
use zonda_wire::Name;
use zonda_wire::rdata::base64_word;
use zonda_wire::tsig::Algorithm;

/// The algorithm of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAlgorithm(pub Algorithm);

impl Value for KeyAlgorithm {
    fn form() -> String {
        let names = Algorithm::ALL.map(|it| format!("\"{}\"", it.name()));
        format!("one of {}", names.join(", "))
    }

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

/// The secret of a key. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecret(Vec<u8>);

impl KeySecret {
    /// Returns the octets, to sign with.
    #[must_use]
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret(hidden)")
    }
}

impl Value for KeySecret {
    const SECRET: bool = true;

    fn form() -> String {
        "a secret in base 64, as `tsig-keygen` prints it".into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut octets = Vec::new();
        base64_word(text.as_bytes(), &mut octets).ok()?;
        (!octets.is_empty()).then_some(Self(octets))
    }
}

words! {
    /// The form in which ALIAS records are transferred.
    #[derive(Default, Hash)]
    pub enum AliasTransfer {
        /// The record as it stands.
        #[default]
        Record = "record",
        /// The addresses that the record's target has.
        Expanded = "expanded",
    }
}

/// A rule for clients that may transfer a zone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TransferClient {
    /// The addresses of the clients; none: all addresses.
    pub network: Option<Network>,
    /// The key that the query must be signed with, if it must.
    pub key: Option<Name>,
}

impl Value for TransferClient {
    fn form() -> String {
        "an address or a network, the key, or both, such as \"192.0.2.7\", \"key \
         transfer.example\" or \"192.0.2.0/24 key transfer.example\""
            .into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let key = |name: &str| Some(Name::from_text(name)?.to_lowercase());
        let (network, key) = match words[..] {
            ["key", name] => (None, Some(key(name)?)),
            [network] => (Some(Network::from_text(network)?), None),
            [network, "key", name] => (Some(Network::from_text(network)?), Some(key(name)?)),
            _ => return None,
        };
        Some(Self { network, key })
    }
}

/// A server on the other side of transfers: a primary, or a receiver of NOTIFY.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RemoteServer {
    /// The address and port of the server.
    pub address: SocketAddr,
    /// The key that messages are signed with, if they are.
    pub key: Option<Name>,
}

impl Value for RemoteServer {
    fn form() -> String {
        "the address of a server, its port if it is not 53, and the key of messages if they are \
         signed: \"192.0.2.1\", \"192.0.2.1:5353\" or \"192.0.2.1 key transfer.example\""
            .into()
    }

    fn from_text(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (address, key) = match words[..] {
            [address] => (address, None),
            [address, "key", name] => (address, Some(Name::from_text(name)?.to_lowercase())),
            _ => return None,
        };
        let ServerAddress(address) = ServerAddress::from_text(address)?;
        Some(Self { address, key })
    }
}

/// Bounds on what is kept of a zone for clients that ask for changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HistoryLimits {
    /// Most versions that are kept; 0 for no history.
    pub versions: usize,
    /// Most octets of memory that they take.
    pub bytes: usize,
}

impl From<HistoryKeys> for HistoryLimits {
    fn from(keys: HistoryKeys) -> Self {
        Self { versions: keys.versions as usize, bytes: keys.bytes.0 as usize }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_client_is_an_address_a_key_or_both() {
        let read = |text| {
            let client = TransferClient::from_text(text)?;
            let network = client.network.map(|network| network.to_string());
            Some((network.unwrap_or_default(), client.key.map(|key| key.to_string())))
        };
        let key = || Some("transfer.example.".to_owned());
        assert_eq!(read("192.0.2.7"), Some(("192.0.2.7/32".into(), None)));
        assert_eq!(read("key Transfer.Example"), Some((String::new(), key())));
        let both = Some(("2001:db8::/32".into(), key()));
        assert_eq!(read("2001:db8::/32 key transfer.example"), both);
        for wrong in ["", "key", "any", "192.0.2.7 transfer.example", "192.0.2.7 key", "a key b c"]
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_server_is_an_address_with_a_port_and_perhaps_a_key() {
        let read = |text| {
            let server = RemoteServer::from_text(text)?;
            Some((server.address.to_string(), server.key.map(|key| key.to_string())))
        };
        assert_eq!(read("192.0.2.1"), Some(("192.0.2.1:53".into(), None)));
        let both = Some(("[2001:db8::1]:5353".into(), Some("transfer.example.".into())));
        assert_eq!(read("[2001:db8::1]:5353 key Transfer.Example"), both);
        for wrong in [
            "",
            "key a",
            "192.0.2.0/24",
            "192.0.2.1 key",
            "192.0.2.7 k",
            "192.0.2.7:0",
            "tls://192.0.2.1",
            "a.example",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_base_64_and_hidden() {
        assert_eq!(KeySecret::from_text("c2VjcmV0").unwrap().reveal(), b"secret");
        assert_eq!(format!("{:?}", KeySecret::from_text("c2VjcmV0")), "Some(KeySecret(hidden))");
        assert!(KeySecret::from_text("").is_none() && KeySecret::from_text("c2V#").is_none());
    }
}
