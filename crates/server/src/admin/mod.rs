//! The administrative interface: HTTP on a TCP address and on a Unix socket.

mod api;
mod bind_statistics;
mod cache;
mod metrics;
mod upstreams;

use crate::control::Control;
use crate::handover;
use crate::listen::Found;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use zonda_config::{Admin, Network};
use zonda_netio::tcp::TcpOptions;

/// Connections open at once on each of the two sockets; more wait.
const CONNECTIONS_MAX: usize = 64;
/// The address of the configuration's default.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9153));
/// How long a client may take to send a request's header.
const HEADER_MAX: Duration = Duration::from_secs(10);

/// How long a connection may last; the slowest request is a reload of many zones.
const CONNECTION_MAX: Duration = Duration::from_secs(900);

/// Sockets that are bound, but not served yet.
pub struct Bound {
    tcp: Option<TcpListener>,
    token: Option<Arc<str>>,
    /// Where BIND's statistics are read, and who may.
    bind_statistics: Option<(TcpListener, Arc<[Network]>)>,
    unix: Option<(UnixListener, PathBuf)>,
    /// Where a successor asks for our sockets.
    hand_over: Option<(UnixListener, PathBuf)>,
}

/// Binds what is configured, out of `found` where it is there.
///
/// # Errors
/// What is wrong, and what to do about it.
pub fn bind(config: &Admin, found: &mut Found) -> Result<Bound, String> {
    let tcp = match config.address {
        Some(address) => match found.take_tcp(address) {
            Some(listener) => Some(listener),
            None => bind_tcp(address)?,
        },
        None => None,
    };
    let bind_statistics = match config.bind_statistics {
        Some(address) => {
            let listener = found.take_tcp(address).map_or_else(|| bind_statistics(address), Ok)?;
            Some((listener, config.bind_statistics_clients.clone().into()))
        }
        None => None,
    };
    let (mut unix, mut hand_over) = (None, None);
    if let Some(path) = &config.socket {
        let listener = found.take_unix(path).map_or_else(|| bind_admin(path), Ok)?;
        unix = Some((listener, path.clone()));
        let beside = handover::beside(path);
        match found.take_unix(&beside).map_or_else(|| bind_unix(&beside), Ok) {
            Ok(listener) => hand_over = Some((listener, beside)),
            Err(error) => tracing::warn!("no hand-over to a successor is possible: {error}"),
        }
    }
    let token = config.token.as_ref().map(|token| token.reveal().into());
    Ok(Bound { tcp, token, bind_statistics, unix, hand_over })
}

/// Binds the address of BIND's statistics.
fn bind_statistics(address: SocketAddr) -> Result<TcpListener, String> {
    let listener = zonda_netio::tcp::listen(address, &TcpOptions::default());
    listener.map_err(|error| format!("cannot bind admin.bind-statistics {address}: {error}"))
}

/// Binds the HTTP address. A second server on a machine shall start without being told another, so
/// the default may be taken.
fn bind_tcp(address: SocketAddr) -> Result<Option<TcpListener>, String> {
    match zonda_netio::tcp::listen(address, &TcpOptions::default()) {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && address == DEFAULT_ADDRESS => {
            tracing::warn!(
                "no metrics over HTTP: {address} is taken, perhaps by another server; choose \
                 another admin.address, or \"off\" (environment: ZONDA_ADMIN_ADDRESS)"
            );
            Ok(None)
        }
        Err(error) => Err(format!(
            "cannot bind admin.address {address}: {error}; choose another, or \"off\" \
             (environment: ZONDA_ADMIN_ADDRESS)"
        )),
    }
}

/// Binds the admin socket, unless another server answers on it.
fn bind_admin(path: &Path) -> Result<UnixListener, String> {
    if UnixStream::connect(path).is_ok() {
        return Err(format!(
            "another server answers on {}: stop it, start with --take-over to replace it, or give \
             this one another admin.socket",
            path.display()
        ));
    }
    bind_unix(path).map_err(|error| {
        format!("cannot bind the admin socket {}: {error}; set admin.socket", path.display())
    })
}

/// Binds a Unix socket that only its owner may use, in place of one that nobody answers on.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    if let Some(directory) = path.parent().filter(|it| !it.as_os_str().is_empty() && !it.exists()) {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// The interface at work.
pub struct Serving {
    /// The HTTP address.
    pub address: Option<SocketAddr>,
    /// Unix sockets, each with its inode, so that only our own are removed.
    sockets: Vec<(PathBuf, u64)>,
    /// What accepts connections.
    tasks: Vec<JoinHandle<()>>,
}

impl Serving {
    /// Accepts no more connections.
    pub fn stop(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }

    /// Removes the Unix sockets.
    pub fn remove_sockets(&self) {
        for (path, inode) in &self.sockets {
            if fs::symlink_metadata(path).is_ok_and(|now| now.ino() == *inode) {
                let _ = fs::remove_file(path); // what stays is replaced at the next start
            }
        }
    }
}

/// Serves requests from now on. Needs the context of a runtime.
///
/// # Errors
/// When a socket cannot be served.
pub fn serve(bound: Bound, control: &Arc<Control>) -> io::Result<Serving> {
    let mut serving = Serving { address: None, sockets: Vec::new(), tasks: Vec::new() };
    for (_, path) in bound.unix.iter().chain(&bound.hand_over) {
        let inode = fs::symlink_metadata(path).map_or(0, |it| it.ino());
        serving.sockets.push((path.clone(), inode));
    }
    if let Some((listener, _)) = bound.hand_over {
        let statistics = bound.bind_statistics.iter().map(|(listener, _)| listener);
        let tcp = bound.tcp.iter().chain(statistics).map(AsFd::as_fd);
        let unix = bound.unix.iter().map(|(unix, _)| unix.as_fd());
        control.offer_sockets(listener, &tcp.chain(unix).collect::<Vec<_>>())?;
    }
    if let Some((unix, _)) = bound.unix {
        unix.set_nonblocking(true)?;
        let listener = Listener::Unix(tokio::net::UnixListener::from_std(unix)?);
        let interface = Interface::Admin { token: None }; // whoever may open it needs none
        serving.tasks.push(tokio::spawn(accept_all(listener, interface, Arc::clone(control))));
    }
    if let Some(tcp) = bound.tcp {
        serving.address = tcp.local_addr().ok();
        let listener = Listener::Tcp(tokio::net::TcpListener::from_std(tcp)?);
        let interface = Interface::Admin { token: bound.token };
        serving.tasks.push(tokio::spawn(accept_all(listener, interface, Arc::clone(control))));
    }
    if let Some((tcp, clients)) = bound.bind_statistics {
        let listener = Listener::Tcp(tokio::net::TcpListener::from_std(tcp)?);
        let interface = Interface::BindStatistics { clients };
        serving.tasks.push(tokio::spawn(accept_all(listener, interface, Arc::clone(control))));
    }
    Ok(serving)
}

/// A socket that accepts connections of the interface.
enum Listener {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

/// What is told on a socket, and to whom.
#[derive(Clone)]
enum Interface {
    /// Everything, to those who know the token, if there is one.
    Admin { token: Option<Arc<str>> },
    /// BIND's statistics, to this machine and to these networks.
    BindStatistics { clients: Arc<[Network]> },
}

impl Interface {
    /// Whether a client may ask anything at all.
    fn is_for(&self, client: Option<IpAddr>) -> bool {
        match (self, client) {
            (Self::BindStatistics { clients }, Some(client)) => {
                client.is_loopback() || clients.iter().any(|network| network.contains(client))
            }
            _ => true,
        }
    }
}

/// A connection of either kind.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl Listener {
    /// The next connection, and the client's address if it has one.
    async fn accept(&self) -> io::Result<(Box<dyn Stream>, Option<IpAddr>)> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, client) = listener.accept().await?;
                (Box::new(stream), Some(client.ip()))
            }
            Self::Unix(listener) => (Box::new(listener.accept().await?.0), None),
        })
    }
}

/// Accepts connections, a bounded number at a time.
async fn accept_all(listener: Listener, interface: Interface, control: Arc<Control>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((_, client)) if !interface.is_for(client) => {}
            Ok((stream, _)) => {
                let connection = connection(stream, interface.clone(), Arc::clone(&control));
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(CONNECTION_MAX, connection).await;
                    drop(slot);
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await, // out of descriptors
        }
    }
}

/// Serves the requests of one connection.
async fn connection(stream: Box<dyn Stream>, interface: Interface, control: Arc<Control>) {
    let service = service_fn(|request| {
        let (control, interface) = (Arc::clone(&control), interface.clone());
        async move {
            let reply = match interface {
                Interface::Admin { token } => api::answer(request, token, control).await,
                Interface::BindStatistics { .. } => bind_statistics::answer(request, control).await,
            };
            Ok::<_, std::convert::Infallible>(reply)
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let _ = served.await; // a client that goes away or sends rubbish is no event
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn statistics_are_for_this_machine_and_for_the_networks_that_are_configured() {
        let network = Network { address: "192.0.2.0".parse().unwrap(), prefix: 24 };
        let interface = Interface::BindStatistics { clients: [network].into() };
        for (client, expected) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("192.0.2.7", true),
            ("192.0.3.7", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(interface.is_for(client.parse().ok()), expected, "{client}");
        }
    }
}
