//! The time of observations.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::{Instant, sleep_until};

/// A clock that is set by the system's once and never runs backwards, so that what it shows is
/// close to the time of day and can be subtracted all the same.
#[derive(Debug)]
pub struct Clock {
    started: Instant,
    /// Time at which the clock started, nanoseconds since 1970.
    started_at: u64,
}

impl Clock {
    /// Starts a clock.
    pub fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_at = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX / 2);
        Self { started: Instant::now(), started_at }
    }

    /// Returns the time in nanoseconds since 1970.
    pub fn now(&self) -> u64 {
        let elapsed = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.started_at.saturating_add(elapsed)
    }

    /// Waits until a time, rounded up to a multiple of `tick` since the start.
    pub async fn sleep_until(&self, at: u64, tick: Duration) {
        let tick = u64::try_from(tick.as_nanos()).unwrap_or(u64::MAX).max(1);
        let since = at.saturating_sub(self.started_at).div_ceil(tick).saturating_mul(tick);
        sleep_until(self.started + Duration::from_nanos(since)).await;
    }
}
