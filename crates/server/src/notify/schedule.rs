//! What is to be sent to which server, and when; without sockets and clocks.
//!
//! # Invariants
//! - A zone waits once for each receiver, with its last version.
//! - What is in `queue` is in `pending`, and the other way round.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use zonda_wire::Name;
use zonda_wire::tsig::ReplySignature;

/// The time after which a message is sent again, milliseconds; each further time it is doubled.
const RETRY_MILLIS: u64 = 2_000;
/// Longest time after which a message is sent again.
const RETRY_MILLIS_MAX: u64 = 15 * 60 * 1000;

/// A zone and a server that is to know of its version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The apex of the zone, in lower case.
    pub zone: Name,
    /// The address of the server.
    pub receiver: SocketAddr,
}

/// A version of a zone that a server is to know of.
pub struct Pending {
    /// The serial of the version.
    pub serial: u32,
    /// How often it was sent.
    pub attempts: u32,
    /// The id of the message that was sent last, and what its reply is checked with.
    pub sent: Option<(u16, Option<ReplySignature>)>,
    /// The place in the queue: the time, and a number that no other has.
    place: (u64, u64),
}

/// All versions that servers are to know of.
#[derive(Default)]
pub struct Schedule {
    /// What waits, by zone and receiver.
    pending: HashMap<Target, Pending>,
    /// What waits, by the time at which it is sent next.
    queue: BTreeMap<(u64, u64), Target>,
    /// The number of the last place in the queue.
    last: u64,
}

impl Schedule {
    /// How many versions wait.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Has a version of a zone sent to a receiver, at once. Whether it replaces another version
    /// that waits; the same version goes on as before.
    pub fn add(&mut self, target: Target, serial: u32, now_millis: u64) -> bool {
        let former = self.pending.get(&target);
        if former.is_some_and(|former| former.serial == serial) {
            return false;
        }
        let is_replaced = self.remove(&target);
        let place = self.put((now_millis, target.clone()));
        self.pending.insert(target, Pending { serial, attempts: 0, sent: None, place });
        is_replaced
    }

    /// When the next message is due.
    pub fn next_millis(&self) -> Option<u64> {
        self.queue.first_key_value().map(|((due, _), _)| *due)
    }

    /// What is due first, if anything is.
    pub fn due(&self, now_millis: u64) -> Option<&Target> {
        let ((due, _), target) = self.queue.first_key_value()?;
        (*due <= now_millis).then_some(target)
    }

    /// Notes that a message was sent, and when it is sent again; returns what waits.
    pub fn note_sent(
        &mut self,
        target: &Target,
        (id, signature): (u16, Option<ReplySignature>),
        now_millis: u64,
    ) -> Option<&Pending> {
        let pending = self.pending.get(target)?;
        let (former, attempts) = (pending.place, pending.attempts);
        self.queue.remove(&former);
        let delay = RETRY_MILLIS.checked_shl(attempts.min(16)).unwrap_or(RETRY_MILLIS_MAX);
        let place = self.put((now_millis + delay.min(RETRY_MILLIS_MAX), target.clone()));
        let pending = self.pending.get_mut(target)?;
        (pending.place, pending.attempts) = (place, attempts + 1);
        pending.sent = Some((id, signature));
        Some(pending)
    }

    /// What waits for the reply with an id.
    pub fn awaiting(&self, target: &Target, id: u16) -> Option<&Pending> {
        let pending = self.pending.get(target)?;
        pending.sent.as_ref().is_some_and(|(sent, _)| *sent == id).then_some(pending)
    }

    /// Forgets what waits; whether there was anything.
    pub fn remove(&mut self, target: &Target) -> bool {
        let removed = self.pending.remove(target);
        removed.map(|pending| self.queue.remove(&pending.place)).is_some()
    }

    /// Puts something into the queue.
    fn put(&mut self, (due, target): (u64, Target)) -> (u64, u64) {
        self.last += 1;
        let place = (due, self.last);
        self.queue.insert(place, target);
        place
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn target(zone: &str, port: u16) -> Target {
        let receiver = SocketAddr::from(([192, 0, 2, 1], port));
        Target { zone: zone.parse().unwrap(), receiver }
    }

    #[test]
    fn a_message_is_repeated_at_growing_intervals_until_it_is_acknowledged() {
        let (mut schedule, one) = (Schedule::default(), target("a.test", 53));
        schedule.add(one.clone(), 7, 1000);
        let mut times = Vec::new();
        for id in 0..12 {
            let now = schedule.next_millis().unwrap();
            assert_eq!(schedule.due(now), Some(&one));
            times.push(now);
            assert_eq!(
                schedule.note_sent(&one, (id, None), now).unwrap().attempts,
                u32::from(id) + 1
            );
            assert_eq!(schedule.due(now), None);
        }
        let gaps: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]) / 1000).collect();
        assert_eq!(gaps, [2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
        assert!(schedule.awaiting(&one, 10).is_none(), "an earlier message's");
        assert_eq!(schedule.awaiting(&one, 11).unwrap().serial, 7);
        assert!(schedule.remove(&one) && !schedule.remove(&one));
        assert_eq!((schedule.len(), schedule.next_millis()), (0, None));
    }

    #[test]
    fn a_later_version_takes_the_place_of_one_that_waits_and_the_same_changes_nothing() {
        let (mut schedule, one) = (Schedule::default(), target("a.test", 53));
        assert!(!schedule.add(one.clone(), 7, 0));
        schedule.note_sent(&one, (1, None), 0);
        assert!(!schedule.add(one.clone(), 7, 500));
        assert_eq!(schedule.next_millis(), Some(2000));
        assert!(schedule.add(one.clone(), 8, 600));
        assert_eq!((schedule.len(), schedule.next_millis()), (1, Some(600)));
        assert!(schedule.awaiting(&one, 1).is_none());
    }

    #[test]
    fn zones_and_receivers_wait_apart_in_the_order_of_their_times() {
        let mut schedule = Schedule::default();
        let all = [target("a.test", 1), target("a.test", 2), target("b.test", 1)];
        for (place, target) in all.iter().enumerate() {
            schedule.add(target.clone(), 1, place as u64);
        }
        for (place, target) in all.iter().enumerate() {
            assert_eq!(schedule.due(10), Some(target));
            schedule.note_sent(target, (place as u16, None), 10);
        }
        assert_eq!((schedule.due(10), schedule.len()), (None, 3));
    }
}
