//! A small client: asks one question over UDP or TCP and reads the reply.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use crate::message::Message;
use crate::rdata::{type_number, type_text};

/// How long one try waits; a peer on loopback that needs longer is stuck.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Time for the reply over TCP, which is not lost.
const TCP_TIMEOUT: Duration = Duration::from_secs(20);
/// Tries over UDP, since a busy machine may lose a packet.
const TRIES: usize = 3;

/// A question, and the flags and options to ask it with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Name in presentation form; its case is sent as it is.
    pub name: String,
    /// Number of the type.
    pub record_type: u16,
    /// Number of the class.
    pub class: u16,
    /// The buffer size in OPT; none sends no OPT.
    pub udp_size: Option<u16>,
    /// The DO bit; only with OPT.
    pub dnssec_ok: bool,
    /// Options of OPT as (code, data).
    pub options: Vec<(u16, Vec<u8>)>,
    /// Whether TCP is used instead of UDP.
    pub tcp: bool,
    /// The RD bit.
    pub recursion_desired: bool,
}

impl Question {
    /// Makes a plain question over UDP without EDNS.
    pub fn new(name: &str, record_type: &str) -> Self {
        Self {
            name: name.to_owned(),
            record_type: type_number(record_type),
            class: 1,
            udp_size: None,
            dnssec_ok: false,
            options: Vec::new(),
            tcp: false,
            recursion_desired: false,
        }
    }

    /// With the RD bit.
    #[must_use]
    pub fn recursive(self) -> Self {
        Self { recursion_desired: true, ..self }
    }

    /// With OPT and this buffer size.
    #[must_use]
    pub fn edns(self, udp_size: u16) -> Self {
        Self { udp_size: Some(udp_size), ..self }
    }

    /// With OPT and the DO bit.
    #[must_use]
    pub fn dnssec(self) -> Self {
        let udp_size = self.udp_size.or(Some(1232));
        Self { udp_size, dnssec_ok: true, ..self }
    }

    /// Returns the question with an OPT record that holds this option.
    #[must_use]
    pub fn option(mut self, code: u16, data: &[u8]) -> Self {
        self.udp_size = self.udp_size.or(Some(1232));
        self.options.push((code, data.to_vec()));
        self
    }

    /// Sends the query over TCP.
    #[must_use]
    pub fn over_tcp(self) -> Self {
        Self { tcp: true, ..self }
    }

    /// Returns the query's bytes.
    pub fn to_bytes(&self, id: u16) -> Vec<u8> {
        let mut query = id.to_be_bytes().to_vec();
        query.extend([
            u8::from(self.recursion_desired),
            0,
            0,
            1,
            0,
            0,
            0,
            0,
            0,
            u8::from(self.udp_size.is_some()),
        ]);
        query.extend(name_bytes(&self.name));
        query.extend(self.record_type.to_be_bytes());
        query.extend(self.class.to_be_bytes());
        let Some(udp_size) = self.udp_size else { return query };
        query.extend([0, 0, 41]);
        query.extend(udp_size.to_be_bytes());
        query.extend([0, 0, if self.dnssec_ok { 0x80 } else { 0 }, 0]);
        let option = |(code, data): &(u16, Vec<u8>)| {
            let length = u16::try_from(data.len()).expect("an option's length has sixteen bits");
            [&code.to_be_bytes(), &length.to_be_bytes(), data.as_slice()].concat()
        };
        let options: Vec<u8> = self.options.iter().flat_map(option).collect();
        let length = u16::try_from(options.len()).expect("all options have sixteen bits of length");
        query.extend(length.to_be_bytes());
        query.extend(options);
        query
    }
}

impl fmt::Display for Question {
    /// Writes the question as an argument of `kdig`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, type_text(self.record_type))?;
        if let Some(size) = self.udp_size {
            write!(f, " +bufsize={size}")?;
        }
        let flags = [
            (self.dnssec_ok, " +dnssec"),
            (self.tcp, " +tcp"),
            (self.recursion_desired, " +rdflag"),
        ];
        flags.iter().filter(|(set, _)| *set).try_for_each(|(_, flag)| f.write_str(flag))
    }
}

/// Asks a server and returns its reply.
///
/// # Errors
/// When it does not answer in time, or what it answers is no message.
pub fn ask(server: SocketAddr, question: &Question) -> io::Result<Message> {
    let reply = exchange(server, &question.to_bytes(0x1d0c), question.tcp)?;
    Message::parse(&reply).map_err(|what| io::Error::new(io::ErrorKind::InvalidData, what))
}

/// Sends bytes and returns the bytes that come back.
///
/// # Errors
/// When nothing comes back in time.
pub fn exchange(server: SocketAddr, query: &[u8], tcp: bool) -> io::Result<Vec<u8>> {
    if tcp {
        return exchange_tcp(server, query);
    }
    let own: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let socket = UdpSocket::bind((own, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    let mut buffer = vec![0; 65_535];
    let mut last = io::Error::from(io::ErrorKind::TimedOut);
    for _ in 0..TRIES {
        match socket.send(query).and_then(|_| receive(&socket, &mut buffer)) {
            Ok(length) => return Ok(buffer[..length].to_vec()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Exchanges messages over TCP, with the length in front (rfc1035#4.2.2).
fn exchange_tcp(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, TIMEOUT)?;
    stream.set_read_timeout(Some(TCP_TIMEOUT))?;
    let length = u16::try_from(query.len()).expect("a query has sixteen bits of length");
    stream.write_all(&[&length.to_be_bytes(), query].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut reply = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut reply)?;
    Ok(reply)
}

/// Receives one datagram; its length. The kernel also interrupts a receive that has a timeout when
/// the whole process was stopped for a while, which says nothing about the server.
///
/// # Errors
/// When nothing comes in time.
pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match socket.recv(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Wire form of a name in presentation form, with `\.` and `\DDD` (rfc1035#5.1).
pub fn name_bytes(text: &str) -> Vec<u8> {
    let mut name = Vec::new();
    let mut label = Vec::new();
    let mut bytes = text.strip_suffix('.').unwrap_or(text).bytes();
    let mut end = |label: &mut Vec<u8>| {
        name.push(u8::try_from(label.len()).expect("a label of a test is short"));
        name.append(label);
    };
    while let Some(byte) = bytes.next() {
        match byte {
            b'.' => end(&mut label),
            b'\\' => {
                let first = bytes.next().expect("a backslash escapes something");
                let mut digit = || bytes.next().map_or(0, |digit| digit - b'0');
                label.push(match first {
                    b'0'..=b'9' => (first - b'0') * 100 + digit() * 10 + digit(),
                    _ => first,
                });
            }
            _ => label.push(byte),
        }
    }
    if !label.is_empty() {
        end(&mut label);
    }
    name.push(0);
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::name_text;

    #[test]
    fn a_name_survives_the_way_to_bytes_and_back() {
        for text in [".", "example.", "A.b.example.", "a\\.b.example.", "\\000\\255x.example."] {
            assert_eq!(name_text(&name_bytes(text)), text);
        }
    }

    #[test]
    fn a_question_is_read_back_from_its_bytes() {
        let question = Question::new("Www.example.", "AAAA").dnssec().option(10, &[1; 8]);
        let message = Message::parse(&question.to_bytes(7)).unwrap();
        assert_eq!(message.question_text(), "Www.example. CLASS1 AAAA\n");
        let edns = message.edns.unwrap();
        assert_eq!((edns.udp_size, edns.dnssec_ok), (1232, true));
        assert_eq!(edns.options, [(10, vec![1; 8])]);
    }
}
