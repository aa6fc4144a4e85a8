//! What a probe does, as plain data.
//!
//! Equal checks of the same target are probed once, so that all of this is `Eq` and `Hash`. Values
//! that come from a configuration are judged where they enter: a check that exists can be made.

mod exchange;
mod grpc;
mod http;
mod local;
mod tls;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

pub use exchange::{DnsCheck, TcpExchange, Transport, UdpExchange};
pub use grpc::GrpcCheck;
pub use http::{HttpCheck, HttpVersion};
pub use local::{CommandCheck, FileCheck, PushCheck};
pub use tls::{Identity, Roots, TlsError, TlsSettings, Trust};

/// Octets at the beginning of a reply in which an expected text must lie: as many as Route 53 looks
/// at, so that a check can move from there.
pub const TEXT_BYTES_MAX: usize = 5120;

/// What is probed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Address that is probed.
    pub address: IpAddr,
    /// Port that is probed; without a meaning for ICMP, files and pushed values.
    pub port: u16,
    /// Check that decides whether the target is healthy.
    pub check: Arc<Check>,
}

impl Target {
    /// Returns the address and port together.
    #[must_use]
    pub fn socket_address(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }
}

/// A check: what a probe does, and from which address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    /// What a probe does.
    pub kind: Kind,
    /// Address that probes of IPv4 targets are sent from; `None` leaves it to the system.
    pub source_v4: Option<Ipv4Addr>,
    /// Address that probes of IPv6 targets are sent from; `None` leaves it to the system.
    pub source_v6: Option<Ipv6Addr>,
}

impl From<Kind> for Check {
    fn from(kind: Kind) -> Self {
        Self { kind, source_v4: None, source_v6: None }
    }
}

/// What a probe does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Makes a TCP connection and resets it.
    Tcp,
    /// Makes a TCP connection, sends octets and expects a text in the reply.
    TcpExchange(TcpExchange),
    /// Completes a TLS handshake: for the certificate alone.
    Tls(TlsSettings),
    /// Sends an HTTP request and judges the response.
    Http(HttpCheck),
    /// Calls the gRPC health service (`grpc.health.v1.Health/Check`).
    Grpc(GrpcCheck),
    /// Sends an ICMP echo request.
    Icmp,
    /// Sends a DNS query and judges the response.
    Dns(DnsCheck),
    /// Sends a UDP datagram and expects a reply.
    UdpExchange(UdpExchange),
    /// Runs a program.
    Command(CommandCheck),
    /// Reads a file.
    File(FileCheck),
    /// Takes the value that a program outside has pushed.
    Push(PushCheck),
}

impl Kind {
    /// Returns the kind as a word of configuration, metrics and logs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Tcp | Self::TcpExchange(_) => "tcp",
            Self::Tls(_) => "tls",
            Self::Http(check) if check.tls().is_some() => "https",
            Self::Http(_) => "http",
            Self::Grpc(_) => "grpc",
            Self::Icmp => "icmp",
            Self::Dns(_) => "dns",
            Self::UdpExchange(_) => "udp",
            Self::Command(_) => "command",
            Self::File(_) => "file",
            Self::Push(_) => "push",
        }
    }

    /// Returns the settings of TLS, if the check uses it.
    #[must_use]
    pub fn tls(&self) -> Option<&TlsSettings> {
        match self {
            Self::Tls(tls) => Some(tls),
            Self::Http(check) => check.tls(),
            Self::Grpc(check) => check.tls.as_ref(),
            Self::TcpExchange(check) => check.tls.as_ref(),
            _ => None,
        }
    }
}

/// Why a value of a check cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckError {
    /// The path of a request does not begin with `/` or has a character that no path has.
    Path,
    /// The method of a request is no word of letters.
    Method,
    /// The host has a character that no host has, or is empty.
    Host,
    /// The name or value of a header has a character that must not be there.
    Header,
    /// The header is one that the probe writes itself.
    OwnHeader,
    /// A range of statuses is empty or not within 100 to 599.
    Statuses,
    /// The text is longer than the octets in which it is searched.
    TextTooLong,
    /// The name of a gRPC service is longer than 255 octets.
    Service,
    /// The command has no program, or an argument with a zero octet in it.
    Command,
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path => f.write_str("the path must begin with / and have no spaces"),
            Self::Method => f.write_str("the method must be a word such as GET or HEAD"),
            Self::Host => f.write_str("this cannot be a host: write a name, with a port if needed"),
            Self::Header => f.write_str("this cannot be a header of HTTP: write NAME and VALUE"),
            Self::OwnHeader => f.write_str(
                "the probe writes this header: set the host by its own key, and leave out \
                 Connection, Content-Length, Transfer-Encoding and Upgrade",
            ),
            Self::Statuses => f.write_str("statuses are 100 to 599, ranges from lower to higher"),
            Self::TextTooLong => {
                write!(f, "the text can have {TEXT_BYTES_MAX} octets: so many are read")
            }
            Self::Service => f.write_str("the name of a gRPC service can have 255 octets"),
            Self::Command => f.write_str("write the program and its arguments, without NUL"),
        }
    }
}

impl std::error::Error for CheckError {}
