//! The memory that all transfers have together.
//!
//! # Invariants
//! - All shares but the oldest are within the budget together: one that would grow over it waits.
//! - The oldest share never waits, so that transfers which wait for each other come to an end; it
//!   is bounded by the limits of its zone.
//! - Shares that wait go on in the order in which they were made.

use crate::fault::Fault;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Octets by which shares grow, so that small zones do not wait in the middle.
const STEP: u64 = 1 << 20;
/// How often a share that waits looks whether its transfer is to end.
const STOP_INTERVAL: Duration = Duration::from_millis(200);

/// The memory that all transfers have together.
#[derive(Debug, Default)]
pub struct Budget {
    octets_max: AtomicU64,
    shares: Mutex<Shares>,
    /// Is told when a share has become smaller, or has ended.
    freed: Condvar,
    waits: AtomicU64,
}

/// What the shares have.
#[derive(Debug, Default)]
struct Shares {
    /// Octets of all shares.
    used: u64,
    /// The numbers of all shares; the oldest has the smallest.
    all: BTreeSet<u64>,
    /// The numbers of those that wait.
    waiting: BTreeSet<u64>,
    /// The number of the last share that was made.
    last: u64,
}

/// What one transfer has of a budget; given back when it is dropped.
#[derive(Debug)]
pub struct Share<'b> {
    budget: &'b Budget,
    number: u64,
    octets: u64,
}

impl Budget {
    /// A budget of so many octets.
    #[must_use]
    pub fn new(octets_max: u64) -> Self {
        let budget = Self::default();
        budget.set(octets_max);
        budget
    }

    /// Has the budget be of so many octets from now on; shares keep what they have.
    pub fn set(&self, octets_max: u64) {
        self.octets_max.store(octets_max, Relaxed);
        self.freed.notify_all();
    }

    /// Returns a share of nothing yet.
    pub fn share(&self) -> Share<'_> {
        let mut shares = self.shares();
        shares.last += 1;
        let number = shares.last;
        shares.all.insert(number);
        Share { budget: self, number, octets: 0 }
    }

    /// Returns how often a share has waited.
    pub fn waits(&self) -> u64 {
        self.waits.load(Relaxed)
    }

    /// Returns the octets of all shares.
    pub fn used(&self) -> u64 {
        self.shares().used
    }

    /// What the shares have.
    fn shares(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share<'_> {
    /// Has the share be of so many octets at least; waits until the budget has them. Returns how
    /// long that has taken.
    ///
    /// # Errors
    /// When the transfer is to end.
    pub fn raise(&mut self, octets: u64, is_stopped: &dyn Fn() -> bool) -> Result<Duration, Fault> {
        if octets <= self.octets {
            return Ok(Duration::ZERO);
        }
        let more = octets.next_multiple_of(STEP) - self.octets;
        let mut shares = self.budget.shares();
        let mut began = None;
        loop {
            let is_oldest = shares.all.first() == Some(&self.number);
            let is_first = shares.waiting.first().is_none_or(|first| *first >= self.number);
            let octets_max = self.budget.octets_max.load(Relaxed);
            if is_oldest || is_first && shares.used.saturating_add(more) <= octets_max {
                break;
            }
            if is_stopped() {
                shares.waiting.remove(&self.number);
                self.budget.freed.notify_all();
                return Err(Fault::Stopped);
            }
            if began.is_none() {
                began = Some(Instant::now());
                self.budget.waits.fetch_add(1, Relaxed);
                shares.waiting.insert(self.number);
            }
            let waited = self.budget.freed.wait_timeout(shares, STOP_INTERVAL);
            shares = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        shares.used += more;
        self.octets += more;
        if shares.waiting.remove(&self.number) {
            self.budget.freed.notify_all(); // the next one may go on as well
        }
        Ok(began.map_or(Duration::ZERO, |began| began.elapsed()))
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut shares = self.budget.shares();
        shares.used -= self.octets;
        shares.all.remove(&self.number);
        drop(shares);
        self.budget.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn shares_that_would_grow_over_the_budget_wait_in_order_until_there_is_room() {
        let budget = Budget::new(4 * STEP);
        let mut oldest = budget.share();
        oldest.raise(3 * STEP, &|| false).unwrap();
        let (sender, receiver) = channel();
        thread::scope(|scope| {
            for number in 0..3_u64 {
                let (budget, sender) = (&budget, sender.clone());
                scope.spawn(move || {
                    let mut share = budget.share();
                    let waited = share.raise(3 * STEP, &|| false).unwrap();
                    sender.send((number, budget.used())).unwrap();
                    assert!(waited > Duration::ZERO);
                });
                while budget.waits() <= number {
                    thread::yield_now();
                }
            }
            assert!(receiver.recv_timeout(Duration::from_millis(300)).is_err(), "all wait");
            drop(oldest);
            let done: Vec<(u64, u64)> = (0..3).map(|_| receiver.recv().unwrap()).collect();
            assert_eq!(done, [(0, 3 * STEP), (1, 3 * STEP), (2, 3 * STEP)], "one at a time");
        });
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn the_oldest_share_grows_over_the_budget_and_others_end_their_wait_when_they_are_told_to() {
        let budget = Budget::new(STEP);
        let (mut oldest, mut other) = (budget.share(), budget.share());
        other.raise(1, &|| false).unwrap();
        assert_eq!(oldest.raise(10 * STEP, &|| false).unwrap(), Duration::ZERO);
        assert_eq!(budget.used(), 11 * STEP);
        assert!(matches!(other.raise(STEP + 1, &|| true), Err(Fault::Stopped)));
        assert_eq!(other.raise(STEP, &|| true).unwrap(), Duration::ZERO, "it has as much");
        drop((oldest, other));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_greater_budget_lets_shares_go_on() {
        let budget = Budget::new(STEP);
        let mut oldest = budget.share();
        oldest.raise(1, &|| false).unwrap();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.share().raise(1, &|| false).unwrap());
            while budget.waits() == 0 {
                thread::yield_now();
            }
            budget.set(2 * STEP);
            waiting.join().unwrap();
        });
    }
}
