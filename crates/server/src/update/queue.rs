//! The queue of messages that change zones, and what is counted of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use zonda_deferral::{Deferred, Queue};

/// Messages that wait at most.
const WAITING_MAX: usize = 1000;
/// Octets that they have at most, and one message more.
const OCTETS_MAX: usize = 4 << 20;
/// Messages that are carried out together at most.
const BATCH_MAX: usize = 250;
/// Octets that these have at most, and one message more: their changes are one group of the
/// journal, and their records are in memory at the same time.
const BATCH_OCTETS_MAX: usize = 256 << 10;

/// The queue of messages that change zones. Workers put messages into it, and never wait.
#[derive(Default)]
pub struct UpdateQueue {
    waiting: Mutex<WaitingUpdates>,
    /// Is told when a message comes, and when the queue is closed.
    changed: Condvar,
    /// What has become of messages.
    pub counters: UpdateCounters,
}

/// The messages that wait.
#[derive(Default)]
struct WaitingUpdates {
    messages: VecDeque<Deferred>,
    /// Octets of these messages.
    octets: usize,
    /// Messages that were taken out, and are not answered yet.
    taken: usize,
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
        self.lock().messages.len()
    }

    /// Waits for messages, and takes as many as are carried out together; none once the queue is
    /// closed and empty. They count as answered when the returned batch is dropped.
    pub fn take(&self) -> Option<Batch<'_>> {
        let mut waiting = self.lock();
        while waiting.messages.is_empty() {
            if waiting.is_closed {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut messages, mut octets) = (Vec::new(), 0);
        while messages.len() < BATCH_MAX
            && octets < BATCH_OCTETS_MAX
            && let Some(message) = waiting.messages.pop_front()
        {
            octets += message.query.len();
            messages.push(message);
        }
        waiting.octets -= octets;
        waiting.taken += messages.len();
        Some(Batch { queue: self, count: messages.len(), messages })
    }

    /// Has the thread end that answers, once the queue is empty.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }
}

/// Messages that were taken out of the queue.
pub struct Batch<'q> {
    queue: &'q UpdateQueue,
    count: usize,
    /// The messages, in the order in which they came.
    pub messages: Vec<Deferred>,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.queue.lock().taken -= self.count;
    }
}

impl Queue for UpdateQueue {
    fn put(&self, queries: &mut Vec<Deferred>) {
        let mut waiting = self.lock();
        let mut count = 0;
        for query in &*queries {
            let has_room = waiting.messages.len() + count < WAITING_MAX;
            if !has_room || waiting.octets >= OCTETS_MAX || waiting.is_closed {
                break;
            }
            waiting.octets += query.query.len();
            count += 1;
        }
        waiting.messages.extend(queries.drain(..count));
        drop(waiting);
        self.counters.busy.fetch_add(queries.len() as u64, Relaxed);
        self.changed.notify_one();
    }

    fn is_idle(&self) -> bool {
        let waiting = self.lock();
        waiting.messages.is_empty() && waiting.taken == 0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tokio::sync::mpsc;
    use zonda_deferral::ReplyTo;
    use zonda_engine::{Deferral, Peer, To, Transport};

    /// A message of so many octets.
    fn message(octets: usize) -> Deferred {
        let (address, listener) = (([192, 0, 2, 1], 53).into(), 0);
        let peer = Peer { address, transport: Transport::Tcp, listener };
        let (deferral, reply_to) = (Deferral::new(To::Update, 0), mpsc::channel(1).0);
        Deferred { query: vec![0; octets], peer, deferral, reply_to: ReplyTo::Connection(reply_to) }
    }

    #[test]
    fn a_message_for_which_there_is_no_room_is_left_and_counted() {
        let queue = UpdateQueue::default();
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
        let queue = UpdateQueue::default();
        let mut messages: Vec<_> = (0..100).map(|_| message(60_000)).collect();
        queue.put(&mut messages);
        assert_eq!(queue.waiting(), OCTETS_MAX.div_ceil(60_000));
        assert_eq!(queue.take().unwrap().messages.len(), BATCH_OCTETS_MAX.div_ceil(60_000));
    }

    #[test]
    fn the_queue_is_idle_when_what_was_taken_is_answered_and_ends_when_it_is_closed() {
        let queue = UpdateQueue::default();
        queue.put(&mut vec![message(100)]);
        assert!(!queue.is_idle());
        let batch = queue.take().unwrap();
        assert!(!queue.is_idle(), "it is not answered yet");
        drop(batch);
        assert!(queue.is_idle());
        queue.close();
        assert!(queue.take().is_none());
        let mut late = vec![message(100)];
        queue.put(&mut late);
        assert_eq!(late.len(), 1, "nothing is taken any more");
    }
}
