//! NOTIFY: a primary says that a zone of this server's has changed (rfc1996).
//!
//! The reply is sent at once, and says nothing about what becomes of it. The clients that may send
//! the message stand in the access list of the zone. A zone stands in the queue once, however many
//! messages come for it; where the queue is full, the primary gets SERVFAIL and sends the message
//! again. The queue takes memory for the zones that stand in it, and not for all its places: with
//! 100,000 zones these would be 15 MB.
//!
//! Deliberately absent: the serial that the message may have, which is a hint that anything could
//! have been written into, and what is done about a zone.

use crate::zones::ZoneEntry;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::atomic::{Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use zonda_wire::Name;

/// The queue of zones that primaries say have changed.
#[derive(Clone)]
pub struct NotifyQueue {
    sender: Sender<Notice>,
    queued: Arc<QueuedZones>,
}

/// The zones that stand in the queue.
struct QueuedZones {
    /// Each zone at the place of its number, as that number plus 1; 0 where none stands. Zones that
    /// share a place may stand in the queue several times.
    places: Box<[AtomicU32]>,
    /// Number of notices in the queue, at most one for each place.
    count: AtomicUsize,
}

/// A zone that a primary says has changed.
pub struct Notice {
    zone: Arc<ZoneEntry>,
    queued: Arc<QueuedZones>,
    /// The address of the primary.
    pub from: IpAddr,
}

impl Notice {
    /// Takes the zone out of the queue, so that it can stand there again; returns its apex in lower
    /// case.
    #[must_use]
    pub fn take(self) -> Name {
        let (place, id) = self.queued.place(&self.zone);
        let _ = place.compare_exchange(id, 0, AcqRel, Relaxed); // else it is another zone's
        self.queued.count.fetch_sub(1, Relaxed);
        self.zone.apex.clone()
    }
}

impl fmt::Debug for NotifyQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotifyQueue").field("places", &self.places()).finish_non_exhaustive()
    }
}

impl NotifyQueue {
    /// A queue with this many places, at least 1, and its end.
    #[must_use]
    pub fn new(places: usize) -> (Self, Receiver<Notice>) {
        let (sender, receiver) = channel();
        let places = (0..places.max(1)).map(|_| AtomicU32::new(0)).collect();
        let queued = QueuedZones { places, count: AtomicUsize::new(0) };
        (Self { sender, queued: queued.into() }, receiver)
    }

    /// Returns the number of places.
    #[must_use]
    pub fn places(&self) -> usize {
        self.queued.places.len()
    }

    /// Queues a zone that a primary at an address says has changed; whether there was room.
    pub fn push(&self, zone: &Arc<ZoneEntry>, from: IpAddr) -> bool {
        let (place, id) = self.queued.place(zone);
        if place.load(Acquire) == id {
            return true;
        }
        let is_noted = place.compare_exchange(0, id, AcqRel, Relaxed).is_ok();
        let has_room = self.queued.count.fetch_add(1, Relaxed) < self.places();
        let (zone, queued) = (Arc::clone(zone), Arc::clone(&self.queued));
        let is_sent = has_room && self.sender.send(Notice { zone, queued, from }).is_ok();
        if !is_sent {
            self.queued.count.fetch_sub(1, Relaxed);
            if is_noted {
                place.store(0, Relaxed);
            }
        }
        is_sent
    }
}

impl QueuedZones {
    /// The place of a zone among those that stand in the queue, and what stands there for it.
    fn place(&self, zone: &ZoneEntry) -> (&AtomicU32, u32) {
        let number = zone.number as usize % self.places.len(); // there is at least one
        (&self.places[number], zone.number.saturating_add(1))
    }
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
        assert_eq!(end.recv().unwrap().take(), one.apex);
        assert!(queue.push(&third, from), "it shares the place of the first one, which is free");
        assert_eq!(end.recv().unwrap().take(), other.apex);
        assert!(queue.push(&one, from), "the third one stands at its place");
        let names: Vec<_> = end.try_iter().map(|notice| notice.take().to_string()).collect();
        assert_eq!(names, ["z2.test.", "z0.test."]);
    }
}
