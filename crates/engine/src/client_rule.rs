//! Which clients a rule is for: by their address, by the key of their message, or by both.

use std::net::IpAddr;
use zonda_wire::tsig::KeyId;

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

/// A rule for clients that may transfer or change a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferRule {
    /// The addresses of the clients; none: all addresses.
    pub network: Option<Network>,
    /// The key that the query must be signed with, if it must.
    pub key: Option<KeyId>,
}

impl TransferRule {
    /// Whether the rule is for a client whose message has a sound signature by `key`, if by any.
    #[must_use]
    pub fn is_for(&self, client: IpAddr, key: Option<KeyId>) -> bool {
        self.network.is_none_or(|network| network.contains(client))
            && self.key.is_none_or(|wanted| key == Some(wanted))
    }
}
