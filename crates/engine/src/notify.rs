//! NOTIFY: a primary says that a zone of this server's has changed (rfc1996).
//!
//! The reply is sent at once, and says nothing about what becomes of it. The clients that may send
//! the message stand in the access list of the zone. A zone stands in the queue once, however many
//! messages come for it; where the queue is full, the primary gets SERVFAIL and sends the message
//! again. A place of the queue takes 8 octets, and a message takes memory only while it waits: room
//! for a message at each place would be 15 MB with 100,000 zones. The serial that a message may
//! have is a hint, into which anything could have been written: it stands in the queue with the
//! zone, the greatest of several, with whether there were several. Zones stand there by marks made
//! of their names: the number of a zone may be another one's while a message for the former still
//! waits. Two zones at one place have the same mark once in two thousand million times, and a
//! message for the one is then lost while one for the other waits.
//!
//! Deliberately absent: what is done about a zone.

use crate::zones::ZoneEntry;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::atomic::{Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use zonda_wire::Name;
use zonda_zone::is_greater;

/// The queue of zones that primaries say have changed.
#[derive(Clone)]
pub struct NotifyQueue {
    sender: Sender<Notice>,
    queued: Arc<QueuedZones>,
}

/// The zones that stand in the queue.
struct QueuedZones {
    /// Each zone at the place of its number, by its mark with a serial; 0 where none stands. Zones
    /// that share a place may stand in the queue several times.
    places: Box<[AtomicU64]>,
    /// The function that marks are made with, another one in each process.
    hasher: RandomState,
    /// Number of notices that stand in the queue or are about to, at most one for each place.
    count: AtomicUsize,
}

/// The serial of messages that have none. A zone seldom has it.
const UNKNOWN: u32 = 0;
/// The bit that says that messages with different serials have come. Marks do not have it.
const MIXED: u64 = 1 << 63;
/// How often it is tried to find out whether a zone stands in the queue while other threads put it
/// there and take it out.
const TRIES_MAX: usize = 4;

/// A zone that a primary says has changed. It leaves the queue when it is taken or dropped.
pub struct Notice {
    zone: Arc<ZoneEntry>,
    queued: Arc<QueuedZones>,
    /// The address of the primary.
    pub from: IpAddr,
    /// Whether the zone was taken out of the queue.
    has_left: bool,
}

impl Notice {
    /// Takes the zone out of the queue, so that it can stand there again; returns its apex in lower
    /// case, and what the messages for it have said.
    #[must_use]
    pub fn take(mut self) -> (Name, Announcement) {
        let standing = self.leave();
        let serial = Some(standing as u32).filter(|serial| *serial != UNKNOWN);
        let has_several = standing & MIXED != 0;
        (self.zone.apex.clone(), Announcement { serial, has_several })
    }

    /// Takes the zone out of the queue, once; returns what stood there.
    fn leave(&mut self) -> u64 {
        if std::mem::replace(&mut self.has_left, true) {
            return 0;
        }
        let mark = self.queued.mark(&self.zone);
        let is_it = |standing| is_of(standing, mark).then_some(0);
        let standing = self.queued.place(&self.zone).fetch_update(AcqRel, Acquire, is_it);
        self.queued.count.fetch_sub(1, Relaxed);
        standing.unwrap_or(0) // else another zone stands there
    }
}

/// What the messages for a zone have said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The greatest serial that they have had, if they had any (rfc1982#3.2).
    pub serial: Option<u32>,
    /// Whether they had different serials, or some of them none.
    pub has_several: bool,
}

impl Drop for Notice {
    /// Takes the zone out of the queue, also where the queue could not have it, or has ended.
    fn drop(&mut self) {
        self.leave();
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
        let places = (0..places.max(1)).map(|_| AtomicU64::new(0)).collect();
        let (hasher, count) = (RandomState::new(), AtomicUsize::new(0));
        let queued = QueuedZones { places, hasher, count };
        (Self { sender, queued: queued.into() }, receiver)
    }

    /// Returns the number of places.
    #[must_use]
    pub fn places(&self) -> usize {
        self.queued.places.len()
    }

    /// Queues a zone that a primary at an address says has changed, and has a serial, if it says
    /// that; whether there was room.
    pub fn push(&self, zone: &Arc<ZoneEntry>, from: IpAddr, serial: Option<u32>) -> bool {
        let place = self.queued.place(zone);
        let mark = self.queued.mark(zone);
        let new = mark | u64::from(serial.unwrap_or(UNKNOWN));
        for _ in 0..TRIES_MAX {
            let standing = place.load(Acquire);
            if !is_of(standing, mark) {
                break;
            }
            let both = merged(standing, new);
            let is_known = both == standing;
            if is_known || place.compare_exchange(standing, both, AcqRel, Relaxed).is_ok() {
                return true;
            }
        }
        // Room comes first: once the zone is noted at its place, other workers acknowledge too.
        let places = self.places();
        let next = |count: usize| (count < places).then_some(count + 1);
        if self.queued.count.fetch_update(Relaxed, Relaxed, next).is_err() {
            return false;
        }
        let _ = place.compare_exchange(0, new, AcqRel, Relaxed); // else another zone stands there
        let (zone, queued) = (Arc::clone(zone), Arc::clone(&self.queued));
        // A notice that cannot be sent is dropped, which gives its place and the room back.
        self.sender.send(Notice { zone, queued, from, has_left: false }).is_ok()
    }
}

impl QueuedZones {
    /// The place of a zone among those that stand in the queue.
    fn place(&self, zone: &ZoneEntry) -> &AtomicU64 {
        &self.places[zone.number as usize % self.places.len()] // there is at least one
    }

    /// The mark of a zone, behind which its serial stands; never 0.
    fn mark(&self, zone: &ZoneEntry) -> u64 {
        let hash = self.hasher.hash_one(zone.apex.as_wire());
        (hash >> 33).max(1) << 32
    }
}

/// Whether what stands at a place is for the zone with a mark.
fn is_of(standing: u64, mark: u64) -> bool {
    (standing & !MIXED) >> 32 == mark >> 32
}

/// What stands at the place of a zone when another message comes for it.
fn merged(standing: u64, new: u64) -> u64 {
    let (serial, other) = (standing as u32, new as u32);
    let is_later = serial == UNKNOWN || other != UNKNOWN && is_greater(other, serial);
    match serial == other {
        true => standing,
        false if is_later => new | MIXED,
        false => standing | MIXED,
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
        let push = |zone: &Arc<ZoneEntry>| queue.push(zone, from, None);
        assert!(push(&one) && push(&one) && push(&other));
        assert!(!push(&third), "the queue is full");
        assert_eq!(end.recv().unwrap().take().0, one.apex);
        assert!(push(&third), "it shares the place of the first one, which is free");
        assert_eq!(end.recv().unwrap().take().0, other.apex);
        assert!(push(&one), "the third one stands at its place");
        let names: Vec<_> = end.try_iter().map(|notice| notice.take().0.to_string()).collect();
        assert_eq!(names, ["z2.test.", "z0.test."]);
    }

    #[test]
    fn a_zone_with_the_number_of_one_that_is_gone_and_still_waits_stands_in_the_queue_as_well() {
        let (queue, end) = NotifyQueue::new(4);
        let from = IpAddr::from([192, 0, 2, 1]);
        let (gone, number) = (zone(1), zone(1).number);
        let source = Source::Unavailable(Reason::ZoneUnavailable);
        let next = Arc::new(ZoneEntry::new("next.test".parse().unwrap(), source, None, number));
        assert!(queue.push(&gone, from, Some(7)) && queue.push(&next, from, Some(8)));
        let taken: Vec<_> = end.try_iter().map(Notice::take).collect();
        let names: Vec<_> = taken.iter().map(|(apex, _)| apex.to_string()).collect();
        assert_eq!(names, ["z1.test.", "next.test."]);
        assert_eq!(taken[0].1, Announcement { serial: Some(7), has_several: false });
    }

    #[test]
    fn no_notify_is_acknowledged_while_the_queue_is_full_whichever_worker_has_it() {
        let (queue, _end) = NotifyQueue::new(2);
        let from = IpAddr::from([192, 0, 2, 1]);
        // Both have the same place: the one of the zone that is refused stays free.
        assert!(
            queue.push(&zone(0), from, None) && queue.push(&zone(2), from, None),
            "it is full now"
        );
        let refused = zone(1);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    (0..200_000)
                        .for_each(|_| assert!(!queue.push(&refused, from, None), "it is lost"));
                });
            }
        });
    }

    #[test]
    fn notices_that_are_dropped_leave_their_room_and_their_places_to_others() {
        let (queue, end) = NotifyQueue::new(2);
        let (one, from) = (zone(1), IpAddr::from([192, 0, 2, 1]));
        for _ in 0..5 {
            assert!(queue.push(&one, from, None) && queue.push(&zone(2), from, None));
            assert_eq!(end.try_iter().map(drop).count(), 2);
        }
        drop(end);
        for _ in 0..5 {
            assert!(!queue.push(&one, from, None), "the queue has ended");
            assert_eq!(queue.queued.count.load(Relaxed), 0);
        }
    }

    #[test]
    fn a_zone_stands_in_the_queue_with_the_greatest_serial_and_whether_there_were_several() {
        let (queue, end) = NotifyQueue::new(4);
        let from = IpAddr::from([192, 0, 2, 1]);
        let one = zone(1);
        let taken = |serials: &[Option<u32>]| {
            serials.iter().for_each(|serial| assert!(queue.push(&one, from, *serial)));
            let all: Vec<_> = end.try_iter().map(|notice| notice.take().1).collect();
            assert_eq!(all.len(), 1, "{serials:?}");
            (all[0].serial, all[0].has_several)
        };
        assert_eq!(taken(&[None]), (None, false));
        assert_eq!(taken(&[Some(7)]), (Some(7), false));
        assert_eq!(taken(&[Some(7), Some(7)]), (Some(7), false));
        assert_eq!(taken(&[Some(7), Some(8)]), (Some(8), true));
        assert_eq!(taken(&[Some(8), Some(7), Some(8)]), (Some(8), true));
        assert_eq!(taken(&[Some(7), None]), (Some(7), true));
        assert_eq!(taken(&[None, Some(7)]), (Some(7), true));
        assert_eq!(taken(&[Some(u32::MAX), Some(1)]), (Some(1), true));
        let other = zone(5); // it shares the place
        assert!(queue.push(&one, from, Some(7)) && queue.push(&other, from, Some(7)));
        let all: Vec<_> = end.try_iter().map(|notice| notice.take().1.serial).collect();
        assert_eq!(all, [Some(7), None]);
    }
}
