//! The server that is queried over connections, and its transport.

use std::net::SocketAddr;
use std::sync::Arc;

#[cfg(feature = "encrypted")]
use http::Uri;

use crate::tls::Tls;
#[cfg(not(feature = "encrypted"))]
use crate::tls::Uri;

/// A server that is queried over connections.
#[derive(Clone, Debug)]
pub struct Target {
    /// Address of the server.
    pub address: SocketAddr,
    /// Transport to the server.
    pub protocol: Protocol,
}

/// The transport to a server.
#[derive(Clone, Debug)]
pub enum Protocol {
    /// TCP without encryption (rfc7766).
    Tcp,
    /// DNS over TLS (rfc7858).
    Tls(Arc<Tls>),
    /// DNS over HTTPS (rfc8484).
    Https {
        /// Which certificates are trusted.
        tls: Arc<Tls>,
        /// URL of the requests.
        url: Url,
    },
    /// DNS over QUIC (rfc9250).
    Quic(Arc<Tls>),
}

impl Protocol {
    /// Whether the connection is safe from reading and change on the way.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        !matches!(self, Self::Tcp)
    }
}

/// The URL of queries over HTTPS.
#[derive(Clone, Debug)]
pub struct Url(pub(crate) Uri);

impl Url {
    /// Returns the URL of a path, from its `/` on, on a host, a name or an address; nothing when
    /// there can be no such URL.
    #[must_use]
    pub fn new(host: &str, port: u16, path: &str) -> Option<Self> {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let port = if port == 443 { String::new() } else { format!(":{port}") };
        format!("https://{host}{port}{path}").parse().ok().map(Self)
    }
}
