//! A relay that loses and delays: the way to an upstream that is not on this machine.
//!
//! Stands between a forwarder and its upstream. A query that is lost is lost for good; a reply
//! waits for a time drawn between two bounds. UDP only: suites ask for nothing that would not fit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use zonda_netio::process::pin_thread;

use crate::random::Numbers;

/// Room for one datagram.
const DATAGRAM_OCTETS: usize = 4096;
/// How long a thread waits before it looks whether it shall stop.
const PATIENCE: Duration = Duration::from_millis(100);

/// What the way does to datagrams.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// Share of queries that are lost; 0–1.
    pub loss: f64,
    /// Bounds of the time from query to reply, beyond what the upstream takes.
    pub delay: RangeInclusive<Duration>,
    /// Seed of the draws: the same seed loses the same queries.
    pub seed: u64,
}

/// A relay at work. Dropping it stops its threads, within a fraction of a second.
pub struct Relay {
    /// Address for the forwarder's queries.
    address: SocketAddr,
    /// Flag that stops the threads.
    stop: Arc<AtomicBool>,
}

impl Relay {
    /// Starts a relay to `upstream` on a free port of 127.0.0.1, with its threads on these CPUs in
    /// turn; anywhere without any.
    pub fn start(upstream: SocketAddr, way: &Way, cpus: &[usize]) -> io::Result<Self> {
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        far.connect(upstream)?;
        near.set_read_timeout(Some(PATIENCE))?;
        far.set_read_timeout(Some(PATIENCE))?;
        let address = near.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = channel();
        let there = QueryPath {
            near: near.try_clone()?,
            far: far.try_clone()?,
            asked: Arc::new(Mutex::new(vec![None; 1 << 16])),
            loss: way.loss,
            draw: Numbers::new(way.seed),
        };
        let back = ReplyPath {
            far,
            asked: Arc::clone(&there.asked),
            delay: way.delay.clone(),
            draw: Numbers::new(way.seed.wrapping_add(1)),
            sender,
        };
        let mut cpus = cpus.iter().copied().cycle();
        let stopped = Arc::clone(&stop);
        spawn(cpus.next(), move || there.run(&stopped))?;
        let stopped = Arc::clone(&stop);
        spawn(cpus.next(), move || back.run(&stopped))?;
        // Ends when `back` has, which holds the sender.
        spawn(cpus.next(), move || deliver(&near, &receiver))?;
        Ok(Self { address, stop })
    }

    /// Returns where the forwarder shall ask.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Starts a thread that stays on a CPU.
fn spawn(cpu: Option<usize>, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let pinned = cpu.map_or(Ok(()), |cpu| pin_thread(&[cpu]));
        let is_pinned = pinned.is_ok();
        let _ = sender.send(pinned); // the receiver waits for it
        if is_pinned {
            work();
        }
    });
    receiver.recv().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

/// The client and its id for each id that the relay uses towards the upstream. An id is
/// used again after 65,536 queries; a reply that took longer goes to the wrong client, as an
/// unexpected one.
type QueryTable = Arc<Mutex<Vec<Option<(SocketAddr, [u8; 2])>>>>;

/// The direction from forwarder to upstream.
struct QueryPath {
    /// Towards the forwarder.
    near: UdpSocket,
    /// Towards the upstream.
    far: UdpSocket,
    /// Clients by id; see [`QueryTable`].
    asked: QueryTable,
    /// Share of lost datagrams; see [`Way::loss`].
    loss: f64,
    /// Decides which query is lost.
    draw: Numbers,
}

impl QueryPath {
    /// Passes queries on until it is stopped.
    fn run(mut self, stop: &AtomicBool) {
        let mut buffer = [0; DATAGRAM_OCTETS];
        let mut next_id: u16 = 0;
        while !stop.load(Ordering::Relaxed) {
            let Ok((len, client)) = self.near.recv_from(&mut buffer) else { continue };
            if len < 2 || self.draw.fraction() < self.loss {
                continue;
            }
            let id = [buffer[0], buffer[1]];
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked[usize::from(next_id)] = Some((client, id));
            drop(asked);
            buffer[..2].copy_from_slice(&next_id.to_be_bytes());
            next_id = next_id.wrapping_add(1);
            // A query that the kernel does not take is one more that is lost.
            let _ = self.far.send(&buffer[..len]);
        }
    }
}

/// The direction from upstream to forwarder, up to where replies wait.
struct ReplyPath {
    /// Towards the upstream.
    far: UdpSocket,
    /// Clients by id; see [`QueryTable`].
    asked: QueryTable,
    /// Delay of replies; see [`Way::delay`].
    delay: RangeInclusive<Duration>,
    /// Decides how long a reply waits.
    draw: Numbers,
    /// Channel to the thread that delays.
    sender: Sender<DelayedReply>,
}

impl ReplyPath {
    /// Takes replies until it is stopped.
    fn run(mut self, stop: &AtomicBool) {
        let mut buffer = [0; DATAGRAM_OCTETS];
        let (shortest, longest) = (*self.delay.start(), *self.delay.end());
        while !stop.load(Ordering::Relaxed) {
            let Ok(len) = self.far.recv(&mut buffer) else { continue };
            let [high, low, ..] = buffer[..len] else { continue };
            let slot = usize::from(u16::from_be_bytes([high, low]));
            let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner)[slot].take();
            let Some((client, id)) = asked else { continue };
            buffer[..2].copy_from_slice(&id);
            let wait = shortest + longest.saturating_sub(shortest).mul_f64(self.draw.fraction());
            let due = Instant::now() + wait;
            let waiting = DelayedReply { due: Reverse(due), client, reply: buffer[..len].to_vec() };
            if self.sender.send(waiting).is_err() {
                return;
            }
        }
    }
}

/// A reply on its way. The one that is due first is the greatest, as a heap wants it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct DelayedReply {
    /// Moment at which the reply arrives.
    due: Reverse<Instant>,
    /// Client that gets the reply.
    client: SocketAddr,
    /// The message with the client's id.
    reply: Vec<u8>,
}

/// Sends replies when they are due, until no sender is left.
fn deliver(near: &UdpSocket, receiver: &Receiver<DelayedReply>) {
    let mut heap = BinaryHeap::new();
    loop {
        let now = Instant::now();
        while let Some(DelayedReply { due: Reverse(due), client, reply }) = heap.peek()
            && *due <= now
        {
            let _ = near.send_to(reply, client);
            heap.pop();
        }
        let until = heap.peek().map_or(PATIENCE, |first: &DelayedReply| first.due.0 - now);
        match receiver.recv_timeout(until) {
            Ok(waiting) => heap.push(waiting),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::reflector::Reflector;

    /// Starts a relay before a reflector; returns both addresses' holder and a client of it.
    fn relayed(way: &Way) -> (Relay, UdpSocket) {
        let reflector = Reflector::bind("127.0.0.1:0".parse().unwrap(), 1).unwrap();
        let relay = Relay::start(reflector.address(), way, &[]).unwrap();
        thread::spawn(|| reflector.run());
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(relay.address()).unwrap();
        client.set_read_timeout(Some(Duration::from_millis(150))).unwrap();
        (relay, client)
    }

    /// `a. A IN` with this id.
    fn query(id: u16) -> Vec<u8> {
        [&id.to_be_bytes()[..], b"\x01\x00\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01"].concat()
    }

    #[test]
    fn a_reply_waits_for_its_time_and_bears_the_client_s_id() {
        let delay = Duration::from_millis(20)..=Duration::from_millis(30);
        let (_relay, client) = relayed(&Way { loss: 0.0, delay, seed: 1 });
        let began = Instant::now();
        client.send(&query(0xbeef)).unwrap();
        let mut reply = [0; 512];
        client.recv(&mut reply).unwrap();
        assert_eq!(reply[..2], [0xbe, 0xef]);
        assert!((20..200).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    }

    #[test]
    fn the_share_that_is_lost_is_the_share_that_was_asked_for() {
        let way = Way { loss: 0.25, delay: Duration::ZERO..=Duration::ZERO, seed: 7 };
        let (_relay, client) = relayed(&way);
        let mut arrived = 0;
        for id in 0..1000 {
            client.send(&query(id)).unwrap();
            // Few at a time, so that no socket buffer loses any.
            if id % 50 == 49 {
                let mut reply = [0; 512];
                while client.recv(&mut reply).is_ok() {
                    arrived += 1;
                }
            }
        }
        // What a busy machine has kept back.
        client.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        while client.recv(&mut [0; 512]).is_ok() {
            arrived += 1;
        }
        assert!((700..800).contains(&arrived), "{arrived} of 1000 arrived");
    }
}
