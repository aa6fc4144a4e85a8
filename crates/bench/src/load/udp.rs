//! Clients over UDP: connected sockets that share a thread's batches.

use std::io;
use std::ops::Range;

use zonda_netio::{ClientSocket, Poller, ReceiveBatch, SendBatch, SendCall, UdpOptions};

use super::{LoadError, Pace, Plan};

/// Replies taken by one call.
const RECEIVE_WIDTH: usize = 64;

/// Octets of the longest reply that is read; longer ones are cut, and so are wrong.
const REPLY_OCTETS: usize = 4096;

/// A thread's clients.
pub struct UdpClients {
    /// Sockets, one for each client.
    sockets: Vec<ClientSocket>,
    /// Queries that were not sent yet.
    sending: SendBatch,
    /// Replies that were received last.
    receiving: ReceiveBatch,
    /// Number of errors that no process has the port.
    refused: u64,
}

impl UdpClients {
    /// Connects a thread's clients, of which `places` are the numbers among all clients, and has
    /// `poller` know them by their places among the thread's.
    pub fn connect(plan: &Plan, places: Range<usize>, poller: &Poller) -> Result<Self, LoadError> {
        let bytes = plan.buffer_octets;
        let options = UdpOptions {
            receive_buffer_bytes: bytes,
            send_buffer_bytes: bytes,
            ..UdpOptions::default()
        };
        let mut sockets = Vec::with_capacity(places.len());
        for (place, client) in places.enumerate() {
            let socket = ClientSocket::connect(plan.server, plan.local_of(client), &options)
                .map_err(|error| LoadError::Connect(plan.server, error))?;
            poller.add(&socket, place).map_err(LoadError::System)?;
            sockets.push(socket);
        }
        let call = match plan.pace {
            Pace::Dnsperf => SendCall::Single,
            Pace::Batch if plan.segment => SendCall::Segments,
            Pace::Batch => SendCall::Batch,
        };
        // A generator that takes replies faster than dnsperf asks faster than it, and what comes
        // faster is cheaper for the server.
        let receive_width = if plan.pace == Pace::Dnsperf { 1 } else { RECEIVE_WIDTH };
        let receiving = ReceiveBatch::new(receive_width, REPLY_OCTETS);
        Ok(Self { sockets, sending: SendBatch::new(call), receiving, refused: 0 })
    }

    /// Gathers a query.
    pub fn push(&mut self, query: &[u8], id: u16) {
        let octets = self.sending.push(query);
        octets[..2].copy_from_slice(&id.to_be_bytes());
    }

    /// Sends what was gathered from the client at `place`. What the kernel refuses is lost.
    pub fn send(&mut self, place: usize) {
        self.sending.send(&self.sockets[place]);
    }

    /// Takes what the client at `place` has received; returns whether there may be more.
    pub fn receive(&mut self, place: usize) -> bool {
        match self.receiving.receive(&self.sockets[place]) {
            Ok(is_full) => is_full,
            Err(error) => {
                let is_refused = error.kind() == io::ErrorKind::ConnectionRefused;
                self.refused += u64::from(is_refused);
                is_refused
            }
        }
    }

    /// Returns how often "port unreachable" came back.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns what [`Self::receive`] has taken.
    pub fn replies(&self) -> impl Iterator<Item = &[u8]> {
        self.receiving.iter()
    }

    /// Octets that the kernel gave the smallest of the receive buffers.
    pub fn buffer_octets(&self) -> Option<usize> {
        self.sockets.iter().filter_map(|socket| socket.receive_buffer_bytes().ok()).min()
    }

    /// Datagrams that the sockets had no room for.
    pub fn dropped(&self) -> u64 {
        self.sockets.iter().filter_map(|socket| socket.dropped().ok()).map(u64::from).sum()
    }
}
