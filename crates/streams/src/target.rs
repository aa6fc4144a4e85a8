//! Who is asked over connections, and how.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::tls::Tls;

/// A server that is asked over connections.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it is.
    pub address: SocketAddr,
    /// How it is asked.
    pub protocol: Protocol,
}

/// How a server is asked.
#[derive(Clone, Debug)]
pub enum Protocol {
    /// TCP (rfc7766).
    Tcp,
    /// DNS over TLS (rfc7858).
    Tls(Arc<Tls>),
}

impl Protocol {
    /// Whether nobody on the way can read or change what is said.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        !matches!(self, Self::Tcp)
    }
}
