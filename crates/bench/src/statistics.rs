//! Medians and spreads. [`crate::paired`] decides whether two figures differ.

/// Returns the middle value; of an even number of values, the mean of the two in the middle. None
/// without values, or when one of them is no number.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    Spread::of(values).map(|spread| spread.median)
}

/// The spread of one figure over several rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Median; see [`median`].
    pub median: f64,
    /// The smallest value, or less when a value is known less well than it differs from the rest.
    pub low: f64,
    /// The largest value, or more.
    pub high: f64,
    /// Number of values; at least 1.
    pub count: usize,
}

impl Spread {
    /// Makes the spread of values; none without values, or when one of them is no number.
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

    /// Widens the spread by so much on both sides, but not below zero.
    pub fn widened(self, by: f64) -> Self {
        Self { low: (self.low - by).max(self.low.min(0.0)), high: self.high + by, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the spread of values that are numbers.
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
    fn a_spread_is_widened_to_zero_at_most() {
        assert_eq!(spread(&[0.5, 0.5]).widened(1.0).low, 0.0);
        assert_eq!(spread(&[20.0, 21.0]).widened(1.0).high, 22.0);
    }
}
