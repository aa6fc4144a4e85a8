//! Which query is next and when it is due, for all threads.
//!
//! Queries of a run are numbered from 0; threads take ranges of numbers. With a rate, number *n* is
//! due *n* divided by the rate after the beginning, whatever happened before: a server that stalls
//! is asked for all that it missed.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The queries that a run has yet to send.
pub struct Supply {
    /// The number to hand out next.
    next: AtomicU64,
    /// The first number that is not to be sent.
    end: u64,
    /// Queries per second, if they are limited.
    rate: Option<f64>,
}

impl Supply {
    /// Numbers from 0 to `end`.
    pub fn new(end: u64, rate: Option<f64>) -> Self {
        Self { next: AtomicU64::new(0), end, rate }
    }

    /// Takes up to `count` numbers that are due; none when there are none.
    pub fn take(&self, count: u64, now_nanos: u64) -> Range<u64> {
        let due = self.due_count(now_nanos);
        let mut start = self.next.load(Ordering::Relaxed);
        loop {
            let end = due.min(start + count);
            if end <= start {
                return start..start;
            }
            let next = &self.next;
            match next.compare_exchange_weak(start, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return start..end,
                Err(other) => start = other,
            }
        }
    }

    /// Returns how many numbers are due.
    fn due_count(&self, now_nanos: u64) -> u64 {
        match self.rate {
            Some(rate) => self.end.min((now_nanos as f64 * rate / 1e9) as u64 + 1),
            None => self.end,
        }
    }

    /// Returns how many numbers were due before a moment and not taken until now.
    pub fn left_before(&self, nanos: u64) -> u64 {
        let due = nanos.checked_sub(1).map_or(0, |last| self.due_count(last));
        due.saturating_sub(self.next.load(Ordering::Relaxed))
    }

    /// Returns when a number is due; nanoseconds since the run began.
    pub fn due_nanos(&self, number: u64) -> u64 {
        self.rate.map_or(0, |rate| (number as f64 / rate * 1e9).ceil() as u64)
    }

    /// Returns when the next number is due; nothing when all were taken.
    pub fn next_due_nanos(&self) -> Option<u64> {
        let next = self.next.load(Ordering::Relaxed);
        (next < self.end).then(|| self.due_nanos(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_handed_out_once_and_end() {
        let supply = Supply::new(5, None);
        assert_eq!(supply.take(3, 0), 0..3);
        assert_eq!(supply.next_due_nanos(), Some(0));
        assert_eq!(supply.take(3, 0), 3..5);
        assert!(supply.take(3, 0).is_empty());
        assert_eq!(supply.next_due_nanos(), None);
    }

    #[test]
    fn with_a_rate_numbers_become_due_on_a_schedule() {
        let supply = Supply::new(u64::MAX, Some(1000.0));
        assert_eq!(supply.take(10, 0), 0..1);
        assert!(supply.take(10, 999_999).is_empty());
        assert_eq!(supply.next_due_nanos(), Some(1_000_000));
        assert_eq!(supply.take(10, 1_000_000), 1..2);
        assert_eq!(supply.take(10, 5_500_000), 2..6);
        assert_eq!(
            [0, 5_500_000, 6_000_000, 6_000_001].map(|at| supply.left_before(at)),
            [0, 0, 0, 1]
        );
        assert_eq!(supply.left_before(1_000_000_000), 994);
    }
}
