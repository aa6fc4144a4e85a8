//! Clients that a program asks its app for.

use crate::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The address of a client, with or without a port, which
/// [`Running::query_from`](crate::Running::query_from) takes: an [`IpAddr`], a [`SocketAddr`], or
/// the text of one, such as `192.0.2.7` or `[2001:db8::7]:5353`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as the address of a client",
    label = "expected an address",
    note = "give a `std::net::IpAddr`, a `std::net::SocketAddr`, or the text of one"
)]
pub trait ClientAddress {
    /// Returns the address with a port, which is 0 if none was given.
    ///
    /// # Errors
    /// When it is a text that is not an address.
    #[doc(hidden)]
    fn to_socket_addr(&self) -> Result<SocketAddr, Error>;
}

impl ClientAddress for SocketAddr {
    fn to_socket_addr(&self) -> Result<SocketAddr, Error> {
        Ok(*self)
    }
}

impl ClientAddress for IpAddr {
    fn to_socket_addr(&self) -> Result<SocketAddr, Error> {
        Ok((*self, 0).into())
    }
}

impl ClientAddress for Ipv4Addr {
    fn to_socket_addr(&self) -> Result<SocketAddr, Error> {
        Ok((*self, 0).into())
    }
}

impl ClientAddress for Ipv6Addr {
    fn to_socket_addr(&self) -> Result<SocketAddr, Error> {
        Ok((*self, 0).into())
    }
}

impl ClientAddress for &str {
    fn to_socket_addr(&self) -> Result<SocketAddr, Error> {
        let address = self.parse::<IpAddr>().map(|address| (address, 0).into());
        address.or_else(|_| self.parse()).map_err(|_| Error::Client((*self).to_owned()))
    }
}
