//! What the hot table keeps while objects of a cluster change.

#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use zonda_cache::Cache;
use zonda_cluster::object::{
    Endpoint, EndpointSlice, Namespace, ObjectName, Pod, Port, Protocol, Service, ServiceKind,
};
use zonda_cluster::{Builder, Change, Kind, Options, PodNames};
use zonda_engine::zones::{
    ClusterNames, ClusterZone, Forward, Overlay, Source, ZoneEntry, ZoneTable,
};
use zonda_engine::{
    Engine, Event, NotReused, Now, Observer, Outcome, Peer, Reason, Reuse, Settings, Snapshot,
    Transport,
};
use zonda_wire::rdata::print::Presentation;
use zonda_wire::{Message, Name, Type};
use zonda_zone::{HashSeed, Zone, build, file};

const SEED: HashSeed = HashSeed(1);

/// A worker's engine, and the cluster that it answers from.
struct Server {
    builder: Builder,
    /// The serial of the zone's own data.
    serial: u32,
    is_stale: bool,
    falls_through: bool,
    /// Lines of a hosts file in front of the forwarded zone around, if its names come first.
    hosts: Option<&'static str>,
    snapshot: Arc<ArcSwap<Snapshot>>,
    engine: Engine,
    /// Whether the last reply was put into the hot table, or why not.
    reuse: Arc<Mutex<Option<Reuse>>>,
}

/// Takes note of what becomes of a reply.
struct Noting(Arc<Mutex<Option<Reuse>>>);

impl Observer for Noting {
    fn observe(&mut self, event: &Event<'_>) {
        *self.0.lock().unwrap() = event.reuse;
    }
}

/// A name in namespace `shop`.
fn id(name: &str) -> ObjectName {
    ObjectName { namespace: "shop".to_owned(), name: name.to_owned() }
}

/// The root, forwarded, with the names of a hosts file in front of it.
fn forwarded(hosts: &str) -> Arc<ZoneEntry> {
    let text = format!("$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns\n{hosts}");
    let (root, options) = (Name::root(), file::Options::default());
    let (records, _) = file::read_text(text.as_bytes(), Path::new("hosts"), &root, &options);
    let zone = Arc::new(build(&root, &records, SEED).unwrap());
    let overlays = vec![Overlay { zone, reason: Reason::Answered }];
    let cache = Arc::new(Cache::new(1 << 20));
    let source = Forward { number: 7, cache, options: None, nxdomain_cut: true, overlays };
    Arc::new(ZoneEntry::new(root, Source::Forward(Arc::new(source)), None, 1))
}

/// The port of all services.
fn port() -> Vec<Port> {
    vec![Port { name: "http".to_owned(), protocol: Protocol::Tcp, number: Some(80) }]
}

/// A service in namespace `shop` with an address of its own, 10.0.0.`octet`.
fn service(name: &str, octet: u8) -> Change {
    let kind = ServiceKind::ClusterIp(vec![[10, 0, 0, octet].into()]);
    let (external_ips, external_names, ports) = (Vec::new(), Vec::new(), port());
    Change::Service(Service { id: id(name), kind, ports, external_ips, external_names })
}

/// The endpoints of a headless service in namespace `shop`, 10.1.0.1 to 10.1.0.`count`.
fn endpoints(name: &str, count: u8) -> [Change; 2] {
    let kind = ServiceKind::Headless;
    let (external_ips, external_names, ports) = (Vec::new(), Vec::new(), port());
    let endpoint = |octet| Endpoint {
        address: [10, 1, 0, octet].into(),
        hostname: "",
        pod: "",
        zone: "",
        ready: true,
    };
    let slice = EndpointSlice {
        id: id(name),
        service: name.to_owned(),
        source_cluster: String::new(),
        is_imported: false,
        ports: port(),
        endpoints: (1..=count).map(endpoint).collect(),
        trigger_time: None,
    };
    let service = Service { id: id(name), kind, ports, external_ips, external_names };
    [Change::Service(service), Change::EndpointSlice(slice)]
}

impl Server {
    fn new(options: Options) -> Self {
        let mut builder = Builder::new(&"cluster.local".parse().unwrap(), SEED, options);
        builder.apply(Change::Namespace(Namespace {
            name: "shop".to_owned(),
            opts_out_of_autopath: false,
        }));
        let snapshot = Arc::new(ArcSwap::from_pointee(Snapshot {
            settings: Arc::new(Settings { rotate: false, ..Settings::default() }),
            ..Snapshot::of(ZoneTable::new(Vec::new(), SEED))
        }));
        let mut engine = Engine::new(Arc::clone(&snapshot), Arc::default());
        let reuse = Arc::default();
        engine.add_observer(Box::new(Noting(Arc::clone(&reuse))));
        let (serial, is_stale, falls_through, hosts) = (1, false, false, None);
        let mut server =
            Self { builder, serial, is_stale, falls_through, hosts, snapshot, engine, reuse };
        server.change([]);
        server
    }

    /// The own data of the cluster's zone.
    fn data(&self) -> Arc<Zone> {
        let apex: Name = "cluster.local".parse().unwrap();
        let text = format!("$TTL 60\n@ SOA ns h {} 2 3 4 5\n@ NS ns\n", self.serial);
        let options = file::Options::default();
        let (records, _) = file::read_text(text.as_bytes(), Path::new("zone"), &apex, &options);
        Arc::new(build(&apex, &records, SEED).unwrap())
    }

    /// Applies changes, and publishes the cluster.
    fn change(&mut self, changes: impl IntoIterator<Item = Change>) {
        changes.into_iter().for_each(|change| self.builder.apply(change));
        let (names, is_stale) = (ClusterNames::Services, self.is_stale);
        let (falls_through, hosts_first) = (self.falls_through, self.hosts.is_some());
        let (data, cluster) = (self.data(), self.builder.snapshot());
        let zone = ClusterZone { data, cluster, names, falls_through, hosts_first, is_stale };
        let source = Source::Cluster(Arc::new(zone));
        let entry = Arc::new(ZoneEntry::new("cluster.local".parse().unwrap(), source, None, 0));
        let entries = [entry].into_iter().chain(self.hosts.map(forwarded)).collect();
        let former = self.snapshot.load();
        self.snapshot.store(Arc::new(Snapshot {
            settings: Arc::clone(&former.settings),
            generation: former.generation,
            ..Snapshot::of(ZoneTable::new(entries, SEED))
        }));
    }

    /// Makes the zone's own data anew, and publishes the cluster.
    fn renew_data(&mut self) {
        self.serial += 1;
        self.builder.note_new_data();
        self.change([]);
    }

    /// The reply to a query: its response code, and its records as text.
    fn ask(&mut self, name: &str, qtype: Type) -> String {
        let name: Name = format!("{name}.cluster.local").parse().unwrap();
        let mut buffer = vec![0; 1232];
        let header = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0";
        let query = [&header[..], name.as_wire(), &qtype.0.to_be_bytes(), &[0, 1]].concat();
        buffer[..query.len()].copy_from_slice(&query);
        let address = "192.0.2.7:53".parse().unwrap();
        let peer = Peer::new(address, Transport::Udp, 0);
        let now = Now::new(0, 0);
        let Outcome::Reply(len) = self.engine.answer(now, &peer, &mut buffer, query.len()) else {
            panic!("no reply");
        };
        let message = Message::parse(&buffer[..len]).unwrap();
        let records = message.records.iter().map(|record| {
            let data = Presentation { rtype: record.rtype, rdata: &record.rdata };
            format!(" {} {data}", record.rtype)
        });
        format!("{}{}", message.rcode(), records.collect::<String>())
    }

    /// Whether a question is answered from the hot table, with the reply that is given.
    fn is_hot(&mut self, (name, qtype): (&str, Type), reply: &str) -> bool {
        assert_eq!(self.ask(name, qtype), reply, "{name} {qtype}");
        *self.reuse.lock().unwrap() == Some(Reuse::No(NotReused::HotAlready))
    }

    /// Asks until the reply is in the hot table if it ever is; whether it is.
    fn becomes_hot(&mut self, question: (&str, Type), reply: &str) -> bool {
        (0..3).map(|_| self.is_hot(question, reply)).last() == Some(true)
    }
}

const WEB: (&str, Type) = ("web.shop.svc", Type::A);
const OTHER: (&str, Type) = ("api.shop.svc", Type::A);
const WEB_1: &str = "NOERROR A 10.0.0.1";
const OTHER_2: &str = "NOERROR A 10.0.0.2";

#[test]
fn a_change_of_a_service_is_answered_at_once_and_costs_no_other_service_its_hot_entry() {
    let mut server = Server::new(Options::default());
    server.change([service("web", 1), service("api", 2)]);
    assert!(server.becomes_hot(WEB, WEB_1) && server.becomes_hot(OTHER, OTHER_2));
    for octet in 10..20 {
        server.change([service("web", octet)]);
        let reply = format!("NOERROR A 10.0.0.{octet}");
        assert!(server.is_hot(OTHER, OTHER_2));
        assert!(!server.is_hot(WEB, &reply) && server.is_hot(WEB, &reply));
    }
    server.change([Change::Gone(Kind::Service, id("web"))]);
    assert!(!server.is_hot(WEB, "NXDOMAIN SOA ns.cluster.local. h.cluster.local. 1 2 3 4 5"));
    assert!(server.is_hot(OTHER, OTHER_2));
}

#[test]
fn a_change_of_endpoints_is_answered_at_once() {
    let mut server = Server::new(Options::default());
    server.change(endpoints("db", 1));
    let question = ("db.shop.svc", Type::A);
    assert!(server.becomes_hot(question, "NOERROR A 10.1.0.1"));
    server.change(endpoints("db", 2));
    assert!(!server.is_hot(question, "NOERROR A 10.1.0.1 A 10.1.0.2"));
    let (question, reply) = (("10-1-0-2.db.shop.svc", Type::A), "NOERROR A 10.1.0.2");
    assert!(server.becomes_hot(question, reply));
    server.change(endpoints("db", 1));
    assert!(!server.is_hot(question, "NXDOMAIN SOA ns.cluster.local. h.cluster.local. 1 2 3 4 5"));
    let (question, reply) = (
        ("_http._tcp.db.shop.svc", Type::SRV),
        "NOERROR SRV 0 100 80 10-1-0-1.db.shop.svc.cluster.local. A 10.1.0.1",
    );
    assert!(server.becomes_hot(question, reply));
}

#[test]
fn a_name_that_is_denied_by_a_hot_entry_is_answered_once_it_exists() {
    let mut server = Server::new(Options::default());
    server.change([service("api", 2)]);
    let denial =
        |serial| format!("NXDOMAIN SOA ns.cluster.local. h.cluster.local. {serial} 2 3 4 5");
    // A search list asks for such a name, and finds no service `com` of namespace `shop`.
    let outside = ("www.example.com.shop.svc", Type::A);
    assert!(server.becomes_hot(WEB, &denial(1)) && server.becomes_hot(outside, &denial(1)));
    server.change([service("web", 1)]);
    assert!(server.is_hot(outside, &denial(1)));
    assert!(!server.is_hot(WEB, WEB_1));
    // The service has no address of version 6.
    let no_data = "NOERROR SOA ns.cluster.local. h.cluster.local. 1 2 3 4 5";
    assert!(server.becomes_hot(("web.shop.svc", Type::AAAA), no_data));
}

#[test]
fn denials_have_the_data_that_are_in_force_and_records_outlive_them() {
    let mut server = Server::new(Options::default());
    server.change([service("api", 2)]);
    let denial =
        |serial| format!("NXDOMAIN SOA ns.cluster.local. h.cluster.local. {serial} 2 3 4 5");
    assert!(server.becomes_hot(WEB, &denial(1)) && server.becomes_hot(OTHER, OTHER_2));
    server.renew_data();
    assert!(!server.is_hot(WEB, &denial(2)) && server.is_hot(OTHER, OTHER_2));
}

#[test]
fn names_are_looked_up_anew_while_the_objects_are_those_of_a_former_time() {
    let mut server = Server::new(Options::default());
    server.change([service("api", 2)]);
    let denial = "NXDOMAIN SOA ns.cluster.local. h.cluster.local. 1 2 3 4 5";
    assert!(server.becomes_hot(WEB, denial) && server.becomes_hot(OTHER, OTHER_2));
    server.is_stale = true;
    server.change([]);
    assert!(!server.becomes_hot(WEB, "SERVFAIL") && !server.becomes_hot(OTHER, OTHER_2));
}

#[test]
fn what_depends_on_more_than_a_service_is_looked_up_anew() {
    let pods = |options| Options { pods: PodNames::Verified, ..options };
    let mut server = Server::new(pods(Options::default()));
    let denial = "NXDOMAIN SOA ns.cluster.local. h.cluster.local. 1 2 3 4 5";
    let pod = ("10-9-9-9.shop.pod", Type::A);
    assert!(!server.becomes_hot(pod, denial));
    let addresses: Vec<IpAddr> = vec![[10, 9, 9, 9].into()];
    server.change([Change::Pod(Pod { id: id("pod"), addresses, is_on_host_network: false })]);
    assert!(!server.becomes_hot(pod, "NOERROR A 10.9.9.9"));
    assert!(!server.becomes_hot(("none.svc", Type::A), denial));

    let options = Options { exposes_known_namespaces: true, ..Options::default() };
    let mut server = Server::new(options);
    server.change([service("web", 1)]);
    assert!(!server.becomes_hot(WEB, WEB_1));
    server.change([Change::Gone(
        Kind::Namespace,
        ObjectName { namespace: String::new(), name: "shop".to_owned() },
    )]);
    assert!(!server.becomes_hot(WEB, denial));

    // A search path leads to other names, whose changes would not be seen.
    let options = Options { search_domains: Some(Vec::new()), ..Options::default() };
    let mut server = Server::new(options);
    for _ in 0..3 {
        server.ask("www.example.com.shop.svc", Type::A);
        assert_eq!(*server.reuse.lock().unwrap(), Some(Reuse::No(NotReused::Cluster)));
    }
}

#[test]
fn a_denial_behind_which_zones_around_were_asked_is_made_anew() {
    let mut server = Server::new(Options::default());
    server.falls_through = true;
    server.change([service("web", 1)]);
    let denial = "NXDOMAIN SOA ns.cluster.local. h.cluster.local. 1 2 3 4 5";
    assert!(!server.becomes_hot(("no.shop.svc", Type::A), denial));
    assert!(server.becomes_hot(WEB, WEB_1), "of what is there");
}

#[test]
fn names_of_a_hosts_file_come_before_those_of_a_cluster_if_that_is_wanted() {
    let mut server = Server::new(Options::default());
    server.change([service("web", 1), service("api", 2)]);
    assert!(server.becomes_hot(WEB, WEB_1));
    server.hosts =
        Some("web.shop.svc.cluster.local. A 192.0.2.9\nnew.cluster.local. A 192.0.2.8\n");
    server.change([]);
    assert!(!server.becomes_hot(WEB, "NOERROR A 192.0.2.9"));
    assert!(!server.becomes_hot(("new", Type::A), "NOERROR A 192.0.2.8"));
    assert!(!server.becomes_hot(OTHER, OTHER_2));
    let denial = "NXDOMAIN SOA ns.cluster.local. h.cluster.local. 1 2 3 4 5";
    assert!(!server.becomes_hot(("no.shop.svc", Type::A), denial));
    server.hosts = Some("other.cluster.local. A 192.0.2.9\n");
    server.change([]);
    assert!(!server.becomes_hot(WEB, WEB_1));
}
