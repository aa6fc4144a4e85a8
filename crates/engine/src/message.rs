//! What a transport hands over: the time, who asks, and a buffer with a message.

use crate::deferral::Deferral;
use std::net::SocketAddr;

/// The time, read by the caller once per batch.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Nanoseconds since a moment that is fixed while the process runs.
    pub monotonic_nanos: u64,
    /// Seconds since 1970.
    pub unix_secs: u32,
}

impl Now {
    /// Whole seconds of the monotonic clock, by which kept answers age; they wrap after a century.
    #[must_use]
    pub fn monotonic_secs(self) -> u32 {
        (self.monotonic_nanos / 1_000_000_000) as u32
    }
}

/// How a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A datagram: its source may be forged, and its reply must be small.
    Udp,
    /// A TCP connection.
    Tcp,
}

impl Transport {
    /// All transports, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::Udp, Self::Tcp];

    /// Its name in metrics and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }
}

/// Who asks, and how.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The client's address and port.
    pub address: SocketAddr,
    /// How the message came.
    pub transport: Transport,
    /// The listener it came to, by its place in the configuration.
    pub listener: u16,
}

/// A received message and the place for its reply, which is written over it.
pub struct Message<'a> {
    /// Who asks.
    pub peer: Peer,
    /// The message, and behind it room for the reply.
    pub buffer: &'a mut [u8],
    /// The length of the message, then of the reply; 0 is silence.
    pub len: &'a mut usize,
}

/// Messages that were received together.
pub trait Batch {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Message `index`, below [`len`](Self::len). Called more than once for each.
    fn get(&mut self, index: usize) -> Message<'_>;

    /// Takes note that the query of message `index`, which still lies in its buffer, is to be
    /// resumed later. For now there is no reply.
    fn defer(&mut self, index: usize, deferral: Deferral);
}

/// A batch of one.
pub(crate) struct Single<'a> {
    pub peer: &'a Peer,
    pub buffer: &'a mut [u8],
    pub len: usize,
    pub deferral: Option<Deferral>,
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
