//! Queues of deferred queries, and the way into them.

use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use zonda_engine::{HandlerOutcome, QueueId, Reason};

use crate::clock::Clock;
use crate::counter::SharedCounter;
use crate::deferred::{Deferred, ReplyTo};
use crate::faults::survives;
use crate::replies::{Replies, SocketReplies};
use crate::responder::Responder;

/// Takes deferred queries and answers them in time: forwarder threads, a runtime of the user's
/// code.
pub trait Queue: Send + Sync {
    /// Takes the queries for which there is room out of `queries`, in their order. Called by UDP
    /// workers and connections: must not block. Those that are left are answered SERVFAIL.
    fn put(&self, queries: &mut Vec<Deferred>);

    /// Whether no query waits in the queue, and the replies to all that have waited have left.
    fn is_idle(&self) -> bool;
}

/// All queues, as the threads that receive queries see them. A clone is the same.
#[derive(Clone, Default)]
pub struct Deferrals {
    /// The queues, each at the place of its [`QueueId`].
    queues: Arc<[Arc<dyn Queue>]>,
    /// The responder for queries for which a queue has no room; without it, they are answered
    /// without an engine.
    overflow: Option<Overflow>,
    /// Queries deferred to a queue that does not exist. Each is answered SERVFAIL.
    unroutable: Arc<SharedCounter>,
}

impl fmt::Debug for Deferrals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferrals").field("queues", &self.queues.len()).finish_non_exhaustive()
    }
}

/// The time between two looks whether a queue is idle.
const IDLE_LOOK: Duration = Duration::from_millis(2);

impl Deferrals {
    /// The way into `queues`, each at the place of its [`QueueId`]. Queries for which one of them
    /// has no room are answered by `responder`.
    pub fn new<R: Responder>(queues: Vec<Arc<dyn Queue>>, clock: Clock, responder: R) -> Self {
        let refusals = Refusals { replies: Replies::new(responder), clock };
        let overflow = Some(Overflow(Arc::new(Mutex::new(refusals))));
        Self { queues: queues.into(), overflow, unroutable: Arc::default() }
    }

    /// How many queries were deferred to a queue that does not exist.
    #[must_use]
    pub fn unroutable(&self) -> u64 {
        self.unroutable.get()
    }

    /// Waits until the queues with ids for which `is_awaited` are idle; whether they were before
    /// `deadline`. The threads that hand queries over must have stopped before.
    #[must_use]
    pub fn await_idle(&self, is_awaited: impl Fn(QueueId) -> bool, deadline: Instant) -> bool {
        let awaited = || (0..).map(QueueId).zip(&*self.queues).filter(|(id, _)| is_awaited(*id));
        while !awaited().all(|(_, queue)| queue.is_idle()) {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(IDLE_LOOK);
        }
        true
    }

    /// Puts queries into their queues and leaves `queries` empty.
    pub fn submit(&self, queries: &mut Vec<Deferred>) {
        // A query for which one queue has no room may be left to the next one: code in front of a
        // forwarded zone may say so of queries that it does not answer.
        for _ in 0..=self.queues.len() {
            let refused = self.put(queries);
            match &self.overflow {
                _ if refused.is_empty() => return,
                Some(overflow) => overflow.refuse(refused, queries),
                None => refused.into_iter().for_each(Deferred::fail),
            }
        }
        queries.drain(..).for_each(Deferred::fail);
    }

    /// Puts queries into their queues, leaves `queries` empty, and returns those for which there
    /// is no room.
    fn put(&self, queries: &mut Vec<Deferred>) -> Vec<Deferred> {
        let mut refused = Vec::new();
        while let Some(id) = queries.first().map(Deferred::queue) {
            let queue = self.queues.get(usize::from(id.0));
            // Usually all are for the same queue, and stay where they are.
            if queries.iter().all(|query| query.queue() == id) {
                self.put_into(queue, queries);
                refused.append(queries);
                break;
            }
            let mut own = queries.extract_if(.., |query| query.queue() == id).collect();
            self.put_into(queue, &mut own);
            refused.append(&mut own);
        }
        refused
    }

    /// Puts queries into a queue, if it exists, and leaves those for which it has no room.
    fn put_into(&self, queue: Option<&Arc<dyn Queue>>, queries: &mut Vec<Deferred>) {
        if let Some(queue) = queue {
            return queue.put(queries);
        }
        self.unroutable.add(queries.len() as u64);
        mem::take(queries).into_iter().for_each(Deferred::fail);
    }
}

/// Answers queries for which a queue has no room, on behalf of all threads that receive queries.
#[derive(Clone)]
struct Overflow(Arc<Mutex<dyn Refuse>>);

impl Overflow {
    /// Answers queries. One thread writes replies at a time; all threads may send at once.
    #[cold]
    fn refuse(&self, queries: Vec<Deferred>, passed_on: &mut Vec<Deferred>) {
        let mut refuse = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let written = refuse.refuse(queries, passed_on);
        drop(refuse);
        for (socket, mut batch) in written {
            batch.send(&socket);
        }
    }
}

/// [`Refusals`] of any responder.
trait Refuse: Send {
    /// Writes replies to queries, but for those that are deferred once more, which it adds to
    /// `passed_on`. A panic costs the query at hand its reply.
    fn refuse(
        &mut self,
        queries: Vec<Deferred>,
        passed_on: &mut Vec<Deferred>,
    ) -> Vec<SocketReplies>;
}

/// Writes replies to queries for which a queue has no room.
struct Refusals<R> {
    /// Writes and gathers the replies.
    replies: Replies<R>,
    /// Tells the time of the replies.
    clock: Clock,
}

impl<R: Responder> Refuse for Refusals<R> {
    fn refuse(
        &mut self,
        queries: Vec<Deferred>,
        passed_on: &mut Vec<Deferred>,
    ) -> Vec<SocketReplies> {
        let (now, busy) = (self.clock.now(), HandlerOutcome::Failed(Reason::HandlerBusy));
        for query in queries {
            let connection = match &query.reply_to {
                ReplyTo::Connection(connection) => Some(connection.clone()),
                ReplyTo::Datagram(..) | ReplyTo::Code(_) => None,
            };
            if !survives(|| passed_on.extend(self.replies.supply(query, busy, now))) {
                // The connection counts its queries; a sender that fails has lost its connection.
                connection.inspect(|it| _ = it.try_send(Vec::new()));
            }
        }
        self.replies.take_batches()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use tokio::sync::mpsc;
    use zonda_engine::code::Elsewhere;
    use zonda_engine::{Deferral, Peer, To, Transport};

    /// A queue without any room.
    struct Full;

    impl Queue for Full {
        fn put(&self, _: &mut Vec<Deferred>) {}

        fn is_idle(&self) -> bool {
            true
        }
    }

    /// A query for `a A`, and where its reply arrives.
    fn query(to: To) -> (Deferred, mpsc::Receiver<Vec<u8>>) {
        let (sender, receiver) = mpsc::channel(1);
        let address = ([192, 0, 2, 1], 53).into();
        let peer = Peer::new(address, Transport::Tcp, 0);
        let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01".to_vec();
        let (deferral, reply_to) = (Deferral::new(to, 0), ReplyTo::Connection(sender));
        (Deferred { query, peer, deferral, reply_to }, receiver)
    }

    /// The reply `a A` SERVFAIL.
    const SERVFAIL: &[u8] = b"\x12\x34\x81\x02\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";

    #[test]
    fn a_query_deferred_to_a_queue_that_does_not_exist_is_counted_and_answered_servfail() {
        let deferrals = Deferrals { queues: Arc::from([Arc::new(Full) as _]), ..<_>::default() };
        let (query, mut reply) = query(To::Code(Elsewhere { runtime: 3, handler: 0 }));
        let mut queries = vec![query];
        deferrals.submit(&mut queries);
        assert_eq!(reply.try_recv().unwrap(), SERVFAIL);
        assert_eq!((deferrals.unroutable(), queries.len()), (1, 0));
    }

    #[test]
    fn a_query_for_which_no_queue_has_room_is_answered_servfail() {
        let deferrals = Deferrals { queues: Arc::from([Arc::new(Full) as _]), ..<_>::default() };
        let (query, mut reply) = query(To::Forward(7));
        deferrals.submit(&mut vec![query]);
        assert_eq!(reply.try_recv().unwrap(), SERVFAIL);
        assert_eq!(deferrals.unroutable(), 0, "its queue exists");
    }
}
