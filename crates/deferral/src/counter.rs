//! A number that many may raise.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts events of all connections. What one thread alone counts is a
/// [`zonda_engine::counters::Counter`], which is cheaper.
#[derive(Debug, Default)]
pub struct SharedCounter(AtomicU64);

impl SharedCounter {
    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the counter to a value.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Raises the number.
    pub fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }
}
