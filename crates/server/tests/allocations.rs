//! The answer path over UDP, from the receive call to the send call, allocates nothing.
#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::net::UdpSocket as Client;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use zonda_cache::{Answer, Cache, DENIES_BELOW, Key, Kind, Lifetime, Onward};
use zonda_config::{Config, Flags};
use zonda_engine::code::{Handler, HandlerQuery, HandlerReply, Handlers, Route};
use zonda_engine::counters::Counters;
use zonda_engine::gate::cookie::Secrets;
use zonda_engine::gate::rate::{RateSettings, RateTable};
use zonda_engine::zones::{Forward, Source, ZoneEntry, ZoneTable};
use zonda_engine::{Batch, Deferral, Engine, Message, Now, Peer, Settings, Snapshot, Transport};
use zonda_netio::{DatagramBatch, UdpOptions, UdpSocket};
use zonda_wire::{Class, Name, Rcode, Section, Type};
use zonda_zone::{HashSeed, LookupName, build, file};

const SEED: HashSeed = HashSeed(1);

/// A batch of datagrams as the engine reads it.
struct ReceivedBatch(DatagramBatch);

impl Batch for ReceivedBatch {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&mut self, index: usize) -> Message<'_> {
        let datagram = self.0.get(index);
        let peer = Peer::new(datagram.peer, Transport::Udp, 0);
        Message { peer, buffer: datagram.buffer, len: datagram.len }
    }

    fn defer(&mut self, _: usize, _: Deferral) {
        unreachable!("all zones have data, or their answers are kept");
    }
}

/// A zone with an answer of every kind, perhaps another one, and code for some names.
fn snapshot(
    settings: Settings,
    other: Option<Source>,
    routes: Vec<Route<Handler>>,
) -> Arc<ArcSwap<Snapshot>> {
    let text = "$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\nns AAAA 2001:db8::1\n\
                www CNAME ns\n*.wild A 192.0.2.2\n@ MX 10 ns\ncut NS ns.cut\nns.cut A 192.0.2.3\n\
                local ALIAS www\nlb ALIAS www.example.net.\nback ALIAS alias.example.net.\n\
                none ALIAS nothing.example.net.\nvia CNAME lb\nold DNAME wild\n\
                to-code CNAME code.example.net.\n\
                $GENERATE 1-50 many A 192.0.2.$\n";
    let apex: Name = "example.org".parse().unwrap();
    let options = file::Options::default();
    let (records, errors) = file::read_text(text.as_bytes(), Path::new("zone"), &apex, &options);
    assert!(!errors.has_errors(), "{errors}");
    let source = Source::Data(Arc::new(build(&apex, &records, SEED).unwrap()));
    let own = ZoneEntry::new(apex, source, None, 0);
    let root = |source| ZoneEntry::new(Name::root(), source, None, 1);
    let entries = [own].into_iter().chain(other.map(root)).map(Arc::new);
    let zones = ZoneTable::new(entries.collect(), SEED);
    let handlers = Some(routes).filter(|routes| !routes.is_empty());
    let handlers = handlers.map(|routes| Arc::new(Handlers::new(routes, Vec::new(), None, SEED)));
    Arc::new(ArcSwap::from_pointee(Snapshot {
        handlers,
        settings: Arc::new(settings),
        ..Snapshot::of(zones)
    }))
}

/// Queries of every kind: with and without EDNS, answered, denied, refused, malformed.
fn queries() -> Vec<Vec<u8>> {
    let questions = [
        ("ns.example.org", Type::A),
        ("www.example.org", Type::AAAA),
        ("x.wild.example.org", Type::A),
        ("no.example.org", Type::A),
        ("ns.example.org", Type::TXT),
        ("a.cut.example.org", Type::A),
        ("a.old.example.org", Type::A),
        ("many.example.org", Type::A),
        ("example.org", Type::MX),
        ("example.org", Type::ANY),
        ("example.net", Type::A),
    ];
    let mut queries = vec![vec![1, 2, 0, 0, 0, 1]];
    queries.extend(queries_for(&questions));
    queries
}

/// Queries with and without EDNS.
fn queries_for(questions: &[(&str, Type)]) -> Vec<Vec<u8>> {
    let mut queries = Vec::new();
    for (name, rtype) in questions {
        let name: Name = name.parse().unwrap();
        let mut query = vec![1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        query.extend(name.as_wire());
        query.extend(rtype.0.to_be_bytes());
        query.extend([0, 1]);
        queries.push(query.clone());
        query[11] = 1;
        query.extend([0, 0, 41, 4, 208, 0, 0, 128, 0, 0, 12, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]);
        queries.push(query);
    }
    queries
}

/// Sends all queries to an engine behind a socket; returns what answering them allocated.
fn allocations_of(snapshot: Arc<ArcSwap<Snapshot>>, queries: &[Vec<u8>]) -> u64 {
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &UdpOptions::default()).unwrap();
    let client = Client::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    client.connect(socket.address()).unwrap();
    let mut engine = Engine::new(snapshot, Arc::<Counters>::default());
    let mut batch = ReceivedBatch(DatagramBatch::new(64, 4096));
    let mut answered = 0;
    let mut round = |unix_secs| {
        queries.iter().for_each(|query| assert!(client.send(query).is_ok()));
        let mut left = queries.len();
        let allocated = allocation_counter::measure(|| {
            while left > 0 {
                left -= batch.0.receive(&socket).unwrap();
                let now = Now::new(u64::from(unix_secs) * 1_000_000, unix_secs);
                engine.answer_batch(now, &mut batch);
                answered += batch.0.send(&socket).replies;
            }
        });
        allocated.count_total
    };
    round(1); // warms up what the runtime and arc-swap set up for a thread once
    let allocated = (2..200).map(&mut round).sum();
    assert!(answered > 199 * (queries.len() / 2), "only {answered} answers");
    allocated
}

#[test]
fn answering_allocates_nothing() {
    assert_eq!(allocations_of(snapshot(Settings::default(), None, Vec::new()), &queries()), 0);
}

#[test]
fn answering_with_every_option_on_allocates_nothing() {
    let rate = RateSettings::new(10_000, 15, 2, (24, 56), Vec::new(), RateTable::new(1024));
    let settings = Settings {
        cookies: Some(Secrets { current: [1; 16], accepted: vec![[2; 16]] }),
        rate: Some(rate),
        rotate: true,
        cross_zone: true,
        nsid: Some(b"here".as_slice().into()),
        ..Settings::default()
    };
    assert_eq!(allocations_of(snapshot(settings, None, Vec::new()), &queries()), 0);
}

#[test]
fn a_rule_that_changes_flags_alone_allocates_nothing() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flags-allocations.toml");
    let rules = "version = 1\n[[rewrite]]\nset-flags = [\"RA\"]\nstop = false\n\
                 [[rewrite]]\nzone = \"wild.example.org\"\nqtype = \"A\"\nclear-flags = [\"AA\"]\n";
    std::fs::write(&file, rules).unwrap();
    let config = Config::load(Some(&file), [], &Flags::default());
    let rewrites = config.unwrap().config.rewrites;
    assert!(rewrites.is_some());
    let settings = Settings { rewrites, ..Settings::default() };
    assert_eq!(allocations_of(snapshot(settings, None, Vec::new()), &queries()), 0);
}

#[test]
fn answering_with_code_in_the_worker_allocates_nothing() {
    let code = |_: &HandlerQuery<'_>, draft: &mut HandlerReply| {
        let fixed = (Type::A, 60);
        let pushed = draft.push(Section::Answer, &[], fixed, &[192, 0, 2, 1]);
        draft.reply(if pushed.is_ok() { Rcode::NOERROR } else { Rcode::SERVFAIL });
    };
    let handler = Handler::Here(Arc::new(code));
    let route = Route { pattern: "*.example.org/A".parse().unwrap(), handler };
    let snapshot = snapshot(Settings::default(), None, vec![route]);
    assert_eq!(allocations_of(snapshot, &queries()), 0);
}

#[test]
fn answering_with_code_for_the_targets_of_aliases_allocates_nothing() {
    let here = |pattern: &str, rtype, rdata: Vec<u8>| {
        let code = move |_: &HandlerQuery<'_>, draft: &mut HandlerReply| {
            let pushed = draft.push(Section::Answer, &[], (rtype, 60), &rdata);
            draft.reply(if pushed.is_ok() { Rcode::NOERROR } else { Rcode::SERVFAIL });
        };
        Route { pattern: pattern.parse().unwrap(), handler: Handler::Here(Arc::new(code)) }
    };
    let target: Name = "more.example.net".parse().unwrap();
    let routes = vec![
        here("code.example.net", Type::CNAME, target.as_wire().to_vec()),
        here("more.example.net", Type::A, vec![192, 0, 2, 1]),
    ];
    let snapshot = snapshot(Settings::default(), None, routes);
    let questions = ["to-code.example.org", "code.example.net", "more.example.net"];
    let queries = queries_for(&questions.map(|name| (name, Type::A)));
    assert_eq!(allocations_of(snapshot, &queries), 0);
}

/// A cached answer of an upstream: the name, the kind of answer, flags, the records of each
/// section, and their octets.
type ForwardedAnswer<'k> = (&'k str, Kind, u16, [u16; 3], &'k [u8]);

/// An alias of a name in zone data.
const ALIAS: &[u8] = b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x10\x02ns\x07example\x03org\0";

/// A forwarded root zone, with these answers in the cache.
fn forwarded(answers: &[ForwardedAnswer<'_>]) -> Source {
    let cache = Arc::new(Cache::new(1 << 20));
    for &(name, kind, flags, counts, body) in answers {
        let name = LookupName::new(name.parse::<Name>().unwrap().as_wire(), SEED);
        for dnssec_ok in [false, true] {
            let key = Key {
                name: name.as_wire(),
                hash: name.hash(0),
                qtype: Type::A,
                qclass: Class::IN,
                source: 7,
                dnssec_ok,
                checking_disabled: false,
                variant: zonda_cache::Variant::default(),
            };
            let answer = Answer {
                kind,
                flags,
                onward: (body == ALIAS).then_some(Onward::Here),
                ede: None,
                counts,
                body,
            };
            let lifetime = Lifetime { now_secs: 0, ttl_secs: 60, stale_secs: 60 };
            cache.insert(&key, &answer, lifetime).unwrap();
        }
    }
    let overlays = Vec::new();
    Source::Forward(Arc::new(Forward {
        number: 7,
        cache,
        options: None,
        nxdomain_cut: true,
        overlays,
    }))
}

#[test]
fn giving_what_is_kept_of_others_allocates_nothing() {
    const A: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x07";
    let source = forwarded(&[
        ("www.example.net", Kind::Positive, 0, [1, 0, 0], A),
        ("mail.example.net", Kind::NoData, 0, [0; 3], b""),
        ("nothing.example.net", Kind::NxDomain, 3 | DENIES_BELOW, [0; 3], b""),
        ("alias.example.net", Kind::Positive, 0, [1, 0, 0], ALIAS),
    ]);
    let queries = queries_for(&[
        ("www.example.net", Type::A),
        ("WWW.example.NET", Type::A),
        ("mail.example.net", Type::A),
        ("nothing.example.net", Type::A),
        ("nothing.example.net", Type::TXT),
        ("below.nothing.example.net", Type::A),
        ("alias.example.net", Type::A),
        ("local.example.org", Type::A),
        ("lb.example.org", Type::A),
        ("via.example.org", Type::A),
        ("back.example.org", Type::A),
        ("none.example.org", Type::A),
    ]);
    assert_eq!(
        allocations_of(snapshot(Settings::default(), Some(source), Vec::new()), &queries),
        0
    );
}
