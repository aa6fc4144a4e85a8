//! Sums of what each engine counts for itself.

use std::sync::Arc;
use zonda_engine::counters::{Counter, Counters};

/// The sum of a counter over all engines.
pub fn sum<'c>(engines: &'c [Arc<Counters>], one: impl Fn(&'c Counters) -> &'c Counter) -> u64 {
    engines.iter().map(|counters| one(counters).get()).sum()
}
