//! NOTIFY: a primary says that a zone of this server's has changed (rfc1996).
//!
//! The reply is sent at once, and says nothing about what becomes of it. The clients that may send
//! the message stand in the access list of the zone. A zone stands in the queue once, however many
//! messages come for it; where the queue is full, the primary gets SERVFAIL and sends the message
//! again.
//!
//! Deliberately absent: the serial that the message may have, which is a hint that anything could
//! have been written into, and what is done about a zone.

use crate::zones::ZoneEntry;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use zonda_wire::Name;

/// The queue of zones that primaries say have changed.
#[derive(Clone)]
pub struct NotifyQueue {
    sender: SyncSender<Notice>,
    queued: QueuedZones,
}

/// The zones that stand in the queue: each at the place of its number, as that number plus 1; 0
/// where none does. Zones that share a place may stand in the queue several times.
type QueuedZones = Arc<[AtomicU64]>;

/// A zone that a primary says has changed.
pub struct Notice {
    zone: Arc<ZoneEntry>,
    queued: QueuedZones,
    /// The address of the primary.
    pub from: IpAddr,
}

impl Notice {
    /// Takes the zone out of the queue, so that it can stand there again; returns its apex in lower
    /// case.
    #[must_use]
    pub fn take(&self) -> &Name {
        let (place, id) = place(&self.queued, &self.zone);
        let _ = place.compare_exchange(id, 0, AcqRel, Relaxed); // else it is another zone's
        &self.zone.apex
    }
}

impl fmt::Debug for NotifyQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotifyQueue").field("places", &self.queued.len()).finish_non_exhaustive()
    }
}

impl NotifyQueue {
    /// A queue with this many places, at least 1, and its end.
    #[must_use]
    pub fn new(places: usize) -> (Self, Receiver<Notice>) {
        let (sender, receiver) = sync_channel(places);
        let queued = (0..places.max(1)).map(|_| AtomicU64::new(0)).collect();
        (Self { sender, queued }, receiver)
    }

    /// Returns the number of places.
    #[must_use]
    pub fn places(&self) -> usize {
        self.queued.len()
    }

    /// Queues a zone that a primary at an address says has changed; whether there was room.
    pub fn push(&self, zone: &Arc<ZoneEntry>, from: IpAddr) -> bool {
        let (place, id) = place(&self.queued, zone);
        if place.load(Acquire) == id {
            return true;
        }
        let is_noted = place.compare_exchange(0, id, AcqRel, Relaxed).is_ok();
        let (zone, queued) = (Arc::clone(zone), Arc::clone(&self.queued));
        let is_sent = self.sender.try_send(Notice { zone, queued, from }).is_ok();
        if !is_sent && is_noted {
            place.store(0, Relaxed);
        }
        is_sent
    }
}

/// The place of a zone among those that stand in the queue, and what stands there for it.
fn place<'q>(queued: &'q QueuedZones, zone: &ZoneEntry) -> (&'q AtomicU64, u64) {
    let number = zone.number as usize % queued.len(); // a queue has at least one place
    (&queued[number], u64::from(zone.number) + 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::reason::Reason;
    use crate::zones::Source;

    fn zone(number: u32) -> Arc<ZoneEntry> {
        let source = Source::Unavailable(Reason::ZoneUnavailable);
        Arc::new(ZoneEntry::new(format!("z{number}.test").parse().unwrap(), source, None, number))
    }

    #[test]
    fn a_zone_stands_in_the_queue_once_until_it_is_taken() {
        let (queue, end) = NotifyQueue::new(2);
        let from = IpAddr::from([192, 0, 2, 1]);
        let [one, other, third] = [0, 1, 2].map(zone);
        assert!(queue.push(&one, from) && queue.push(&one, from) && queue.push(&other, from));
        assert!(!queue.push(&third, from), "the queue is full");
        assert_eq!(*end.recv().unwrap().take(), one.apex);
        assert!(queue.push(&third, from), "it shares the place of the first one, which is free");
        assert_eq!(*end.recv().unwrap().take(), other.apex);
        assert!(queue.push(&one, from), "the third one stands at its place");
        let names: Vec<_> = end.try_iter().map(|notice| notice.take().to_string()).collect();
        assert_eq!(names, ["z2.test.", "z0.test."]);
    }
}
