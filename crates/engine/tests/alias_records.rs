//! ALIAS records whose targets other servers know: deferred, resumed, answered from the cache.
#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::path::Path;
use std::sync::Arc;
use zonda_balance::{Answers, Member, MemberState, Order, Pool, Records, WhenAllDown};
use zonda_cache::{Answer, Cache, Failure, Key, Kind, Lifetime, Onward, Policy, Variant};
use zonda_engine::access::{Access, AccessList};
use zonda_engine::steering::{SteeredNames, SteeredSet, Steering};
use zonda_engine::zones::{Forward, Source, ZoneEntry, ZoneTable, ZoneTableOwner};
use zonda_engine::{
    Checkpoint, Deferral, DeferredQuery, Engine, Now, Outcome, Peer, Reason, Resumption, Settings,
    Snapshot, To, Transport, UpstreamAnswer,
};
use zonda_wire::message::Message;
use zonda_wire::{Class, Name, Rcode, Section, Type};
use zonda_zone::{
    ChangeSet, HashSeed, LookupName, Serial, SerialPolicy, SetChange, Zone, build, file,
};

const SEED: HashSeed = HashSeed(1);
/// The time of all queries: ten seconds after answers were cached.
const NOW: Now = Now::new(10_000_000_000, 10);
/// The number of the upstreams of all names.
const ALL: u32 = 7;
/// The number of the upstreams that look up targets.
const RESOLVER: u32 = 8;

const ZONE: &str = "$TTL 300\n@ SOA ns host 1 2 3 4 60\n@ NS ns\nns A 192.0.2.1\n\
    @ ALIAS Www.Example.NET.\nshort 40 ALIAS www.example.net.\ncname CNAME example.\n\
    *.any ALIAS www.example.net.\nchain 90 ALIAS short\nsub NS ns.sub\nns.sub A 192.0.2.2\n\
    below ALIAS www.sub\ntwice ALIAS away.example.net.\nhome A 192.0.2.10\n\
    back ALIAS home-of.example.net.\nd ALIAS x.dn\ndn 70 DNAME example.net.\n\
    in-dn DNAME hosts\nx.hosts 60 ALIAS www.example.net.\nto-dn CNAME x.in-dn\n";

/// What is configured besides the zone.
#[derive(Clone, Copy)]
enum Upstreams {
    /// No upstreams at all.
    None,
    /// A zone of all names, for clients that are refused.
    OfAllNames,
    /// Upstreams for targets alone.
    Resolver,
    /// Both of these.
    Both,
    /// Both of these, and no client is refused.
    Open,
}

/// An engine with a zone that has ALIAS records.
fn engine(upstreams: Upstreams, cache: &Arc<Cache>) -> Engine {
    let apex: Name = "example".parse().unwrap();
    let options = file::Options::default();
    let (records, found) = file::read_text(ZONE.as_bytes(), Path::new("zone"), &apex, &options);
    assert!(!found.has_errors(), "{found}");
    engine_of(build(&apex, &records, SEED).unwrap(), upstreams, cache)
}

/// An engine with this zone, which is `example`.
fn engine_of(zone: Zone, upstreams: Upstreams, cache: &Arc<Cache>) -> Engine {
    engine_steered(zone, upstreams, cache, None)
}

/// An engine with this zone, some of whose names may be steered.
fn engine_steered(
    zone: Zone,
    upstreams: Upstreams,
    cache: &Arc<Cache>,
    steering: Option<Arc<Steering>>,
) -> Engine {
    let forward = |number| {
        let (cache, nxdomain_cut) = (Arc::clone(cache), true);
        Arc::new(Forward { number, cache, options: None, nxdomain_cut, overlays: Vec::new() })
    };
    let (apex, data) = ("example".parse().unwrap(), Source::Data(Arc::new(zone)));
    let mut table = ZoneTableOwner::new(SEED);
    table.put(Arc::new(ZoneEntry::new(apex, data, None, 0)));
    if let Upstreams::OfAllNames | Upstreams::Both | Upstreams::Open = upstreams {
        let is_open = matches!(upstreams, Upstreams::Open);
        let otherwise = if is_open { Access::Allow } else { Access::Refuse };
        let closed = AccessList { otherwise, ..AccessList::open() };
        let source = Source::Forward(forward(ALL));
        table.put(Arc::new(ZoneEntry::new(Name::root(), source, Some(Arc::new(closed)), 1)));
    }
    let has_resolver = !matches!(upstreams, Upstreams::None | Upstreams::OfAllNames);
    table.set_alias_resolver(has_resolver);
    let zones: ZoneTable = table.table();
    let alias_resolver = has_resolver.then(|| forward(RESOLVER));
    let settings = Arc::new(Settings { alias_resolver, ..Settings::default() });
    let snapshot = Snapshot { steering, settings, ..Snapshot::of(zones) };
    Engine::new(Arc::new(ArcSwap::from_pointee(snapshot)), Arc::default())
}

/// A client over UDP.
fn peer() -> Peer {
    Peer::new(([203, 0, 113, 1], 5300).into(), Transport::Udp, 0)
}

/// The octets of a query for addresses with DO and CD, but not RD: what no fetch depends on.
fn query(name: &str, qtype: Type) -> Vec<u8> {
    const CHECKING_DISABLED: u16 = 0x0010;
    let name: Name = name.parse().unwrap();
    let header = [1, CHECKING_DISABLED, 1, 0, 0, 1].map(u16::to_be_bytes).concat();
    let opt = [0, 0, 41, 0x04, 0xd0, 0, 0, 0x80, 0, 0, 0];
    [&header, name.as_wire(), &qtype.0.to_be_bytes(), &[0, 1], &opt].concat()
}

/// What becomes of a query.
enum QueryEnd {
    Reply(Message),
    Deferred(Deferral),
}

/// Asks for the addresses of a name.
fn ask(engine: &mut Engine, name: &str, qtype: Type) -> QueryEnd {
    ask_octets(engine, name, &query(name, qtype))
}

/// Asks a question that has these octets.
fn ask_octets(engine: &mut Engine, name: &str, query: &[u8]) -> QueryEnd {
    let mut buffer = [0; 1232];
    buffer[..query.len()].copy_from_slice(query);
    match engine.answer(NOW, &peer(), &mut buffer, query.len()) {
        Outcome::Reply(len) => QueryEnd::Reply(Message::parse(&buffer[..len]).unwrap()),
        Outcome::Deferred(deferral) => {
            assert_eq!(&buffer[..query.len()], query, "a deferred query is left as it was");
            QueryEnd::Deferred(deferral)
        }
        Outcome::Silence => panic!("there is no reply for {name}"),
    }
}

/// The reply to a query that is not deferred.
fn reply(engine: &mut Engine, name: &str) -> Message {
    match ask(engine, name, Type::A) {
        QueryEnd::Reply(reply) => reply,
        QueryEnd::Deferred(deferral) => panic!("{name} waits: {deferral:?}"),
    }
}

/// What a query for A records waits for.
fn deferral(engine: &mut Engine, name: &str) -> Deferral {
    match ask(engine, name, Type::A) {
        QueryEnd::Reply(reply) => panic!("{name} does not wait: {reply:?}"),
        QueryEnd::Deferred(deferral) => deferral,
    }
}

/// The reply to a query that has waited.
fn resume(engine: &mut Engine, name: &str, fetched: &UpstreamAnswer<'_>) -> Message {
    match resumed(engine, name, fetched) {
        QueryEnd::Reply(reply) => reply,
        QueryEnd::Deferred(deferral) => panic!("{name} waits again: {deferral:?}"),
    }
}

/// What becomes of a query that has waited.
fn resumed(engine: &mut Engine, name: &str, fetched: &UpstreamAnswer<'_>) -> QueryEnd {
    let deferral = deferral(engine, name);
    resumed_octets(engine, &query(name, Type::A), &deferral, fetched)
}

/// What becomes of a query of these octets that has waited.
fn resumed_octets(
    engine: &mut Engine,
    query: &[u8],
    Deferral { history, query: read, .. }: &Deferral,
    fetched: &UpstreamAnswer<'_>,
) -> QueryEnd {
    let mut buffer = [0; 1232];
    buffer[..query.len()].copy_from_slice(query);
    let (buffer, len, peer) = (&mut buffer, query.len(), &peer());
    let waiting = DeferredQuery { query: Some(read), peer, history, buffer, len };
    match engine.resume(NOW, waiting, Resumption::Upstream(fetched)) {
        Outcome::Deferred(deferral) => QueryEnd::Deferred(deferral),
        outcome => QueryEnd::Reply(Message::parse(&buffer[..outcome.reply_bytes()]).unwrap()),
    }
}

/// A reply as text: response code and flags, then each record.
fn text(message: &Message) -> Vec<String> {
    let aa = if message.has(0x0400) { " aa" } else { "" };
    let records = message.records.iter().map(|record| {
        let section = if record.section == Section::Answer { "" } else { "auth " };
        let rdata = zonda_wire::rdata::Presentation { rtype: record.rtype, rdata: &record.rdata };
        format!("{section}{} {} {} {rdata}", record.owner, record.ttl, record.rtype)
    });
    [format!("{}{aa}", message.rcode())].into_iter().chain(records).collect()
}

/// The info code of a reply's extended error.
fn ede(message: &Message) -> Option<u8> {
    let opt = message.opt.as_ref().unwrap();
    opt.options.iter().find(|(code, _)| *code == 15).map(|(_, data)| data[1])
}

/// The name of a target, in wire form and lower case.
fn wire(name: &str) -> Vec<u8> {
    name.parse::<Name>().unwrap().as_wire().to_vec()
}

/// What was fetched for a name.
fn fetched<'a>(name: &'a [u8], (counts, body): ([u16; 3], &'a [u8])) -> UpstreamAnswer<'a> {
    let (rcode, reason, text) = (Rcode::NOERROR, Reason::Forwarded, b"".as_slice());
    let (is_authentic, goes_on) = (false, false);
    UpstreamAnswer { name, rcode, is_authentic, counts, body, goes_on, reason, text }
}

/// A body with one A record of the question's name, with a TTL of 60 s.
const BODY: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x07";
/// A body with an alias of `a` below the question's name and an A record of that, whose TTLs are 50
/// and 20 s, and a signature.
const CHAIN: &[u8] = b"\xc0\x0c\0\x05\0\x01\0\0\0\x32\0\x04\x01a\xc0\x0c\
    \x01a\xc0\x0c\0\x01\0\x01\0\0\0\x14\0\x04\xc0\0\x02\x08\
    \x01a\xc0\x0c\0\x01\0\x01\0\0\0\x14\0\x04\xc0\0\x02\x09";
/// A body with an alias of `home.example`, with a TTL of 50 s.
const BACK: &[u8] = b"\xc0\x0c\0\x05\0\x01\0\0\0\x32\0\x0e\x04home\x07example\0";

/// A body with an alias of `www.sub.example`, which is delegated, with a TTL of 50 s.
const AWAY: &[u8] = b"\xc0\x0c\0\x05\0\x01\0\0\0\x32\0\x11\x03www\x03sub\x07example\0";

/// A body with an alias of `short.example`, with a TTL of 50 s.
const TO_ALIAS: &[u8] = b"\xc0\x0c\0\x05\0\x01\0\0\0\x32\0\x0f\x05short\x07example\0";

/// A cache, and what puts answers into it.
struct KeptAnswers(Arc<Cache>);

impl KeptAnswers {
    fn new() -> Self {
        Self(Arc::new(Cache::new(1 << 20)))
    }

    /// Keeps an answer for the addresses of a name, which lives for a minute from the second 0 on.
    fn keep(self, source: u32, name: &str, kind: Kind, answer: ([u16; 3], &[u8])) -> Self {
        self.keep_for(source, name, (kind, None), answer, 60)
    }

    fn keep_for(
        self,
        source: u32,
        name: &str,
        (kind, onward): (Kind, Option<Onward>),
        (counts, body): ([u16; 3], &[u8]),
        ttl_secs: u32,
    ) -> Self {
        let name = LookupName::new(&wire(name), SEED);
        let flags = if kind == Kind::NxDomain { 3 } else { 0 };
        let answer = Answer { kind, flags, onward, ede: None, counts, body };
        let lifetime = Lifetime { now_secs: 0, ttl_secs, stale_secs: 3600 };
        self.0.insert(&key(source, &name), &answer, lifetime).unwrap();
        self
    }
}

/// Under which the addresses of a target are kept.
fn key(source: u32, name: &LookupName) -> Key<'_> {
    let (dnssec_ok, checking_disabled, variant) = (false, false, Variant::default());
    let (qtype, qclass) = (Type::A, Class::IN);
    let (name, hash) = (name.as_wire(), name.hash(0));
    Key { name, hash, qtype, qclass, source, dnssec_ok, checking_disabled, variant }
}

/// An empty cache.
fn no_cache() -> Arc<Cache> {
    KeptAnswers::new().0
}

#[test]
fn a_query_waits_for_the_target_whatever_its_client_may_ask_for() {
    for (upstreams, group) in
        [(Upstreams::OfAllNames, ALL), (Upstreams::Resolver, RESOLVER), (Upstreams::Both, RESOLVER)]
    {
        let mut engine = engine(upstreams, &no_cache());
        let target = wire("www.example.net");
        let hash = LookupName::new(&target, SEED).hash(0);
        for name in ["example", "short.example", "x.any.example", "chain.example", "CNAME.example"]
        {
            let it = deferral(&mut engine, name);
            assert_eq!((it.to, it.name_hash), (To::Forward(group), hash), "{name}");
            let expected = Some(Checkpoint::AliasTarget(target.clone().into()));
            assert_eq!(it.history.checkpoint, expected, "{name}");
        }
        let below = deferral(&mut engine, "below.example").history.checkpoint;
        assert_eq!(below.unwrap().target(), Some(&*wire("www.sub.example")), "it is delegated");
    }
}

#[test]
fn a_query_waits_where_a_dname_leads_to_the_target() {
    let (cache, target) = (no_cache(), wire("x.example.net"));
    let mut engine = engine(Upstreams::Resolver, &cache);
    let it = deferral(&mut engine, "d.example").history.checkpoint;
    assert_eq!(it, Some(Checkpoint::AliasTarget(target.clone().into())));
    let one = fetched(&target, ([1, 0, 0], BODY));
    let expected = ["NOERROR aa", "d.example. 60 A 192.0.2.7"];
    assert_eq!(text(&resume(&mut engine, "d.example", &one)), expected);
    let kept =
        KeptAnswers(cache).keep(RESOLVER, "x.example.net", Kind::Positive, ([1, 0, 0], BODY));
    let mut engine = self::engine(Upstreams::Resolver, &kept.0);
    assert_eq!(text_of(&mut engine, "d.example")[1], "d.example. 50 A 192.0.2.7");
}

#[test]
fn a_query_waits_where_a_dname_leads_to_the_alias_record() {
    let mut engine = engine(Upstreams::Resolver, &no_cache());
    let target = wire("www.example.net");
    let one = fetched(&target, ([1, 0, 0], BODY));
    for name in ["x.in-dn.example", "to-dn.example"] {
        let it = deferral(&mut engine, name).history.checkpoint;
        assert_eq!(it, Some(Checkpoint::AliasTarget(target.clone().into())), "{name}");
        let reply = text(&resume(&mut engine, name, &one));
        assert_eq!(reply.last().unwrap(), "x.hosts.example. 60 A 192.0.2.7", "{name}");
    }
}

/// An engine in whose zone pools choose CNAME records: `away` has that of a name outside, `home` of
/// the apex, which has an ALIAS record, and `any` of eight names outside.
fn engine_with_pools() -> Engine {
    let (text_of_zone, apex) = (
        "@ 300 SOA ns host 1 2 3 4 60\n@ 300 NS ns\n\
        to-pool 300 ALIAS away\nto-any 300 ALIAS any\n@ 300 ALIAS www.example.net.\n",
        "example".parse().unwrap(),
    );
    let (path, options) = (Path::new("zone"), file::Options::default());
    let (records, _) = file::read_text(text_of_zone.as_bytes(), path, &apex, &options);
    let zone = build(&apex, &records, SEED).unwrap();
    let pool = |targets: &[&str]| {
        let rdatas = targets.iter().map(|target| Some(wire(target).into_boxed_slice()));
        let member = |identity| Member { identity, weight: 1, priority: 1, pool: None, site: None };
        let pool = Pool {
            members: (0..targets.len() as u64).map(member).collect(),
            filters: Vec::new(),
            order: Order::Weighted,
            answers: Answers::Some(1),
            when_all_down: WhenAllDown::ServFail,
            records: vec![Records { rtype: Type::CNAME, rdatas: rdatas.collect() }],
        };
        Arc::new(pool.compile(&vec![MemberState::UP; targets.len()], 30, None))
    };
    let (zone_name, rtype) = (apex.clone(), Type::CNAME);
    let set = |name: &str, pool| {
        let (name, zone) = (name.parse().unwrap(), zone_name.clone());
        SteeredSet { name, zone, rtype, pool }
    };
    let names = [set("away.example", 0), set("home.example", 1), set("any.example", 2)];
    let names = Arc::new(SteeredNames::new(&names, SEED));
    let eight = ["a.test", "b.test", "c.test", "d.test", "e.test", "f.test", "g.test", "h.test"];
    let pools = vec![pool(&["x.example.net"]), pool(&["example"]), pool(&eight)].into();
    let steering = Some(Arc::new(Steering { names, pools, labels: None }));
    engine_steered(zone, Upstreams::Resolver, &no_cache(), steering)
}

#[test]
fn a_query_waits_for_what_a_pool_leads_to_before_or_behind_an_alias_record() {
    let mut engine = engine_with_pools();
    let alias = "home.example. 30 CNAME example.";
    for (name, target, expected) in [
        ("to-pool.example", "x.example.net", vec!["to-pool.example. 30 A 192.0.2.7"]),
        ("home.example", "www.example.net", vec![alias, "example. 60 A 192.0.2.7"]),
    ] {
        let it = deferral(&mut engine, name).history.checkpoint;
        assert_eq!(it, Some(Checkpoint::AliasTarget(wire(target).into())), "{name}");
        let target = wire(target);
        let one = fetched(&target, ([1, 0, 0], BODY));
        let expected = [&["NOERROR aa"], &expected[..]].concat();
        assert_eq!(text(&resume(&mut engine, name, &one)), expected);
    }
}

#[test]
fn a_pool_chooses_the_same_alias_when_the_query_has_waited_for_it() {
    let mut engine = engine_with_pools();
    for id in 0..32 {
        let mut query = query("to-any.example", Type::A);
        query[1] = id;
        let QueryEnd::Deferred(first) = ask_octets(&mut engine, "to-any", &query) else {
            panic!("it does not wait");
        };
        let target = first.history.checkpoint.as_ref().and_then(Checkpoint::target).unwrap();
        let one = fetched(target, ([1, 0, 0], BODY));
        let QueryEnd::Reply(reply) = resumed_octets(&mut engine, &query, &first, &one) else {
            panic!("it waits again");
        };
        assert_eq!(text(&reply), ["NOERROR aa", "to-any.example. 30 A 192.0.2.7"]);
    }
}

#[test]
fn a_query_that_cannot_wait_is_told_so() {
    let mut engine = engine_with_pools();
    let mut stub = query("home.example", Type::A);
    stub[2] |= 1; // RD
    let QueryEnd::Deferred(first) = ask_octets(&mut engine, "home.example", &stub) else {
        panic!("it does not wait");
    };
    let other = wire("former.example.net");
    let one = fetched(&other, ([1, 0, 0], BODY));
    let QueryEnd::Reply(reply) = resumed_octets(&mut engine, &stub, &first, &one) else {
        panic!("a reply that has begun cannot wait");
    };
    assert_eq!(&*text(&reply)[0], "SERVFAIL aa");
    let options = reply.opt.unwrap().options;
    let told = String::from_utf8_lossy(&options[0].1[2..]);
    assert!(told.contains("cannot wait"), "{told}");
}

#[test]
fn without_upstreams_a_target_outside_is_a_failure_that_is_told() {
    let mut engine = engine(Upstreams::None, &no_cache());
    for name in ["example", "below.example"] {
        let reply = reply(&mut engine, name);
        assert_eq!((text(&reply), ede(&reply)), (vec!["SERVFAIL".to_owned()], Some(0)), "{name}");
    }
}

#[test]
fn fetched_addresses_are_answered_under_the_name_asked_for_with_the_least_ttl() {
    let mut engine = engine(Upstreams::Resolver, &no_cache());
    let target = wire("www.example.net");
    let one = fetched(&target, ([1, 0, 0], BODY));
    let alias = "cname.example. 300 CNAME example.";
    for (name, expected) in [
        ("Example", vec!["NOERROR aa", "Example. 60 A 192.0.2.7"]),
        ("short.example", vec!["NOERROR aa", "short.example. 40 A 192.0.2.7"]),
        ("chain.example", vec!["NOERROR aa", "chain.example. 40 A 192.0.2.7"]),
        ("x.any.example", vec!["NOERROR aa", "x.any.example. 60 A 192.0.2.7"]),
        ("cname.example", vec!["NOERROR aa", alias, "example. 60 A 192.0.2.7"]),
    ] {
        assert_eq!(text(&resume(&mut engine, name, &one)), expected);
    }
    let chain = fetched(&target, ([3, 0, 0], CHAIN));
    let expected = ["NOERROR aa", "example. 20 A 192.0.2.8", "example. 20 A 192.0.2.9"];
    assert_eq!(text(&resume(&mut engine, "example", &chain)), expected);
}

#[test]
fn a_target_without_addresses_is_nodata_with_the_soa_record_of_the_zone() {
    let mut engine = engine(Upstreams::Resolver, &no_cache());
    let target = wire("www.example.net");
    let soa = "auth example. 60 SOA ns.example. host.example. 1 2 3 4 60";
    for rcode in [Rcode::NOERROR, Rcode::NXDOMAIN] {
        let none = UpstreamAnswer { rcode, ..fetched(&target, ([0; 3], &[])) };
        assert_eq!(text(&resume(&mut engine, "example", &none)), ["NOERROR aa", soa]);
    }
}

#[test]
fn a_failure_of_upstreams_says_why() {
    let mut engine = engine(Upstreams::Resolver, &no_cache());
    let failure = UpstreamAnswer {
        rcode: Rcode::SERVFAIL,
        reason: Reason::UpstreamTimeout,
        text: b"192.0.2.1: timed out",
        ..fetched(&[], ([0; 3], &[]))
    };
    let reply = resume(&mut engine, "example", &failure);
    assert_eq!(text(&reply), ["SERVFAIL"]);
    let no_reachable_authority = (15, b"\0\x16192.0.2.1: timed out".to_vec()); // rfc8914#4.23
    assert_eq!(reply.opt.unwrap().options, [no_reachable_authority]);
}

#[test]
fn an_answer_for_another_target_than_the_present_one_is_a_failure() {
    let mut engine = engine(Upstreams::Resolver, &no_cache());
    let other = wire("former.example.net");
    let one = fetched(&other, ([1, 0, 0], BODY));
    assert_eq!(text(&resume(&mut engine, "example", &one)), ["SERVFAIL"]);
}

#[test]
fn cached_addresses_are_given_at_once_and_aged() {
    for source in [ALL, RESOLVER] {
        let name = "www.example.net";
        let kept = KeptAnswers::new().keep(source, name, Kind::Positive, ([1, 0, 0], BODY));
        let upstreams = if source == ALL { Upstreams::OfAllNames } else { Upstreams::Both };
        let mut engine = engine(upstreams, &kept.0);
        let expected = ["NOERROR aa", "example. 50 A 192.0.2.7"];
        for _ in 0..3 {
            assert_eq!(text(&reply(&mut engine, "example")), expected);
        }
        let alias = "cname.example. 300 CNAME example.";
        let expected = ["NOERROR aa", alias, "example. 50 A 192.0.2.7"];
        assert_eq!(text(&reply(&mut engine, "cname.example")), expected);
        let QueryEnd::Deferred(_) = ask(&mut engine, "example", Type::AAAA) else {
            panic!("the other type is not cached");
        };
    }
}

#[test]
fn a_cached_denial_of_the_target_is_nodata() {
    let kept = KeptAnswers::new().keep(RESOLVER, "www.example.net", Kind::NxDomain, ([0; 3], &[]));
    let reply = text(&reply(&mut engine(Upstreams::Resolver, &kept.0), "example"));
    assert_eq!((&*reply[0], reply.len()), ("NOERROR aa", 2));
}

#[test]
fn a_denial_lives_no_longer_than_that_of_the_target() {
    // A SOA record of the root with a TTL of 15 s and a minimum of 9.
    let body = b"\0\0\x06\0\x01\0\0\0\x0f\0\x16\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\
        \0\0\0\x04\0\0\0\x09";
    let denial = ([0, 1, 0], &body[..]);
    let kept = KeptAnswers::new().keep(RESOLVER, "www.example.net", Kind::NxDomain, denial);
    let rest = "SOA ns.example. host.example. 1 2 3 4 60";
    let of_ttl = |ttl| ["NOERROR aa".to_owned(), format!("auth example. {ttl} {rest}")];
    assert_eq!(text_of(&mut engine(Upstreams::Resolver, &kept.0), "example"), of_ttl(5));
    let target = wire("www.example.net");
    let mut engine = engine(Upstreams::Resolver, &no_cache());
    assert_eq!(text(&resume(&mut engine, "example", &fetched(&target, denial))), of_ttl(9));
    let none = fetched(&target, ([0; 3], &[]));
    assert_eq!(text(&resume(&mut engine, "short.example", &none)), of_ttl(40), "the record's own");
}

#[test]
fn expired_addresses_are_not_given_before_upstreams_were_asked() {
    let kept = (Kind::Positive, None);
    let kept = KeptAnswers::new().keep_for(RESOLVER, "www.example.net", kept, ([1, 0, 0], BODY), 5);
    deferral(&mut engine(Upstreams::Resolver, &kept.0), "example");
}

#[test]
fn upstreams_that_have_just_failed_are_not_asked_and_the_last_addresses_are_given() {
    let kept = (Kind::Positive, None);
    let kept = KeptAnswers::new().keep_for(RESOLVER, "www.example.net", kept, ([1, 0, 0], BODY), 5);
    let fail = |name: &str| {
        let name = LookupName::new(&wire(name), SEED);
        let failure = Failure { flags: Rcode::SERVFAIL.0, ede: None, text: b"why" };
        let limits = Policy::default().failure;
        kept.0.insert_failure(&key(RESOLVER, &name), failure, limits, 10);
    };
    fail("www.example.net");
    fail("www.sub.example");
    let mut engine = engine(Upstreams::Resolver, &kept.0);
    let stale = reply(&mut engine, "example");
    assert_eq!(text(&stale), ["NOERROR aa", "example. 30 A 192.0.2.7"], "stale-ttl");
    assert_eq!(ede(&stale), Some(3), "Stale Answer");
    let failed = reply(&mut engine, "below.example");
    assert_eq!((text(&failed), ede(&failed)), (vec!["SERVFAIL".to_owned()], Some(13)));
}

#[test]
fn an_answer_that_leads_back_into_a_zone_goes_on_there() {
    let (cache, target) = (no_cache(), wire("home-of.example.net"));
    let mut fresh = engine(Upstreams::Resolver, &cache);
    let leads_back = UpstreamAnswer { goes_on: true, ..fetched(&target, ([1, 0, 0], BACK)) };
    let expected = ["NOERROR aa", "back.example. 50 A 192.0.2.10"];
    assert_eq!(text(&resume(&mut fresh, "back.example", &leads_back)), expected);
    let kept = (Kind::Positive, Some(Onward::Here));
    let kept =
        KeptAnswers::new().keep_for(RESOLVER, "home-of.example.net", kept, ([1, 0, 0], BACK), 60);
    let mut warm = engine(Upstreams::Resolver, &kept.0);
    let expected = ["NOERROR aa", "back.example. 40 A 192.0.2.10"];
    assert_eq!(text(&reply(&mut warm, "back.example")), expected);
}

#[test]
fn an_answer_of_upstreams_that_leads_to_an_alias_record_waits_for_its_target() {
    let (own, target) = (wire("fwd.example.net"), wire("www.example.net"));
    let mut stub = query("fwd.example.net", Type::A);
    let opt = stub.len() - 4;
    (stub[2], stub[3], stub[opt]) = (1, 0, 0); // RD, but neither CD nor DO
    let keep = |it: KeptAnswers| {
        let kept = (Kind::Positive, Some(Onward::Here));
        it.keep_for(ALL, "fwd.example.net", kept, ([1, 0, 0], TO_ALIAS), 60)
    };
    let waits = |end| match end {
        QueryEnd::Reply(reply) => panic!("it does not wait: {reply:?}"),
        QueryEnd::Deferred(deferral) => deferral,
    };
    let ends = |end| match end {
        QueryEnd::Reply(reply) => text(&reply),
        QueryEnd::Deferred(deferral) => panic!("it waits: {deferral:?}"),
    };
    let of_target = Some(Checkpoint::AliasTarget(target.clone().into()));
    let alias = "fwd.example.net. 40 CNAME short.example.";
    let expected = ["NOERROR", alias, "short.example. 40 A 192.0.2.7"];
    let one = fetched(&target, ([1, 0, 0], BODY));

    let cache = no_cache();
    let mut engine = engine(Upstreams::Open, &cache);
    let first = waits(ask_octets(&mut engine, "fwd", &stub));
    assert_eq!(first.to, To::Forward(ALL));
    let kept = keep(KeptAnswers(cache)); // as the forwarder does
    let leads_here = UpstreamAnswer { goes_on: true, ..fetched(&own, ([1, 0, 0], TO_ALIAS)) };
    let second = waits(resumed_octets(&mut engine, &stub, &first, &leads_here));
    assert_eq!((second.to, &second.history.checkpoint), (To::Forward(RESOLVER), &of_target));
    assert_eq!(ends(resumed_octets(&mut engine, &stub, &second, &one)), expected, "both fetched");

    let third = waits(ask_octets(&mut engine, "fwd", &stub));
    assert_eq!((third.to, &third.history.checkpoint), (To::Forward(RESOLVER), &of_target));
    assert_eq!(ends(resumed_octets(&mut engine, &stub, &third, &one)), expected, "one cached");
    let (rcode, reason) = (Rcode::SERVFAIL, Reason::UpstreamTimeout);
    let failure = UpstreamAnswer { rcode, reason, ..fetched(&[], ([0; 3], &[])) };
    assert_eq!(ends(resumed_octets(&mut engine, &stub, &third, &failure))[0], "SERVFAIL");

    kept.keep(RESOLVER, "www.example.net", Kind::Positive, ([1, 0, 0], BODY));
    assert_eq!(ends(ask_octets(&mut engine, "fwd", &stub)), expected, "both cached");
}

#[test]
fn an_answer_that_leads_to_a_name_which_is_delegated_has_the_query_wait_once_more() {
    let cache = no_cache();
    let mut engine = engine(Upstreams::Resolver, &cache);
    let (first, second) = (wire("away.example.net"), wire("www.sub.example"));
    let leads_away = UpstreamAnswer { goes_on: true, ..fetched(&first, ([1, 0, 0], AWAY)) };
    let QueryEnd::Deferred(again) = resumed(&mut engine, "twice.example", &leads_away) else {
        panic!("the delegated name is to be fetched");
    };
    assert_eq!(again.history.checkpoint.unwrap().target(), Some(&*second));
    let end = fetched(&second, ([1, 0, 0], BODY));
    let lost = text(&resume(&mut engine, "twice.example", &end));
    assert_eq!(lost, ["SERVFAIL"], "without the first answer it would wait for ever");
    let kept = (Kind::Positive, Some(Onward::Here));
    let kept =
        KeptAnswers::new().keep_for(RESOLVER, "away.example.net", kept, ([1, 0, 0], AWAY), 60);
    let mut engine = self::engine(Upstreams::Resolver, &kept.0);
    let expected = ["NOERROR aa", "twice.example. 40 A 192.0.2.7"];
    assert_eq!(text(&resume(&mut engine, "twice.example", &end)), expected);
}

#[test]
fn a_cached_answer_that_leads_to_other_upstreams_is_put_together_by_the_forwarder() {
    let kept = (Kind::Positive, Some(Onward::Others));
    let kept = KeptAnswers::new().keep_for(ALL, "www.example.net", kept, ([1, 0, 0], BACK), 60);
    deferral(&mut engine(Upstreams::OfAllNames, &kept.0), "example");
}

#[test]
fn a_record_that_an_edit_adds_is_followed_and_one_that_it_removes_is_not() {
    let apex: Name = "example".parse().unwrap();
    let text = b"$TTL 300\n@ SOA ns host 1 2 3 4 60\n@ NS ns\nns A 192.0.2.1\n@ ALIAS ns\n";
    let options = file::Options::default();
    let (records, _) = file::read_text(text, Path::new("zone"), &apex, &options);
    let zone = build(&apex, &records, SEED).unwrap();
    let new: Name = "new.example".parse().unwrap();
    let data = vec![wire("ns.example").into()];
    let sets = vec![
        SetChange::Put { owner: new, rtype: Type::ALIAS, ttl: 60, data },
        SetChange::Remove { owner: apex, rtype: Type::ALIAS },
    ];
    let serial = Serial::Bump(SerialPolicy::Increment);
    let (zone, _) = zone.with(&ChangeSet { sets, serial }).unwrap();
    let mut engine = engine_of(zone, Upstreams::None, &no_cache());
    let expected = ["NOERROR aa", "new.example. 60 A 192.0.2.1"];
    assert_eq!(text_of(&mut engine, "new.example"), expected);
    assert_eq!(text_of(&mut engine, "example")[1..].len(), 1, "NODATA has a SOA record alone");
    assert!(text_of(&mut engine, "example")[1].contains(" SOA "));
}

/// The reply to a query that is not deferred, as text.
fn text_of(engine: &mut Engine, name: &str) -> Vec<String> {
    text(&reply(engine, name))
}
