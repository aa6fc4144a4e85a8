//! Answers queries in-process, for `cargo xtask instructions` to count.
//!
//! `answer --list` prints the workloads; `answer --workload NAME --queries N` answers N queries.
//! Nothing depends on chance: the hash seed and the order of the names are fixed.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use zonda_engine::code::{Handler, HandlerQuery, HandlerReply, Handlers, Route, Stage};
use zonda_engine::zones::{Source, ZoneEntry, ZoneTable};
use zonda_engine::{Batch, Deferral, Engine, Message, Now, Peer, Snapshot, Transport};
use zonda_wire::{Name, Rcode, Section, Type};
use zonda_zone::file::{Options, read_text};
use zonda_zone::{HashSeed, build};

/// Messages that are answered together, as a busy UDP worker receives them.
const BATCH: usize = 32;
/// Octets of a buffer: the largest reply over UDP.
const BUFFER_BYTES: usize = 1232;
/// Names in the zone of the workloads that ask at random: more than hot answers can be kept for.
const NAMES: usize = 50_000;

/// A path through the engine, and the questions that take it.
struct Workload {
    /// The name of the workload, as `--list` prints it.
    name: &'static str,
    /// The zones with data: the name and the master file of each.
    zones: fn() -> Vec<(String, String)>,
    /// The number of zones without data beside them.
    zones_beside: u32,
    /// The user's code in front of the zones.
    code: fn() -> Option<Handlers>,
    /// The questions, asked one after the other: name and type.
    questions: fn() -> Vec<(String, Type)>,
}

/// No code of the user's.
const NO_CODE: fn() -> Option<Handlers> = || None;

/// What is counted, one entry a path through the engine.
const WORKLOADS: &[Workload] = &[
    Workload {
        name: "hot",
        zones: small_zones,
        zones_beside: 0,
        code: NO_CODE,
        questions: || (0..100).map(|n| (format!("example{n}.com."), Type::A)).collect(),
    },
    Workload {
        name: "hot-beside-a-million",
        zones: small_zones,
        zones_beside: 1_000_000,
        code: NO_CODE,
        questions: || (0..100).map(|n| (format!("example{n}.com."), Type::A)).collect(),
    },
    Workload {
        name: "refused",
        zones: small_zones,
        zones_beside: 0,
        code: NO_CODE,
        questions: || (0..100).map(|n| (format!("elsewhere{n}.com."), Type::A)).collect(),
    },
    Workload {
        name: "random-name",
        zones: one_zone,
        zones_beside: 0,
        code: NO_CODE,
        questions: || shuffled(|n| (format!("h{n}.big.test."), Type::A)),
    },
    Workload {
        name: "no-such-name",
        zones: one_zone,
        zones_beside: 0,
        code: NO_CODE,
        questions: || shuffled(|n| (format!("nx{n}.big.test."), Type::A)),
    },
    Workload {
        name: "referral",
        zones: one_zone,
        zones_beside: 0,
        code: NO_CODE,
        questions: || shuffled(|n| (format!("www.d{}.big.test.", n % 1000), Type::A)),
    },
    Workload {
        name: "wildcard",
        zones: one_zone,
        zones_beside: 0,
        code: NO_CODE,
        questions: || shuffled(|n| (format!("n{n}.wild.big.test."), Type::A)),
    },
    Workload {
        name: "middleware",
        zones: small_zones,
        zones_beside: 0,
        code: || Some(Handlers::new(Vec::new(), vec![Arc::new(Looks)], None, SEED)),
        questions: || (0..100).map(|n| (format!("example{n}.com."), Type::A)).collect(),
    },
    Workload {
        name: "handler",
        zones: small_zones,
        zones_beside: 0,
        code: || Some(Handlers::new(vec![route()], Vec::new(), None, SEED)),
        questions: || shuffled(|n| (format!("n{n}.code.test."), Type::A)),
    },
];

/// The seed of all hashes.
const SEED: HashSeed = HashSeed(1);

/// Middleware that looks at queries and replies, and leaves both as they are.
struct Looks;

impl Stage for Looks {
    fn after(&self, _: &HandlerQuery<'_>, reply: &mut HandlerReply) {
        assert_eq!(reply.rcode, Rcode::NOERROR, "the zones of this file have all names");
    }
}

/// A route to code in the worker that answers each name with an address.
fn route() -> Route<Handler> {
    let answer = |_: &HandlerQuery<'_>, reply: &mut HandlerReply| {
        let record = reply.push(Section::Answer, &[], (Type::A, 60), &[192, 0, 2, 4]);
        assert!(record.is_ok(), "a message has room for one record");
        reply.reply(Rcode::NOERROR);
    };
    let pattern = "*.code.test".parse().expect("the pattern is valid");
    Route { pattern, handler: Handler::Here(Arc::new(answer)) }
}

/// SOA and NS of every zone.
const HEAD: &str = "$TTL 3600\n@ SOA ns1 host 1 7200 3600 1209600 300\n@ NS ns1\nns1 A 192.0.2.1\n";

/// A hundred zones of one address each.
fn small_zones() -> Vec<(String, String)> {
    (0..100).map(|n| (format!("example{n}.com."), format!("{HEAD}@ A 192.0.2.2\n"))).collect()
}

/// One zone with many names, some delegations and a wildcard.
fn one_zone() -> Vec<(String, String)> {
    let hosts = (0..NAMES).map(|n| format!("h{n} A 10.0.{}.{}\n", n / 256 % 256, n % 256));
    let cuts = (0..1000).map(|n| format!("d{n} NS ns.d{n}\nns.d{n} A 10.1.0.1\n"));
    let text = hosts.chain(cuts).collect::<String>();
    vec![("big.test.".to_owned(), format!("{HEAD}*.wild A 192.0.2.3\n{text}"))]
}

/// Every number below [`NAMES`] once, none near the one before it.
fn shuffled(question: fn(usize) -> (String, Type)) -> Vec<(String, Type)> {
    // 30011 is prime and does not divide NAMES, so its multiples meet every number.
    (0..NAMES).map(|n| question(n * 30_011 % NAMES)).collect()
}

/// The snapshot that holds a workload's zones.
fn snapshot(workload: &Workload) -> Snapshot {
    let seed = SEED;
    let entry = |(number, (name, text)): (u32, (String, String))| {
        let apex = name_of(&name);
        let options = Options::default();
        let (records, diagnostics) = read_text(text.as_bytes(), Path::new(&name), &apex, &options);
        assert!(!diagnostics.has_errors(), "the zones of this file have no mistakes");
        let zone = build(&apex, &records, seed).expect("the zones of this file can be served");
        Arc::new(ZoneEntry::new(apex, Source::Data(Arc::new(zone)), None, number))
    };
    let beside = (0..workload.zones_beside).map(|number| {
        let apex = name_of(&format!("zone{number}.example."));
        Arc::new(ZoneEntry::new(apex, Source::Unavailable, None, number))
    });
    let entries = (0..).zip((workload.zones)()).map(entry).chain(beside).collect();
    let zones = ZoneTable::new(entries, seed);
    let handlers = (workload.code)().map(Arc::new);
    Snapshot { zones, handlers, settings: Arc::default(), generation: 1 }
}

/// A name that this file spells right.
fn name_of(text: &str) -> Name {
    Name::parse(text.as_bytes(), &[0]).expect("the names of this file are valid")
}

/// The octets of a query without EDNS.
fn query(name: &str, qtype: Type) -> Vec<u8> {
    let header = [0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    [&header, name_of(name).as_wire(), &qtype.0.to_be_bytes(), &[0, 1]].concat()
}

/// Messages in memory.
struct Memory {
    buffers: Vec<[u8; BUFFER_BYTES]>,
    lengths: Vec<usize>,
    peer: Peer,
}

impl Batch for Memory {
    fn len(&self) -> usize {
        self.buffers.len()
    }

    fn get(&mut self, index: usize) -> Message<'_> {
        let (buffer, len) = (&mut self.buffers[index], &mut self.lengths[index]);
        Message { peer: self.peer, buffer, len }
    }

    fn defer(&mut self, _: usize, _: Deferral) {
        unreachable!("all zones have data");
    }
}

/// Answers this many queries, rounded up to whole batches.
fn run(workload: &Workload, count: usize) {
    let snapshot = Arc::new(ArcSwap::from_pointee(snapshot(workload)));
    let mut engine = Engine::new(snapshot, Arc::default());
    let queries: Vec<Vec<u8>> =
        (workload.questions)().iter().map(|(name, qtype)| query(name, *qtype)).collect();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 5353));
    let mut batch = Memory {
        buffers: vec![[0; BUFFER_BYTES]; BATCH],
        lengths: vec![0; BATCH],
        peer: Peer { address, transport: Transport::Udp, listener: 0 },
    };
    let mut next = queries.iter().cycle();
    for round in 0..count.div_ceil(BATCH) {
        for (buffer, length) in batch.buffers.iter_mut().zip(&mut batch.lengths) {
            let query = next.next().expect("a cycle of queries has no end");
            buffer[..query.len()].copy_from_slice(query);
            *length = query.len();
        }
        let nanos = round as u64 * 1000;
        engine.answer_batch(Now { monotonic_nanos: nanos, unix_secs: 0 }, &mut batch);
        assert!(batch.lengths.iter().all(|length| *length > 0), "every query has a reply");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--list"] => WORKLOADS.iter().for_each(|workload| println!("{}", workload.name)),
        ["--workload", name, "--queries", count] => {
            let workload = WORKLOADS.iter().find(|workload| workload.name == name);
            let count = count.parse().expect("--queries takes a number");
            run(workload.expect("--workload takes a name that --list prints"), count);
        }
        _ => panic!("usage: answer --list | --workload NAME --queries N"),
    }
}
