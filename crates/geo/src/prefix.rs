//! A network: an address and the number of its leading bits that count.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An IPv4 or IPv6 network. An IPv4-mapped IPv6 network (within `::ffff:0:0/96`) is held as the
/// IPv4 network that it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// First address of the network: the bits behind the length are 0.
    address: IpAddr,
    /// Number of leading bits that all addresses of the network share: 0 to 32, or to 128.
    length: u8,
}

impl Prefix {
    /// Returns the network of the first `length` bits of an address; the bits behind them may be
    /// anything. `None` if the address has fewer bits than that.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let (address, length) = match address {
            IpAddr::V6(v6) if (96..=128).contains(&length) => match v6.to_ipv4_mapped() {
                Some(v4) => (IpAddr::V4(v4), length - 96),
                None => (address, length),
            },
            _ => (address, length),
        };
        let address = match address {
            IpAddr::V4(v4) if length <= 32 => {
                let kept = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                IpAddr::V4((u32::from(v4) & kept).into())
            }
            IpAddr::V6(v6) if length <= 128 => {
                let kept = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                IpAddr::V6((u128::from(v6) & kept).into())
            }
            _ => return None,
        };
        Some(Self { address, length })
    }

    /// Returns the network of one address.
    pub fn of_address(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self { address, length: if address.is_ipv4() { 32 } else { 128 } }
    }

    /// Returns the first address of the network.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// Returns the number of bits that all addresses of the network share.
    pub fn length(self) -> u8 {
        self.length
    }

    /// Tells whether an address lies in the network.
    pub fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4()
            && Self::new(address, self.length).is_some_and(|network| network == self)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// Why a text is no network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrefixError {
    /// Neither an address nor an address with a length.
    Malformed,
    /// A length beyond the number of bits that addresses of the family have.
    TooLong {
        /// Number of bits of an address: 32 or 128.
        length_max: u8,
    },
    /// An address with bits behind the length, so that one of the two is a slip.
    BitsBehindLength {
        /// The network of that length around the address.
        network: Prefix,
    },
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => {
                f.write_str("not a network; write it as 192.0.2.0/24, 2001:db8::/32 or an address")
            }
            Self::TooLong { length_max } => {
                write!(f, "the length of the prefix is above {length_max}, all bits of the address")
            }
            Self::BitsBehindLength { network } => {
                write!(f, "the address has bits behind the length; the network is {network}")
            }
        }
    }
}

impl Error for PrefixError {}

impl FromStr for Prefix {
    type Err = PrefixError;

    /// Reads `192.0.2.0/24`, `2001:db8::/32`, or an address as the network of that address.
    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| PrefixError::Malformed)?;
        let Some(length) = length else { return Ok(Self::of_address(address)) };
        if length.is_empty() || !length.bytes().all(|octet| octet.is_ascii_digit()) {
            return Err(PrefixError::Malformed);
        }
        let length_max = if address.is_ipv4() { 32 } else { 128 };
        let network = length.parse().ok().and_then(|length| Self::new(address, length));
        let network = network.ok_or(PrefixError::TooLong { length_max })?;
        if network.address.to_canonical() != address.to_canonical() {
            return Err(PrefixError::BitsBehindLength { network });
        }
        Ok(network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_reads_as_it_is_written() {
        for text in ["0.0.0.0/0", "10.1.0.0/16", "192.0.2.1/32", "::/0", "2001:db8::/33"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        assert_eq!("192.0.2.1".parse::<Prefix>().unwrap().to_string(), "192.0.2.1/32");
        assert_eq!("::ffff:10.1.0.0/112".parse::<Prefix>().unwrap().to_string(), "10.1.0.0/16");
    }

    #[test]
    fn a_slip_in_a_network_is_told() {
        let error = |text: &str| text.parse::<Prefix>().unwrap_err().to_string();
        assert!(error("10.1.2.3/16").contains("the network is 10.1.0.0/16"));
        assert!(error("10.0.0.0/33").contains("above 32"));
        assert!(error("10.0.0.0/999").contains("above 32"));
        assert!(error("2001:db8::/129").contains("above 128"));
        for text in ["", "10.1", "10.0.0.0/", "10.0.0.0/+8", "example.org", "::/0/0"] {
            assert_eq!(text.parse::<Prefix>(), Err(PrefixError::Malformed), "{text}");
        }
    }

    #[test]
    fn a_network_contains_addresses_of_its_own_family() {
        let network: Prefix = "10.1.0.0/16".parse().unwrap();
        assert!(network.contains("10.1.255.255".parse().unwrap()));
        assert!(network.contains("::ffff:10.1.2.3".parse().unwrap()));
        assert!(!network.contains("10.2.0.0".parse().unwrap()));
        assert!(!"::/0".parse::<Prefix>().unwrap().contains("10.1.0.0".parse().unwrap()));
    }
}
