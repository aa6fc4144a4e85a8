//! How long an upstream takes to answer.
//!
//! Kept are the smoothed round-trip time and its variance as TCP has them (rfc6298#2), which say
//! when a missing answer is overdue, and a histogram that forgets, which says how slow the slowest
//! twentieth of the answers is.
//!
//! Deliberately absent: lost queries, which have no time ([`health`](crate::health)).

use crate::{MILLISECOND_NANOS, SECOND_NANOS};

/// An answer is overdue after this at the latest, nanoseconds.
pub const OVERDUE_NANOS_MAX: u64 = SECOND_NANOS;
/// When an answer is overdue while nothing is known of an upstream, nanoseconds. rfc6298 would wait
/// for a second; here, a repeat after 200 ms still reaches a client within 300 ms.
const OVERDUE_NANOS_UNKNOWN: u64 = 200 * MILLISECOND_NANOS;
/// For how long a time that was measured is believed, nanoseconds: Unbound's 15 minutes.
const MEMORY_NANOS: u64 = 900 * SECOND_NANOS;
/// Answers that must have been seen before the slowest of them are known.
const SLOW_SAMPLES_MIN: u32 = 32;

/// The round-trip times of an upstream.
#[derive(Clone, Debug, Default)]
pub struct Rtt {
    /// Smoothed time, nanoseconds.
    smoothed: u64,
    /// Smoothed deviation from the mean, nanoseconds.
    variance: u64,
    /// When the last answer came; `None` before the first.
    sampled_at: Option<u64>,
    /// All times, the older ones with less weight.
    histogram: Histogram,
}

impl Rtt {
    /// Records an answer that came after `rtt` nanoseconds.
    pub fn sample(&mut self, now: u64, rtt: u64) {
        if self.smoothed(now).is_some() {
            self.variance = self.variance - self.variance / 4 + self.smoothed.abs_diff(rtt) / 4;
            self.smoothed = self.smoothed - self.smoothed / 8 + rtt / 8;
        } else {
            (self.smoothed, self.variance) = (rtt, rtt / 2);
            self.histogram.forget();
        }
        self.sampled_at = Some(now);
        self.histogram.add(rtt);
    }

    /// Returns the smoothed time, nanoseconds; `None` when nothing, or nothing recent, is known.
    #[must_use]
    pub fn smoothed(&self, now: u64) -> Option<u64> {
        let recent = |at: u64| now.saturating_sub(at) < MEMORY_NANOS;
        self.sampled_at.is_some_and(recent).then_some(self.smoothed)
    }

    /// Returns when the last answer came.
    #[must_use]
    pub fn sampled_at(&self) -> Option<u64> {
        self.sampled_at
    }

    /// Nanoseconds after which an answer is overdue: the smoothed time and four times the variance,
    /// from `least`, which is at most [`OVERDUE_NANOS_MAX`], to that.
    #[must_use]
    pub fn overdue_after(&self, now: u64, least: u64) -> u64 {
        let overdue = match self.smoothed(now) {
            Some(smoothed) => smoothed + 4 * self.variance,
            None => OVERDUE_NANOS_UNKNOWN,
        };
        overdue.max(least).min(OVERDUE_NANOS_MAX)
    }

    /// Returns how many answers took how long since the start: nanoseconds that a bucket stays
    /// below, and answers in it, in ascending order.
    pub fn seen(&self) -> impl Iterator<Item = (u64, u64)> {
        let seen = self.histogram.seen.iter().enumerate();
        seen.map(|(index, &count)| (lower_bound(index + 1), count))
    }

    /// Returns the sum of all times since the start, nanoseconds.
    #[must_use]
    pub fn seen_nanos(&self) -> u64 {
        self.histogram.seen_nanos
    }

    /// Nanoseconds within which 95 % of the answers come; `None` before enough of them came.
    #[must_use]
    pub fn p95(&self) -> Option<u64> {
        self.histogram.p95()
    }
}

/// Buckets of a histogram: four to each power of two, from 2¹⁶ ns (66 µs) to 2³² ns (4.3 s).
const BUCKETS: usize = 64;
/// Where the first bucket begins, as a power of two.
const FIRST_POWER: u32 = 16;
/// All buckets are halved when they hold so many samples: the last few hundred answers count.
const SAMPLES_MAX: u32 = 512;

/// Times by size, of which the older ones lose weight.
#[derive(Clone, Debug)]
struct Histogram {
    counts: [u16; BUCKETS],
    /// Sum of the counts.
    total: u32,
    /// All samples since the start, at their full weight.
    seen: [u64; BUCKETS],
    /// Sum of the times seen, nanoseconds.
    seen_nanos: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], total: 0, seen: [0; BUCKETS], seen_nanos: 0 }
    }
}

impl Histogram {
    /// Adds a time.
    fn add(&mut self, nanos: u64) {
        self.counts[bucket(nanos)] += 1;
        self.seen[bucket(nanos)] += 1;
        self.seen_nanos += nanos;
        self.total += 1;
        if self.total == SAMPLES_MAX {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().map(|&count| u32::from(count)).sum();
        }
    }

    /// Gives all samples so far no weight.
    fn forget(&mut self) {
        (self.counts, self.total) = ([0; BUCKETS], 0);
    }

    /// Returns the time that 95 % stay below, between the bounds of its bucket in proportion.
    fn p95(&self) -> Option<u64> {
        if self.total < SLOW_SAMPLES_MIN {
            return None;
        }
        let mut wanted = u64::from(self.total * 95 / 100);
        for (index, &count) in self.counts.iter().enumerate() {
            let count = u64::from(count);
            if wanted <= count && count > 0 {
                let (low, high) = (lower_bound(index), lower_bound(index + 1));
                return Some(low + (high - low) * wanted / count);
            }
            wanted -= count;
        }
        None
    }
}

/// Returns the bucket of a time.
fn bucket(nanos: u64) -> usize {
    let nanos = nanos.clamp(1 << FIRST_POWER, (1 << (FIRST_POWER + 16)) - 1);
    let power = nanos.ilog2();
    let quarter = (nanos >> (power - 2)) & 3;
    ((power - FIRST_POWER) * 4) as usize + quarter as usize
}

/// Returns where a bucket begins, nanoseconds.
fn lower_bound(index: usize) -> u64 {
    (4 + index as u64 % 4) << (FIRST_POWER as usize - 2 + index / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        for index in 0..BUCKETS {
            assert_eq!(bucket(lower_bound(index)), index);
            assert_eq!(bucket(lower_bound(index + 1) - 1), index);
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, BUCKETS - 1));
    }

    #[test]
    fn an_answer_is_overdue_after_the_smoothed_time_and_four_variances() {
        let mut rtt = Rtt::default();
        let least = 20 * MILLISECOND_NANOS;
        assert_eq!((rtt.overdue_after(0, least), rtt.p95()), (OVERDUE_NANOS_UNKNOWN, None));
        assert_eq!(rtt.overdue_after(0, SECOND_NANOS), SECOND_NANOS);
        rtt.sample(0, 100 * MILLISECOND_NANOS);
        assert_eq!(rtt.overdue_after(0, least), 300 * MILLISECOND_NANOS);
        assert_eq!(rtt.overdue_after(0, 400 * MILLISECOND_NANOS), 400 * MILLISECOND_NANOS);
        for _ in 0..100 {
            rtt.sample(1, 2 * MILLISECOND_NANOS);
        }
        assert_eq!(rtt.overdue_after(1, least), least);
    }

    #[test]
    fn the_95th_percentile_is_known_within_a_few_percent() {
        let mut rtt = Rtt::default();
        for step in 0..1000 {
            rtt.sample(0, 5 * MILLISECOND_NANOS + step * 37 % 1000 * 5000);
        }
        let p95 = rtt.p95().unwrap_or_default();
        assert!((9_300_000..10_200_000).contains(&p95), "{p95}");
    }

    #[test]
    fn what_was_measured_is_forgotten_after_silence() {
        let mut rtt = Rtt::default();
        rtt.sample(0, MILLISECOND_NANOS);
        assert_eq!(rtt.smoothed(MEMORY_NANOS - 1), Some(MILLISECOND_NANOS));
        assert_eq!(rtt.smoothed(MEMORY_NANOS), None);
        rtt.sample(MEMORY_NANOS, SECOND_NANOS);
        assert_eq!(rtt.smoothed(MEMORY_NANOS), Some(SECOND_NANOS));
        let seen: Vec<_> = rtt.seen().filter(|bucket| bucket.1 > 0).collect();
        assert_eq!(seen, [(1 << 20, 1), (1 << 30, 1)]);
    }
}
