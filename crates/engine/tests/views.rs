//! Listeners that have zones of their own.
#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::path::Path;
use std::sync::Arc;
use zonda_cache::Cache;
use zonda_engine::zones::{Forward, Source, ZoneEntry, ZoneTable};
use zonda_engine::{
    DeferredQuery, Engine, Now, Outcome, Peer, Reason, Resumption, Settings, Snapshot, To,
    Transport, UpstreamAnswer, Views,
};
use zonda_wire::message::Message;
use zonda_wire::{Name, Rcode, Type};
use zonda_zone::{HashSeed, build, file};

const SEED: HashSeed = HashSeed(1);
const NOW: Now = Now::new(1, 1);

/// A zone of this server.
fn zone(apex: &str, records: &str) -> Arc<ZoneEntry> {
    let apex: Name = apex.parse().unwrap();
    let text = format!("$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\n{records}");
    let options = file::Options::default();
    let (records, _) = file::read_text(text.as_bytes(), Path::new("zone"), &apex, &options);
    let source = Source::Data(Arc::new(build(&apex, &records, SEED).unwrap()));
    Arc::new(ZoneEntry::new(apex, source, None, 0))
}

/// The forwarded root, under a number of its own.
fn forwarded(number: u32) -> Arc<ZoneEntry> {
    let cache = Arc::new(Cache::new(1 << 20));
    let forward =
        Forward { number, cache, options: None, nxdomain_cut: true, overlays: Vec::new() };
    Arc::new(ZoneEntry::new(Name::root(), Source::Forward(Arc::new(forward)), None, 1))
}

/// A snapshot of zones, without views.
fn snapshot(zones: &[&Arc<ZoneEntry>], generation: u64, view: u32) -> Snapshot {
    Snapshot {
        zones: ZoneTable::new(zones.iter().copied().cloned().collect(), SEED),
        handlers: None,
        steering: None,
        settings: Arc::new(Settings { cross_zone: true, ..Settings::default() }),
        generation,
        view,
        views: None,
    }
}

/// An engine whose listeners 0 and 2 have the zones `example` and `example.net`, and listener 1 has
/// `example` and the forwarded root.
fn engine() -> Engine {
    let (example, other) = (
        zone("example", "a A 192.0.2.1\nfar CNAME a.example.net.\n"),
        zone("example.net", "a A 192.0.2.2\n"),
    );
    let root = forwarded(7);
    let views = Views {
        of_listener: Box::new([0, 1, 0]),
        snapshots: Box::new([
            snapshot(&[&example, &other], 1 | 1 << 48, 5),
            snapshot(&[&example, &root], 1 | 2 << 48, 6),
        ]),
        of_closed: None,
    };
    let whole = snapshot(&[&example, &other, &root], 1, 0);
    let whole = Snapshot { views: Some(Box::new(views)), ..whole };
    Engine::new(Arc::new(ArcSwap::from_pointee(whole)), Arc::default())
}

/// A client that asks a listener.
fn peer(listener: u16, transport: Transport) -> Peer {
    Peer::new(([127, 0, 0, 1], 5300).into(), transport, listener)
}

/// The octets of a query.
fn query(name: &str, qtype: Type) -> Vec<u8> {
    let name: Name = name.parse().unwrap();
    let header = [7, 0x0100, 1, 0, 0, 0].map(u16::to_be_bytes).concat();
    [&header, name.as_wire(), &qtype.0.to_be_bytes(), &[0, 1]].concat()
}

/// What a listener answers, in a word: the last octet of each record's data, or the response code;
/// that upstreams are asked, or that a transfer begins.
fn says(engine: &mut Engine, listener: u16, name: &str, qtype: Type) -> String {
    let transport = if qtype == Type::AXFR { Transport::Tcp } else { Transport::Udp };
    let (query, mut buffer) = (query(name, qtype), [0; 1232]);
    buffer[..query.len()].copy_from_slice(&query);
    let peer = peer(listener, transport);
    match engine.answer(NOW, &peer, &mut buffer, query.len()) {
        Outcome::Deferred(deferral) => format!("{:?}", deferral.to),
        outcome => word(&buffer[..outcome.reply_bytes()]),
    }
}

/// A reply in a word.
fn word(octets: &[u8]) -> String {
    let message = Message::parse(octets).unwrap();
    let addresses = message.records.iter().filter(|record| record.rtype == Type::A);
    match addresses.map(|record| record.rdata[3].to_string()).collect::<Vec<_>>().join(" ") {
        none if none.is_empty() => message.rcode().to_string(),
        addresses => addresses,
    }
}

#[test]
fn a_listener_that_is_closed_refuses_all_and_asks_no_upstream_while_all_is_at_the_others() {
    let (example, root) = (zone("example", "a A 192.0.2.1\n"), forwarded(7));
    let views = Views {
        of_listener: Box::new([Views::WHOLE, 0, 9]), // there is no view 9
        snapshots: Box::new([snapshot(&[], 1 | 1 << 48, 5)]),
        of_closed: Some(0),
    };
    let views = Some(Box::new(views));
    let whole = Snapshot { views, ..snapshot(&[&example, &root], 1, 0) };
    let listeners: Vec<u16> = whole.with_listeners().map(|(listener, _)| listener).collect();
    assert_eq!(listeners, [0]);
    let mut engine = Engine::new(Arc::new(ArcSwap::from_pointee(whole)), Arc::default());
    let to = format!("{:?}", To::Forward(7));
    for _ in 0..4 {
        for (listener, name, expected) in [
            (0, "a.example", "1"),
            (1, "a.example", "REFUSED"),
            (0, "a.test", &*to),
            (1, "a.test", "REFUSED"),
            (2, "a.test", "REFUSED"),
            (3, "a.test", "REFUSED"), // which the configuration lacks
        ] {
            assert_eq!(says(&mut engine, listener, name, Type::A), expected, "{listener} {name}");
        }
    }
}

#[test]
fn each_listener_answers_from_the_zones_of_its_view() {
    let mut engine = engine();
    let to = format!("{:?}", To::Forward(7));
    for _ in 0..4 {
        // From the second time on, from the hot table where that has the answer.
        for (listener, expected) in [(0, "2"), (1, &*to), (2, "2"), (u16::MAX, "2")] {
            assert_eq!(says(&mut engine, listener, "a.example.net", Type::A), expected);
        }
        for (listener, expected) in [(0, "REFUSED"), (1, &*to), (2, "REFUSED"), (u16::MAX, &*to)] {
            assert_eq!(says(&mut engine, listener, "a.example.com", Type::A), expected);
        }
        for listener in [0, 1, 2, u16::MAX] {
            assert_eq!(says(&mut engine, listener, "a.example", Type::A), "1");
        }
    }
}

#[test]
fn an_alias_leads_into_another_zone_where_the_listener_has_that() {
    let mut engine = engine();
    for _ in 0..4 {
        assert_eq!(says(&mut engine, 0, "far.example", Type::A), "2");
        let to = format!("{:?}", To::Forward(7));
        assert_eq!(says(&mut engine, 1, "far.example", Type::A), to, "the zone around it");
    }
}

#[test]
fn a_zone_that_a_listener_lacks_is_not_transferred_there() {
    let mut engine = engine();
    assert_eq!(says(&mut engine, 1, "example.net", Type::AXFR), "NOTAUTH");
    assert_ne!(says(&mut engine, 0, "example.net", Type::AXFR), "NOTAUTH");
}

#[test]
fn a_query_is_resumed_with_the_zones_of_its_listener() {
    let mut engine = engine();
    let (query, mut buffer) = (query("a.example.net", Type::A), [0; 1232]);
    buffer[..query.len()].copy_from_slice(&query);
    let peer = peer(1, Transport::Udp);
    let outcome = engine.answer(NOW, &peer, &mut buffer, query.len());
    let Outcome::Deferred(deferral) = outcome else { panic!("{outcome:?}") };
    let body = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x09";
    let answer = UpstreamAnswer {
        name: &[],
        rcode: Rcode::NOERROR,
        is_authentic: false,
        counts: [1, 0, 0],
        body,
        goes_on: false,
        reason: Reason::Forwarded,
        text: b"",
    };
    for checkpoint in [deferral.history.checkpoint.clone(), None] {
        let history = &zonda_engine::code::History { checkpoint, ..Default::default() };
        buffer[..query.len()].copy_from_slice(&query);
        let (peer, len, buffer_of) = (&peer, query.len(), &mut buffer);
        let query = DeferredQuery { query: None, peer, history, buffer: buffer_of, len };
        let outcome = engine.resume(NOW, query, Resumption::Upstream(&answer));
        assert_eq!(word(&buffer[..outcome.reply_bytes()]), "9");
    }
}
