//! The queue of messages that change zones, and what is counted of them.

use super::relay::RelayedUpdate;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use zonda_deferral::{Deferred, Queue};
use zonda_engine::To;

/// Messages that wait at most.
const WAITING_MAX: usize = 1000;
/// Octets that they have at most, and one message more.
const OCTETS_MAX: usize = 4 << 20;
/// Messages that are carried out together at most.
const BATCH_MAX: usize = 250;
/// Octets that these have at most, and one message more: their changes are one group of the
/// journal, and their records are in memory at the same time.
const BATCH_OCTETS_MAX: usize = 256 << 10;

/// The queue of messages that change zones. Workers put messages into it, and never wait. The
/// publisher takes those that it carries out, a thread of their own those that are forwarded.
#[derive(Default)]
pub struct UpdateQueue {
    waiting: Mutex<WaitingUpdates>,
    /// Is told when a message to be forwarded comes, and when the queue is closed.
    changed: Condvar,
    /// What has become of messages.
    pub counters: UpdateCounters,
}

/// Tells the publisher that messages wait, unless it was told before, as the argument says; false
/// if it has failed.
pub type Wake = Box<dyn Fn(bool) -> bool + Send>;

/// The messages that wait.
#[derive(Default)]
struct WaitingUpdates {
    /// The messages that the publisher carries out.
    messages: VecDeque<Deferred>,
    /// The messages that are to be forwarded to primaries.
    relays: VecDeque<Deferred>,
    /// Octets of all these messages.
    octets: usize,
    /// Tells the publisher of messages, once it takes them and until the queue is closed.
    wake: Option<Wake>,
    /// Whether the publisher was told of messages that it has not taken yet.
    is_told: bool,
    /// Messages that primaries were asked about, with what came of that.
    relayed: VecDeque<RelayedUpdate>,
    /// Messages that were taken out, and are not answered yet.
    taken: usize,
    /// Messages that are being forwarded, or were.
    relaying: usize,
    /// Whether the server stops.
    is_closed: bool,
}

/// Counters of messages that change zones; those are in none of them that the engine has answered,
/// as their clients have no right in the zone.
#[derive(Debug, Default)]
pub struct UpdateCounters {
    /// Messages that have changed a zone.
    pub changed: AtomicU64,
    /// Messages that were carried out and have changed nothing.
    pub unchanged: AtomicU64,
    /// Messages whose client may not change what they change.
    pub refused: AtomicU64,
    /// Messages of which a prerequisite was not met.
    pub unmet: AtomicU64,
    /// Messages that were not as they should be.
    pub invalid: AtomicU64,
    /// Messages that could not be carried out.
    pub failed: AtomicU64,
    /// Messages for which the queue had no room.
    pub busy: AtomicU64,
    /// Messages that clients have sent once more, and that were answered as before.
    pub repeated: AtomicU64,
    /// Messages that were forwarded to a primary, and have its reply.
    pub relayed: AtomicU64,
    /// Messages that no primary has replied to.
    pub relay_failed: AtomicU64,
    /// Times that the messages which waited were carried out together.
    pub batches: AtomicU64,
}

impl UpdateQueue {
    /// Locks the messages. What a panic has left behind is whole.
    fn lock(&self) -> MutexGuard<'_, WaitingUpdates> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of messages that wait.
    pub fn waiting(&self) -> usize {
        self.lock().count()
    }

    /// Has the publisher told of messages from now on, which takes them. Those that wait are
    /// answered SERVFAIL if it has failed.
    pub fn open(&self, wake: Wake) {
        let mut waiting = self.lock();
        let former = waiting.wake.replace(wake);
        let mut failed = Vec::new();
        if !waiting.tell() {
            failed.extend(waiting.take_back());
        }
        drop(waiting);
        drop(former);
        self.counters.failed.fetch_add(failed.len() as u64, Relaxed);
        failed.into_iter().for_each(Deferred::fail);
    }

    /// Answers the messages that the publisher has not taken SERVFAIL, and has none come any more
    /// that it were to carry out: it takes no messages from now on.
    pub fn abandon(&self) {
        self.open(Box::new(|_| false));
    }

    /// Takes as many messages as are carried out together, if any wait.
    pub fn take(self: &Arc<Self>) -> Option<Batch> {
        let mut waiting = self.lock();
        waiting.is_told = false;
        let (mut messages, mut octets) = (VecDeque::new(), 0);
        while messages.len() < BATCH_MAX
            && octets < BATCH_OCTETS_MAX
            && let Some(message) = waiting.messages.pop_front()
        {
            octets += message.query.len();
            messages.push_back(message);
        }
        if messages.is_empty() {
            return None;
        }
        waiting.octets -= octets;
        waiting.taken += messages.len();
        waiting.tell(); // of the rest
        Some(Batch {
            queue: Arc::clone(self),
            count: messages.len(),
            messages,
            relayed: VecDeque::new(),
        })
    }

    /// Waits for messages that are to be forwarded or were, and takes all; none once the queue is
    /// closed and empty.
    pub fn take_relays(self: &Arc<Self>) -> Option<Batch> {
        let mut waiting = self.lock();
        while waiting.relays.is_empty() && waiting.relayed.is_empty() {
            if waiting.is_closed && waiting.relaying == 0 {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let messages = std::mem::take(&mut waiting.relays);
        waiting.octets -= messages.iter().map(|message| message.query.len()).sum::<usize>();
        let relayed = std::mem::take(&mut waiting.relayed);
        waiting.relaying -= relayed.len();
        let count = messages.len() + relayed.len();
        waiting.taken += count;
        Some(Batch { queue: Arc::clone(self), count, messages, relayed })
    }

    /// Notes that a message is forwarded, of which [`finish_relay`](Self::finish_relay) tells the
    /// end.
    pub fn begin_relay(&self) {
        self.lock().relaying += 1;
    }

    /// Takes a message that was forwarded.
    pub fn finish_relay(&self, relayed: RelayedUpdate) {
        self.lock().relayed.push_back(relayed);
        self.changed.notify_one();
    }

    /// Notes that a message could not be forwarded after all.
    pub fn abandon_relay(&self) {
        self.lock().relaying -= 1;
    }

    /// Has no more messages taken in, and the thread end that forwards, once it has no more to do.
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        let wake = waiting.wake.take();
        drop(waiting);
        // The publisher ends when nothing can send it work; `end_updates` has it take no more.
        drop(wake);
        self.changed.notify_all();
    }
}

impl WaitingUpdates {
    /// The number of messages that wait.
    fn count(&self) -> usize {
        self.messages.len() + self.relays.len()
    }

    /// Tells the publisher of messages, if there are any and it does not know; false if it has
    /// failed.
    fn tell(&mut self) -> bool {
        let Some(wake) = self.wake.as_ref().filter(|_| !self.messages.is_empty()) else {
            return true;
        };
        self.is_told = wake(self.is_told);
        self.is_told
    }

    /// Takes all messages back that the publisher was to carry out.
    fn take_back(&mut self) -> impl Iterator<Item = Deferred> + use<> {
        let messages = std::mem::take(&mut self.messages);
        self.octets -= messages.iter().map(|message| message.query.len()).sum::<usize>();
        messages.into_iter()
    }
}

/// Messages that were taken out of the queue. When this is dropped, those that are still in it, as
/// something has panicked, are answered SERVFAIL, and all of them count as answered.
pub struct Batch {
    queue: Arc<UpdateQueue>,
    count: usize,
    /// The messages, in the order in which they came.
    pub messages: VecDeque<Deferred>,
    /// The messages that were forwarded.
    pub relayed: VecDeque<RelayedUpdate>,
}

impl Drop for Batch {
    fn drop(&mut self) {
        let left = self.messages.len() + self.relayed.len();
        self.queue.counters.failed.fetch_add(left as u64, Relaxed);
        let relayed = self.relayed.drain(..).map(|relayed| relayed.message);
        self.messages.drain(..).chain(relayed).for_each(Deferred::fail);
        self.queue.lock().taken -= self.count;
    }
}

impl Queue for UpdateQueue {
    fn put(&self, queries: &mut Vec<Deferred>) {
        let mut waiting = self.lock();
        let mut count = 0;
        for query in &*queries {
            let has_room = waiting.count() + count < WAITING_MAX;
            if !has_room || waiting.octets >= OCTETS_MAX || waiting.is_closed {
                break;
            }
            waiting.octets += query.query.len();
            count += 1;
        }
        for query in queries.drain(..count) {
            match query.deferral.to {
                To::Relay => waiting.relays.push_back(query),
                _ => waiting.messages.push_back(query),
            }
        }
        if !waiting.tell() {
            queries.extend(waiting.take_back());
        }
        let is_to_relay = !waiting.relays.is_empty();
        drop(waiting);
        self.counters.busy.fetch_add(queries.len() as u64, Relaxed);
        if is_to_relay {
            self.changed.notify_one();
        }
    }

    fn is_idle(&self) -> bool {
        let waiting = self.lock();
        let is_relaying = waiting.relaying > 0 || !waiting.relayed.is_empty();
        waiting.count() == 0 && waiting.taken == 0 && !is_relaying
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tokio::sync::mpsc;
    use zonda_deferral::ReplyTo;
    use zonda_engine::{Deferral, Peer, Transport};

    /// The response code of a message that could not be carried out.
    const SERVFAIL: u8 = 2;

    /// A message that the publisher carries out, and what receives the reply.
    fn answered_message() -> (Deferred, mpsc::Receiver<Vec<u8>>) {
        let (reply_to, reply) = mpsc::channel(1);
        (Deferred { reply_to: ReplyTo::Connection(reply_to), ..message(100) }, reply)
    }

    /// A message of so many octets.
    fn message(octets: usize) -> Deferred {
        message_to(To::Update, octets)
    }

    /// A message of so many octets that waits for something.
    fn message_to(to: To, octets: usize) -> Deferred {
        let (address, listener) = (([192, 0, 2, 1], 53).into(), 0);
        let peer = Peer::new(address, Transport::Tcp, listener);
        let (deferral, reply_to) = (Deferral::new(to, 0), mpsc::channel(1).0);
        Deferred { query: vec![0; octets], peer, deferral, reply_to: ReplyTo::Connection(reply_to) }
    }

    #[test]
    fn a_message_for_which_there_is_no_room_is_left_and_counted() {
        let queue = Arc::<UpdateQueue>::default();
        let mut messages: Vec<_> = (0..WAITING_MAX + 3).map(|_| message(100)).collect();
        queue.put(&mut messages);
        assert_eq!((messages.len(), queue.waiting()), (3, WAITING_MAX));
        assert_eq!(queue.counters.busy.load(Relaxed), 3);
        let batch = queue.take().unwrap();
        assert_eq!(batch.messages.len(), BATCH_MAX);
        messages.truncate(1);
        queue.put(&mut messages);
        assert!(messages.is_empty(), "there is room again");
    }

    #[test]
    fn octets_have_a_bound_as_well() {
        let queue = Arc::<UpdateQueue>::default();
        let mut messages: Vec<_> = (0..100).map(|_| message(60_000)).collect();
        queue.put(&mut messages);
        assert_eq!(queue.waiting(), OCTETS_MAX.div_ceil(60_000));
        assert_eq!(queue.take().unwrap().messages.len(), BATCH_OCTETS_MAX.div_ceil(60_000));
    }

    #[test]
    fn the_publisher_is_told_once_of_messages_that_it_has_not_taken() {
        let (queue, told) = (Arc::<UpdateQueue>::default(), Arc::<AtomicU64>::default());
        let times = |expected| assert_eq!(told.load(Relaxed), expected);
        queue.put(&mut vec![message(100)]);
        let counter = Arc::clone(&told);
        queue.open(Box::new(move |is_told| {
            counter.fetch_add(u64::from(!is_told), Relaxed);
            true
        }));
        times(1);
        queue.put(&mut (0..BATCH_MAX).map(|_| message(100)).collect());
        times(1);
        assert_eq!(queue.take().unwrap().messages.len(), BATCH_MAX);
        times(2);
        assert_eq!(queue.take().unwrap().messages.len(), 1);
        assert!(queue.take().is_none());
        times(2);
        queue.put(&mut vec![message_to(To::Relay, 100)]);
        times(2);
        queue.put(&mut vec![message(100)]);
        times(3);
    }

    #[test]
    fn messages_for_a_publisher_that_has_failed_are_left_or_answered() {
        let queue = Arc::<UpdateQueue>::default();
        let (waiting, mut reply) = answered_message();
        queue.put(&mut vec![waiting, message_to(To::Relay, 100)]);
        queue.abandon();
        assert_eq!(reply.try_recv().unwrap()[3] & 0x0f, SERVFAIL);
        let mut messages = vec![message(100)];
        queue.put(&mut messages);
        assert_eq!((messages.len(), queue.waiting()), (1, 1), "what is to be forwarded waits");
    }

    #[test]
    fn messages_of_a_batch_that_a_panic_drops_are_answered() {
        let queue = Arc::<UpdateQueue>::default();
        let (first, mut reply) = answered_message();
        queue.put(&mut vec![first]);
        drop(queue.take().unwrap());
        assert_eq!(reply.try_recv().unwrap()[3] & 0x0f, SERVFAIL);
        assert!(queue.is_idle());
        let (second, mut reply) = answered_message();
        queue.begin_relay();
        queue.finish_relay(RelayedUpdate { message: second, result: Err(String::new()) });
        drop(queue.take_relays().unwrap());
        assert_eq!(reply.try_recv().unwrap()[3] & 0x0f, SERVFAIL);
        assert!(queue.is_idle());
    }

    #[test]
    fn the_queue_is_idle_when_what_was_taken_is_answered_and_ends_when_it_is_closed() {
        let queue = Arc::<UpdateQueue>::default();
        queue.put(&mut vec![message(100)]);
        assert!(!queue.is_idle());
        let batch = queue.take().unwrap();
        assert!(!queue.is_idle(), "it is not answered yet");
        drop(batch);
        assert!(queue.is_idle());
        queue.put(&mut vec![message_to(To::Relay, 100)]);
        assert!(queue.take().is_none(), "it is to be forwarded");
        let mut batch = queue.take_relays().unwrap();
        queue.begin_relay();
        let (message, result) = (batch.messages.pop_front().unwrap(), Err(String::new()));
        drop(batch);
        assert!(!queue.is_idle(), "it is being forwarded");
        queue.finish_relay(RelayedUpdate { message, result });
        let batch = queue.take_relays().unwrap();
        assert!(batch.relayed.len() == 1 && !queue.is_idle());
        drop(batch);
        assert!(queue.is_idle());
        queue.close();
        assert!(queue.take_relays().is_none());
        let mut late = vec![self::message(100)];
        queue.put(&mut late);
        assert_eq!(late.len(), 1, "nothing is taken any more");
    }
}
