//! A proxy between a secondary and its primary, which ends connections behind some octets.

use crate::primaries::name;
use crate::real_peers::ZONE;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub const IXFR: u16 = 251;
pub const AXFR: u16 = 252;

/// A proxy over UDP and TCP.
pub struct Proxy(Arc<State>);

/// What the threads of a proxy share.
struct State {
    /// The server behind the proxy.
    server: SocketAddr,
    /// Octets of replies over TCP behind which a connection is ended, if a transfer is asked for.
    limit: AtomicUsize,
    /// The type of the question of each connection that was ended, the octets that went through,
    /// in their order.
    cuts: Mutex<Vec<(u16, usize)>>,
}

impl Proxy {
    /// Starts a proxy in front of a server, at a port that was free.
    pub fn start(address: SocketAddr, server: SocketAddr) -> Self {
        let (udp, tcp) = (UdpSocket::bind(address).unwrap(), TcpListener::bind(address).unwrap());
        let limit = AtomicUsize::new(usize::MAX);
        let state = Arc::new(State { server, limit, cuts: Mutex::default() });
        thread::spawn(move || relay_datagrams(&udp, server));
        let of_tcp = Arc::clone(&state);
        thread::spawn(move || {
            for client in tcp.incoming().flatten() {
                let state = Arc::clone(&of_tcp);
                thread::spawn(move || _ = state.relay(client));
            }
        });
        Self(state)
    }

    /// Ends each connection with a transfer from now on behind so many octets of replies.
    pub fn cut_at(&self, octets: usize) {
        self.0.limit.store(octets, SeqCst);
    }

    /// Ends no more connections.
    pub fn cut_nothing(&self) {
        self.cut_at(usize::MAX);
    }

    /// The connections that were ended so far whose question was of one of these types.
    pub fn cuts(&self, types: &[u16]) -> usize {
        self.0.cuts.lock().unwrap().iter().filter(|(qtype, _)| types.contains(qtype)).count()
    }
}

/// Has each datagram answered by a server.
fn relay_datagrams(udp: &UdpSocket, server: SocketAddr) {
    let mut buffer = [0; 65_535];
    while let Ok((len, client)) = udp.recv_from(&mut buffer) {
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let _ = other.send_to(&buffer[..len], server);
        if let Ok((len, _)) = other.recv_from(&mut buffer) {
            let _ = udp.send_to(&buffer[..len], client);
        }
    }
}

impl State {
    /// Relays a connection until one of both ends it, or the limit is reached.
    fn relay(&self, mut client: TcpStream) -> Option<()> {
        let mut server = TcpStream::connect(self.server).ok()?;
        let asked = Arc::new(AtomicU16::new(0));
        let (from, to, note) =
            (client.try_clone().ok()?, server.try_clone().ok()?, Arc::clone(&asked));
        thread::spawn(move || _ = relay_questions(from, to, &note));
        let (mut buffer, mut sent) = ([0; 4096], 0);
        loop {
            let len = server.read(&mut buffer).ok().filter(|len| *len > 0);
            let Some(len) = len else { break };
            let is_transfer = matches!(asked.load(SeqCst), IXFR | AXFR);
            let limit = if is_transfer { self.limit.load(SeqCst) } else { usize::MAX };
            let len_sent = len.min(limit.saturating_sub(sent));
            client.write_all(&buffer[..len_sent]).ok();
            sent += len_sent;
            if len_sent < len {
                self.cuts.lock().unwrap().push((asked.load(SeqCst), sent));
                break;
            }
        }
        for stream in [client, server] {
            let _ = stream.shutdown(Shutdown::Both);
        }
        Some(())
    }
}

/// Relays questions, and notes the type of each.
fn relay_questions(mut from: TcpStream, mut to: TcpStream, asked: &AtomicU16) -> Option<()> {
    let at = 12 + name(ZONE).len();
    loop {
        let mut len = [0; 2];
        from.read_exact(&mut len).ok()?;
        let mut query = vec![0; usize::from(u16::from_be_bytes(len))];
        from.read_exact(&mut query).ok()?;
        let qtype = query.get(at..at + 2).map_or(0, |it| u16::from_be_bytes([it[0], it[1]]));
        asked.store(qtype, SeqCst);
        to.write_all(&[&len[..], &query].concat()).ok()?;
    }
}
