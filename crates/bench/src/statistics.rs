//! Medians, spreads, and whether two figures differ.
//!
//! Deliberately absent: tests of significance. Rounds are few and their noise is not normal, so a
//! difference counts when it is larger than what the same server differs from itself.

/// The middle value; of an even number of values, the mean of the two in the middle. None without
/// values, or when one of them is no number.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    Spread::of(values).map(|spread| spread.median)
}

/// What several rounds say about one figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// See [`median`].
    pub median: f64,
    /// The smallest value, or less when a value is known less well than it differs from others.
    pub low: f64,
    /// The largest value, or more.
    pub high: f64,
    /// How many values there were; at least 1.
    pub count: usize,
}

impl Spread {
    /// Of some values; none without values, or when one of them is no number.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let (count, middle) = (values.len(), values.len() / 2);
        let median = match count % 2 {
            0 => f64::midpoint(values[middle - 1], values[middle]),
            _ => values[middle],
        };
        Some(Self { median, low: values[0], high: values[count - 1], count })
    }

    /// The same with so much more on both sides, but not below zero.
    pub fn widened(self, by: f64) -> Self {
        Self { low: (self.low - by).max(self.low.min(0.0)), high: self.high + by, ..self }
    }

    /// From the smallest to the largest.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// How this figure stands to another, which is the base of the share.
    pub fn against(&self, base: &Self) -> Difference {
        let distance = self.median - base.median;
        let share = distance / base.median;
        let is_same = distance == 0.0 || share.abs() < SHARE_MIN;
        if is_same || distance.abs() <= self.width().max(base.width()) {
            Difference::None
        } else if self.count < 2 || base.count < 2 {
            Difference::Once(share)
        } else {
            Difference::Share(share)
        }
    }
}

/// Differences below half a percent are none, however steady the rounds: they print as 0 %.
const SHARE_MIN: f64 = 0.005;

/// How two figures stand to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Difference {
    /// Smaller than the spread of either.
    None,
    /// Larger than both spreads: the share of the base, -0.1 is 10 % less; of nothing, infinite.
    Share(f64),
    /// A share of which nobody knows the noise, because a figure was measured once.
    Once(f64),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The spread of values that are numbers.
    fn spread(values: &[f64]) -> Spread {
        Spread::of(values.iter().copied()).expect("the values are numbers")
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(spread(&[4.0, 1.0, 3.0, 2.0]).median, 2.5);
        assert_eq!(spread(&[9.0, 1.0, 3.0]).median, 3.0);
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([1.0, f64::NAN]), None);
    }

    #[test]
    fn what_is_known_to_a_grain_differs_by_no_less() {
        let steady = spread(&[20.0, 20.0]).widened(1.0);
        assert_eq!(spread(&[22.0, 22.0]).widened(1.0).against(&steady), Difference::None);
        assert_eq!(spread(&[0.5, 0.5]).widened(1.0).low, 0.0);
    }

    #[test]
    fn a_difference_within_the_spread_of_either_is_none() {
        let base = spread(&[1.0, 1.1, 1.2]);
        assert_eq!(spread(&[1.29, 1.29, 1.29]).against(&base), Difference::None);
        assert!(matches!(spread(&[1.4, 1.4]).against(&base), Difference::Share(_)));
    }

    #[test]
    fn a_figure_that_was_measured_once_cannot_be_told_from_noise() {
        assert_eq!(spread(&[2.0]).against(&spread(&[1.0, 1.0])), Difference::Once(1.0));
    }

    #[test]
    fn something_is_infinitely_more_than_nothing() {
        assert_eq!(spread(&[0.0]).against(&spread(&[0.0])), Difference::None);
        assert_eq!(
            spread(&[1.0, 1.0]).against(&spread(&[0.0, 0.0])),
            Difference::Share(f64::INFINITY)
        );
    }
}
