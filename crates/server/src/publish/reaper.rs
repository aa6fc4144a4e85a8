//! The thread that frees snapshots and gives memory back to the system.
//!
//! To free the last version of a large zone takes milliseconds, and to give memory back tens of
//! them. The publisher, whose senders wait, does neither.

use crate::watchdog::Watchdog;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};
use zonda_engine::Snapshot;

/// The name of the thread.
const THREAD: &str = "reaper";
/// Messages that may wait; the publisher frees what has no room itself, so that a reaper that is
/// slow or down lets no memory pile up.
const QUEUE_MAX: usize = 8;
/// How often memory is given back to the system at most.
const GIVE_BACK_MIN: Duration = Duration::from_secs(1);

/// A message to the thread that gives memory back.
enum Freed {
    /// Snapshots to be freed, which nothing reads.
    Snapshots(Vec<Arc<Snapshot>>),
    /// Another thread has freed the memory.
    Elsewhere,
}

/// Tells the thread what to free; while it does not run, all is freed at once.
#[derive(Default)]
pub struct Reaper(Option<SyncSender<Freed>>);

/// Starts the thread, which ends when the sender is gone.
///
/// # Errors
/// When the system has no thread left.
pub fn start(watchdog: &Arc<Watchdog>) -> io::Result<Reaper> {
    let (sender, queue) = sync_channel(QUEUE_MAX);
    watchdog.spawn(THREAD, move || run(&queue))?;
    Ok(Reaper(Some(sender)))
}

impl Reaper {
    /// Has snapshots freed that nothing reads.
    pub fn free(&self, snapshots: Vec<Arc<Snapshot>>) {
        let sent = self.0.as_ref().map(|reaper| reaper.try_send(Freed::Snapshots(snapshots)));
        if let Some(Err(TrySendError::Full(freed) | TrySendError::Disconnected(freed))) = sent {
            drop(freed);
        }
    }

    /// Has memory given back that another thread has freed.
    pub fn note_freed(&self) {
        // A full queue leads to the same.
        let _ = self.0.as_ref().map(|reaper| reaper.try_send(Freed::Elsewhere));
    }
}

/// Frees snapshots as they come until no more can, which is due.
fn run(queue: &Receiver<Freed>) -> bool {
    // When memory was freed first that was not given back yet.
    let mut freed: Option<Instant> = None;
    loop {
        let next = match freed {
            None => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(freed) => queue.recv_timeout(GIVE_BACK_MIN.saturating_sub(freed.elapsed())),
        };
        match next {
            Ok(Freed::Snapshots(snapshots)) => drop(snapshots),
            Ok(Freed::Elsewhere) => {}
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return true,
        }
        let since = *freed.get_or_insert_with(Instant::now);
        if since.elapsed() >= GIVE_BACK_MIN {
            zonda_netio::memory::give_back();
            freed = None;
        }
    }
}
