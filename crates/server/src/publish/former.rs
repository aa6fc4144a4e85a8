//! Snapshots that were replaced and that a worker may read.

use super::reaper::Reaper;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zonda_engine::Snapshot;

/// How often it is looked whether workers still read a former snapshot, while there is one.
pub const LOOK: Duration = Duration::from_millis(10);
/// Former snapshots that are freed together, unless the oldest has waited for [`LOOK`]: each time,
/// the thread that frees them is woken. After an update of a large zone, one has some 20 KiB that
/// no other has.
const COUNT_MIN: usize = 16;
/// How long a worker may read one snapshot before the log says so.
const READ_MAX: Duration = Duration::from_secs(10);

/// The former snapshots, the oldest first.
#[derive(Default)]
pub struct FormerSnapshots(Vec<FormerSnapshot>);

/// A snapshot that was replaced.
struct FormerSnapshot {
    snapshot: Arc<Snapshot>,
    /// The number of zones whose numbers are free once this and all older ones are dropped.
    retiring: usize,
    replaced: Instant,
    /// Whether the log has said that it is read for long.
    is_told: bool,
}

impl FormerSnapshots {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a snapshot that is replaced now. Once it and all older ones are dropped, the numbers of
    /// so many zones are free.
    pub fn push(&mut self, snapshot: Arc<Snapshot>, retiring: usize) {
        let known: usize = self.0.iter().map(|it| it.retiring).sum();
        let (retiring, replaced, is_told) = (retiring - known, Instant::now(), false);
        self.0.push(FormerSnapshot { snapshot, retiring, replaced, is_told });
    }

    /// Has snapshots freed that no worker reads, so that no worker ever has to; returns the number
    /// of zones whose numbers are free by that. A worker holds a snapshot for the time of a batch.
    pub fn drop_unread(&mut self, reaper: &Reaper) -> usize {
        let Some(oldest) = self.0.first() else { return 0 };
        let now = Instant::now();
        if self.0.len() < COUNT_MIN && now - oldest.replaced < LOOK {
            return 0;
        }
        let (mut waiting, mut dropped) = (Vec::<FormerSnapshot>::new(), 0);
        let mut unread = Vec::new();
        for mut it in std::mem::take(&mut self.0) {
            if Arc::strong_count(&it.snapshot) > 1 {
                if now - it.replaced > READ_MAX && !it.is_told {
                    it.is_told = true;
                    tracing::error!(limit = ?READ_MAX, "a worker has been busy with one batch");
                }
                waiting.push(it);
            } else {
                unread.push(it.snapshot);
                // Older ones that are still read may have its zones: their numbers wait with them.
                match waiting.last_mut() {
                    Some(before) => before.retiring += it.retiring,
                    None => dropped += it.retiring,
                }
            }
        }
        self.0 = waiting;
        if !unread.is_empty() {
            reaper.free(unread);
        }
        dropped
    }
}
