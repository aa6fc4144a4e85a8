//! What UDP workers and the kernel count.

use std::sync::{Arc, Weak};
use zonda_netio::UdpSocket;
use zonda_transport::udp::UdpCounters;

/// What all UDP workers have done so far, those that have ended as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpCounts {
    /// Receive calls that returned datagrams.
    pub batches: u64,
    /// Replies that the kernel refused.
    pub refused: u64,
    /// Receive calls that failed.
    pub receive_errors: u64,
    /// Panics of engines.
    pub panics: u64,
    /// Datagrams for which receive buffers had no room.
    pub dropped: u64,
}

impl UdpCounts {
    /// Adds what a worker and the kernel have counted.
    pub fn add(&mut self, meter: &Meter) {
        self.batches += meter.counters.batches.get();
        self.refused += meter.counters.refused.get();
        self.receive_errors += meter.counters.receive_errors.get();
        self.panics += meter.counters.panics.get();
        self.dropped += meter.dropped();
    }
}

/// What counts for one worker.
pub struct Meter {
    /// The counters of the worker.
    pub counters: Arc<UdpCounters>,
    /// The worker's socket; none once what the kernel has counted is in the sum.
    pub socket: Weak<UdpSocket>,
}

impl Meter {
    /// Datagrams that the kernel has dropped.
    pub fn dropped(&self) -> u64 {
        let socket = self.socket.upgrade();
        socket.and_then(|socket| socket.dropped().ok()).map_or(0, u64::from)
    }
}
