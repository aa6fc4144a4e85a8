//! How a zone follows its store, for metrics and the admin interface.

#[cfg(feature = "whole")]
use serde_json::{Value, json};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How a zone follows its store: written by the thread of the store, read by any thread.
#[derive(Debug)]
pub struct StoreState {
    /// Whether the store can be reached.
    pub is_reachable: AtomicBool,
    /// When the zone last had what the store has, seconds since 1970; 0 before it first had.
    pub in_step_at: AtomicU64,
    /// Owners whose changes were taken over.
    pub changes: AtomicU64,
    /// How often all records of the zone were read.
    pub loads: AtomicU64,
    /// Records of the store that are left out of the zone.
    pub left_out: AtomicU64,
    /// How many times an administrator has asked for all records of the zone to be read again.
    pub loads_requested: AtomicU64,
    /// Of those requests, how many had come before the last load of the zone began.
    pub loads_answered: AtomicU64,
    /// Whether the zone was in step with its store too long ago to be served.
    pub has_expired: AtomicBool,
    /// The last moment at which the zone was in step with its store; before it first was, the
    /// moment since which it follows a store.
    agreed: Mutex<Instant>,
}

impl StoreState {
    /// The state of a zone that begins to follow a store, or another one than before.
    pub fn new(former: Option<&Self>) -> Self {
        let agreed = former.map_or_else(Instant::now, |former| *former.lock_agreed());
        Self {
            is_reachable: AtomicBool::default(),
            in_step_at: AtomicU64::default(),
            changes: AtomicU64::default(),
            loads: AtomicU64::default(),
            left_out: AtomicU64::default(),
            loads_requested: AtomicU64::default(),
            loads_answered: AtomicU64::default(),
            has_expired: AtomicBool::default(),
            agreed: Mutex::new(agreed),
        }
    }

    /// Notes that the zone is in step with its store now, at so many seconds since 1970.
    pub fn note_in_step(&self, now: u64) {
        self.in_step_at.store(now, Relaxed);
        *self.lock_agreed() = Instant::now();
    }

    /// For how long the zone has not been in step with its store.
    pub fn age(&self) -> Duration {
        self.lock_agreed().elapsed()
    }

    /// The moment under its lock, which is held for no longer than to read or write it.
    fn lock_agreed(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state as JSON; `time` writes moments.
    #[cfg(feature = "whole")]
    pub(crate) fn to_json(&self, time: impl FnOnce(u64) -> String) -> Value {
        let in_step_at = Some(self.in_step_at.load(Relaxed)).filter(|secs| *secs > 0);
        json!({
            "reachable": self.is_reachable.load(Relaxed),
            "in_step": in_step_at.map(time),
            "changes": self.changes.load(Relaxed),
            "loads": self.loads.load(Relaxed),
            "left_out": self.left_out.load(Relaxed),
        })
    }
}
