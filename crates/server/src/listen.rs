//! Sockets: bound, inherited from systemd, or handed over by the former process.

use crate::shared_ports::SharedPorts;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_config::Listener;
use zonda_netio::descriptors::InheritedSocket;
use zonda_netio::tcp::TcpOptions;
use zonda_netio::{UdpOptions, UdpSocket, share_port};

/// The sockets of one configured listener.
#[derive(Clone)]
pub struct Sockets {
    /// UDP sockets, one for each worker; none without UDP.
    pub udp: Vec<Arc<UdpSocket>>,
    /// None without TCP.
    pub tcp: Option<Arc<TcpListener>>,
    /// Whether a supervisor has all of the sockets as well, and keeps them open.
    pub is_supervised: bool,
}

impl Sockets {
    /// All descriptors, to be handed over.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let tcp = self.tcp.iter().map(|socket| socket.as_fd());
        self.udp.iter().map(|socket| socket.as_fd()).chain(tcp)
    }

    /// Other handles on the same sockets, which keep them open.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn try_clone(&self) -> io::Result<Self> {
        let mut udp = Vec::with_capacity(self.udp.len());
        for socket in &self.udp {
            udp.push(Arc::new(socket.try_clone()?));
        }
        let tcp = self.tcp.as_ref().map(|tcp| tcp.try_clone()).transpose()?;
        Ok(Self { udp, tcp: tcp.map(Arc::new), is_supervised: self.is_supervised })
    }

    /// The address that is answered on; none where the machine lacks the family of addresses.
    pub fn address(&self) -> Option<SocketAddr> {
        match (self.udp.first(), &self.tcp) {
            (Some(udp), _) => Some(udp.address()),
            (None, Some(tcp)) => tcp.local_addr().ok(),
            (None, None) => None,
        }
    }

    /// Has the UDP sockets receive no more; returns whether all of them do so.
    pub fn end_receiving(&self) -> bool {
        let has_ended = |socket: &Arc<UdpSocket>| {
            socket.end_receiving().unwrap_or_else(|error| {
                let address = socket.address();
                tracing::debug!(%address, %error, "a socket receives until it is closed");
                false
            })
        };
        self.udp.iter().filter(|socket| !has_ended(socket)).count() == 0 // each is told
    }

    /// Has sockets that are bound from now on have the same port.
    fn share_port(&self, shared: &mut SharedPorts) {
        for socket in self.descriptors() {
            if let Err(error) = shared.share(socket) {
                let address = self.address().map(tracing::field::display);
                tracing::warn!(address, %error, "a socket does not share its port");
            }
        }
    }
}

/// A socket could not be had.
#[derive(Debug)]
pub struct ListenError {
    address: SocketAddr,
    protocol: &'static str,
    error: io::Error,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, protocol, error } = self;
        write!(f, "cannot listen on {address} ({protocol}): {error}")?;
        match error.kind() {
            io::ErrorKind::AddrInUse => write!(
                f,
                "; another program has it: find it with `ss -lnp 'sport = {}'`, or choose another \
                 address (`listen`)",
                address.port()
            ),
            io::ErrorKind::PermissionDenied => write!(
                f,
                "; ports below 1024 are root's: start as root with `user` set, give the program \
                 CAP_NET_BIND_SERVICE, or choose another port (`listen`)"
            ),
            io::ErrorKind::AddrNotAvailable => {
                write!(f, "; no interface of this machine has the address")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for ListenError {}

impl ListenError {
    /// Returns the address and the system's number of the error.
    pub(crate) fn system_error(&self) -> Option<(SocketAddr, i32)> {
        self.error.raw_os_error().map(|number| (self.address, number))
    }

    /// The address that could not be bound.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether the process lacks the right to bind the address.
    pub(crate) fn is_denied(&self) -> bool {
        self.error.kind() == io::ErrorKind::PermissionDenied
    }

    /// Whether another process has the address.
    pub(crate) fn is_taken(&self) -> bool {
        self.error.kind() == io::ErrorKind::AddrInUse
    }

    /// Whether the machine has no IPv6.
    fn is_without_ipv6(&self) -> bool {
        is_without_ipv6(&self.error, self.address)
    }
}

/// How often another free port is tried: what the kernel gives for UDP may be taken for TCP.
const FREE_PORT_TRIES: u32 = 20;

/// The sockets that a supervisor or a former server has handed to this process, by address.
#[derive(Default)]
pub struct InheritedSockets {
    udp: HashMap<SocketAddr, Vec<UdpSocket>>,
    tcp: HashMap<SocketAddr, TcpListener>,
    unix: HashMap<PathBuf, UnixListener>,
    /// Whether they are a supervisor's, which keeps them open.
    is_supervised: bool,
}

impl InheritedSockets {
    /// Takes over descriptors; one that Zonda cannot use as a socket is closed and reported.
    pub fn adopt(descriptors: Vec<OwnedFd>) -> Self {
        let mut found = Self::default();
        for descriptor in descriptors {
            match InheritedSocket::adopt(descriptor, &UdpOptions::default()) {
                Ok(InheritedSocket::Udp(socket)) => {
                    found.udp.entry(socket.address()).or_default().push(socket);
                }
                Ok(InheritedSocket::Tcp(listener)) => {
                    if let Ok(address) = listener.local_addr() {
                        found.tcp.insert(address, listener);
                    }
                }
                Ok(InheritedSocket::Unix(listener)) => {
                    let address = listener.local_addr();
                    if let Some(path) = address.ok().as_ref().and_then(|it| it.as_pathname()) {
                        found.unix.insert(path.to_owned(), listener);
                    }
                }
                Err(error) => tracing::warn!(%error, "an inherited descriptor is not used"),
            }
        }
        found
    }

    /// The same sockets, as those of a supervisor, which keeps them open.
    pub fn of_supervisor(self) -> Self {
        Self { is_supervised: true, ..self }
    }

    /// Adds other handles on the sockets of a listener.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn extend(&mut self, sockets: &Sockets) -> io::Result<()> {
        for socket in &sockets.udp {
            self.udp.entry(socket.address()).or_default().push(socket.try_clone()?);
        }
        if let Some(tcp) = &sockets.tcp {
            self.tcp.insert(tcp.local_addr()?, tcp.try_clone()?);
        }
        Ok(())
    }

    /// The listening TCP socket that was found for an address.
    pub fn take_tcp(&mut self, address: SocketAddr) -> Option<TcpListener> {
        self.tcp.remove(&address)
    }

    /// The listening Unix socket that was found at a path.
    pub fn take_unix(&mut self, path: &Path) -> Option<UnixListener> {
        self.unix.remove(path)
    }
}

/// Gets the sockets of all listeners, out of `found` where they are there. If `is_shared`, other
/// processes may bind the same addresses.
///
/// # Errors
/// The first socket that could not be bound.
pub fn listen(
    listeners: &[Listener],
    mut found: InheritedSockets,
    is_shared: bool,
) -> Result<Vec<Sockets>, ListenError> {
    let addresses: Vec<SocketAddr> = listeners.iter().map(|listener| listener.address).collect();
    share_ports(listeners, &addresses, &mut found, is_shared)?;
    let of = |listener| sockets_beside(listener, &addresses, &mut found, is_shared);
    let sockets = listeners.iter().map(of).collect();
    let addresses = found.udp.keys().chain(found.tcp.keys()).map(ToString::to_string);
    for place in addresses.chain(found.unix.keys().map(|path| path.display().to_string())) {
        tracing::warn!(%place, "an inherited socket is not in the configuration; closed");
    }
    sockets
}

/// Gets the sockets of new listeners, out of `found` where they are there, beside the running
/// listeners. Their sockets share their ports where addresses overlap, and are returned as well. If
/// `is_shared`, other processes may bind the same addresses.
///
/// # Errors
/// The first socket that could not be bound.
pub fn listen_more(
    new: &[&Listener],
    running: &[(SocketAddr, Sockets)],
    mut found: InheritedSockets,
    is_shared: bool,
) -> Result<(Vec<Sockets>, SharedPorts), ListenError> {
    let running_addresses = running.iter().map(|(address, _)| *address);
    let addresses: Vec<SocketAddr> =
        new.iter().map(|listener| listener.address).chain(running_addresses).collect();
    let overlapping = || new.iter().filter(|it| has_overlap(&addresses, it.address));
    let is_known = |port: u16| running.iter().any(|(address, _)| address.port() == port);
    let unknown = overlapping().filter(|it| !is_shared && !is_known(it.address.port()));
    unknown.copied().try_for_each(refuse_taken_port)?;
    let beside = running
        .iter()
        .filter(|(address, _)| overlapping().any(|listener| overlaps(listener.address, *address)));
    let mut shared = SharedPorts::default();
    beside.for_each(|(_, sockets)| sockets.share_port(&mut shared));
    let bound: Result<_, _> =
        new.iter().map(|it| sockets_beside(it, &addresses, &mut found, is_shared)).collect();
    Ok((bound?, shared))
}

/// Gets the sockets of a listener, out of `found` where they are there, beside listeners at all
/// these addresses.
fn sockets_beside(
    listener: &Listener,
    addresses: &[SocketAddr],
    found: &mut InheritedSockets,
    is_shared: bool,
) -> Result<Sockets, ListenError> {
    let is_shared = is_shared || has_overlap(addresses, listener.address);
    let mut tried = sockets(listener, found, is_shared);
    let mut tries = if listener.address.port() == 0 { FREE_PORT_TRIES } else { 0 };
    while tries > 0 && tried.as_ref().is_err_and(ListenError::is_taken) {
        tried = sockets(listener, found, is_shared);
        tries -= 1;
    }
    match tried {
        Err(error) if error.is_without_ipv6() && has_ipv4_beside(addresses, error.address) => {
            let ListenError { address, error, .. } = error;
            tracing::warn!(%address, %error, "queries are answered over IPv4 only");
            Ok(Sockets { udp: Vec::new(), tcp: None, is_supervised: false })
        }
        sockets => sockets,
    }
}

/// Whether another listener has the port, too, and one of both stands for all addresses of the
/// family: the kernel binds both if they agree to share the port, and gives the listener of a
/// single address what comes to that.
fn has_overlap(addresses: &[SocketAddr], address: SocketAddr) -> bool {
    addresses.iter().any(|other| overlaps(*other, address))
}

/// Whether two addresses have one port, and one of them stands for all of the family.
pub fn overlaps(one: SocketAddr, other: SocketAddr) -> bool {
    one != other
        && one.port() != 0
        && (one.port(), one.is_ipv4()) == (other.port(), other.is_ipv4())
        && (one.ip().is_unspecified() || other.ip().is_unspecified())
}

/// Prepares for listeners whose sockets will share ports: sockets that were found agree to it, and
/// where there are none, no other process may have the port, which would share it unnoticed.
///
/// # Errors
/// When another process has such a port, unless that `is_shared` on purpose.
fn share_ports(
    listeners: &[Listener],
    addresses: &[SocketAddr],
    found: &mut InheritedSockets,
    is_shared: bool,
) -> Result<(), ListenError> {
    let overlapping = || listeners.iter().filter(|it| has_overlap(addresses, it.address));
    for address in overlapping().map(|listener| &listener.address) {
        let udp = found.udp.get(address).into_iter().flatten().map(AsFd::as_fd);
        let tcp = found.tcp.get(address).map(AsFd::as_fd);
        let shared = udp.chain(tcp).map(|socket| share_port(socket, true));
        for error in shared.filter_map(Result::err) {
            tracing::warn!(%address, %error, "an inherited socket does not share its port");
        }
    }
    let ports: HashSet<u16> =
        found.udp.keys().chain(found.tcp.keys()).map(SocketAddr::port).collect();
    let unknown = overlapping().filter(|it| !is_shared && !ports.contains(&it.address.port()));
    unknown.into_iter().try_for_each(refuse_taken_port)
}

/// Refuses a listener whose sockets will share their port if another process has that.
fn refuse_taken_port(listener: &Listener) -> Result<(), ListenError> {
    let (address, alone) = (listener.address, TcpOptions::default());
    let (protocol, bound) = match listener.tcp {
        true => ("TCP", zonda_netio::tcp::listen(address, &alone).map(drop)),
        false => {
            let alone = UdpOptions { reuse_port: false, ..UdpOptions::default() };
            ("UDP", UdpSocket::bind(address, &alone).map(drop))
        }
    };
    match bound.map_err(|error| ListenError { address, protocol, error }) {
        Err(error) if error.is_taken() => Err(error),
        _ => Ok(()),
    }
}

/// Whether another listener stands for all IPv4 addresses of the machine, as an address does for
/// all of IPv6.
fn has_ipv4_beside(addresses: &[SocketAddr], address: SocketAddr) -> bool {
    addresses.contains(&SocketAddr::from(([0, 0, 0, 0], address.port())))
}

/// Whether the address that stands for all of the machine could not be bound, as the kernel has no
/// IPv6.
pub fn is_without_ipv6(error: &io::Error, address: SocketAddr) -> bool {
    /// Linux's code for a family of addresses that the kernel does not have.
    const EAFNOSUPPORT: i32 = 97;
    let is_missing = error.raw_os_error() == Some(EAFNOSUPPORT)
        || error.kind() == io::ErrorKind::AddrNotAvailable;
    is_missing && address.is_ipv6() && address.ip().is_unspecified()
}

/// Gets the sockets of one listener.
fn sockets(
    listener: &Listener,
    found: &mut InheritedSockets,
    is_shared: bool,
) -> Result<Sockets, ListenError> {
    let mut address = listener.address;
    let fail = |protocol| move |error| ListenError { address: listener.address, protocol, error };
    let mut udp = Vec::new();
    let is_supervised = found.is_supervised
        && (!listener.udp || found.udp.contains_key(&address))
        && (!listener.tcp || found.tcp.contains_key(&address));
    if listener.udp {
        let inherited = found.udp.remove(&address);
        udp = udp_sockets(listener, inherited, is_shared).map_err(fail("UDP"))?;
        // Port 0 lets the kernel choose; TCP shall have the same one.
        address = udp.first().map_or(address, |socket| socket.address());
    }
    let tcp = match found.tcp.remove(&address) {
        Some(found) if listener.tcp => Some(found),
        _ if listener.tcp => {
            let options = TcpOptions { reuse_port: is_shared, ..TcpOptions::default() };
            Some(zonda_netio::tcp::listen(address, &options).map_err(fail("TCP"))?)
        }
        _ => None,
    };
    Ok(Sockets { udp, tcp: tcp.map(Arc::new), is_supervised })
}

/// The UDP sockets of a listener: those found, each of which needs a worker because the kernel
/// spreads clients over all of them, or one for each worker.
fn udp_sockets(
    listener: &Listener,
    found: Option<Vec<UdpSocket>>,
    is_shared: bool,
) -> io::Result<Vec<Arc<UdpSocket>>> {
    let workers = match listener.workers {
        0 => zonda_netio::process::available_cpus(),
        workers => usize::from(workers),
    };
    if let Some(mut sockets) = found {
        while sockets.len() < workers {
            // A new member of the group would get queries at once; another handle shares a queue.
            let shared = sockets[sockets.len() % workers.min(sockets.len())].try_clone()?;
            sockets.push(shared);
        }
        return Ok(sockets.into_iter().map(Arc::new).collect());
    }
    let options = UdpOptions {
        receive_buffer_bytes: listener.receive_buffer_bytes as usize,
        send_buffer_bytes: listener.send_buffer_bytes as usize,
        reuse_port: workers > 1 || is_shared,
        ..UdpOptions::default()
    };
    let mut sockets: Vec<Arc<UdpSocket>> = Vec::with_capacity(workers);
    for _ in 0..workers {
        let address = sockets.first().map_or(listener.address, |socket| socket.address());
        sockets.push(Arc::new(UdpSocket::bind(address, &options)?));
    }
    warn_of_small_buffer(&sockets, options.receive_buffer_bytes);
    Ok(sockets)
}

/// Warns when the kernel granted less than asked.
fn warn_of_small_buffer(sockets: &[Arc<UdpSocket>], asked: usize) {
    let Some(Ok(granted)) = sockets.first().map(|socket| socket.receive_buffer_bytes()) else {
        return;
    };
    if granted < asked {
        tracing::warn!(
            granted,
            asked,
            "the kernel grants a smaller receive buffer than asked for: bursts may be lost; raise \
             `sysctl net.core.rmem_max` to what is asked"
        );
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Listeners at all IPv4 addresses and at a single one, at a port that is free.
    fn overlapping() -> [Listener; 2] {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        ["0.0.0.0", "127.0.0.1"].map(|ip| Listener {
            address: SocketAddr::new(ip.parse().unwrap(), port),
            udp: true,
            tcp: true,
            workers: 1,
            receive_buffer_bytes: 1 << 16,
            send_buffer_bytes: 1 << 16,
            access: None,
            is_closed: false,
        })
    }

    #[test]
    fn a_port_that_listeners_share_is_not_shared_with_another_server() {
        let listeners = overlapping();
        let first = listen(&listeners, InheritedSockets::default(), false).unwrap();
        let second = listen(&listeners, InheritedSockets::default(), false);
        assert!(second.is_err_and(|error| error.is_taken()));
        assert!(listen(&listeners, InheritedSockets::default(), true).is_ok(), "asked for");
        drop(first);
        assert!(listen(&listeners, InheritedSockets::default(), false).is_ok());
    }

    #[test]
    fn a_listener_may_come_beside_one_whose_sockets_are_inherited() {
        for place in [0, 1] {
            let listeners = overlapping();
            // As a server binds them that has this listener alone.
            let former = listen(&listeners[place..=place], InheritedSockets::default(), false);
            let mut found = InheritedSockets::default();
            for Sockets { udp, tcp, .. } in former.unwrap() {
                let udp = udp.into_iter().map(|socket| Arc::try_unwrap(socket).unwrap());
                found.udp.insert(listeners[place].address, udp.collect());
                let tcp = tcp.map(|tcp| (listeners[place].address, Arc::try_unwrap(tcp).unwrap()));
                found.tcp.extend(tcp);
            }
            let sockets =
                listen(&listeners, found, false).unwrap_or_else(|error| panic!("{error}"));
            assert!(sockets.iter().all(|it| it.udp.len() == 1 && it.tcp.is_some()));
        }
    }

    #[test]
    fn a_listener_may_come_beside_one_that_runs_and_whose_port_it_shares() {
        for place in [0, 1] {
            let listeners = overlapping();
            let alone = &listeners[place..=place];
            let running = listen(alone, InheritedSockets::default(), false).unwrap();
            let running: Vec<_> =
                running.into_iter().map(|it| (listeners[place].address, it)).collect();
            let new = &listeners[1 - place];
            let (sockets, _) = listen_more(&[new], &running, InheritedSockets::default(), false)
                .unwrap_or_else(|it| panic!("{it}"));
            assert_eq!(sockets[0].address(), Some(new.address));
            assert!(
                listen_more(&[new], &[], InheritedSockets::default(), false)
                    .is_err_and(|error| error.is_taken())
            );
        }
    }

    #[test]
    fn a_listener_that_cannot_come_leaves_no_port_shared() {
        let listeners = overlapping();
        let running = listen(&listeners[..1], InheritedSockets::default(), false).unwrap();
        let running: Vec<_> = running.into_iter().map(|it| (listeners[0].address, it)).collect();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let new = [listeners[1].clone(), Listener { address, ..listeners[1].clone() }];
        let new: Vec<_> = new.iter().collect();
        assert!(
            listen_more(&new, &running, InheritedSockets::default(), false)
                .is_err_and(|error| error.is_taken())
        );
        for socket in running[0].1.descriptors() {
            assert!(!share_port(socket, false).unwrap(), "it is not shared by now");
        }
    }
}
