//! A network between clients and the API server, which a test can cut.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often a connection looks whether the network is cut or gone.
const LOOK: Duration = Duration::from_millis(20);
/// Octets that a connection takes at a time.
const CHUNK: usize = 64 << 10;

/// What the threads of a link share.
#[derive(Default)]
struct LinkState {
    /// Whether no octet passes at the moment.
    is_cut: AtomicBool,
    /// Whether the test has ended.
    is_gone: AtomicBool,
    /// Both ends of all connections that were ever made.
    streams: Mutex<Vec<TcpStream>>,
}

/// A forwarder of connections to one server, on a port of its own.
pub struct Link {
    /// Port on 127.0.0.1 that leads to the server.
    pub port: u16,
    state: Arc<LinkState>,
}

impl Link {
    /// Makes a link to a server, which may come and go.
    ///
    /// # Panics
    /// When there is no port.
    pub fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let port = listener.local_addr().expect("a listener has an address").port();
        let state = Arc::<LinkState>::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                if shared.is_gone.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(client) = client else { continue };
                let shared = Arc::clone(&shared);
                thread::spawn(move || forward(client, server, &shared));
            }
        });
        Self { port, state }
    }

    /// Lets no octet pass from now on; connections stay open, as behind a router without power.
    pub fn cut(&self) {
        self.state.is_cut.store(true, Ordering::Relaxed);
    }

    /// Lets octets pass again, those first that were held back.
    pub fn heal(&self) {
        self.state.is_cut.store(false, Ordering::Relaxed);
    }

    /// Closes all connections, as a load balancer that restarts does.
    pub fn disconnect(&self) {
        let mut streams = self.state.streams.lock().unwrap_or_else(PoisonError::into_inner);
        // One that is closed already is no fault.
        streams.drain(..).for_each(|stream| _ = stream.shutdown(Shutdown::Both));
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.state.is_gone.store(true, Ordering::Relaxed);
        self.disconnect();
        // So that the listener looks.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

/// Carries a connection in both directions until one end closes.
fn forward(client: TcpStream, server: SocketAddr, state: &Arc<LinkState>) {
    wait_while_cut(state);
    let Ok(server) = TcpStream::connect(server) else { return };
    let (Ok(client_too), Ok(server_too)) = (client.try_clone(), server.try_clone()) else { return };
    let kept = [&client, &server].map(TcpStream::try_clone);
    let mut streams = state.streams.lock().unwrap_or_else(PoisonError::into_inner);
    streams.extend(kept.into_iter().flatten());
    drop(streams);
    let shared = Arc::clone(state);
    thread::spawn(move || carry(client_too, server_too, &shared));
    carry(server, client, state);
}

/// Carries octets in one direction until an end closes, and closes both then.
fn carry(mut from: TcpStream, mut to: TcpStream, state: &LinkState) {
    let mut octets = vec![0; CHUNK];
    while let Ok(count @ 1..) = from.read(&mut octets) {
        wait_while_cut(state);
        if to.write_all(&octets[..count]).is_err() {
            break;
        }
    }
    // An end is told of the other's end when the network is there again.
    wait_while_cut(state);
    [from, to].iter().for_each(|stream| _ = stream.shutdown(Shutdown::Both));
}

/// Waits until the network is there, or the test has ended.
fn wait_while_cut(state: &LinkState) {
    while state.is_cut.load(Ordering::Relaxed) && !state.is_gone.load(Ordering::Relaxed) {
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_link_holds_octets_back_until_it_is_healed() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = Link::to(server.local_addr().unwrap());
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, link.port)).unwrap();
        client.write_all(b"a").unwrap();
        let (mut accepted, mut octet) = (server.accept().unwrap().0, [0]);
        accepted.read_exact(&mut octet).unwrap();
        link.cut();
        client.write_all(b"b").unwrap();
        accepted.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        assert!(accepted.read_exact(&mut octet).is_err(), "nothing passes");
        link.heal();
        accepted.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        accepted.read_exact(&mut octet).unwrap();
        assert_eq!(octet, *b"b");
        link.disconnect();
        assert_eq!(client.read(&mut octet).unwrap_or(0), 0, "the connection is closed");
    }
}
