//! An upstream that does what its script says, right or wrong, over real sockets.
//!
//! ```
//! use zonda_testkit::upstream::{Reply, Upstream, always, say, wait, when};
//!
//! let upstream = Upstream::start([
//!     when(|asked| asked.one_of(10)).then([]), // a tenth is lost
//!     when(|asked| asked.tcp).then([say(Reply::address(7))]),
//!     always().then([wait(5..10), say(Reply::address(66).truncated())]),
//! ]);
//! assert_eq!(upstream.asked(), 0);
//! upstream.now_does([]); // the first rule that applies decides; no rule is silence
//! ```

mod reply;
mod script;

pub use reply::{Record, Reply};
pub use script::{
    Gate, ReceivedQuery, Rule, Step, always, forge, hang_up, say, tell, trickle, until, wait, when,
};

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::generate::Random;
use crate::process::free_port;

/// Another address, from which answers are forged.
const STRANGER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 66);
/// How long the sender of delayed messages sleeps when there are none.
const IDLE: Duration = Duration::from_secs(3600);

/// A running upstream. It ends when dropped: its ports are closed then.
pub struct Upstream {
    /// Address of the upstream.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What all threads of an upstream see.
struct Shared {
    script: RwLock<Arc<[Rule]>>,
    /// All received queries.
    log: Mutex<Vec<ReceivedQuery>>,
    /// Connections that are open.
    connections: AtomicUsize,
    /// Messages sent from addresses that were not queried.
    forged: AtomicUsize,
    stop: AtomicBool,
}

impl Upstream {
    /// Starts one over UDP and TCP.
    ///
    /// # Panics
    /// When there is no port to be had.
    pub fn start(script: impl Into<Vec<Rule>>) -> Self {
        let script = script.into();
        let free = (0..100).find_map(|_| Self::bind(free_port(), &script).ok());
        free.expect("one of a hundred ports is free over UDP and TCP")
    }

    /// Starts one at ::1, which forges nothing.
    ///
    /// # Panics
    /// When there is no port to be had, or no IPv6.
    pub fn start_over_ipv6(script: impl Into<Vec<Rule>>) -> Self {
        let script = script.into();
        let bind = |_| {
            let tcp = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).ok()?;
            let udp = UdpSocket::bind(tcp.local_addr().ok()?).ok()?;
            Self::run(udp, Some(tcp), script.clone()).ok()
        };
        (0..100).find_map(bind).expect("one of a hundred ports of ::1 is free")
    }

    /// Starts an upstream at the address of a former one.
    ///
    /// # Errors
    /// When another process listens there.
    pub fn start_at(address: SocketAddr, script: impl Into<Vec<Rule>>) -> io::Result<Self> {
        Self::bind(address.port(), &script.into())
    }

    /// Starts one that refuses TCP.
    ///
    /// # Panics
    /// When there is no port to be had.
    pub fn without_tcp(script: impl Into<Vec<Rule>>) -> Self {
        let script = script.into();
        let run = |_| {
            Self::run(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?, None, script.clone()).ok()
        };
        (0..100).find_map(run).expect("one of a hundred ports is free")
    }

    /// Binds an upstream to a port of 127.0.0.1.
    fn bind(port: u16, script: &[Rule]) -> io::Result<Self> {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let udp = UdpSocket::bind(tcp.local_addr()?)?;
        Self::run(udp, Some(tcp), script.to_vec())
    }

    /// Starts the threads.
    fn run(udp: UdpSocket, tcp: Option<TcpListener>, script: Vec<Rule>) -> io::Result<Self> {
        let address = udp.local_addr()?;
        let shared = Arc::new(Shared {
            script: RwLock::new(script.into()),
            log: Mutex::default(),
            connections: AtomicUsize::new(0),
            forged: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
        });
        let (mut threads, (sender, due)) = (Vec::new(), channel());
        let datagrams = Datagrams::new(Arc::new(udp), sender)?;
        threads.push(thread::spawn(move || send_when_due(&due)));
        let own = Arc::clone(&shared);
        threads.push(thread::spawn(move || datagrams.serve(&own)));
        if let Some(tcp) = tcp {
            let own = Arc::clone(&shared);
            threads.push(thread::spawn(move || accept(&tcp, &own)));
        }
        Ok(Self { address, shared, threads })
    }

    /// Follows another script from now on.
    pub fn now_does(&self, script: impl Into<Vec<Rule>>) {
        let mut current = self.shared.script.write().unwrap_or_else(PoisonError::into_inner);
        *current = script.into().into();
    }

    /// Returns how many queries came.
    pub fn asked(&self) -> usize {
        self.count(|_| true)
    }

    /// Returns how many queries came of which something is so.
    pub fn count(&self, so: impl Fn(&ReceivedQuery) -> bool) -> usize {
        let log = self.shared.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter().filter(|asked| so(asked)).count()
    }

    /// Returns the queries that came, the first one first.
    pub fn log(&self) -> Vec<ReceivedQuery> {
        self.shared.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns how many messages were sent from another address or port.
    pub fn forged(&self) -> usize {
        self.shared.forged.load(Ordering::Relaxed)
    }

    /// Returns how many connections are open.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // A thread that waits for queries is woken, and sees that it shall end.
        if let Ok(socket) = UdpSocket::bind((self.address.ip(), 0)) {
            let _ = socket.send_to(b"end", self.address);
        }
        drop(TcpStream::connect(self.address));
        self.threads.drain(..).for_each(|thread| _ = thread.join());
    }
}

impl Shared {
    /// Notes what was asked, and returns it with what is to be done; nothing if it is no query.
    fn hear(
        &self,
        octets: &[u8],
        client: SocketAddr,
        tcp: bool,
    ) -> Option<(ReceivedQuery, Vec<Step>)> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let chance = Random::new(log.len() as u64).bits();
        let asked = ReceivedQuery::read(octets, log.len(), (client, tcp), chance)?;
        log.push(asked.clone());
        drop(log);
        let script = Arc::clone(&self.script.read().unwrap_or_else(PoisonError::into_inner));
        let rule = script.iter().find(|rule| (rule.applies)(&asked));
        let steps = rule.map(|rule| rule.steps.clone()).unwrap_or_default();
        Some((asked, steps))
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Returns how long a step waits, for a query with this random number.
fn pause(millis: &std::ops::Range<u64>, chance: u64) -> Duration {
    Duration::from_millis(millis.start + chance / 100 % (millis.end - millis.start).max(1))
}

/// A message that is sent later.
struct ScheduledMessage {
    at: Instant,
    /// Socket that sends the message.
    from: Arc<UdpSocket>,
    message: Vec<u8>,
    to: SocketAddr,
}

impl PartialEq for ScheduledMessage {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for ScheduledMessage {}

impl PartialOrd for ScheduledMessage {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ScheduledMessage {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// Sends messages when their time has come, until no sender is left.
fn send_when_due(coming: &Receiver<ScheduledMessage>) {
    let mut queue = BinaryHeap::new();
    loop {
        let now = Instant::now();
        while queue.peek().is_some_and(|Reverse(ScheduledMessage { at, .. })| *at <= now) {
            if let Some(Reverse(due)) = queue.pop() {
                let _ = due.from.send_to(&due.message, due.to);
            }
        }
        let next =
            queue.peek().map_or(IDLE, |Reverse(due): &Reverse<ScheduledMessage>| due.at - now);
        match coming.recv_timeout(next) {
            Ok(due) => queue.push(Reverse(due)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The side of an upstream that speaks UDP.
#[derive(Clone)]
struct Datagrams {
    own: Arc<UdpSocket>,
    /// Sockets of other addresses, for forged messages.
    strangers: Vec<Arc<UdpSocket>>,
    /// Takes what is sent later.
    later: Sender<ScheduledMessage>,
}

impl Datagrams {
    fn new(own: Arc<UdpSocket>, later: Sender<ScheduledMessage>) -> io::Result<Self> {
        let address = own.local_addr()?;
        let strangers = match address.ip() {
            IpAddr::V4(own) => vec![(own, 0), (STRANGER, address.port())],
            IpAddr::V6(_) => Vec::new(),
        };
        let bound = strangers.into_iter().map(|address| Ok(Arc::new(UdpSocket::bind(address)?)));
        Ok(Self { own, strangers: bound.collect::<io::Result<_>>()?, later })
    }

    /// Does what the script says about each query.
    fn serve(self, shared: &Arc<Shared>) {
        let mut buffer = [0; 4096];
        while !shared.is_stopped() {
            let Ok((length, client)) = self.own.recv_from(&mut buffer) else { continue };
            let Some((asked, steps)) = shared.hear(&buffer[..length], client, false) else {
                continue;
            };
            self.follow(asked, steps.into_iter(), client, shared);
        }
    }

    /// Takes one step after the other.
    fn follow(
        &self,
        asked: ReceivedQuery,
        mut steps: std::vec::IntoIter<Step>,
        client: SocketAddr,
        shared: &Arc<Shared>,
    ) {
        let mut at = Instant::now();
        while let Some(step) = steps.next() {
            match step {
                Step::Wait(millis) => at += pause(&millis, asked.chance),
                Step::Until(gate) => {
                    let (own, shared) = (self.clone(), Arc::clone(shared));
                    thread::spawn(move || {
                        if gate.pass(|| shared.is_stopped()) {
                            own.follow(asked, steps, client, &shared);
                        }
                    });
                    return;
                }
                Step::Say(make) | Step::Trickle(make, _) => {
                    self.send(&self.own, make(&asked).write(&asked), client, at);
                }
                Step::Forge(make) => {
                    let message = make(&asked).write(&asked);
                    shared.forged.fetch_add(self.strangers.len(), Ordering::Relaxed);
                    let sockets = self.strangers.iter();
                    sockets.for_each(|it| self.send(it, message.clone(), client, at));
                }
                Step::HangUp => {}
            }
        }
    }

    /// Sends a message, now or later.
    fn send(&self, from: &Arc<UdpSocket>, message: Vec<u8>, to: SocketAddr, at: Instant) {
        if at <= Instant::now() {
            let _ = from.send_to(&message, to);
        } else {
            let _ = self.later.send(ScheduledMessage { at, from: Arc::clone(from), message, to });
        }
    }
}

/// Takes connections, each into a thread of its own.
fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.is_stopped() {
            return;
        }
        let (Ok(stream), shared) = (stream, Arc::clone(shared)) else { continue };
        thread::spawn(move || {
            shared.connections.fetch_add(1, Ordering::Relaxed);
            let _ = converse(stream, &shared); // the client may have gone
            shared.connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Does what the script says about each query of a connection, one after the other.
fn converse(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let client = stream.peer_addr()?;
    while !shared.is_stopped() {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut query)?;
        let Some((asked, steps)) = shared.hear(&query, client, true) else { return Ok(()) };
        for step in steps {
            match step {
                Step::Wait(millis) => thread::sleep(pause(&millis, asked.chance)),
                Step::Until(gate) if gate.pass(|| shared.is_stopped()) => {}
                Step::Until(_) => return Ok(()),
                Step::Say(make) => stream.write_all(&framed(&make(&asked).write(&asked)))?,
                Step::Trickle(make, pause) => {
                    for octet in framed(&make(&asked).write(&asked)) {
                        thread::sleep(pause);
                        stream.write_all(&[octet])?;
                    }
                }
                Step::Forge(_) => {}
                Step::HangUp => return Ok(()),
            }
        }
    }
    Ok(())
}

/// Returns a message with its length in front (rfc1035#4.2.2).
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u16::try_from(message.len()).expect("a message of a test has sixteen bits");
    [&length.to_be_bytes(), message].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Question, ask};

    #[test]
    fn the_first_rule_that_applies_decides_and_a_script_can_be_changed() {
        let upstream = Upstream::start([
            when(|asked| asked.tcp).then([trickle(Reply::address(2), Duration::ZERO)]),
            when(|asked| asked.name == "forged.example.").then([
                forge(Reply::address(66)),
                wait(20..21),
                tell(|asked| Reply::address(asked.record_type as u8)),
            ]),
            always().then([say(Reply::address(3).truncated())]),
        ]);
        let data = |question| ask(upstream.address, &question).unwrap().answer[0].data.text.clone();
        assert_eq!(data(Question::new("a.example", "A").over_tcp()), "192.0.2.2");
        assert_eq!(data(Question::new("Forged.example", "A")), "192.0.2.1");
        assert!(ask(upstream.address, &Question::new("a.example", "A")).unwrap().truncated());
        upstream.now_does([always().then([say(Reply::rcode(5))])]);
        let reply = ask(upstream.address, &Question::new("a.example", "A")).unwrap();
        assert_eq!(reply.rcode_text(), "REFUSED");
        assert_eq!((upstream.asked(), upstream.count(|asked| asked.mixed_case)), (4, 1));
        let gate = Gate::default();
        upstream.now_does([
            when(|asked| asked.name == "other.example.").then([say(Reply::address(5))]),
            always().then([until(&gate), say(Reply::address(4))]),
        ]);
        let address = upstream.address;
        thread::scope(|scope| {
            let kept = scope.spawn(|| data(Question::new("a.example", "A")));
            while upstream.asked() < 5 {
                thread::yield_now();
            }
            assert_eq!(data(Question::new("other.example", "A")), "192.0.2.5");
            assert!(!kept.is_finished());
            gate.open();
            assert_eq!(kept.join().unwrap(), "192.0.2.4");
        });
        drop(upstream);
        assert!(Upstream::start_at(address, []).is_ok(), "its ports are free again");
    }
}
