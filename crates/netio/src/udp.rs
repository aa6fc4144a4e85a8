//! One bound UDP socket, set up for a name server.
//!
//! Bind one socket per concrete address and worker (`reuse_port`). A wildcard address works too,
//! but then the kernel must give and take the local address with every datagram, which costs 2.5 %
//! CPU.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use libc::c_int;
use socket2::{Domain, Protocol, Socket, Type};

use crate::options;

/// How long one send may wait for room in the send buffer before the rest of its batch is given up.
/// A healthy interface drains 4 MiB in far less; more would let one bad route stall its worker.
const SEND_WAIT_MAX: Duration = Duration::from_millis(20);

/// Options of the kernel for a UDP socket that is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpOptions {
    /// Receive buffer in bytes; the kernel may grant less, see [`UdpSocket::receive_buffer_bytes`].
    pub receive_buffer_bytes: usize,
    /// Send buffer in bytes; the kernel may grant less.
    pub send_buffer_bytes: usize,
    /// Lets several sockets, one per worker, bind the same address; the kernel spreads the clients.
    pub reuse_port: bool,
    /// Allows binding an address that no interface has yet.
    pub freebind: bool,
}

impl Default for UdpOptions {
    fn default() -> Self {
        // The kernel's own 208 KiB loses 744 of 1,000 queries that arrive at once.
        const BUFFER_BYTES: usize = 4 << 20;
        Self {
            receive_buffer_bytes: BUFFER_BYTES,
            send_buffer_bytes: BUFFER_BYTES,
            reuse_port: true,
            freebind: false,
        }
    }
}

/// A blocking, bound UDP socket, which is unconnected as long as it
/// [receives](UdpSocket::end_receiving).
#[derive(Debug)]
pub struct UdpSocket {
    /// The socket's descriptor.
    socket: Socket,
    /// The bound address; its port is never 0.
    address: SocketAddr,
    /// Whether another process may have the socket, too.
    is_adopted: bool,
}

impl UdpSocket {
    /// Binds `address`; port 0 lets the kernel choose one.
    pub fn bind(address: SocketAddr, options: &UdpOptions) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
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
        Self::set_up(socket, options, false)
    }

    /// Takes over a socket that another process has bound: a supervisor or the previous server.
    pub(crate) fn adopt(descriptor: OwnedFd, options: &UdpOptions) -> io::Result<Self> {
        let socket = Socket::from(descriptor);
        socket.set_nonblocking(false)?;
        Self::set_up(socket, options, true)
    }

    /// Sets what may be set after bind.
    fn set_up(socket: Socket, options: &UdpOptions, is_adopted: bool) -> io::Result<Self> {
        let address = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::Unsupported)?;
        ask_for_buffers(&socket, options);
        socket.set_write_timeout(Some(SEND_WAIT_MAX))?;
        // OMIT never fragments on a path MTU that an attacker may have forged; rfc9715#3.1
        let (level, discover, omit, pktinfo) = match address {
            SocketAddr::V4(_) => {
                (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_OMIT, libc::IP_PKTINFO)
            }
            SocketAddr::V6(_) => (
                libc::IPPROTO_IPV6,
                libc::IPV6_MTU_DISCOVER,
                libc::IPV6_PMTUDISC_OMIT,
                libc::IPV6_RECVPKTINFO,
            ),
        };
        options::set(socket.as_fd(), level, discover, omit)?;
        let wildcard = address.ip().is_unspecified();
        options::set(socket.as_fd(), level, pktinfo, c_int::from(wildcard))?;
        Ok(Self { socket, address, is_adopted })
    }

    /// Another handle on the same socket and receive queue, for workers that share an adopted one.
    pub fn try_clone(&self) -> io::Result<Self> {
        let Self { address, is_adopted, .. } = *self;
        Ok(Self { socket: self.socket.try_clone()?, address, is_adopted })
    }

    /// Has the kernel give the socket no more datagrams: those to its address go to other sockets
    /// that have it, or all addresses, and are refused where there are none. What the socket has
    /// received stays to be read, and replies leave as before. Returns whether that is so: not for
    /// a socket that another process may have, which would receive no more either.
    ///
    /// # Errors
    /// When the kernel refuses it; the socket goes on receiving then.
    pub fn end_receiving(&self) -> io::Result<bool> {
        if self.is_adopted {
            return Ok(false);
        }
        // A connected socket receives from its peer alone, and this one's peer is itself.
        let mut peer = self.address;
        if self.is_wildcard() {
            peer.set_ip(match peer {
                SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
                SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            });
        }
        self.socket.connect(&peer.into())?;
        Ok(true)
    }

    /// Returns the bound address, with the port the kernel chose.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether the local address differs by datagram.
    pub fn is_wildcard(&self) -> bool {
        self.address.ip().is_unspecified()
    }

    /// Returns the receive buffer granted, in the unit of [`UdpOptions`]: less than asked is worth
    /// a warning that names `net.core.rmem_max`.
    pub fn receive_buffer_bytes(&self) -> io::Result<usize> {
        // socket(7): the kernel doubles what it grants, for its own book-keeping.
        Ok(self.socket.recv_buffer_size()? / 2)
    }

    /// Datagrams that the kernel dropped on this socket since it exists, mostly for want of room in
    /// the receive buffer. Wraps at 2³².
    pub fn dropped(&self) -> io::Result<u32> {
        dropped_by(&self.socket)
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Datagrams that the kernel dropped on a socket.
pub(crate) fn dropped_by(socket: &Socket) -> io::Result<u32> {
    /// linux/sock_diag.h: SK_MEMINFO_VARS values, the last of which is SK_MEMINFO_DROPS.
    const VARS: usize = 9;
    let info: [u32; VARS] = options::get(socket.as_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO)?;
    Ok(info[VARS - 1])
}

/// Asks for both buffers: first beyond the system's limit, which only the privileged may pass.
/// A refusal is not an error, since the socket works; the granted size shows it.
pub(crate) fn ask_for_buffers(socket: &Socket, options: &UdpOptions) {
    for (bytes, force, ask) in [
        (options.receive_buffer_bytes, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        (options.send_buffer_bytes, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    ] {
        let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        let _ = options::set(socket.as_fd(), libc::SOL_SOCKET, force, bytes)
            .or_else(|_| options::set(socket.as_fd(), libc::SOL_SOCKET, ask, bytes));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_port_can_be_bound_by_several_sockets_only_with_reuse_port() {
        let first = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &UdpOptions::default());
        let address = first.as_ref().unwrap().address();
        UdpSocket::bind(address, &UdpOptions::default()).unwrap();
        let alone = UdpOptions { reuse_port: false, ..UdpOptions::default() };
        assert_eq!(UdpSocket::bind(address, &alone).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn a_foreign_address_binds_only_with_freebind() {
        let foreign = "192.0.2.1:0".parse().unwrap();
        assert!(UdpSocket::bind(foreign, &UdpOptions::default()).is_err());
        let free = UdpOptions { freebind: true, ..UdpOptions::default() };
        assert_eq!(UdpSocket::bind(foreign, &free).unwrap().address().ip(), foreign.ip());
    }

    /// The number of datagrams that can be read from a socket now.
    fn queued(socket: &UdpSocket) -> usize {
        socket.socket.set_nonblocking(true).unwrap();
        std::iter::from_fn(|| socket.socket.recv(&mut []).ok()).count()
    }

    #[test]
    fn a_socket_that_receives_no_more_leaves_datagrams_to_others_and_keeps_what_it_has() {
        for [former, other] in [
            ["127.0.0.1", "127.0.0.1"],
            ["0.0.0.0", "127.0.0.1"],
            ["127.0.0.1", "0.0.0.0"],
            ["::1", "::1"],
            ["::1", "::"],
        ] {
            let [former, other] = [former, other].map(|ip| ip.parse::<IpAddr>().unwrap());
            let bind = |ip, port| UdpSocket::bind((ip, port).into(), &UdpOptions::default());
            let former = bind(former, 0).unwrap();
            let port = former.address().port();
            let local: IpAddr =
                if other.is_ipv4() { [127, 0, 0, 1].into() } else { "::1".parse().unwrap() };
            let send = || {
                for _ in 0..50 {
                    let client = std::net::UdpSocket::bind((local, 0)).unwrap();
                    client.send_to(b"query", (local, port)).unwrap();
                }
            };
            send();
            assert!(former.end_receiving().unwrap());
            let others = [(); 3].map(|()| bind(other, port).unwrap());
            send();
            assert_eq!(queued(&former), 50);
            assert_eq!(others.iter().map(queued).sum::<usize>(), 50);
            let client = std::net::UdpSocket::bind((local, 0)).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            former.socket.send_to(b"reply", &client.local_addr().unwrap().into()).unwrap();
            assert_eq!(client.recv_from(&mut [0; 16]).unwrap(), (5, (local, port).into()));
        }
    }

    #[test]
    fn a_socket_that_another_process_may_have_goes_on_receiving() {
        let bound = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &UdpOptions::default());
        let descriptor = bound.unwrap().as_fd().try_clone_to_owned().unwrap();
        let adopted = UdpSocket::adopt(descriptor, &UdpOptions::default()).unwrap();
        assert!(!adopted.end_receiving().unwrap());
        let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        client.send_to(b"query", adopted.address()).unwrap();
        assert_eq!(queued(&adopted), 1);
    }

    #[test]
    fn the_granted_receive_buffer_and_the_drops_are_reported() {
        let small = UdpOptions { receive_buffer_bytes: 4096, ..UdpOptions::default() };
        let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &small).unwrap();
        assert!((1024..65536).contains(&socket.receive_buffer_bytes().unwrap()));
        assert_eq!(socket.dropped().unwrap(), 0);
        let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..100 {
            client.send_to(&[0; 512], socket.address()).unwrap();
        }
        assert!(socket.dropped().unwrap() > 50);
    }
}
