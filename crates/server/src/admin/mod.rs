//! The administrative interface: HTTP on a TCP address and on a Unix socket.

mod access;
mod api;
mod bind_statistics;
mod cache;
mod call;
mod checks;
mod connection;
mod counters;
mod dispatch;
mod edits;
mod explain;
mod geo;
mod json_body;
mod loads;
mod metrics;
mod page_servers;
mod page_sockets;
mod pages;
mod pools;
mod powerdns;
mod problem;
mod reply;
mod reply_body;
mod route;
mod routes;
mod rrsets;
mod sums;
mod transfers;
mod unix;
mod upstreams;
mod waits;
mod zone_commands;

pub use counters::Counters;
pub use page_servers::PageServers;

use crate::control::Control;
use crate::handover::{self, Offer};
use crate::listen::InheritedSockets;
use access::{Rights, Tokens};
use connection::{Interface, Listener, accept_all};
use page_sockets::{PageSocket, Pages};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;
use unix::{MadeSockets, SocketFiles};
use zonda_config::{Admin, Network, Token};
use zonda_netio::tcp::TcpOptions;

/// The address of the configuration's default.
const DEFAULT_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9153));

/// Sockets that are bound, but not served yet.
pub struct AdminSockets {
    /// Where HTTP is spoken, and what its clients may ask for.
    tcp: Option<(TcpListener, Rights)>,
    /// Where BIND's statistics are read, and the networks whose clients may.
    bind_statistics: Option<(TcpListener, Arc<[Network]>)>,
    /// Where single pages are answered to all clients.
    pages: Vec<PageSocket>,
    /// The Unix socket, its path, and what its clients may ask for.
    unix: Option<(UnixListener, PathBuf, Rights)>,
    /// Socket on which a successor asks for the sockets of this process.
    hand_over: Option<(UnixListener, PathBuf)>,
    /// The Unix sockets that were not there before.
    made: MadeSockets,
}

/// Binds what is configured, out of `found` where it is there.
///
/// # Errors
/// What is wrong, and what to do about it.
pub fn bind(config: &Admin, found: &mut InheritedSockets) -> Result<AdminSockets, String> {
    let tcp = match config.address {
        Some(address) => {
            found.take_tcp(address).map_or_else(|| bind_tcp(address), |it| Ok(Some(it)))?
        }
        None => None,
    };
    let bind_statistics = match config.bind_statistics {
        Some(address) => {
            let listener = found.take_tcp(address).map_or_else(|| bind_statistics(address), Ok)?;
            Some((listener, config.bind_statistics_clients.clone().into()))
        }
        None => None,
    };
    let pages = page_sockets::bind(config, found).map_err(|error| error.to_string())?;
    let (mut unix, mut hand_over, mut made) = (None, None, MadeSockets::default());
    if let Some(path) = &config.socket {
        let found_socket = found.take_unix(path);
        let listener = found_socket.map_or_else(|| made.bind_admin(path), |it| Ok(Some(it)))?;
        unix = listener.map(|listener| (listener, path.clone()));
    }
    if let Some((_, path)) = &unix {
        let beside = handover::beside(path);
        match found.take_unix(&beside).map_or_else(|| made.bind(&beside), Ok) {
            Ok(listener) => hand_over = Some((listener, beside)),
            Err(error) => tracing::warn!(%error, "no hand-over to a successor is possible"),
        }
    }
    let token = |token: &Option<Token>| token.as_ref().map(|token| token.reveal().into());
    let tokens = Tokens { write: token(&config.token), read: token(&config.read_token) };
    let has_powerdns = config.powerdns_api_key.is_some();
    let rights = Rights::Tcp {
        tokens,
        powerdns_key: token(&config.powerdns_api_key),
        is_metrics_only: config.is_metrics_only,
    };
    let tcp = tcp.map(|listener| (listener, rights));
    let unix = unix.map(|(listener, path)| (listener, path, Rights::All { has_powerdns }));
    Ok(AdminSockets { tcp, bind_statistics, pages, unix, hand_over, made })
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
                %address,
                "no metrics over HTTP: the address is taken, perhaps by another server; choose \
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

/// The interface at work.
pub struct AdminInterface {
    /// The HTTP address.
    pub address: Option<SocketAddr>,
    /// The Unix sockets, made by this process or taken over.
    sockets: SocketFiles,
    /// The sockets that are offered to a successor.
    offer: Option<Offer>,
    /// What accepts connections.
    tasks: Vec<JoinHandle<()>>,
}

impl AdminInterface {
    /// Accepts no more connections, but for those to [pages](PageServers).
    pub fn stop(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }

    /// Removes the Unix sockets, and offers none to a successor any more.
    pub fn remove_sockets(&self) {
        self.sockets.remove();
        self.offer.iter().for_each(Offer::end);
    }
}

/// Serves requests from now on. Needs the context of a runtime.
///
/// # Errors
/// When a socket cannot be served.
pub fn serve(bound: AdminSockets, control: &Arc<Control>) -> io::Result<AdminInterface> {
    let (sockets, offer) = (SocketFiles::default(), None);
    let mut serving = AdminInterface { address: None, sockets, offer, tasks: Vec::new() };
    bound.unix.iter().for_each(|(_, path, _)| serving.sockets.add(path));
    bound.hand_over.iter().for_each(|(_, path)| serving.sockets.add(path));
    // Before a successor can ask for the sockets, and a client for a reload.
    serve_pages(bound.pages, control)?;
    if let Some((listener, _)) = bound.hand_over {
        let tcp = bound.tcp.iter().map(|(tcp, _)| tcp.as_fd());
        let statistics = bound.bind_statistics.iter().map(|(tcp, _)| tcp.as_fd());
        let unix = bound.unix.iter().map(|(unix, ..)| unix.as_fd());
        let all: Vec<_> = tcp.chain(statistics).chain(unix).collect();
        serving.offer = Some(control.offer_sockets(listener, &all)?);
    }
    let mut accept = |name: &str, listener, interface| {
        serving.tasks.push(keep_accepting(name, listener, interface, control));
    };
    if let Some((unix, _, rights)) = bound.unix {
        unix.set_nonblocking(true)?;
        let listener = Listener::Unix(tokio::net::UnixListener::from_std(unix)?);
        accept("admin-socket", listener, Interface::Admin(rights));
    }
    if let Some((tcp, clients)) = bound.bind_statistics {
        let is_loopback = tcp.local_addr()?.ip().is_loopback();
        let listener = Listener::Tcp(tokio::net::TcpListener::from_std(tcp)?);
        accept("bind-statistics", listener, Interface::BindStatistics { clients, is_loopback });
    }
    if let Some((tcp, rights)) = bound.tcp {
        let address = tcp.local_addr().ok();
        let listener = Listener::Tcp(tokio::net::TcpListener::from_std(tcp)?);
        accept("admin-http", listener, Interface::Admin(rights));
        serving.address = address;
    }
    bound.made.keep();
    Ok(serving)
}

/// Serves pages at addresses of their own, from now on and after each reload.
fn serve_pages(bound: Vec<PageSocket>, control: &Arc<Control>) -> io::Result<()> {
    let weak = Arc::downgrade(control);
    let serve = move |name: &str, listener, pages: Arc<Mutex<Pages>>| {
        let (listener, control) = (Listener::Tcp(listener), weak.upgrade()?);
        Some(keep_accepting(name, listener, Interface::Pages(pages), &control))
    };
    control.pages.start(bound, Box::new(serve), &control.watchdog)
}

/// Accepts connections from now on, as a task that the watchdog knows by `name`.
fn keep_accepting(
    name: &str,
    listener: Listener,
    interface: Interface,
    control: &Arc<Control>,
) -> JoinHandle<()> {
    let (watchdog, control) = (Arc::clone(&control.watchdog), Arc::clone(control));
    let listener = Arc::new(listener);
    let accept = move || {
        let (listener, interface) = (Arc::clone(&listener), interface.clone());
        let control = Arc::clone(&control);
        async move {
            accept_all(&listener, interface, control).await;
            false // it ends only when it is aborted
        }
    };
    tokio::spawn(watchdog.keep(name.to_owned(), accept))
}
