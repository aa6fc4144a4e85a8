//! Messages that wait to be sent over TCP, and what has become of those that were.
//!
//! What waits is a zone and a receiver: the message is made, and signed, when a thread sends it.

use super::schedule::Target;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Messages that wait for a thread; one more is left out.
const WAITING_MAX: usize = 1024;
/// Messages that are sent to one receiver at once: half of the threads, as one that has gone away
/// keeps each of them for seconds.
const OF_RECEIVER_MAX: usize = 4;

/// A message to be sent over TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpMessage {
    /// The zone that is announced, and the server that is told.
    pub target: Target,
    /// The serial for which the message was put into the queue.
    pub serial: u32,
}

/// What has become of a message that was sent over TCP.
#[derive(Debug, PartialEq, Eq)]
pub struct TcpResult {
    /// The zone that was announced, and the server that was told.
    pub target: Target,
    /// The serial that was announced.
    pub serial: u32,
    /// Why the receiver does not acknowledge it, in words, if it has replied so.
    pub refusal: Option<String>,
}

/// Messages that wait for a thread, and what has become of those that were sent.
#[derive(Default)]
pub struct TcpQueue(Mutex<Messages>);

/// What the threads and the sender share.
#[derive(Default)]
pub struct Messages {
    /// What waits for a thread, in order, each zone once for a receiver.
    waiting: VecDeque<TcpMessage>,
    /// What threads send now, one each.
    running: Vec<Target>,
    /// Replies that the sender has not taken yet.
    results: Vec<TcpResult>,
}

impl TcpQueue {
    /// What waits, what is sent, and what has come.
    pub fn lock(&self) -> MutexGuard<'_, Messages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the replies that have come.
    pub fn take_results(&self) -> Vec<TcpResult> {
        std::mem::take(&mut self.lock().results)
    }

    /// Whether a message may wait.
    pub fn has_room(&self, target: &Target) -> bool {
        let messages = self.lock();
        messages.waiting.len() < WAITING_MAX
            || messages.waiting.iter().any(|it| it.target == *target)
    }
}

impl Messages {
    /// Has a message wait, in the place of one about its zone that waits for its receiver; if
    /// `is_only`, in that of all which wait for the receiver. False if there is no room.
    #[must_use]
    pub fn add(&mut self, message: TcpMessage, is_only: bool) -> bool {
        let receiver = message.target.receiver;
        let gives_way = |it: &TcpMessage| match is_only {
            true => it.target.receiver == receiver,
            false => it.target == message.target,
        };
        let Some(place) = self.waiting.iter().position(gives_way) else {
            let has_room = self.waiting.len() < WAITING_MAX;
            self.waiting.extend(has_room.then_some(message));
            return has_room;
        };
        let mut is_first = true;
        self.waiting.retain(|it| !gives_way(it) || std::mem::take(&mut is_first));
        self.waiting[place] = message; // the first one of them has stayed
        true
    }

    /// How many messages threads send now.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Takes the message that a thread sends next. One about a zone that is being sent to its
    /// receiver waits until that has ended, and so does one to a receiver that is sent several.
    pub fn begin(&mut self) -> Option<TcpMessage> {
        let may_begin = |it: &TcpMessage| {
            let of_receiver =
                self.running.iter().filter(|sent| sent.receiver == it.target.receiver);
            !self.running.contains(&it.target) && of_receiver.count() < OF_RECEIVER_MAX
        };
        let place = self.waiting.iter().position(may_begin)?;
        let message = self.waiting.remove(place)?;
        self.running.push(message.target.clone());
        Some(message)
    }

    /// Notes that a thread has sent a message, and its result if there is a reply: what waits for
    /// the same version has it then.
    pub fn end(&mut self, target: &Target, result: Option<TcpResult>) {
        self.running.retain(|it| it != target);
        if let Some(result) = result {
            let is_known = |it: &TcpMessage| it.target == *target && it.serial == result.serial;
            self.waiting.retain(|it| !is_known(it));
            self.results.push(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    /// A message about a serial of a zone to a port.
    fn message(zone: u32, port: u16, serial: u32) -> TcpMessage {
        let zone = format!("z{zone}.test").parse().expect("a name");
        let receiver = SocketAddr::from(([192, 0, 2, 1], port));
        TcpMessage { target: Target { zone, receiver }, serial }
    }

    #[test]
    fn a_message_takes_the_place_of_the_one_about_its_zone_and_what_has_no_room_is_left_out() {
        let queue = TcpQueue::default();
        (0..1024).for_each(|zone| assert!(queue.lock().add(message(zone, 1, 7), false)));
        assert!(!queue.has_room(&message(1024, 1, 7).target));
        assert!(!queue.lock().add(message(1024, 1, 7), false));
        assert!(queue.has_room(&message(0, 1, 8).target));
        assert!(queue.lock().add(message(0, 1, 8), false));
        assert_eq!(queue.lock().begin(), Some(message(0, 1, 8)));
        assert!(queue.has_room(&message(1024, 1, 7).target));
    }

    #[test]
    fn one_message_waits_for_a_receiver_that_is_silent_where_its_first_one_did() {
        let mut messages = Messages::default();
        for (zone, port) in [(1, 1), (1, 2), (2, 3), (2, 2), (3, 2)] {
            assert!(messages.add(message(zone, port, 7), false));
        }
        assert!(messages.add(message(9, 2, 7), true));
        let order: Vec<_> = std::iter::from_fn(|| messages.begin()).collect();
        assert_eq!(order, [message(1, 1, 7), message(9, 2, 7), message(2, 3, 7)]);
    }

    #[test]
    fn four_messages_are_sent_to_a_receiver_at_once_and_those_to_others_do_not_wait_behind_it() {
        let mut messages = Messages::default();
        (0..6).for_each(|zone| assert!(messages.add(message(zone, 1, 7), false)));
        assert!(messages.add(message(9, 2, 7), false));
        let order: Vec<_> = std::iter::from_fn(|| messages.begin()).collect();
        assert_eq!(order.len(), 5);
        assert_eq!(order[3..], [message(3, 1, 7), message(9, 2, 7)]);
        messages.end(&order[0].target, None);
        assert_eq!(messages.begin(), Some(message(4, 1, 7)));
        assert_eq!(messages.begin(), None);
    }

    #[test]
    fn a_version_waits_while_the_one_before_is_sent_and_is_left_out_if_that_was_told() {
        let (mut messages, target) = (Messages::default(), message(1, 1, 7).target);
        let result = |serial| {
            let (target, refusal) = (message(1, 1, 7).target, None);
            Some(TcpResult { target, serial, refusal })
        };
        assert!(messages.add(message(1, 1, 7), false));
        assert_eq!(messages.begin(), Some(message(1, 1, 7)));
        assert!(messages.add(message(1, 1, 8), false));
        assert_eq!(messages.begin(), None, "two connections would overtake each other");
        messages.end(&target, result(7));
        assert_eq!(messages.begin(), Some(message(1, 1, 8)));
        assert!(messages.add(message(1, 1, 9), false));
        messages.end(&target, result(9)); // the version in force when it was sent
        assert_eq!((messages.begin(), messages.running()), (None, 0));
    }
}
