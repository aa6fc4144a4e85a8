#![allow(clippy::unwrap_used)]

mod updates;

use super::*;
use crate::engine_counters::EngineCounters;
use crate::feed::Update;
use crate::load::LoadError;
use crate::load_time::LoadTime;
use crate::update::request::UpdateRequest;
use crate::zone_set::fed_zone::FedOwner;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use std::{fs, thread};
use zonda_config::Flags;
use zonda_engine::grant::UpdateSender;
use zonda_engine::zones::{Source, ZoneEntry};
use zonda_wire::{Class, Name, Rcode, Type, UpdateMessage, UpdateRecord, rdata};
use zonda_zone::{ChangeSet, Serial, SerialPolicy, SetChange};

/// A publisher that serves `example.org` from a file.
struct Served {
    handle: Arc<PublisherHandle>,
    units: UnitStates,
    snapshot: Arc<ArcSwap<Snapshot>>,
    watchdog: Arc<Watchdog>,
    folder: PathBuf,
}

/// The text of a zone with some lines behind its first records.
fn text(more: &str) -> String {
    format!("$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n{more}")
}

impl Served {
    fn start(test: &str) -> Self {
        Self::start_with(test, "")
    }

    /// With more sections of the configuration.
    fn start_with(test: &str, more: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("zonda-pub-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("zone"), text("")).unwrap();
        let file = folder.join("zonda.toml");
        let zone = "[[zone]]\nname = \"example.org\"\nfile = \"zone\"\n";
        fs::write(&file, format!("version = 1\nstate = \"state\"\n{zone}{more}")).unwrap();
        let config = crate::program::read_config(Some(&file), &Flags::default(), None);
        let config = config.unwrap();
        let (texts, stores) = (Texts::default(), Stores::default());
        let own = (Code::default(), &texts, &stores);
        let first = Publisher::load(config, own, EngineCounters::new(0), 1).unwrap_or_else(|it| {
            panic!("{it:?}");
        });
        let snapshot = Arc::clone(first.snapshot());
        let watchdog = Arc::<Watchdog>::default();
        let (handle, units) = first.start(&watchdog).unwrap();
        Self { handle: Arc::new(handle), units, snapshot, watchdog, folder }
    }

    /// Writes the zone's file, and has it loaded.
    fn reload(&mut self, text: &str) -> Outcome {
        fs::write(self.folder.join("zone"), text).unwrap();
        let state = self.handle.state();
        let name = "example.org".parse().unwrap();
        let configs = (&*state.config, &*state.config);
        let plan = self.units.plan(&state.zone_set, configs, Scope::Zone(&name));
        let loaded = load::load_all(&plan.stale(), &state.config, (&state.zone_set, state.seed), 1);
        self.handle.apply(&mut self.units, None, plan, loaded).unwrap()
    }

    /// Does what a reload does for all that has changed.
    fn reload_changed(&mut self) -> Outcome {
        let state = self.handle.state();
        let configs = (&*state.config, &*state.config);
        let plan = self.units.plan(&state.zone_set, configs, Scope::Changed);
        let loaded = load::load_all(&plan.stale(), &state.config, (&state.zone_set, state.seed), 1);
        self.handle.apply(&mut self.units, None, plan, loaded).unwrap()
    }

    /// The entry that workers have for a zone of exactly this name, and the snapshot's generation.
    fn entry(&self, name: &str) -> (Option<Arc<ZoneEntry>>, u64) {
        let snapshot = self.snapshot.load();
        let index = snapshot.zones.index_of(&name.parse().unwrap());
        (index.map(|index| Arc::clone(snapshot.zones.get(index))), snapshot.generation)
    }

    /// When the zone was loaded.
    fn loaded(&self) -> Option<LoadTime> {
        let state = self.handle.state();
        state.zone_set.zone(&"example.org".parse().unwrap()).and_then(|zone| zone.loaded)
    }

    fn end(self) {
        fs::remove_dir_all(self.folder).unwrap();
    }
}

/// Keeps the publisher busy until something is sent.
fn block(handle: &Arc<PublisherHandle>) -> Sender<()> {
    let (sender, receiver) = channel::<()>();
    let (entered, has_entered) = channel();
    let handle = Arc::clone(handle);
    thread::spawn(move || {
        handle.call(move |_| {
            entered.send(()).unwrap();
            receiver.recv().unwrap();
        })
    });
    has_entered.recv().unwrap();
    sender
}

#[test]
fn a_file_that_is_read_again_with_the_same_records_publishes_nothing() {
    let mut served = Served::start("same");
    let (first, loaded) = (served.snapshot.load_full(), served.loaded());
    let name: Name = "example.org".parse().unwrap();
    let outcome = served.reload(&text("; a comment\n"));
    assert_eq!((outcome.unchanged, outcome.loaded), (vec![name.clone()], Vec::new()));
    assert!(Arc::ptr_eq(&first, &served.snapshot.load_full()), "another snapshot");
    assert!(served.loaded() > loaded, "the reload is not noted");
    let outcome = served.reload(&text("www A 192.0.2.2\n"));
    assert_eq!((outcome.unchanged, outcome.loaded), (Vec::new(), vec![name]));
    assert!(!Arc::ptr_eq(&first, &served.snapshot.load_full()), "nothing published");
    served.end();
}

#[test]
fn a_file_that_becomes_wrong_publishes_nothing_and_is_told_of() {
    let mut served = Served::start("wrong");
    let first = served.snapshot.load_full();
    let outcome = served.reload("@ wrong");
    assert_eq!(outcome.failed.len(), 1);
    assert!(Arc::ptr_eq(&first, &served.snapshot.load_full()), "another snapshot");
    let state = served.handle.state();
    assert!(state.zone_set.zone(&"example.org".parse().unwrap()).unwrap().error.is_some());
    served.end();
}

#[test]
fn a_feed_that_sends_a_zone_the_records_that_it_has_publishes_nothing() {
    let served = Served::start("feed");
    let name: Name = "example.net".parse().unwrap();
    let load = |text: &str| {
        let state = served.handle.state();
        load::load_text(&name, text, (&state.zone_set, state.seed))
    };
    served.handle.set_text(&name, load(&text(""))).unwrap().unwrap();
    let first = served.snapshot.load_full();
    served.handle.set_text(&name, load(&text("; again\n"))).unwrap().unwrap();
    assert!(Arc::ptr_eq(&first, &served.snapshot.load_full()), "another snapshot");
    served.handle.set_text(&name, load(&text("www A 192.0.2.2\n"))).unwrap().unwrap();
    assert!(!Arc::ptr_eq(&first, &served.snapshot.load_full()), "nothing published");
    served.end();
}

#[test]
fn a_zone_of_a_feed_changes_is_unavailable_expires_and_comes_back() {
    let served = Served::start("updates");
    let name: Name = "example.net".parse().unwrap();
    let load = |text: &str| {
        let state = served.handle.state();
        load::load_text(&name, text, (&state.zone_set, state.seed))
    };
    let known = || {
        let state = served.handle.state();
        let zone = state.zone_set.zone(&name).unwrap();
        (zone.data().map(|data| data.serial()), zone.records, zone.error.is_some())
    };
    assert!(
        matches!(served.handle.update(&name, 0, load(&text(""))), Ok(Ok(None))),
        "no such zone"
    );
    served.handle.set_text(&name, load(&text(""))).unwrap().unwrap();
    assert_eq!(known(), (Some(1), 3, false));
    let (owner, data) = ("www.example.net".parse().unwrap(), vec![[192, 0, 2, 2].into()]);
    let put = SetChange::Put { owner, rtype: Type::A, ttl: 60, data };
    let changes = ChangeSet { sets: vec![put], serial: Serial::Bump(SerialPolicy::Increment) };
    let update = |update| served.handle.update(&name, 0, update).unwrap();
    assert_eq!(update(Update::Change(changes.clone())).unwrap(), Some(2));
    assert_eq!(known(), (Some(2), 4, false));
    let outside = SetChange::RemoveName { owner: "example.org".parse().unwrap() };
    let wrong = ChangeSet { sets: vec![outside], serial: Serial::Keep };
    assert!(update(Update::Change(wrong)).is_err());
    assert_eq!(known(), (Some(2), 4, false));
    let error = || LoadError { first: "the database is down".to_owned(), count: 0 };
    assert_eq!(update(Update::Unavailable(error())).unwrap(), Some(2));
    assert_eq!(known(), (Some(2), 4, true));
    assert_eq!(update(Update::Expired(error())).unwrap(), None);
    assert_eq!(known(), (None, 0, true));
    assert!(matches!(served.entry("example.net").0.unwrap().source, Source::Unavailable(_)));
    assert_eq!(update(Update::Change(changes)).unwrap(), None, "there is nothing to change");
    assert_eq!(update(load(&text(""))).unwrap(), Some(1));
    assert_eq!(known(), (Some(1), 3, false));
    served.handle.adopt_feed(vec![name.clone()], 7, FedOwner::Program).unwrap();
    let late = served.handle.update(&name, 0, Update::Expired(error())).unwrap();
    assert_eq!(late.unwrap(), Some(1), "the feed was left behind");
    assert_eq!(known(), (Some(1), 3, false));
    served.end();
}

#[test]
fn work_that_panics_takes_no_other_work_of_its_batch_with_it() {
    let served = Served::start("panic");
    let first = served.snapshot.load_full();
    let release = block(&served.handle);
    let send = |work: Box<dyn FnOnce(&mut Publisher) -> u8 + Send>| {
        let (handle, (sent, is_sent)) = (Arc::clone(&served.handle), channel());
        let sender = thread::spawn(move || {
            sent.send(()).unwrap();
            handle.call(work)
        });
        is_sent.recv().unwrap();
        thread::sleep(Duration::from_millis(50)); // so that it is in the queue
        sender
    };
    let before = send(Box::new(|_| 1));
    let panicking = send(Box::new(|publisher| {
        publisher.settings.whole = Arc::default();
        panic!("injected by the test")
    }));
    let after = send(Box::new(|_| 2));
    release.send(()).unwrap();
    assert_eq!(before.join().unwrap().unwrap(), 1);
    assert!(panicking.join().unwrap().is_err());
    assert_eq!(after.join().unwrap().unwrap(), 2);
    assert!(!Arc::ptr_eq(&first, &served.snapshot.load_full()), "what it did is not published");
    assert_eq!(served.handle.call(|_| 3).unwrap(), 3);
    let states = served.watchdog.states();
    let (_, state) = states.iter().find(|(name, _)| name == THREAD).unwrap();
    assert_eq!((state.panics, state.is_down), (1, false));
    served.end();
}

#[test]
fn what_work_did_that_panicked_is_in_the_state_once_that_was_waited_for() {
    let served = Served::start("wait");
    let release = block(&served.handle);
    let [first, second] = [(); 2].map(|()| Arc::clone(&served.handle));
    let panicking = thread::spawn(move || {
        first.call(|publisher| {
            Arc::make_mut(&mut publisher.config).watch = true;
            panic!("injected by the test")
        })
    });
    thread::sleep(Duration::from_millis(50)); // so that it is in the queue
    let slow = thread::spawn(move || second.call(|_| thread::sleep(Duration::from_millis(100))));
    thread::sleep(Duration::from_millis(50));
    release.send(()).unwrap();
    let failed: Result<(), _> = panicking.join().unwrap();
    assert!(failed.is_err());
    served.handle.wait_for_state().unwrap();
    assert!(served.handle.state().config.watch);
    slow.join().unwrap().unwrap();
    served.end();
}

#[test]
fn a_publisher_that_is_down_is_known_to_be_and_leaves_the_states_of_files_as_they_were() {
    let mut served = Served::start("down");
    let name = "example.org".parse().unwrap();
    let unit = Arc::clone(&served.handle.state().zone_set.zone(&name).unwrap().unit);
    while served.handle.check().is_ok() {
        let _ = served.handle.call(|_| panic!("injected by the test"));
    }
    let state = served.handle.state();
    let configs = (&*state.config, &*state.config);
    let plan = served.units.plan(&state.zone_set, configs, Scope::Changed);
    assert!(served.handle.apply(&mut served.units, None, plan, Vec::new()).is_err());
    assert!(served.units.known.get(&unit).is_some(), "the states of files are lost");
    assert_eq!(served.watchdog.down(), [THREAD]);
    served.end();
}

/// Sections that forward all names, have names in front of them, and serve a directory.
const FORWARDED: &str = "[[zone]]\nname = \".\"\nforward.to = [\"192.0.2.1\"]\nhosts = \"front\"\n\
     [[zone]]\nname = \"hosts.test\"\nhosts = \"behind\"\n[[zone]]\ndirectory = \"zones\"\n";

/// A publisher that forwards all names.
fn forwarding(test: &str) -> Served {
    let folder = std::env::temp_dir().join(format!("zonda-pub-{test}-{}", std::process::id()));
    fs::create_dir_all(folder.join("zones")).unwrap();
    fs::write(folder.join("front"), "192.0.2.1 a.test\n").unwrap();
    fs::write(folder.join("behind"), "192.0.2.1 a.hosts.test\n").unwrap();
    Served::start_with(test, FORWARDED)
}

#[test]
fn special_names_are_made_anew_only_where_a_zone_above_them_comes_or_goes() {
    let mut served = forwarding("special");
    let zone = |name: &str| served.folder.join(format!("zones/{name}.zone"));
    let (elsewhere, above, own) = (zone("a.test"), zone("arpa"), zone("invalid"));
    let special = "10.in-addr.arpa";
    let (first, _) = served.entry(special);
    let first = first.unwrap();
    let is_first = |served: &Served| {
        let (now, _) = served.entry(special);
        now.is_some_and(|now| Arc::ptr_eq(&now, &first))
    };
    fs::write(&elsewhere, text("")).unwrap();
    assert_eq!(served.reload_changed().loaded.len(), 1);
    assert!(served.entry("a.test").0.is_some() && is_first(&served), "all were made anew");
    fs::remove_file(&elsewhere).unwrap();
    assert_eq!(served.reload_changed().removed.len(), 1);
    assert!(served.entry("a.test").0.is_none() && is_first(&served), "all were made anew");

    fs::write(&above, text("")).unwrap();
    assert_eq!(served.reload_changed().loaded.len(), 1);
    assert!(served.entry(special).0.is_none(), "the zone above does not have the name");
    fs::remove_file(&above).unwrap();
    assert_eq!(served.reload_changed().removed.len(), 1);
    assert!(served.entry(special).0.is_some(), "the name is forwarded");

    let is_own = |served: &Served| {
        let (now, _) = served.entry("invalid");
        matches!(now.unwrap().source, Source::Data(_))
    };
    assert!(!is_own(&served));
    fs::write(&own, text("")).unwrap();
    assert_eq!(served.reload_changed().loaded.len(), 1);
    assert!(is_own(&served), "the special name hides the zone");
    fs::remove_file(&own).unwrap();
    assert_eq!(served.reload_changed().removed.len(), 1);
    assert!(!is_own(&served));
    served.end();
}

#[test]
fn a_hosts_file_empties_hot_tables_only_in_front_of_a_forwarded_zone() {
    let mut served = forwarding("hosts");
    let (_, generation) = served.entry(".");
    fs::write(served.folder.join("behind"), "192.0.2.2 a.hosts.test\n").unwrap();
    assert_eq!(served.reload_changed().loaded.len(), 1);
    assert_eq!(served.entry(".").1, generation);
    fs::write(served.folder.join("front"), "192.0.2.2 a.test\n").unwrap();
    assert_eq!(served.reload_changed().loaded.len(), 1);
    assert_eq!(served.entry(".").1, generation + 1);
    served.end();
}

#[test]
fn a_forwarded_zone_with_names_in_front_is_counted_once() {
    let served = forwarding("counted");
    let state = served.handle.state();
    let root = Name::root();
    assert!(state.zone_set.zone(&root).is_some(), "no names in front");
    assert_eq!(state.zone_set.queries().iter().filter(|(_, apex)| **apex == root).count(), 1);
    served.end();
}

/// The rights that this address has in the tests of updates.
const RIGHTS: &str = "update = [{ from = \"127.0.0.1\", names = \"zone\" }, \
    { from = \"127.0.0.1\", names = \"zone\", types = [\"SOA\"] }]\n";

/// A record of an update: class, name, TTL, type and data.
fn record(words: &str) -> UpdateRecord {
    let words: Vec<&str> = words.splitn(5, ' ').collect();
    let rtype: Type = words[3].parse().unwrap();
    let rdata = words.get(4).map_or_else(Vec::new, |it| rdata::from_text(rtype, it).unwrap());
    UpdateRecord {
        owner: words[1].parse().unwrap(),
        rtype,
        class: words[0].parse().unwrap(),
        ttl: words[2].parse().unwrap(),
        rdata: rdata.into(),
    }
}

/// A message of this address for the zone: what must hold, and what is to change.
fn request(prerequisites: &[&str], updates: &[&str]) -> UpdateRequest {
    let records = |lines: &[&str]| lines.iter().map(|line| record(line)).collect();
    let message = UpdateMessage {
        zone: "example.org".parse().unwrap(),
        ztype: Type::SOA,
        class: Class::IN,
        prerequisites: records(prerequisites),
        updates: records(updates),
    };
    let sender = UpdateSender { client: [127, 0, 0, 1].into(), key: None };
    UpdateRequest { sender, message }
}

impl Served {
    /// The response codes of messages that are carried out together, and the serial then.
    fn carry_out(&self, requests: Vec<UpdateRequest>) -> (Vec<Rcode>, u32) {
        let zone = "example.org".parse().unwrap();
        let updates = vec![ZoneUpdates { zone, requests }];
        let (sender, results) = channel();
        let carry_out = move |publisher: &mut Publisher| {
            let answer = move |results| sender.send(results).unwrap();
            let mut changes = PendingChanges(vec![publisher.update(&updates, answer)]);
            let mut reports = Vec::new();
            publisher.commit(&mut changes, &mut reports);
            reports.into_iter().for_each(|report| report());
        };
        self.handle.call(carry_out).unwrap();
        let results: Vec<Vec<UpdateResult>> = results.recv().unwrap();
        let codes = results.iter().flatten().map(|result| result.outcome.rcode).collect();
        let entry = self.entry("example.org").0.unwrap();
        let Source::Data(zone) = &entry.source else { panic!("no data") };
        (codes, zone.serial())
    }
}

#[test]
fn messages_that_are_carried_out_together_are_judged_one_after_the_other() {
    let served = Served::start_with("together", RIGHTS);
    let add = |name: &str| format!("IN {name}.example.org 60 A 192.0.2.7");
    let found = served.carry_out(vec![
        request(&[], &[&add("x")]),
        request(&["NONE x.example.org 0 ANY"], &[&add("y")]),
        request(&["ANY x.example.org 0 ANY"], &[&add("z")]),
        request(&[], &["ANY x.example.org 0 ANY"]),
        request(&[], &["IN z.example.org 60 NS ns.example.org"]),
        request(&["NONE x.example.org 0 ANY", "ANY z.example.org 0 A"], &[]),
    ]);
    let codes = vec![
        Rcode::NOERROR,
        Rcode::YXDOMAIN,
        Rcode::NOERROR,
        Rcode::NOERROR,
        Rcode::REFUSED,
        Rcode::NOERROR,
    ];
    assert_eq!(found, (codes, 2), "one version, whose serial rose once");
    served.end();
}

#[test]
fn the_serial_does_not_go_back_over_messages_that_are_carried_out_together() {
    let served = Served::start_with("back", RIGHTS);
    let soa = |serial: u32| {
        format!("IN example.org 60 SOA ns.example.org h.example.org {serial} 2 3 4 5")
    };
    let (first, second) = (soa(0x8000_0000), soa(0xffff_ffff));
    let messages = vec![request(&[], &[&first]), request(&[], &[&second])];
    let found = served.carry_out(messages.clone());
    assert_eq!(found, (vec![Rcode::NOERROR, Rcode::SERVFAIL], 0x8000_0000));
    let found = served.carry_out(messages[1..].to_vec());
    assert_eq!(found, (vec![Rcode::NOERROR], 0xffff_ffff), "alone it is in order");
    served.end();
}

#[test]
fn no_set_outgrows_every_message() {
    let served = Served::start_with("large", RIGHTS);
    let large = |count: usize| {
        let line = |number| format!("IN t.example.org 60 TXT {number:0>200}");
        let lines: Vec<String> = (0..count).map(line).collect();
        let lines: Vec<&str> = lines.iter().map(|line| &**line).collect();
        request(&[], &lines)
    };
    let found = served.carry_out(vec![large(400), large(300), large(320)]);
    assert_eq!(found, (vec![Rcode::REFUSED, Rcode::NOERROR, Rcode::REFUSED], 2));
    served.end();
}

#[test]
fn a_zone_that_is_signed_elsewhere_is_changed_by_no_message() {
    let mut served = Served::start_with("signed", RIGHTS);
    served.reload(&text("@ DNSKEY 257 3 13 AAAA\n"));
    let message = request(&[], &["IN x.example.org 60 A 192.0.2.7"]);
    assert_eq!(served.carry_out(vec![message]), (vec![Rcode::REFUSED], 1));
    served.end();
}

#[test]
fn results_that_rest_on_changes_which_the_disk_has_not_taken_are_failures() {
    let served = Served::start_with("doubt", RIGHTS);
    let add = "IN x.example.org 60 A 192.0.2.7";
    fs::remove_dir_all(served.folder.join("state")).unwrap();
    let found = served.carry_out(vec![
        request(&[], &[add]),
        request(&["NONE x.example.org 0 ANY"], &[]),
        request(&[], &["CH x.example.org 60 A 192.0.2.7"]),
    ]);
    let codes = vec![Rcode::SERVFAIL, Rcode::SERVFAIL, Rcode::FORMERR];
    assert_eq!(found, (codes, 1), "there never was an x");
    served.end();
}
