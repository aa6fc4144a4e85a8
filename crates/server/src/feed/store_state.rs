//! How a zone follows its store, for metrics and the admin interface.

use serde_json::{Value, json};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// How a zone follows its store: written by the thread of the store, read by any thread.
#[derive(Debug, Default)]
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
    /// Whether all records of the zone are to be read again, as an administrator asks for that.
    pub is_load_requested: AtomicBool,
}

impl StoreState {
    /// The state as JSON; `time` writes moments.
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
