//! Answers queries in-process, for `cargo xtask instructions` to count.
//!
//! `answer --list` prints the workloads; `answer --workload NAME --queries N` answers N queries.
//! Nothing depends on chance: the hash seed and the order of the names are fixed.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use zonda_balance::geography::{Geography, Site};
use zonda_balance::{
    Answers, Filter, MapSource, Member, MemberState, Order, Pool, Records, SiteMap, WhenAllDown,
};
use zonda_cluster::object::{
    Endpoint, EndpointSlice, ObjectName, Port, Protocol, Service, ServiceKind,
};
use zonda_cluster::{Builder, Change, Cluster, Options as ClusterOptions};
use zonda_engine::code::{Handler, HandlerQuery, HandlerReply, Handlers, Route, Stage};
use zonda_engine::steering::{SteeredNames, SteeredSet, Steering};
use zonda_engine::zones::{ClusterNames, ClusterZone, Source, ZoneEntry, ZoneTable};
use zonda_engine::{Batch, Deferral, Engine, Message, Now, Peer, Reason, Snapshot, Transport};
use zonda_geo::{Prefix, SiteId};
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
    /// The number of names that are steered to pools of their own, and of the members of each.
    pools: (usize, usize),
    /// Whether members are at sites that clients prefer, and queries tell the client's subnet.
    by_place: bool,
    /// The number of services of the cluster that has the names below `cluster.local`.
    services: usize,
    /// The user's code in front of the zones.
    code: fn() -> Option<Handlers>,
    /// The questions, asked one after the other: name and type.
    questions: fn() -> Vec<(String, Type)>,
}

/// No code of the user's.
const NO_CODE: fn() -> Option<Handlers> = || None;

/// No names that are steered.
const NO_POOLS: (usize, usize) = (0, 0);

/// What is counted, one entry a path through the engine.
const WORKLOADS: &[Workload] = &[
    Workload {
        name: "hot",
        zones: small_zones,
        zones_beside: 0,
        pools: NO_POOLS,
        by_place: false,
        services: 0,
        code: NO_CODE,
        questions: || (0..100).map(|n| (format!("example{n}.com."), Type::A)).collect(),
    },
    Workload {
        name: "hot-beside-a-million",
        zones: small_zones,
        zones_beside: 1_000_000,
        pools: NO_POOLS,
        by_place: false,
        services: 0,
        code: NO_CODE,
        questions: || (0..100).map(|n| (format!("example{n}.com."), Type::A)).collect(),
    },
    Workload {
        name: "refused",
        zones: small_zones,
        zones_beside: 0,
        pools: NO_POOLS,
        by_place: false,
        services: 0,
        code: NO_CODE,
        questions: || (0..100).map(|n| (format!("elsewhere{n}.com."), Type::A)).collect(),
    },
    Workload {
        name: "random-name",
        zones: one_zone,
        zones_beside: 0,
        pools: NO_POOLS,
        by_place: false,
        services: 0,
        code: NO_CODE,
        questions: || shuffled(|n| (format!("h{n}.big.test."), Type::A)),
    },
    Workload {
        name: "no-such-name",
        zones: one_zone,
        zones_beside: 0,
        pools: NO_POOLS,
        by_place: false,
        services: 0,
        code: NO_CODE,
        questions: || shuffled(|n| (format!("nx{n}.big.test."), Type::A)),
    },
    Workload {
        name: "referral",
        zones: one_zone,
        zones_beside: 0,
        pools: NO_POOLS,
        by_place: false,
        services: 0,
        code: NO_CODE,
        questions: || shuffled(|n| (format!("www.d{}.big.test.", n % 1000), Type::A)),
    },
    Workload {
        name: "wildcard",
        zones: one_zone,
        zones_beside: 0,
        pools: NO_POOLS,
        by_place: false,
        services: 0,
        code: NO_CODE,
        questions: || shuffled(|n| (format!("n{n}.wild.big.test."), Type::A)),
    },
    Workload {
        name: "middleware",
        zones: small_zones,
        zones_beside: 0,
        pools: NO_POOLS,
        by_place: false,
        services: 0,
        code: || Some(Handlers::new(Vec::new(), vec![Arc::new(Looks)], None, SEED)),
        questions: || (0..100).map(|n| (format!("example{n}.com."), Type::A)).collect(),
    },
    Workload {
        name: "handler",
        zones: small_zones,
        zones_beside: 0,
        pools: NO_POOLS,
        by_place: false,
        services: 0,
        code: || Some(Handlers::new(vec![route()], Vec::new(), None, SEED)),
        questions: || shuffled(|n| (format!("n{n}.code.test."), Type::A)),
    },
    Workload {
        name: "steered",
        zones: one_zone,
        zones_beside: 0,
        pools: (1, 10),
        by_place: false,
        services: 0,
        code: NO_CODE,
        questions: || steered(1),
    },
    Workload {
        name: "steered-to-one-of-10000",
        zones: one_zone,
        zones_beside: 0,
        pools: (1, 10_000),
        by_place: false,
        services: 0,
        code: NO_CODE,
        questions: || steered(1),
    },
    Workload {
        name: "steered-by-one-of-10000",
        zones: one_zone,
        zones_beside: 0,
        pools: (10_000, 3),
        by_place: false,
        services: 0,
        code: NO_CODE,
        questions: || steered(10_000),
    },
    Workload {
        name: "steered-by-place",
        zones: one_zone,
        zones_beside: 0,
        pools: (1, 1_000),
        by_place: true,
        services: 0,
        code: NO_CODE,
        questions: || shuffled(|_| ("s0.big.test.".to_owned(), Type::A)),
    },
    Workload {
        name: "cluster-service",
        zones: cluster_data,
        zones_beside: 0,
        pools: NO_POOLS,
        by_place: false,
        services: NAMES,
        code: NO_CODE,
        questions: || shuffled(|n| (format!("s{n}.default.svc.cluster.local."), Type::A)),
    },
    Workload {
        name: "cluster-hot",
        zones: cluster_data,
        zones_beside: 0,
        pools: NO_POOLS,
        by_place: false,
        services: NAMES,
        code: NO_CODE,
        questions: || {
            (0..100).map(|n| (format!("s{n}.default.svc.cluster.local."), Type::A)).collect()
        },
    },
    Workload {
        name: "cluster-no-such-name",
        zones: cluster_data,
        zones_beside: 0,
        pools: NO_POOLS,
        by_place: false,
        services: NAMES,
        code: NO_CODE,
        questions: || {
            shuffled(|n| (format!("h{n}.example.com.default.svc.cluster.local."), Type::A))
        },
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

/// The own data of a cluster's zone.
fn cluster_data() -> Vec<(String, String)> {
    vec![("cluster.local.".to_owned(), HEAD.to_owned())]
}

/// A cluster with so many services, each with an address of its own and an endpoint.
fn cluster(apex: &Name, services: usize) -> Cluster {
    let mut builder = Builder::new(apex, SEED, ClusterOptions::default());
    let port = Port { name: "http".to_owned(), protocol: Protocol::Tcp, number: Some(80) };
    let octets = |n: usize| [(n >> 16) as u8, (n >> 8) as u8, n as u8];
    for n in 0..services {
        let [a, b, c] = octets(n);
        let id = ObjectName { namespace: "default".to_owned(), name: format!("s{n}") };
        let endpoint = Endpoint {
            address: [11, a, b, c].into(),
            hostname: "",
            pod: "",
            zone: "",
            ready: true,
        };
        builder.apply(Change::EndpointSlice(EndpointSlice {
            id: id.clone(),
            service: id.name.clone(),
            source_cluster: String::new(),
            is_imported: false,
            ports: vec![port.clone()],
            endpoints: [endpoint].into_iter().collect(),
            trigger_time: None,
        }));
        builder.apply(Change::Service(Service {
            id,
            kind: ServiceKind::ClusterIp(vec![[10, a, b, c].into()]),
            ports: vec![port.clone()],
            external_ips: Vec::new(),
            external_names: Vec::new(),
        }));
    }
    builder.snapshot()
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

/// Queries for so many steered names.
fn steered(count: usize) -> Vec<(String, Type)> {
    // 7919 is prime, so its multiples meet every number.
    (0..count).map(|n| (format!("s{}.big.test.", n * 7919 % count), Type::A)).collect()
}

/// The sites that members of pools are at.
const SITES: usize = 64;

/// The network of the client that asks the query of this number: one of 65,536.
fn client(number: usize) -> [u8; 3] {
    let network = number * 40_503 % 65_536; // odd, so that its multiples meet every number
    [11, (network >> 8) as u8, network as u8]
}

/// A map in which the network of each client prefers one of the sites.
fn site_map() -> SiteMap {
    let site = |number: usize| Site { name: format!("s{number}").into(), ..Site::default() };
    let network = |number: usize| {
        let [a, b, c] = client(number);
        let prefix = Prefix::new(Ipv4Addr::new(a, b, c, 0).into(), 24);
        (prefix.expect("24 bits are a length"), SiteId((number % SITES) as u32))
    };
    let geography = Geography {
        sites: (0..SITES).map(site).collect(),
        networks: (0..65_536).map(network).collect(),
        ..Geography::default()
    };
    let (geography, sites) = (Arc::new(geography), (0..SITES as u16).collect());
    let (by_place, by_distance, by_latency) = (true, false, false);
    let source = MapSource { geography, sites, by_place, by_distance, by_latency };
    SiteMap::compile(source).expect("these networks are not too many")
}

/// Names of the large zone that are steered to pools, each by weight among so many members, which
/// may be at the sites that clients prefer.
fn steering((pools, members): (usize, usize), by_place: bool) -> Option<Arc<Steering>> {
    let set = |n: usize| SteeredSet {
        name: name_of(&format!("s{n}.big.test.")),
        zone: name_of("big.test."),
        rtype: Type::A,
        pool: n as u32,
    };
    let sets: Vec<SteeredSet> = (0..pools).map(set).collect();
    let member = |n: usize| Member {
        identity: n as u64,
        weight: n as u32 % 7 + 1,
        priority: 1,
        pool: None,
        site: by_place.then_some((n % SITES) as u16),
    };
    let mut filters = vec![Filter::Failover];
    filters.extend(by_place.then(|| Filter::Sites(Arc::new(site_map()))));
    let address = |n: usize| Some([10, 2, (n >> 8) as u8, n as u8].into());
    let pool = Pool {
        members: (0..members).map(member).collect(),
        filters,
        order: Order::Weighted,
        answers: Answers::Some(1),
        when_all_down: WhenAllDown::All,
        records: vec![Records { rtype: Type::A, rdatas: (0..members).map(address).collect() }],
    };
    let plan = || Arc::new(pool.compile(&vec![MemberState::UP; members], 30, None));
    let pools = (0..pools).map(|_| plan()).collect();
    let names = Arc::new(SteeredNames::new(&sets, SEED));
    (!sets.is_empty()).then(|| Arc::new(Steering { names, pools, labels: None }))
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
        let source = match workload.services {
            0 => Source::Data(Arc::new(zone)),
            services => Source::Cluster(Arc::new(ClusterZone {
                data: Arc::new(zone),
                cluster: cluster(&apex, services),
                names: ClusterNames::Services,
                falls_through: false,
                hosts_first: false,
                is_stale: false,
            })),
        };
        Arc::new(ZoneEntry::new(apex, source, None, number))
    };
    let beside = (0..workload.zones_beside).map(|number| {
        let apex = name_of(&format!("zone{number}.example."));
        Arc::new(ZoneEntry::new(apex, Source::Unavailable(Reason::ZoneUnavailable), None, number))
    });
    let entries = (0..).zip((workload.zones)()).map(entry).chain(beside).collect();
    let zones = ZoneTable::new(entries, seed);
    let handlers = (workload.code)().map(Arc::new);
    let steering = steering(workload.pools, workload.by_place);
    Snapshot { handlers, steering, ..Snapshot::of(zones) }
}

/// A name that this file spells right.
fn name_of(text: &str) -> Name {
    Name::parse(text.as_bytes(), &[0]).expect("the names of this file are valid")
}

/// The octets of a query, without EDNS or with the client's subnet (rfc7871#6).
fn query(name: &str, qtype: Type, client: Option<[u8; 3]>) -> Vec<u8> {
    let header = [0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(client.is_some())];
    let mut octets = [&header, name_of(name).as_wire(), &qtype.0.to_be_bytes(), &[0, 1]].concat();
    if let Some(network) = client {
        octets.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 11, 0, 8, 0, 7, 0, 1, 24, 0]);
        octets.extend(network);
    }
    octets
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
    let numbered = (workload.questions)().into_iter().enumerate();
    let queries: Vec<Vec<u8>> = numbered
        .map(|(number, (name, qtype))| {
            query(&name, qtype, workload.by_place.then(|| client(number)))
        })
        .collect();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 5353));
    let mut batch = Memory {
        buffers: vec![[0; BUFFER_BYTES]; BATCH],
        lengths: vec![0; BATCH],
        peer: Peer::new(address, Transport::Udp, 0),
    };
    let mut next = queries.iter().cycle();
    for round in 0..count.div_ceil(BATCH) {
        for (buffer, length) in batch.buffers.iter_mut().zip(&mut batch.lengths) {
            let query = next.next().expect("a cycle of queries has no end");
            buffer[..query.len()].copy_from_slice(query);
            *length = query.len();
        }
        let nanos = round as u64 * 1000;
        engine.answer_batch(Now::new(nanos, 0), &mut batch);
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
