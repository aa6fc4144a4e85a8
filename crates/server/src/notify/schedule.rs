//! What is to be sent to which server, and when; without sockets and clocks.
//!
//! ```text
//! add ─► fresh, by receiver ─► sent ─► repeated: by time ─┐
//!            ▲                    ▲                       │ no reply
//!            └── acknowledged ── parked, but for one ◄────┘ for long
//! ```
//! Messages that were not sent yet go first, of each receiver in turn, so that a receiver that does
//! not answer delays no other; those about changes before those about first versions, of which a
//! start has as many as there are zones, but for each eighth turn. Of a receiver that has
//! acknowledged nothing for long, one zone is sent at a time, a different one each time, until it
//! acknowledges any; over TCP as well, and so is what it is told from then on if TCP has helped,
//! until it acknowledges a message over UDP.
//!
//! # Invariants
//! - A zone waits once for each receiver, with its last version.
//! - What is pending stands in one queue: fresh, repeated or parked.

use super::tcp_receivers::{TcpReceivers, UdpMessage};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use zonda_wire::Name;
use zonda_wire::tsig::ReplySignature;

/// Why servers are told of a version of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The zone has changed, or an operator asks for it.
    Change,
    /// The version is the first one of the zone since the start, or its receivers are new.
    First,
}

/// The time after which a message is sent again, milliseconds; each further time it is doubled.
const RETRY_MILLIS: u64 = 2_000;
/// Longest time after which a message is sent again.
const RETRY_MILLIS_MAX: u64 = 15 * 60 * 1000;
/// Zones of a receiver that acknowledges nothing which shorten that time, as they share it.
const SHARING_MAX: usize = 15;
/// Messages without an acknowledgement, after some half a minute, that make a receiver silent if it
/// has acknowledged no other meanwhile.
const ATTEMPTS_MAX: u32 = 5;
/// Which turn is for a first version although other zones have changed, lest those that change
/// again and again leave the rest unannounced.
const TURN_OF_FIRST: u64 = 8;
/// Which turn is for a message that is repeated although other messages were not sent yet.
const TURN_OF_REPEATED: u64 = 4;

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
    /// Whether the receiver has refused the version.
    pub is_refused: bool,
    /// Why the receiver is told of the version.
    cause: Cause,
    /// When it was sent first.
    first_millis: u64,
    /// The queue in which it stands.
    queue: Queue,
}

/// A queue, and the place in it.
#[derive(Clone, Copy)]
enum Queue {
    /// What was not sent yet, of its receiver and cause.
    Fresh(Place),
    /// What is sent at a time.
    Repeated(Place),
    /// What waits until its receiver acknowledges anything.
    Parked(Place),
}

/// A place in a queue: the time, and a number that no other has.
type Place = (u64, u64);

/// A server that zones wait for.
#[derive(Default)]
struct Receiver {
    /// Zones that were not sent to it yet, by cause.
    fresh: [BTreeMap<Place, Name>; 2],
    /// Zones that wait until it acknowledges any.
    parked: BTreeMap<Place, Name>,
    /// The zone that it is sent at a time, if it is silent.
    probe: Option<Name>,
    /// Whether it stands among the turns of each cause: whether there are zones that were not sent
    /// yet.
    has_turn: [bool; 2],
    /// When it has acknowledged a version last, if it has.
    acknowledged: Option<u64>,
    /// How often it was sent a message since it is silent, if it is, and when the last time.
    silent: Option<(u32, u64)>,
    /// Number of zones that wait for it.
    pending: usize,
}

/// All versions that servers are to know of.
#[derive(Default)]
pub struct Schedule {
    /// What waits, by zone and receiver.
    pending: HashMap<Target, Pending>,
    /// The servers that zones wait for.
    receivers: HashMap<SocketAddr, Receiver>,
    /// The servers that have zones which were not sent yet, by cause, in the order of their turns.
    turns: [VecDeque<SocketAddr>; 2],
    /// The servers that have acknowledged over TCP alone.
    pub over_tcp: TcpReceivers,
    /// What is sent again, by the time of that.
    repeated: BTreeMap<Place, Target>,
    /// Number of messages that were sent or postponed.
    sent: u64,
    /// Number of silent servers.
    silent: usize,
    /// The number of the last place in a queue.
    last: u64,
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule").field("pending", &self.pending.len()).finish_non_exhaustive()
    }
}

impl Schedule {
    /// How many versions wait.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// How many servers acknowledge nothing.
    pub fn silent(&self) -> usize {
        self.silent
    }

    /// What waits of a zone for a receiver.
    pub fn pending(&self, target: &Target) -> Option<&Pending> {
        self.pending.get(target)
    }

    /// Has a version of a zone that has changed sent to a receiver.
    #[cfg(test)]
    fn add(&mut self, target: Target, serial: u32, now_millis: u64) -> bool {
        self.add_for(target, (serial, Cause::Change), now_millis)
    }

    /// Has a version of a zone sent to a receiver, at once unless that acknowledges nothing. The
    /// same version goes on as before; returns whether another one is replaced.
    pub fn add_for(
        &mut self,
        target: Target,
        (serial, cause): (u32, Cause),
        now_millis: u64,
    ) -> bool {
        let former = self.pending.get(&target);
        if former.is_some_and(|former| former.serial == serial) {
            return false;
        }
        let is_replaced = self.forget(&target);
        let receiver = self.receivers.entry(target.receiver).or_default();
        receiver.pending += 1;
        let is_parked = receiver.silent.is_some_and(|(_, sent)| now_millis < sent + RETRY_MILLIS);
        let pending = Pending {
            serial,
            attempts: 0,
            sent: None,
            is_refused: false,
            cause,
            first_millis: 0,
            queue: Queue::Fresh((0, 0)),
        };
        self.pending.insert(target.clone(), pending);
        match is_parked {
            true => self.park(&target),
            false => self.enter_fresh(&target),
        }
        is_replaced
    }

    /// Forgets that a receiver is being told of a version, so that it is told as if for the first
    /// time.
    pub fn begin_again(&mut self, target: &Target, serial: u32) {
        if self.pending.get(target).is_some_and(|pending| pending.serial == serial) {
            self.forget(target);
        }
    }

    /// When the next message is due.
    pub fn next_millis(&self) -> Option<u64> {
        let repeated = self.repeated.keys().next().map(|(due, _)| *due);
        if self.turns.iter().all(VecDeque::is_empty) { repeated } else { Some(0) }
    }

    /// What is to be sent next, if anything is due.
    pub fn due(&self, now_millis: u64) -> Option<Target> {
        let repeated = self.repeated.iter().next().filter(|((due, _), _)| *due <= now_millis);
        let repeated = repeated.map(|(_, target)| target.clone());
        if repeated.is_some() && (self.sent + 1).is_multiple_of(TURN_OF_REPEATED) {
            return repeated;
        }
        let mut causes = [Cause::Change, Cause::First];
        if self.sent.is_multiple_of(TURN_OF_FIRST) {
            causes.reverse();
        }
        let fresh = causes.into_iter().find_map(|cause| {
            let address = self.turns[cause as usize].front()?;
            let (_, zone) = self.receivers.get(address)?.fresh[cause as usize].iter().next()?;
            Some(Target { zone: zone.clone(), receiver: *address })
        });
        fresh.or(repeated)
    }

    /// Notes that a message was sent, and when it is sent again; returns what waits, and whether
    /// its receiver acknowledges nothing from now on.
    pub fn note_sent(
        &mut self,
        target: &Target,
        (id, signature): (u16, Option<ReplySignature>),
        now_millis: u64,
    ) -> Option<(&Pending, bool)> {
        self.leave_queue(target);
        self.end_turn(target.receiver);
        self.sent += 1;
        let pending = self.pending.get_mut(target)?;
        if pending.attempts == 0 {
            pending.first_millis = now_millis;
        }
        let attempts = pending.attempts;
        pending.attempts += 1;
        self.over_tcp.note_udp(target.receiver, || UdpMessage {
            zone: target.zone.clone(),
            id,
            signature: signature.clone(),
        });
        pending.sent = Some((id, signature));
        let first_millis = pending.first_millis;
        let receiver = self.receivers.get_mut(&target.receiver)?;
        if receiver.probe.as_ref() == Some(&target.zone) {
            receiver.probe = None;
        }
        let has_answered = receiver.acknowledged.is_some_and(|at| at >= first_millis);
        let was_silent = receiver.silent.is_some();
        let is_silent = was_silent || attempts + 1 >= ATTEMPTS_MAX && !has_answered;
        if !is_silent {
            self.repeat(target, now_millis + delay(attempts));
            return self.pending.get(target).map(|pending| (pending, false));
        }
        let (probes, _) = receiver.silent.unwrap_or((attempts, 0));
        receiver.silent = Some((probes.saturating_add(1), now_millis));
        let sharing = receiver.pending.clamp(1, SHARING_MAX) as u64;
        if !was_silent {
            self.silent += 1;
            self.park_all(target.receiver);
        }
        self.park(target);
        let wait = delay(probes).min(RETRY_MILLIS_MAX / sharing);
        self.probe(target.receiver, now_millis + wait);
        self.pending.get(target).map(|pending| (pending, !was_silent))
    }

    /// What waits for the reply with an id.
    pub fn awaiting(&self, target: &Target, id: u16) -> Option<&Pending> {
        let pending = self.pending(target)?;
        pending.sent.as_ref().is_some_and(|(sent, _)| *sent == id).then_some(pending)
    }

    /// Has what is due sent some time later.
    pub fn postpone(&mut self, target: &Target, now_millis: u64) {
        self.leave_queue(target);
        self.end_turn(target.receiver);
        self.sent += 1;
        self.repeat(target, now_millis + RETRY_MILLIS);
    }

    /// Whether a server acknowledges nothing.
    pub fn is_silent(&self, receiver: SocketAddr) -> bool {
        self.receivers.get(&receiver).is_some_and(|it| it.silent.is_some())
    }

    /// Whether the version that waits for a receiver is sent over TCP as well, as the receiver
    /// acknowledges nothing over UDP; one that refuses the version has it.
    pub fn is_told_over_tcp(&self, target: &Target) -> bool {
        let is_to_be_told = self.pending(target).is_some_and(|pending| !pending.is_refused);
        let receiver = target.receiver;
        is_to_be_told && (self.over_tcp.contains(receiver) || self.is_silent(receiver))
    }

    /// Notes that a receiver refuses a version; whether it is the first time.
    pub fn note_refused(&mut self, target: &Target) -> bool {
        let pending = self.pending.get_mut(target);
        pending.is_some_and(|pending| !std::mem::replace(&mut pending.is_refused, true))
    }

    /// Forgets what a receiver has acknowledged, over TCP or UDP; whether it did not acknowledge
    /// anything before.
    pub fn note_acknowledged(
        &mut self,
        target: &Target,
        (now_millis, is_over_tcp): (u64, bool),
    ) -> bool {
        let was_silent = self.note_answer(target.receiver, (now_millis, is_over_tcp));
        if let Some((id, signature)) = self.pending.get(target).and_then(|it| it.sent.clone()) {
            let zone = target.zone.clone();
            self.over_tcp.note_udp(target.receiver, || UdpMessage { zone, id, signature });
        }
        self.remove(target);
        was_silent
    }

    /// Notes that a receiver acknowledges any version, over TCP or UDP, and has it sent all that
    /// was parked; whether it did not acknowledge anything before.
    pub fn note_answer(
        &mut self,
        address: SocketAddr,
        (now_millis, is_over_tcp): (u64, bool),
    ) -> bool {
        let Some(receiver) = self.receivers.get_mut(&address) else { return false };
        receiver.acknowledged = Some(now_millis);
        let was_silent = receiver.silent.take().is_some();
        match is_over_tcp {
            true if was_silent => self.over_tcp.add(address),
            true => {} // it may have acknowledged over UDP meanwhile
            false => self.over_tcp.remove(address),
        }
        let (probe, parked) = (receiver.probe.take(), std::mem::take(&mut receiver.parked));
        self.silent -= usize::from(was_silent);
        for zone in probe.into_iter().chain(parked.into_values()) {
            let target = Target { zone, receiver: address };
            self.leave_queue(&target);
            self.enter_fresh(&target);
        }
        was_silent
    }

    /// Forgets what waits; whether there was anything.
    pub fn remove(&mut self, target: &Target) -> bool {
        let is_removed = self.forget(target);
        if self.receivers.get(&target.receiver).is_some_and(|it| it.pending == 0) {
            let gone = self.receivers.remove(&target.receiver);
            self.silent -= usize::from(gone.is_some_and(|it| it.silent.is_some()));
        }
        is_removed
    }

    /// Forgets what waits, but not its receiver; has another zone of it sent if it was to be sent
    /// this one. Whether there was anything.
    fn forget(&mut self, target: &Target) -> bool {
        self.leave_queue(target);
        let Some(pending) = self.pending.remove(target) else { return false };
        if let Some(receiver) = self.receivers.get_mut(&target.receiver) {
            receiver.pending -= 1;
            if let (Some(_), Queue::Repeated((due, _))) = (&receiver.probe, pending.queue) {
                receiver.probe = None;
                self.probe(target.receiver, due);
            }
        }
        true
    }

    /// Puts what waits among what was not sent to its receiver yet.
    fn enter_fresh(&mut self, target: &Target) {
        let place = next_place(&mut self.last, 0);
        let Some(pending) = self.pending.get_mut(target) else { return };
        pending.queue = Queue::Fresh(place);
        let cause = pending.cause as usize;
        let receiver = self.receivers.entry(target.receiver).or_default();
        receiver.fresh[cause].insert(place, target.zone.clone());
        if !std::mem::replace(&mut receiver.has_turn[cause], true) {
            self.turns[cause].push_back(target.receiver);
        }
    }

    /// Puts what waits among what is sent at a time.
    fn repeat(&mut self, target: &Target, due: u64) {
        let place = next_place(&mut self.last, due);
        if let Some(pending) = self.pending.get_mut(target) {
            pending.queue = Queue::Repeated(place);
            self.repeated.insert(place, target.clone());
        }
    }

    /// Puts what waits among what waits for its receiver to acknowledge anything.
    fn park(&mut self, target: &Target) {
        let place = next_place(&mut self.last, 0);
        let Some(pending) = self.pending.get_mut(target) else { return };
        pending.queue = Queue::Parked(place);
        let receiver = self.receivers.entry(target.receiver).or_default();
        receiver.parked.insert(place, target.zone.clone());
    }

    /// Parks all that waits for a receiver.
    fn park_all(&mut self, receiver: SocketAddr) {
        let is_of = |target: &&Target| target.receiver == receiver;
        let mut all: Vec<Target> = self.repeated.values().filter(is_of).cloned().collect();
        let fresh = self.receivers.get(&receiver).into_iter().flat_map(|it| it.fresh.iter());
        let fresh = fresh.flat_map(BTreeMap::values);
        all.extend(fresh.map(|zone| Target { zone: zone.clone(), receiver }));
        for target in all {
            self.leave_queue(&target);
            self.park(&target);
        }
    }

    /// Has the zone of a silent receiver sent that was parked first, at a time, and no other.
    fn probe(&mut self, address: SocketAddr, due: u64) {
        let former = self.receivers.get_mut(&address).and_then(|it| it.probe.take());
        if let Some(zone) = former {
            let target = Target { zone, receiver: address };
            self.leave_queue(&target);
            self.park(&target);
        }
        let Some(receiver) = self.receivers.get_mut(&address) else { return };
        if let Some((_, zone)) = receiver.parked.pop_first() {
            receiver.probe = Some(zone.clone());
            self.repeat(&Target { zone, receiver: address }, due);
        }
    }

    /// Takes what waits out of its queue.
    fn leave_queue(&mut self, target: &Target) {
        let Some(pending) = self.pending.get(target) else { return };
        let receiver = self.receivers.get_mut(&target.receiver);
        match (pending.queue, receiver) {
            (Queue::Fresh(place), Some(receiver)) => {
                let cause = pending.cause as usize;
                receiver.fresh[cause].remove(&place);
                let is_empty = receiver.fresh[cause].is_empty();
                if is_empty && std::mem::take(&mut receiver.has_turn[cause]) {
                    self.turns[cause].retain(|address| *address != target.receiver);
                }
            }
            (Queue::Parked(place), Some(receiver)) => _ = receiver.parked.remove(&place),
            (Queue::Repeated(place), _) => _ = self.repeated.remove(&place),
            _ => {}
        }
    }

    /// Lets other receivers have their turn.
    fn end_turn(&mut self, receiver: SocketAddr) {
        for turns in &mut self.turns {
            if turns.front() == Some(&receiver) {
                turns.rotate_left(1);
            }
        }
    }
}

/// The next place in a queue, at a time.
fn next_place(last: &mut u64, millis: u64) -> Place {
    *last += 1;
    (millis, *last)
}

/// The time from an attempt to the next, after so many.
fn delay(attempts: u32) -> u64 {
    RETRY_MILLIS.saturating_mul(1 << attempts.min(16)).min(RETRY_MILLIS_MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn target(zone: &str, port: u16) -> Target {
        let receiver = SocketAddr::from(([192, 0, 2, 1], port));
        Target { zone: zone.parse().unwrap(), receiver }
    }

    /// Sends what is due at a time; returns what it was.
    fn send(schedule: &mut Schedule, now: u64) -> Option<Target> {
        let target = schedule.due(now)?;
        schedule.note_sent(&target, (1, None), now).unwrap();
        Some(target)
    }

    #[test]
    fn a_receiver_is_told_over_tcp_once_it_is_silent_and_until_it_acknowledges_over_udp() {
        let (mut schedule, one) = (Schedule::default(), target("a.test", 53));
        let zones = ["b.test", "c.test"].map(|zone| target(zone, 53));
        schedule.add(one.clone(), 7, 0);
        let mut now = 0;
        for attempt in 0..ATTEMPTS_MAX {
            assert!(!schedule.is_told_over_tcp(&one), "{attempt}");
            now = schedule.next_millis().unwrap();
            send(&mut schedule, now).unwrap();
        }
        assert_eq!((now, schedule.is_told_over_tcp(&one)), (30_000, true));
        zones.iter().for_each(|zone| _ = schedule.add(zone.clone(), 7, now));
        assert!(schedule.note_acknowledged(&one, (now, true)));
        assert!(schedule.is_told_over_tcp(&zones[0]), "over UDP it has acknowledged nothing");
        assert!(schedule.note_refused(&zones[0]));
        assert!(!schedule.is_told_over_tcp(&zones[0]), "it has the message");
        schedule.note_acknowledged(&zones[0], (now, false));
        assert!(!schedule.is_told_over_tcp(&zones[1]));
    }

    /// A schedule with a receiver that has acknowledged its only message over TCP alone, and when.
    fn over_tcp() -> (Schedule, Target, u64) {
        let (mut schedule, one) = (Schedule::default(), target("a.test", 53));
        schedule.add(one.clone(), 7, 0);
        let mut now = 0;
        while schedule.silent() == 0 {
            now = schedule.next_millis().unwrap();
            send(&mut schedule, now).unwrap();
        }
        assert!(schedule.note_acknowledged(&one, (now, true)));
        assert_eq!((schedule.len(), schedule.receivers.len()), (0, 0));
        (schedule, one, now)
    }

    #[test]
    fn a_receiver_that_acknowledges_over_tcp_alone_is_told_so_at_once_of_the_next_version() {
        let (mut schedule, one, now) = over_tcp();
        schedule.add(one.clone(), 8, now + 1000);
        assert_eq!(send(&mut schedule, now + 1000), Some(one.clone()));
        assert!(schedule.is_told_over_tcp(&one) && schedule.silent() == 0);
        assert!(!schedule.note_acknowledged(&one, (now + 1001, true)));
        assert!(!schedule.is_told_over_tcp(&one), "nothing waits");
        schedule.add(one.clone(), 9, now + 2000);
        assert!(schedule.is_told_over_tcp(&one));
    }

    #[test]
    fn a_reply_over_udp_to_the_last_message_is_known_though_tcp_was_faster() {
        let (mut schedule, one, now) = over_tcp();
        let is_known = |schedule: &Schedule, id| {
            schedule.over_tcp.last_over_udp(one.receiver, &one.zone, id).is_some()
        };
        assert!(is_known(&schedule, 1), "the one that was acknowledged over TCP first");
        schedule.add(one.clone(), 8, now);
        schedule.note_sent(&one, (2, None), now).unwrap();
        schedule.note_acknowledged(&one, (now, true));
        assert!(!is_known(&schedule, 1) && is_known(&schedule, 2));
    }

    #[test]
    fn an_acknowledgement_over_tcp_behind_one_over_udp_does_not_bring_tcp_back() {
        let (mut schedule, one, now) = over_tcp();
        let other = target("b.test", 53);
        schedule.add(one.clone(), 8, now);
        schedule.add(other.clone(), 8, now);
        (0..2).for_each(|_| _ = send(&mut schedule, now));
        schedule.note_acknowledged(&one, (now, false));
        assert!(!schedule.note_answer(one.receiver, (now, true)));
        schedule.note_acknowledged(&other, (now, true));
        schedule.add(one.clone(), 9, now);
        assert!(!schedule.is_told_over_tcp(&one));
    }

    #[test]
    fn a_silent_receiver_that_acknowledges_a_superseded_version_is_sent_the_newer_one_at_once() {
        let (mut schedule, one) = (Schedule::default(), target("a.test", 53));
        schedule.add(one.clone(), 7, 0);
        let mut now = 0;
        while schedule.silent() == 0 {
            now = schedule.next_millis().unwrap();
            send(&mut schedule, now).unwrap();
        }
        assert!(schedule.add(one.clone(), 8, now));
        assert_eq!(schedule.due(now), None, "it was asked a moment ago");
        assert!(schedule.note_answer(one.receiver, (now, true)));
        assert_eq!((schedule.silent(), schedule.pending(&one).unwrap().serial), (0, 8));
        assert_eq!(send(&mut schedule, now), Some(one.clone()));
        assert!(schedule.is_told_over_tcp(&one));
    }

    #[test]
    fn what_is_postponed_is_due_two_seconds_later_and_counts_as_no_attempt() {
        let (mut schedule, one, now) = over_tcp();
        let other = target("b.test", 54);
        schedule.add(one.clone(), 8, now);
        schedule.add(other.clone(), 8, now);
        assert_eq!(schedule.due(now), Some(one.clone()));
        schedule.postpone(&one, now);
        assert_eq!(schedule.due(now), Some(other.clone()), "it keeps no other waiting");
        schedule.note_acknowledged(&other, (now, false));
        assert_eq!((schedule.due(now), schedule.next_millis()), (None, Some(now + RETRY_MILLIS)));
        assert_eq!(schedule.due(now + RETRY_MILLIS), Some(one.clone()));
        assert_eq!(schedule.pending(&one).unwrap().attempts, 0);
    }

    #[test]
    fn a_message_is_repeated_at_growing_intervals_until_it_is_acknowledged() {
        let (mut schedule, one, other) =
            (Schedule::default(), target("a.test", 53), target("b.test", 53));
        schedule.add(one.clone(), 7, 1000);
        let (mut times, mut now) = (Vec::new(), 1000);
        for id in 0..12 {
            now = schedule.next_millis().unwrap().max(now);
            assert_eq!(schedule.due(now), Some(one.clone()));
            times.push(now);
            let (pending, is_silent) = schedule.note_sent(&one, (id, None), now).unwrap();
            assert_eq!((pending.attempts, is_silent), (u32::from(id) + 1, false));
            assert_eq!(schedule.due(now), None);
            // The receiver answers, but not for this zone.
            schedule.add(other.clone(), u32::from(id), now);
            assert!(!schedule.note_acknowledged(&other, (now, false)));
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
        assert_eq!((schedule.len(), schedule.next_millis()), (1, Some(0)));
        assert!(schedule.awaiting(&one, 1).is_none());
    }

    #[test]
    fn receivers_take_turns_and_what_was_not_sent_yet_goes_before_what_is_repeated() {
        let mut schedule = Schedule::default();
        for zone in ["a.test", "b.test", "c.test"] {
            schedule.add(target(zone, 1), 1, 0);
        }
        schedule.add(target("a.test", 2), 1, 0);
        let order: Vec<_> = (0..4).map(|now| send(&mut schedule, now).unwrap()).collect();
        let expected =
            [target("a.test", 1), target("a.test", 2), target("b.test", 1), target("c.test", 1)];
        assert_eq!(order, expected);
        schedule.add(target("d.test", 2), 1, 5000);
        schedule.add(target("e.test", 2), 1, 5000);
        let order: Vec<_> = (0..4).map(|_| send(&mut schedule, 5000).unwrap()).collect();
        let expected =
            [target("d.test", 2), target("e.test", 2), target("a.test", 1), target("a.test", 2)];
        assert_eq!(order, expected);
    }

    #[test]
    fn a_change_is_sent_before_the_announcements_of_a_start_and_keeps_none_of_them_waiting() {
        let mut schedule = Schedule::default();
        for number in 0..1000 {
            let zone = target(&format!("z{number}.test"), 1 + number % 2);
            schedule.add_for(zone, (1, Cause::First), 0);
        }
        (0..9).for_each(|_| _ = send(&mut schedule, 0));
        schedule.add(target("z999.test", 2), 2, 0);
        schedule.add(target("changed.test", 1), 1, 0);
        let next = [send(&mut schedule, 0), send(&mut schedule, 0)].map(Option::unwrap);
        assert_eq!(next, [target("z999.test", 2), target("changed.test", 1)]);
        (0..99).for_each(|it| _ = schedule.add(target(&format!("c{it}.test"), 1), 1, 0));
        let is_first = |it: &Target| it.zone.to_string().starts_with('z');
        let sent: Vec<_> = (0..80).filter_map(|_| send(&mut schedule, 0)).collect();
        assert_eq!(sent.iter().filter(|it| is_first(it)).count(), 10, "each eighth");
    }

    #[test]
    fn a_change_is_sent_at_once_though_two_dead_receivers_have_many_zones() {
        let mut schedule = Schedule::default();
        for number in 0..2000 {
            let zone = format!("z{number}.test");
            (1..3).for_each(|port| _ = schedule.add(target(&zone, port), 1, 0));
        }
        let mut now = 0;
        for _ in 0..20_000 {
            now += 5;
            send(&mut schedule, now);
        }
        assert_eq!((schedule.silent(), schedule.len()), (2, 4000));
        schedule.add(target("live.test", 3), 1, now);
        let next: Vec<_> = (0..2).filter_map(|_| send(&mut schedule, now)).collect();
        assert!(next.contains(&target("live.test", 3)), "{next:?}");
    }

    #[test]
    fn a_silent_receiver_is_sent_one_zone_at_a_time_and_all_once_it_acknowledges_one() {
        let mut schedule = Schedule::default();
        for number in 0..100 {
            schedule.add(target(&format!("z{number}.test"), 1), 1, 0);
        }
        let mut now = 0;
        while schedule.silent() == 0 {
            now += 5;
            send(&mut schedule, now);
        }
        let mut probes = Vec::new();
        for _ in 0..10 {
            now = schedule.next_millis().unwrap();
            probes.push(send(&mut schedule, now).unwrap());
            assert_eq!(schedule.due(now), None, "one at a time");
        }
        probes.sort_by_key(|it| it.zone.to_string());
        probes.dedup();
        assert_eq!(probes.len(), 10, "another zone each time");
        schedule.add(target("new.test", 1), 1, now + 1);
        assert_eq!(schedule.due(now + 1), None, "it was asked a moment ago");
        schedule.add(target("newer.test", 1), 1, now + RETRY_MILLIS);
        assert_eq!(send(&mut schedule, now + RETRY_MILLIS), Some(target("newer.test", 1)));
        assert!(schedule.note_acknowledged(&target("newer.test", 1), (now + RETRY_MILLIS, false)));
        assert_eq!((schedule.silent(), schedule.len()), (0, 101));
        let mut count = 0;
        while let Some(target) = schedule.due(now + RETRY_MILLIS) {
            schedule.note_acknowledged(&target, (now + RETRY_MILLIS, false));
            count += 1;
        }
        assert_eq!((count, schedule.len()), (101, 0));
        assert!(schedule.receivers.is_empty() && schedule.repeated.is_empty());
    }

    #[test]
    fn a_silent_receiver_whose_zones_are_gone_counts_no_more() {
        let mut schedule = Schedule::default();
        (0..5).for_each(|it| _ = schedule.add(target(&format!("z{it}.test"), 1), 1, 0));
        let mut now = 0;
        while schedule.silent() == 0 {
            now += 1000;
            while send(&mut schedule, now).is_some() {}
        }
        now += RETRY_MILLIS_MAX;
        while let Some(target) = schedule.due(now) {
            schedule.remove(&target);
        }
        assert_eq!((schedule.silent(), schedule.len()), (0, 0));
    }

    #[test]
    fn a_refusal_of_a_version_is_told_once() {
        let (mut schedule, one) = (Schedule::default(), target("a.test", 53));
        schedule.add(one.clone(), 7, 0);
        assert!(schedule.note_refused(&one) && !schedule.note_refused(&one));
        assert!(schedule.pending(&one).unwrap().is_refused);
        schedule.add(one.clone(), 8, 0);
        assert!(schedule.note_refused(&one));
        assert!(!schedule.note_refused(&target("b.test", 53)), "nothing waits");
    }
}
