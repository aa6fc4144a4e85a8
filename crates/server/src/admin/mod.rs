//! The administrative interface: HTTP on a TCP address and on a Unix socket.

mod api;
mod metrics;

use crate::control::Control;
use crate::listen::Found;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use zonda_config::Admin;
use zonda_netio::tcp::TcpOptions;

/// Connections open at once on each of the two sockets; more wait.
const CONNECTIONS_MAX: usize = 64;
/// The address of the configuration's default.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9153));
/// How long a client may take to send a request's header.
const HEADER_MAX: Duration = Duration::from_secs(10);

/// Sockets that are bound, but not served yet.
pub struct Bound {
    tcp: Option<TcpListener>,
    token: Option<Arc<str>>,
    unix: Option<(UnixListener, PathBuf)>,
}

/// Binds what is configured, out of `found` where it is there. With `replace`, a Unix socket that a
/// running server has is replaced.
///
/// # Errors
/// What is wrong, and what to do about it.
pub fn bind(config: &Admin, found: &mut Found, replace: bool) -> Result<Bound, String> {
    let tcp = match config.address {
        Some(address) => match found.take_tcp(address) {
            Some(listener) => Some(listener),
            None => bind_tcp(address)?,
        },
        None => None,
    };
    let unix = match &config.socket {
        Some(path) => Some((replace_socket(path, replace)?, path.clone())),
        None => None,
    };
    let token = config.token.as_ref().map(|token| token.reveal().into());
    Ok(Bound { tcp, token, unix })
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
fn replace_socket(path: &Path, replace: bool) -> Result<UnixListener, String> {
    if !replace && UnixStream::connect(path).is_ok() {
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
pub fn bind_unix(path: &Path) -> io::Result<UnixListener> {
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

/// Where the interface answers.
pub struct Listening {
    /// The HTTP address.
    pub address: Option<SocketAddr>,
    /// Unix sockets, each with its inode, so that only our own are removed.
    sockets: Vec<(PathBuf, u64)>,
}

impl Listening {
    /// Removes the Unix sockets, unless a successor has replaced them.
    pub fn remove_sockets(&self) {
        for (path, inode) in &self.sockets {
            if fs::symlink_metadata(path).is_ok_and(|now| now.ino() == *inode) {
                let _ = fs::remove_file(path); // what stays is replaced at the next start
            }
        }
    }
}

/// Serves requests from now on.
pub async fn serve(bound: Bound, control: Arc<Control>) -> Listening {
    let mut listening = Listening { address: None, sockets: Vec::new() };
    if let Some((unix, path)) = bound.unix {
        let offered = control.offer_sockets(&path, bound.tcp.as_ref());
        for path in [Ok(path), offered] {
            match path {
                Ok(path) => {
                    let inode = fs::symlink_metadata(&path).map_or(0, |it| it.ino());
                    listening.sockets.push((path, inode));
                }
                Err(error) => tracing::warn!("no hand-over to a successor is possible: {error}"),
            }
        }
        tokio::spawn(serve_unix(unix, Arc::clone(&control)));
    }
    if let Some(tcp) = bound.tcp {
        listening.address = tcp.local_addr().ok();
        tokio::spawn(serve_tcp(tcp, bound.token, control));
    }
    listening
}

/// Accepts on the Unix socket; whoever may open it needs no token.
async fn serve_unix(listener: UnixListener, control: Arc<Control>) {
    let listener =
        listener.set_nonblocking(true).and_then(|()| tokio::net::UnixListener::from_std(listener));
    let Ok(listener) = listener else {
        return tracing::error!("the admin socket cannot be served");
    };
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        if let Ok((stream, _)) = listener.accept().await {
            let control = Arc::clone(&control);
            tokio::spawn(async move {
                connection(stream, None, control).await;
                drop(slot);
            });
        }
    }
}

/// Accepts on the HTTP address.
async fn serve_tcp(listener: TcpListener, token: Option<Arc<str>>, control: Arc<Control>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return tracing::error!("admin.address cannot be served");
    };
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (control, token) = (Arc::clone(&control), token.clone());
                tokio::spawn(async move {
                    connection(stream, token, control).await;
                    drop(slot);
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await, // out of descriptors
        }
    }
}

/// Serves the requests of one connection.
async fn connection<S>(stream: S, token: Option<Arc<str>>, control: Arc<Control>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let (control, token) = (Arc::clone(&control), token.clone());
        async move { Ok::<_, std::convert::Infallible>(api::answer(request, token, control).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let _ = served.await; // a client that goes away or sends rubbish is no event
}
