//! NOTIFY: a primary says that a zone of this server's has changed (rfc1996).
//!
//! The reply is sent at once, and says nothing about what becomes of it. A zone stands in the
//! queue once, however many messages come for it, so that the queue is bounded by the number of
//! zones; where it is full nevertheless, the primary gets SERVFAIL and sends the message again.
//!
//! Deliberately absent: the serial that the message may have, which is a hint that anything could
//! have been written into, and what is done about a zone.

use crate::access::TransferRule;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Release};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use zonda_wire::Name;
use zonda_wire::tsig::KeyId;

/// The zones for which NOTIFY is taken, and where it goes.
pub struct NotifyTable {
    /// The zones, by their apexes in lower case and wire form.
    zones: HashMap<Box<[u8]>, Arc<NotifyZone>>,
    /// The queue of zones that have changed.
    queue: SyncSender<Notice>,
}

/// A zone for which NOTIFY is taken.
#[derive(Debug)]
pub struct NotifyZone {
    /// The apex of the zone, in lower case.
    apex: Name,
    /// The clients that may send NOTIFY: those for which any of these rules is.
    rules: Vec<TransferRule>,
    /// Whether the zone stands in the queue.
    is_queued: AtomicBool,
}

/// A zone that a primary says has changed.
#[derive(Debug)]
pub struct Notice {
    zone: Arc<NotifyZone>,
    /// The address of the primary.
    pub from: IpAddr,
}

impl NotifyZone {
    /// Whether a client may send NOTIFY whose message has a sound signature by `key`, if by any.
    #[must_use]
    pub fn allows(&self, client: IpAddr, key: Option<KeyId>) -> bool {
        self.rules.iter().any(|rule| rule.is_for(client, key))
    }
}

impl Notice {
    /// Takes the zone out of the queue, so that it can stand there again; returns its apex.
    #[must_use]
    pub fn take(&self) -> &Name {
        self.zone.is_queued.store(false, Release);
        &self.zone.apex
    }
}

impl fmt::Debug for NotifyTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotifyTable").field("zones", &self.zones.len()).finish_non_exhaustive()
    }
}

/// A queue of zones that have changed, with this many places.
#[must_use]
pub fn queue(places: usize) -> (SyncSender<Notice>, Receiver<Notice>) {
    sync_channel(places)
}

impl NotifyTable {
    /// The table of zones, each with its apex in lower case and the clients that may send NOTIFY.
    #[must_use]
    pub fn new(
        zones: impl IntoIterator<Item = (Name, Vec<TransferRule>)>,
        queue: SyncSender<Notice>,
    ) -> Self {
        let zone = |(apex, rules): (Name, Vec<TransferRule>)| {
            let key = apex.as_wire().into();
            (key, Arc::new(NotifyZone { apex, rules, is_queued: AtomicBool::new(false) }))
        };
        Self { zones: zones.into_iter().map(zone).collect(), queue }
    }

    /// Finds a zone by its apex in lower case and wire form.
    #[must_use]
    pub fn zone(&self, apex: &[u8]) -> Option<&Arc<NotifyZone>> {
        self.zones.get(apex)
    }

    /// Queues a zone that a primary at an address says has changed; whether there was room.
    pub fn queue(&self, zone: &Arc<NotifyZone>, from: IpAddr) -> bool {
        if zone.is_queued.swap(true, AcqRel) {
            return true;
        }
        let is_sent = self.queue.try_send(Notice { zone: Arc::clone(zone), from }).is_ok();
        if !is_sent {
            zone.is_queued.store(false, Release);
        }
        is_sent
    }
}
