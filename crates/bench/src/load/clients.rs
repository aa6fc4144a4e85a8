//! Clients over one transport or another.

use std::ops::Range;

use zonda_netio::Poller;

use super::tcp::TcpClients;
use super::udp::UdpClients;
use super::{LoadError, Plan, Transport};

/// A thread's clients.
pub enum Clients {
    /// A socket each.
    Udp(UdpClients),
    /// A connection each.
    Tcp(TcpClients),
}

impl Clients {
    /// Connects the clients with these numbers; see [`UdpClients::connect`].
    pub fn connect(plan: &Plan, numbers: Range<usize>, poller: &Poller) -> Result<Self, LoadError> {
        Ok(match plan.transport {
            Transport::Udp => Self::Udp(UdpClients::connect(plan, numbers, poller)?),
            Transport::Tcp => Self::Tcp(TcpClients::connect(plan, numbers, poller)?),
        })
    }

    /// Has the client at `place` connected again if it has lost its server.
    pub fn reconnect(&mut self, place: usize, now_nanos: u64, poller: &Poller) {
        match self {
            Self::Udp(_) => {}
            Self::Tcp(clients) => clients.reconnect(place, now_nanos, poller),
        }
    }

    /// Whether the client at `place` can take queries now.
    pub fn is_open(&self, place: usize) -> bool {
        match self {
            Self::Udp(_) => true,
            Self::Tcp(clients) => clients.is_open(place),
        }
    }

    /// Gathers a query.
    pub fn push(&mut self, query: &[u8], id: u16) {
        match self {
            Self::Udp(clients) => clients.push(query, id),
            Self::Tcp(clients) => clients.push(query, id),
        }
    }

    /// Sends what was gathered from the client at `place`.
    pub fn send(&mut self, place: usize) {
        match self {
            Self::Udp(clients) => clients.send(place),
            Self::Tcp(clients) => clients.send(place),
        }
    }

    /// Takes what the client at `place` has received; returns whether there may be more.
    pub fn receive(&mut self, place: usize, now_nanos: u64) -> bool {
        match self {
            Self::Udp(clients) => clients.receive(place),
            Self::Tcp(clients) => clients.receive(place, now_nanos),
        }
    }

    /// Shows `judge` what [`Self::receive`] has taken.
    pub fn each_reply(&self, mut judge: impl FnMut(&[u8])) {
        match self {
            Self::Udp(clients) => clients.replies().for_each(&mut judge),
            Self::Tcp(clients) => clients.replies().for_each(&mut judge),
        }
    }

    /// Whether the server will answer nothing of what the client at `place` has sent; true once.
    pub fn has_closed(&mut self, place: usize) -> bool {
        match self {
            Self::Udp(_) => false,
            Self::Tcp(clients) => clients.has_closed(place),
        }
    }

    /// Octets that the kernel gave the smallest of the receive buffers, if datagrams use them.
    pub fn buffer_octets(&self) -> Option<usize> {
        match self {
            Self::Udp(clients) => clients.buffer_octets(),
            Self::Tcp(_) => None,
        }
    }

    /// Datagrams that the sockets had no room for.
    pub fn dropped(&self) -> u64 {
        match self {
            Self::Udp(clients) => clients.dropped(),
            Self::Tcp(_) => 0,
        }
    }

    /// Returns how often "port unreachable" came back.
    pub fn refused(&self) -> u64 {
        match self {
            Self::Udp(clients) => clients.refused(),
            Self::Tcp(_) => 0,
        }
    }

    /// Returns how often a connection was opened again.
    pub fn reconnects(&self) -> u64 {
        match self {
            Self::Udp(_) => 0,
            Self::Tcp(clients) => clients.reconnects(),
        }
    }
}
