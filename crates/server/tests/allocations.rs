//! The answer path over UDP, from the receive call to the send call, allocates nothing.
#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::net::UdpSocket as Client;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use zonda_engine::counters::Counters;
use zonda_engine::handlers::{Asked, Draft, Handler, Handlers, Route};
use zonda_engine::stage::cookie::Secrets;
use zonda_engine::stage::rate::{RateSettings, RateTable};
use zonda_engine::zones::{Source, ZoneEntry, ZoneTable};
use zonda_engine::{Batch, Deferral, Engine, Message, Now, Peer, Settings, Snapshot, Transport};
use zonda_netio::{DatagramBatch, UdpOptions, UdpSocket};
use zonda_wire::{Name, Rcode, Section, Type};
use zonda_zone::{HashSeed, build, file};

const SEED: HashSeed = HashSeed(1);

/// A batch of datagrams as the engine reads it.
struct Received(DatagramBatch);

impl Batch for Received {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&mut self, index: usize) -> Message<'_> {
        let datagram = self.0.get(index);
        let peer = Peer { address: datagram.peer, transport: Transport::Udp, listener: 0 };
        Message { peer, buffer: datagram.buffer, len: datagram.len }
    }

    fn defer(&mut self, _: usize, _: Deferral) {
        unreachable!("all zones have data");
    }
}

/// A zone with an answer of every kind.
fn snapshot(settings: Settings, routes: Vec<Route<Handler>>) -> Arc<ArcSwap<Snapshot>> {
    let text = "$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\nns AAAA 2001:db8::1\n\
                www CNAME ns\n*.wild A 192.0.2.2\n@ MX 10 ns\ncut NS ns.cut\nns.cut A 192.0.2.3\n\
                old DNAME wild\n$GENERATE 1-50 many A 192.0.2.$\n";
    let apex: Name = "example.org".parse().unwrap();
    let options = file::Options::default();
    let (records, errors) = file::read_text(text.as_bytes(), Path::new("zone"), &apex, &options);
    assert!(!errors.has_errors(), "{errors}");
    let source = Source::Data(Arc::new(build(&apex, &records, SEED).unwrap()));
    let entry = Arc::new(ZoneEntry { apex, source, access: None, number: 0 });
    let zones = ZoneTable::new(vec![entry], SEED);
    let handlers = Some(routes).filter(|routes| !routes.is_empty());
    let handlers = handlers.map(|routes| Arc::new(Handlers::new(routes, Vec::new(), None, SEED)));
    Arc::new(ArcSwap::from_pointee(Snapshot { zones, handlers, settings, generation: 1 }))
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
fn allocations_of(settings: Settings, routes: Vec<Route<Handler>>) -> u64 {
    let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &UdpOptions::default()).unwrap();
    let client = Client::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    client.connect(socket.address()).unwrap();
    let mut engine = Engine::new(snapshot(settings, routes), Arc::<Counters>::default());
    let mut batch = Received(DatagramBatch::new(64, 4096));
    let queries = queries();
    let mut answered = 0;
    let mut round = |unix_secs| {
        queries.iter().for_each(|query| assert!(client.send(query).is_ok()));
        let mut left = queries.len();
        let allocated = allocation_counter::measure(|| {
            while left > 0 {
                left -= batch.0.receive(&socket).unwrap();
                let now = Now { monotonic_nanos: u64::from(unix_secs) * 1_000_000, unix_secs };
                engine.answer_batch(now, &mut batch);
                answered += batch.0.send(&socket).replies;
            }
        });
        allocated.count_total
    };
    round(1); // warms up what the runtime and arc-swap set up for a thread once
    let allocated = (2..200).map(&mut round).sum();
    assert!(answered > 199 * 11, "only {answered} answers");
    allocated
}

#[test]
fn answering_allocates_nothing() {
    assert_eq!(allocations_of(Settings::default(), Vec::new()), 0);
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
    assert_eq!(allocations_of(settings, Vec::new()), 0);
}

#[test]
fn answering_with_code_in_the_worker_allocates_nothing() {
    let code = |_: &Asked<'_>, draft: &mut Draft| {
        let fixed = (Type::A, 60);
        let pushed = draft.push(Section::Answer, &[], fixed, &[192, 0, 2, 1]);
        draft.reply(if pushed.is_ok() { Rcode::NOERROR } else { Rcode::SERVFAIL });
    };
    let handler = Handler::Here(Arc::new(code));
    let route = Route { pattern: "*.example.org/A".parse().unwrap(), handler };
    assert_eq!(allocations_of(Settings::default(), vec![route]), 0);
}
