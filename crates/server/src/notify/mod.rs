//! Telling secondaries of new versions of zones (NOTIFY, rfc1996).
//!
//! ```text
//! publisher ─ names of zones ─► thread ─ schedule: what to send to which server, and when ─► UDP
//!                                 ▲ replies acknowledge                │
//!                                 └────────────────────────────────────┘
//! ```
//!
//! | file | what |
//! |---|---|
//! | `schedule` | what waits to be sent or acknowledged, without sockets and clocks |
//! | `rate` | how fast messages may be sent |
//! | `message` | messages and replies in wire form |
//! | `compose` | the message about a version in force, signed |
//! | `shared` | what the publisher and the thread share |
//! | `thread` | the sockets, and the thread that has them |
//! | `tcp` | messages over TCP, where a receiver acknowledges none over UDP |
//! | `tcp_queue` | what waits to be sent so, and what has come of it |
//! | `tcp_receivers` | receivers that are known to acknowledge over TCP alone |
//!
//! What is sent is read from the snapshot in force at that moment, so that several changes of a
//! zone become one message. The thread starts with the first zone that has receivers.
//!
//! Deliberately absent: a choice of the source address, and state that outlives
//! the process: at its start every zone with receivers is announced.

mod compose;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod fixture;
mod message;
mod rate;
mod schedule;
mod shared;
mod tcp;
mod tcp_queue;
mod tcp_receivers;
mod thread;

pub use schedule::Cause;
pub use shared::NotifyCounts;

use crate::watchdog::Watchdog;
use arc_swap::ArcSwap;
use shared::Shared;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use tcp_queue::TcpQueue;
use zonda_engine::Snapshot;
use zonda_netio::Wake;
use zonda_wire::Name;

/// The name of the thread.
const THREAD: &str = "notify";

/// Announces new versions of zones; the publisher has it.
#[derive(Default)]
pub struct Notifier {
    /// What watches the thread, once threads may run.
    watchdog: Option<Arc<Watchdog>>,
    /// The queue to the thread, once it runs.
    shared: Option<Arc<Shared>>,
    /// What has become of messages.
    counts: Arc<NotifyCounts>,
}

impl Notifier {
    /// Allows a thread from now on.
    pub fn allow_thread(&mut self, watchdog: &Arc<Watchdog>) {
        self.watchdog = Some(Arc::clone(watchdog));
    }

    /// What has become of messages.
    pub fn counts(&self) -> &Arc<NotifyCounts> {
        &self.counts
    }

    /// Has the receivers of zones told that they have new versions, which are published; leaves
    /// them in `zones` until threads may run.
    pub fn announce(
        &mut self,
        zones: &mut HashMap<Name, Cause>,
        snapshot: &Arc<ArcSwap<Snapshot>>,
    ) {
        if self.watchdog.is_none() || zones.is_empty() {
            return;
        }
        let zones = std::mem::take(zones);
        if let Some(shared) = self.shared(snapshot) {
            let mut waiting = shared.zones.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.extend(zones);
            drop(waiting);
            shared.wake.wake();
        }
    }

    /// Has the receivers of a zone told of its version once more, though they may know it.
    pub fn announce_again(&mut self, zone: Name, snapshot: &Arc<ArcSwap<Snapshot>>) {
        if let Some(shared) = self.shared(snapshot) {
            shared.repeated.lock().unwrap_or_else(PoisonError::into_inner).insert(zone);
            shared.wake.wake();
        }
    }

    /// The queue to the thread, which is started if it does not run and may.
    fn shared(&mut self, snapshot: &Arc<ArcSwap<Snapshot>>) -> Option<&Shared> {
        if let (None, Some(watchdog)) = (&self.shared, &self.watchdog) {
            match start(watchdog, snapshot, &self.counts) {
                Ok(shared) => self.shared = Some(shared),
                Err(error) => {
                    tracing::error!(%error, "no server can be notified of new versions of zones");
                }
            }
        }
        self.shared.as_deref()
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.is_closed.store(true, Relaxed);
            shared.wake.wake();
        }
    }
}

/// Starts the thread.
fn start(
    watchdog: &Arc<Watchdog>,
    snapshot: &Arc<ArcSwap<Snapshot>>,
    counts: &Arc<NotifyCounts>,
) -> io::Result<Arc<Shared>> {
    let (zones, repeated, is_closed) = (Mutex::default(), Mutex::default(), false.into());
    let (counts, wake, tcp) = (Arc::clone(counts), Wake::new()?, TcpQueue::default());
    let snapshot = Arc::clone(snapshot);
    let shared = Arc::new(Shared { zones, repeated, snapshot, wake, is_closed, counts, tcp });
    let mut sender = thread::Sender::new(Arc::clone(&shared))?;
    watchdog.spawn(THREAD, move || sender.run())?;
    Ok(shared)
}
