//! Sockets passed between processes over a Unix socket, and what kind each one is.
//!
//! Closing the sockets of a `SO_REUSEPORT` group loses what is queued in them, so a process that
//! takes over from another takes its descriptors (unix(7), `SCM_RIGHTS`).
//!
//! A frame on the wire: length of the payload (2 bytes, big-endian), payload. The descriptors
//! travel with the first byte.

use std::io::{self, Read, Write};
use std::mem::size_of;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use libc::{c_int, iovec, msghdr};
use socket2::{SockRef, Type};

use crate::check;
use crate::headers;
use crate::udp::{UdpOptions, UdpSocket};

/// Descriptors in one frame: the kernel's limit, `SCM_MAX_FD`.
pub const DESCRIPTORS_MAX: usize = 253;

/// Bytes of the length in front of the payload.
const LENGTH_BYTES: usize = 2;

/// Whether a descriptor can be written to now or within `limit`, whole milliseconds: a pipe then
/// takes 4,096 octets without blocking. One with an error can: the write reports it.
pub fn is_writable(descriptor: BorrowedFd<'_>, limit: Duration) -> bool {
    let limit = c_int::try_from(limit.as_millis()).unwrap_or(c_int::MAX);
    let mut poll = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    loop {
        // SAFETY: the kernel reads and writes one `pollfd`, which outlives the call.
        match check(unsafe { libc::poll(&mut poll, 1, limit) }) {
            Ok(ready) => return ready > 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return true,
        }
    }
}

/// Sends one frame: `payload` (at most 65,535 bytes) and descriptors (at most [`DESCRIPTORS_MAX`]).
pub fn send(stream: &UnixStream, payload: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let length = u16::try_from(payload.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    if descriptors.len() > DESCRIPTORS_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut control = Control::new(descriptors);
    let mut length = length.to_be_bytes();
    let mut part = iovec { iov_base: length.as_mut_ptr().cast(), iov_len: LENGTH_BYTES };
    let control_len = headers::control_message_len(&control.header);
    let message = control.message(&mut part, control_len);
    let sent = loop {
        // SAFETY: `message` points at one iovec over `length` and at the used bytes of `control`;
        // all of them outlive the call, which only reads them.
        match check(unsafe {
            libc::sendmsg(stream.as_raw_fd(), &message, libc::MSG_NOSIGNAL) as c_int
        }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result? as usize,
        }
    };
    let mut stream = stream;
    stream.write_all(&length[sent..])?;
    stream.write_all(payload)
}

/// Receives one frame: its payload and its descriptors, which are closed on exec.
///
/// A stream that ended before the frame is [`io::ErrorKind::UnexpectedEof`].
pub fn receive(stream: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut length = [0; LENGTH_BYTES];
    let mut control = Control::EMPTY;
    let mut part = iovec { iov_base: length.as_mut_ptr().cast(), iov_len: LENGTH_BYTES };
    let mut message = control.message(&mut part, size_of::<Control>());
    let received = loop {
        // SAFETY: `message` points at one iovec over `length` and at `control`'s bytes, with their
        // true sizes, and nothing else borrows them during the call.
        match check(unsafe {
            libc::recvmsg(stream.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) as c_int
        }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result? as usize,
        }
    };
    let descriptors = control.take(headers::control_len(&message));
    if received == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        // Some were lost, for want of room or of free descriptors (RLIMIT_NOFILE).
        return Err(io::Error::from_raw_os_error(libc::EMFILE));
    }
    let mut stream = stream;
    stream.read_exact(&mut length[received..])?;
    let mut payload = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut payload)?;
    Ok((payload, descriptors))
}

/// A bound socket from another process, known to be fit for serving.
#[derive(Debug)]
pub enum InheritedSocket {
    /// A UDP socket for datagrams.
    Udp(UdpSocket),
    /// A listening stream socket, non-blocking.
    Tcp(TcpListener),
    /// A listening stream socket with a path, or with an abstract name.
    Unix(UnixListener),
}

impl InheritedSocket {
    /// Looks what the descriptor is. Only bound UDP and listening TCP sockets over IPv4 or IPv6
    /// and listening Unix sockets will do; anything else is closed and is
    /// [`io::ErrorKind::Unsupported`].
    pub fn adopt(descriptor: OwnedFd, options: &UdpOptions) -> io::Result<Self> {
        let socket = SockRef::from(&descriptor);
        let address = socket.local_addr()?;
        let bound = address.as_socket().is_some_and(|address| address.port() != 0);
        let (kind, listening) = (socket.r#type()?, socket.is_listener()?);
        let connected = socket.peer_addr().is_ok();
        match kind {
            Type::DGRAM if bound && !connected => {
                Ok(Self::Udp(UdpSocket::adopt(descriptor, options)?))
            }
            Type::STREAM if bound && listening => {
                let listener = TcpListener::from(descriptor);
                listener.set_nonblocking(true)?;
                Ok(Self::Tcp(listener))
            }
            Type::STREAM if address.is_unix() && listening => Ok(Self::Unix(descriptor.into())),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// A control buffer with one `SCM_RIGHTS` message, laid out as cmsg(3) has it.
#[repr(C)]
struct Control {
    /// Length, level and type.
    header: libc::cmsghdr,
    /// The descriptors; how many is in the header.
    descriptors: [RawFd; DESCRIPTORS_MAX],
}

impl Control {
    /// Room to receive into.
    const EMPTY: Self = Self { header: headers::NO_CONTROL, descriptors: [-1; DESCRIPTORS_MAX] };

    /// Names the descriptors to send; callers have checked their number.
    fn new(descriptors: &[BorrowedFd<'_>]) -> Self {
        let mut control = Self::EMPTY;
        for (slot, descriptor) in control.descriptors.iter_mut().zip(descriptors) {
            *slot = descriptor.as_raw_fd();
        }
        if !descriptors.is_empty() {
            let bytes = size_of_val(descriptors);
            control.header = headers::control(libc::SOL_SOCKET, libc::SCM_RIGHTS, bytes);
        }
        control
    }

    /// Returns a message of one part and the first `control_len` bytes of this control buffer.
    fn message(&mut self, part: *mut iovec, control_len: usize) -> msghdr {
        headers::with_control(headers::message(part, 1), &raw mut *self, control_len)
    }

    /// Takes ownership of the descriptors that the kernel has written.
    fn take(self, control_len: usize) -> Vec<OwnedFd> {
        let header = self.header;
        let is_rights = control_len >= size_of::<libc::cmsghdr>()
            && (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        if !is_rights {
            return Vec::new();
        }
        let bytes = headers::control_message_len(&header);
        let bytes = bytes.saturating_sub(size_of::<libc::cmsghdr>());
        let count = (bytes / size_of::<RawFd>()).min(DESCRIPTORS_MAX);
        // SAFETY: the kernel has just opened these descriptors for this call; nothing else owns
        // them.
        self.descriptors[..count].iter().map(|&fd| unsafe { OwnedFd::from_raw_fd(fd) }).collect()
    }
}
