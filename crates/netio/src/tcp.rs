//! A listening TCP socket.

use std::io;
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// What to ask of the kernel when a TCP listener is bound.
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
