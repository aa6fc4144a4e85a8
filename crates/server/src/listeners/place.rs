//! What is at a place: a listener that runs, and what is left of those that were closed.

use crate::listen::{Sockets, overlaps};
use crate::threads::TcpTask;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Instant;
use zonda_engine::counters::Counters;
use zonda_netio::UdpSocket;
use zonda_transport::udp::UdpWorker;

/// A UDP worker, with the counters of its engine.
pub(super) type CountedWorker = (UdpWorker, Arc<Counters>);

/// A listener that runs.
pub(super) struct RunningListener {
    /// The address in the configuration, where the port may be 0.
    pub address: SocketAddr,
    pub sockets: Sockets,
    pub workers: Vec<CountedWorker>,
    pub tcp: Option<TcpTask>,
}

/// What is left of a listener that was closed.
pub(super) struct FormerListener {
    /// The address in the configuration.
    pub address: SocketAddr,
    /// The UDP sockets, which workers and queries that wait keep open.
    pub sockets: Vec<Weak<UdpSocket>>,
    /// Whether one of these receives until it is closed, though no worker reads it.
    pub is_receiving: bool,
    /// The task of connections that were open.
    pub tcp: Option<TcpTask>,
}

impl FormerListener {
    /// Whether the address, or one that overlaps it, is this one.
    pub fn meets(&self, address: SocketAddr) -> bool {
        let is_same = self.address == address && address.port() != 0;
        is_same || overlaps(self.address, address)
    }

    /// Whether a UDP socket is open.
    pub fn has_socket(&self) -> bool {
        self.sockets.iter().any(|socket| socket.strong_count() > 0)
    }

    /// Whether nothing is left.
    pub fn is_over(&self) -> bool {
        !self.has_socket() && self.tcp.as_ref().is_none_or(TcpTask::is_finished)
    }
}

/// What is at a place.
#[derive(Default)]
pub(super) struct Place {
    /// The listener that is answered on, if there is one.
    pub open: Option<RunningListener>,
    /// What is left of listeners that were closed.
    pub former: Vec<FormerListener>,
    /// Workers of these that did not stop in time.
    pub late: Vec<CountedWorker>,
    /// When the last of them was closed.
    pub closed_at: Option<Instant>,
    /// The address that was answered on last.
    pub last_address: Option<SocketAddr>,
}

impl Place {
    /// Whether nothing is left of listeners that were closed.
    pub fn is_over(&self) -> bool {
        self.former.iter().all(FormerListener::is_over)
            && self.late.iter().all(|(worker, _)| worker.has_ended())
    }
}

impl RunningListener {
    /// The address that was answered on, or else that of the configuration.
    pub fn last_address(&self) -> SocketAddr {
        self.sockets.address().unwrap_or(self.address)
    }
}
