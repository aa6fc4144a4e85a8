//! ICMP echo requests.
//!
//! By a datagram socket for ICMP, which needs no privilege where the system lets groups of this
//! process have one.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

use super::connect::{self, Endpoint};
use crate::decode::{Family, echo_reply, echo_request};
use crate::outcome::{Fault, Step};
use crate::random::Random;

/// Messages that are no reply to the request, before the probe gives up.
const STRAY_MAX: usize = 64;
/// What to do when the system refuses the socket.
const NOT_PERMITTED: &str = "ICMP echo is not permitted: let sysctl net.ipv4.ping_group_range \
                             include a group of this process, for example \"0 2147483647\"";

/// Sends an echo request and waits for its reply.
///
/// # Errors
/// Why the target is not healthy, or why this machine cannot send the request.
pub async fn ask(endpoint: &Endpoint) -> Result<(), Fault> {
    let family = match endpoint.target {
        SocketAddr::V4(_) => Family::V4,
        SocketAddr::V6(_) => Family::V6,
    };
    let socket = socket(family).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => Fault::Local(NOT_PERMITTED.into()),
        _ => connect::no_socket(&error),
    })?;
    if let Some(source) = endpoint.source {
        let address = SocketAddr::new(source, 0).into();
        socket.bind(&address).map_err(|error| connect::no_source(source, &error))?;
    }
    // The two are the same to tokio: a descriptor of datagrams.
    let socket = tokio::net::UdpSocket::from_std(UdpSocket::from(socket));
    let socket = socket.map_err(|error| connect::no_socket(&error))?;
    let failed = |error| connect::fault(&error, Step::Reply);
    let target: IpAddr = endpoint.target.ip();
    socket.connect((target, 0)).await.map_err(|error| connect::fault(&error, Step::Connect))?;
    let mut random = Random::new();
    let payload = [random.below(u64::MAX), random.below(u64::MAX)].map(u64::to_be_bytes);
    let payload = *payload.as_flattened().first_chunk().expect("two numbers of eight octets");
    socket.send(&echo_request(family, payload)).await.map_err(failed)?;
    let mut message = [0; 128];
    for _ in 0..STRAY_MAX {
        let len = socket.recv(&mut message).await.map_err(failed)?;
        if echo_reply(family, payload, &message[..len]) {
            return Ok(());
        }
    }
    Err(Fault::Protocol("ICMP"))
}

/// Returns a socket for echo messages that does not block.
fn socket(family: Family) -> io::Result<Socket> {
    let (domain, protocol) = match family {
        Family::V4 => (Domain::IPV4, Protocol::ICMPV4),
        Family::V6 => (Domain::IPV6, Protocol::ICMPV6),
    };
    let socket = Socket::new(domain, Type::DGRAM, Some(protocol))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
