//! EDNS options of queries to upstreams, and what they tell of the client.
//!
//! An upstream may answer by what an option tells it: answers are kept for, and shared by, clients
//! of which the same is told.

use crate::option_codes::{OptionCodes, UPSTREAM_OPTIONS_MAX};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use zonda_cache::{VARIANT_BYTES_MAX, Variant};
use zonda_wire::{Name, Type};
use zonda_zone::HashSeed;

/// The options of each query to the upstreams of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamOptions {
    /// The options, at most [`UPSTREAM_OPTIONS_MAX`], in the order in which they are sent.
    options: Box<[UpstreamOption]>,
    /// The addresses of the listeners, in the order of the configuration.
    listeners: Arc<[SocketAddr]>,
    /// Whether answers may depend on the client, beside its question.
    pub tells_of_client: bool,
}

/// An option of queries to upstreams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamOption {
    /// The code of the option.
    pub code: u16,
    /// The data of the option.
    pub data: OptionData,
    /// Whether the option is in queries for clients alone whose query has one of this code.
    pub is_conditional: bool,
}

/// The data of an option of queries to upstreams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionData {
    /// The same octets in each query.
    Octets(Box<[u8]>),
    /// The name asked for, as text in lower case with its final dot.
    Name,
    /// The type asked for, two octets.
    Type,
    /// The client's address, 4 or 16 octets.
    ClientAddress,
    /// The client's port, two octets.
    ClientPort,
    /// The transport of the client's query, `udp` or `tcp`.
    Transport,
    /// The address of the listener, 4 or 16 octets; the option is left out where that is a
    /// wildcard.
    ServerAddress,
    /// The port of the listener, two octets.
    ServerPort,
    /// The network of the client's address with a scope of 0 (rfc7871#6): the lengths of the prefix
    /// for IPv4, at most 32, and for IPv6, at most 128.
    ClientSubnet(u8, u8),
}

impl OptionData {
    /// Whether the data depend on the client, beside its question.
    fn is_of_client(&self) -> bool {
        !matches!(self, Self::Octets(_) | Self::Name | Self::Type)
    }
}

/// Octets of what options tell of a client: 1, which of the options that depend on the client's are
/// there, family and address, port, transport, and the listener.
const FACTS_BYTES: usize = 1 + 1 + 1 + 16 + 2 + 1 + 2;
const _: () = assert!(FACTS_BYTES <= VARIANT_BYTES_MAX && UPSTREAM_OPTIONS_MAX <= 8);
/// Where a bit for each conditional option lies that the client's query has.
const PRESENT_AT: usize = 1;
/// Where the family of the client's address lies: 4 or 6, or 0 if none is told.
const FAMILY_AT: usize = 2;
/// Where the client's address lies, as far as it is told.
const ADDRESS_AT: usize = 3;
/// Where the client's port lies.
const PORT_AT: usize = 19;
/// Where the transport lies: 1 for UDP, 2 for TCP.
const TRANSPORT_AT: usize = 21;
/// Where the place of the listener lies.
const LISTENER_AT: usize = 22;

/// A client, as far as upstreams may be told of it.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// The client's address and port.
    pub address: SocketAddr,
    /// Whether its query came over TCP.
    pub is_over_tcp: bool,
    /// The listener that the query came to, by its place in the configuration; [`u16::MAX`] for a
    /// question of the server itself.
    pub listener: u16,
}

/// What the options of a query to upstreams tell of the client for which it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientFacts {
    /// A hash of the octets with the process's secret; 0 where nothing is told.
    hash: u64,
    /// All that is told; zero where it is not. The first octet is 0 where nothing is told.
    octets: [u8; FACTS_BYTES],
}

impl ClientFacts {
    /// Nothing is told of any client.
    pub const NONE: Self = Self { hash: 0, octets: [0; FACTS_BYTES] };

    /// A number that differs between clients of which something different is told, but by accident;
    /// 0 where nothing is told.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Under which answers are kept that depend on this.
    #[inline]
    #[must_use]
    pub fn variant(&self) -> Variant<'_> {
        match self.octets[0] {
            0 => Variant::default(),
            _ => Variant { hash: self.hash, value: &self.octets },
        }
    }

    /// The address, whose further bits are zero where less of it is told.
    fn address(&self) -> Option<IpAddr> {
        let octets: [u8; 16] = *self.octets[ADDRESS_AT..].first_chunk()?;
        match self.octets[FAMILY_AT] {
            4 => octets.first_chunk::<4>().map(|octets| IpAddr::from(*octets)),
            6 => Some(IpAddr::from(octets)),
            _ => None,
        }
    }

    /// Two octets, where anything is told.
    fn octets_at(&self, at: usize) -> Option<[u8; 2]> {
        let is_told = self.octets[0] != 0;
        self.octets[at..].first_chunk().copied().filter(|_| is_told)
    }
}

impl UpstreamOptions {
    /// Options of queries for clients of these listeners, whose addresses are given in the order of
    /// the configuration. Of more than [`UPSTREAM_OPTIONS_MAX`], the first ones count.
    #[must_use]
    pub fn new(mut options: Vec<UpstreamOption>, listeners: Arc<[SocketAddr]>) -> Self {
        options.truncate(UPSTREAM_OPTIONS_MAX);
        let tells_of_client =
            options.iter().any(|option| option.is_conditional || option.data.is_of_client());
        Self { options: options.into(), listeners, tells_of_client }
    }

    /// Returns what the options tell of a client, and of its query's options, whose codes are given
    /// as far as they matter.
    #[must_use]
    pub fn facts(&self, client: &Client, codes: &OptionCodes, seed: HashSeed) -> ClientFacts {
        if client.listener == u16::MAX && client.address.port() == 0 {
            return ClientFacts::NONE; // a question of the server itself, for no client
        }
        let mut octets = [0; FACTS_BYTES];
        octets[0] = 1; // or octets of zero would be those of an answer for all
        for (place, option) in self.options.iter().enumerate() {
            if option.is_conditional && codes.contains(option.code) {
                octets[PRESENT_AT] |= 1 << place;
            }
        }
        let address = client.address.ip().to_canonical();
        let told_bits = self.options.iter().map(|option| match (&option.data, address) {
            (OptionData::ClientAddress, _) => 128,
            (OptionData::ClientSubnet(bits, _), IpAddr::V4(_)) => *bits,
            (OptionData::ClientSubnet(_, bits), IpAddr::V6(_)) => *bits,
            _ => 0,
        });
        if self.has(|data| matches!(data, OptionData::ClientAddress | OptionData::ClientSubnet(..)))
        {
            let bits = told_bits.max().unwrap_or(0);
            let (family, len) = write_network(&mut octets[ADDRESS_AT..PORT_AT], address, bits);
            debug_assert!(len <= PORT_AT - ADDRESS_AT);
            octets[FAMILY_AT] = family;
        }
        if self.has(|data| *data == OptionData::ClientPort) {
            octets[PORT_AT..TRANSPORT_AT].copy_from_slice(&client.address.port().to_be_bytes());
        }
        if self.has(|data| *data == OptionData::Transport) {
            octets[TRANSPORT_AT] = 1 + u8::from(client.is_over_tcp);
        }
        if self.has(|data| matches!(data, OptionData::ServerAddress | OptionData::ServerPort)) {
            octets[LISTENER_AT..].copy_from_slice(&client.listener.to_be_bytes());
        }
        ClientFacts { hash: hash(seed, &octets), octets }
    }

    /// Calls `append` with the code and the data of each option of a query for a name, in wire form
    /// and lower case, and a type. Options of which nothing is known are left out.
    pub fn write(
        &self,
        facts: &ClientFacts,
        (name, qtype): (&[u8], Type),
        mut append: impl FnMut(u16, &[u8]),
    ) {
        for (place, option) in self.options.iter().enumerate() {
            if option.is_conditional && facts.octets[PRESENT_AT] & 1 << place == 0 {
                continue;
            }
            let mut append = |data: &[u8]| append(option.code, data);
            let listener = || {
                let place = u16::from_be_bytes(facts.octets_at(LISTENER_AT)?);
                self.listeners.get(usize::from(place))
            };
            match &option.data {
                OptionData::Octets(octets) => append(octets),
                OptionData::Name => {
                    let text = Name::from_wire(name).map(|name| name.to_lowercase().to_string());
                    text.iter().for_each(|text| append(text.as_bytes()));
                }
                OptionData::Type => append(&qtype.0.to_be_bytes()),
                OptionData::ClientAddress => {
                    facts.address().iter().for_each(|address| append_address(address, &mut append));
                }
                OptionData::ClientPort => {
                    facts.octets_at(PORT_AT).iter().for_each(|port| append(port))
                }
                OptionData::Transport => match facts.octets[TRANSPORT_AT] {
                    0 => {}
                    1 => append(b"udp"),
                    _ => append(b"tcp"),
                },
                OptionData::ServerAddress => {
                    let address = listener().map(SocketAddr::ip);
                    let address = address.filter(|address| !address.is_unspecified());
                    address.iter().for_each(|address| append_address(address, &mut append));
                }
                OptionData::ServerPort => {
                    let port = listener().map(SocketAddr::port);
                    port.iter().for_each(|port| append(&port.to_be_bytes()));
                }
                OptionData::ClientSubnet(of_v4, of_v6) => {
                    let subnet = facts.address().map(|it| subnet(it, (*of_v4, *of_v6)));
                    subnet.iter().for_each(|(data, len)| append(&data[..*len]));
                }
            }
        }
    }

    /// Whether any option has such data.
    fn has(&self, is_such: impl Fn(&OptionData) -> bool) -> bool {
        self.options.iter().any(|option| is_such(&option.data))
    }
}

/// Calls `append` with the octets of an address.
fn append_address(address: &IpAddr, append: &mut impl FnMut(&[u8])) {
    match address {
        IpAddr::V4(address) => append(&address.octets()),
        IpAddr::V6(address) => append(&address.octets()),
    }
}

/// Most octets of the data of a CLIENT-SUBNET option.
const SUBNET_BYTES_MAX: usize = 4 + 16;

/// Returns the data of a CLIENT-SUBNET option for an address (rfc7871#6), and how many octets they
/// are; the lengths of the prefix are for IPv4 and IPv6.
fn subnet(address: IpAddr, (of_v4, of_v6): (u8, u8)) -> ([u8; SUBNET_BYTES_MAX], usize) {
    let (family, bits) = match address {
        IpAddr::V4(_) => (1, of_v4),
        IpAddr::V6(_) => (2, of_v6),
    };
    let mut data = [0; SUBNET_BYTES_MAX];
    data[1] = family;
    data[2] = bits;
    let (_, len) = write_network(&mut data[4..], address, bits);
    (data, 4 + len)
}

/// Writes the first bits of an address, and zero for the rest; returns the family, 4 or 6, and the
/// number of octets that have any of these bits.
fn write_network(out: &mut [u8], address: IpAddr, bits: u8) -> (u8, usize) {
    let mut octets = [0; 16];
    let (family, len) = match address {
        IpAddr::V4(address) => {
            octets[..4].copy_from_slice(&address.octets());
            (4, 4)
        }
        IpAddr::V6(address) => {
            octets = address.octets();
            (6, 16)
        }
    };
    let told = usize::from(bits.div_ceil(8)).min(len);
    for (place, (to, octet)) in out.iter_mut().zip(octets).enumerate().take(told) {
        let gone = ((place + 1) * 8).saturating_sub(usize::from(bits)).min(7);
        *to = octet & (u8::MAX << gone);
    }
    (family, told)
}

/// A hash of octets with the process's secret: answers whose variants have the same share a bucket
/// of the cache and nothing else, as it compares the values.
pub(crate) fn hash(seed: HashSeed, octets: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15; // 2⁶⁴ divided by the golden ratio
    octets.chunks(8).fold(seed.0, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let product = u128::from(hash ^ u64::from_le_bytes(word)) * u128::from(ODD);
        product as u64 ^ (product >> 64) as u64
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SEED: HashSeed = HashSeed(7);

    fn options(options: &[(u16, OptionData)]) -> UpstreamOptions {
        let options = options.iter().cloned();
        let options = options
            .map(|(code, data)| UpstreamOption { code, data, is_conditional: false })
            .collect();
        let listeners = ["0.0.0.0:53", "192.0.2.53:5353"].map(|it| it.parse().unwrap());
        UpstreamOptions::new(options, Arc::new(listeners))
    }

    fn client(address: &str, listener: u16) -> Client {
        Client { address: address.parse().unwrap(), is_over_tcp: false, listener }
    }

    /// The options of a query for `www.Example AAAA`.
    fn written(options: &UpstreamOptions, facts: &ClientFacts) -> Vec<(u16, Vec<u8>)> {
        let name: Name = "www.Example".parse().unwrap();
        let mut written = Vec::new();
        let append = |code, data: &[u8]| written.push((code, data.to_vec()));
        options.write(facts, (name.as_wire(), Type::AAAA), append);
        written
    }

    #[test]
    fn each_variable_has_its_octets() {
        use OptionData as Data;
        let all = [
            Data::Octets([7].into()),
            Data::Name,
            Data::Type,
            Data::ClientAddress,
            Data::ClientPort,
            Data::Transport,
            Data::ServerAddress,
            Data::ServerPort,
        ];
        let all: Vec<_> = (65001..).zip(all).collect();
        let options = options(&all);
        assert!(options.tells_of_client);
        let facts = options.facts(&client("198.51.100.7:4242", 1), &OptionCodes::default(), SEED);
        let expected: [&[u8]; 8] = [
            &[7],
            b"www.example.",
            &[0, 28],
            &[198, 51, 100, 7],
            &4242_u16.to_be_bytes(),
            b"udp",
            &[192, 0, 2, 53],
            &5353_u16.to_be_bytes(),
        ];
        let expected: Vec<_> = (65001..).zip(expected.map(<[u8]>::to_vec)).collect();
        assert_eq!(written(&options, &facts), expected);
        let of_wildcard =
            options.facts(&client("[2001:db8::7]:1", 0), &OptionCodes::default(), SEED);
        let codes: Vec<_> = written(&options, &of_wildcard).iter().map(|it| it.0).collect();
        assert_eq!(codes, [65001, 65002, 65003, 65004, 65005, 65006, 65008], "no address");
        let without = written(&options, &ClientFacts::NONE);
        assert_eq!(without, expected[..3], "for no client");
    }

    #[test]
    fn a_client_subnet_has_the_first_bits_of_the_address_and_no_scope() {
        for (lengths, address, expected) in [
            ((24, 56), "198.51.100.7:1", &[0, 1, 24, 0, 198, 51, 100][..]),
            ((20, 56), "198.51.111.7:1", &[0, 1, 20, 0, 198, 51, 96]),
            ((0, 56), "198.51.111.7:1", &[0, 1, 0, 0]),
            ((32, 56), "198.51.111.7:1", &[0, 1, 32, 0, 198, 51, 111, 7]),
            ((32, 56), "[::ffff:198.51.111.7]:1", &[0, 1, 32, 0, 198, 51, 111, 7]),
            ((24, 33), "[2001:db8:ffff::7]:1", &[0, 2, 33, 0, 0x20, 1, 0x0d, 0xb8, 0x80]),
        ] {
            let options = options(&[(8, OptionData::ClientSubnet(lengths.0, lengths.1))]);
            let facts = options.facts(&client(address, 0), &OptionCodes::default(), SEED);
            assert_eq!(written(&options, &facts), [(8, expected.to_vec())], "{address}");
        }
    }

    #[test]
    fn clients_of_which_the_same_is_told_share_answers() {
        let of_network = options(&[(8, OptionData::ClientSubnet(24, 56))]);
        let facts = |options: &UpstreamOptions, address| {
            options.facts(&client(address, 0), &OptionCodes::default(), SEED)
        };
        let [one, same, other] = ["192.0.2.1:1", "192.0.2.200:2", "192.0.3.1:1"]
            .map(|address| facts(&of_network, address));
        assert_eq!(one, same);
        assert_ne!(one.variant(), other.variant());
        let of_question = options(&[(65001, OptionData::Name), (65002, OptionData::Type)]);
        assert!(!of_question.tells_of_client);
        let zero = facts(&of_network, "0.0.0.0:0");
        assert_ne!(zero.variant(), ClientFacts::NONE.variant(), "0.0.0.0/24 is a network");
    }

    #[test]
    fn an_option_of_the_client_is_replaced_only_if_it_is_there() {
        let option = |code| UpstreamOption {
            code,
            data: OptionData::Octets([1].into()),
            is_conditional: true,
        };
        let options = UpstreamOptions::new(vec![option(65001), option(65002)], Arc::default());
        assert!(options.tells_of_client);
        let mut codes = OptionCodes::default();
        assert!(codes.insert(65002) && codes.insert(65002));
        let facts = options.facts(&client("192.0.2.1:1", 0), &codes, SEED);
        assert_eq!(written(&options, &facts), [(65002, vec![1])]);
        let without = options.facts(&client("192.0.2.1:1", 0), &OptionCodes::default(), SEED);
        assert!(written(&options, &without).is_empty() && without != facts);
    }
}
