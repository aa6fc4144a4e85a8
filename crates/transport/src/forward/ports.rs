//! Sockets to upstreams: each upstream has several, so that a forger has to guess the port, too.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use zonda_netio::{ClientSocket, Poller, ReceiveBatch, SendBatch, SendCall, UdpOptions};

use super::ask::Dice;
use super::fetch::FetchId;

/// Sockets to one upstream. The kernel gives each a port at random; a forger has to guess it
/// beside the id and the case of the name.
const PORTS_PER_UPSTREAM: usize = 16;
/// Queries of one socket that may wait at once: a fraction of the ids there are.
const WAITING_MAX: usize = 1 << 13;
/// Answers taken by one call.
const RECEIVE_WIDTH: usize = 32;
/// Octets of the longest answer over UDP that is read.
const ANSWER_BYTES: usize = 4096;
/// Octets asked for as a socket's receive buffer.
const BUFFER_BYTES: usize = 1 << 20;

/// A query that waits for its answer.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// What it is for.
    pub fetch: FetchId,
    /// Whom it was sent to, by the place in the group.
    pub upstream: usize,
    /// The message as it was sent.
    pub query: Vec<u8>,
}

/// A socket to one upstream.
struct Port {
    /// The socket.
    socket: ClientSocket,
    /// What was asked over it and not answered, by id.
    waiting: HashMap<u16, Waiting>,
}

/// All sockets of a thread.
pub struct Ports {
    /// By number; closed ones are empty.
    ports: Vec<Option<Port>>,
    /// The numbers of the sockets to each upstream.
    of: HashMap<SocketAddr, Vec<usize>>,
    /// Sends.
    sending: SendBatch,
    /// Receives.
    receiving: ReceiveBatch,
}

impl Ports {
    /// None yet.
    pub fn new() -> Self {
        Self {
            ports: Vec::new(),
            of: HashMap::new(),
            sending: SendBatch::new(SendCall::Single),
            receiving: ReceiveBatch::new(RECEIVE_WIDTH, ANSWER_BYTES),
        }
    }

    /// A port to `upstream` and an id that is free on it, both at random. New sockets are told to
    /// `poller` by their number.
    ///
    /// # Errors
    /// When there is no socket to be had, or too many queries wait on this one.
    pub fn choose(
        &mut self,
        upstream: SocketAddr,
        poller: &Poller,
        dice: &mut Dice,
    ) -> io::Result<(usize, u16)> {
        let roll = dice.roll();
        let numbers = self.of.entry(upstream).or_default();
        let choice = (roll >> 32) as usize % PORTS_PER_UPSTREAM;
        let number = match numbers.get(choice) {
            Some(number) => *number,
            None => {
                let options = UdpOptions {
                    receive_buffer_bytes: BUFFER_BYTES,
                    send_buffer_bytes: BUFFER_BYTES,
                    ..UdpOptions::default()
                };
                let socket = ClientSocket::connect(upstream, None, &options)?;
                let vacant = self.ports.iter().position(Option::is_none);
                let number = vacant.unwrap_or(self.ports.len());
                poller.add(&socket, number)?;
                let port = Some(Port { socket, waiting: HashMap::new() });
                match vacant {
                    Some(number) => self.ports[number] = port,
                    None => self.ports.push(port),
                }
                numbers.push(number);
                number
            }
        };
        let waiting = self.ports[number].as_ref().map_or(0, |port| port.waiting.len());
        if waiting >= WAITING_MAX {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let mut id = roll as u16;
        while self.waiting(number, id).is_some() {
            id = dice.roll() as u16;
        }
        Ok((number, id))
    }

    /// Sends a query with an id that [`choose`](Self::choose) gave, and waits for its answer. What
    /// the kernel refuses is lost, as on any other part of the way.
    pub fn send(&mut self, number: usize, id: u16, waiting: Waiting) {
        let Some(Some(port)) = self.ports.get_mut(number) else { return };
        self.sending.push(&waiting.query);
        self.sending.send(&port.socket);
        port.waiting.insert(id, waiting);
    }

    /// What was asked over a port with an id.
    pub fn waiting(&self, number: usize, id: u16) -> Option<&Waiting> {
        self.ports.get(number)?.as_ref()?.waiting.get(&id)
    }

    /// Waits for it no longer.
    pub fn forget(&mut self, number: usize, id: u16) -> Option<Waiting> {
        self.ports.get_mut(number)?.as_mut()?.waiting.remove(&id)
    }

    /// Takes what a port has received; returns whether there may be more.
    ///
    /// # Errors
    /// When the upstream's host says that nobody listens there.
    pub fn receive(&mut self, number: usize) -> io::Result<bool> {
        match self.ports.get(number) {
            Some(Some(port)) => self.receiving.receive(&port.socket),
            _ => Ok(false),
        }
    }

    /// What [`receive`](Self::receive) has taken.
    pub fn received(&self) -> impl Iterator<Item = &[u8]> {
        self.receiving.iter()
    }

    /// Closes the sockets to all upstreams but those to `keep`.
    pub fn retain(&mut self, keep: impl Fn(SocketAddr) -> bool) {
        let ports = &mut self.ports;
        self.of.retain(|upstream, numbers| {
            let keeps = keep(*upstream);
            if !keeps {
                numbers.iter().for_each(|number| ports[*number] = None);
            }
            keeps
        });
    }
}
