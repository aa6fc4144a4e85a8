//! Sending a question and waiting for its reply, over UDP and TCP.

use super::request::Request;
use crate::output::Failure;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use zonda_wire::Message;
use zonda_wire::query::flag;
use zonda_wire::tsig::{ReplySignature, SignatureFault};

/// A reply and the way in which it came.
pub struct Exchange {
    /// The reply of the server.
    pub reply: Message,
    /// The result of verifying the reply, if the query was signed.
    pub signature: Option<Result<(), SignatureFault>>,
    /// Number of octets of the reply.
    pub octets: usize,
    /// The server that sent the reply.
    pub server: SocketAddr,
    /// `UDP` or `TCP`.
    pub transport: &'static str,
    /// From sending the question over that transport to receiving the reply.
    pub elapsed: Duration,
}

/// Asks, over UDP or, if that was asked for or the reply was cut off, over TCP.
///
/// # Errors
/// Why there is no reply.
pub fn ask(request: &Request) -> Result<Exchange, Failure> {
    let server = resolve(request)?;
    let query = Query::new(request);
    let words = |error: io::Error| match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => format!("{server}: no reply in time"),
        ErrorKind::InvalidData => {
            format!("{server}: the reply is malformed or answers another question")
        }
        ErrorKind::UnexpectedEof => format!("{server}: the connection ended before the reply"),
        _ => format!("{server}: {error}"),
    };
    let failed = |error| Failure::Failed(words(error));
    if !request.tcp {
        let exchange = ask_udp(request, server, &query).map_err(failed)?;
        if request.ignore_truncation || !exchange.reply.has(flag::TC) {
            return Ok(exchange);
        }
    }
    ask_tcp(request, server, &query).map_err(failed)
}

/// The octets of a query, signed if they are to be.
struct Query {
    /// The octets that are sent.
    octets: Vec<u8>,
    /// What a reply is checked with, if the query is signed.
    signature: Option<ReplySignature>,
}

impl Query {
    /// The query of a request, signed now.
    fn new(request: &Request) -> Self {
        let mut octets = request.message.to_wire();
        let signature = request
            .key
            .as_ref()
            .and_then(|key| ReplySignature::sign_query(Arc::clone(key), &mut octets, unix_secs()));
        Self { octets, signature }
    }

    /// Verifies a reply, if the query is signed.
    fn check(&self, reply: &[u8]) -> Option<Result<(), SignatureFault>> {
        Some(self.signature.as_ref()?.check_reply(reply, unix_secs()))
    }
}

/// The seconds since 1970.
fn unix_secs() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_secs())
}

/// The address of the server, of the family that is asked for.
fn resolve(request: &Request) -> Result<SocketAddr, String> {
    let Request { server, port, is_ipv4, .. } = request;
    let is_fit = |address: &SocketAddr| is_ipv4.is_none_or(|is_ipv4| address.is_ipv4() == is_ipv4);
    let address = (&**server, *port).to_socket_addrs().ok().and_then(|mut all| all.find(is_fit));
    let family = is_ipv4.map_or("", |is_ipv4| if is_ipv4 { " over IPv4" } else { " over IPv6" });
    address.ok_or_else(|| format!("{server}: not an address, nor a name that has one{family}"))
}

/// Asks over UDP, several times if need be.
fn ask_udp(request: &Request, server: SocketAddr, query: &Query) -> io::Result<Exchange> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let mut last = ErrorKind::TimedOut.into();
    for _ in 0..request.tries {
        let socket = UdpSocket::bind(any)?; // each time from another port
        socket.connect(server)?;
        let start = Instant::now();
        socket.send(&query.octets)?;
        match receive(request, &socket, start) {
            Ok((reply, raw)) => {
                let (transport, elapsed) = ("UDP", start.elapsed());
                let (octets, signature) = (raw.len(), query.check(&raw));
                return Ok(Exchange { reply, signature, octets, server, transport, elapsed });
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Err(error),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Waits for the datagram that answers the question; other datagrams are discarded. Returns it with
/// its octets.
fn receive(
    request: &Request,
    socket: &UdpSocket,
    start: Instant,
) -> io::Result<(Message, Vec<u8>)> {
    let mut buffer = vec![0; usize::from(u16::MAX)];
    let mut saw_other = false;
    loop {
        let left = request.timeout.saturating_sub(start.elapsed());
        if left.is_zero() {
            let kind = if saw_other { ErrorKind::InvalidData } else { ErrorKind::TimedOut };
            return Err(kind.into());
        }
        socket.set_read_timeout(Some(left))?;
        match socket.recv(&mut buffer) {
            Ok(octets) => match read_reply(request, &buffer[..octets]) {
                Some(reply) => return Ok((reply, buffer[..octets].to_vec())),
                None => saw_other = true,
            },
            Err(error) if is_timeout(&error) => {} // the time that is left decides
            Err(error) => return Err(error),
        }
    }
}

/// Whether a socket's timeout was over.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Asks over TCP, once.
fn ask_tcp(request: &Request, server: SocketAddr, query: &Query) -> io::Result<Exchange> {
    let start = Instant::now();
    let mut stream = TcpStream::connect_timeout(&server, request.timeout)?;
    stream.set_write_timeout(Some(request.timeout))?;
    let len = u16::try_from(query.octets.len()).map_err(|_| ErrorKind::InvalidInput)?;
    stream.write_all(&[&len.to_be_bytes()[..], &query.octets].concat())?; // rfc7766#8
    let mut len = [0; 2];
    read_before(&mut stream, &mut len, start + request.timeout)?;
    let mut octets = vec![0; usize::from(u16::from_be_bytes(len))];
    read_before(&mut stream, &mut octets, start + request.timeout)?;
    let reply = read_reply(request, &octets).ok_or(ErrorKind::InvalidData)?;
    let (octets, signature) = (octets.len(), query.check(&octets));
    let elapsed = start.elapsed();
    Ok(Exchange { reply, signature, octets, server, transport: "TCP", elapsed })
}

/// Fills a buffer from a connection, however small the pieces, before a time.
fn read_before(stream: &mut TcpStream, buffer: &mut [u8], deadline: Instant) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if is_timeout(&error) => {} // the time that is left decides
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads a message if it is a reply to the question: the same number, operation and question, which
/// only a server that could not read it may leave out.
fn read_reply(request: &Request, octets: &[u8]) -> Option<Message> {
    let query = &request.message;
    let reply = Message::parse(octets).ok()?;
    let is_reply = reply.has(flag::QR) && reply.id == query.id && reply.opcode() == query.opcode();
    let echoes = reply.questions == query.questions || reply.questions.is_empty();
    (is_reply && echoes).then_some(reply)
}
