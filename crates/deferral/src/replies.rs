//! Replies to queries that waited.

use std::sync::Arc;

use zonda_engine::{
    AnswerBelow, DeferredQuery, HandlerOutcome, Now, Outcome, Resumption, UpdateOutcome,
    UpstreamAnswer,
};
use zonda_netio::{ReplyBatch, UdpSocket};

use crate::deferred::{Deferred, ReplyTo};
use crate::responder::Responder;

/// Octets of the longest reply.
const MESSAGE_MAX: usize = u16::MAX as usize;

/// Replies that leave from a socket.
pub type SocketReplies = (Arc<UdpSocket>, ReplyBatch);

/// Writes replies, and gathers those that leave over UDP.
pub struct Replies<R> {
    /// The responder that writes the replies.
    pub responder: R,
    /// A query, then its reply.
    buffer: Box<[u8]>,
    /// The replies over UDP, by the socket that they leave from.
    batches: Vec<SocketReplies>,
}

impl<R: Responder> Replies<R> {
    /// None yet.
    pub fn new(responder: R) -> Self {
        Self { responder, buffer: vec![0; MESSAGE_MAX].into(), batches: Vec::new() }
    }

    /// Answers a query with what upstreams have said; returns it if it is deferred once more, for
    /// the next name of its client's search path.
    #[must_use]
    pub fn answer(
        &mut self,
        waiter: Deferred,
        fetched: &UpstreamAnswer<'_>,
        now: Now,
    ) -> Option<Deferred> {
        self.give_or_defer(waiter, Resumption::Upstream(fetched), now)
    }

    /// Answers a query with what the user's code supplied; returns it if it is deferred once more.
    pub fn supply(
        &mut self,
        waiter: Deferred,
        supplied: HandlerOutcome<'_>,
        now: Now,
    ) -> Option<Deferred> {
        self.give_or_defer(waiter, Resumption::Code(supplied), now)
    }

    /// Answers an update with what became of it.
    pub fn answer_update(&mut self, waiter: Deferred, outcome: &UpdateOutcome, now: Now) {
        // What has an outcome is not deferred once more.
        let _ = self.give_or_defer(waiter, Resumption::Update(outcome), now);
    }

    /// Resumes a query, and gives the reply to its client; returns it if it is deferred once more.
    fn give_or_defer(
        &mut self,
        mut waiter: Deferred,
        resumption: Resumption<'_>,
        now: Now,
    ) -> Option<Deferred> {
        match self.resume(&waiter, resumption, now) {
            Outcome::Deferred(deferral) => {
                waiter.defer_again(deferral);
                return Some(waiter);
            }
            Outcome::Reply(len) => self.give(waiter.reply_to, len),
            Outcome::Silence => self.give(waiter.reply_to, 0),
        }
        None
    }

    /// Writes the reply to a query into the buffer.
    fn resume(&mut self, waiter: &Deferred, resumption: Resumption<'_>, now: Now) -> Outcome {
        let Deferred { query: octets, peer, deferral, .. } = waiter;
        let (len, history, buffer) = (octets.len(), &deferral.history, &mut *self.buffer);
        buffer[..len].copy_from_slice(octets);
        let query = Some(&deferral.query);
        self.responder.resume(now, DeferredQuery { peer, history, buffer, len, query }, resumption)
    }

    /// Gives the first `len` octets of the buffer to a client.
    fn give(&mut self, reply_to: ReplyTo, len: usize) {
        let reply = &self.buffer[..len];
        match reply_to {
            // A sender that fails has lost its connection.
            ReplyTo::Connection(sender) => _ = sender.try_send(reply.to_vec()),
            ReplyTo::Code(_) if reply.is_empty() => {}
            ReplyTo::Code(sender) => {
                let below = AnswerBelow::new(reply.to_vec(), self.responder.take_facts());
                let _ = sender.try_send(below); // the code may have given up
            }
            ReplyTo::Datagram(_, _) if reply.is_empty() => {}
            ReplyTo::Datagram(socket, path) => {
                let same = |it: &(Arc<UdpSocket>, _)| Arc::ptr_eq(&it.0, &socket);
                let place = self.batches.iter().position(same).unwrap_or_else(|| {
                    self.batches.push((socket, ReplyBatch::default()));
                    self.batches.len() - 1
                });
                self.batches[place].1.push(path, reply);
            }
        }
    }

    /// Takes the replies gathered so far, for another thread to send.
    pub fn take_batches(&mut self) -> Vec<SocketReplies> {
        std::mem::take(&mut self.batches)
    }

    /// Exchanges what was gathered for empty batches.
    pub fn swap_batches(&mut self, batches: &mut Vec<SocketReplies>) {
        std::mem::swap(&mut self.batches, batches);
    }

    /// Sends what was gathered.
    pub fn send(&mut self) {
        for (socket, batch) in self.batches.iter_mut().filter(|(_, batch)| !batch.is_empty()) {
            batch.send(socket);
        }
    }
}
