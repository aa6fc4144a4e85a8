//! Whether a row of values rises or falls, said so that single values count for little.
//!
//! The slope is the median of the slopes between all pairs of points (Theil and Sen); whether it is
//! more than noise is asked of the signs of all pairs (Mann and Kendall).

use crate::statistics::median;

/// Points below which nothing is said.
pub const POINTS_MIN: usize = 8;

/// Points that are looked at; more are gathered to medians of neighbours first, which also makes
/// what lasts for a few samples count once.
const POINTS_MAX: usize = 60;

/// Standard deviations of the signs' sum that noise exceeds once in a hundred times.
const BEYOND_NOISE: f64 = 2.576;

/// What a row of values does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// The median value.
    pub median: f64,
    /// The slope: by how much the value grows while time grows by 1.
    pub slope: f64,
    /// Whether noise would seldom look like this.
    pub is_beyond_noise: bool,
}

/// Returns the trend of points, time and value, ascending by time, no two at one time; nothing if
/// they are too few.
#[must_use]
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    if points.len() < POINTS_MIN {
        return None;
    }
    let width = points.len().div_ceil(POINTS_MAX);
    let points: Vec<(f64, f64)> = points.chunks(width).map(middle).collect::<Option<_>>()?;
    let pairs = || {
        let later = |(index, first)| points[index + 1..].iter().map(move |next| (first, next));
        points.iter().enumerate().flat_map(later)
    };
    let slopes = pairs().map(|(first, next)| (next.1 - first.1) / (next.0 - first.0));
    let signs: f64 = pairs().map(|(first, next)| sign(next.1 - first.1)).sum();
    let mut values: Vec<f64> = points.iter().map(|point| point.1).collect();
    values.sort_by(f64::total_cmp);
    Some(Trend {
        median: median(values.iter().copied())?,
        slope: median(slopes)?,
        is_beyond_noise: is_beyond_noise(signs, &values),
    })
}

/// Whether this sum of signs is more than noise makes of such values, which are sorted. Equal
/// values leave less room for chance.
fn is_beyond_noise(signs: f64, sorted: &[f64]) -> bool {
    let spread = |count: usize| (count * (count - 1) * (2 * count + 5)) as f64;
    let equal = sorted.chunk_by(|one, next| one == next);
    let variance =
        (spread(sorted.len()) - equal.map(|ties| spread(ties.len())).sum::<f64>()) / 18.0;
    signs.abs() - 1.0 > BEYOND_NOISE * variance.sqrt()
}

/// Returns the median time and the median value of neighbours.
fn middle(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    Some((median(points.iter().map(|point| point.0))?, median(points.iter().map(|point| point.1))?))
}

/// −1, 0 or 1.
fn sign(value: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value.signum() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Points at times 0, 1, 2 …
    fn points(values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
        values.into_iter().enumerate().map(|(time, value)| (time as f64, value)).collect()
    }

    /// Numbers from 0 to 1 without order.
    fn noise(count: u64) -> impl Iterator<Item = f64> {
        (1..=count).map(|number| (number as f64 * 0.618_033_988_75).fract())
    }

    #[test]
    fn a_slope_is_found_below_noise_and_outliers() {
        let mut values: Vec<f64> =
            noise(500).zip(0..).map(|(noise, time)| f64::from(time) + 50.0 * noise).collect();
        (values[100], values[499]) = (1e9, -1e9);
        let found = trend(&points(values)).unwrap();
        assert!((found.slope - 1.0).abs() < 0.05 && found.is_beyond_noise, "{found:?}");
    }

    #[test]
    fn noise_and_rest_have_no_trend() {
        for count in [8, 20, 500, 5000] {
            assert!(!trend(&points(noise(count))).unwrap().is_beyond_noise, "{count}");
        }
        let still = Trend { median: 7.0, slope: 0.0, is_beyond_noise: false };
        assert_eq!(trend(&points([7.0; 30])), Some(still));
    }

    #[test]
    fn what_grows_once_and_stays_has_no_trend() {
        let values = [1.0].into_iter().chain([9.0; 20]);
        let found = trend(&points(values)).unwrap();
        assert_eq!((found.slope, found.is_beyond_noise), (0.0, false));
    }

    #[test]
    fn few_points_say_nothing_and_the_fewest_something() {
        assert_eq!(trend(&points((0..7).map(f64::from))), None);
        let found = trend(&points((0..8).map(|time| -2.0 * f64::from(time)))).unwrap();
        assert_eq!((found.slope, found.median, found.is_beyond_noise), (-2.0, -7.0, true));
    }
}
