//! What the publisher and the threads share: names of zones, and counts of messages.

use super::schedule::{Cause, Schedule};
use super::tcp_queue::TcpQueue;
use arc_swap::ArcSwap;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zonda_engine::Snapshot;
use zonda_netio::Wake;
use zonda_wire::Name;

/// What has become of messages so far, and what waits.
#[derive(Debug, Default)]
pub struct NotifyCounts {
    /// What waits to be sent or acknowledged. The thread locks it while it works; none else longer
    /// than a look-up takes.
    pub(super) schedule: Mutex<Schedule>,
    /// Messages that were sent, repetitions included.
    pub sent: AtomicU64,
    /// Versions that a receiver has acknowledged.
    pub acknowledged: AtomicU64,
    /// Replies with an error, or without the signature that they should have.
    pub refused: AtomicU64,
    /// Versions that a later one has replaced before the receiver acknowledged them.
    pub superseded: AtomicU64,
    /// Messages over TCP that were left for later, as too many wait.
    pub postponed: AtomicU64,
    /// Versions that receivers have not acknowledged yet.
    pub pending: AtomicU64,
    /// Receivers that acknowledge nothing, as the log says.
    pub silent: AtomicU64,
}

/// A version of a zone that a server has not acknowledged.
#[cfg(feature = "whole")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingVersion {
    /// The serial of the version.
    pub serial: u32,
    /// How often it was sent.
    pub attempts: u32,
    /// Whether the server has replied with an error, or without the signature that it should have.
    pub is_refused: bool,
}

impl NotifyCounts {
    /// What waits to be sent or acknowledged.
    pub(super) fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version of a zone, whose name is in lower case, that a server is being told of; none if
    /// it has acknowledged the last one.
    #[cfg(feature = "whole")]
    pub fn waiting(&self, zone: &Name, receiver: std::net::SocketAddr) -> Option<WaitingVersion> {
        let target = super::schedule::Target { zone: zone.clone(), receiver };
        let schedule = self.schedule();
        let pending = schedule.pending(&target)?;
        let (serial, attempts, is_refused) = (pending.serial, pending.attempts, pending.is_refused);
        Some(WaitingVersion { serial, attempts, is_refused })
    }
}

/// What the publisher and the threads share.
pub struct Shared {
    /// Zones with new versions.
    pub zones: Mutex<HashMap<Name, Cause>>,
    /// Zones whose receivers are told of the version in force once more.
    pub repeated: Mutex<HashSet<Name>>,
    /// What workers answer from, whose versions are announced.
    pub snapshot: Arc<ArcSwap<Snapshot>>,
    /// Wakes the thread.
    pub wake: Wake,
    /// Whether the thread is to end.
    pub is_closed: AtomicBool,
    /// What has become of messages.
    pub counts: Arc<NotifyCounts>,
    /// Messages over TCP.
    pub tcp: TcpQueue,
}
