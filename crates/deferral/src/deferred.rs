//! Queries that are answered later, and how their replies get to the clients.

use std::sync::Arc;

use tokio::sync::mpsc;
use zonda_engine::{AnswerBelow, Deferral, Peer, QueueId, To};
use zonda_netio::{ReplyBatch, ReplyPath, UdpSocket};
use zonda_wire::{ABRIDGED_BYTES_MAX, Query};

use crate::servfail;

/// Octets of the longest query that is kept whole for code, as UDP brings it. Of a longer one, code
/// sees the options that fit into as many.
pub const CODE_BYTES_MAX: usize = 4096;

/// A query that is answered later.
#[derive(Debug)]
pub struct Deferred {
    /// The part of the query that is [kept](keep_octets).
    pub query: Vec<u8>,
    /// The client that asks.
    pub peer: Peer,
    /// The queue that the query waits in, and what its reply depends on.
    pub deferral: Deferral,
    /// The socket or connection that the reply leaves by.
    pub reply_to: ReplyTo,
}

/// The octets of a query that it keeps while it waits; the query of `deferral` is the one that lies
/// in them then. Upstreams are asked anew, so that header, question and what the reply depends on
/// are enough, [`ABRIDGED_BYTES_MAX`] octets; code may look at more, and is shown
/// [`CODE_BYTES_MAX`]. A client-subnet option that is not believed is left out.
#[must_use]
pub fn keep_octets(message: &[u8], deferral: &mut Deferral) -> Vec<u8> {
    let octets = deferral.octets.take();
    let message = octets.as_deref().unwrap_or(message);
    let (whole_max, others_max) = match deferral.to {
        To::Forward(_) | To::Transfer => (ABRIDGED_BYTES_MAX, 0),
        To::Code(_) => (CODE_BYTES_MAX, CODE_BYTES_MAX - ABRIDGED_BYTES_MAX),
        To::Update | To::Relay => {
            deferral.hides_subnet = false; // whether it is believed is asked again
            deferral.query = Query::parse(message).unwrap_or_else(|(query, _)| query);
            return message.to_vec(); // every record of it means something
        }
    };
    let is_whole = !std::mem::take(&mut deferral.hides_subnet);
    if is_whole && message.len() <= whole_max {
        return message.to_vec();
    }
    let short = deferral.query.abridge(message, others_max);
    // What the engine has read once can be read again.
    deferral.query = Query::parse(&short).unwrap_or_else(|(query, _)| query);
    short
}

impl Deferred {
    /// The queue that the query waits in.
    #[must_use]
    pub fn queue(&self) -> QueueId {
        self.deferral.to.queue()
    }

    /// Has the query wait for something else.
    pub(crate) fn defer_again(&mut self, mut deferral: Deferral) {
        // Behind an alias, the query is one for another name.
        if self.query.len() > ABRIDGED_BYTES_MAX || deferral.octets.is_some() {
            self.query = keep_octets(&self.query, &mut deferral);
        }
        self.deferral = deferral;
    }

    /// Answers the query SERVFAIL without an engine.
    #[cold]
    pub fn fail(mut self) {
        let mut question_end = self.deferral.query.question_end();
        if let Some(prelude) = &self.deferral.history.prelude {
            question_end = prelude.restore_query(&mut self.query);
        }
        if let Some(change) = &self.deferral.history.change {
            change.restore_question(&mut self.query, question_end);
        }
        let len = self.query.len();
        let len = servfail::write(&mut self.query, len);
        self.query.truncate(len);
        match self.reply_to {
            // A sender that fails has lost its connection.
            ReplyTo::Connection(sender) => _ = sender.try_send(self.query),
            ReplyTo::Code(sender) => _ = sender.try_send(AnswerBelow::new(self.query, None)),
            ReplyTo::Datagram(..) if self.query.is_empty() => {}
            ReplyTo::Datagram(socket, path) => {
                let mut batch = ReplyBatch::default();
                batch.push(path, &self.query);
                batch.send(&socket);
            }
        }
    }
}

/// How a reply gets to a client, or to code that asks to see it.
#[derive(Debug)]
pub enum ReplyTo {
    /// As a datagram from the socket that the query came to.
    Datagram(Arc<UdpSocket>, ReplyPath),
    /// By the task of the connection, which is given the reply without its length; no octets stand
    /// for no reply.
    Connection(mpsc::Sender<Vec<u8>>),
    /// To the user's code, which has asked what the query is answered below it; a sender that is
    /// gone stands for no reply.
    Code(mpsc::Sender<AnswerBelow>),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use zonda_engine::code::Elsewhere;

    /// A query for `a A` with an OPT record that has these options.
    fn query(options: &[(u16, usize)]) -> Vec<u8> {
        let octets = options.iter().flat_map(|&(code, len)| {
            let head = [code.to_be_bytes(), (len as u16).to_be_bytes()].concat();
            [head, vec![7; len]].concat()
        });
        let octets: Vec<u8> = octets.collect();
        let head = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01\x01a\0\0\x01\0\x01\0\0\x29\x04\xd0\0\0\0\0";
        [&head[..], &(octets.len() as u16).to_be_bytes(), &octets].concat()
    }

    #[test]
    fn what_is_padded_waits_for_servers_in_few_octets_and_code_sees_what_it_may_need() {
        let (forward, code) = (To::Forward(7), To::Code(Elsewhere { runtime: 0, handler: 0 }));
        let kept_octets = |message: &[u8], to| {
            let mut deferral = Deferral::new(to, 0);
            deferral.query = Query::parse(message).unwrap();
            let kept = keep_octets(message, &mut deferral);
            assert_eq!(deferral.query, Query::parse(&kept).unwrap(), "as it lies there");
            kept
        };
        let usual = query(&[(10, 24), (12, 128)]);
        assert_eq!(kept_octets(&usual, forward), usual, "not worth the work");
        let padded = query(&[(65_001, 1000), (10, 24), (12, 60_000)]);
        assert_eq!(kept_octets(&padded, forward).len(), 19 + 11 + 28);
        assert_eq!(kept_octets(&padded, code).len(), 19 + 11 + 28 + 1004);
        let long = query(&[(65_001, 3000), (65_002, 3000)]);
        assert_eq!(kept_octets(&long, code).len(), 19 + 11 + 3004);
        let of_udp = query(&[(12, CODE_BYTES_MAX - 34)]);
        assert_eq!((of_udp.len(), kept_octets(&of_udp, code)), (CODE_BYTES_MAX, of_udp.clone()));
    }

    #[test]
    fn a_client_subnet_waits_with_its_query_unless_it_is_not_believed() {
        let subnet = [0, 8, 0, 7, 0, 1, 24, 0, 192, 0, 2];
        let head = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01\x01a\0\0\x01\0\x01\0\0\x29\x04\xd0\0\0\0\0";
        let (forward, code) = (To::Forward(7), To::Code(Elsewhere { runtime: 0, handler: 0 }));
        for (to, padding) in [(forward, 4), (forward, 600), (code, 4), (code, 6000)] {
            let padding =
                [&[0, 12], &(padding as u16).to_be_bytes()[..], &vec![0; padding]].concat();
            let len = (padding.len() + subnet.len()) as u16;
            let message = [&head[..], &len.to_be_bytes(), &padding, &subnet].concat();
            for is_believed in [true, false] {
                let mut deferral = Deferral::new(to, 0);
                deferral.query = Query::parse(&message).unwrap();
                if !is_believed {
                    deferral.hides_subnet = true;
                    deferral.query.edns.as_mut().unwrap().subnet_at = 0;
                }
                let kept = keep_octets(&message, &mut deferral);
                assert_eq!(deferral.query, Query::parse(&kept).unwrap(), "as it lies there");
                let told = deferral.query.client_subnet(&kept).map(|it| it.to_string());
                let expected = is_believed.then_some("192.0.2.0/24");
                assert_eq!(told.as_deref(), expected, "{to:?}, {}", padding.len());
            }
        }
    }
}
