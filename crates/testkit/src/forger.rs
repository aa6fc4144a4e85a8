//! A host that is not on the way between a server and its upstream, and forges what either might
//! hear: ICMP errors from anywhere, and answers that seem to come from the upstream.
//!
//! Raw sockets need CAP_NET_RAW; only IPv4 is forged.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// The address that ICMP errors come from: neither the server's nor the upstream's.
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 6, 6, 6);
/// Octets of a UDP header.
const UDP_HEADER_BYTES: usize = 8;
/// Octets of an IPv4 header without options.
const IP_HEADER_BYTES: usize = 20;
/// The protocol number of UDP.
const UDP: u8 = 17;

/// Forges what a server hears about and from one upstream.
pub struct Forger {
    /// Sends ICMP messages from [`STRANGER`].
    icmp: Socket,
    /// Sends UDP datagrams from the upstream's address.
    udp: Socket,
    /// The upstream that is asked.
    upstream: SocketAddrV4,
    /// The address from which the server asks this upstream.
    server: Ipv4Addr,
}

impl Forger {
    /// Makes a forger for a server at 127.0.0.1.
    ///
    /// # Errors
    /// When raw sockets are not permitted.
    pub fn new(upstream: SocketAddrV4) -> io::Result<Self> {
        let raw = |protocol, from: Ipv4Addr| {
            let socket = Socket::new(Domain::IPV4, Type::RAW, Some(protocol))?;
            socket.bind(&SocketAddrV4::new(from, 0).into())?;
            Ok::<_, io::Error>(socket)
        };
        Ok(Self {
            icmp: raw(Protocol::ICMPV4, STRANGER)?,
            udp: raw(Protocol::UDP, *upstream.ip())?,
            upstream,
            server: Ipv4Addr::LOCALHOST,
        })
    }

    /// Sends, from another address, the ICMP error that a query which left from `port` has reached
    /// a port where nothing listens (rfc792: Destination Unreachable, code 3). What the system does
    /// not send is lost.
    pub fn say_unreachable(&self, port: u16) {
        let quoted = UDP_HEADER_BYTES + IP_HEADER_BYTES;
        let mut message = vec![0; UDP_HEADER_BYTES];
        (message[0], message[1]) = (3, 3);
        message.extend([0x45, 0]);
        message.extend((quoted as u16).to_be_bytes());
        message.extend([0, 0, 0x40, 0, 64, UDP, 0, 0]);
        message.extend(self.server.octets());
        message.extend(self.upstream.ip().octets());
        let checksum = checksum(&message[UDP_HEADER_BYTES..]);
        message[UDP_HEADER_BYTES + 10..][..2].copy_from_slice(&checksum.to_be_bytes());
        message.extend(udp_header(port, self.upstream.port(), 0));
        let checksum = self::checksum(&message);
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        let _ = self.icmp.send_to(&message, &self.to_server());
    }

    /// Sends a message to a port of the server as if the upstream had. What the system does not
    /// send is lost.
    pub fn say(&self, port: u16, message: &[u8]) {
        let header = udp_header(self.upstream.port(), port, message.len());
        let _ = self.udp.send_to(&[&header, message].concat(), &self.to_server());
    }

    /// Returns the ports from which the server asks the upstream at the moment.
    ///
    /// # Panics
    /// When the system does not report them.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        let table = fs::read_to_string("/proc/net/udp").expect("Linux lists its UDP sockets");
        let hexadecimal = |ip: Ipv4Addr, port: u16| {
            let ip = u32::from_ne_bytes(ip.octets());
            format!("{ip:08X}:{port:04X}")
        };
        let upstream = hexadecimal(*self.upstream.ip(), self.upstream.port());
        let port = |line: &str| {
            let mut words = line.split_whitespace().skip(1);
            let (own, other) = (words.next()?, words.next()?);
            let (_, port) = own.split_once(':')?;
            (other == upstream).then(|| u16::from_str_radix(port, 16).ok())?
        };
        table.lines().filter_map(port).collect()
    }

    /// Returns the server's address as raw sockets take it.
    fn to_server(&self) -> SockAddr {
        SocketAddrV4::new(self.server, 0).into()
    }
}

/// Returns the ports that the system gives to sockets that ask for any.
///
/// # Panics
/// When the system does not report them.
#[must_use]
pub fn ephemeral_ports() -> std::ops::RangeInclusive<u16> {
    let path = "/proc/sys/net/ipv4/ip_local_port_range";
    let text = fs::read_to_string(path).expect("Linux tells its range of ports");
    let mut numbers = text.split_whitespace().filter_map(|number| number.parse().ok());
    let both = numbers.next().zip(numbers.next());
    let (least, greatest) = both.expect("a range is two numbers");
    least..=greatest
}

/// Returns a UDP header without checksum.
fn udp_header(from: u16, to: u16, payload: usize) -> [u8; UDP_HEADER_BYTES] {
    let mut header = [0; UDP_HEADER_BYTES];
    header[..2].copy_from_slice(&from.to_be_bytes());
    header[2..4].copy_from_slice(&to.to_be_bytes());
    header[4..6].copy_from_slice(&((UDP_HEADER_BYTES + payload) as u16).to_be_bytes());
    header
}

/// Returns the Internet checksum (rfc1071) of an even number of octets.
fn checksum(octets: &[u8]) -> u16 {
    let words =
        octets.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, UdpSocket};
    use std::time::Duration;

    #[test]
    fn what_is_forged_is_taken_for_the_upstream_s_and_for_the_network_s() {
        let upstream = UdpSocket::bind("127.0.0.1:0").unwrap();
        let SocketAddr::V4(address) = upstream.local_addr().unwrap() else { panic!() };
        let Ok(forger) = Forger::new(address) else {
            return eprintln!("skipped: raw sockets are not permitted");
        };
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(address).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let port = client.local_addr().unwrap().port();
        assert_eq!(forger.ports(), [port]);
        let mut buffer = [0; 16];
        forger.say(port, b"forged");
        let length = client.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"forged");
        forger.say_unreachable(port);
        let error = client.recv(&mut buffer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(ephemeral_ports().contains(&port));
    }
}
