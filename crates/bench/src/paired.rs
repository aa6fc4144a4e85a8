//! Whether two figures differ, judged over rounds.
//!
//! Servers are measured in turns, so the rounds of one number saw the same machine. What is judged
//! is therefore the ratio of two servers in each round, not their medians: a machine that is slow
//! for a while slows both. Of the logarithms of these ratios, Student's *t* gives the interval that
//! holds the true ratio 95 times in 100. Three claims can be made of it:
//!
//! | the interval | claim |
//! |---|---|
//! | excludes 1 | the figures differ ([`Relation::Differs`]) |
//! | includes 1, and lies within a margin around it | they are level ([`Relation::Level`]) |
//! | includes 1, and is wider | nothing: undecided ([`Relation::Undecided`]) |
//!
//! Noise widens the interval, so that it can only take a claim away. Two rounds give an interval
//! that is 9 times as wide as their noise, and three one of 2.5 times: they show large differences,
//! and seldom that anything is level. One round shows neither.
//!
//! Deliberately absent: a correction for many comparisons. One of twenty claims may be chance.

use crate::statistics::Spread;

/// Quantiles of Student's *t* for two-sided intervals of 95 %, by degrees of freedom from 1.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// Differences below half a percent are none, however steady the rounds: they print as 0 %.
const SHARE_MIN: f64 = 0.005;
/// Fewer rounds than this do not show that two figures are level: two may agree by chance.
const LEVEL_ROUNDS_MIN: usize = 3;

/// A figure in each round.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Number of the round and value, at least one, all values finite.
    rounds: Vec<(usize, f64)>,
    /// How far each value may be from the truth, whatever the other rounds say.
    grain: f64,
}

/// How figures are held against each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Compares by the ratio, as for all figures that are never 0.
    Ratio {
        /// The share of the base within which figures are level; above 0.
        level: f64,
        /// The smallest difference that counts, in the figure's unit.
        resolution: f64,
    },
    /// Compares by the difference, as for shares of lost queries, which may be 0.
    Difference {
        /// The difference within which figures are level, and below which none counts.
        level: f64,
    },
}

/// The interval that holds the true change 95 times in 100; of ratios, changes are shares of the
/// base, so that -0.1 is 10 % less, and of differences, they are in the figure's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The change over all rounds.
    pub change: f64,
    /// The upper end.
    pub high: f64,
}

/// How a figure stands to another, its base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relation {
    /// The figures differ: no change is outside of the interval.
    Differs(Interval),
    /// The figures are level: the interval holds no change, and lies within the margin.
    Level(Interval),
    /// Undecided in this run: the interval is wider than the margin. None without two rounds that
    /// belong together.
    Undecided(Option<Interval>),
    /// The figures were measured once, so that the noise is unknown; the change.
    Once(f64),
}

impl Series {
    /// Makes a series of numbered values; none without values, or when one of them is no number.
    pub fn of(rounds: impl IntoIterator<Item = (usize, f64)>) -> Option<Self> {
        let rounds: Vec<(usize, f64)> = rounds.into_iter().collect();
        let is_sound = !rounds.is_empty() && rounds.iter().all(|(_, value)| value.is_finite());
        is_sound.then_some(Self { rounds, grain: 0.0 })
    }

    /// Returns the values as known to a grain only.
    pub fn grained(self, grain: f64) -> Self {
        Self { grain, ..self }
    }

    /// Returns the values alone.
    fn values(&self) -> impl Iterator<Item = f64> {
        self.rounds.iter().map(|(_, value)| *value)
    }

    /// Median and extremes, widened by the grain.
    pub fn spread(&self) -> Spread {
        let spread = Spread::of(self.values()).expect("a series has values, all finite");
        spread.widened(self.grain)
    }

    /// Returns the value of a round.
    fn round(&self, number: usize) -> Option<f64> {
        self.rounds.iter().find(|(other, _)| *other == number).map(|(_, value)| *value)
    }

    /// Returns each value as a multiple of the other's in the same round; none without common
    /// rounds.
    pub fn over(&self, base: &Self) -> Option<Self> {
        let ratio = |(number, value): &(usize, f64)| Some((*number, value / base.round(*number)?));
        let grain = self.grain / base.spread().median;
        Some(Self::of(self.rounds.iter().filter_map(ratio))?.grained(grain))
    }

    /// Returns how this figure stands to another one of the same run, round by round.
    pub fn against(&self, base: &Self, scale: Scale) -> Relation {
        if self.rounds.len() < 2 || base.rounds.len() < 2 {
            return self.once(base, scale);
        }
        let pairs = self
            .rounds
            .iter()
            .filter_map(|(number, value)| scale.change(*value, base.round(*number)?));
        let changes: Vec<f64> = pairs.collect();
        let interval = || {
            let (mean, variance) = mean_and_variance(&changes)?;
            let error = (variance / changes.len() as f64).sqrt();
            Some((mean, error * t_95(changes.len() as f64 - 1.0)))
        };
        self.judge(base, scale, interval(), changes.len())
    }

    /// Returns how this figure stands to the same one of another run, whose rounds saw another
    /// moment.
    pub fn against_earlier(&self, earlier: &Self, scale: Scale) -> Relation {
        if self.rounds.len() < 2 || earlier.rounds.len() < 2 {
            return self.once(earlier, scale);
        }
        let parts = [self, earlier].map(|series| {
            let levels: Option<Vec<f64>> = series.values().map(|it| scale.level_of(it)).collect();
            let levels = levels?;
            let (mean, variance) = mean_and_variance(&levels)?;
            Some((mean, variance / levels.len() as f64, levels.len() as f64 - 1.0))
        });
        let interval = match parts {
            [Some((now, a, a_free)), Some((before, b, b_free))] => {
                // Welch: as many degrees of freedom as the two variances are worth.
                let free = match a + b > 0.0 {
                    true => (a + b).powi(2) / (a * a / a_free + b * b / b_free),
                    false => a_free + b_free,
                };
                Some((now - before, (a + b).sqrt() * t_95(free)))
            }
            _ => None,
        };
        self.judge(earlier, scale, interval, self.rounds.len().min(earlier.rounds.len()))
    }

    /// Returns the relation by one round.
    fn once(&self, base: &Self, scale: Scale) -> Relation {
        let (value, base) = (self.spread().median, base.spread().median);
        match scale.change(value, base) {
            Some(change) if scale.counts(value, base) => Relation::Once(scale.share_of(change)),
            _ => Relation::Undecided(None),
        }
    }

    /// Returns the claim that a mean change, with what it may be off to both sides, supports.
    fn judge(
        &self,
        base: &Self,
        scale: Scale,
        interval: Option<(f64, f64)>,
        rounds: usize,
    ) -> Relation {
        let Some((mean, half)) = interval else { return Relation::Undecided(None) };
        let (value, other) = (self.spread().median, base.spread().median);
        let half = half + scale.grain_of(self.grain, value) + scale.grain_of(base.grain, other);
        let [low, change, high] = [mean - half, mean, mean + half].map(|it| scale.share_of(it));
        let interval = Interval { low, change, high };
        let excludes_none = low > 0.0 || high < 0.0;
        let margin = scale.margin(other);
        if excludes_none && scale.counts(value, other) {
            Relation::Differs(interval)
        } else if rounds >= scale.level_rounds_min() && low >= -margin && high <= margin {
            Relation::Level(interval)
        } else {
            Relation::Undecided(Some(interval))
        }
    }
}

impl Scale {
    /// Returns what is averaged over rounds of one value; none if it has no place on the scale.
    fn level_of(self, value: f64) -> Option<f64> {
        match self {
            Self::Ratio { .. } => (value > 0.0).then(|| value.ln()),
            Self::Difference { .. } => Some(value),
        }
    }

    /// Returns what is averaged over rounds of two values that belong together.
    fn change(self, value: f64, base: f64) -> Option<f64> {
        Some(self.level_of(value)? - self.level_of(base)?)
    }

    /// Returns an averaged change as [`Interval`] has it.
    fn share_of(self, change: f64) -> f64 {
        match self {
            Self::Ratio { .. } => change.exp_m1(),
            Self::Difference { .. } => change,
        }
    }

    /// Returns what a grain of a value is on the scale.
    fn grain_of(self, grain: f64, value: f64) -> f64 {
        match self {
            Self::Ratio { .. } => (grain / value).ln_1p(),
            Self::Difference { .. } => grain,
        }
    }

    /// Whether a difference of these medians is large enough to be one.
    fn counts(self, value: f64, base: f64) -> bool {
        let distance = (value - base).abs();
        match self {
            Self::Ratio { resolution, .. } => {
                distance >= resolution && (distance / base).abs() >= SHARE_MIN
            }
            Self::Difference { level } => distance >= level,
        }
    }

    /// Returns the change to either side within which figures are level.
    fn margin(self, base: f64) -> f64 {
        match self {
            Self::Ratio { level, resolution } => level.max(resolution / base),
            Self::Difference { level } => level,
        }
    }

    /// Fewer rounds do not show that figures are level. A share of lost queries is already an
    /// average over thousands of them.
    fn level_rounds_min(self) -> usize {
        match self {
            Self::Ratio { .. } => LEVEL_ROUNDS_MIN,
            Self::Difference { .. } => 2,
        }
    }
}

/// Mean and variance of a sample; none of fewer than two values.
fn mean_and_variance(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, squares / (count - 1.0)))
}

/// Returns the quantile for so many degrees of freedom, which need not be whole: the wider of two.
fn t_95(free: f64) -> f64 {
    let index = (free.max(1.0) as usize - 1).min(T_95.len() - 1);
    T_95[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: Scale = Scale::Ratio { level: 0.05, resolution: 0.0 };
    const LOSS: Scale = Scale::Difference { level: 0.001 };

    /// Values of rounds 0, 1, ….
    fn series(values: &[f64]) -> Series {
        Series::of(values.iter().copied().enumerate()).expect("the values are numbers")
    }

    /// Relation of values to base values, as costs.
    fn costs(values: &[f64], base: &[f64]) -> Relation {
        series(values).against(&series(base), COST)
    }

    #[test]
    fn one_bad_round_takes_a_claim_away_and_never_makes_figures_level() {
        let found = series(&[8.0, 8.1, 3.95]).against_earlier(&series(&[4.0, 4.01, 3.99]), COST);
        let Relation::Undecided(Some(interval)) = found else { panic!("{found:?}") };
        assert!(interval.high > 1.0 && interval.change > 0.5, "{interval:?}");
        assert!(matches!(costs(&[8.0, 8.1, 3.95], &[4.0, 4.01, 3.99]), Relation::Undecided(_)));
        assert!(matches!(costs(&[8.0, 8.1, 7.95], &[4.0, 4.01, 3.99]), Relation::Differs(_)));
    }

    #[test]
    fn what_slows_both_servers_of_a_round_does_not_hide_their_difference() {
        let (slow, fast) = ([4.4, 8.9, 6.65], [4.0, 8.0, 6.0]);
        let Relation::Differs(interval) = costs(&slow, &fast) else { panic!("not told apart") };
        assert!((0.10..0.12).contains(&interval.change), "{interval:?}");
        assert!(interval.low > 0.09 && interval.high < 0.13, "{interval:?}");
    }

    #[test]
    fn figures_are_level_only_where_the_interval_lies_within_the_margin() {
        let base = [4.0, 4.1, 3.9, 4.05, 4.0];
        assert!(matches!(costs(&[4.02, 4.08, 3.92, 4.04, 4.01], &base), Relation::Level(_)));
        assert!(matches!(costs(&[4.6, 3.7, 4.3, 3.6, 4.2], &base), Relation::Undecided(Some(_))));
        let always_slower = base.map(|value| value * 1.02);
        assert!(matches!(costs(&always_slower, &base), Relation::Differs(_)));
        let as_printed = base.map(|value| value * 1.004);
        assert!(matches!(costs(&as_printed, &base), Relation::Level(_)));
    }

    #[test]
    fn two_rounds_tell_apart_what_differs_by_far_and_show_nothing_to_be_level() {
        assert!(matches!(costs(&[6.0, 6.2], &[4.0, 4.1]), Relation::Differs(_)));
        assert!(matches!(costs(&[4.4, 4.8], &[4.0, 4.1]), Relation::Undecided(Some(_))));
        assert!(matches!(costs(&[4.0, 4.1], &[4.0, 4.1]), Relation::Undecided(Some(_))));
        assert!(matches!(costs(&[4.0], &[8.0, 8.0]), Relation::Once(_)));
        assert_eq!(costs(&[4.0], &[4.0]), Relation::Undecided(None));
    }

    #[test]
    fn rounds_without_a_partner_do_not_count() {
        let later = Series::of([(5, 4.0), (6, 4.0)]).expect("the values are numbers");
        assert_eq!(later.against(&series(&[1.0, 1.0]), COST), Relation::Undecided(None));
        assert_eq!(later.over(&series(&[1.0])), None);
        let both = Series::of([(0, 3.0), (9, 7.0)]).expect("the values are numbers");
        assert_eq!(both.over(&series(&[1.5])), Series::of([(0, 2.0)]));
    }

    #[test]
    fn values_of_a_grain_differ_only_by_more_than_the_grain() {
        let (slow, fast) = (series(&[22.0, 22.0, 22.0]), series(&[20.0, 20.0, 20.0]));
        assert!(matches!(slow.against(&fast, COST), Relation::Differs(_)));
        let (slow, fast) = (slow.grained(1.0), fast.grained(1.5));
        assert!(matches!(slow.against(&fast, COST), Relation::Undecided(_)));
    }

    #[test]
    fn shares_that_are_none_are_held_against_each_other_by_their_difference() {
        let (none, some) = (series(&[0.0, 0.0]), series(&[0.02, 0.021]));
        assert!(matches!(none.against(&none, LOSS), Relation::Level(_)));
        let Relation::Differs(interval) = some.against(&none, LOSS) else { panic!("alike") };
        assert!((0.0204..0.0206).contains(&interval.change), "{interval:?}");
        let few = series(&[0.0005, 0.0006]);
        assert!(!matches!(few.against(&none, LOSS), Relation::Differs(_)));
    }

    #[test]
    fn below_the_resolution_no_difference_counts() {
        let memory = Scale::Ratio { level: 0.05, resolution: 1.0 };
        let (more, less) = (series(&[2.8, 2.8, 2.8]), series(&[2.0, 2.0, 2.0]));
        assert!(matches!(more.against(&less, memory), Relation::Level(_)));
        let (more, less) = (series(&[12.8; 3]), series(&[11.0; 3]));
        assert!(matches!(more.against(&less, memory), Relation::Differs(_)));
    }
}
