//! The sockets of pages at addresses of their own.

use crate::listen::{InheritedSockets, is_without_ipv6, overlaps};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use zonda_config::{Admin, Origin};
use zonda_netio::tcp::TcpOptions;

/// The pages that an address answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// Whether the process tells that it answers, at `/health`.
    pub health: bool,
    /// Whether the server tells whether it is ready, at `/ready`.
    pub ready: bool,
    /// Whether metrics are told, at `/metrics`.
    pub metrics: bool,
    /// Whether only this machine reaches the address.
    pub is_loopback: bool,
}

/// The pages that a configuration has, by address.
pub type PageMap = BTreeMap<SocketAddr, NamedPages>;

/// Pages, and the first key that names their address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPages {
    pub pages: Pages,
    key: &'static str,
}

/// Pages, and the socket at which they are answered.
pub struct PageSocket {
    /// The address in the configuration.
    pub address: SocketAddr,
    /// The pages that the address answers.
    pub pages: Pages,
    /// The socket that is bound.
    pub socket: TcpListener,
}

/// An address of a page could not be bound.
#[derive(Debug)]
pub struct PageError {
    /// The place of the key; none where it has none.
    origin: Option<Origin>,
    key: &'static str,
    address: SocketAddr,
    /// The system's error; none where the interface has the address in the same configuration.
    error: Option<io::Error>,
}

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, key, address, error } = self;
        if let Some(origin) = origin {
            write!(f, "{origin}: ")?;
        }
        write!(f, "cannot bind {address} for `{key}` of [admin]: ")?;
        let Some(error) = error else {
            return f.write_str(
                "`address` or `bind-statistics` of [admin] has it; choose another address, or \
                 write `address = \"off\"`",
            );
        };
        write!(f, "{error}")?;
        match error.kind() {
            io::ErrorKind::AddrInUse => write!(
                f,
                "; `ss -ltnp 'sport = {}'` shows which program has it; choose another address, or \
                 restart the server where it is its own",
                address.port()
            ),
            io::ErrorKind::PermissionDenied => write!(
                f,
                "; ports below 1024 are root's, and a server that has given up the rights of root \
                 needs a restart to bind one"
            ),
            io::ErrorKind::AddrNotAvailable => {
                write!(f, "; no interface of this machine has the address")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for PageError {}

/// A key, its addresses, and what adds its page to those of an address.
type PageList<'c> = (&'static str, &'c [SocketAddr], fn(&mut Pages));

/// The pages that a configuration has.
pub fn page_map(config: &Admin) -> PageMap {
    let mut all = PageMap::new();
    let lists: [PageList<'_>; 3] = [
        ("health", &config.health, |pages| pages.health = true),
        ("ready", &config.ready, |pages| pages.ready = true),
        ("metrics", &config.metrics, |pages| pages.metrics = true),
    ];
    for (key, addresses, add) in lists {
        for address in addresses {
            let new = NamedPages { pages: Pages::default(), key };
            let NamedPages { pages, .. } = all.entry(*address).or_insert(new);
            pages.is_loopback = address.ip().is_loopback();
            add(pages);
        }
    }
    all
}

/// Whether an address of pages is one that a configuration has for the interface itself, or
/// overlaps it.
pub fn meets_interface(address: SocketAddr, config: &Admin) -> bool {
    let mut own = config.address.into_iter().chain(config.bind_statistics);
    own.any(|it| (it == address && address.port() != 0) || overlaps(it, address))
}

/// Checks that a configuration has no page at an address that it has for the interface itself.
///
/// # Errors
/// The first such address.
pub fn check(config: &Admin, all: &PageMap) -> Result<(), PageError> {
    match all.iter().find(|(address, _)| meets_interface(**address, config)) {
        None => Ok(()),
        Some((address, NamedPages { key, .. })) => {
            let (origin, address) = (origin_of(config, key), *address);
            Err(PageError { origin, key, address, error: None })
        }
    }
}

/// Binds the addresses of all pages, out of `found` where they are there.
///
/// # Errors
/// The first address that cannot be bound.
pub fn bind(config: &Admin, found: &mut InheritedSockets) -> Result<Vec<PageSocket>, PageError> {
    let all = page_map(config);
    check(config, &all)?;
    let mut sockets = Vec::with_capacity(all.len());
    for (address, named) in &all {
        let (address, pages) = (*address, named.pages);
        let socket = match found.take_tcp(address) {
            Some(listener) => Some(listener),
            None => bind_one((address, named), (config, &all), false)?,
        };
        sockets.extend(socket.map(|socket| PageSocket { address, pages, socket }));
    }
    Ok(sockets)
}

/// Binds the address of pages, which shares its port with other sockets if `is_shared`; none where
/// the machine has no IPv6 and the pages are among `all` over IPv4 as well.
///
/// # Errors
/// When the address cannot be bound.
pub fn bind_one(
    (address, named): (SocketAddr, &NamedPages),
    (config, all): (&Admin, &PageMap),
    is_shared: bool,
) -> Result<Option<TcpListener>, PageError> {
    let options = TcpOptions { reuse_port: is_shared, ..TcpOptions::default() };
    match zonda_netio::tcp::listen(address, &options) {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if is_without_ipv6(&error, address) && all.contains_key(&ipv4(address)) => {
            tracing::warn!(%address, %error, "a page is not answered over IPv6");
            Ok(None)
        }
        Err(error) => {
            let key = named.key;
            let (origin, error) = (origin_of(config, key), Some(error));
            Err(PageError { origin, key, address, error })
        }
    }
}

/// The place of a key; none where it has none.
fn origin_of(config: &Admin, key: &str) -> Option<Origin> {
    let origin = match key {
        "health" => &config.page_origins.health,
        "ready" => &config.page_origins.ready,
        _ => &config.page_origins.metrics,
    };
    (*origin != Origin::Default).then(|| origin.clone())
}

/// The IPv4 address that stands for all of the machine, as an IPv6 address does.
fn ipv4(address: SocketAddr) -> SocketAddr {
    SocketAddr::from(([0, 0, 0, 0], address.port()))
}
