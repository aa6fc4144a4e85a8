//! Messages that wait to be sent over TCP, and what has become of those that were.

use super::schedule::Target;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zonda_wire::tsig::ReplySignature;

/// A message to be sent over TCP.
pub struct TcpMessage {
    /// The zone that is announced, and the server that is told.
    pub target: Target,
    /// The serial that is announced.
    pub serial: u32,
    /// The id of the message.
    pub id: u16,
    /// The message in wire form.
    pub octets: Vec<u8>,
    /// What the reply is checked with, if the message is signed.
    pub signature: Option<ReplySignature>,
}

/// What has become of a message that was sent over TCP.
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
    /// What waits for a thread, in order.
    pub waiting: VecDeque<TcpMessage>,
    /// What threads send now, one each.
    pub running: Vec<Target>,
    /// Replies that the sender has not taken yet.
    pub results: Vec<TcpResult>,
}

impl fmt::Debug for TcpQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = self.lock();
        let (waiting, running) = (messages.waiting.len(), messages.running.len());
        f.debug_struct("TcpQueue").field("waiting", &waiting).field("running", &running).finish()
    }
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
}
