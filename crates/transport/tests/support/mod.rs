//! A toy engine and the queries that it understands.
#![allow(dead_code, clippy::unwrap_used)]

use std::thread;
use std::time::Duration;

use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use zonda_deferral::faults::{Failure, FailureSender};
use zonda_deferral::{Clock, Deferrals, Deferred, Queue, ReplyTo, Responder};
use zonda_engine::code::Elsewhere;
use zonda_engine::{
    Batch, Deferral, DeferredQuery, HandlerOutcome, Now, Outcome, Peer, Reason, Resumption, To,
};
use zonda_netio::ReplyBatch;

/// Answers by the first label of the name: see [`Toy::answer`].
#[derive(Default)]
pub struct Toy;

impl Responder for Toy {
    fn answer_batch<B: Batch>(&mut self, now: Now, batch: &mut B) {
        for index in 0..batch.len() {
            let message = batch.get(index);
            let outcome = self.answer(now, &message.peer, message.buffer, *message.len);
            *message.len = outcome.reply_bytes();
            if let Outcome::Deferred(deferral) = outcome {
                batch.defer(index, deferral);
            }
        }
    }

    fn answer(&mut self, _: Now, _: &Peer, buffer: &mut [u8], len: usize) -> Outcome {
        if len < 13 || buffer[2] & 0x80 != 0 {
            return Outcome::Silence;
        }
        let label = buffer[13..13 + usize::from(buffer[12])].to_vec();
        match label.as_slice() {
            b"panic" => panic!("on purpose"),
            b"slower" => thread::sleep(Duration::from_millis(100)),
            b"slow" => thread::sleep(Duration::from_millis(1)),
            b"long" => {
                buffer[2] |= 0x80;
                buffer[len..60_000].fill(b'x');
                return Outcome::Reply(60_000);
            }
            b"silent" => return Outcome::Silence,
            b"code" => {
                let to = To::Code(Elsewhere { runtime: 0, handler: 5 });
                return Outcome::Deferred(Deferral::new(to, 0));
            }
            b"later" => {
                return Outcome::Deferred(Deferral::new(To::Forward(7), 0));
            }
            _ => {}
        }
        // One octet more than the query, as a reply with an answer would be longer.
        buffer[2] |= 0x80;
        buffer[len] = 0;
        Outcome::Reply(len + 1)
    }

    /// Appends an octet for the reason of a failure of code, or for its reply.
    fn resume(&mut self, _: Now, query: DeferredQuery<'_>, resumption: Resumption<'_>) -> Outcome {
        let Resumption::Code(outcome) = resumption else {
            unreachable!("what is fetched is played by the test")
        };
        query.buffer[2] |= 0x80;
        query.buffer[query.len] = match outcome {
            HandlerOutcome::Failed(Reason::HandlerTimeout) => b'!',
            HandlerOutcome::Failed(reason) => {
                assert_eq!(reason, Reason::HandlerBusy);
                b'?'
            }
            HandlerOutcome::Reply(_) | HandlerOutcome::AsAnswered(_) => b'.',
        };
        Outcome::Reply(query.len + 1)
    }
}

/// A query for a name of one label.
pub fn query(id: u16, label: &str) -> Vec<u8> {
    let id = id.to_be_bytes();
    let header = [id[0], id[1], 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    [&header[..], &[label.len() as u8], label.as_bytes(), &[0, 0, 1, 0, 1]].concat()
}

/// The id of a message.
pub fn id(message: &[u8]) -> u16 {
    u16::from_be_bytes([message[0], message[1]])
}

/// The response code of a message that must be a response.
pub fn rcode(message: &[u8]) -> u8 {
    assert_ne!(message[2] & 0x80, 0, "not a response: {message:?}");
    message[3] & 15
}

/// Where failures go, and where they arrive.
pub fn failures() -> (FailureSender, mpsc::Receiver<Failure>) {
    mpsc::channel(4)
}

/// The queue of a thread that fetches, played by the test.
#[derive(Clone, Default)]
pub struct Fetcher(Arc<Mutex<Vec<Deferred>>>);

impl Queue for Fetcher {
    fn put(&self, queries: &mut Vec<Deferred>) {
        self.0.lock().unwrap().append(queries);
    }

    fn is_idle(&self) -> bool {
        self.0.lock().unwrap().is_empty()
    }
}

impl Fetcher {
    /// Where queries are handed over, and the queue that has them then.
    pub fn start() -> (Deferrals, Self) {
        let fetcher = Self::default();
        (Deferrals::new(vec![Arc::new(fetcher.clone())], Clock::start(), Toy), fetcher)
    }

    /// Whether `count` queries have come that were not answered yet.
    pub fn has(&self, count: usize) -> bool {
        self.0.lock().unwrap().len() >= count
    }

    /// Answers all queries that have come, the last one first, with themselves.
    pub fn answer(&self) {
        for Deferred { mut query, reply_to, deferral, .. } in self.0.lock().unwrap().drain(..).rev()
        {
            assert_eq!(deferral, Deferral::new(To::Forward(7), 0));
            query[2] |= 0x80;
            match reply_to {
                ReplyTo::Connection(sender) => sender.try_send(query).unwrap(),
                ReplyTo::Code(_) => panic!("a listener's query is a client's"),
                ReplyTo::Datagram(socket, path) => {
                    let mut replies = ReplyBatch::default();
                    replies.push(path, &query);
                    replies.send(&socket);
                }
            }
        }
    }

    /// Says of all queries that have come that there is no reply.
    pub fn be_silent(&self) {
        for deferred in self.0.lock().unwrap().drain(..) {
            if let ReplyTo::Connection(sender) = deferred.reply_to {
                sender.try_send(Vec::new()).unwrap();
            }
        }
    }
}
