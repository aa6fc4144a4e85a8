//! Replies to queries that waited.

use std::sync::Arc;

use zonda_engine::{
    AnswerBelow, DeferredQuery, HandlerOutcome, Now, Outcome, Resumption, Transport, UpdateOutcome,
    UpstreamAnswer,
};
use zonda_netio::{ReplyBatch, UdpSocket};

use crate::deferred::{Deferred, ReplyTo};
use crate::faults::survives;
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
    /// Empty batches that were sent before, without their sockets: one that lies idle keeps no
    /// socket of a server open that has stopped.
    spare: Vec<ReplyBatch>,
}

impl<R: Responder> Replies<R> {
    /// None yet.
    pub fn new(responder: R) -> Self {
        let buffer = vec![0; MESSAGE_MAX].into();
        Self { responder, buffer, batches: Vec::new(), spare: Vec::new() }
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

    /// Answers an update with what became of it, or SERVFAIL if the responder panics.
    pub fn answer_update(&mut self, waiter: Deferred, outcome: &UpdateOutcome, now: Now) {
        match self.resume_update(&waiter, outcome, now) {
            Some(len) => self.give(waiter.reply_to, len),
            None => waiter.fail(),
        }
    }

    /// Writes the reply to an update into the buffer and returns its length, 0 for none; nothing if
    /// the responder panics.
    fn resume_update(
        &mut self,
        waiter: &Deferred,
        outcome: &UpdateOutcome,
        now: Now,
    ) -> Option<usize> {
        let mut written = None;
        // What a panic leaves half done is the buffer, and the responder's octets.
        let _ = survives(|| written = Some(self.resume(waiter, Resumption::Update(outcome), now)));
        match written? {
            Outcome::Reply(len) => Some(len),
            // What has an outcome is not deferred once more.
            Outcome::Deferred(_) | Outcome::Silence => Some(0),
        }
    }

    /// Gives the reply of a primary to the client of an update that was forwarded to it, as it
    /// came; `outcome` is what counters and logs are told. A reply that is too long for a datagram
    /// is replaced by one of this server with the same response code, and any by SERVFAIL if the
    /// responder panics.
    pub fn relay_update(
        &mut self,
        waiter: Deferred,
        outcome: &UpdateOutcome,
        reply: &[u8],
        now: Now,
    ) {
        /// Octets of a datagram that every client takes (rfc1035#2.3.4).
        const DATAGRAM_BYTES: usize = 512;
        let Some(own) = self.resume_update(&waiter, outcome, now) else { return waiter.fail() };
        let limit = match (waiter.peer.transport, waiter.deferral.query.edns) {
            (Transport::Udp, edns) => {
                edns.map_or(DATAGRAM_BYTES, |it| DATAGRAM_BYTES.max(it.udp_bytes.into()))
            }
            _ => MESSAGE_MAX,
        };
        if own == 0 || reply.len() > limit {
            return self.give(waiter.reply_to, own);
        }
        self.buffer[..reply.len()].copy_from_slice(reply);
        self.give(waiter.reply_to, reply.len());
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
                    self.batches.push((socket, self.spare.pop().unwrap_or_default()));
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

    /// Gives the gathered batches of replies away for an empty list, and takes empty batches in,
    /// which later replies are gathered in.
    pub fn swap_batches(&mut self, batches: &mut Vec<SocketReplies>, spare: &mut Vec<ReplyBatch>) {
        std::mem::swap(&mut self.batches, batches);
        self.spare.append(spare);
    }

    /// Sends what was gathered, and lets go of the sockets.
    pub fn send(&mut self) {
        for (socket, mut batch) in self.batches.drain(..) {
            batch.send(&socket);
            self.spare.push(batch);
        }
    }
}
