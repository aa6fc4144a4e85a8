//! Queries on their way to upstreams, which are sent while the forwarder's state is unlocked.

use std::sync::Arc;

use zonda_netio::{ClientSocket, is_exhaustion};

/// Most octets for which room is kept from one turn to the next; a burst needs more.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// The port and the id that a query is sent from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The number of the port.
    pub number: usize,
    /// The serial of the port.
    pub serial: u64,
    /// The id of the query.
    pub id: u16,
}

/// A query that the kernel has refused to send.
#[derive(Clone, Copy, Debug)]
pub struct RefusedQuery {
    /// The port or connection from which the query was to be sent.
    pub from: Origin,
    /// The system had no memory for it, which says nothing of the upstream.
    pub is_exhaustion: bool,
}

/// A query that is to be sent.
struct Departure {
    /// The socket; none if the query is not to be sent any more.
    socket: Option<Arc<ClientSocket>>,
    /// Where the query's octets end in [`Departures::octets`].
    end: usize,
    /// The port or connection from which the query is sent.
    from: Origin,
}

/// Queries that are to be sent.
#[derive(Default)]
pub struct Departures {
    /// The octets of all queries, one after the other.
    octets: Vec<u8>,
    /// The queries to be sent.
    queries: Vec<Departure>,
    /// Errors that the network (ICMP) told of earlier queries when these were sent.
    icmp_errors: u64,
}

impl Departures {
    /// Adds a query.
    pub fn push(&mut self, socket: &Arc<ClientSocket>, from: Origin, query: &[u8]) {
        self.octets.extend_from_slice(query);
        let (socket, end) = (Some(Arc::clone(socket)), self.octets.len());
        self.queries.push(Departure { socket, end, from });
    }

    /// Takes out the queries of a port, whose socket they have open no longer.
    pub fn cancel(&mut self, number: usize, serial: u64) {
        let is_of_port = |from: Origin| (from.number, from.serial) == (number, serial);
        for query in self.queries.iter_mut().filter(|query| is_of_port(query.from)) {
            query.socket = None;
        }
    }

    /// Sends all queries; returns those that the kernel refuses.
    #[must_use]
    pub fn send(&mut self) -> Vec<RefusedQuery> {
        let (mut start, mut refused) = (0, Vec::new());
        for Departure { socket, end, from } in self.queries.drain(..) {
            match socket.map(|socket| socket.send(&self.octets[start..end])) {
                Some(Ok(icmp_errors)) => self.icmp_errors += u64::from(icmp_errors),
                Some(Err(error)) => {
                    refused.push(RefusedQuery { from, is_exhaustion: is_exhaustion(&error) });
                }
                None => {}
            }
            start = end;
        }
        self.octets.clear();
        if self.octets.capacity() > KEPT_BYTES_MAX {
            (self.octets, self.queries) = (Vec::new(), Vec::new());
        }
        refused
    }

    /// The errors of the network, once.
    pub fn take_icmp_errors(&mut self) -> u64 {
        std::mem::take(&mut self.icmp_errors)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;
    use zonda_netio::UdpOptions;

    /// A server, and a socket that is connected to it.
    fn pair() -> (UdpSocket, Arc<ClientSocket>) {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        server.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let to = server.local_addr().unwrap();
        (server, Arc::new(ClientSocket::connect(to, None, &UdpOptions::default()).unwrap()))
    }

    /// What the server has received.
    fn received(server: &UdpSocket) -> Vec<Vec<u8>> {
        let mut buffer = [0; 64];
        std::iter::from_fn(|| server.recv(&mut buffer).ok().map(|len| buffer[..len].to_vec()))
            .collect()
    }

    #[test]
    fn queries_of_a_port_that_was_closed_are_not_sent_and_leave_its_socket() {
        let (server, socket) = pair();
        let (closed, open) = (Origin { number: 0, serial: 7, id: 1 }, 8);
        let mut departures = Departures::default();
        departures.push(&socket, closed, b"closed");
        departures.push(&socket, Origin { serial: open, ..closed }, b"open");
        departures.cancel(0, 7);
        assert_eq!(Arc::strong_count(&socket), 2);
        assert!(departures.send().is_empty());
        assert_eq!(received(&server), [b"open"]);
        assert_eq!(Arc::strong_count(&socket), 1);
    }

    #[test]
    fn memory_of_a_burst_is_not_held() {
        let (_server, socket) = pair();
        let mut departures = Departures::default();
        for id in 0..2000 {
            departures.push(&socket, Origin { number: 0, serial: 0, id }, &[0; 64]);
        }
        let _ = departures.send();
        assert_eq!(departures.octets.capacity(), 0);
        departures.push(&socket, Origin { number: 0, serial: 0, id: 0 }, &[0; 64]);
        let _ = departures.send();
        assert!(departures.octets.capacity() > 0);
    }
}
