//! Sockets to upstreams: each upstream has several, so that a forger has to guess the port, too.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use zonda_netio::{ClientSocket, Poller, ReceiveBatch, SendBatch, SendCall, UdpOptions};

use zonda_upstream::exchange::Form;

use super::dice::Dice;
use super::fetch::FetchId;

/// Queries of one socket that may wait at once: a fraction of the ids there are.
const WAITING_MAX: usize = 1 << 13;
/// Answers taken by one call.
const RECEIVE_WIDTH: usize = 32;
/// Octets of the longest answer over UDP that is read.
const ANSWER_BYTES: usize = 4096;
/// Octets asked for as a socket's receive buffer.
const BUFFER_BYTES: usize = 1 << 20;

/// A query that waits for its answer.
#[derive(Debug)]
pub struct Waiting {
    /// What it was sent for.
    pub cause: Cause,
    /// In which form.
    pub form: Form,
    /// The message as it was sent.
    pub query: Vec<u8>,
}

/// What a query is sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// For a fetch.
    Fetch(Attempt),
    /// To see whether an upstream is back.
    Probe(Probe),
    /// To see whether questions to it come back to this server.
    Check(Probe),
}

/// One query of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The fetch.
    pub fetch: FetchId,
    /// Its index among the queries of the fetch.
    pub index: u8,
    /// Whom it was sent to, by the place in the group.
    pub upstream: u8,
}

/// A query that is sent for nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probe {
    /// The number of the group.
    pub group: u32,
    /// Whom it was sent to, by the place in the group.
    pub upstream: usize,
    /// When; nanoseconds of the monotonic clock.
    pub sent_at: u64,
}

/// A socket to one upstream.
struct Port {
    /// The socket.
    socket: ClientSocket,
    /// Where it leads.
    upstream: SocketAddr,
    /// What was asked over it and not answered, by id.
    waiting: HashMap<u16, Waiting>,
}

/// All sockets of a thread.
pub struct Ports {
    /// By number; closed ones are empty.
    ports: Vec<Option<Port>>,
    /// The numbers of the sockets to each upstream.
    of: HashMap<SocketAddr, Vec<usize>>,
    /// One of them was not asked before; perhaps in place of another.
    has_new: bool,
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
            has_new: false,
            sending: SendBatch::new(SendCall::Single),
            receiving: ReceiveBatch::new(RECEIVE_WIDTH, ANSWER_BYTES),
        }
    }

    /// One of `ports_max` ports to `upstream`, at least one, and an id that is free on it, both at
    /// random. The kernel gives each socket a port at random; a forger has to guess it beside the
    /// id and the case of the name. New sockets are told to `poller` by their number.
    ///
    /// # Errors
    /// When there is no socket to be had, or too many queries wait on this one.
    pub fn choose(
        &mut self,
        (upstream, ports_max): (SocketAddr, u16),
        poller: &Poller,
        dice: &mut Dice,
    ) -> io::Result<(usize, u16)> {
        let roll = dice.roll();
        let numbers = self.of.entry(upstream).or_insert_with(|| {
            self.has_new = true;
            Vec::new()
        });
        let choice = (roll >> 32) as usize % usize::from(ports_max.max(1));
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
                let port = Some(Port { socket, upstream, waiting: HashMap::new() });
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

    /// Where a port leads.
    pub fn upstream(&self, number: usize) -> Option<SocketAddr> {
        Some(self.ports.get(number)?.as_ref()?.upstream)
    }

    /// Sends a query with an id that [`choose`](Self::choose) gave, and waits for its answer; false
    /// if the kernel refuses to send it.
    #[must_use]
    pub fn send(&mut self, number: usize, id: u16, waiting: Waiting) -> bool {
        let Some(Some(port)) = self.ports.get_mut(number) else { return false };
        self.sending.push(&waiting.query);
        let sent = self.sending.send(&port.socket) == 0;
        if sent {
            port.waiting.insert(id, waiting);
        }
        sent
    }

    /// What was asked over a port with an id.
    pub fn waiting(&self, number: usize, id: u16) -> Option<&Waiting> {
        self.ports.get(number)?.as_ref()?.waiting.get(&id)
    }

    /// Waits for it no longer.
    pub fn forget(&mut self, number: usize, id: u16) -> Option<Waiting> {
        self.ports.get_mut(number)?.as_mut()?.waiting.remove(&id)
    }

    /// Waits no longer for the answer to a query of a fetch; the id may be another's by now.
    pub fn forget_fetch(&mut self, number: usize, id: u16, fetch: FetchId) {
        let waits = self.waiting(number, id).map(|waiting| waiting.cause);
        if matches!(waits, Some(Cause::Fetch(attempt)) if attempt.fetch == fetch) {
            self.forget(number, id);
        }
    }

    /// Waits for it again: what came was not the answer.
    pub fn remember(&mut self, number: usize, id: u16, waiting: Waiting) {
        if let Some(Some(port)) = self.ports.get_mut(number) {
            port.waiting.insert(id, waiting);
        }
    }

    /// Waits no longer for anything on a port, to which nobody listens; tells for what it did.
    pub fn forget_port(&mut self, number: usize) -> Vec<Cause> {
        let Some(Some(port)) = self.ports.get_mut(number) else { return Vec::new() };
        port.waiting.drain().map(|(_, waiting)| waiting.cause).collect()
    }

    /// Waits no longer for anything.
    pub fn forget_all(&mut self) {
        self.ports.iter_mut().flatten().for_each(|port| port.waiting.clear());
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

    /// Whether sockets to an upstream were opened, for the first time since this was last asked.
    pub fn take_new(&mut self) -> bool {
        std::mem::take(&mut self.has_new)
    }

    /// Closes the sockets to all upstreams but those to `keep`, and those whose answers are still
    /// waited for.
    pub fn retain(&mut self, keep: impl Fn(SocketAddr) -> bool) {
        let ports = &mut self.ports;
        self.of.retain(|upstream, numbers| {
            let waits = |number: &usize| {
                ports[*number].as_ref().is_some_and(|port| !port.waiting.is_empty())
            };
            let keeps = keep(*upstream) || numbers.iter().any(waits);
            if !keeps {
                numbers.iter().for_each(|number| ports[*number] = None);
            }
            keeps
        });
    }
}
