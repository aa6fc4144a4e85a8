//! Ports from which upstreams are asked: each query, or a few that are sent together, leaves from a
//! port that the kernel has just chosen at random.
//!
//! A forger that is not on the way must guess the port of a query beside its id and the case of its
//! name. A port can be found out, though, by an attacker that watches how the machine treats
//! messages to it, and is then worth as much as it is used for. So it takes the queries of one turn
//! of the thread only, a few of them, and is given back to the kernel with the last of their
//! answers. While many queries wait and ports become scarce, a port takes more: 64 queries, of a
//! second, at most.
//!
//! Messages that nothing waits for, or that are not believed, may be guesses. After
//! [`MISSES_MAX`] of them a port counts as known to a forger and is closed; what waits there is
//! asked over TCP. That is as many guesses as a forger has at a port that it knows.
//!
//! The sockets are connected, so that the kernel keeps away what comes from any other address or
//! port, and a stranger cannot tell a port in use from a free one by sending to it. What the
//! network says of a query (ICMP) is not believed, since an attacker can forge it that guesses a
//! port: it ends no query, and brings none forward. So neither when a query is repeated nor when it
//! is answered tells anything of its port (rfc5452#9.2). What the kernel's own ICMP errors tell a
//! stranger is not hidden here; it must be used before the last answer has come.
//!
//! A socket that has given its port back is connected again, which takes less than half of what it
//! takes to open another. The queue of the former port is emptied in between.
//!
//! # Invariants
//! - A port that is open has queries that wait, except between [`Ports::choose`] and
//!   [`Ports::send`].
//! - No port takes queries of two upstreams, more than [`QUERIES_MAX`], or any after
//!   [`LIFE_NANOS`].
//! - There are never more sockets than `ports_max`.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use zonda_netio::{ClientSocket, Poller, ReceiveBatch, UdpOptions};

use zonda_upstream::exchange::Form;
use zonda_upstream::numbers::NumberMap;

use crate::cause::{Cause, FetchId};
use crate::departures::{Departures, Origin};
use crate::group::Manner;
use crate::random::RandomSource;

/// Most queries of one port.
const QUERIES_MAX: u32 = 64;
/// How long a port takes queries, nanoseconds.
const LIFE_NANOS: u64 = 1_000_000_000;
/// Messages beyond one a query, which may be late or come twice, that a port takes without being
/// closed although nothing waits for them. A forger that knows the port has so many guesses at an
/// id of 16 bits and the case of the name; an upstream never sends so many by mistake.
const MISSES_MAX: u32 = 32;
/// Sockets without a port that are kept for the next queries, for each address family.
const IDLE_MAX: usize = 256;
/// Answers taken by one call.
const RECEIVE_WIDTH: usize = 32;
/// Octets of the longest answer over UDP that is read.
const ANSWER_BYTES: usize = 4096;
/// Octets of most queries.
const QUERY_BYTES: usize = 128;
/// Queries for which room is kept.
const ROOM_MAX: usize = 64;
/// Octets asked for as a socket's receive buffer: the longest answers to all queries of a port.
const BUFFER_BYTES: usize = QUERIES_MAX as usize * ANSWER_BYTES;

/// A query that waits for its answer.
#[derive(Debug)]
pub struct WaitingQuery {
    /// The cause for which the query was sent.
    pub cause: Cause,
    /// In which form.
    pub form: Form,
    /// The message as it was sent.
    pub query: Vec<u8>,
}

/// A socket, and the port that it has while queries wait there.
struct Port {
    /// The socket; connected as long as there is an upstream. Shared with queries that leave.
    socket: Arc<ClientSocket>,
    /// Where the port leads; nowhere while the socket is idle.
    upstream: Option<SocketAddr>,
    /// Number that tells this port from those that the socket had before.
    serial: u64,
    /// The turn in which the port was opened.
    turn: u64,
    /// When the port was opened; nanoseconds of the monotonic clock.
    opened_at: u64,
    /// Number of queries that the port was chosen for.
    chosen: u32,
    /// Messages that nothing waited for, or that were not believed.
    missed: u32,
    /// Queries sent from the port and not answered, by ID; few enough to be searched.
    waiting: Vec<(u16, WaitingQuery)>,
}

impl Port {
    /// The place of the query with an id.
    fn place_of(&self, id: u16) -> Option<usize> {
        self.waiting.iter().position(|(waiting, _)| *waiting == id)
    }
}

/// The ports to an upstream.
#[derive(Default)]
struct Open {
    /// How many are open.
    count: usize,
    /// The number of the one that was opened last.
    last: usize,
}

/// All sockets of a thread.
pub struct Ports {
    /// The ports by number; those of closed sockets are empty.
    ports: Vec<Option<Port>>,
    /// The numbers of closed ports.
    vacant: Vec<usize>,
    /// The numbers of idle sockets over IPv4 and over IPv6.
    idle: [Vec<usize>; 2],
    /// The ports to each upstream.
    of: NumberMap<SocketAddr, Open>,
    /// Most sockets at a time, at least 2.
    ports_max: usize,
    /// How often [`begin_turn`](Self::begin_turn) was called.
    turn: u64,
    /// The serial of the next port.
    next_serial: u64,
    /// One of the upstreams was not asked before; perhaps in place of another.
    has_new: bool,
    /// Ports that were closed while queries waited there, since there may be no more.
    closed_early: u64,
    /// What waited there; no more than [`QUERIES_MAX`] for each query of a turn.
    closed: Vec<Cause>,
    /// Errors that the network (ICMP) reported for earlier queries while later ones were sent.
    icmp_errors: u64,
    /// Room of queries that were answered.
    room: Vec<Vec<u8>>,
    /// Queries that are to be sent.
    departures: Departures,
    /// The memory that answers are received into.
    receiving: ReceiveBatch,
}

impl Ports {
    /// None yet, and never more than `ports_max`.
    pub fn new(ports_max: usize) -> Self {
        Self {
            ports: Vec::new(),
            vacant: Vec::new(),
            idle: [Vec::new(), Vec::new()],
            of: NumberMap::default(),
            ports_max: ports_max.max(2),
            turn: 0,
            next_serial: 0,
            has_new: false,
            closed_early: 0,
            closed: Vec::new(),
            icmp_errors: 0,
            room: Vec::new(),
            departures: Departures::default(),
            receiving: ReceiveBatch::new(RECEIVE_WIDTH, ANSWER_BYTES),
        }
    }

    /// Has queries leave from other ports than before.
    pub fn begin_turn(&mut self) {
        self.turn += 1;
    }

    /// A port to `upstream`, and an id that is free on it, both at random: the kernel chooses
    /// ports. Queries of one turn have it in common as far as `manner` says. New sockets are told
    /// to `poller` by their number. [`send`](Self::send) must follow.
    ///
    /// # Errors
    /// When there is no socket or port to be had.
    pub fn choose(
        &mut self,
        (upstream, manner, now): (SocketAddr, Manner, u64),
        poller: &Poller,
        random: &mut RandomSource,
    ) -> io::Result<(usize, u16)> {
        let number = match self.shared(upstream, manner, now) {
            Some(number) => number,
            None => self.open((upstream, now), usize::from(manner.ports_max), poller)?,
        };
        let Some(Some(port)) = self.ports.get_mut(number) else {
            return Err(io::ErrorKind::NotFound.into()); // it was opened before
        };
        port.chosen += 1;
        let mut id = random.next_u16();
        while port.place_of(id).is_some() {
            id = random.next_u16();
        }
        Ok((number, id))
    }

    /// The port that was opened last to an upstream, if it may take one more query.
    fn shared(&self, upstream: SocketAddr, manner: Manner, now: u64) -> Option<usize> {
        let open = self.of.get(&upstream)?;
        let port = self.ports.get(open.last)?.as_ref()?;
        let most = if self.is_scarce(open.count, manner) {
            QUERIES_MAX
        } else if port.turn == self.turn {
            manner.port_queries_max.min(QUERIES_MAX)
        } else {
            0
        };
        let is_young = now.saturating_sub(port.opened_at) < LIFE_NANOS;
        let takes_more = port.upstream == Some(upstream) && is_young && port.chosen < most;
        takes_more.then_some(open.last)
    }

    /// Whether half of the ports are taken that an upstream may have, to which `count` are open, or
    /// half of all.
    fn is_scarce(&self, count: usize, manner: Manner) -> bool {
        2 * count >= usize::from(manner.ports_max) || 2 * self.open_count() >= self.ports_max
    }

    /// How many ports are open.
    pub fn open_count(&self) -> usize {
        self.sockets() - self.idle.iter().map(Vec::len).sum::<usize>()
    }

    /// Returns the number of open sockets.
    fn sockets(&self) -> usize {
        self.ports.len() - self.vacant.len()
    }

    /// Opens a port to an upstream. If there are as many as there may be, the oldest is closed for
    /// it.
    fn open(
        &mut self,
        (upstream, now): (SocketAddr, u64),
        ports_max: usize,
        poller: &Poller,
    ) -> io::Result<usize> {
        let count = self.of.get(&upstream).map_or(0, |open| open.count);
        if count >= ports_max.max(1) {
            self.close_oldest(Some(upstream));
        } else if self.open_count() >= self.ports_max {
            self.close_oldest(None);
        }
        let number = self.connect(upstream, poller)?;
        let (turn, serial) = (self.turn, self.next_serial);
        self.next_serial += 1;
        if let Some(Some(port)) = self.ports.get_mut(number) {
            debug_assert!(port.upstream.is_none() && port.waiting.is_empty());
            (port.upstream, port.serial) = (Some(upstream), serial);
            (port.turn, port.opened_at) = (turn, now);
            (port.chosen, port.missed) = (0, 0);
        }
        let open = self.of.entry(upstream).or_insert_with(|| {
            self.has_new = true;
            Open::default()
        });
        open.count += 1;
        open.last = number;
        Ok(number)
    }

    /// A socket that is connected to an upstream from a new port: an idle one if there is any.
    fn connect(&mut self, upstream: SocketAddr, poller: &Poller) -> io::Result<usize> {
        let family = usize::from(upstream.is_ipv6());
        if let Some(number) = self.idle[family].pop() {
            let port = self.ports.get(number).and_then(Option::as_ref);
            let connected = port.map(|port| port.socket.reconnect(upstream));
            if !matches!(connected, Some(Ok(()))) {
                self.close(number);
            }
            return connected.unwrap_or(Err(io::ErrorKind::NotFound.into())).map(|()| number);
        }
        if self.sockets() >= self.ports_max
            && let Some(number) = self.idle[1 - family].pop()
        {
            self.close(number);
        }
        let options = UdpOptions {
            receive_buffer_bytes: BUFFER_BYTES,
            send_buffer_bytes: BUFFER_BYTES,
            ..UdpOptions::default()
        };
        let socket = Arc::new(ClientSocket::connect(upstream, None, &options)?);
        let number = self.vacant.last().copied().unwrap_or(self.ports.len());
        poller.add(&*socket, number)?;
        let (waiting, serial) = (Vec::new(), 0); // `open` gives it a serial
        let (turn, opened_at, chosen, missed) = (0, 0, 0, 0);
        let port =
            Port { socket, upstream: None, serial, turn, opened_at, chosen, missed, waiting };
        match self.vacant.pop() {
            Some(number) => self.ports[number] = Some(port),
            None => self.ports.push(Some(port)),
        }
        Ok(number)
    }

    /// Closes an idle socket, which is in no list any more.
    fn close(&mut self, number: usize) {
        if self.ports.get_mut(number).and_then(Option::take).is_some() {
            self.vacant.push(number);
        }
    }

    /// Closes the oldest port, or the oldest one to `upstream` if that is given. Nothing waits
    /// there any more; [`take_closed`](Self::take_closed) tells what did.
    fn close_oldest(&mut self, upstream: Option<SocketAddr>) {
        let open = self.ports.iter().enumerate().filter_map(|(number, port)| {
            let port = port.as_ref()?;
            let to = port.upstream.filter(|to| upstream.is_none_or(|upstream| *to == upstream));
            to.map(|_| (port.serial, number))
        });
        let Some((_, number)) = open.min() else { return };
        self.closed_early += 1;
        let causes = self.give_up(number);
        self.closed.extend(causes);
    }

    /// Gives a port back to the kernel if nothing waits there. Its socket becomes idle.
    fn rest(&mut self, number: usize) {
        let Some(Some(port)) = self.ports.get_mut(number) else { return };
        if !port.waiting.is_empty() {
            return;
        }
        let Some(upstream) = port.upstream.take() else { return };
        if let Some(open) = self.of.get_mut(&upstream) {
            open.count = open.count.saturating_sub(1);
        }
        let idle = &mut self.idle[usize::from(upstream.is_ipv6())];
        // A query that has not left yet must not leave for the next upstream.
        let is_ours = Arc::strong_count(&port.socket) == 1;
        if is_ours && idle.len() < IDLE_MAX && port.socket.disconnect().is_ok() {
            idle.push(number);
        } else {
            self.close(number);
        }
    }

    /// Where a port leads.
    pub fn upstream(&self, number: usize) -> Option<SocketAddr> {
        self.ports.get(number)?.as_ref()?.upstream
    }

    /// The serial of a port, which tells it from those that have its number before or after it.
    pub fn serial(&self, number: usize) -> Option<u64> {
        let port = self.ports.get(number)?.as_ref()?;
        port.upstream.map(|_| port.serial)
    }

    /// Waits for the answer to a query with an id that [`choose`](Self::choose) gave. It is among
    /// the [departures](Self::swap_departures) now.
    pub fn send(&mut self, number: usize, id: u16, waiting: WaitingQuery) {
        let Some(Some(port)) = self.ports.get_mut(number) else { return };
        let from = Origin { number, serial: port.serial, id };
        self.departures.push(&port.socket, from, &waiting.query);
        port.waiting.push((id, waiting));
    }

    /// Exchanges the queries that are to be sent for none. They may be sent by another thread.
    pub fn swap_departures(&mut self, departures: &mut Departures) {
        self.icmp_errors += departures.take_icmp_errors();
        std::mem::swap(&mut self.departures, departures);
    }

    /// Waits no longer for the answer to a query that the kernel refused to send; where it was to
    /// go, and what for, unless it was forgotten before.
    pub fn take_refused(&mut self, from: Origin) -> Option<(SocketAddr, Cause)> {
        let Origin { number, serial, id } = from;
        if self.serial(number) != Some(serial) {
            return None;
        }
        let sent = (self.upstream(number)?, self.waiting(number, id)?.cause);
        self.forget(number, id);
        Some(sent)
    }

    /// Room for a query.
    pub fn room(&mut self) -> Vec<u8> {
        self.room.pop().unwrap_or_else(|| Vec::with_capacity(QUERY_BYTES))
    }

    /// Takes back the room of a query that is not waited for any more.
    fn take_back(&mut self, query: Vec<u8>) {
        if self.room.len() < ROOM_MAX && query.capacity() > 0 {
            self.room.push(query);
        }
    }

    /// Returns the query that was sent from a port with an ID.
    pub fn waiting(&self, number: usize, id: u16) -> Option<&WaitingQuery> {
        let port = self.ports.get(number)?.as_ref()?;
        Some(&port.waiting.get(port.place_of(id)?)?.1)
    }

    /// Takes the query that was sent from a port with an ID, with its message, while a received
    /// message is checked against it; [`settle`](Self::settle) or [`wait_on`](Self::wait_on) must
    /// follow. It waits meanwhile.
    pub fn lend(&mut self, number: usize, id: u16) -> Option<WaitingQuery> {
        let port = self.ports.get_mut(number)?.as_mut()?;
        let place = port.place_of(id)?;
        let (_, WaitingQuery { cause, form, query }) = port.waiting.get_mut(place)?;
        Some(WaitingQuery { cause: *cause, form: *form, query: std::mem::take(query) })
    }

    /// Waits no longer for what was lent: it was answered.
    pub fn settle(&mut self, number: usize, id: u16, lent: WaitingQuery) {
        if self.waiting(number, id).is_some_and(|waiting| waiting.cause == lent.cause) {
            self.forget(number, id);
        }
        self.take_back(lent.query);
    }

    /// Waits on for what was lent: what came was not the answer. It may have been forgotten
    /// meanwhile.
    pub fn wait_on(&mut self, number: usize, id: u16, lent: WaitingQuery) {
        let port = self.ports.get_mut(number).and_then(Option::as_mut);
        let place = port.as_ref().and_then(|port| port.place_of(id));
        let waiting = port.zip(place).and_then(|(port, place)| port.waiting.get_mut(place));
        if let Some((_, waiting)) = waiting.filter(|(_, waiting)| waiting.cause == lent.cause) {
            waiting.query = lent.query;
        }
    }

    /// Waits no longer for the answer to a query.
    pub fn forget(&mut self, number: usize, id: u16) {
        let Some(Some(port)) = self.ports.get_mut(number) else { return };
        if let Some(place) = port.place_of(id) {
            let (_, waiting) = port.waiting.swap_remove(place);
            self.take_back(waiting.query);
            self.rest(number);
        }
    }

    /// Waits no longer for the answer to a query of a fetch; the id may be another's by now.
    pub fn forget_fetch(&mut self, number: usize, id: u16, fetch: FetchId) {
        let waits = self.waiting(number, id).map(|waiting| waiting.cause);
        if matches!(waits, Some(Cause::Fetch(attempt)) if attempt.fetch == fetch) {
            self.forget(number, id);
        }
    }

    /// Waits no longer for anything on a port, and gives it back to the kernel; tells for what it
    /// did.
    pub fn give_up(&mut self, number: usize) -> Vec<Cause> {
        let Some(Some(port)) = self.ports.get_mut(number) else { return Vec::new() };
        let causes = port.waiting.drain(..).map(|(_, waiting)| waiting.cause).collect();
        if Arc::strong_count(&port.socket) > 1 {
            self.departures.cancel(number, port.serial);
        }
        self.rest(number);
        causes
    }

    /// Closes a port on which the system receives nothing, and its socket as well.
    pub fn close_broken(&mut self, number: usize) {
        let Some(Some(port)) = self.ports.get_mut(number) else { return };
        let causes = port.waiting.drain(..).map(|(_, waiting)| waiting.cause);
        self.closed.extend(causes);
        if let Some(open) = port.upstream.take().and_then(|upstream| self.of.get_mut(&upstream)) {
            open.count = open.count.saturating_sub(1);
        }
        self.close(number);
    }

    /// Waits no longer for anything.
    pub fn forget_all(&mut self) {
        (0..self.ports.len()).for_each(|number| _ = self.give_up(number));
    }

    /// Takes note of a message on the port with a serial that nothing waits for, or that is not
    /// believed; whether a forger must be taken to know the port.
    #[must_use]
    pub fn miss(&mut self, number: usize, serial: u64) -> bool {
        let port = self.ports.get_mut(number).and_then(Option::as_mut);
        let port = port.filter(|port| port.upstream.is_some() && port.serial == serial);
        port.is_some_and(|port| {
            port.missed += 1;
            port.missed > MISSES_MAX + port.chosen
        })
    }

    /// Takes what a port has received, which is nothing if it is not open; returns whether there
    /// may be more.
    ///
    /// # Errors
    /// What the network says of a query ([`is_icmp`](zonda_netio::is_icmp)), or why the system
    /// receives nothing.
    pub fn receive(&mut self, number: usize) -> io::Result<bool> {
        match self.ports.get(number) {
            Some(Some(port)) => {
                let width = port.waiting.len().clamp(1, RECEIVE_WIDTH);
                self.receiving.receive_at_most(&port.socket, width)
            }
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

    /// How many ports were closed while queries waited there, since this was last asked.
    pub fn take_closed_early(&mut self) -> u64 {
        std::mem::take(&mut self.closed_early)
    }

    /// Returns how many errors the network reported for earlier queries while later ones were sent,
    /// since the last call.
    pub fn take_icmp_errors(&mut self) -> u64 {
        std::mem::take(&mut self.icmp_errors)
    }

    /// Takes note of a query for which the system has no port at the moment:
    /// [`take_closed`](Self::take_closed) tells of it as if its port had been closed.
    pub fn put_off(&mut self, cause: Cause) {
        self.closed.push(cause);
    }

    /// What waited on those ports, since this was last asked: their answers will not be heard.
    #[must_use]
    pub fn take_closed(&mut self) -> Vec<Cause> {
        std::mem::take(&mut self.closed)
    }

    /// Forgets all upstreams but those to `keep`, and those whose answers are still waited for.
    pub fn retain(&mut self, keep: impl Fn(SocketAddr) -> bool) {
        self.of.retain(|upstream, open| open.count > 0 || keep(*upstream));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::cause::Probe;
    use std::collections::HashMap;
    use std::net::UdpSocket;

    /// A server, and what asks it.
    struct Bench {
        server: UdpSocket,
        ports: Ports,
        poller: Poller,
        random: RandomSource,
        manner: Manner,
    }

    /// A query that was sent: the number of its port, its id, and the port.
    type SentFrom = (usize, u16, u16);

    impl Bench {
        /// With so many ports to a server at a time, and queries of a turn on each.
        fn new(ports_max: u16, port_queries_max: u32) -> Self {
            Self {
                server: UdpSocket::bind("127.0.0.1:0").unwrap(),
                ports: Ports::new(1000),
                poller: Poller::new().unwrap(),
                random: RandomSource::new(),
                manner: Manner { udp_bytes: 1232, ports_max, port_queries_max },
            }
        }

        /// Sends a query.
        fn ask(&mut self, now: u64) -> SentFrom {
            let (number, id) = self.send(self.server.local_addr().unwrap(), now);
            (number, id, self.server.recv_from(&mut [0; 2]).unwrap().1.port())
        }

        /// Sends a query to an address; returns the number of its port, and its id.
        fn send(&mut self, address: SocketAddr, now: u64) -> (usize, u16) {
            let to = (address, self.manner, now);
            let (number, id) = self.ports.choose(to, &self.poller, &mut self.random).unwrap();
            let probe = Probe { group: 0, upstream: 0, sent_at: now };
            let form = Form { over_tcp: false, edns: false, mixed_case: false };
            let query = id.to_be_bytes().to_vec();
            let waiting = WaitingQuery { cause: Cause::Probe(probe), form, query };
            self.ports.send(number, id, waiting);
            let mut departures = Departures::default();
            self.ports.swap_departures(&mut departures);
            assert!(departures.send().is_empty());
            self.ports.swap_departures(&mut departures); // tells of errors
            (number, id)
        }

        /// Sends `count` queries in one turn.
        fn ask_together(&mut self, count: usize, now: u64) -> Vec<SentFrom> {
            self.ports.begin_turn();
            (0..count).map(|_| self.ask(now)).collect()
        }

        /// Has these queries answered.
        fn answer(&mut self, sent: &[SentFrom]) {
            sent.iter().for_each(|(number, id, _)| self.ports.forget(*number, *id));
        }
    }

    /// How many queries left from each port.
    fn by_port(sent: &[SentFrom]) -> HashMap<u16, usize> {
        sent.iter().fold(HashMap::new(), |mut counts, (_, _, port)| {
            *counts.entry(*port).or_default() += 1;
            counts
        })
    }

    #[test]
    fn queries_of_a_turn_share_ports_as_far_as_they_may_and_the_next_turn_has_others() {
        for together in [1, 4] {
            let mut asking = Bench::new(1000, together);
            let mut sent = Vec::new();
            for turn in 0..100 {
                let of_turn = asking.ask_together(10, turn);
                assert_eq!(by_port(&of_turn).len(), 10_usize.div_ceil(together as usize));
                asking.answer(&of_turn);
                sent.extend(of_turn);
            }
            let (ports, most) = (by_port(&sent).len(), 1000_usize.div_ceil(together as usize));
            assert!(ports > most * 9 / 10, "{ports} of {most}; some are drawn twice");
            assert_eq!(asking.ports.open_count(), 0);
            assert!(asking.ports.sockets() <= 10, "{} sockets", asking.ports.sockets());
        }
    }

    #[test]
    fn a_port_is_given_back_with_the_last_answer_and_not_before() {
        let mut asking = Bench::new(1000, 2);
        let sent = asking.ask_together(2, 0);
        let number = sent[0].0;
        asking.answer(&sent[..1]);
        assert!(asking.ports.serial(number).is_some());
        asking.answer(&sent[1..]);
        assert_eq!((asking.ports.serial(number), asking.ports.upstream(number)), (None, None));
        let address = ("127.0.0.1", sent[0].2);
        assert!(UdpSocket::bind(address).is_ok(), "the port is free");
    }

    #[test]
    fn where_ports_are_scarce_each_takes_64_queries_of_a_second_and_the_oldest_is_closed() {
        let mut asking = Bench::new(16, 1);
        let mut sent = Vec::new();
        for turn in 0..2000 {
            sent.extend(asking.ask_together(1, turn));
            assert!(asking.ports.open_count() <= 16);
        }
        let counts = by_port(&sent);
        assert_eq!(counts.values().max(), Some(&64));
        assert!(counts.len() >= 8 + 2000 / 64, "{} ports", counts.len());
        let (ports, queries) = (asking.ports.take_closed_early(), asking.ports.take_closed());
        let open = asking.ports.ports.iter().flatten().map(|port| port.waiting.len());
        assert!(ports >= 8);
        assert_eq!(queries.len() + open.sum::<usize>(), 2000, "each waits, or is told of");
        assert!(asking.ports.take_closed().is_empty());
        let last = *sent.last().unwrap();
        assert!(asking.ports.waiting(last.0, last.1).is_some());
        let after_a_second = asking.ask_together(1, 2000 + LIFE_NANOS)[0];
        assert_ne!(after_a_second.2, last.2);
    }

    #[test]
    fn all_sockets_together_have_a_bound() {
        let mut asking = Bench::new(1000, 1);
        asking.ports = Ports::new(10);
        for turn in 0..1000 {
            asking.ask_together(1, turn);
            assert!(asking.ports.sockets() <= 10);
        }
        asking.ports.forget_all();
        assert_eq!(asking.ports.open_count(), 0);
    }

    #[test]
    fn what_came_to_a_port_is_not_heard_at_the_next_one_of_its_socket() {
        let mut asking = Bench::new(1000, 1);
        let first = asking.ask_together(1, 0)[0];
        for _ in 0..10 {
            asking.server.send_to(b"guess", ("127.0.0.1", first.2)).unwrap();
        }
        asking.answer(&[first]);
        let second = asking.ask_together(1, 1)[0];
        assert_eq!((second.0, second.1 != first.1), (first.0, true), "the same socket");
        assert!(!asking.ports.receive(second.0).unwrap());
        assert_eq!(asking.ports.received(0), None);
    }

    #[test]
    fn errors_of_the_network_that_are_told_when_a_query_is_sent_are_counted_and_end_none() {
        let mut asking = Bench::new(1000, 4);
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        asking.ports.begin_turn();
        let sent: Vec<_> = (0..4).map(|_| asking.send(gone, 0)).collect();
        assert!(sent.iter().all(|(number, _)| *number == sent[0].0), "all left from one port");
        assert_eq!(asking.ports.take_icmp_errors(), 3, "the first query was told of none");
        assert!(sent.iter().all(|(number, id)| asking.ports.waiting(*number, *id).is_some()));
        assert_eq!(asking.ports.take_icmp_errors(), 0);
    }

    #[test]
    fn a_forger_has_32_guesses_at_a_port_beyond_what_may_come_twice() {
        let mut asking = Bench::new(1000, 4);
        let sent = asking.ask_together(4, 0);
        let number = sent[0].0;
        let serial = asking.ports.serial(number).unwrap();
        let guesses = (0..1000).take_while(|_| !asking.ports.miss(number, serial)).count();
        assert_eq!(guesses as u32, 4 + MISSES_MAX);
        assert_eq!(asking.ports.give_up(number).len(), 4);
        let next = asking.ask_together(1, 1)[0];
        assert_eq!(next.0, number);
        assert!((0..1000).all(|_| !asking.ports.miss(number, serial)), "that port is no more");
    }

    #[test]
    fn what_is_lent_waits_on_unless_it_is_settled_or_forgotten() {
        let mut asking = Bench::new(1000, 1);
        let (number, id, _) = asking.ask_together(1, 0)[0];
        let lent = asking.ports.lend(number, id).unwrap();
        assert!(asking.ports.waiting(number, id).is_some(), "it waits meanwhile");
        asking.ports.wait_on(number, id, lent);
        assert_eq!(asking.ports.waiting(number, id).unwrap().query, id.to_be_bytes());
        let lent = asking.ports.lend(number, id).unwrap();
        asking.ports.forget(number, id);
        asking.ports.wait_on(number, id, lent);
        assert!(asking.ports.waiting(number, id).is_none());
        let (number, id, _) = asking.ask_together(1, 1)[0];
        let lent = asking.ports.lend(number, id).unwrap();
        asking.ports.settle(number, id, lent);
        assert_eq!(asking.ports.open_count(), 0);
    }
}
