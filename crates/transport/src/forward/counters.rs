//! What a forwarder thread counts.

use crate::counter::SharedCounter;

/// What one thread has done.
#[derive(Debug, Default)]
pub struct ForwarderCounters {
    /// Deferred queries taken.
    pub received: SharedCounter,
    /// Those that waited for a fetch that was under way already.
    pub coalesced: SharedCounter,
    /// Queries sent to upstreams.
    pub sent: SharedCounter,
    /// Of these, those that were sent because an earlier one was not answered.
    pub repeated: SharedCounter,
    /// Answers that were believed.
    pub answered: SharedCounter,
    /// Messages that were not: they belong to no query, or another question.
    pub ignored: SharedCounter,
    /// Questions that no upstream answered in time.
    pub timed_out: SharedCounter,
    /// Questions that no upstream would answer.
    pub failed: SharedCounter,
    /// Queries that were turned away because too many wait.
    pub refused: SharedCounter,
    /// Replies with answers that had expired.
    pub stale: SharedCounter,
}
