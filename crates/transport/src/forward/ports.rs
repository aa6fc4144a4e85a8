//! Sockets to upstreams: each upstream has several, so that a forger has to guess the port, too.

use std::io;
use std::net::SocketAddr;

use zonda_netio::{ClientSocket, Poller, ReceiveBatch, SendBatch, SendCall, UdpOptions};

use zonda_upstream::exchange::Form;
use zonda_upstream::numbers::NumberMap;

use super::dice::Dice;
use super::fetch::FetchId;

/// Queries after which a socket gives its place to a new one, and for how long it has it at most,
/// nanoseconds: whoever has found out its port must begin anew.
const RENEW_QUERIES: u32 = 4096;
/// See [`RENEW_QUERIES`].
const RENEW_NANOS: u64 = 60_000_000_000;
/// Sockets that wait for their last answers; while there are so many, none gives its place to
/// another.
const RETIRED_MAX: usize = 256;
/// Queries of one socket that may wait at once: a fraction of the ids there are.
const WAITING_MAX: usize = 1 << 13;
/// Answers taken by one call.
const RECEIVE_WIDTH: usize = 32;
/// Queries of one turn that leave from the same port at most, so that their answers can be taken
/// by one call. A forger who guesses one port has as good a chance as before.
const TOGETHER_MAX: usize = RECEIVE_WIDTH;
/// Octets of the longest answer over UDP that is read.
const ANSWER_BYTES: usize = 4096;
/// Octets of most queries.
const QUERY_BYTES: usize = 128;
/// Queries for which room is kept.
const ROOM_MAX: usize = 64;
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
    /// When it was opened.
    opened_at: u64,
    /// Queries that it was chosen for.
    chosen: u32,
    /// What was asked over it and not answered, by id.
    waiting: NumberMap<u16, Waiting>,
}

/// The sockets to an upstream.
#[derive(Default)]
struct Choice {
    /// The numbers of those that are chosen.
    numbers: Vec<usize>,
    /// The turn in which one was chosen last.
    turn: u64,
    /// Its place among them.
    place: usize,
    /// Queries that it is still good for.
    left: usize,
}

/// All sockets of a thread.
pub struct Ports {
    /// By number; closed ones are empty.
    ports: Vec<Option<Port>>,
    /// Those to each upstream.
    of: NumberMap<SocketAddr, Choice>,
    /// How often [`begin_turn`](Self::begin_turn) was called.
    turn: u64,
    /// Those that are not chosen any more, until their last answers have come.
    retired: Vec<usize>,
    /// One of them was not asked before; perhaps in place of another.
    has_new: bool,
    /// Room of queries that were answered.
    room: Vec<Vec<u8>>,
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
            of: NumberMap::default(),
            turn: 0,
            retired: Vec::new(),
            has_new: false,
            room: Vec::new(),
            sending: SendBatch::new(SendCall::Single),
            receiving: ReceiveBatch::new(RECEIVE_WIDTH, ANSWER_BYTES),
        }
    }

    /// Has other ports chosen than before.
    pub fn begin_turn(&mut self) {
        self.turn += 1;
    }

    /// One of `ports_max` ports to `upstream`, at least one, and an id that is free on it, both at
    /// random; some queries of one turn have the port in common. The kernel gives each socket a
    /// port at random; a forger has to guess it beside the id and the case of the name. New sockets
    /// are told to `poller` by their number.
    ///
    /// # Errors
    /// When there is no socket to be had, or too many queries wait on this one.
    pub fn choose(
        &mut self,
        (upstream, ports_max, now): (SocketAddr, u16, u64),
        poller: &Poller,
        dice: &mut Dice,
    ) -> io::Result<(usize, u16)> {
        let roll = dice.roll();
        let choice = self.of.entry(upstream).or_insert_with(|| {
            self.has_new = true;
            Choice::default()
        });
        if choice.left == 0 || choice.turn != self.turn {
            let place = (roll >> 32) as usize % usize::from(ports_max.max(1));
            choice.place = place.min(choice.numbers.len()); // where the next is put that is opened
            (choice.left, choice.turn) = (TOGETHER_MAX, self.turn);
        }
        choice.left -= 1;
        let place = choice.place;
        let known = choice.numbers.get(place).copied();
        let number = match known.filter(|number| !self.is_due(*number, now)) {
            Some(number) => number,
            None => self.replace((upstream, now), place, poller)?,
        };
        let Some(Some(port)) = self.ports.get_mut(number) else {
            return Err(io::ErrorKind::NotFound.into()); // it was opened before
        };
        if port.waiting.len() >= WAITING_MAX {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        port.chosen += 1;
        let mut id = roll as u16;
        while port.waiting.contains_key(&id) {
            id = dice.roll() as u16;
        }
        Ok((number, id))
    }

    /// Whether a port shall give its place to a new one.
    fn is_due(&self, number: usize, now: u64) -> bool {
        let Some(Some(port)) = self.ports.get(number) else { return false };
        let is_old = now.saturating_sub(port.opened_at) >= RENEW_NANOS && port.chosen > 0;
        (is_old || port.chosen >= RENEW_QUERIES) && self.retired.len() < RETIRED_MAX
    }

    /// Opens a port to an upstream, at a place among those that are chosen. The one that was there
    /// is closed once all its answers have come.
    fn replace(
        &mut self,
        (upstream, now): (SocketAddr, u64),
        place: usize,
        poller: &Poller,
    ) -> io::Result<usize> {
        let options = UdpOptions {
            receive_buffer_bytes: BUFFER_BYTES,
            send_buffer_bytes: BUFFER_BYTES,
            ..UdpOptions::default()
        };
        let socket = ClientSocket::connect(upstream, None, &options)?;
        let vacant = self.ports.iter().position(Option::is_none);
        let number = vacant.unwrap_or(self.ports.len());
        poller.add(&socket, number)?;
        let waiting = NumberMap::default();
        let port = Some(Port { socket, upstream, opened_at: now, chosen: 0, waiting });
        match vacant {
            Some(number) => self.ports[number] = port,
            None => self.ports.push(port),
        }
        let numbers = &mut self.of.entry(upstream).or_default().numbers;
        match numbers.get_mut(place) {
            Some(place) => self.retired.push(std::mem::replace(place, number)),
            None => numbers.push(number),
        }
        self.close_retired();
        Ok(number)
    }

    /// Closes those for which nothing is waited any more.
    fn close_retired(&mut self) {
        let ports = &mut self.ports;
        self.retired.retain(|&number| {
            let waits = ports[number].as_ref().is_some_and(|port| !port.waiting.is_empty());
            if !waits {
                ports[number] = None;
            }
            waits
        });
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

    /// Room for a query.
    pub fn room(&mut self) -> Vec<u8> {
        self.room.pop().unwrap_or_else(|| Vec::with_capacity(QUERY_BYTES))
    }

    /// Takes back the room of a query that was answered.
    pub fn take_back(&mut self, query: Vec<u8>) {
        if self.room.len() < ROOM_MAX {
            self.room.push(query);
        }
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
            _ => {
                self.receiving.clear();
                Ok(false)
            }
        }
    }

    /// The message at a place among those that [`receive`](Self::receive) has taken.
    pub fn received(&self, place: usize) -> Option<&[u8]> {
        self.receiving.get(place)
    }

    /// Whether sockets to an upstream were opened, for the first time since this was last asked.
    pub fn take_new(&mut self) -> bool {
        std::mem::take(&mut self.has_new)
    }

    /// Closes the sockets to all upstreams but those to `keep`, and those whose answers are still
    /// waited for.
    pub fn retain(&mut self, keep: impl Fn(SocketAddr) -> bool) {
        let ports = &mut self.ports;
        self.of.retain(|upstream, Choice { numbers, .. }| {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::collections::HashSet;
    use std::net::UdpSocket;

    /// Sockets to one upstream.
    const PORTS: usize = 16;

    /// A server, and what asks it.
    struct Asking {
        server: UdpSocket,
        ports: Ports,
        poller: Poller,
        dice: Dice,
    }

    impl Asking {
        fn new() -> Self {
            let server = UdpSocket::bind("127.0.0.1:0").unwrap();
            let (ports, poller, dice) = (Ports::new(), Poller::new().unwrap(), Dice::new());
            Self { server, ports, poller, dice }
        }

        /// Sends so many queries; returns the ports that they left from.
        fn ask(&mut self, count: usize, now: u64, is_answered: bool) -> HashSet<u16> {
            let upstream = self.server.local_addr().unwrap();
            let one = |_| {
                self.ports.begin_turn();
                let chosen =
                    self.ports.choose((upstream, PORTS as u16, now), &self.poller, &mut self.dice);
                let (number, id) = chosen.unwrap();
                let probe = Probe { group: 0, upstream: 0, sent_at: now };
                let form = Form { over_tcp: false, edns: false, mixed_case: false };
                let query = id.to_be_bytes().to_vec();
                let waiting = Waiting { cause: Cause::Probe(probe), form, query };
                assert!(self.ports.send(number, id, waiting));
                if is_answered {
                    assert!(self.ports.forget(number, id).is_some());
                }
                self.server.recv_from(&mut [0; 2]).unwrap().1.port()
            };
            (0..count).map(one).collect()
        }
    }

    #[test]
    fn queries_leave_from_other_ports_after_a_minute_and_after_some_thousands() {
        let mut asking = Asking::new();
        let first = asking.ask(2000, 0, true);
        assert_eq!(first.len(), PORTS);
        let second = asking.ask(2000, RENEW_NANOS, true);
        assert_eq!((second.len(), first.intersection(&second).count()), (PORTS, 0));
        let many = asking.ask(3 * PORTS * RENEW_QUERIES as usize, RENEW_NANOS, true);
        assert!(many.len() > 2 * PORTS, "{}", many.len());
        let open = asking.ports.ports.iter().flatten().count();
        assert!(open <= PORTS + 1, "{open} are open");
    }

    #[test]
    fn some_queries_of_a_turn_leave_from_one_port_and_the_next_from_another() {
        let Asking { server, mut ports, poller, mut dice } = Asking::new();
        let upstream = server.local_addr().unwrap();
        let mut choose = |ports: &mut Ports| {
            ports.choose((upstream, PORTS as u16, 0), &poller, &mut dice).unwrap().0
        };
        let mut seen = HashSet::new();
        for _ in 0..100 {
            ports.begin_turn();
            let together: HashSet<usize> = (0..TOGETHER_MAX).map(|_| choose(&mut ports)).collect();
            assert_eq!(together.len(), 1);
            seen.extend(together);
        }
        assert!(seen.len() > PORTS / 2, "{} of {PORTS}", seen.len());
        ports.begin_turn();
        let many: HashSet<usize> = (0..100 * TOGETHER_MAX).map(|_| choose(&mut ports)).collect();
        assert!(many.len() > PORTS / 2, "{} of {PORTS}", many.len());
    }

    #[test]
    fn a_port_stays_open_until_its_last_answer_has_come() {
        let mut asking = Asking::new();
        asking.ask(200, 0, false);
        asking.ask(200, RENEW_NANOS, true);
        let open = |ports: &Ports| ports.ports.iter().flatten().count();
        assert_eq!(open(&asking.ports), 2 * PORTS);
        let waiting = asking.ports.ports.iter().flatten().map(|port| port.waiting.len());
        assert_eq!(waiting.sum::<usize>(), 200);
        asking.ports.forget_all();
        asking.ask(200, 2 * RENEW_NANOS, true);
        assert!(open(&asking.ports) <= PORTS + 1);
    }
}
