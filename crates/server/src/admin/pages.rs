//! Pages at addresses of their own, for probes and scrapers that have no token.

use super::reply::{Reply, text};
use super::{access, api};
use crate::control::Control;
use crate::listen::{InheritedSockets, is_without_ipv6};
use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Request, StatusCode};
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use zonda_config::Admin;
use zonda_netio::tcp::TcpOptions;

/// The pages that an address answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// Whether the process tells that it answers, at `/health`.
    health: bool,
    /// Whether the server tells whether it is ready, at `/ready`.
    ready: bool,
    /// Whether metrics are told, at `/metrics`.
    metrics: bool,
    /// Whether only this machine reaches the address.
    is_loopback: bool,
}

/// A socket that is bound, and the pages that it is for.
pub type PageSocket = (TcpListener, Pages);

/// A key, its addresses, and what adds its page to those of an address.
type PageList<'c> = (&'static str, &'c [SocketAddr], fn(&mut Pages));

/// Binds the addresses of all pages, out of `found` where they are there.
///
/// # Errors
/// What is wrong, and what to do about it.
pub fn bind(config: &Admin, found: &mut InheritedSockets) -> Result<Vec<PageSocket>, String> {
    let mut all = BTreeMap::<SocketAddr, (Pages, &str)>::new();
    let lists: [PageList<'_>; 3] = [
        ("health", &config.health, |pages| pages.health = true),
        ("ready", &config.ready, |pages| pages.ready = true),
        ("metrics", &config.metrics, |pages| pages.metrics = true),
    ];
    for (key, addresses, add) in lists {
        for address in addresses {
            let (pages, _) = all.entry(*address).or_insert((Pages::default(), key));
            pages.is_loopback = address.ip().is_loopback();
            add(pages);
        }
    }
    let mut sockets = Vec::with_capacity(all.len());
    for (address, (pages, key)) in &all {
        let listener = match found.take_tcp(*address) {
            Some(listener) => Ok(listener),
            None => zonda_netio::tcp::listen(*address, &TcpOptions::default()),
        };
        match listener {
            Ok(listener) => sockets.push((listener, *pages)),
            Err(error)
                if is_without_ipv6(&error, *address) && all.contains_key(&ipv4(*address)) =>
            {
                tracing::warn!(%address, %error, "a page is not answered over IPv6");
            }
            Err(error) => return Err(format!("cannot bind admin.{key} {address}: {error}")),
        }
    }
    Ok(sockets)
}

/// The IPv4 address that stands for all of the machine, as an IPv6 address does.
fn ipv4(address: SocketAddr) -> SocketAddr {
    SocketAddr::from(([0, 0, 0, 0], address.port()))
}

impl Pages {
    /// Answers a request.
    pub async fn answer(self, request: Request<Incoming>, control: Arc<Control>) -> Reply {
        // On this machine, a page of the web might ask by the name of its own host.
        if self.is_loopback && !access::is_host_own(&request) {
            return access::misdirected();
        }
        let path = request.uri().path();
        let is_page = match path {
            "/health" => self.health,
            "/ready" => self.ready,
            "/metrics" => self.metrics,
            _ => false,
        };
        if !is_page {
            return text(StatusCode::NOT_FOUND, "no such page at this address\n".into());
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, "GET is answered\n".into());
            reply.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return reply;
        }
        match path {
            "/health" => text(StatusCode::OK, "OK".into()),
            path => {
                let is_metrics = path == "/metrics";
                let page = move || match is_metrics {
                    true => api::metrics_page(&control),
                    false => api::ready(&control, false, "OK"), // the word of CoreDNS
                };
                // A million zones take a while.
                tokio::task::spawn_blocking(page).await.unwrap_or_else(|_| {
                    text(StatusCode::INTERNAL_SERVER_ERROR, "the page failed; see the log\n".into())
                })
            }
        }
    }
}
