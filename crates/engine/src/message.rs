//! What a transport hands over: the time, the client, and a buffer with a message.

use crate::deferral::{Deferral, Outcome};
use crate::upstream_options::Client;
use std::net::SocketAddr;

/// The time, read by the caller once per batch.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Now {
    /// Nanoseconds since a moment that is fixed while the process runs.
    pub monotonic_nanos: u64,
    /// Seconds since 1970.
    pub unix_secs: u32,
}

impl Now {
    /// Makes a time of nanoseconds since a fixed moment, and seconds since 1970.
    #[must_use]
    pub const fn new(monotonic_nanos: u64, unix_secs: u32) -> Self {
        Self { monotonic_nanos, unix_secs }
    }

    /// Whole seconds of the monotonic clock, by which kept answers age; they wrap after a century.
    #[must_use]
    pub fn monotonic_secs(self) -> u32 {
        (self.monotonic_nanos / NANOS_PER_SEC) as u32
    }

    /// The nearest whole second of the monotonic clock: when an answer counts as kept. With the
    /// second that has begun, answers would live half a second less than their TTL on average,
    /// which for a TTL of one second is half of it.
    #[must_use]
    pub fn monotonic_secs_nearest(self) -> u32 {
        ((self.monotonic_nanos + NANOS_PER_SEC / 2) / NANOS_PER_SEC) as u32
    }
}

/// Nanoseconds of a second.
const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The transport of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// A datagram: its source may be forged, and its reply must be small.
    Udp,
    /// A TCP connection.
    Tcp,
}

impl Transport {
    /// All transports, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::Udp, Self::Tcp];

    /// Returns the transport's name in metrics and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }
}

/// The client, and the way its message came.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Peer {
    /// The client's address and port.
    pub address: SocketAddr,
    /// The transport by which the message came.
    pub transport: Transport,
    /// The listener it came to, by its place in the configuration; [`u16::MAX`] for a question of
    /// the server itself.
    pub listener: u16,
}

impl Peer {
    /// Makes the peer of an address and a transport, which came to the listener of a number.
    #[must_use]
    pub const fn new(address: SocketAddr, transport: Transport, listener: u16) -> Self {
        Self { address, transport, listener }
    }
}

impl From<&Peer> for Client {
    fn from(peer: &Peer) -> Self {
        let Peer { address, transport, listener } = *peer;
        Self { address, is_over_tcp: transport == Transport::Tcp, listener }
    }
}

/// A received message and the place for its reply, which is written over it.
pub struct Message<'a> {
    /// The client that asks.
    pub peer: Peer,
    /// The message, and behind it room for the reply.
    pub buffer: &'a mut [u8],
    /// The length of the message, then of the reply; 0 is silence.
    pub len: &'a mut usize,
}

/// Messages that were received together, at one listener.
pub trait Batch {
    /// Returns the number of messages.
    fn len(&self) -> usize;

    /// Whether there are no messages.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Message `index`, below [`len`](Self::len). Called more than once for each.
    fn get(&mut self, index: usize) -> Message<'_>;

    /// Takes note that the query of message `index`, which still lies in its buffer, is to be
    /// resumed later. For now there is no reply.
    fn defer(&mut self, index: usize, deferral: Deferral);
}

/// A batch of one message.
pub struct Single<'a> {
    /// The client that has sent the message.
    peer: &'a Peer,
    /// The message, and behind it room for the reply.
    buffer: &'a mut [u8],
    /// The length of the message, then of the reply.
    len: usize,
    /// The deferral of the query, if it was deferred.
    deferral: Option<Deferral>,
}

impl<'a> Single<'a> {
    /// Has `answer_batch` answer one message of `len` octets in `buffer`, where the reply then
    /// lies.
    pub fn answer(
        peer: &'a Peer,
        buffer: &'a mut [u8],
        len: usize,
        answer_batch: impl FnOnce(&mut Self),
    ) -> Outcome {
        let mut single = Self { peer, buffer, len, deferral: None };
        answer_batch(&mut single);
        match (single.deferral, single.len) {
            (Some(deferral), _) => Outcome::Deferred(deferral),
            (None, 0) => Outcome::Silence,
            (None, bytes) => Outcome::Reply(bytes),
        }
    }
}

impl Batch for Single<'_> {
    fn len(&self) -> usize {
        1
    }

    fn get(&mut self, _: usize) -> Message<'_> {
        Message { peer: *self.peer, buffer: self.buffer, len: &mut self.len }
    }

    fn defer(&mut self, _: usize, deferral: Deferral) {
        self.deferral = Some(deferral);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_lives_as_long_as_its_ttl_on_average_whenever_it_comes() {
        let at = |millis: u64| Now { monotonic_nanos: millis * 1_000_000, unix_secs: 0 };
        let lives_millis = |kept: u64| {
            let expires_at = at(kept).monotonic_secs_nearest() + 1;
            (kept..).take_while(|now| at(*now).monotonic_secs() < expires_at).count()
        };
        let lives: Vec<usize> = (7_000..8_000).step_by(10).map(lives_millis).collect();
        assert!(lives.iter().all(|life| (500..=1_500).contains(life)), "{lives:?}");
        let mean = lives.iter().sum::<usize>() / lives.len();
        assert!((950..=1_050).contains(&mean), "{mean}");
    }
}
