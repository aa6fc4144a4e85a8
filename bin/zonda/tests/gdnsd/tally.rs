//! Whether answers that are drawn at random come from the same distribution.

use std::collections::{BTreeMap, BTreeSet};

/// Answers of each server from which a distribution can be told, and each answer is met whose odds
/// are not below a tenth.
pub const ANSWERS_MIN: u64 = 100;

/// How many times each answer came from Zonda and from gdnsd.
#[derive(Default)]
pub struct Tally(BTreeMap<String, [u64; 2]>);

impl Tally {
    /// Counts one answer of each server.
    pub fn add(&mut self, ours: String, theirs: String) {
        self.0.entry(ours).or_default()[0] += 1;
        self.0.entry(theirs).or_default()[1] += 1;
    }

    /// How many answers each server has given.
    pub fn total(&self) -> u64 {
        self.0.values().map(|[ours, _]| ours).sum()
    }

    /// The answers that came from Zonda and those that came from gdnsd.
    pub fn answers(&self) -> [BTreeSet<&str>; 2] {
        [0, 1].map(|server| {
            let seen = self.0.iter().filter(|(_, counts)| counts[server] > 0);
            seen.map(|(answer, _)| &**answer).collect()
        })
    }

    /// The reason why the two servers' answers are not from one distribution; none if they may be,
    /// or if there are too few.
    pub fn fault(&self) -> Option<String> {
        if self.total() < ANSWERS_MIN {
            return None;
        }
        let [ours, theirs] = self.answers();
        if ours != theirs {
            return Some(format!("answers of Zonda {ours:?}, of gdnsd {theirs:?}"));
        }
        let freedom = self.0.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
        let total = self.total();
        // As many of each server, so that half of every row is expected of either.
        let square = |[ours, theirs]: &[u64; 2]| {
            let difference = *ours as f64 - *theirs as f64;
            difference * difference / (*ours + *theirs) as f64
        };
        let found: f64 = self.0.values().map(square).sum();
        let limit = chi_square_limit(freedom);
        (found > limit).then(|| {
            format!("chi-square {found:.1} > {limit:.1} of {total} answers each: {:?}", self.0)
        })
    }

    /// The reason why a server's answers, 0 is Zonda's, do not come in these shares; none if they
    /// may.
    pub fn fault_of(&self, server: usize, shares: &BTreeMap<String, f64>) -> Option<String> {
        let total: u64 = self.0.values().map(|counts| counts[server]).sum();
        let sum: f64 = shares.values().sum();
        let seen = self.answers()[server].clone();
        if seen != shares.keys().map(|answer| &**answer).collect() {
            return Some(format!("answers {seen:?} instead of {shares:?}"));
        }
        let square = |(answer, share): (&String, &f64)| {
            let expected = total as f64 * share / sum;
            let difference = self.0[answer][server] as f64 - expected;
            difference * difference / expected
        };
        let found: f64 = shares.iter().map(square).sum();
        let limit = chi_square_limit(shares.len().checked_sub(1).filter(|it| *it > 0)?);
        (found > limit).then(|| format!("chi-square {found:.1} > {limit:.1}: {:?}", self.0))
    }
}

/// The limit that a chi-square of so many degrees of freedom exceeds once in a million times, by
/// the approximation of Wilson and Hilferty (1931).
fn chi_square_limit(freedom: usize) -> f64 {
    /// The limit that a normal deviate exceeds that often.
    const DEVIATE: f64 = 4.753;
    let part = 2.0 / (9.0 * freedom as f64);
    freedom as f64 * (1.0 - part + DEVIATE * part.sqrt()).powi(3)
}

#[test]
fn a_tally_of_other_odds_is_found() {
    let mut tally = Tally::default();
    for number in 0..1000 {
        let answer = |share: u32| if number % 10 < share { "a" } else { "b" }.to_owned();
        tally.add(answer(5), answer(5));
    }
    assert_eq!(tally.fault(), None);
    let half = BTreeMap::from([("a".to_owned(), 1.0), ("b".to_owned(), 1.0)]);
    assert_eq!(tally.fault_of(0, &half), None);
    let third = BTreeMap::from([("a".to_owned(), 1.0), ("b".to_owned(), 2.0)]);
    assert!(tally.fault_of(1, &third).unwrap().contains("chi-square"));
    for _ in 0..1000 {
        tally.add("a".to_owned(), "b".to_owned());
    }
    assert!(tally.fault().unwrap().contains("chi-square"));
    tally.add("a".to_owned(), "c".to_owned());
    assert!(tally.fault().unwrap().contains("of gdnsd"));
}
