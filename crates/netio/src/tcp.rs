//! TCP sockets: listening ones, and connections to servers.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::options;

/// Options of the kernel for a TCP listener that is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Connections that may wait to be accepted; the kernel caps it at `net.core.somaxconn`.
    pub backlog: u16,
    /// Lets several listeners bind the same address. Needed only where processes do not hand over
    /// their listeners: closing one of several loses the connections queued in it.
    pub reuse_port: bool,
    /// Allows binding an address that no interface has yet.
    pub freebind: bool,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self { backlog: 1024, reuse_port: false, freebind: false }
    }
}

/// Binds `address` (port 0 lets the kernel choose) and listens, non-blocking.
pub fn listen(address: SocketAddr, options: &TcpOptions) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for the connections of the process before to leave TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(options.reuse_port)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if options.freebind {
        if address.is_ipv6() {
            socket.set_freebind_v6(true)?;
        } else {
            socket.set_freebind_v4(true)?;
        }
    }
    socket.bind(&address.into())?;
    socket.listen(i32::from(options.backlog))?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Connects to `server`, from `local` if it matters, with buffers of so many octets or as near as
/// the system allows. Waits for as long as `wait` says; without it, the kernel goes on connecting,
/// and a read reports whether it has failed. The connection itself does not block.
pub fn connect(
    server: SocketAddr,
    local: Option<SocketAddr>,
    buffer_octets: usize,
    wait: Option<Duration>,
) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, Some(Protocol::TCP))?;
    if let Some(local) = local {
        // Connections from the same port before may be in TIME_WAIT.
        socket.set_reuse_address(true)?;
        socket.bind(&local.into())?;
    }
    socket.set_recv_buffer_size(buffer_octets)?;
    socket.set_send_buffer_size(buffer_octets)?;
    socket.set_tcp_nodelay(true)?;
    if let Some(wait) = wait {
        socket.connect_timeout(&server.into(), wait)?;
        socket.set_nonblocking(true)?;
    } else {
        socket.set_nonblocking(true)?;
        match socket.connect(&server.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
    }
    Ok(socket.into())
}

/// Leaves a connection unreadable for pollers until `octets` have come, or its end; the kernel
/// takes half of what it may hold for a connection at most. 1 is the value of new connections
/// (socket(7), `SO_RCVLOWAT`).
///
/// # Errors
/// When the kernel refuses the value.
pub fn set_receive_low_water(connection: impl AsFd, octets: u32) -> io::Result<()> {
    let octets = libc::c_int::try_from(octets).unwrap_or(libc::c_int::MAX);
    options::set(connection.as_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, octets)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::Poller;
    use std::io::{ErrorKind, Read, Write};

    #[test]
    fn a_finished_connect_is_reported_and_reads_report_a_failed_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut poller = Poller::new().unwrap();
        let mut stream = connect(address, None, 1 << 16, None).unwrap();
        poller.add_for_both(&stream, 1).unwrap();
        assert_eq!(poller.wait(Some(Duration::from_secs(5))).unwrap().collect::<Vec<_>>(), [1]);
        stream.write_all(b"hello").unwrap();
        listener.accept().unwrap().0.read_exact(&mut [0; 5]).unwrap();
        drop((listener, stream));

        let mut stream = connect(address, None, 1 << 16, None).unwrap();
        poller.add_for_both(&stream, 2).unwrap();
        assert_eq!(poller.wait(Some(Duration::from_secs(5))).unwrap().collect::<Vec<_>>(), [2]);
        let error = stream.read(&mut [0; 1]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let limit = Some(Duration::from_secs(5));
        assert!(connect(address, None, 1 << 16, limit).is_err());
    }
    #[test]
    fn a_connection_below_its_low_water_mark_is_not_readable() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        let mut poller = Poller::new().unwrap();
        set_receive_low_water(&server, 6).unwrap();
        poller.add(&server, 1).unwrap();
        let mut is_readable = |wait| poller.wait(Some(wait)).unwrap().next().is_some();
        client.write_all(b"hello").unwrap();
        assert!(!is_readable(Duration::from_millis(20)), "five of six octets");
        client.write_all(b"!").unwrap();
        assert!(is_readable(Duration::from_secs(5)), "six octets");
    }
}
