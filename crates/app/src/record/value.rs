//! What fields hold that are more than a number, a name or octets.

use super::field::{bits_of, write_string};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use zonda_wire::Name;
use zonda_wire::rdata::print::strings;
use zonda_wire::rdata::{gateway, loc, svcb};

/// A service parameter of SVCB and HTTPS (rfc9460#7).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SvcParam {
    /// Keys that a client must understand, to use the record at all.
    Mandatory(Vec<u16>),
    /// Protocols that are spoken there, such as `h2`.
    Alpn(Vec<Vec<u8>>),
    /// The scheme's own protocol is not spoken there.
    NoDefaultAlpn,
    /// A port by number.
    Port(u16),
    /// Addresses, until the client has asked for them.
    Ipv4Hint(Vec<Ipv4Addr>),
    /// The configuration of encrypted client hello (rfc9848).
    Ech(Vec<u8>),
    /// Addresses, until the client has asked for them.
    Ipv6Hint(Vec<Ipv6Addr>),
    /// The path for DNS over HTTPS (rfc9461#5).
    DohPath(String),
    /// Oblivious HTTP is spoken there (rfc9540#4).
    Ohttp,
    /// A parameter of another key, and its value's octets.
    Other(u16, Vec<u8>),
}

impl SvcParam {
    /// Protocols by their names, such as `["h2", "h3"]`.
    pub fn alpn<P: AsRef<[u8]>>(protocols: impl IntoIterator<Item = P>) -> Self {
        Self::Alpn(protocols.into_iter().map(|protocol| protocol.as_ref().to_vec()).collect())
    }

    /// Returns the number of its key (rfc9460#14.3.2).
    #[must_use]
    pub fn key(&self) -> u16 {
        match self {
            Self::Mandatory(_) => svcb::MANDATORY,
            Self::Alpn(_) => svcb::ALPN,
            Self::NoDefaultAlpn => svcb::NO_DEFAULT_ALPN,
            Self::Port(_) => svcb::PORT,
            Self::Ipv4Hint(_) => svcb::IPV4HINT,
            Self::Ech(_) => svcb::ECH,
            Self::Ipv6Hint(_) => svcb::IPV6HINT,
            Self::DohPath(_) => svcb::DOHPATH,
            Self::Ohttp => svcb::OHTTP,
            Self::Other(key, _) => *key,
        }
    }

    /// Appends its value.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Mandatory(keys) => {
                let mut keys = keys.clone();
                keys.sort_unstable();
                out.extend(keys.iter().flat_map(|key| key.to_be_bytes()));
            }
            Self::Alpn(protocols) => protocols.iter().for_each(|it| write_string(it, out)),
            Self::NoDefaultAlpn | Self::Ohttp => {}
            Self::Port(port) => out.extend_from_slice(&port.to_be_bytes()),
            Self::Ipv4Hint(addresses) => out.extend(addresses.iter().flat_map(Ipv4Addr::octets)),
            Self::Ipv6Hint(addresses) => out.extend(addresses.iter().flat_map(Ipv6Addr::octets)),
            Self::DohPath(path) => out.extend_from_slice(path.as_bytes()),
            Self::Ech(octets) | Self::Other(_, octets) => out.extend_from_slice(octets),
        }
    }

    /// Reads a parameter from its key and its valid value.
    pub(super) fn read(key: u16, value: &[u8]) -> Option<Self> {
        let two = |chunk: &[u8]| chunk.try_into().ok().map(u16::from_be_bytes);
        Some(match key {
            svcb::MANDATORY => Self::Mandatory(value.chunks(2).map(two).collect::<Option<_>>()?),
            svcb::ALPN => Self::alpn(strings(value)),
            svcb::NO_DEFAULT_ALPN => Self::NoDefaultAlpn,
            svcb::PORT => Self::Port(two(value)?),
            svcb::IPV4HINT => Self::Ipv4Hint(
                value.as_chunks().0.iter().map(|it: &[u8; 4]| Ipv4Addr::from(*it)).collect(),
            ),
            svcb::ECH => Self::Ech(value.to_vec()),
            svcb::IPV6HINT => Self::Ipv6Hint(
                value.as_chunks().0.iter().map(|it: &[u8; 16]| Ipv6Addr::from(*it)).collect(),
            ),
            svcb::DOHPATH => Self::DohPath(String::from_utf8(value.to_vec()).ok()?),
            svcb::OHTTP => Self::Ohttp,
            _ => Self::Other(key, value.to_vec()),
        })
    }
}

/// A gateway or relay (rfc4025#2.5, rfc8777#4.2.4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Gateway {
    /// There is none.
    Nothing,
    /// An IPv4 address of the gateway.
    Ipv4(Ipv4Addr),
    /// An IPv6 address of the gateway.
    Ipv6(Ipv6Addr),
    /// A name of the gateway.
    Name(Name),
}

impl Gateway {
    /// Returns what its record says that it is: 0 to 3.
    #[must_use]
    pub fn kind(&self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::Ipv4(_) => 1,
            Self::Ipv6(_) => 2,
            Self::Name(_) => 3,
        }
    }

    /// Appends its octets.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nothing => {}
            Self::Ipv4(address) => out.extend_from_slice(&address.octets()),
            Self::Ipv6(address) => out.extend_from_slice(&address.octets()),
            Self::Name(name) => out.extend_from_slice(name.as_wire()),
        }
    }

    /// Reads a gateway, whose kind the low bits of an octet give.
    pub(super) fn read(kind: &u8, octets: &[u8]) -> Option<Self> {
        Some(match kind & 3 {
            0 => Self::Nothing,
            1 => Self::Ipv4(<[u8; 4]>::try_from(octets).ok()?.into()),
            2 => Self::Ipv6(<[u8; 16]>::try_from(octets).ok()?.into()),
            _ => Self::Name(Name::from_wire(octets).ok()?),
        })
    }
}

/// A place on Earth (rfc1876).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// Thousandths of a second of arc north of the equator; at most 90 degrees either way.
    pub latitude_arc_millis: i32,
    /// Thousandths of a second of arc east of Greenwich; at most 180 degrees either way.
    pub longitude_arc_millis: i32,
    /// Height over the ellipsoid, from −100 km to some 42,850 km.
    pub altitude_centimetres: i64,
    /// Diameter of what is there; of this and the next two, the first digit counts.
    pub size_centimetres: u64,
    /// Horizontal precision, centimetres.
    pub horizontal_precision_centimetres: u64,
    /// Vertical precision, centimetres.
    pub vertical_precision_centimetres: u64,
}

impl Location {
    /// Appends its octets; what is out of range becomes octets that are no location.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let sizes = [
            self.size_centimetres,
            self.horizontal_precision_centimetres,
            self.vertical_precision_centimetres,
        ];
        let octet = |size: u64| i64::try_from(size).ok().and_then(loc::size_octet);
        out.push(0);
        out.extend(sizes.map(|size| octet(size).unwrap_or(u8::MAX)));
        for angle in [self.latitude_arc_millis, self.longitude_arc_millis] {
            out.extend_from_slice(&loc::EQUATOR.wrapping_add_signed(angle).to_be_bytes());
        }
        let raised = self.altitude_centimetres.saturating_add(loc::ELLIPSOID.into());
        let Ok(raised) = u32::try_from(raised) else { return }; // too short for a location
        out.extend_from_slice(&raised.to_be_bytes());
    }

    /// Reads the services from their octets.
    pub(super) fn read(octets: &[u8]) -> Option<Self> {
        let parts = loc::parts(octets)?;
        let [size, horizontal, vertical] = parts.sizes.map(loc::centimetres_of);
        let angle = |raised: u32| raised.wrapping_sub(loc::EQUATOR).cast_signed();
        Some(Self {
            latitude_arc_millis: angle(parts.latitude),
            longitude_arc_millis: angle(parts.longitude),
            altitude_centimetres: i64::from(parts.altitude) - i64::from(loc::ELLIPSOID),
            size_centimetres: size,
            horizontal_precision_centimetres: horizontal,
            vertical_precision_centimetres: vertical,
        })
    }
}

/// A prefix of addresses (rfc3123#4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressPrefix {
    /// Whether these addresses are left out.
    pub negated: bool,
    /// The first address.
    pub address: IpAddr,
    /// Number of bits that count; at most 32 or 128.
    pub bits: u8,
}

impl AddressPrefix {
    /// Appends its octets; zeros at the end of the address are left out.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (family, octets) = match self.address {
            IpAddr::V4(address) => (1, address.octets().to_vec()),
            IpAddr::V6(address) => (2, address.octets().to_vec()),
        };
        let len = octets.iter().rposition(|&octet| octet != 0).map_or(0, |last| last + 1);
        let flags = u8::from(self.negated) << 7 | len as u8; // at most 16
        out.extend_from_slice(&[0, family, self.bits, flags]);
        out.extend_from_slice(&octets[..len]);
    }

    /// Returns all of a field.
    pub(super) fn read_all(octets: &[u8]) -> Option<Vec<Self>> {
        let mut rest = octets;
        let mut prefixes = Vec::new();
        while let [_, family, bits, flags, tail @ ..] = rest {
            let (octets, tail) = tail.split_at_checked(usize::from(flags & 0x7f))?;
            let mut full = [0; 16];
            full.get_mut(..octets.len())?.copy_from_slice(octets);
            let [a, b, c, d, ..] = full;
            let address = match family {
                1 => IpAddr::from([a, b, c, d]),
                _ => IpAddr::from(full),
            };
            prefixes.push(Self { negated: flags & 0x80 != 0, address, bits: *bits });
            rest = tail;
        }
        Some(prefixes)
    }
}

/// Services of a host by one protocol (rfc1035#3.4.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Services {
    /// The number of the protocol: 6 is TCP, 17 is UDP.
    pub protocol: u8,
    /// Ports that are served.
    pub ports: Vec<u16>,
}

impl Services {
    /// Appends its octets.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.protocol);
        out.extend_from_slice(&bits_of(&self.ports));
    }

    /// Reads the values of a field.
    pub(super) fn read(octets: &[u8]) -> Option<Self> {
        let (&protocol, bits) = octets.split_first()?;
        let is_set = |port: &u16| bits[usize::from(port / 8)] & (0x80 >> (port % 8)) != 0;
        let ports = (0..=u16::MAX).take(bits.len() * 8).filter(is_set).collect();
        Some(Self { protocol, ports })
    }
}

/// An address in an ATM network.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AtmAddress {
    /// An address of an end system; at least one octet.
    EndSystem(Vec<u8>),
    /// A telephone number: digits.
    Number(String),
}

impl AtmAddress {
    /// Appends its octets.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let (format, octets) = match self {
            Self::EndSystem(octets) => (0, &octets[..]),
            Self::Number(digits) => (1, digits.as_bytes()),
        };
        out.push(format);
        out.extend_from_slice(octets);
    }

    /// Reads a prefix from the field's octets.
    pub(super) fn read(octets: &[u8]) -> Option<Self> {
        Some(match octets.split_first()? {
            (0, octets) => Self::EndSystem(octets.to_vec()),
            (_, digits) => Self::Number(String::from_utf8(digits.to_vec()).ok()?),
        })
    }
}

/// An address whose first bits another name has (rfc2874#3.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct A6Prefix {
    /// Number of bits that the other name has; at most 128.
    pub bits: u8,
    /// Bits behind the prefix, the bits of the prefix being zero.
    pub suffix: Ipv6Addr,
    /// The other name; nothing if there are no bits that it has.
    pub name: Option<Name>,
}

impl A6Prefix {
    /// Appends its octets.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(self.bits);
        if self.bits < 128 {
            out.extend_from_slice(&self.suffix.octets()[usize::from(self.bits / 8)..]);
        }
        out.extend_from_slice(self.name.as_ref().map_or(&[][..], Name::as_wire));
    }

    /// Reads the address from the field's octets.
    pub(super) fn read(octets: &[u8]) -> Option<Self> {
        let (&bits, rest) = octets.split_first()?;
        let len = (128 - usize::from(bits.min(128))).div_ceil(8);
        let (suffix, name) = rest.split_at_checked(len)?;
        let mut address = [0; 16];
        address[16 - len..].copy_from_slice(suffix);
        let name = match bits {
            0 => None,
            _ => Some(Name::from_wire(name).ok()?),
        };
        Some(Self { bits, suffix: address.into(), name })
    }
}

/// Identity of a host (rfc8005#5).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostIdentity {
    /// The algorithm of the public key.
    pub algorithm: u8,
    /// The host identity tag; 1 to 255 octets.
    pub tag: Vec<u8>,
    /// The public key; 1 to 65,535 octets.
    pub public_key: Vec<u8>,
}

impl HostIdentity {
    /// Appends its octets; what is too long makes them no identity.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let tag_len = u8::try_from(self.tag.len()).unwrap_or(0);
        let key_len = u16::try_from(self.public_key.len()).unwrap_or(0);
        out.extend_from_slice(&[tag_len, self.algorithm]);
        out.extend_from_slice(&key_len.to_be_bytes());
        out.extend_from_slice(&self.tag);
        out.extend_from_slice(&self.public_key);
    }

    /// Reads the identity from the field's octets.
    pub(super) fn read(octets: &[u8]) -> Option<Self> {
        let (algorithm, tag, public_key) = gateway::hip_parts(octets)?;
        Some(Self { algorithm, tag: tag.to_vec(), public_key: public_key.to_vec() })
    }
}
