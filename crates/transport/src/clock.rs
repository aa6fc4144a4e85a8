//! The one place where transports read clocks.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use zonda_engine::Now;

/// A starting point from which monotonic time is counted. Make one per process and copy it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// When it was made.
    start: Instant,
}

impl Clock {
    /// Starts counting.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// Both clocks.
    pub fn now(&self) -> Now {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Truncation is meant: DNS compares such times in serial number arithmetic, rfc4034#3.1.5
        Now { monotonic_nanos: self.monotonic_nanos(), unix_secs: unix.as_secs() as u32 }
    }

    /// The monotonic clock alone.
    pub(crate) fn monotonic_nanos(&self) -> u64 {
        // 2⁶⁴ ns are 584 years.
        self.start.elapsed().as_nanos() as u64
    }
}
