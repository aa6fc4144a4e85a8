//! Queries that upstreams have answered while the server stayed as it was, and while it did not.
#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::path::Path;
use std::sync::Arc;
use zonda_cache::Cache;
use zonda_engine::access::{Access, AccessList};
use zonda_engine::code::History;
use zonda_engine::gate::cookie::Secrets;
use zonda_engine::zones::{Forward, Overlay, Source, ZoneEntry, ZoneTable};
use zonda_engine::{
    DeferredQuery, Engine, Now, Outcome, Peer, Reason, Resumption, Settings, Snapshot, Transport,
    UpstreamAnswer,
};
use zonda_wire::message::Message;
use zonda_wire::{Name, Rcode};
use zonda_zone::{HashSeed, Zone, build, file};

const SEED: HashSeed = HashSeed(1);
const NOW: Now = Now::new(1, 1_700_000_000);
/// The address that upstreams give.
const FETCHED: [u8; 4] = [192, 0, 2, 7];
/// The address that zones and overlays of this server give.
const OWN: [u8; 4] = [203, 0, 113, 1];
/// The name that is asked for.
const ASKED: &str = "www.example.net";

/// Zone data with the asked name.
fn own_data(apex: &Name) -> Arc<Zone> {
    let text = format!("$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\n{ASKED}. A 203.0.113.1\n");
    let options = file::Options::default();
    let (records, _) = file::read_text(text.as_bytes(), Path::new("zone"), apex, &options);
    Arc::new(build(apex, &records, SEED).unwrap())
}

/// What a snapshot has beside the forwarded root.
#[derive(Default)]
struct Content {
    settings: Settings,
    access: Option<AccessList>,
    overlays: Vec<Overlay>,
    zone: Option<&'static str>,
}

/// A snapshot that forwards all names but those of `content`.
fn snapshot(content: Content, generation: u64) -> Arc<Snapshot> {
    let Content { settings, access, overlays, zone } = content;
    let cache = Arc::new(Cache::new(1 << 20));
    let forward = Forward { number: 7, cache, options: None, nxdomain_cut: true, overlays };
    let source = Source::Forward(Arc::new(forward));
    let mut entries = vec![Arc::new(ZoneEntry::new(Name::root(), source, access.map(Arc::new), 0))];
    if let Some(apex) = zone {
        let apex: Name = apex.parse().unwrap();
        let data = Source::Data(own_data(&apex));
        entries.push(Arc::new(ZoneEntry::new(apex, data, None, 1)));
    }
    let zones = ZoneTable::new(entries, SEED);
    Arc::new(Snapshot { settings: Arc::new(settings), generation, ..Snapshot::of(zones) })
}

/// The octets of a query, with these octets behind the question.
fn query(flags: u16, additional: &[&[u8]]) -> Vec<u8> {
    let name: Name = ASKED.parse().unwrap();
    let header = [77, flags, 1, 0, 0, additional.len() as u16].map(u16::to_be_bytes).concat();
    [&header, name.as_wire(), &[0, 1, 0, 1], &additional.concat()].concat()
}

/// The octets of the reply to a deferred query.
fn resume(engine: &mut Engine, peer: &Peer, query: &[u8], history: &History) -> Vec<u8> {
    let body = [b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04", &FETCHED[..]].concat();
    let answer = UpstreamAnswer {
        name: &[],
        rcode: Rcode::NOERROR,
        is_authentic: true,
        counts: [1, 0, 0],
        body: &body,
        goes_on: false,
        reason: Reason::Forwarded,
        text: b"",
    };
    let mut buffer = vec![0; 1232];
    buffer[..query.len()].copy_from_slice(query);
    let (buffer_of, len) = (&mut buffer, query.len());
    let deferred = DeferredQuery { query: None, peer, history, buffer: buffer_of, len };
    let octets = engine.resume(NOW, deferred, Resumption::Upstream(&answer)).reply_bytes();
    buffer.truncate(octets);
    buffer
}

/// What is known of a query that an engine defers.
fn defer(engine: &mut Engine, peer: &Peer, query: &[u8]) -> History {
    let mut buffer = vec![0; 1232];
    buffer[..query.len()].copy_from_slice(query);
    match engine.answer(NOW, peer, &mut buffer, query.len()) {
        Outcome::Deferred(deferral) => deferral.history,
        other => panic!("{other:?}"),
    }
}

fn peer(transport: Transport) -> Peer {
    Peer::new(([192, 0, 2, 9], 5300).into(), transport, 0)
}

#[test]
fn what_a_query_has_passed_before_makes_no_difference_to_the_octets_of_its_reply() {
    const OPT: &[u8] = &[0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0];
    const DNSSEC: &[u8] = &[0, 0, 41, 0x04, 0xd0, 0, 0, 0x80, 0, 0, 0];
    const COOKIE: &[u8] =
        &[0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 12, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8];
    let secrets = Secrets { current: [1; 16], accepted: Vec::new() };
    let settings = Settings { cookies: Some(secrets), ..Settings::default() };
    let snapshot = snapshot(Content { settings, ..Content::default() }, 1);
    let mut engine = Engine::new(Arc::new(ArcSwap::new(snapshot)), Arc::default());
    for transport in Transport::ALL {
        for flags in [0x0100, 0x0110, 0x0120] {
            for additional in [&[][..], &[OPT], &[DNSSEC], &[COOKIE]] {
                let (peer, query) = (peer(transport), query(flags, additional));
                let history = defer(&mut engine, &peer, &query);
                assert!(history.checkpoint.is_some());
                let short = resume(&mut engine, &peer, &query, &history);
                let without = History { checkpoint: None, ..history };
                assert_eq!(short, resume(&mut engine, &peer, &query, &without));
                assert_eq!(Message::parse(&short).unwrap().records[0].rdata, FETCHED);
            }
        }
    }
}

#[test]
fn a_query_passes_all_gates_and_overlays_once_more_if_any_has_changed_meanwhile() {
    let refuse =
        || AccessList { rules: Vec::new(), otherwise: Access::Refuse, ..AccessList::open() };
    let lists = vec![Some(refuse())];
    let settings = Settings { listener_access: lists, ..Settings::default() };
    let overlay = Overlay { zone: own_data(&Name::root()), reason: Reason::Overridden };
    let nothing = Content::default;
    let cases = [
        ("nothing", nothing(), 1, Some(FETCHED)),
        ("the listener's access list", Content { settings, ..nothing() }, 2, None),
        ("the zone's access list", Content { access: Some(refuse()), ..nothing() }, 1, None),
        ("an overlay", Content { overlays: vec![overlay], ..nothing() }, 1, Some(OWN)),
        ("a zone", Content { zone: Some("example.net"), ..nothing() }, 2, Some(OWN)),
    ];
    for (what, content, generation, expected) in cases {
        let snapshots = Arc::new(ArcSwap::new(snapshot(nothing(), 1)));
        let mut engine = Engine::new(Arc::clone(&snapshots), Arc::default());
        let (peer, query) = (peer(Transport::Udp), query(0x0100, &[]));
        let history = defer(&mut engine, &peer, &query);
        snapshots.store(snapshot(content, generation));
        let reply = Message::parse(&resume(&mut engine, &peer, &query, &history)).unwrap();
        let rcode = if expected.is_some() { Rcode::NOERROR } else { Rcode::REFUSED };
        assert_eq!(reply.rcode(), rcode, "{what}");
        let address = reply.records.first().map(|record| record.rdata.clone());
        assert_eq!(address, expected.map(|octets| octets.to_vec()), "{what}");
    }
}

#[test]
fn a_query_deferred_for_the_target_of_an_alias_passes_the_whole_plan_again() {
    let apex: Name = "example".parse().unwrap();
    let text = format!("$TTL 60\n@ SOA a a 1 2 3 4 5\n@ NS a\nw CNAME {ASKED}.\n");
    let options = file::Options::default();
    let (records, _) = file::read_text(text.as_bytes(), Path::new("zone"), &apex, &options);
    let data = Source::Data(Arc::new(build(&apex, &records, SEED).unwrap()));
    let cache = Arc::new(Cache::new(1 << 20));
    let forward =
        Forward { number: 7, cache, options: None, nxdomain_cut: true, overlays: Vec::new() };
    let forward = Source::Forward(Arc::new(forward));
    let entries = vec![
        Arc::new(ZoneEntry::new(apex, data, None, 0)),
        Arc::new(ZoneEntry::new(Name::root(), forward, None, 1)),
    ];
    let zones = ZoneTable::new(entries, SEED);
    let snapshot = Snapshot::of(zones);
    let mut engine = Engine::new(Arc::new(ArcSwap::from_pointee(snapshot)), Arc::default());
    let name: Name = "w.example".parse().unwrap();
    let header = [77, 0x0100_u16, 1, 0, 0, 0].map(u16::to_be_bytes).concat();
    let query = [&header, name.as_wire(), &[0, 1, 0, 1]].concat();
    let history = defer(&mut engine, &peer(Transport::Udp), &query);
    assert_eq!(history.checkpoint, None);
}
