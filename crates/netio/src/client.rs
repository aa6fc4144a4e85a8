//! UDP from a client's side: connected sockets, and batches of what they send and receive.
//!
//! All memory is allocated when a batch is made or first filled. Nothing here waits: see
//! [`Poller`](crate::Poller).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;

use libc::{c_int, c_uint, iovec, mmsghdr};
use socket2::{Domain, Protocol, Socket, Type};

use crate::batch::stride_of;
use crate::headers::{self, message, of_several};
use crate::udp::{ask_for_buffers, dropped_by};
use crate::{UdpOptions, check};

/// Octets of the longest UDP payload, and so of the longest run of segments.
const PAYLOAD_MAX: usize = 65_507;

/// Segments in one run; linux/udp.h: UDP_MAX_SEGMENTS, 64 before Linux 6.8.
const SEGMENTS_MAX: usize = 64;

/// How often a datagram is sent again that the kernel did not take: each call may report an error
/// of earlier datagrams, and reports it once.
const SEND_AGAIN_MAX: u32 = 3;

/// Datagrams and errors that are dropped before a socket is connected again: more than a receive
/// buffer holds, as nothing comes while it is not.
const QUEUED_MAX: usize = 1 << 16;

/// A connected UDP socket: it hears its server only.
#[derive(Debug)]
pub struct ClientSocket {
    /// The socket's descriptor.
    socket: Socket,
}

impl ClientSocket {
    /// Connects to `server` from `local`, or from wherever the kernel likes.
    pub fn connect(
        server: SocketAddr,
        local: Option<SocketAddr>,
        options: &UdpOptions,
    ) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(server), Type::DGRAM, Some(Protocol::UDP))?;
        if let Some(local) = local {
            socket.bind(&local.into())?;
        }
        ask_for_buffers(&socket, options);
        socket.connect(&server.into())?;
        Ok(Self { socket })
    }

    /// Leaves the server, and gives the port back to the kernel if that had chosen it: nothing is
    /// heard until the socket is connected again.
    pub fn disconnect(&self) -> io::Result<()> {
        let nowhere = libc::sockaddr { sa_family: libc::AF_UNSPEC as u16, sa_data: [0; 14] };
        let len = size_of::<libc::sockaddr>() as libc::socklen_t;
        // SAFETY: the kernel reads an address of `len` octets.
        check(unsafe { libc::connect(self.socket.as_raw_fd(), &raw const nowhere, len) })?;
        Ok(())
    }

    /// Connects to `server` after [`disconnect`](Self::disconnect), from a port that the kernel
    /// chooses anew. What came to the port before is dropped.
    pub fn reconnect(&self, server: SocketAddr) -> io::Result<()> {
        for _ in 0..QUEUED_MAX {
            // SAFETY: the kernel writes nothing, as there is room for nothing.
            let dropped = check(unsafe {
                libc::recv(self.socket.as_raw_fd(), ptr::null_mut(), 0, libc::MSG_DONTWAIT) as c_int
            });
            match dropped {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.socket.connect(&server.into());
                }
                Err(error) if !is_icmp(&error) => return Err(error),
                Ok(_) | Err(_) => {} // a datagram, or what the network said of one
            }
        }
        Err(io::ErrorKind::ResourceBusy.into())
    }

    /// Sends a datagram; returns how many errors of the network (ICMP) the kernel reported, all of
    /// earlier datagrams. Anyone can forge those: where none but them keep the datagram from being
    /// sent, it counts as sent, and is lost as a datagram on the way may be.
    ///
    /// # Errors
    /// When the kernel itself refuses this datagram, for example as there is no route.
    pub fn send(&self, datagram: &[u8]) -> io::Result<u32> {
        let may_leave = || datagram.len() <= PAYLOAD_MAX && self.has_route();
        send_past_icmp(|| self.socket.send(datagram), may_leave)
    }

    /// Whether the kernel has a route to the server, as far as it reports: a socket that has sent
    /// nothing gets no errors of the network.
    #[cold]
    fn has_route(&self) -> bool {
        let Ok(server) = self.socket.peer_addr() else { return true };
        let socket = Socket::new(server.domain(), Type::DGRAM, Some(Protocol::UDP));
        socket.map_or(true, |socket| socket.connect(&server).is_ok())
    }

    /// Returns the receive buffer granted, in the unit of [`UdpOptions`]; the kernel may grant less
    /// than what was asked for.
    pub fn receive_buffer_bytes(&self) -> io::Result<usize> {
        // socket(7): the kernel doubles what it grants, for its own book-keeping.
        Ok(self.socket.recv_buffer_size()? / 2)
    }

    /// Datagrams that the kernel dropped on this socket, for want of room. Wraps at 2³².
    pub fn dropped(&self) -> io::Result<u32> {
        dropped_by(&self.socket)
    }
}

/// Calls `send` until the kernel takes the datagram, [`SEND_AGAIN_MAX`] times more than once at
/// most; returns how many errors were the network's. `may_leave` says whether all of them can be.
fn send_past_icmp(
    mut send: impl FnMut() -> io::Result<usize>,
    may_leave: impl FnOnce() -> bool,
) -> io::Result<u32> {
    let mut icmp_errors = 0;
    for again in 0.. {
        let Err(error) = send() else { break };
        let is_icmp = is_icmp(&error);
        icmp_errors += u32::from(is_icmp);
        if again == SEND_AGAIN_MAX {
            if is_icmp && may_leave() {
                break; // all were the network's
            }
            return Err(error);
        }
    }
    Ok(icmp_errors)
}

/// Whether an error of a connected socket is what the network reports about earlier datagrams:
/// Linux makes it of the type and code of an ICMP message (`icmp_err_convert`,
/// `icmpv6_err_convert`). An error of a receive call that is none of these is the system's own. A
/// send call may also fail so for want of a route, or as the datagram is too long.
#[must_use]
pub fn is_icmp(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ECONNREFUSED
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::EHOSTDOWN
                | libc::ENONET
                | libc::ENOPROTOOPT
                | libc::EPROTO
                | libc::EOPNOTSUPP
                | libc::EACCES
                | libc::EMSGSIZE
        )
    )
}

/// Whether an error of opening or connecting a socket is that this system has no descriptor, memory
/// or port left, which says nothing of the server.
#[must_use]
pub fn is_exhaustion(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::EMFILE
                | libc::ENFILE
                | libc::ENOMEM
                | libc::ENOBUFS
                | libc::ENOSPC // of what epoll may watch
                | libc::EAGAIN // of ports, where connecting chooses one
                | libc::EADDRINUSE
        )
    )
}

impl AsFd for ClientSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// How a batch leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendCall {
    /// A call for each datagram.
    Single,
    /// One call for all datagrams.
    Batch,
    /// One call for all datagrams, sorted by length: those of one length are one message until the
    /// last layer (GSO). Cheaper for the sender than any real client is.
    Segments,
}

/// A gathered datagram.
#[derive(Clone, Copy)]
struct Part {
    /// Offset in the batch's octets.
    start: usize,
    /// Length of the datagram, octets.
    len: usize,
}

/// The control message that says how long each segment of a run is.
#[derive(Clone, Copy)]
#[repr(C)]
struct SegmentSize {
    /// Header of the control message.
    header: libc::cmsghdr,
    /// Segment size, octets.
    size: u16,
    /// Padding as `CMSG_SPACE` adds it.
    padding: [u8; 6],
}

const _: () = {
    // SAFETY: arithmetic on its argument.
    let space = unsafe { libc::CMSG_SPACE(size_of::<u16>() as c_uint) };
    assert!(size_of::<SegmentSize>() == space as usize);
};

/// Datagrams that are gathered, then sent over one socket.
pub struct SendBatch {
    /// Way in which the batch is sent.
    call: SendCall,
    /// The datagrams, without gaps.
    octets: Vec<u8>,
    /// Parts of `octets`, one for each datagram.
    parts: Vec<Part>,
    /// The buffers of the messages as pointers; only valid within one send.
    iovecs: Vec<iovec>,
    /// Lengths of segments; only used with [`SendCall::Segments`].
    controls: Vec<SegmentSize>,
    /// Arguments of the system call; only valid within one send.
    messages: Vec<mmsghdr>,
}

// SAFETY: raw pointers are written anew before each use and point into vectors of the same value.
unsafe impl Send for SendBatch {}

impl SendBatch {
    /// Makes an empty batch.
    #[must_use]
    pub fn new(call: SendCall) -> Self {
        Self {
            call,
            octets: Vec::new(),
            parts: Vec::new(),
            iovecs: Vec::new(),
            controls: Vec::new(),
            messages: Vec::new(),
        }
    }

    /// Adds a datagram; its octets may be changed until the batch is sent.
    pub fn push(&mut self, datagram: &[u8]) -> &mut [u8] {
        let (start, len) = (self.octets.len(), datagram.len());
        self.parts.push(Part { start, len });
        self.octets.extend_from_slice(datagram);
        &mut self.octets[start..]
    }

    /// Sends everything and leaves the batch empty; returns how many datagrams the kernel refused,
    /// for example because an earlier one was answered by "port unreachable".
    pub fn send(&mut self, socket: &ClientSocket) -> usize {
        let refused = match self.call {
            SendCall::Single => self.send_singly(socket),
            SendCall::Batch | SendCall::Segments => self.send_together(socket),
        };
        self.parts.clear();
        self.octets.clear();
        refused
    }

    /// Returns a call for each datagram.
    fn send_singly(&self, socket: &ClientSocket) -> usize {
        let refuses = |part: &&Part| {
            let datagram = &self.octets[part.start..][..part.len];
            socket.socket.send(datagram).is_err()
        };
        self.parts.iter().filter(refuses).count()
    }

    /// Sends the parts with as few calls as possible; returns how many the kernel refused.
    fn send_together(&mut self, socket: &ClientSocket) -> usize {
        self.build_messages();
        let (mut next, mut refused) = (0, 0);
        while next < self.messages.len() {
            let left = &mut self.messages[next..];
            // SAFETY: `build_messages` has just made these point at parts of `octets` and at
            // `iovecs` and `controls`, none of which changes before the call returns.
            let count = check(unsafe {
                libc::sendmmsg(
                    socket.as_fd().as_raw_fd(),
                    left.as_mut_ptr(),
                    left.len() as c_uint,
                    0,
                )
            });
            match count {
                Ok(count) => next += count as usize,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The error belongs to the first message; sendmmsg(2) sent none.
                Err(_) => {
                    refused += headers::part_count(&self.messages[next].msg_hdr);
                    next += 1;
                }
            }
        }
        refused
    }

    /// Makes `messages` point at the datagrams.
    fn build_messages(&mut self) {
        self.iovecs.clear();
        self.controls.clear();
        self.messages.clear();
        if self.call == SendCall::Segments {
            self.parts.sort_unstable_by_key(|part| (part.len, part.start));
        }
        let base = self.octets.as_mut_ptr();
        self.iovecs.extend(self.parts.iter().map(|part| iovec {
            iov_base: base.wrapping_add(part.start).cast(),
            iov_len: part.len,
        }));
        let mut next = 0;
        while let Some(first) = self.parts.get(next) {
            let count = self.message_width(next);
            let parts = self.iovecs.as_mut_ptr().wrapping_add(next);
            self.messages.push(of_several(message(parts, count)));
            self.controls.push(SegmentSize::new(first.len));
            next += count;
        }
        // Only now do the controls stay where they are.
        for (message, control) in self.messages.iter_mut().zip(&mut self.controls) {
            if message.msg_hdr.msg_iovlen > 1 {
                let control = ptr::from_mut(control);
                message.msg_hdr =
                    headers::with_control(message.msg_hdr, control, size_of::<SegmentSize>());
            }
        }
    }

    /// Returns how many datagrams from the one at `place` on leave as one message.
    fn message_width(&self, place: usize) -> usize {
        if self.call != SendCall::Segments {
            return 1;
        }
        let len = self.parts[place].len;
        let most = SEGMENTS_MAX.min(PAYLOAD_MAX / len.max(1)).max(1);
        self.parts[place..].iter().take(most).take_while(|part| part.len == len).count()
    }
}

impl SegmentSize {
    /// A control message which says that segments have `octets`, which is at most [`PAYLOAD_MAX`].
    fn new(octets: usize) -> Self {
        let header = headers::control(libc::SOL_UDP, libc::UDP_SEGMENT, size_of::<u16>());
        Self { header, size: octets as u16, padding: [0; 6] }
    }
}

/// A fixed number of places for datagrams, filled by one call.
pub struct ReceiveBatch {
    /// Arguments of the system call; they point at `_iovecs`.
    messages: Vec<mmsghdr>,
    /// One part for each message; points at `buffers`.
    _iovecs: Vec<iovec>,
    /// The datagrams, `stride` apart.
    buffers: Vec<u8>,
    /// Octets from one buffer to the next.
    stride: usize,
    /// Number of datagrams received.
    received: usize,
}

// SAFETY: the raw pointers point only into vectors of the same value, which are never resized.
unsafe impl Send for ReceiveBatch {}

impl ReceiveBatch {
    /// Room for `width` datagrams (1 to 1024, the kernel's limit) of up to `capacity` octets.
    #[must_use]
    pub fn new(width: usize, capacity: usize) -> Self {
        let width = width.clamp(1, 1024);
        let stride = stride_of(capacity);
        let mut buffers = vec![0; width * stride];
        let base: *mut u8 = buffers.as_mut_ptr();
        let iovec =
            |place| iovec { iov_base: base.wrapping_add(place * stride).cast(), iov_len: capacity };
        let mut iovecs: Vec<iovec> = (0..width).map(iovec).collect();
        let first = iovecs.as_mut_ptr();
        let messages =
            (0..width).map(|place| of_several(message(first.wrapping_add(place), 1))).collect();
        Self { messages, _iovecs: iovecs, buffers, stride, received: 0 }
    }

    /// Takes what is queued, without waiting; returns whether the batch is full, so that there may
    /// be more.
    ///
    /// # Errors
    /// "Port unreachable" and the like ([`is_icmp`]) are reported here, once for each; an empty
    /// queue is no error.
    pub fn receive(&mut self, socket: &ClientSocket) -> io::Result<bool> {
        self.receive_at_most(socket, self.messages.len())
    }

    /// Takes queued datagrams, but only so many, at least one: looking for more than can be there
    /// costs time. Returns whether it took as many.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn receive_at_most(&mut self, socket: &ClientSocket, width: usize) -> io::Result<bool> {
        let width = width.clamp(1, self.messages.len());
        self.received = 0;
        // SAFETY: all messages point at parts of `buffers` of the stated length, which nothing
        // else borrows while `self` is borrowed mutably.
        let count = check(unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                self.messages.as_mut_ptr(),
                width as c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        });
        match count {
            Ok(count) => self.received = count as usize,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(self.received == width)
    }

    /// Returns the datagrams; those longer than the capacity are cut.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let lens = self.messages[..self.received].iter().map(|message| message.msg_len as usize);
        self.buffers.chunks_exact(self.stride).zip(lens).map(|(buffer, len)| &buffer[..len])
    }

    /// Removes all datagrams.
    pub fn clear(&mut self) {
        self.received = 0;
    }

    /// Returns the datagram at a place, if there are so many.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<&[u8]> {
        let len = self.messages[..self.received].get(place)?.msg_len as usize;
        self.buffers.get(place * self.stride..)?.get(..len)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    /// Sends datagrams of these lengths in one batch; returns what arrived.
    fn exchange(call: SendCall, lens: &[usize]) -> Vec<Vec<u8>> {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        server.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let address = server.local_addr().unwrap();
        let client = ClientSocket::connect(address, None, &UdpOptions::default()).unwrap();
        let mut batch = SendBatch::new(call);
        for (index, len) in lens.iter().enumerate() {
            batch.push(&vec![0; *len])[0] = index as u8;
        }
        assert_eq!(batch.send(&client), 0);
        let mut buffer = [0; 2048];
        std::iter::from_fn(|| server.recv(&mut buffer).ok().map(|len| buffer[..len].to_vec()))
            .collect()
    }

    #[test]
    fn datagrams_arrive_one_by_one_however_they_are_sent() {
        let lens = [30, 31, 30, 30, 31, 29];
        let all = lens.iter().enumerate().map(|(index, len)| {
            let mut octets = vec![0; *len];
            octets[0] = index as u8;
            octets
        });
        let mut all: Vec<_> = all.collect();
        for call in [SendCall::Single, SendCall::Batch] {
            assert_eq!(exchange(call, &lens), all, "{call:?}");
        }
        all.sort_by_key(Vec::len);
        assert_eq!(exchange(SendCall::Segments, &lens), all);
    }

    #[test]
    fn more_datagrams_than_a_run_may_have_are_several_runs() {
        assert_eq!(exchange(SendCall::Segments, &[20; 150]).len(), 150);
    }

    #[test]
    fn a_socket_that_is_connected_again_has_another_port_and_nothing_of_before() {
        for own in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(server) = UdpSocket::bind(own) else { continue }; // a machine without IPv6
            let address = server.local_addr().unwrap();
            let client = ClientSocket::connect(address, None, &UdpOptions::default()).unwrap();
            let (mut buffer, mut ports) = ([0; 16], Vec::new());
            let mut replies = ReceiveBatch::new(4, 16);
            for round in 0..20_u8 {
                client.send(&[round]).unwrap();
                let (_, peer) = server.recv_from(&mut buffer).unwrap();
                (0..3).for_each(|_| _ = server.send_to(&[round], peer).unwrap());
                assert!(replies.receive_at_most(&client, 1).unwrap());
                assert_eq!(replies.get(0), Some(&[round][..]), "the first of this round");
                client.disconnect().unwrap();
                let _ = server.send_to(b"late", peer); // its error may be "port unreachable"
                client.reconnect(address).unwrap();
                ports.push(peer.port());
            }
            ports.sort_unstable();
            ports.dedup();
            assert!(ports.len() >= 18, "{} ports in 20 rounds", ports.len());
        }
    }

    #[test]
    fn what_the_network_said_of_an_earlier_datagram_keeps_none_from_being_sent() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        drop(server);
        let client = ClientSocket::connect(address, None, &UdpOptions::default()).unwrap();
        assert_eq!(client.send(b"lost").unwrap(), 0); // the kernel notes that the port is closed
        let server = UdpSocket::bind(address).unwrap();
        server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(client.send(b"sent").unwrap(), 1, "and tells it now");
        let mut buffer = [0; 16];
        assert_eq!(server.recv(&mut buffer).unwrap(), 4);
        assert_eq!(&buffer[..4], b"sent");
    }

    /// Result of a send whose calls fail with these errors, one after the other, and then succeed.
    fn send_after(errors: &[i32], has_route: bool) -> Result<u32, Option<i32>> {
        let mut errors = errors.iter();
        let send = || errors.next().map_or(Ok(1), |code| Err(io::Error::from_raw_os_error(*code)));
        send_past_icmp(send, || has_route).map_err(|error| error.raw_os_error())
    }

    #[test]
    fn errors_of_the_network_refuse_no_datagram_however_many_come() {
        assert_eq!(send_after(&[], true), Ok(0));
        assert_eq!(send_after(&[libc::ECONNREFUSED, libc::EHOSTUNREACH], true), Ok(2));
        assert_eq!(send_after(&[libc::ECONNREFUSED; 4], true), Ok(4));
        assert_eq!(send_after(&[libc::ENETUNREACH; 4], true), Ok(4));
    }

    #[test]
    fn a_datagram_is_refused_for_want_of_a_route_or_by_the_kernel() {
        assert_eq!(send_after(&[libc::ENETUNREACH; 4], false), Err(Some(libc::ENETUNREACH)));
        assert_eq!(send_after(&[libc::EPERM; 4], true), Err(Some(libc::EPERM)));
        assert_eq!(send_after(&[libc::ENOBUFS], true), Ok(0), "lack of memory may pass");
        let address = ([127, 0, 0, 1], 9).into();
        let client = ClientSocket::connect(address, None, &UdpOptions::default()).unwrap();
        assert!(client.has_route());
        let too_long = client.send(&vec![0; PAYLOAD_MAX + 1]);
        assert_eq!(too_long.unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
    }

    #[test]
    fn an_error_of_receiving_that_the_system_makes_is_not_the_networks() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let error = ReceiveBatch::new(1, 16).receive(&ClientSocket { socket }).unwrap_err();
        assert_eq!((error.raw_os_error(), is_icmp(&error)), (Some(libc::ENOTCONN), false));
    }

    #[test]
    fn queued_replies_are_taken_together_and_an_empty_queue_is_no_error() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let client = ClientSocket::connect(address, None, &UdpOptions::default()).unwrap();
        let mut batch = SendBatch::new(SendCall::Batch);
        batch.push(b"hello");
        batch.send(&client);
        let (_, peer) = server.recv_from(&mut [0; 16]).unwrap();
        let mut replies = ReceiveBatch::new(4, 16);
        assert!(!replies.receive(&client).unwrap());
        assert_eq!(replies.iter().count(), 0);
        for reply in [&b"a"[..], b"bc", b"longer than sixteen octets"] {
            server.send_to(reply, peer).unwrap();
        }
        assert!(!replies.receive(&client).unwrap());
        let got: Vec<&[u8]> = replies.iter().collect();
        assert_eq!(got, [&b"a"[..], b"bc", b"longer than sixt"]);
        assert_eq!(client.dropped().unwrap(), 0);
    }
}
