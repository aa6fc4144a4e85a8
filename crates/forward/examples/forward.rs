//! Answers queries that an upstream is asked for, for `cargo xtask instructions` to count.
//!
//! `forward --list` prints the workloads; `forward --workload NAME --queries N` answers N queries,
//! one after the other. What is counted is the whole way in this process: an engine that defers
//! the query or answers it from the cache, the state of a forwarder thread, the engine that resumes
//! the query, and an upstream that does as little as it can. Two threads take turns, so that two
//! runs spend nearly the same instructions.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use zonda_cache::{Cache, Policy};
use zonda_client::{Connections, Protocol};
use zonda_deferral::{Clock, Deferrals, Deferred, ReplyTo, keep_octets};
use zonda_engine::zones::{Forward, Source, ZoneEntry, ZoneTable};
use zonda_engine::{Engine, Outcome, Peer, Snapshot, Transport};
use zonda_forward::{
    ForwarderConfig, ForwarderThread, Forwarders, Group, Groups, Inbox, Loops, Manner, Server,
    StateLog,
};
use zonda_wire::{Name, Type};
use zonda_zone::HashSeed;

/// The workloads: names that the cache has never seen, and a hundred that it has.
const WORKLOADS: [&str; 2] = ["forward-cold", "forward-cached"];
/// Octets of a buffer: the largest reply over UDP.
const BUFFER_BYTES: usize = 1232;
/// Octets of the cache: no answer of a run is evicted.
const CACHE_BYTES: usize = 64 << 20;
/// Where the zones' queries are forwarded, by number.
const GROUP: u32 = 7;
/// How long a query waits for the upstream, nanoseconds: longer than any run takes for one.
const PATIENCE_NANOS: u64 = 60_000_000_000;
/// An answer section of one address, for the name of the question, with a TTL of an hour.
const ANSWER: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\x0e\x10\0\x04\xc0\0\x02\x01";
/// An OPT record without options.
const OPT: &[u8] = b"\0\0\x29\x04\xd0\0\0\0\0\0\0";

/// Answers one query to the upstream, which it waits for, with one address.
fn answer_as_upstream(socket: &UdpSocket, buffer: &mut [u8; BUFFER_BYTES]) {
    let (_, client) = socket.recv_from(buffer).expect("the forwarder thread asks");
    let labels = buffer[12..].iter().position(|octet| *octet == 0).expect("a query has a name");
    let mut end = 12 + labels + 5;
    buffer[2..12].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 1]);
    for part in [ANSWER, OPT] {
        buffer[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    }
    socket.send_to(&buffer[..end], client).expect("loopback takes the answer");
}

/// A server that forwards all names, and a client of it.
struct Bench {
    engine: Engine,
    deferrals: Deferrals,
    clock: Clock,
    sender: mpsc::Sender<Vec<u8>>,
    replies: mpsc::Receiver<Vec<u8>>,
    upstream: UdpSocket,
    buffer: [u8; BUFFER_BYTES],
}

impl Bench {
    /// Starts the upstream and a forwarder thread.
    fn start() -> Self {
        let cache = Arc::new(Cache::new(CACHE_BYTES));
        let upstream = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a port");
        let address = upstream.local_addr().expect("the socket is bound");
        let connections = Connections::new(Protocol::Tcp, vec![address]);
        let (name, over_udp, is_trusted) = ("upstream".into(), true, false);
        let group = Group {
            options: Arc::default(),
            apex: Name::root(),
            is_alias_resolver: false,
            listener: 0,
            view: None,
            servers: vec![Server { name, over_udp, is_trusted, connections }],
            // However busy the machine is, no query is repeated: the upstream answers each once.
            settings: zonda_upstream::Settings {
                repeat_nanos_min: PATIENCE_NANOS,
                patience_nanos: PATIENCE_NANOS,
                fetch_nanos: PATIENCE_NANOS,
                extra_percent: 0,
                ..zonda_upstream::Settings::default()
            },
            manner: Manner { udp_bytes: 1232, ports_max: 1000, port_queries_max: 1 },
            policy: Policy::default(),
            cache: Arc::clone(&cache),
            loops: Loops::new(1, 1_000_000_000),
            state_log: Arc::new(StateLog::new(1)),
            private_names: None,
        };
        let by_number = [(GROUP, Arc::new(group))].into();
        let groups = Arc::new(ArcSwap::from_pointee(Groups { by_number, ..Groups::default() }));
        let forward = Forward {
            number: GROUP,
            cache,
            options: None,
            nxdomain_cut: true,
            overlays: Vec::new(),
        };
        let source = Source::Forward(Arc::new(forward));
        let entry = ZoneEntry::new(Name::root(), source, None, 0);
        let zones = ZoneTable::new(vec![Arc::new(entry)], HashSeed(1));
        let snapshot = Snapshot::of(zones);
        let snapshot = Arc::new(ArcSwap::from_pointee(snapshot));
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("the system has descriptors left");
        let inbox = Inbox::new().expect("the system has descriptors left");
        let (clock, forwarders) = (Clock::start(), Forwarders::new(vec![Arc::clone(&inbox)]));
        let config = ForwarderConfig {
            name: "forward".to_owned(),
            inbox,
            forwarders: forwarders.clone(),
            snapshot: Arc::clone(&snapshot),
            groups,
            clock,
            runtime: runtime.handle().clone(),
            ports_max: 1000,
        };
        let resuming = Arc::clone(&snapshot);
        let make = move || Engine::new(Arc::clone(&resuming), Arc::default());
        ForwarderThread::spawn(config, make, mpsc::channel(1).0).expect("a thread is left");
        let overflow = Engine::new(Arc::clone(&snapshot), Arc::default());
        let (sender, replies) = mpsc::channel(1);
        Self {
            engine: Engine::new(snapshot, Arc::default()),
            deferrals: Deferrals::new(vec![Arc::new(forwarders)], clock, overflow),
            clock,
            sender,
            replies,
            upstream,
            buffer: [0; BUFFER_BYTES],
        }
    }

    /// Has a query answered; returns whether it had to wait for the upstream.
    fn ask(&mut self, query: &[u8]) -> bool {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 5353));
        let peer = Peer::new(address, Transport::Udp, 0);
        self.buffer[..query.len()].copy_from_slice(query);
        let now = self.clock.now();
        match self.engine.answer(now, &peer, &mut self.buffer, query.len()) {
            Outcome::Deferred(mut deferral) => {
                let query = keep_octets(query, &mut deferral);
                let reply_to = ReplyTo::Connection(self.sender.clone());
                self.deferrals.submit(&mut vec![Deferred { query, peer, deferral, reply_to }]);
                answer_as_upstream(&self.upstream, &mut self.buffer);
                let reply = self.replies.blocking_recv().unwrap_or_default();
                assert_eq!(reply[6..8], [0, 1], "the upstream's address is in the reply");
                true
            }
            Outcome::Reply(_) => {
                assert_eq!(self.buffer[6..8], [0, 1], "the cached address is in the reply");
                false
            }
            Outcome::Silence => panic!("every query has a reply"),
        }
    }
}

/// The octets of a query for the addresses of `hNNNNNNNN.example.`, with recursion desired.
fn query() -> Vec<u8> {
    let name: Name = "h00000000.example".parse().expect("the name is valid");
    let header = [0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    [&header, name.as_wire(), &Type::A.0.to_be_bytes(), &[0, 1]].concat()
}

/// Makes a query one for the name of this number, at little cost.
fn set_number(query: &mut [u8], mut number: usize) {
    for digit in query[14..22].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--list"] => WORKLOADS.iter().for_each(|workload| println!("{workload}")),
        ["--workload", name, "--queries", count] => {
            let count: usize = count.parse().expect("--queries takes a number");
            let mut bench = Bench::start();
            let is_cached = name == WORKLOADS[1];
            let names = if is_cached { 100 } else { count };
            let mut query = query();
            for number in 0..count {
                set_number(&mut query, number % names);
                let waited = bench.ask(&query);
                assert_eq!(waited, number < names, "names are fetched once");
            }
        }
        _ => panic!("usage: forward --list | --workload NAME --queries N"),
    }
}
