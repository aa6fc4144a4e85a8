//! What is counted of connections to the admin interface, and of requests that wait.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use zonda_transport::tcp::admission::AdmissionCounters;

/// Connections that were closed, by the bound that they met, and requests that wait.
#[derive(Default)]
pub struct Counters {
    /// More connections than one client, or all, may have.
    pub admission: AdmissionCounters,
    /// Connections of clients that took nothing for too long.
    pub write_timeouts: AtomicU64,
    /// Connections that had lasted as long as one may.
    pub expired: AtomicU64,
    /// Requests that wait for secondaries.
    pub waits: AtomicUsize,
    /// Requests that were refused because too many waited.
    pub waits_refused: AtomicU64,
    /// Whether the server has begun to stop, which ends all waits.
    pub is_stopping: AtomicBool,
}

impl Counters {
    /// Ends all waits, as the server stops.
    pub fn end_waits(&self) {
        self.is_stopping.store(true, Relaxed);
    }
}
