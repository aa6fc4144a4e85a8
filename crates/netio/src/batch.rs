//! Datagrams received together, answered in place and sent together.
//!
//! One `recvmmsg` fills up to `width` slots; the caller writes each reply over its query; one
//! `sendmmsg` sends them back to where they came from. All memory is allocated when the batch is
//! made.
//!
//! # Invariants
//! - Slot *i* is the *i*-th buffer, peer name, local address and I/O vector; `messages` only points
//!   at them. What receiving and sending change in it is built anew before the next receive.
//! - `iovecs[i].iov_len` is the capacity while receiving, then the query's length, then the
//!   reply's. It is clamped to the capacity before the kernel sees it, since callers may write it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use libc::{c_int, c_uint, iovec, mmsghdr};

use crate::headers::{self, of_several};
use crate::message::{LocalAddress, PeerName, SendResult, send_all};
use crate::replies::ReplyPath;
use crate::udp::UdpSocket;

/// Bytes in a cache line.
const CACHE_LINE: usize = 64;

/// Bytes from one buffer of a batch to the next: an odd number of cache lines, since at a distance
/// of 4096 bytes all would share one set of L1.
pub fn stride_of(capacity: usize) -> usize {
    (capacity.div_ceil(CACHE_LINE) | 1) * CACHE_LINE
}

/// One datagram of a batch: its sender, and the place of both query and reply.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// Address of the sender, which gets the reply. An IPv4 sender is always `V4`.
    pub peer: SocketAddr,
    /// The whole buffer; the first `len` bytes are the datagram, the rest is of no meaning.
    pub buffer: &'a mut [u8],
    /// In: length of the datagram (a longer one is cut to the buffer). Out: of the reply, 0 = none.
    pub len: &'a mut usize,
}

/// A fixed number of datagram slots, used again and again by one worker.
pub struct DatagramBatch {
    /// Arguments of the two system calls, one per slot.
    messages: Vec<mmsghdr>,
    /// One part per message.
    iovecs: Vec<iovec>,
    /// Addresses of the senders.
    names: Vec<PeerName>,
    /// Local addresses, on wildcard sockets.
    controls: Vec<LocalAddress>,
    /// Buffers, `stride` apart.
    buffers: Vec<u8>,
    /// Bytes from one buffer to the next.
    stride: usize,
    /// Bytes of one buffer that are used.
    capacity: usize,
    /// Slots that hold a datagram now.
    received: usize,
    /// Slots whose message the last receive and send have changed.
    used: usize,
}

// SAFETY: the raw pointers point only into vectors that the same value owns, so they move with it.
unsafe impl Send for DatagramBatch {}

impl DatagramBatch {
    /// Makes a batch of `width` slots (1 to 1024, the kernel's limit) of `capacity` bytes each.
    ///
    /// 16 to 64 slots cost the same per query; one slot costs 30 % more.
    pub fn new(width: usize, capacity: usize) -> Self {
        const WIDTH_MAX: usize = 1024;
        let width = width.clamp(1, WIDTH_MAX);
        let stride = stride_of(capacity);
        let mut batch = Self {
            messages: Vec::with_capacity(width),
            iovecs: vec![iovec { iov_base: ptr::null_mut(), iov_len: capacity }; width],
            names: vec![PeerName::default(); width],
            controls: vec![LocalAddress::UNSET; width],
            buffers: vec![0; width * stride],
            stride,
            capacity,
            received: 0,
            used: 0,
        };
        for slot in 0..width {
            batch.iovecs[slot].iov_base =
                batch.buffers.as_mut_ptr().wrapping_add(slot * stride).cast();
            let message = batch.message(slot);
            batch.messages.push(message);
        }
        batch
    }

    /// Waits for datagrams and takes all that are queued, at most the width; returns how many.
    ///
    /// A signal ends the wait with [`io::ErrorKind::Interrupted`]. Whatever the batch held before
    /// is gone.
    pub fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        self.receive_with(socket, libc::MSG_WAITFORONE)
    }

    /// Receives as [`Self::receive`] does, but never waits: with nothing queued it returns 0.
    pub fn receive_queued(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        match self.receive_with(socket, libc::MSG_DONTWAIT) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            result => result,
        }
    }

    /// Calls `recvmmsg` once.
    fn receive_with(&mut self, socket: &UdpSocket, flags: c_int) -> io::Result<usize> {
        for slot in 0..self.used {
            self.messages[slot] = self.message(slot);
            self.iovecs[slot].iov_len = self.capacity;
        }
        (self.received, self.used) = (0, 0);
        let width = self.messages.len() as c_uint;
        // SAFETY: `width` messages point at slots of this batch: names, controls and buffers of the
        // stated lengths, which nothing else borrows while `self` is borrowed mutably.
        let count = crate::check(unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                self.messages.as_mut_ptr(),
                width,
                flags as _,
                ptr::null_mut(),
            )
        })?;
        (self.received, self.used) = (count as usize, count as usize);
        for slot in 0..self.received {
            self.iovecs[slot].iov_len = self.received_len(slot);
        }
        if socket.is_wildcard() {
            self.controls[..self.received].iter_mut().for_each(LocalAddress::leave_route_to_kernel);
        }
        Ok(self.received)
    }

    /// Number of datagrams held.
    pub fn len(&self) -> usize {
        self.received
    }

    /// Whether no datagram is held.
    pub fn is_empty(&self) -> bool {
        self.received == 0
    }

    /// Returns the datagram in slot `index`.
    ///
    /// # Panics
    /// If `index` is not below [`Self::len`].
    #[inline]
    pub fn get(&mut self, index: usize) -> Datagram<'_> {
        assert!(index < self.received, "slot {index} of a batch of {}", self.received);
        let start = index * self.stride;
        Datagram {
            peer: self.names[index].address(),
            buffer: &mut self.buffers[start..start + self.capacity],
            len: &mut self.iovecs[index].iov_len,
        }
    }

    /// Returns the way of a reply to the datagram in slot `index`, for one that is sent later.
    ///
    /// # Panics
    /// If `index` is not below [`Self::len`].
    pub fn reply_path(&self, index: usize) -> ReplyPath {
        let header = &self.messages[..self.received][index].msg_hdr;
        ReplyPath {
            peer: self.names[index],
            local: self.controls[index],
            name_len: header.msg_namelen,
            control_len: headers::control_len(header),
        }
    }

    /// Length of the datagram in slot `index` as it was received, whatever was written over it.
    ///
    /// # Panics
    /// If `index` is not below [`Self::len`].
    pub fn received_len(&self, index: usize) -> usize {
        let messages = &self.messages[..self.received];
        (messages[index].msg_len as usize).min(self.capacity)
    }

    /// Sends the reply of every slot whose length is not 0, each from the address that was asked.
    ///
    /// A reply that the kernel refuses is counted and left out; the rest is sent. The batch is
    /// empty afterwards.
    pub fn send(&mut self, socket: &UdpSocket) -> SendResult {
        let ready = self.gather_replies();
        // SAFETY: each of these messages points at a slot of this batch, as `message` built it, and
        // `iov_len` was clamped to the capacity.
        unsafe { send_all(socket, &mut self.messages[..ready]) }
    }

    /// Moves the messages that carry a reply to the front; returns how many there are.
    fn gather_replies(&mut self) -> usize {
        let mut ready = 0;
        for slot in 0..self.received {
            let len = &mut self.iovecs[slot].iov_len;
            debug_assert!(*len <= self.capacity, "a reply longer than its buffer");
            *len = (*len).min(self.capacity);
            if *len > 0 {
                self.messages[ready] = self.messages[slot];
                ready += 1;
            }
        }
        self.received = 0;
        ready
    }

    /// Returns the message header of a slot, ready to receive.
    #[inline]
    fn message(&mut self, slot: usize) -> mmsghdr {
        let name = self.names.as_mut_ptr().wrapping_add(slot);
        let control = self.controls.as_mut_ptr().wrapping_add(slot);
        let header = headers::message(self.iovecs.as_mut_ptr().wrapping_add(slot), 1);
        let header = headers::with_name(header, name, size_of::<PeerName>() as libc::socklen_t);
        of_several(headers::with_control(header, control, size_of::<LocalAddress>()))
    }
}
