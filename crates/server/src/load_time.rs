//! The moment at which a version of a zone was loaded.

use std::num::NonZeroU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment as each of a million zones has one: in half the memory of a [`SystemTime`], also where
/// there is none. Nanoseconds since 1970, which last until 2554.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoadTime(NonZeroU64);

impl LoadTime {
    /// Returns this moment.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nanos = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Self(NonZeroU64::new(nanos).unwrap_or(NonZeroU64::MIN))
    }

    /// Returns the time since 1970.
    pub fn since_epoch(self) -> Duration {
        Duration::from_nanos(self.0.get())
    }

    /// Returns the moment as the system has it.
    pub fn time(self) -> SystemTime {
        UNIX_EPOCH + self.since_epoch()
    }
}
