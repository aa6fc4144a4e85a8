//! The one place where transports read clocks.

use std::time::{SystemTime, UNIX_EPOCH};

use zonda_engine::Now;
use zonda_netio::clock::boot_nanos;

/// A starting point from which monotonic time is counted. Make one per process and copy it.
///
/// Time goes on while the machine sleeps: what other servers said grows old meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The moment at which the clock was made, nanoseconds of the monotonic clock.
    start_nanos: u64,
}

impl Clock {
    /// Starts counting.
    pub fn start() -> Self {
        Self { start_nanos: boot_nanos() }
    }

    /// Both clocks.
    pub fn now(&self) -> Now {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Truncation is meant: DNS compares such times in serial number arithmetic, rfc4034#3.1.5
        Now::new(self.monotonic_nanos(), unix.as_secs() as u32)
    }

    /// The monotonic clock alone.
    pub fn monotonic_nanos(&self) -> u64 {
        boot_nanos().saturating_sub(self.start_nanos) // 2⁶⁴ ns are 584 years
    }
}
