//! What a query's EDNS options say about its client: its network, and its cookie.

use crate::query::{Query, option};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The network for which a resolver asks (rfc7871#6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientSubnet {
    /// The first address; bits that do not count are zero.
    pub address: IpAddr,
    /// Number of the address's bits that count: at most 32 or 128.
    pub prefix_len: u8,
    /// Number of bits that counted in an answer; 0 in a query.
    pub scope_len: u8,
}

impl ClientSubnet {
    /// Returns the network of an option's data; nothing if they are none.
    #[must_use]
    pub fn parse(data: &[u8]) -> Option<Self> {
        let (&[high, low, prefix_len, scope_len], octets) = data.split_first_chunk()?;
        let (address, bits) = match u16::from_be_bytes([high, low]) {
            1 => (IpAddr::from(Ipv4Addr::from(filled(octets)?)), 32),
            2 => (IpAddr::from(Ipv6Addr::from(filled(octets)?)), 128),
            _ => return None,
        };
        let behind = octets.last().map_or(0, |last| match prefix_len % 8 {
            0 => 0,
            used => last << used,
        });
        let len = usize::from(prefix_len.div_ceil(8));
        let has_valid_layout = prefix_len <= bits && octets.len() == len && behind == 0;
        has_valid_layout.then_some(Self { address, prefix_len, scope_len })
    }
}

/// Whether an option's data may stand in a query: a network without a scope, or family 0, by which
/// a client says that its network may not be sent on (rfc7871#6, #7.1.2).
#[inline(never)] // it would only make the path of queries without it longer
pub(crate) fn is_subnet_of_query(data: &[u8]) -> bool {
    data == [0; 4] || ClientSubnet::parse(data).is_some_and(|subnet| subnet.scope_len == 0)
}

impl fmt::Display for ClientSubnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_len)
    }
}

/// Octets with as many zeros behind them as are missing.
fn filled<const N: usize>(octets: &[u8]) -> Option<[u8; N]> {
    let mut all = [0; N];
    all.get_mut(..octets.len())?.copy_from_slice(octets);
    Some(all)
}

/// A DNS cookie (rfc7873#4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cookie<'m> {
    /// Client cookie, by which the client recognises replies.
    pub client: [u8; 8],
    /// Server cookie from an earlier reply: 8 to 32 octets, or none.
    pub server: &'m [u8],
}

impl Query {
    /// Returns the client's network, from the query's Client Subnet option; `None` without a valid
    /// option.
    #[must_use]
    pub fn client_subnet(&self, message: &[u8]) -> Option<ClientSubnet> {
        let mut options = self.options(message);
        ClientSubnet::parse(options.find(|(code, _)| *code == option::CLIENT_SUBNET)?.1)
    }

    /// Returns the cookie of the message that this was read from.
    #[must_use]
    pub fn cookie<'m>(&self, message: &'m [u8]) -> Option<Cookie<'m>> {
        let (at, len) = self.edns?.cookie;
        let data = message.get(usize::from(at)..usize::from(at) + usize::from(len))?;
        let (client, server) = data.split_first_chunk()?;
        Some(Cookie { client: *client, server })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_read_and_what_is_none_is_not() {
        let text = |data: &[u8]| ClientSubnet::parse(data).map(|it| it.to_string());
        assert_eq!(text(&[0, 1, 24, 0, 192, 0, 2]).as_deref(), Some("192.0.2.0/24"));
        assert_eq!(text(&[0, 1, 0, 0]).as_deref(), Some("0.0.0.0/0"));
        let long = [0, 2, 56, 0, 0x20, 1, 0xd, 0xb8, 0, 0, 1];
        assert_eq!(text(&long).as_deref(), Some("2001:db8:0:100::/56"));
        for wrong in [
            &[0, 1, 24][..],
            &[0, 3, 24, 0, 192, 0, 2],
            &[0, 1, 33, 0, 192, 0, 2, 1, 1],
            &[0, 1, 24, 0, 192, 0],
            &[0, 1, 24, 0, 192, 0, 2, 1],
            &[0, 1, 20, 0, 192, 0, 2],
        ] {
            assert_eq!(text(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_query_gives_its_client_subnet_and_cookie() {
        let subnet = [0, 8, 0, 7, 0, 1, 24, 0, 192, 0, 2];
        let cookie = *b"\0\x0a\0\x10clientxxserverxx";
        let question = b"\0\0\x01\0\0\x01\0\0\0\0\0\x01\x01a\0\0\x01\0\x01";
        let opt = [&b"\0\0\x29\x04\xd0\0\0\0\0\0\x1f"[..], &subnet, &cookie].concat();
        let message = [&question[..], &opt].concat();
        let query = Query::parse(&message).map_err(|(_, fault)| fault);
        let query = query.unwrap_or_else(|fault| panic!("{fault:?}"));
        let found = query.client_subnet(&message).map(|it| it.to_string());
        assert_eq!(found.as_deref(), Some("192.0.2.0/24"));
        let expected = Cookie { client: *b"clientxx", server: b"serverxx" };
        assert_eq!(query.cookie(&message), Some(expected));
        assert_eq!((query.client_subnet(&[]), query.cookie(&[])), (None, None));
    }
}
