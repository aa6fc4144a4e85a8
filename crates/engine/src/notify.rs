//! NOTIFY: a primary says that a zone of this server's has changed (rfc1996).
//!
//! The reply is sent at once, and says nothing about what becomes of it. The clients that may send
//! the message stand in the access list of the zone. A zone stands in the queue once, however many
//! messages come for it; where the queue is full, the primary gets SERVFAIL and sends the message
//! again. A place of the queue takes 4 octets, and a message takes memory only while it waits: room
//! for a message at each place would be 15 MB with 100,000 zones.
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
    /// Number of notices that stand in the queue or are about to, at most one for each place.
    count: AtomicUsize,
}

/// A zone that a primary says has changed. It leaves the queue when it is dropped.
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
        self.zone.apex.clone()
    }
}

impl Drop for Notice {
    /// Takes the zone out of the queue, also where the queue could not have it, or has ended.
    fn drop(&mut self) {
        let (place, id) = self.queued.place(&self.zone);
        let _ = place.compare_exchange(id, 0, AcqRel, Relaxed); // else it is another zone's
        self.queued.count.fetch_sub(1, Relaxed);
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
        // Room comes first: once the zone is noted at its place, other workers acknowledge too.
        let places = self.places();
        let next = |count: usize| (count < places).then_some(count + 1);
        if self.queued.count.fetch_update(Relaxed, Relaxed, next).is_err() {
            return false;
        }
        let _ = place.compare_exchange(0, id, AcqRel, Relaxed); // else another zone stands there
        let (zone, queued) = (Arc::clone(zone), Arc::clone(&self.queued));
        // A notice that cannot be sent is dropped, which gives its place and the room back.
        self.sender.send(Notice { zone, queued, from }).is_ok()
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

    #[test]
    fn no_notify_is_acknowledged_while_the_queue_is_full_whichever_worker_has_it() {
        let (queue, _end) = NotifyQueue::new(2);
        let from = IpAddr::from([192, 0, 2, 1]);
        // Both have the same place: the one of the zone that is refused stays free.
        assert!(queue.push(&zone(0), from) && queue.push(&zone(2), from), "it is full now");
        let refused = zone(1);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    (0..200_000).for_each(|_| assert!(!queue.push(&refused, from), "it is lost"));
                });
            }
        });
    }

    #[test]
    fn notices_that_are_dropped_leave_their_room_and_their_places_to_others() {
        let (queue, end) = NotifyQueue::new(2);
        let (one, from) = (zone(1), IpAddr::from([192, 0, 2, 1]));
        for _ in 0..5 {
            assert!(queue.push(&one, from) && queue.push(&zone(2), from));
            assert_eq!(end.try_iter().map(drop).count(), 2);
        }
        drop(end);
        for _ in 0..5 {
            assert!(!queue.push(&one, from), "the queue has ended");
            assert_eq!(queue.queued.count.load(Relaxed), 0);
        }
    }
}
