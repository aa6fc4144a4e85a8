//! A random member by weight, in constant time.

use crate::dice::{Dice, share};

/// Columns of the same size, each of which one or two members share (Walker 1977, Vose 1991).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AliasTable(Box<[Column]>);

/// A column: a number below the threshold is the column's own member's, any other the alias's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Column {
    /// The share of the column's own member, in units of 2⁻³² of the column.
    threshold: u32,
    /// The member that has the rest.
    alias: u32,
}

impl AliasTable {
    /// A table that chooses `i` with the probability `weights[i]` ÷ their sum; none if that is 0.
    pub fn new(weights: &[u64]) -> Option<Self> {
        let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
        if sum == 0 {
            return None;
        }
        let count = weights.len() as u128;
        // A column holds `sum`; a member with the mean weight fills one.
        let mut left: Vec<u128> =
            weights.iter().map(|&weight| u128::from(weight) * count).collect();
        let whole = |alias| Column { threshold: u32::MAX, alias };
        let mut columns: Vec<Column> = (0..weights.len() as u32).map(whole).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|&i| left[i] < sum);
        while let (Some(&column), Some(&donor)) = (small.last(), large.last()) {
            small.pop();
            let threshold = ((left[column] << 32) / sum) as u32; // below `sum`
            columns[column] = Column { threshold, alias: donor as u32 };
            left[donor] -= sum - left[column];
            if left[donor] < sum {
                large.pop();
                small.push(donor);
            }
        }
        Some(Self(columns.into()))
    }

    /// Reads the first column.
    #[inline]
    pub fn touch(&self) -> u64 {
        self.0.first().map_or(0, |column| u64::from(column.threshold))
    }

    /// A random member.
    #[inline]
    pub fn choose(&self, dice: &mut Dice) -> u32 {
        let number = dice.roll();
        let column = share(number >> 32, self.0.len());
        let Column { threshold, alias } = self.0[column];
        if (number as u32) < threshold { column as u32 } else { alias }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The counts of `rounds` choices, and the chi-square of their distance from the weights.
    fn choices(weights: &[u64], rounds: u32) -> (Vec<u32>, f64) {
        let table = AliasTable::new(weights).unwrap();
        let mut dice = Dice::new(3);
        let mut counts = vec![0_u32; weights.len()];
        for _ in 0..rounds {
            counts[table.choose(&mut dice) as usize] += 1;
        }
        let sum: u64 = weights.iter().sum();
        let expected = |weight: u64| f64::from(rounds) * weight as f64 / sum as f64;
        let of_weight = counts.iter().zip(weights).filter(|(_, weight)| **weight > 0);
        let chi =
            of_weight.map(|(&n, &w)| (f64::from(n) - expected(w)).powi(2) / expected(w)).sum();
        (counts, chi)
    }

    #[test]
    fn members_are_chosen_in_proportion_to_their_weights() {
        // Degrees of freedom 1, 3 and 7: these bounds are exceeded once in 1,000 times.
        for (weights, bound) in [
            (&[1_u64, 9][..], 10.8),
            (&[100, 200, 300, 400], 16.3),
            (&[1, 1, 2, 3, 5, 8, 13, 21], 24.3),
        ] {
            let (counts, chi) = choices(weights, 200_000);
            assert!(chi < bound, "{weights:?} {counts:?} chi-square {chi}");
        }
    }

    #[test]
    fn a_member_without_weight_is_never_chosen() {
        let (counts, _) = choices(&[0, 5, 0, 5, 0], 100_000);
        assert_eq!((counts[0], counts[2], counts[4]), (0, 0, 0));
    }

    #[test]
    fn weights_of_any_size_make_a_table() {
        assert!(AliasTable::new(&[u64::MAX; 3]).is_some());
        assert_eq!(choices(&[7], 10).0, [10]);
        assert!(AliasTable::new(&[0, 0]).is_none() && AliasTable::new(&[]).is_none());
    }
}
