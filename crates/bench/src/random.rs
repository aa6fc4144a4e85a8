//! Numbers that look random and come again with their seed: SplitMix64 (Steele, Lea and Flood,
//! 2014).

/// 2⁶⁴ divided by the golden ratio: multiples of it reach all numbers evenly.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sequence of numbers.
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// The numbers of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The numbers of a seed and a place; the first ones of all places are different.
    #[must_use]
    pub fn at(seed: u64, place: u32) -> Self {
        Self(mix(seed) ^ mix(u64::from(place)))
    }

    /// Returns the next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Returns a number below a limit; the unevenness is below the limit divided by 2⁶⁴.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.roll()) * u128::from(limit)) >> 64) as u64
    }

    /// Returns a number from 0 to below 1, in steps of 2⁻⁵³.
    pub fn fraction(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Returns the number of a turn, which can be had without those of the turns before.
#[must_use]
pub fn scatter(turn: u64) -> u64 {
    mix(turn.wrapping_mul(STEP))
}

/// Scrambles a number; different ones stay different.
fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_paper() {
        let mut numbers = Numbers::new(1_234_567);
        let first = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([numbers.roll(), numbers.roll()], first);
        assert_eq!(scatter(1), Numbers::new(0).roll());
    }

    #[test]
    fn a_sequence_comes_again_with_its_seed_and_is_spread_evenly() {
        let fractions = |seed| {
            let mut numbers = Numbers::new(seed);
            (0..10_000).map(|_| numbers.fraction()).collect::<Vec<_>>()
        };
        assert_eq!(fractions(3), fractions(3));
        assert_ne!(fractions(3), fractions(4));
        let mean = fractions(3).iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }
}
