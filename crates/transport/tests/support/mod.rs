//! A toy engine and the queries that it understands.
#![allow(dead_code, clippy::unwrap_used)]

use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use zonda_engine::{Batch, Now, Peer, Transport};
use zonda_transport::Responder;
use zonda_transport::faults::{Failure, FailureSender};

/// Answers by the first label of the name: see [`Toy::answer`].
#[derive(Default)]
pub struct Toy;

impl Responder for Toy {
    fn answer_batch<B: Batch>(&mut self, now: Now, batch: &mut B) {
        for index in 0..batch.len() {
            let message = batch.get(index);
            *message.len = self.answer(now, &message.peer, message.buffer, *message.len);
        }
    }

    fn answer(&mut self, _: Now, _: &Peer, buffer: &mut [u8], len: usize) -> usize {
        if len < 13 || buffer[2] & 0x80 != 0 {
            return 0;
        }
        let label = buffer[13..13 + usize::from(buffer[12])].to_vec();
        match label.as_slice() {
            b"panic" => panic!("on purpose"),
            b"slower" => thread::sleep(Duration::from_millis(100)),
            b"slow" => thread::sleep(Duration::from_millis(1)),
            b"long" => {
                buffer[2] |= 0x80;
                buffer[len..60_000].fill(b'x');
                return 60_000;
            }
            b"silent" => return 0,
            _ => {}
        }
        // One octet more than the query, as a reply with an answer would be longer.
        buffer[2] |= 0x80;
        buffer[len] = 0;
        len + 1
    }

    fn observe_latency(&mut self, _: Transport, _: u64, _: u64) {}
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
