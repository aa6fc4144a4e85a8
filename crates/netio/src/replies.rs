//! Replies that are sent later than the batch that their queries came with.

use std::net::SocketAddr;

use libc::{iovec, mmsghdr, socklen_t};

use crate::headers::{self, of_several};
use crate::message::{LocalAddress, PeerName, SendResult, send_all};
use crate::udp::UdpSocket;

/// Where a reply goes, and from which address.
#[derive(Clone, Copy)]
pub struct ReplyPath {
    /// Address of the client that gets the reply.
    pub(crate) peer: PeerName,
    /// Local address of the query, on wildcard sockets.
    pub(crate) local: LocalAddress,
    /// Octets of `peer`.
    pub(crate) name_len: socklen_t,
    /// Octets of `local`.
    pub(crate) control_len: usize,
}

impl ReplyPath {
    /// Returns the client's address.
    pub fn peer(&self) -> SocketAddr {
        self.peer.address()
    }
}

impl std::fmt::Debug for ReplyPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "to {}", self.peer())
    }
}

/// Replies that are sent later than their queries' batch. Memory is kept from one send to the next.
#[derive(Default)]
pub struct ReplyBatch {
    /// The replies, without gaps.
    octets: Vec<u8>,
    /// The end of each reply in `octets`.
    ends: Vec<usize>,
    /// The way of each.
    paths: Vec<ReplyPath>,
    /// Buffers of the messages; only valid within one send.
    iovecs: Vec<iovec>,
    /// Arguments of the system call; only valid within one send.
    messages: Vec<mmsghdr>,
}

// SAFETY: raw pointers are written anew before each use and point into vectors of the same value.
unsafe impl Send for ReplyBatch {}

impl ReplyBatch {
    /// Number of replies held.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no reply is held.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a reply.
    pub fn push(&mut self, path: ReplyPath, reply: &[u8]) {
        self.octets.extend_from_slice(reply);
        self.ends.push(self.octets.len());
        self.paths.push(path);
    }

    /// Sends all replies over the socket that their queries came to. The batch is empty afterwards.
    pub fn send(&mut self, socket: &UdpSocket) -> SendResult {
        self.iovecs.clear();
        self.messages.clear();
        let base = self.octets.as_mut_ptr();
        let mut start = 0;
        self.iovecs.extend(self.ends.iter().map(|end| {
            let iov_base = base.wrapping_add(start).cast();
            let iov_len = end - start;
            start = *end;
            iovec { iov_base, iov_len }
        }));
        let parts = self.iovecs.iter_mut().zip(&mut self.paths);
        self.messages.extend(parts.map(|(part, path)| {
            let header = headers::message(part, 1);
            let header = headers::with_name(header, &raw mut path.peer, path.name_len);
            let local = &raw mut path.local;
            of_several(headers::with_control(header, local, path.control_len))
        }));
        // SAFETY: `iovecs` point into `octets`, and messages at elements of `iovecs` and `paths`;
        // none of these vectors changes before the call returns.
        let sent = unsafe { send_all(socket, &mut self.messages) };
        self.octets.clear();
        self.ends.clear();
        self.paths.clear();
        sent
    }
}
