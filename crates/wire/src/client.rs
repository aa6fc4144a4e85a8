//! What a query's EDNS options say about its client: its network, and its cookie.

use crate::query::Query;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU8;

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

impl fmt::Display for ClientSubnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_len)
    }
}

/// The CLIENT-SUBNET option of a query, as the reply repeats it (rfc7871#7.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubnetOption {
    /// Number of octets of the data, from 4 to [`SubnetOption::BYTES_MAX`].
    len: NonZeroU8,
    /// Data of the option; zeros behind them.
    octets: [u8; Self::BYTES_MAX],
}

impl SubnetOption {
    /// The most octets that the data of an option have: family, two lengths, an IPv6 address.
    pub const BYTES_MAX: usize = 2 + 1 + 1 + 16;
    /// Where the lower octet of the family lies in the data.
    const FAMILY_AT: usize = 1;
    /// Where the length of the prefix lies in the data.
    const PREFIX_AT: usize = 2;
    /// Where the scope's length lies in the data.
    const SCOPE_AT: usize = 3;

    /// Whether octets are the data of a query's option: a network without a scope, or family 0, by
    /// which a client says that its network may not be sent on (rfc7871#6, #7.1.2).
    #[inline(never)] // it would only make the path of queries without it longer
    pub(crate) fn is_sound(data: &[u8]) -> bool {
        data == [0; 4] || ClientSubnet::parse(data).is_some_and(|subnet| subnet.scope_len == 0)
    }

    /// Copies the data that octets begin with, and that were found to be sound.
    fn copy(octets: &[u8]) -> Option<Self> {
        let prefix_len = *octets.get(Self::PREFIX_AT)?;
        let len = 4 + prefix_len.div_ceil(8);
        let data = octets.get(..len.into())?;
        debug_assert!(Self::is_sound(data), "{data:?}");
        Some(Self { len: NonZeroU8::new(len)?, octets: filled(data)? })
    }

    /// Returns the network that the option tells; none where it tells that there is none to use,
    /// by a family of 0 or a prefix of no bits (rfc7871#7.1.2).
    #[must_use]
    pub fn network(&self) -> Option<ClientSubnet> {
        self.subnet().filter(|subnet| subnet.prefix_len > 0)
    }

    /// Returns the family, address and length that the option has; none for a family of 0.
    #[must_use]
    pub fn subnet(&self) -> Option<ClientSubnet> {
        ClientSubnet::parse(self.octets.get(..self.len.get().into())?)
    }

    /// Returns the data of the reply's option: those of the query, and a scope. That has no more
    /// bits than an address of the family, and none where the client tells no network to use.
    #[must_use]
    pub fn with_scope(mut self, scope_len: u8) -> Self {
        let bits_max = match (self.octets[Self::FAMILY_AT], self.octets[Self::PREFIX_AT]) {
            (_, 0) => 0,
            (1, _) => 32,
            _ => 128,
        };
        self.octets[Self::SCOPE_AT] = scope_len.min(bits_max);
        self
    }

    /// The data of the option.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.octets[..self.len.get().into()]
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
    /// Returns the CLIENT-SUBNET option of the message that this was read from.
    #[must_use]
    pub fn subnet_option(&self, message: &[u8]) -> Option<SubnetOption> {
        let at = usize::from(self.edns.filter(|edns| edns.subnet_at > 0)?.subnet_at);
        SubnetOption::copy(message.get(at..)?)
    }

    /// Returns the client's network, from the query's Client Subnet option; `None` without a valid
    /// option.
    #[must_use]
    pub fn client_subnet(&self, message: &[u8]) -> Option<ClientSubnet> {
        self.subnet_option(message)?.subnet()
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

    /// Returns an option of a query with these data.
    fn option(data: &[u8]) -> SubnetOption {
        SubnetOption::copy(data).unwrap_or_else(|| panic!("{data:?} are those of a query"))
    }

    #[test]
    fn a_reply_repeats_family_source_and_address_and_says_the_scope() {
        let v4 = option(&[0, 1, 23, 0, 192, 0, 2]);
        for (scope, sent) in [(0, 0), (16, 16), (24, 24), (32, 32), (33, 32), (255, 32)] {
            assert_eq!(v4.with_scope(scope).data(), [0, 1, 23, sent, 192, 0, 2], "{scope}");
        }
        let v6 = option(&[0, 2, 32, 0, 0x20, 1, 0xd, 0xb8]);
        assert_eq!(v6.with_scope(56).data(), [0, 2, 32, 56, 0x20, 1, 0xd, 0xb8]);
        assert_eq!(v6.with_scope(255).data()[3], 128);
        assert_eq!(v6.network().map(|it| it.to_string()).as_deref(), Some("2001:db8::/32"));
    }

    #[test]
    fn a_client_that_tells_no_network_is_told_no_scope() {
        for data in [[0, 0, 0, 0], [0, 1, 0, 0], [0, 2, 0, 0]] {
            assert_eq!(option(&data).with_scope(24).data(), data, "{data:?}");
            assert_eq!(option(&data).network(), None, "{data:?}");
        }
    }
}
