//! The sockets of a server on this machine, from `/proc/net/udp`: what they had no room for, and
//! whose they are.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use crate::procfs::{self, UdpEntry, udp_entries};

/// Datagrams that a server's sockets have dropped so far; 0 when it is on another machine.
pub fn drops(server: SocketAddr) -> u64 {
    sockets(server).iter().map(|socket| socket.drops).sum()
}

/// Returns the process that has a server's sockets, the oldest of those that share them; `None`
/// when the server is on another machine, or the process another user's.
pub fn owner(server: SocketAddr) -> Option<u32> {
    let sockets = sockets(server);
    let wanted: Vec<String> =
        sockets.iter().map(|socket| format!("socket:[{}]", socket.inode)).collect();
    let processes = procfs::processes().into_iter();
    let sharing = processes.filter(|process| procfs::has_open(*process, &wanted));
    sharing.min_by_key(|process| procfs::began_ticks(*process))
}

/// Returns all sockets that the kernel gives datagrams for `server` to: those bound to its address,
/// or to its port on any address if there are none. On an address of another machine there are
/// none.
fn sockets(server: SocketAddr) -> Vec<UdpEntry> {
    if !is_ours(server) {
        return Vec::new();
    }
    let table = procfs::udp_table();
    let own: Vec<UdpEntry> = sockets_in(&table, server.port(), |ip| ip == server.ip()).collect();
    if !own.is_empty() {
        return own;
    }
    sockets_in(&table, server.port(), |ip| ip.is_unspecified()).collect()
}

/// Whether an address is one of this machine: only those can be bound.
fn is_ours(mut address: SocketAddr) -> bool {
    address.set_port(0);
    UdpSocket::bind(address).is_ok()
}

/// Returns each socket of a table that takes datagrams from any peer for a port of a wanted
/// address.
fn sockets_in(
    table: &str,
    port: u16,
    is_wanted: impl Fn(IpAddr) -> bool,
) -> impl Iterator<Item = UdpEntry> {
    let is_ours = move |entry: &UdpEntry| {
        entry.local.port() == port && entry.peer.port() == 0 && is_wanted(entry.local.ip())
    };
    udp_entries(table).filter(is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_the_servers_sockets_are_counted_and_no_other_drops() {
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
    fn sockets_are_found_by_address_and_connected_ones_do_not_count() {
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
}
