//! Zipf's distribution: rank *k* of *n* is drawn with a probability in proportion to *k* to the
//! power of minus the exponent.
//!
//! Drawn by rejection-inversion (Hörmann and Derflinger 1996): a point is drawn below a hat whose
//! area has a closed form, and kept if it is below the step of its rank. Exact, with no table: a
//! draw takes about one point, however many ranks there are. Deliberately absent: randomness.

/// The largest exponent; above it nearly all draws are rank 1.
const EXPONENT_MAX: f64 = 10.0;

/// A Zipf distribution over numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Zipf {
    /// Exponent of the distribution, above 0.
    exponent: f64,
    /// Ranks, at least 1.
    count: f64,
    /// The area of the hat left of the first rank's end, less what that rank takes of it.
    area_from: f64,
    /// The area left of the last rank's end.
    area_to: f64,
}

impl Zipf {
    /// Ranks from 1 to `count`; nothing if the exponent is not one.
    pub fn new(exponent: f64, count: u64) -> Option<Self> {
        if !(exponent > 0.0 && exponent <= EXPONENT_MAX) || count == 0 {
            return None;
        }
        let mut zipf = Self { exponent, count: count as f64, area_from: 0.0, area_to: 0.0 };
        zipf.area_from = zipf.area(1.5) - 1.0;
        zipf.area_to = zipf.area(zipf.count + 0.5);
        Some(zipf)
    }

    /// Draws a rank; `fraction` gives random numbers from 0 to below 1.
    pub fn draw(&self, mut fraction: impl FnMut() -> f64) -> u64 {
        loop {
            let area = self.area_to + fraction() * (self.area_from - self.area_to);
            let rank = self.place(area).round().clamp(1.0, self.count);
            // The hat is convex, so that it has over each rank at least the area of the step.
            if area >= self.area(rank + 0.5) - rank.powf(-self.exponent) {
                return rank as u64;
            }
        }
    }

    /// Returns the area below the hat from 1 to `place`.
    fn area(&self, place: f64) -> f64 {
        let log = place.ln();
        let power = (1.0 - self.exponent) * log;
        // (place^(1 - exponent) - 1) / (1 - exponent), also where the exponent is 1.
        log * if power.abs() < 1e-8 { 1.0 + power / 2.0 } else { power.exp_m1() / power }
    }

    /// Returns the place whose area this is.
    fn place(&self, area: f64) -> f64 {
        let power = ((1.0 - self.exponent) * area).max(-1.0);
        let scale = if power.abs() < 1e-8 { 1.0 - power / 2.0 } else { power.ln_1p() / power };
        (area * scale).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how often each rank comes among `draws`.
    fn counts(exponent: f64, ranks: u64, draws: u32) -> Vec<f64> {
        let zipf = Zipf::new(exponent, ranks).unwrap();
        let mut state = 1_u64;
        let mut fraction = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut counts = vec![0.0; ranks as usize];
        for _ in 0..draws {
            counts[zipf.draw(&mut fraction) as usize - 1] += 1.0;
        }
        counts
    }

    #[test]
    fn ranks_are_as_frequent_as_the_theory_says() {
        for exponent in [0.5, 0.99, 1.0, 1.1, 2.0] {
            const DRAWS: u32 = 200_000;
            let counts = counts(exponent, 50, DRAWS);
            let weight = |rank: usize| (rank as f64).powf(-exponent);
            let whole: f64 = (1..=50).map(weight).sum();
            let square = |(at, count): (usize, &f64)| {
                let expected = f64::from(DRAWS) * weight(at + 1) / whole;
                (count - expected).powi(2) / expected
            };
            let chi_square: f64 = counts.iter().enumerate().map(square).sum();
            // 49 degrees of freedom; more than 85.4 has a probability of 0.001.
            assert!(chi_square < 85.4, "exponent {exponent}: {chi_square}");
        }
    }

    #[test]
    fn one_rank_is_always_drawn_and_many_stay_in_their_bounds() {
        assert_eq!(counts(1.1, 1, 100), [100.0]);
        let zipf = Zipf::new(1.0, 1 << 53).unwrap();
        let mut fractions = (0..1000).cycle().map(|part| f64::from(part) / 1000.0);
        for _ in 0..1000 {
            let rank = zipf.draw(|| fractions.next().unwrap());
            assert!((1..=1 << 53).contains(&rank));
        }
    }

    #[test]
    fn what_is_no_exponent_is_refused() {
        for exponent in [0.0, -1.0, 11.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Zipf::new(exponent, 10), None);
        }
    }
}
