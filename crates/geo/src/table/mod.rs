//! From prefixes with values to a table that finds the value of an address.
//!
//! | module | what it holds |
//! |---|---|
//! | `address` | addresses as numbers of 32 or 128 bits |
//! | `ranges` | the value of every address as ranges in order: prefixes are resolved here |
//! | `trie` | the layout for look-ups |

mod address;
mod ranges;
mod trie;

use std::error::Error;
use std::fmt;
use std::hint::black_box;
use std::net::IpAddr;

use crate::Prefix;

pub(crate) use address::Address;
pub(crate) use ranges::Ranges;
pub use trie::Match;
use trie::Trie;

/// Most prefixes of a table; the largest databases of locations have some 6 million networks.
pub const PREFIXES_MAX: usize = 1 << 24;

/// Most addresses that [`PrefixTable::touch`] brings memory for: more than a batch of queries has.
pub const BATCH_MAX: usize = 64;

/// An immutable table that finds the value of the longest prefix around an address.
///
/// A look-up allocates nothing and takes no lock. A change of prefixes is another table.
#[derive(Debug)]
pub struct PrefixTable {
    /// Values of IPv4 addresses.
    v4: Trie<u32>,
    /// Values of IPv6 addresses.
    v6: Trie<u128>,
}

impl PrefixTable {
    /// Makes a table of prefixes in any order; of equal prefixes the last counts. Addresses in none
    /// have the value `otherwise`.
    ///
    /// # Errors
    /// There are more than [`PREFIXES_MAX`] prefixes, or the table would take more than 8 GiB.
    pub fn new(
        prefixes: impl IntoIterator<Item = (Prefix, u32)>,
        otherwise: u32,
    ) -> Result<Self, TooManyPrefixes> {
        Self::of_values(&AddressValues::new(prefixes, otherwise)?)
    }

    /// Lays out the values of all addresses for look-ups.
    pub(crate) fn of_values(values: &AddressValues) -> Result<Self, TooManyPrefixes> {
        Ok(Self { v4: Trie::of_ranges(&values.v4)?, v6: Trie::of_ranges(&values.v6)? })
    }

    /// Finds the value of an address, and the widest prefix around it within which all addresses
    /// have that value.
    ///
    /// An IPv4-mapped IPv6 address is looked up as the IPv4 address that it means; its scope counts
    /// bits of the IPv4 address.
    #[inline]
    pub fn lookup(&self, address: IpAddr) -> Match {
        match address.to_canonical() {
            IpAddr::V4(v4) => self.v4.lookup(v4.into()),
            IpAddr::V6(v6) => self.v6.lookup(v6.into()),
        }
    }

    /// Brings the memory that look-ups of a batch of addresses read into the processor's cache. A
    /// look-up waits for each line of memory in turn; here the lines of all addresses come at once,
    /// which halves the time where clients are many. The look-ups follow.
    ///
    /// Of more than [`BATCH_MAX`] addresses, the first ones count.
    pub fn touch(&self, addresses: &[IpAddr]) {
        let mut entries = [0; BATCH_MAX];
        for (entry, address) in entries.iter_mut().zip(addresses) {
            *entry = match address.to_canonical() {
                IpAddr::V4(v4) => self.v4.entry(v4.into()),
                IpAddr::V6(v6) => self.v6.entry(v6.into()),
            };
        }
        for _ in 0..2 {
            for (entry, address) in entries.iter_mut().zip(addresses) {
                *entry = match address.to_canonical() {
                    IpAddr::V4(v4) => self.v4.step(*entry, v4.into()),
                    IpAddr::V6(v6) => self.v6.step(*entry, v6.into()),
                };
            }
        }
        let touched = entries.iter().fold(0, |sum, entry| sum ^ entry);
        // Whatever the sum is, the compiler has to leave the reads in.
        black_box(touched);
    }

    /// Returns the octets of memory that the table uses.
    pub fn memory(&self) -> usize {
        self.v4.memory() + self.v6.memory()
    }
}

/// The value of every address, in order: what tables are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AddressValues {
    /// Values of IPv4 addresses.
    pub v4: Ranges<u32>,
    /// Values of IPv6 addresses.
    pub v6: Ranges<u128>,
}

impl AddressValues {
    /// Resolves prefixes; see [`PrefixTable::new`].
    pub fn new(
        prefixes: impl IntoIterator<Item = (Prefix, u32)>,
        otherwise: u32,
    ) -> Result<Self, TooManyPrefixes> {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (prefix, value) in prefixes {
            if v4.len() + v6.len() == PREFIXES_MAX {
                return Err(TooManyPrefixes);
            }
            match prefix.address() {
                IpAddr::V4(start) => v4.push((u32::from(start), prefix.length(), value)),
                IpAddr::V6(start) => v6.push((u128::from(start), prefix.length(), value)),
            }
        }
        Ok(Self { v4: Ranges::of_prefixes(v4, otherwise), v6: Ranges::of_prefixes(v6, otherwise) })
    }

    /// Returns what `combine` makes of the values of two lists.
    pub fn combined(&self, other: &Self, mut combine: impl FnMut(u32, u32) -> u32) -> Self {
        Self {
            v4: self.v4.combined(&other.v4, &mut combine),
            v6: self.v6.combined(&other.v6, &mut combine),
        }
    }

    /// Finds the value of an address, and the length of the widest prefix around it that has it.
    pub fn find(&self, address: IpAddr) -> (u32, u8) {
        match address.to_canonical() {
            IpAddr::V4(v4) => self.v4.find(v4.into()),
            IpAddr::V6(v6) => self.v6.find(v6.into()),
        }
    }

    /// Returns the octets of memory that the values use.
    pub fn memory(&self) -> usize {
        self.v4.memory() + self.v6.memory()
    }
}

/// A list of more than [`PREFIXES_MAX`] prefixes, or of so many long ones far from each other that
/// a table would take more than 8 GiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyPrefixes;

impl fmt::Display for TooManyPrefixes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "more than {PREFIXES_MAX} prefixes, or too many long ones; leave out prefixes or merge \
             them"
        )
    }
}

impl Error for TooManyPrefixes {}
