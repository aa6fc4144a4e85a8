//! Datagrams that a server on this machine had no room for, from `/proc/net/udp`.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Drops so far of all sockets that are bound to `server` or to its port on any address; 0 when
/// there is none, as when the server is on another machine.
pub fn count(server: SocketAddr) -> u64 {
    let files = ["/proc/net/udp", "/proc/net/udp6"];
    let texts = files.into_iter().filter_map(|file| fs::read_to_string(file).ok());
    texts.map(|text| count_in(&text, server)).sum()
}

/// The same in the text of one file.
fn count_in(text: &str, server: SocketAddr) -> u64 {
    let drops = text.lines().skip(1).filter_map(|line| {
        let mut columns = line.split_ascii_whitespace();
        let local = parse_address(columns.nth(1)?)?;
        let is_ours = local.ip() == server.ip() || local.ip().is_unspecified();
        let drops = columns.last()?.parse::<u64>().ok()?;
        (is_ours && local.port() == server.port()).then_some(drops)
    });
    drops.sum()
}

/// Reads an address: words of 32 bits in hexadecimal as they lie in memory, a colon, the port.
fn parse_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok();
    let octets = |at: usize| Some(word(at)?.to_ne_bytes());
    let ip: IpAddr = match ip.len() {
        8 => Ipv4Addr::from(octets(0)?).into(),
        32 => {
            let mut all = [0; 16];
            for part in 0..4 {
                all[part * 4..][..4].copy_from_slice(&octets(part * 8)?);
            }
            Ipv6Addr::from(all).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn drops_of_a_full_socket_are_counted_and_those_of_others_are_not() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        for _ in 0..5000 {
            other.send_to(&[0; 512], address).unwrap();
        }
        assert!(count(address) > 0);
        assert_eq!(count(other.local_addr().unwrap()), 0);
    }

    #[test]
    fn an_address_of_six_is_read_in_words() {
        let text = "00000000000000000000000001000000:14E9";
        assert_eq!(parse_address(text), Some("[::1]:5353".parse().unwrap()));
    }
}
