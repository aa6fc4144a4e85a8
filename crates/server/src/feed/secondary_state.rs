//! How zones follow their primaries, for all that read.

use crate::load::unix_secs;
use serde_json::{Value, json};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What all zones of primaries have done so far.
#[derive(Debug, Default)]
pub struct SecondaryCounters {
    /// Checks of a serial that a primary answered.
    pub checks: AtomicU64,
    /// Transfers of whole zones.
    pub whole: AtomicU64,
    /// Transfers of changes.
    pub changes: AtomicU64,
    /// Transfers that failed, from one primary each.
    pub failed_transfers: AtomicU64,
    /// Refreshes after which the zone was not known to be in step with any primary.
    pub failed_refreshes: AtomicU64,
    /// Octets of messages of transfers that were whole.
    pub octets: AtomicU64,
    /// Records in these messages.
    pub records: AtomicU64,
    /// NOTIFY messages that were taken, several for one zone before it is looked after as one.
    pub notices: AtomicU64,
    /// Zones that have expired.
    pub expired: AtomicU64,
    /// Zones now whose files are to be read.
    pub unread: AtomicU64,
    /// Zones now that primaries say have changed, and that wait for a thread.
    pub notified: AtomicU64,
    /// Zones now whose time has come, and that wait for a thread.
    pub waiting: AtomicU64,
    /// Zones now that threads look after.
    pub running: AtomicU64,
    /// Replies whose signature was wrong, or missing.
    pub signature_faults: AtomicU64,
    /// Whole zones that were asked for, as changes could not be taken.
    pub fallbacks: AtomicU64,
    /// Records that were left out, as they lie outside their zone.
    pub outside: AtomicU64,
}

/// How a zone follows its primaries.
#[derive(Clone, Debug, Default)]
pub struct SecondaryStatus {
    /// The serial of the version here; none before the first transfer, and after expiry.
    pub serial: Option<u32>,
    /// The serial of the best primary that answered last.
    pub primary_serial: Option<u32>,
    /// The primary that the version came from, or that it was in step with, last.
    pub primary: Option<String>,
    /// The last moment at which the zone was in step with a primary, seconds since 1970; 0: never.
    pub agreed_at: u64,
    /// The moment at which the zone is refreshed next, seconds since 1970.
    pub next_refresh: u64,
    /// The moment at which the zone expires, seconds since 1970; 0 where there is no zone.
    pub expires_at: u64,
    /// Whether the zone has expired.
    pub is_expired: bool,
    /// Why the file of the zone could not be written the last time, in words.
    pub disk_error: Option<String>,
    /// Why the last refresh failed, in words.
    pub error: Option<String>,
}

/// How a zone follows its primaries, shared by the threads that refresh it and all that read.
#[derive(Debug, Default)]
pub struct SecondaryState {
    status: Mutex<SecondaryStatus>,
    /// What is held from a change of the status until the publisher has what follows from it, so
    /// that updates of the zone arrive in the order of their changes.
    order: Mutex<()>,
}

impl SecondaryStatus {
    /// Whether the zone is served though it has not been in step with a primary for too long.
    pub fn is_overdue(&self) -> bool {
        self.serial.is_some() && !self.is_expired && self.expires_at <= unix_secs().into()
    }
}

impl SecondaryState {
    /// The status under its lock, which is held for no longer than to read or write it.
    pub fn lock(&self) -> MutexGuard<'_, SecondaryStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the publisher has the former update of the zone; held until it has the next.
    pub fn in_order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The status as JSON; `time` writes moments.
    pub(crate) fn to_json(&self, time: impl Fn(u64) -> String) -> Value {
        let status = self.lock().clone();
        let moment = |secs: u64| (secs > 0).then(|| time(secs));
        json!({
            "primary": status.primary,
            "primary_serial": status.primary_serial,
            "in_step": moment(status.agreed_at),
            "next_refresh": moment(status.next_refresh),
            "expires": moment(status.expires_at),
            "expired": status.is_expired,
            "error": status.error,
            "disk_error": status.disk_error,
        })
    }
}

/// How many zones are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecondaryCounts {
    /// Zones whose last refresh succeeded.
    pub current: u64,
    /// Zones that are served, and whose last refresh failed.
    pub failing: u64,
    /// Zones that were not transferred yet.
    pub awaited: u64,
    /// Zones that have expired.
    pub expired: u64,
    /// Zones of any state whose file could not be written the last time.
    pub unkept: u64,
}

impl SecondaryCounts {
    /// Counts zones by their states.
    pub fn of<'s>(states: impl Iterator<Item = &'s Arc<SecondaryState>>) -> Self {
        let mut counts = Self::default();
        for state in states {
            let status = state.lock();
            counts.unkept += u64::from(status.disk_error.is_some());
            match (status.is_expired, status.serial, &status.error) {
                (true, ..) => counts.expired += 1,
                (false, None, _) => counts.awaited += 1,
                (false, Some(_), Some(_)) => counts.failing += 1,
                (false, Some(_), None) => counts.current += 1,
            }
        }
        counts
    }
}

/// Adds to a counter.
pub fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Relaxed);
}
