//! How zones follow stores, for metrics and the admin interface.
//!
//! Deliberately absent: stores, and what has zones follow them.

use serde_json::{Value, json};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// How a zone follows its store: written by who has it follow, read by anybody.
#[derive(Debug, Default)]
pub struct Following {
    /// Whether the store can be reached.
    pub is_reachable: AtomicBool,
    /// When the zone last had what the store has, seconds since 1970; 0 before it first had.
    pub in_step_at: AtomicU64,
    /// Owners whose changes were taken over.
    pub changes: AtomicU64,
    /// How often all of the store was read.
    pub loads: AtomicU64,
    /// Records of the store that are left out of the zone.
    pub left_out: AtomicU64,
}

impl Following {
    /// The same for people and their programs; `time` writes moments.
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
