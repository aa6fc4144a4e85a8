//! Connections to targets, and what their errors mean.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::{TcpSocket, TcpStream};

use crate::check::Target;
use crate::outcome::{Fault, Step};

/// Where a probe goes, and from which address.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// Address and port of the target.
    pub target: SocketAddr,
    /// Address that the probe is sent from; `None` leaves it to the system.
    pub source: Option<IpAddr>,
}

impl Endpoint {
    /// Returns where probes of this target go.
    pub fn of(target: &Target) -> Self {
        let source = match target.address {
            IpAddr::V4(_) => target.check.source_v4.map(IpAddr::from),
            IpAddr::V6(_) => target.check.source_v6.map(IpAddr::from),
        };
        Self { target: target.socket_address(), source }
    }

    /// Returns the source, or the address that leaves it to the system.
    pub fn source_or_any(&self) -> IpAddr {
        self.source.unwrap_or(match self.target {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        })
    }

    /// Makes a TCP connection. It ends with a reset: 2,000 probes a second that end otherwise would
    /// leave 120,000 connections in the state TIME-WAIT, and no port for other programs.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn connect(&self) -> Result<TcpStream, Fault> {
        let socket = match self.target {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        };
        let socket = socket.map_err(|error| no_socket(&error))?;
        socket.set_zero_linger().map_err(|error| no_socket(&error))?;
        if let Some(source) = self.source {
            socket.bind((source, 0).into()).map_err(|error| no_source(source, &error))?;
        }
        socket.connect(self.target).await.map_err(|error| fault(&error, Step::Connect))
    }
}

/// Returns the fault of a system that gives no socket.
pub fn no_socket(error: &io::Error) -> Fault {
    Fault::Local(format!("no socket for the probe: {error}").into())
}

/// Returns the fault of a source address that cannot be used.
pub fn no_source(source: IpAddr, error: &io::Error) -> Fault {
    let what = format!("{source} cannot be the source address of the probe: {error}");
    Fault::Local(what.into())
}

/// Returns what an error of a socket means for the target.
pub fn fault(error: &io::Error, step: Step) -> Fault {
    // A target that wants a certificate of this side says so behind the handshake of TLS 1.3.
    if let Some(error) = error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>()) {
        return Fault::Handshake(error.to_string().into());
    }
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Fault::Refused,
        io::ErrorKind::TimedOut => Fault::Timeout(step),
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected => Fault::Closed(step),
        kind => Fault::Unreachable(kind),
    }
}
