//! The sockets of a server on this machine, from `/proc/net/udp`: what they had no room for, and
//! whose they are.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use crate::procfs;

/// Datagrams that a server's sockets have dropped so far; 0 when it is on another machine.
pub fn drops(server: SocketAddr) -> u64 {
    sockets(server).iter().map(|socket| socket.drops).sum()
}

/// The process that has a server's sockets, the oldest of those that share them; nothing when the
/// server is on another machine, or the process somebody else's.
pub fn owner(server: SocketAddr) -> Option<u32> {
    let sockets = sockets(server);
    let wanted: Vec<String> =
        sockets.iter().map(|socket| format!("socket:[{}]", socket.inode)).collect();
    let processes = procfs::processes().into_iter();
    let sharing = processes.filter(|process| procfs::has_open(*process, &wanted));
    sharing.min_by_key(|process| procfs::began_ticks(*process))
}

/// A socket that takes datagrams from anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Socket {
    /// Its number among the kernel's files.
    inode: u64,
    /// Datagrams that it has dropped.
    drops: u64,
}

/// All sockets that the kernel gives datagrams for `server` to: those bound to its address, or to
/// its port on any address if there are none. On an address of another machine there are none.
fn sockets(server: SocketAddr) -> Vec<Socket> {
    if !is_ours(server) {
        return Vec::new();
    }
    let files = ["/proc/net/udp", "/proc/net/udp6"];
    let texts: String =
        files.into_iter().filter_map(|file| fs::read_to_string(file).ok()).collect();
    let own: Vec<Socket> = sockets_in(&texts, server.port(), |ip| ip == server.ip()).collect();
    if !own.is_empty() {
        return own;
    }
    sockets_in(&texts, server.port(), |ip| ip.is_unspecified()).collect()
}

/// Whether an address is one of this machine: only those can be bound.
fn is_ours(mut address: SocketAddr) -> bool {
    address.set_port(0);
    UdpSocket::bind(address).is_ok()
}

/// Each socket that takes datagrams from anybody for a port of an address that is wanted.
fn sockets_in(
    text: &str,
    port: u16,
    is_wanted: impl Fn(IpAddr) -> bool,
) -> impl Iterator<Item = Socket> {
    text.lines().filter_map(move |line| {
        let mut columns = line.split_ascii_whitespace();
        let local = parse_address(columns.nth(1)?)?;
        let peer = parse_address(columns.next()?)?;
        let is_ours = local.port() == port && peer.port() == 0 && is_wanted(local.ip());
        let inode = columns.nth(6)?.parse().ok()?;
        let drops = columns.last()?.parse().ok()?;
        is_ours.then_some(Socket { inode, drops })
    })
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

    #[test]
    fn drops_of_a_full_socket_are_counted_and_those_of_others_are_not() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        for _ in 0..5000 {
            other.send_to(&[0; 512], address).unwrap();
        }
        assert!(drops(address) > 0);
        assert_eq!(drops(other.local_addr().unwrap()), 0);
    }

    #[test]
    fn a_socket_of_ours_is_ours() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        assert_eq!(owner(address), Some(std::process::id()));
        drop(server);
        assert_eq!(owner(address), None);
    }

    #[test]
    fn a_server_on_another_machine_has_no_sockets_here_though_one_has_its_port() {
        let any = UdpSocket::bind("0.0.0.0:0").unwrap();
        let at = |ip: [u8; 4]| SocketAddr::from((ip, any.local_addr().unwrap().port()));
        assert_eq!(owner(at([127, 0, 0, 1])), Some(std::process::id()));
        assert_eq!((sockets(at([192, 0, 2, 1])), owner(at([192, 0, 2, 1]))), (Vec::new(), None));
    }

    #[test]
    fn sockets_are_told_by_their_address_and_connected_ones_do_not_count() {
        let any = "head\n1: 00000000:14B4 00000000:0000 07 0:0 0:0 0 0 0 1 2 x 5\n";
        let own = "2: 0100007F:14B4 00000000:0000 07 0:0 0:0 0 0 0 2 2 x 7\n\
            3: 0100007F:14B4 0100007F:0BEC 01 0:0 0:0 0 0 0 3 2 x 9\n";
        let counts = |text: &str, ip: &str| {
            let sockets = sockets_in(text, 5300, |local| local.to_string() == ip);
            sockets.map(|socket| socket.drops).collect::<Vec<u64>>()
        };
        assert_eq!(counts(any, "127.0.0.1"), [0; 0]);
        assert_eq!(counts(any, "0.0.0.0"), [5]);
        assert_eq!(counts(&[any, own].concat(), "127.0.0.1"), [7]);
    }

    #[test]
    fn an_address_of_six_is_read_in_words() {
        let text = "00000000000000000000000001000000:14E9";
        assert_eq!(parse_address(text), Some("[::1]:5353".parse().unwrap()));
    }
}
