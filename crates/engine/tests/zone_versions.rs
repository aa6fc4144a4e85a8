//! What the hot table keeps while zones change.

#![allow(clippy::unwrap_used)]

use arc_swap::ArcSwap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use zonda_engine::access::AccessList;
use zonda_engine::zones::{Source, ZoneEntry, ZoneTableOwner};
use zonda_engine::{
    Engine, Event, NotReused, Now, Observer, Outcome, Peer, Reuse, Settings, Snapshot, Transport,
};
use zonda_wire::{Message, Name, Type};
use zonda_zone::{HashSeed, build, file};

const SEED: HashSeed = HashSeed(1);

/// A worker's engine and the zones that it answers from.
struct Server {
    zones: ZoneTableOwner,
    snapshot: Arc<ArcSwap<Snapshot>>,
    engine: Engine,
    generation: u64,
    /// The number of replies from the hot table.
    hot: Arc<AtomicU64>,
    /// Why the last reply was not put into the hot table, if it was not.
    reason: Arc<Mutex<Option<NotReused>>>,
}

/// Counts replies from the hot table.
struct Counting(Arc<AtomicU64>, Arc<Mutex<Option<NotReused>>>);

impl Observer for Counting {
    fn observe(&mut self, event: &Event<'_>) {
        let reason = match event.reuse {
            Some(Reuse::No(reason)) => Some(reason),
            _ => None,
        };
        self.0.fetch_add(u64::from(reason == Some(NotReused::HotAlready)), SeqCst);
        *self.1.lock().unwrap() = reason;
    }
}

/// A zone whose name `www` has the address 192.0.2.`octet`.
fn entry(apex: &str, octet: u8, more: &str) -> Arc<ZoneEntry> {
    let text = format!("$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns\nwww A 192.0.2.{octet}\n{more}");
    let apex: Name = apex.parse().unwrap();
    let options = file::Options::default();
    let (records, errors) = file::read_text(text.as_bytes(), Path::new("zone"), &apex, &options);
    assert!(!errors.has_errors(), "{errors}");
    let source = Source::Data(Arc::new(build(&apex, &records, SEED).unwrap()));
    Arc::new(ZoneEntry::new(apex, source, None, 0))
}

impl Server {
    fn new(entries: Vec<Arc<ZoneEntry>>) -> Self {
        let mut zones = ZoneTableOwner::new(SEED);
        entries.into_iter().for_each(|entry| drop(zones.put(entry)));
        let settings = Arc::new(Settings { cross_zone: true, ..Settings::default() });
        let first = Snapshot { settings, ..Snapshot::of(zones.table()) };
        let snapshot = Arc::new(ArcSwap::from_pointee(first));
        let mut engine = Engine::new(Arc::clone(&snapshot), Arc::default());
        let (hot, reason) = (Arc::default(), Arc::default());
        engine.add_observer(Box::new(Counting(Arc::clone(&hot), Arc::clone(&reason))));
        Self { zones, snapshot, engine, generation: 1, hot, reason }
    }

    /// Publishes the zones as they are now.
    fn publish(&mut self) {
        let former = self.snapshot.load();
        let (settings, generation) = (Arc::clone(&former.settings), self.generation);
        let zones = self.zones.table();
        self.snapshot.store(Arc::new(Snapshot { settings, generation, ..Snapshot::of(zones) }));
    }

    /// Asks for the address of a name; returns the last octet of the last record.
    fn ask(&mut self, name: &str) -> u8 {
        let name: Name = name.parse().unwrap();
        let mut buffer = vec![0; 512];
        let header = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0";
        let query = [&header[..], name.as_wire(), &Type::A.0.to_be_bytes(), &[0, 1]].concat();
        buffer[..query.len()].copy_from_slice(&query);
        let address = "192.0.2.7:53".parse().unwrap();
        let peer = Peer::new(address, Transport::Udp, 0);
        let now = Now::new(0, 0);
        let Outcome::Reply(len) = self.engine.answer(now, &peer, &mut buffer, query.len()) else {
            panic!("no reply");
        };
        let records = Message::parse(&buffer[..len]).unwrap().records;
        let last = records.iter().rfind(|it| it.rtype == Type::A);
        *last.unwrap().rdata.last().unwrap()
    }

    /// Replies from the hot table to four queries for a name, which all have this octet.
    fn hot_of_four(&mut self, name: &str, octet: u8) -> u64 {
        let before = self.hot.load(SeqCst);
        (0..4).for_each(|_| assert_eq!(self.ask(name), octet, "{name}"));
        self.hot.load(SeqCst) - before
    }
}

#[test]
fn a_change_in_one_zone_costs_no_other_zone_its_hot_entries() {
    let mut server = Server::new(vec![entry("a.test", 1, ""), entry("b.test", 2, "")]);
    assert_eq!(server.hot_of_four("www.a.test", 1), 2, "the third query is the first hot one");
    assert_eq!(server.hot_of_four("www.b.test", 2), 2);
    for octet in 10..20 {
        server.zones.put(entry("b.test", octet, ""));
        server.publish();
        assert_eq!(server.hot_of_four("www.a.test", 1), 4);
        assert_eq!(server.hot_of_four("www.b.test", octet), 3, "one query finds the old entry");
    }
}

#[test]
fn names_that_move_to_another_zone_are_not_answered_from_hot_entries() {
    let mut server = Server::new(vec![entry("a.test", 1, "www.b A 192.0.2.2\n")]);
    assert_eq!(server.hot_of_four("www.b.a.test", 2), 2);
    server.zones.put(entry("b.a.test", 3, ""));
    server.generation += 1;
    server.publish();
    assert_eq!(server.hot_of_four("www.b.a.test", 3), 3);
}

#[test]
fn an_answer_that_aliases_lead_through_two_zones_is_not_kept() {
    let alias = "alias CNAME www.b.test.\nown CNAME www\n";
    let mut server = Server::new(vec![entry("a.test", 1, alias), entry("b.test", 2, "")]);
    assert_eq!(server.hot_of_four("own.a.test", 1), 2);
    assert_eq!(server.hot_of_four("alias.a.test", 2), 0);
    assert_eq!(*server.reason.lock().unwrap(), Some(NotReused::OtherZone));
    server.zones.put(entry("b.test", 9, ""));
    server.publish();
    assert_eq!(server.ask("alias.a.test"), 9);
}

#[test]
fn a_zone_that_only_says_which_clients_may_transfer_it_keeps_the_answers_of_its_aliases() {
    let mut server = Server::new(vec![entry("a.test", 1, "own CNAME www\n")]);
    let former = server.zones.get(b"\x01a\x04test\0").unwrap();
    let Source::Data(zone) = &former.source else { panic!() };
    let (source, apex) = (Source::Data(Arc::clone(zone)), former.apex.clone());
    let list = Arc::new(AccessList::open());
    server.zones.put(Arc::new(ZoneEntry::new(apex, source, Some(list), 0)));
    server.publish();
    assert_eq!(server.hot_of_four("own.a.test", 1), 2);
}

/// A batch of messages of one client.
struct Messages(Vec<(Vec<u8>, usize)>);

impl zonda_engine::Batch for Messages {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&mut self, index: usize) -> zonda_engine::Message<'_> {
        let (buffer, len) = &mut self.0[index];
        let address = "192.0.2.9:5300".parse().unwrap();
        let peer = Peer::new(address, Transport::Udp, 0);
        zonda_engine::Message { peer, buffer, len }
    }

    fn defer(&mut self, _: usize, _: zonda_engine::Deferral) {
        unreachable!("all zones have data");
    }
}

#[test]
fn an_observer_that_panics_leaves_the_replies_of_its_batch_to_be_sent() {
    let mut server = Server::new(vec![entry("a.example", 7, "")]);
    server.engine.add_observer(Box::new(|_: &Event<'_>| panic!("a mistake of the observer")));
    let query = |id: u8| {
        let mut message = vec![0, id, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        message.extend(*b"\x03www\x01a\x07example\0\0\x01\0\x01");
        let len = message.len();
        message.resize(512, 0);
        (message, len)
    };
    let mut batch = Messages((0..70).map(query).collect());
    let now = Now::new(0, 0);
    let answer = std::panic::AssertUnwindSafe(|| server.engine.answer_batch(now, &mut batch));
    assert!(std::panic::catch_unwind(answer).is_err(), "the panic is told");
    for (id, (buffer, len)) in batch.0.iter().enumerate() {
        let (head, address) = (&buffer[..8], &buffer[len - 4..*len]);
        assert_eq!(head, [0, id as u8, 0x84, 0, 0, 1, 0, 1], "message {id}");
        assert_eq!(address, [192, 0, 2, 7], "message {id}");
    }
}
