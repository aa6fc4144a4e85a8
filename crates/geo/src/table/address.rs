//! Addresses as numbers: IPv4 as 32 bits, IPv6 as 128.

/// An address of one family.
pub trait Address: Copy + Ord + Default {
    /// Number of bits of an address: 32 or 128.
    const BITS: u32;
    /// Highest address of the family.
    const MAX: Self;

    /// Returns `count` bits behind the first `skipped` ones as a number; `count` is 1 to 20 and the
    /// bits lie within the address.
    fn bits(self, skipped: u32, count: u32) -> usize;

    /// Returns the 32 bits behind the first `skipped` ones, with zeros where the address has fewer.
    fn key(self, skipped: u32) -> u32;

    /// Tells whether all bits behind those of [`Address::key`] are 0.
    fn is_key(self, skipped: u32) -> bool;

    /// Returns the address `steps` blocks of `1 << block_bits` addresses behind this one, without
    /// leaving the family: the caller knows that it exists.
    fn plus(self, steps: usize, block_bits: u32) -> Self;

    /// Returns the address with its last `count` bits (0 to all) set.
    fn last_of(self, count: u32) -> Self;

    /// Returns the next address, or `None` behind the highest.
    fn next(self) -> Option<Self>;

    /// Returns the address before this one, or `None` before the lowest.
    fn previous(self) -> Option<Self>;

    /// Returns how many leading bits two addresses share.
    fn shared(self, other: Self) -> u32;
}

/// Implements [`Address`] for an unsigned integer.
macro_rules! address {
    ($number:ty) => {
        impl Address for $number {
            const BITS: u32 = <$number>::BITS;
            const MAX: Self = <$number>::MAX;

            #[inline]
            fn bits(self, skipped: u32, count: u32) -> usize {
                ((self << skipped) >> (Self::BITS - count)) as usize
            }

            #[inline]
            fn key(self, skipped: u32) -> u32 {
                ((self << skipped) >> (Self::BITS - u32::BITS)) as u32
            }

            fn is_key(self, skipped: u32) -> bool {
                (self << skipped).checked_shl(u32::BITS).unwrap_or(0) == 0
            }

            fn plus(self, steps: usize, block_bits: u32) -> Self {
                self + ((steps as $number) << block_bits)
            }

            fn last_of(self, count: u32) -> Self {
                self | Self::MAX.checked_shr(Self::BITS - count).unwrap_or(0)
            }

            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }

            fn previous(self) -> Option<Self> {
                self.checked_sub(1)
            }

            fn shared(self, other: Self) -> u32 {
                (self ^ other).leading_zeros()
            }
        }
    };
}

address!(u32);
address!(u128);
