//! Search paths of a cluster's pods, which are followed for them.
#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::path::Path;
use std::sync::Arc;
use zonda_cache::{Answer, Cache, Failure, Key, Kind, Lifetime, Policy, Variant};
use zonda_cluster::object::{Namespace, ObjectName, Pod, Service, ServiceKind};
use zonda_cluster::{Builder, Change, Options, PodNames};
use zonda_engine::access::{Access, AccessList};
use zonda_engine::code::History;
use zonda_engine::zones::{ClusterNames, ClusterZone, Forward, Source, ZoneEntry, ZoneTable};
use zonda_engine::{
    Checkpoint, DeferredQuery, Engine, Now, Outcome, Peer, Reason, Resumption, Settings, Snapshot,
    To, Transport, UpstreamAnswer, fetched_name,
};
use zonda_wire::message::Message;
use zonda_wire::rdata::print::Presentation;
use zonda_wire::{Class, Name, Rcode, Section, Type};
use zonda_zone::{HashSeed, LookupName, Zone, build, file};

const SEED: HashSeed = HashSeed(1);
const NOW: Now = Now::new(1, 1);

/// The upstreams of all names, and those of `corp.example`.
const GROUPS: [u32; 2] = [7, 8];

/// Records of `own.example`.
const OWN: &str = "wiki.x A 192.0.2.9\nfar ALIAS far.dev.svc.cluster.local.";

/// A server with a cluster, names that are forwarded, and a zone of its own.
struct World {
    engine: Engine,
    snapshot: Arc<Snapshot>,
    cache: Arc<Cache>,
    /// The names for which upstreams were asked.
    fetched: Vec<String>,
}

/// What upstreams say of a name: a response code, and the last octet of an address.
type Upstreams<'u> = &'u dyn Fn(&str) -> (Rcode, Option<u8>);

/// A service of a namespace.
fn service(namespace: &str, name: &str, kind: ServiceKind) -> Change {
    let id = ObjectName { namespace: namespace.to_owned(), name: name.to_owned() };
    let (external_ips, external_names, ports) = (Vec::new(), Vec::new(), Vec::new());
    Change::Service(Service { id, kind, ports, external_ips, external_names })
}

/// The data of a zone.
fn data(apex: &str, text: &str) -> Arc<Zone> {
    let apex: Name = apex.parse().unwrap();
    let text = format!("$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\n{text}\n");
    let options = file::Options::default();
    let (records, _) = file::read_text(text.as_bytes(), Path::new("zone"), &apex, &options);
    Arc::new(build(&apex, &records, SEED).unwrap())
}

/// The cluster, whose pods are known if they are `verified`.
fn cluster(pods: PodNames) -> ClusterZone {
    let domains = ["corp.example", "own.example"].map(|it| it.parse().unwrap());
    let options = Options { search_domains: Some(domains.into()), pods, ..Options::default() };
    let mut builder = Builder::new(&"cluster.local".parse().unwrap(), SEED, options);
    for (name, opts_out_of_autopath) in [("shop", false), ("dev", false), ("closed", true)] {
        builder.apply(Change::Namespace(Namespace { name: name.to_owned(), opts_out_of_autopath }));
    }
    let own = ServiceKind::ClusterIp(vec![[10, 0, 0, 1].into()]);
    builder.apply(service("shop", "web", own.clone()));
    builder.apply(service("dev", "api", own));
    let far = ServiceKind::ExternalName("far.example.net".to_owned());
    builder.apply(service("dev", "far", far));
    let id = ObjectName { namespace: "shop".to_owned(), name: "pod".to_owned() };
    if pods == PodNames::Verified {
        let (addresses, is_on_host_network) = (vec![[10, 9, 9, 9].into()], false);
        builder.apply(Change::Pod(Pod { id, addresses, is_on_host_network }));
        let id = ObjectName { namespace: "shop".to_owned(), name: "on-host".to_owned() };
        let (addresses, is_on_host_network) = (vec![[10, 9, 9, 8].into()], true);
        builder.apply(Change::Pod(Pod { id, addresses, is_on_host_network }));
    }
    let names = ClusterNames::Services;
    let data = data("cluster.local", "far.dev.svc CNAME far.example.net.");
    ClusterZone {
        data,
        cluster: builder.snapshot(),
        names,
        falls_through: false,
        hosts_first: false,
        is_stale: false,
    }
}

impl World {
    /// A server; `closed_to_clients` are the upstreams of `corp.example` then.
    fn new(pods: PodNames, cross_zone: bool, closed_to_clients: bool) -> Self {
        let cache = Arc::new(Cache::new(1 << 20));
        let forward = |number| {
            let (cache, overlays) = (Arc::clone(&cache), Vec::new());
            Source::Forward(Arc::new(Forward {
                number,
                cache,
                options: None,
                nxdomain_cut: true,
                overlays,
            }))
        };
        let closed = Arc::new(AccessList {
            rules: Vec::new(),
            otherwise: Access::Refuse,
            ..AccessList::open()
        });
        let entries = [
            (".", forward(GROUPS[0]), None),
            ("corp.example", forward(GROUPS[1]), closed_to_clients.then_some(closed)),
            ("own.example", Source::Data(data("own.example", OWN)), None),
            ("cluster.local", Source::Cluster(Arc::new(cluster(pods))), None),
        ];
        let entry = |(number, (apex, source, access)): (u32, (&str, Source, _))| {
            Arc::new(ZoneEntry::new(apex.parse().unwrap(), source, access, number))
        };
        let snapshot = Snapshot {
            settings: Arc::new(Settings { cross_zone, ..Settings::default() }),
            ..Snapshot::of(ZoneTable::new((0..).zip(entries).map(entry).collect(), SEED))
        };
        let swap = Arc::new(ArcSwap::from_pointee(snapshot));
        let (snapshot, engine) = (swap.load_full(), Engine::new(swap, Arc::default()));
        Self { engine, snapshot, cache, fetched: Vec::new() }
    }

    /// The reply to a client in namespace `shop`, or another one: code, and all records of answers.
    fn ask_from(
        &mut self,
        client: [u8; 4],
        (name, qtype, flags): (&str, Type, u16),
        upstreams: Upstreams<'_>,
    ) -> String {
        let peer = Peer::new((client, 5300).into(), Transport::Udp, 0);
        let wire = name.parse::<Name>().unwrap();
        let header = [7, flags, 1, 0, 0, 1].map(u16::to_be_bytes).concat();
        let opt = [0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0];
        let query = [&header, wire.as_wire(), &qtype.0.to_be_bytes(), &[0, 1], &opt].concat();
        let mut buffer = [0; 1232];
        buffer[..query.len()].copy_from_slice(&query);
        self.fetched.clear();
        let mut outcome = self.engine.answer(NOW, &peer, &mut buffer, query.len());
        while let Outcome::Deferred(deferral) = outcome {
            assert_eq!(buffer[..query.len()], *query, "a deferred query is left as it was");
            assert!(self.fetched.len() < 9, "asked for ever: {:?}", self.fetched);
            let History { search_step, ref checkpoint, .. } = deferral.history;
            let target = checkpoint.as_ref().and_then(Checkpoint::target);
            let (number, fetched) = match target {
                Some(target) => (GROUPS[0], LookupName::new(target, SEED)),
                None if deferral.is_alias => {
                    fetched_name(&self.snapshot, wire.as_wire(), (qtype, search_step)).unwrap()
                }
                None => (GROUPS[0], LookupName::new(wire.as_wire(), SEED)),
            };
            assert_eq!((deferral.to, deferral.name_hash), (To::Forward(number), fetched.hash(0)));
            let text = Name::from_wire(fetched.as_wire()).unwrap().to_string();
            let (rcode, octet) = upstreams(&text);
            self.fetched.push(text);
            let is_answered = octet.is_some() && qtype == Type::A;
            let body =
                [&b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02"[..], &[octet.unwrap_or(0)]];
            let body = if is_answered { body.concat() } else { Vec::new() };
            let answer = UpstreamAnswer {
                name: if rcode == Rcode::SERVFAIL { &[] } else { fetched.as_wire() },
                rcode,
                counts: [u16::from(is_answered), 0, 0],
                body: &body,
                is_authentic: false,
                goes_on: false,
                reason: Reason::Forwarded,
                text: b"",
            };
            let (buffer, len) = (&mut buffer, query.len());
            let history = &deferral.history;
            let waiting = DeferredQuery { query: None, peer: &peer, history, buffer, len };
            outcome = self.engine.resume(NOW, waiting, Resumption::Upstream(&answer));
        }
        told(&Message::parse(&buffer[..outcome.reply_bytes()]).unwrap())
    }

    /// The reply to a client whose pod is not known.
    fn ask(&mut self, name: &str, qtype: Type, upstreams: Upstreams<'_>) -> String {
        self.ask_from([127, 0, 0, 1], (name, qtype, 0x0100), upstreams)
    }

    /// Keeps an answer of upstreams: an address, or that there is no such name.
    fn keep(&self, (name, source): (&str, u32), octet: Option<u8>) {
        let wire = name.parse::<Name>().unwrap();
        let name = LookupName::new(wire.as_wire(), SEED);
        let body = [&b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02"[..], &[octet.unwrap_or(0)]];
        let (kind, flags, counts, body) = match octet {
            Some(_) => (Kind::Positive, 0, [1, 0, 0], body.concat()),
            None => (Kind::NxDomain, 3, [0; 3], Vec::new()),
        };
        let answer = Answer { kind, flags, onward: None, ede: None, counts, body: &body };
        let lifetime = Lifetime { now_secs: 0, ttl_secs: 60, stale_secs: 0 };
        self.cache.insert(&key(&name, source), &answer, lifetime).unwrap();
    }
}

/// The key of a question for an address.
fn key(name: &LookupName, source: u32) -> Key<'_> {
    Key {
        name: name.as_wire(),
        hash: name.hash(0),
        qtype: Type::A,
        qclass: Class::IN,
        source,
        dnssec_ok: false,
        checking_disabled: false,
        variant: Variant::default(),
    }
}

/// The code of a reply, its answers, and whether it has an SOA record.
fn told(message: &Message) -> String {
    let answers = message.section(Section::Answer).map(|record| {
        let data = Presentation { rtype: record.rtype, rdata: &record.rdata };
        format!(" | {} {} {} {data}", record.owner, record.ttl, record.rtype)
    });
    let soa = message.section(Section::Authority).any(|record| record.rtype == Type::SOA);
    let soa = if soa { " SOA" } else { "" };
    format!("{}{}{soa}", message.rcode(), answers.collect::<String>())
}

/// Upstreams that have these names alone.
fn having<'u>(names: &'u [&'u str]) -> impl Fn(&str) -> (Rcode, Option<u8>) + 'u {
    |asked| match names.iter().position(|it| *it == asked) {
        Some(place) => (Rcode::NOERROR, Some(place as u8)),
        None => (Rcode::NXDOMAIN, None),
    }
}

/// The alias that a first name is answered with, of a name behind it.
fn alias(outside: &str, found: &str) -> String {
    format!("NOERROR | {outside}.shop.svc.cluster.local. 5 CNAME {found}")
}

#[test]
fn an_alias_record_may_lead_to_a_service_that_is_an_alias() {
    let mut world = World::new(PodNames::Insecure, false, false);
    let expected = "NOERROR | far.own.example. 60 A 192.0.2.5";
    assert_eq!(world.ask("far.own.example", Type::A, &|_| (Rcode::NOERROR, Some(5))), expected);
    assert_eq!(world.fetched, ["far.example.net."]);
}

#[test]
fn the_first_name_is_an_alias_of_the_first_one_that_exists_in_the_order_of_the_path() {
    let mut world = World::new(PodNames::Disabled, true, false);
    let first = "www.example.com.shop.svc.cluster.local";
    let outside = "www.example.com";
    let all = ["www.example.com.corp.example.", "www.example.com."];
    let reply = world.ask(first, Type::A, &having(&all));
    let found = format!("{} | {} 60 A 192.0.2.0", alias(outside, all[0]), all[0]);
    assert_eq!((reply, &*world.fetched), (found, &[all[0].to_owned()][..]));

    let reply = world.ask(first, Type::A, &having(&all[1..]));
    assert_eq!(reply, format!("{} | {} 60 A 192.0.2.0", alias(outside, all[1]), all[1]));
    assert_eq!(world.fetched, all);

    let reply = world.ask("api.dev.shop.svc.cluster.local", Type::A, &having(&all));
    let found = "api.dev.svc.cluster.local.";
    assert_eq!(reply, format!("{} | {found} 5 A 10.0.0.1", alias("api.dev", found)));
    assert!(world.fetched.is_empty());

    let reply = world.ask("wiki.x.shop.svc.cluster.local", Type::A, &having(&all));
    let found = "wiki.x.own.example.";
    assert_eq!(reply, format!("{} | {found} 60 A 192.0.2.9", alias("wiki.x", found)));
}

#[test]
fn aaaa_leads_to_the_same_name_as_a_where_that_has_no_such_record() {
    let mut world = World::new(PodNames::Disabled, true, false);
    let name = "www.example.com.corp.example.";
    let reply = world.ask("www.example.com.shop.svc.cluster.local", Type::AAAA, &having(&[name]));
    assert_eq!(reply, alias("www.example.com", name));
    let found = "api.dev.svc.cluster.local.";
    let reply = world.ask("api.dev.shop.svc.cluster.local", Type::AAAA, &having(&[]));
    assert_eq!(reply, alias("api.dev", found) + " SOA");
}

#[test]
fn a_path_without_a_name_that_exists_is_denied_as_the_first_name_is() {
    let mut world = World::new(PodNames::Disabled, true, false);
    let reply = world.ask("www.example.com.shop.svc.cluster.local", Type::A, &having(&[]));
    assert_eq!(reply, "NXDOMAIN SOA");
    assert_eq!(world.fetched, ["www.example.com.corp.example.", "www.example.com."]);
}

#[test]
fn a_name_that_exists_for_an_upstream_that_fails_is_not_passed_over() {
    let mut world = World::new(PodNames::Disabled, true, false);
    let fails = |name: &str| match name {
        "www.example.com." => (Rcode::NOERROR, Some(1)),
        _ => (Rcode::SERVFAIL, None),
    };
    let reply = world.ask("www.example.com.shop.svc.cluster.local", Type::A, &fails);
    assert_eq!((&*reply, world.fetched.len()), ("SERVFAIL", 1));

    let wire = "x.y.corp.example".parse::<Name>().unwrap();
    let name = LookupName::new(wire.as_wire(), SEED);
    let failure = Failure { flags: Rcode::SERVFAIL.0, ede: None, text: b"why" };
    let limits = Policy::default().failure;
    world.cache.insert_failure(&key(&name, GROUPS[1]), failure, limits, 0);
    let reply = world.ask("x.y.shop.svc.cluster.local", Type::A, &having(&[]));
    assert_eq!((&*reply, world.fetched.len()), ("SERVFAIL", 0), "it is cached");
}

#[test]
fn what_is_cached_is_given_without_asking() {
    let mut world = World::new(PodNames::Disabled, true, false);
    world.keep(("www.example.com.corp.example", GROUPS[1]), None);
    world.keep(("www.example.com", GROUPS[0]), Some(3));
    let first = "WWW.example.com.shop.svc.cluster.local";
    for flags in [0x0100, 0] {
        let asked = (first, Type::A, flags);
        let reply = world.ask_from([127, 0, 0, 1], asked, &having(&[]));
        let found = "www.example.com.";
        let alias = alias("WWW.example.com", found);
        assert_eq!(reply, format!("{alias} | {found} 60 A 192.0.2.3"), "{flags}");
        assert!(world.fetched.is_empty());
    }
}

#[test]
fn a_client_that_wants_no_recursion_has_nothing_looked_up() {
    let mut world = World::new(PodNames::Disabled, true, false);
    let asked = ("www.example.com.shop.svc.cluster.local", Type::A, 0);
    let reply = world.ask_from([127, 0, 0, 1], asked, &having(&["www.example.com."]));
    assert_eq!((&*reply, world.fetched.len()), ("NXDOMAIN SOA", 0));
}

#[test]
fn names_that_may_be_of_another_namespace_are_left_to_the_client() {
    let mut world = World::new(PodNames::Disabled, true, false);
    let everything = |_: &str| (Rcode::NOERROR, Some(1));
    for name in [
        "gone.shop.svc.cluster.local", // gone.shop, asked for by another namespace
        "pod-0.web.shop.svc.cluster.local", // below a service that exists
        "a.b.c.d.e.f.shop.svc.cluster.local", // was asked for before: ndots is 5
        "www.example.com.closed.svc.cluster.local", // opts out
        "www.example.com.none.svc.cluster.local", // is no namespace
        "www.example.com.svc.cluster.local", // `com` is no namespace
        "www.example.com.shop.pod.cluster.local",
        "www.example.com.cluster.local",
    ] {
        let reply = world.ask(name, Type::A, &everything);
        assert_eq!((&*reply, world.fetched.len()), ("NXDOMAIN SOA", 0), "{name}");
    }
    for qtype in [Type::ANY, Type::CNAME, Type::NS, Type::SOA] {
        let reply = world.ask("www.example.com.shop.svc.cluster.local", qtype, &everything);
        assert_eq!((&*reply, world.fetched.len()), ("NXDOMAIN SOA", 0), "{qtype}");
    }
    let reply = world.ask("a.b.c.d.e.shop.svc.cluster.local", Type::A, &everything);
    let found = "a.b.c.d.e.corp.example.";
    assert_eq!(reply, format!("{} | {found} 60 A 192.0.2.1", alias("a.b.c.d.e", found)));
}

#[test]
fn a_pod_that_is_known_has_the_path_of_its_own_namespace_alone() {
    let mut world = World::new(PodNames::Verified, true, false);
    let names = ["intra.corp.example.", "pod-0.web.corp.example."];
    let known = [10, 9, 9, 9];
    for (place, outside) in ["intra", "pod-0.web"].iter().enumerate() {
        let name = format!("{outside}.shop.svc.cluster.local");
        let reply = world.ask_from(known, (&name, Type::A, 0x0100), &having(&names));
        let found = names[place];
        assert_eq!(reply, format!("{} | {found} 60 A 192.0.2.{place}", alias(outside, found)));
        assert_eq!(world.ask(&name, Type::A, &having(&names)), "NXDOMAIN SOA", "from elsewhere");
    }
    let asked = ("www.example.com.dev.svc.cluster.local", Type::A, 0x0100);
    let reply = world.ask_from(known, asked, &having(&["www.example.com."]));
    assert_eq!((&*reply, world.fetched.len()), ("NXDOMAIN SOA", 0), "it is a pod of `shop`");
}

#[test]
fn the_address_of_a_host_is_that_of_no_pod_alone() {
    let mut world = World::new(PodNames::Verified, true, false);
    let (host, found) = ([10, 9, 9, 8], "www.example.com.");
    let asked = ("www.example.com.dev.svc.cluster.local", Type::A, 0x0100);
    let reply = world.ask_from(host, asked, &having(&[found]));
    assert!(reply.contains(found), "a pod of `dev` on the host may ask, too: {reply}");
    let asked = ("intra.shop.svc.cluster.local", Type::A, 0x0100);
    let reply = world.ask_from(host, asked, &having(&["intra.corp.example."]));
    assert_eq!(reply, "NXDOMAIN SOA", "it is not sure that a pod of `shop` asks");
}

#[test]
fn an_alias_on_the_path_that_leads_outside_is_followed() {
    let mut world = World::new(PodNames::Disabled, true, false);
    let target = "far.example.net.";
    let reply = world.ask("far.dev.shop.svc.cluster.local", Type::A, &having(&[target]));
    let found = "far.dev.svc.cluster.local.";
    let first = alias("far.dev", found);
    assert_eq!(reply, format!("{first} | {found} 60 CNAME {target} | {target} 60 A 192.0.2.0"));
    assert_eq!(world.fetched, [target]);
}

#[test]
fn zones_that_aliases_or_the_client_may_not_enter_end_the_search_without_a_guess() {
    let everything = |_: &str| (Rcode::NOERROR, Some(1));
    let mut world = World::new(PodNames::Disabled, true, true);
    let reply = world.ask("www.example.com.shop.svc.cluster.local", Type::A, &everything);
    assert_eq!((&*reply, world.fetched.len()), ("NXDOMAIN SOA", 0), "refused in corp.example");

    let mut world = World::new(PodNames::Disabled, false, false);
    let reply = world.ask("wiki.x.shop.svc.cluster.local", Type::A, &having(&["wiki.x."]));
    assert_eq!(reply, "NXDOMAIN SOA", "own.example has it");
    assert_eq!(world.fetched, ["wiki.x.corp.example."]);
    let name = "www.example.com.";
    let reply = world.ask("www.example.com.shop.svc.cluster.local", Type::A, &having(&[name]));
    assert!(reply.starts_with(&alias("www.example.com", name)), "{reply}");
}
