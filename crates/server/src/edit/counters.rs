//! What is counted of edits, of the journal and of flushes.

use super::EditError;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zonda_wire::Name;

/// Counters of edits; dry runs are in none of them.
#[derive(Debug, Default)]
pub struct EditCounters {
    /// Edits that were acknowledged, those that changed nothing among them.
    pub accepted: AtomicU64,
    /// Edits that were refused for what they were, or for the state of their zone.
    pub refused: AtomicU64,
    /// Edits that could not be kept, and were not made.
    pub failed: AtomicU64,
    /// Groups of edits and notes that were written to the journal.
    pub commits: AtomicU64,
    /// Groups that the journal's disk did not take.
    pub failed_commits: AtomicU64,
    /// Nanoseconds that writing groups has taken until they were on the disk.
    pub commit_nanos: AtomicU64,
    /// Times that the changes of a zone were written to its file.
    pub flushes: AtomicU64,
    /// Number of times that a zone's file could not be written.
    pub failed_flushes: AtomicU64,
    /// Seconds since 1970 of the last time that changes were written to a file; 0 before that.
    pub flushed_at: AtomicU64,
    /// How many changes the files of zones lack, by the zones' names in lower case; none of those
    /// whose files lack none. Locked for the time of a look-up by the publisher, and of a copy.
    unflushed: Mutex<HashMap<Name, usize>>,
}

impl EditCounters {
    /// Counts an edit that was no dry run.
    pub fn note_edit<T>(&self, result: &Result<T, EditError>) {
        let counter = match result {
            Ok(_) => &self.accepted,
            Err(EditError::Journal(_) | EditError::PublisherFailed) => &self.failed,
            Err(_) => &self.refused,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Counts a group that was to be written to the journal.
    pub fn note_commit(&self, is_written: bool, time: Duration) {
        let counter = if is_written { &self.commits } else { &self.failed_commits };
        counter.fetch_add(1, Relaxed);
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.commit_nanos.fetch_add(nanos, Relaxed);
    }

    /// Counts that changes were to be written to a file.
    pub fn note_flush(&self, is_written: bool) {
        if !is_written {
            self.failed_flushes.fetch_add(1, Relaxed);
            return;
        }
        self.flushes.fetch_add(1, Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.flushed_at.store(now.as_secs(), Relaxed);
    }

    /// Notes how many changes the file of a zone lacks.
    pub fn set_unflushed(&self, zone: &Name, count: usize) {
        let mut unflushed = self.unflushed();
        match (count, unflushed.get_mut(zone)) {
            (0, None) => {}
            (0, Some(_)) => _ = unflushed.remove(zone),
            (_, Some(known)) => *known = count,
            (_, None) => _ = unflushed.insert(zone.clone(), count),
        }
    }

    /// Returns how many changes the files of zones lack, for zones whose files lack any.
    pub fn unflushed_changes(&self) -> HashMap<Name, usize> {
        self.unflushed().clone()
    }

    /// Returns how many zones have files that lack changes.
    pub fn unflushed_zones(&self) -> usize {
        self.unflushed().len()
    }

    /// Locks the numbers of changes that files lack.
    fn unflushed(&self) -> MutexGuard<'_, HashMap<Name, usize>> {
        self.unflushed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
