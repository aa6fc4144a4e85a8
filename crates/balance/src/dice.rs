//! Random numbers of a worker.

/// A generator of random numbers for choices among members, by xorshift64* (Vigna 2016). Members
/// are no secret: it need not be hard to predict.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// A generator that begins with `seed`, of which every one gives another sequence.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // The state must not be 0, and seeds that differ in few bits must lead far apart.
        Self(mix(seed) | 1)
    }

    /// The next number.
    #[inline]
    pub fn roll(&mut self) -> u64 {
        let mut state = self.0;
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.0 = state;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// The next number below `count`, which is at most 2³².
    #[inline]
    pub fn below(&mut self, count: usize) -> usize {
        share(self.roll() >> 32, count)
    }
}

impl Default for Dice {
    /// A generator whose sequence is always the same.
    fn default() -> Self {
        Self::new(0)
    }
}

/// Maps a number below 2³² to one below `count`, which is at most 2³².
#[inline]
pub(crate) fn share(number: u64, count: usize) -> usize {
    ((number * count as u64) >> 32) as usize
}

/// Spreads every bit of a number over all bits of the result (the finalizer of splitmix64).
#[inline]
pub(crate) fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The identity of a member that has these octets: an address, or RDATA.
#[must_use]
pub fn identity_of(octets: &[u8]) -> u64 {
    hash_of(octets)
}

/// The hash of octets, which is the same on every server.
#[inline]
pub(crate) fn hash_of(octets: &[u8]) -> u64 {
    octets.chunks(8).fold(octets.len() as u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(hash ^ u64::from_le_bytes(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_a_count_are_spread_evenly() {
        let mut dice = Dice::new(7);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[dice.below(10)] += 1;
        }
        // Chi-square with 9 degrees of freedom: 27.9 is exceeded once in 1,000 times.
        let chi: f64 = counts.iter().map(|&n| (f64::from(n) - 1e4).powi(2) / 1e4).sum();
        assert!(chi < 27.9, "{chi} {counts:?}");
    }

    #[test]
    fn seeds_that_differ_in_one_bit_give_other_sequences() {
        assert_ne!(Dice::new(2).roll(), Dice::new(3).roll());
    }
}
