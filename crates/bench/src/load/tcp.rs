//! Clients over TCP: a connection each, on which queries follow one another without waiting.
//!
//! A connection that the server closes is opened again for the next query; what waited on it is
//! lost. Deliberately absent: asking again what was lost.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::time::Duration;

use zonda_netio::{Poller, tcp};

use super::{LoadError, Plan};

/// Octets before each message that say how long it is (rfc1035#4.2.2).
const LENGTH_OCTETS: usize = 2;

/// The longest message and its length: what a connection has room for, so that a full buffer
/// begins with a whole message.
const BUFFER_OCTETS: usize = LENGTH_OCTETS + u16::MAX as usize;

/// Octets that may wait for a server that does not read. More would be sent too late anyway.
const UNSENT_MAX: usize = 1 << 16;

/// How long a client stays away from a server that closed a connection without a reply on it.
const REFUSED_NANOS: u64 = 100_000_000;

/// A thread's clients.
pub struct TcpClients {
    /// Address of the server.
    server: SocketAddr,
    /// Octets of each socket's buffers.
    buffer_octets: usize,
    /// Connections, one for each client.
    connections: Vec<Connection>,
    /// Queries that were not given to a client yet, each behind its length.
    gathered: Vec<u8>,
    /// Client that was read last.
    last: usize,
    /// Number of times that a connection was opened again.
    reconnects: u64,
}

/// A client's connection.
struct Connection {
    /// Local address of the connection, if it matters.
    local: Option<SocketAddr>,
    /// Stream of the connection; none from its end until it is needed again.
    stream: Option<TcpStream>,
    /// Whether the server has closed the connection, and that was not reported yet.
    is_newly_closed: bool,
    /// Whether a reply has come since it was opened.
    has_replied: bool,
    /// Moment from which it may be opened again; nanoseconds since the run began.
    open_after_nanos: u64,
    /// Octets that the kernel had no room for.
    unsent: Vec<u8>,
    /// [`BUFFER_OCTETS`] of room for replies.
    buffer: Box<[u8]>,
    /// Octets in `buffer`.
    filled: usize,
    /// Octets at the start of the buffer that are whole messages with their lengths.
    whole: usize,
}

impl TcpClients {
    /// Connects a thread's clients, of which `numbers` are those among all clients, and has
    /// `poller` know them by their places among the thread's.
    pub fn connect(plan: &Plan, numbers: Range<usize>, poller: &Poller) -> Result<Self, LoadError> {
        let mut clients = Self {
            server: plan.server,
            buffer_octets: plan.buffer_octets,
            connections: Vec::with_capacity(numbers.len()),
            gathered: Vec::new(),
            last: 0,
            reconnects: 0,
        };
        for (place, number) in numbers.enumerate() {
            clients.connections.push(Connection::new(plan.local_of(number)));
            let opened = clients.open(place, Some(plan.timeout), poller);
            opened.map_err(|error| LoadError::Connect(plan.server, error))?;
        }
        Ok(clients)
    }

    /// Opens a connection; without a limit of time the kernel goes on with it.
    fn open(&mut self, place: usize, wait: Option<Duration>, poller: &Poller) -> io::Result<()> {
        let connection = &mut self.connections[place];
        let stream = tcp::connect(self.server, connection.local, self.buffer_octets, wait)?;
        poller.add_for_both(&stream, place)?;
        connection.stream = Some(stream);
        Ok(())
    }

    /// Begins to open the connection of the client at `place` again, if it was closed.
    pub fn reconnect(&mut self, place: usize, now_nanos: u64, poller: &Poller) {
        let connection = &mut self.connections[place];
        if connection.stream.is_none() && now_nanos >= connection.open_after_nanos {
            connection.open_after_nanos = now_nanos + REFUSED_NANOS;
            self.reconnects += u64::from(self.open(place, None, poller).is_ok());
        }
    }

    /// Whether the client at `place` can take queries.
    pub fn is_open(&self, place: usize) -> bool {
        let connection = &self.connections[place];
        connection.stream.is_some() && connection.unsent.len() < UNSENT_MAX
    }

    /// Gathers a query.
    pub fn push(&mut self, query: &[u8], id: u16) {
        // Written by this program: a header, a question, perhaps an OPT record.
        let len = query.len() as u16;
        self.gathered.extend_from_slice(&len.to_be_bytes());
        self.gathered.extend_from_slice(&id.to_be_bytes());
        self.gathered.extend_from_slice(&query[2..]);
    }

    /// Sends what was gathered from the client at `place`.
    pub fn send(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        connection.unsent.append(&mut self.gathered);
        connection.flush();
    }

    /// Takes what the client at `place` has received; returns whether there may be more.
    pub fn receive(&mut self, place: usize, now_nanos: u64) -> bool {
        self.last = place;
        let connection = &mut self.connections[place];
        connection.flush();
        connection.receive(now_nanos)
    }

    /// Whether the server has closed the connection of the client at `place`; true once.
    pub fn has_closed(&mut self, place: usize) -> bool {
        std::mem::take(&mut self.connections[place].is_newly_closed)
    }

    /// Returns what [`Self::receive`] has taken.
    pub fn replies(&self) -> impl Iterator<Item = &[u8]> {
        let connection = &self.connections[self.last];
        Messages(&connection.buffer[..connection.whole])
    }

    /// Returns how often a connection was opened again.
    pub fn reconnects(&self) -> u64 {
        self.reconnects
    }
}

impl Connection {
    /// Makes a client whose connection is not open.
    fn new(local: Option<SocketAddr>) -> Self {
        Self {
            local,
            stream: None,
            is_newly_closed: false,
            has_replied: false,
            open_after_nanos: 0,
            unsent: Vec::new(),
            buffer: vec![0; BUFFER_OCTETS].into(),
            filled: 0,
            whole: 0,
        }
    }

    /// Sends as much as the kernel takes. A failure is reported by the next receive.
    fn flush(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let mut sent = 0;
        while sent < self.unsent.len() {
            match stream.write(&self.unsent[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.unsent.drain(..sent);
    }

    /// Reads once, behind what is left of the last reading.
    fn receive(&mut self, now_nanos: u64) -> bool {
        self.buffer.copy_within(self.whole..self.filled, 0);
        self.filled -= self.whole;
        self.whole = 0;
        let Some(stream) = &mut self.stream else { return false };
        match stream.read(&mut self.buffer[self.filled..]) {
            Ok(count) if count > 0 => self.filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == ErrorKind::Interrupted => return true,
            Ok(_) | Err(_) => {
                self.close(now_nanos);
                return false;
            }
        }
        let mut messages = Messages(&self.buffer[..self.filled]);
        messages.by_ref().for_each(drop);
        self.whole = self.filled - messages.0.len();
        self.has_replied |= self.whole > 0;
        true
    }

    /// Forgets a connection that the server has closed.
    fn close(&mut self, now_nanos: u64) {
        self.open_after_nanos = if self.has_replied { 0 } else { now_nanos + REFUSED_NANOS };
        (self.stream, self.is_newly_closed, self.has_replied) = (None, true, false);
        self.unsent.clear();
        self.filled = 0;
    }
}

/// Whole messages, each behind its length; what is left begins with one that is not whole.
struct Messages<'m>(&'m [u8]);

impl<'m> Iterator for Messages<'m> {
    type Item = &'m [u8];

    fn next(&mut self) -> Option<&'m [u8]> {
        let (length, rest) = self.0.split_first_chunk::<LENGTH_OCTETS>()?;
        let (message, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        self.0 = rest;
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_messages_are_taken() {
        let octets = b"\0\x02ab\0\0\0\x03abc\0\x05ab";
        let mut messages = Messages(octets);
        let found: Vec<&[u8]> = messages.by_ref().collect();
        assert_eq!(found, [&b"ab"[..], b"", b"abc"]);
        assert_eq!(messages.0, b"\0\x05ab");
        assert_eq!(Messages(b"\0").next(), None);
    }
}
