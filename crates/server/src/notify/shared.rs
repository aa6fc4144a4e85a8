//! What the publisher and the thread share: names of zones, and counts of messages.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use zonda_netio::Wake;
use zonda_wire::Name;

/// What has become of messages so far.
#[derive(Debug, Default)]
pub struct NotifyCounts {
    /// Messages that were sent, repetitions included.
    pub sent: AtomicU64,
    /// Versions that a receiver has acknowledged.
    pub acknowledged: AtomicU64,
    /// Replies with an error, or without the signature that they should have.
    pub refused: AtomicU64,
    /// Versions that a later one has replaced before the receiver acknowledged them.
    pub superseded: AtomicU64,
    /// Versions that receivers have not acknowledged yet.
    pub pending: AtomicU64,
    /// Receivers that acknowledge nothing, as the log says.
    pub silent: AtomicU64,
}

/// Why servers are told of a version of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The zone has changed, or an operator asks for it.
    Change,
    /// The version is the first one of the zone since the start, or its receivers are new.
    First,
}

/// What the publisher and the thread share.
#[derive(Debug)]
pub struct Shared {
    /// Zones with new versions.
    pub zones: Mutex<HashMap<Name, Cause>>,
    /// Zones whose receivers are told of the version in force once more.
    pub repeated: Mutex<HashSet<Name>>,
    /// Wakes the thread.
    pub wake: Wake,
    /// Whether the thread is to end.
    pub is_closed: AtomicBool,
    /// What has become of messages.
    pub counts: Arc<NotifyCounts>,
}
