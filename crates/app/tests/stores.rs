//! Zones that follow stores, asked over sockets while the stores change, go away and come back.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use zonda::store::{Announcer, StoreError, Watch};
use zonda::{App, MemoryStore, Message, Name, RecordSet, Running, Store, Type};
use zonda_testkit::{Question, ask};

/// How soon a change must be answered.
const SOON: Duration = Duration::from_secs(1);
/// How soon a database that is back must be followed again: the longest pause and some.
const AGAIN: Duration = Duration::from_secs(8);

/// Returns a running app whose zone `example.org` has what a store has.
fn serve(store: impl Store + 'static) -> Running {
    let app = App::new().listen("127.0.0.1:0").workers(1).store("Example.org", store);
    app.start_blocking().unwrap()
}

/// Response code and data of the answer to a question, as text.
fn told(running: &Running, name: &str, rtype: &str) -> String {
    let reply = ask(running.addresses()[0], &Question::new(name, rtype).edns(1232)).unwrap();
    let mut data: Vec<_> = reply.answer.iter().map(|it| it.data.text.clone()).collect();
    data.sort();
    data.insert(0, reply.rcode_text());
    data.join(" ")
}

/// Waits until a question is answered so.
fn await_answer(running: &Running, name: &str, rtype: &str, expected: &str, limit: Duration) {
    let asked = Instant::now();
    loop {
        let told = told(running, name, rtype);
        if told == expected {
            return;
        }
        assert!(asked.elapsed() < limit, "{name} {rtype}: {told}, not {expected}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns an address of `www.example.org`.
fn www(address: &str) -> RecordSet {
    RecordSet::new("www.example.org", "A", 60, [address])
}

/// Returns the serial of `example.org`.
fn serial(running: &Running) -> u32 {
    told(running, "example.org", "SOA").split(' ').nth(3).unwrap().parse().unwrap()
}

/// Checks what any store does: its records are answered, and so are its changes, soon.
fn check_store(store: impl Store + 'static) {
    let store = Arc::new(store);
    store.set(&RecordSet::new("Example.org.", "NS", 3600, ["ns.example.net"])).unwrap();
    store.set(&www("192.0.2.1")).unwrap();
    store.set(&RecordSet::new("elsewhere.example", "A", 60, ["192.0.2.1"])).unwrap();
    let running = serve(Arc::clone(&store));
    assert_eq!(told(&running, "www.example.org", "A"), "NOERROR 192.0.2.1");
    assert_eq!(told(&running, "Example.org", "NS"), "NOERROR ns.example.net.");
    assert!(told(&running, "example.org", "SOA").starts_with("NOERROR ns.example.net. nobody."));
    assert_eq!(told(&running, "elsewhere.example", "A"), "REFUSED");
    let first = serial(&running);

    store.set(&RecordSet::new("WWW.example.org", "A", 60, ["192.0.2.2", "192.0.2.3"])).unwrap();
    await_answer(&running, "www.example.org", "A", "NOERROR 192.0.2.2 192.0.2.3", SOON);
    store.set(&RecordSet::new("*.www.example.org", "TXT", 60, ["\"a \\\"b\\\"\" c"])).unwrap();
    await_answer(&running, "x.www.example.org", "TXT", "NOERROR \"a \\\"b\\\"\" \"c\"", SOON);
    assert!(serial(&running) > first);
    let sets = store.get("www.example.org").unwrap();
    assert_eq!(sets.len(), 1);
    assert_eq!((sets[0].data.len(), sets[0].ttl_secs), (2, 60));

    let wrong = [RecordSet::new("m1.example.org", "A", 60, ["192.0.2.5"]), www("192.0.2")];
    assert!(store.set_many(&wrong).is_err());
    assert!(store.get("m1.example.org").unwrap().is_empty(), "a wrong set changes nothing");
    let many = ["m1.example.org", "m2.example.org"];
    let many = many.map(|owner| RecordSet::new(owner, "A", 60, ["192.0.2.6"]));
    store.set_many(&many).unwrap();
    store.set_many(&[]).unwrap();
    for set in many {
        await_answer(&running, &set.owner, "A", "NOERROR 192.0.2.6", SOON);
        assert!(store.remove(&set.owner, Type::A).unwrap());
    }

    assert!(store.remove("www.example.org.", Type::A).unwrap());
    assert!(!store.remove("www.example.org", Type::A).unwrap());
    await_answer(&running, "www.example.org", "A", "NOERROR", SOON); // the wildcard is below it
    assert!(store.remove("*.www.example.org", Type::TXT).unwrap());
    await_answer(&running, "www.example.org", "A", "NXDOMAIN", SOON);
    assert!(store.get("www.example.org").unwrap().is_empty());

    let error = store.set(&www("192.0.2")).unwrap_err().to_string();
    assert!(error.starts_with("www.example.org A: `192.0.2`: "), "{error}");
    assert!(store.get("www.example.org").unwrap().is_empty());
    running.stop_blocking().unwrap();
}

#[test]
fn changes_of_a_memory_store_are_served() {
    check_store(MemoryStore::new());
}

#[test]
fn sets_that_are_put_together_are_one_version_of_the_zone() {
    let store = Arc::new(MemoryStore::new());
    store.set(&www("192.0.2.1")).unwrap();
    let running = serve(Arc::clone(&store));
    for round in 2..5 {
        let before = serial(&running);
        let set = |number: u32| {
            RecordSet::new(format!("n{number}.example.org"), "A", 60, [format!("192.0.2.{round}")])
        };
        store.set_many(&(0..300).map(set).collect::<Vec<_>>()).unwrap();
        let expected = format!("NOERROR 192.0.2.{round}");
        await_answer(&running, "n299.example.org", "A", &expected, SOON);
        assert_eq!(told(&running, "n0.example.org", "A"), expected);
        assert_eq!(serial(&running), before + 1);
    }
    running.stop_blocking().unwrap();
}

#[test]
fn a_zone_that_configuration_and_program_have_follows_the_store_of_the_configuration() {
    let folder = zonda_testkit::process::Folder::new("both");
    let file = folder.path().join("zones.redb");
    let configured = zonda::RedbStore::open(&file).unwrap();
    configured.set(&www("192.0.2.1")).unwrap();
    drop(configured); // a file has one user at a time
    let text = "version = 1\n[admin]\nsocket = \"off\"\n\
                [[zone]]\nname = \"example.org\"\n[zone.store]\nurl = \"redb:zones.redb\"\n";
    let config = folder.write("zonda.toml", text);
    let store = Arc::new(MemoryStore::new());
    let app = App::new()
        .config(config)
        .listen("127.0.0.1:0")
        .workers(1)
        .store("example.org", Arc::clone(&store));
    let running = app.start_blocking().unwrap();
    assert_eq!(told(&running, "www.example.org", "A"), "NOERROR 192.0.2.1");
    store.set(&www("192.0.2.2")).unwrap();
    running.reload_blocking().unwrap();
    std::thread::sleep(Duration::from_millis(300)); // a change of a store is served after 20
    assert_eq!(told(&running, "www.example.org", "A"), "NOERROR 192.0.2.1");
    running.stop_blocking().unwrap();
}

#[test]
fn a_thousand_changes_at_a_time_are_a_few_zones() {
    let store = Arc::new(MemoryStore::new());
    let running = serve(Arc::clone(&store));
    let first = serial(&running);
    for number in 0..2000 {
        let owner = format!("n{number}.example.org");
        store.set(&RecordSet::new(owner, "A", 60, ["192.0.2.1"])).unwrap();
    }
    await_answer(&running, "n1999.example.org", "A", "NOERROR 192.0.2.1", SOON);
    assert_eq!(told(&running, "n0.example.org", "A"), "NOERROR 192.0.2.1");
    assert!(serial(&running) - first < 200, "{}", serial(&running) - first);
    running.stop_blocking().unwrap();
}

/// A store that can be made to fail, with records that nothing checks.
#[derive(Default)]
struct FailingStore {
    sets: Mutex<Vec<RecordSet>>,
    is_down: AtomicBool,
    panics: AtomicBool,
    announcer: Announcer,
}

impl FailingStore {
    /// Fails if it is down.
    fn answer<T>(&self, answer: T) -> Result<T, StoreError> {
        assert!(!self.panics.load(Ordering::Relaxed), "a mistake in a store");
        match self.is_down.load(Ordering::Relaxed) {
            true => Err(StoreError::failed("it is down")),
            false => Ok(answer),
        }
    }
}

/// Reports changes also when the store is down.
struct FailingWatch(Arc<FailingStore>, Box<dyn Watch>);

impl Watch for FailingWatch {
    fn wait(&mut self, patience: Duration) -> Result<zonda::store::Changes, StoreError> {
        let changes = self.1.wait(patience.min(Duration::from_millis(10)))?;
        self.0.answer(changes)
    }
}

/// The store as an app takes it.
struct Handle(Arc<FailingStore>);

impl Store for Handle {
    fn load(&self, _: &Name) -> Result<Vec<RecordSet>, StoreError> {
        self.0.answer(self.0.sets.lock().unwrap().clone())
    }

    fn get(&self, owner: &str) -> Result<Vec<RecordSet>, StoreError> {
        let sets = self.0.sets.lock().unwrap();
        self.0.answer(sets.iter().filter(|set| set.owner == owner).cloned().collect())
    }

    fn set(&self, records: &RecordSet) -> Result<(), StoreError> {
        self.0.sets.lock().unwrap().push(records.clone());
        self.0.announcer.announce(&records.owner);
        self.0.answer(())
    }

    fn remove(&self, _: &str, _: Type) -> Result<bool, StoreError> {
        self.0.answer(false)
    }

    fn watch(&self, _: &Name) -> Result<Box<dyn Watch>, StoreError> {
        self.0.answer(Box::new(FailingWatch(Arc::clone(&self.0), self.0.announcer.watch())))
    }
}

#[test]
fn a_zone_stays_unchanged_while_its_store_is_down_and_follows_it_afterwards() {
    let moody = Arc::new(FailingStore::default());
    moody.is_down.store(true, Ordering::Relaxed);
    let running = serve(Handle(Arc::clone(&moody)));
    assert_eq!(told(&running, "www.example.org", "A"), "SERVFAIL");
    assert_eq!(told(&running, "elsewhere.example", "A"), "REFUSED");

    moody.sets.lock().unwrap().push(www("192.0.2.1"));
    moody.is_down.store(false, Ordering::Relaxed);
    await_answer(&running, "www.example.org", "A", "NOERROR 192.0.2.1", AGAIN);

    for mood in [&moody.is_down, &moody.panics] {
        mood.store(true, Ordering::Relaxed);
        let last = moody.sets.lock().unwrap().len();
        std::thread::sleep(Duration::from_millis(300));
        let owner = format!("n{last}.example.org");
        moody.sets.lock().unwrap().push(RecordSet::new(&owner, "A", 60, ["192.0.2.9"]));
        assert_eq!(told(&running, "www.example.org", "A"), "NOERROR 192.0.2.1");
        assert_eq!(told(&running, &owner, "A"), "NXDOMAIN");
        mood.store(false, Ordering::Relaxed);
        await_answer(&running, &owner, "A", "NOERROR 192.0.2.9", AGAIN);
    }
    running.stop_blocking().unwrap();
}

/// Another store, each read of which takes long, as a database that is far away does.
struct SlowStore(Handle);

/// How long that is.
const SLOW: Duration = Duration::from_millis(1500);

impl Store for SlowStore {
    fn load(&self, zone: &Name) -> Result<Vec<RecordSet>, StoreError> {
        self.0.load(zone)
    }

    fn get(&self, owner: &str) -> Result<Vec<RecordSet>, StoreError> {
        std::thread::sleep(SLOW);
        self.0.get(owner)
    }

    fn set(&self, records: &RecordSet) -> Result<(), StoreError> {
        self.0.set(records)
    }

    fn remove(&self, owner: &str, rtype: Type) -> Result<bool, StoreError> {
        self.0.remove(owner, rtype)
    }

    fn watch(&self, zone: &Name) -> Result<Box<dyn Watch>, StoreError> {
        self.0.watch(zone)
    }
}

#[test]
fn time_in_which_a_change_waited_does_not_delay_the_next() {
    let store = Arc::new(SlowStore(Handle(Arc::default())));
    let running = serve(Arc::clone(&store));
    for name in ["one", "two"] {
        let owner = format!("{name}.example.org");
        let changed = Instant::now();
        store.set(&RecordSet::new(&owner, "A", 60, ["192.0.2.1"])).unwrap();
        await_answer(&running, &owner, "A", "NOERROR 192.0.2.1", 4 * SLOW);
        assert!(changed.elapsed() < SLOW * 9 / 5, "{name}: {:?}", changed.elapsed());
    }
    running.stop_blocking().unwrap();
}

#[test]
fn wrong_records_of_a_store_are_left_out_and_valid_ones_served() {
    let moody = Arc::new(FailingStore::default());
    *moody.sets.lock().unwrap() = vec![
        www("192.0.2.1"),
        RecordSet::new("bad..example.org", "A", 60, ["192.0.2.1"]),
        RecordSet::new("bad.example.org", "A", 60, ["192.0.2.1\nevil 60 A 192.0.2.66"]),
        RecordSet::new("bad.example.org\nevil.example.org 60 A 192.0.2.66 ;", "A", 60, ["::"]),
        RecordSet::new("bad.example.org", "TXT\n", 60, ["$INCLUDE /etc/passwd"]),
        RecordSet::new("www.example.org", "CNAME", 60, ["other.example.org"]),
        RecordSet::new("good.example.org", "TXT", 60, ["one\n$TTL two"]),
    ];
    let running = serve(Handle(Arc::clone(&moody)));
    assert_eq!(told(&running, "www.example.org", "A"), "NOERROR 192.0.2.1");
    assert_eq!(told(&running, "bad.example.org", "A"), "NXDOMAIN");
    assert_eq!(told(&running, "evil.example.org", "A"), "NXDOMAIN");
    assert_eq!(told(&running, "good.example.org", "TXT"), "NOERROR \"one\" \"$TTL\" \"two\"");
    Handle(Arc::clone(&moody)).set(&RecordSet::new("x.example.org", "A", 60, ["no"])).unwrap();
    Handle(moody).set(&RecordSet::new("y.example.org", "A", 60, ["192.0.2.2"])).unwrap();
    await_answer(&running, "y.example.org", "A", "NOERROR 192.0.2.2", SOON);
    assert_eq!(told(&running, "x.example.org", "A"), "NXDOMAIN");
    running.stop_blocking().unwrap();
}

#[test]
fn a_reload_and_a_text_for_another_zone_leave_what_a_store_has() {
    let store = Arc::new(MemoryStore::new());
    store.set(&www("192.0.2.1")).unwrap();
    let running = serve(Arc::clone(&store));
    let first = serial(&running);
    running.reload_blocking().unwrap();
    running
        .set_zone_text_blocking("example.net", "@ 60 SOA ns a 1 2 3 4 5\n@ 60 NS ns.a.\n")
        .unwrap();
    assert_eq!(told(&running, "example.net", "NS"), "NOERROR ns.a.");
    assert_eq!(told(&running, "www.example.org", "A"), "NOERROR 192.0.2.1");
    assert_eq!(serial(&running), first);
    store.set(&www("192.0.2.2")).unwrap();
    await_answer(&running, "www.example.org", "A", "NOERROR 192.0.2.2", SOON);
    running.reload_blocking().unwrap();
    assert_eq!(told(&running, "www.example.org", "A"), "NOERROR 192.0.2.2");
    assert_eq!(told(&running, "example.net", "NS"), "NOERROR ns.a.");
    let text = "@ 60 SOA ns a 1 2 3 4 5\n@ 60 NS ns.a.\n";
    let error = running.set_zone_text_blocking("Example.org", text).unwrap_err().to_string();
    assert_eq!(error, "zone Example.org: its content comes from a store; change it there");
    assert!(running.remove_zone_text_blocking("example.org").is_err());
    assert_eq!(told(&running, "www.example.org", "A"), "NOERROR 192.0.2.2");
    running.stop_blocking().unwrap();
}

#[test]
fn changes_of_a_store_do_not_wait_for_a_configuration_that_is_being_edited() {
    let folder = zonda_testkit::process::Folder::new("stores");
    let config = folder.write("zonda.toml", "version = 1\n[admin]\nsocket = \"off\"\n");
    let store = Arc::new(MemoryStore::new());
    let app = App::new()
        .config(&config)
        .listen("127.0.0.1:0")
        .workers(1)
        .store("example.org", Arc::clone(&store));
    let running = app.start_blocking().unwrap();
    folder.write("zonda.toml", "version = 1\n[[zone]]\nname = \"half");
    store.set(&www("192.0.2.1")).unwrap();
    await_answer(&running, "www.example.org", "A", "NOERROR 192.0.2.1", SOON);
    assert!(running.reload_blocking().is_err());
    store.set(&www("192.0.2.2")).unwrap();
    await_answer(&running, "www.example.org", "A", "NOERROR 192.0.2.2", SOON);
    running.stop_blocking().unwrap();
}

#[test]
fn a_zone_file_of_the_same_name_is_served_instead_of_a_store() {
    let folder = zonda_testkit::process::Folder::new("stores");
    let soa = "@ 60 SOA ns a 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.53\n";
    let file = folder.write("example.org.zone", soa);
    let store = Arc::new(MemoryStore::new());
    let app = App::new().listen("127.0.0.1:0").workers(1).zone("example.org", file);
    let running = app.store("example.org", Arc::clone(&store)).start_blocking().unwrap();
    store.set(&www("192.0.2.1")).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(told(&running, "www.example.org", "A"), "NXDOMAIN");
    assert_eq!(told(&running, "ns.example.org", "A"), "NOERROR 192.0.2.53");
    running.stop_blocking().unwrap();
}

#[test]
fn a_store_is_served_again_once_its_zone_is_in_no_file_any_more() {
    let folder = zonda_testkit::process::Folder::new("stores");
    let file = folder.write("a.zone", "@ 60 SOA ns a 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.53\n");
    let zone = format!("[[zone]]\nname = \"example.org\"\nfile = \"{}\"\n", file.display());
    let config = folder.write("zonda.toml", format!("version = 1\n{zone}"));
    let store = Arc::new(MemoryStore::new());
    let app = App::new()
        .config(&config)
        .listen("127.0.0.1:0")
        .workers(1)
        .store("example.org", Arc::clone(&store));
    let running = app.start_blocking().unwrap();
    store.set(&www("192.0.2.1")).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    running.reload_blocking().unwrap();
    assert_eq!(told(&running, "www.example.org", "A"), "NXDOMAIN");
    folder.write("zonda.toml", "version = 1\n");
    running.reload_blocking().unwrap();
    assert_eq!(told(&running, "www.example.org", "A"), "NOERROR 192.0.2.1");
    running.stop_blocking().unwrap();
}

#[test]
fn an_invalid_zone_name_is_reported_at_the_start() {
    let app = App::new().listen("127.0.0.1:0").store("a..b", MemoryStore::new());
    assert!(
        app.start_blocking().is_err_and(|error| error.to_string().starts_with("zone `a..b`: "))
    );
}

#[cfg(feature = "redb")]
mod in_a_file {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::path::Path;
    use std::process::{Command, Stdio};
    use zonda::RedbStore;
    use zonda_testkit::process::Folder;

    /// Where a child finds the file that it writes to until it is killed.
    const FILE: &str = "STORE_OF_THE_CHILD";
    /// Records in a set that is whole or not there.
    const RECORDS: usize = 50;

    /// Returns a set that says the number in each of its records.
    fn numbered(number: u32) -> RecordSet {
        let data = (0..RECORDS).map(|record| format!("\"{number}\" \"{record}\""));
        RecordSet::new("set.example.org", "TXT", 60, data)
    }

    /// Returns the number that the set says.
    fn number(store: &RedbStore) -> u32 {
        let sets = store.get("set.example.org").unwrap();
        let numbers = sets.iter().flat_map(|set| &set.data);
        let mut numbers: Vec<u32> =
            numbers.map(|data| data.split('"').nth(1).unwrap().parse().unwrap()).collect();
        assert!(numbers.is_empty() || numbers.len() == RECORDS, "{numbers:?}");
        numbers.dedup();
        assert!(numbers.len() <= 1, "half a set was written: {numbers:?}");
        numbers.pop().unwrap_or_default()
    }

    #[test]
    fn changes_of_an_embedded_store_are_served() {
        let folder = Folder::new("redb");
        check_store(RedbStore::open(folder.path().join("records.redb")).unwrap());
    }

    #[test]
    fn what_was_written_is_there_when_the_file_is_opened_again() {
        let folder = Folder::new("redb");
        let file = folder.path().join("records.redb");
        RedbStore::open(&file).unwrap().set(&www("192.0.2.1")).unwrap();
        let store = RedbStore::open(&file).unwrap();
        let running = serve(store);
        assert_eq!(told(&running, "www.example.org", "A"), "NOERROR 192.0.2.1");
        assert!(RedbStore::open(&file).is_err(), "a file belongs to one at a time");
        running.stop_blocking().unwrap();
        assert_eq!(RedbStore::open(&file).unwrap().get("www.example.org").unwrap().len(), 1);
    }

    #[test]
    fn the_child_writes_until_it_is_killed() {
        let Some(file) = std::env::var_os(FILE) else { return };
        let store = RedbStore::open(Path::new(&file)).unwrap();
        for number in number(&store) + 1.. {
            store.set(&numbered(number)).unwrap();
            println!("\nwritten {number}");
        }
    }

    #[test]
    fn a_process_that_is_killed_while_it_writes_leaves_all_that_it_had_written() {
        let folder = Folder::new("redb");
        let file = folder.path().join("records.redb");
        let mut last = 0;
        for round in 0..8 {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "in_a_file::the_child_writes_until_it_is_killed", "--nocapture"])
                .env(FILE, &file)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let output = BufReader::new(child.stdout.take().unwrap());
            let mut said = output.lines().map_while(Result::ok);
            let told = |line: String| line.strip_prefix("written ")?.parse::<u32>().ok();
            let written = said.by_ref().filter_map(told).nth(3 + 7 * round).unwrap();
            std::thread::sleep(Duration::from_micros(731 * round as u64)); // in mid-write, or not
            child.kill().unwrap(); // SIGKILL
            child.wait().unwrap();
            let written = said.filter_map(told).last().unwrap_or(written);
            assert!(written > last);
            last = number(&RedbStore::open(&file).unwrap());
            assert!((written..=written + 1).contains(&last), "{written} written, {last} there");
        }
    }
}

#[cfg(feature = "redis")]
mod redis {
    use super::*;
    use std::path::Path;
    use zonda::RedisStore;
    use zonda_testkit::Redis;
    use zonda_testkit::process::Folder;

    #[test]
    fn real_peers_redis_passes_the_tests_of_every_store() {
        let Some(redis) = Redis::start() else { return };
        check_store(RedisStore::new(&redis.url()).unwrap());
        check_store(RedisStore::new(&format!("{}/3", redis.url())).unwrap().prefix("dns:"));
        let value = r#"{"data":["ns.example.net"],"ttl":3600}"#;
        assert_eq!(redis.cli(&["HGET", "org:example", "NS"]), value);
    }

    #[test]
    fn real_peers_redis_changes_nothing_where_one_of_the_keys_is_no_hash() {
        let Some(redis) = Redis::start() else { return };
        let store = RedisStore::new(&redis.url()).unwrap();
        redis.cli(&["SET", "org:example:counter", "7"]);
        let sets = ["one.example.org", "counter.example.org", "two.example.org"];
        let sets = sets.map(|owner| RecordSet::new(owner, "A", 60, ["192.0.2.1"]));
        let error = store.set_many(&sets).unwrap_err().to_string();
        assert!(error.contains("org:example:counter holds a string"), "{error}");
        assert_eq!(redis.cli(&["KEYS", "*"]), "org:example:counter", "no other set is there");
        redis.cli(&["DEL", "org:example:counter"]);
        store.set_many(&sets).unwrap();
        assert_eq!(store.get("two.example.org").unwrap().len(), 1);
    }

    #[test]
    fn real_peers_redis_is_followed_through_foreign_changes_and_a_restart() {
        let Some(mut redis) = Redis::start() else { return };
        redis.cli(&["HSET", "org:example:www", "A", "[\"192.0.2.1\"]"]);
        redis.cli(&["HSET", "Org:Example:Mail", "MX", "[{\"exchange\":\"mx.example\"}]"]);
        redis.cli(&["SET", "org:example:counter", "7"]);
        redis.cli(&["HSET", "org:example:bad", "A", "no JSON"]);
        redis.cli(&["HSET", "org:examples", "A", "[\"192.0.2.1\"]"]);
        let running = serve(RedisStore::new(&redis.url()).unwrap());
        assert_eq!(told(&running, "www.example.org", "A"), "NOERROR 192.0.2.1");
        assert_eq!(told(&running, "mail.example.org", "MX"), "NOERROR 0 mx.example.");
        assert_eq!(told(&running, "bad.example.org", "A"), "NXDOMAIN");

        redis.cli(&["HSET", "org:example:www", "A", "[\"192.0.2.2\"]"]);
        await_answer(&running, "www.example.org", "A", "NOERROR 192.0.2.2", SOON);
        redis.cli(&["HSET", "Org:Example:Mail", "MX", "[{\"exchange\":\"mx2.example\"}]"]);
        await_answer(&running, "mail.example.org", "MX", "NOERROR 0 mx2.example.", SOON);
        redis.cli(&["DEL", "Org:Example:Mail"]);
        await_answer(&running, "mail.example.org", "MX", "NXDOMAIN", SOON);

        redis.stop();
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(told(&running, "www.example.org", "A"), "NOERROR 192.0.2.2");
        redis.restart();
        redis.cli(&["HSET", "org:example:new", "A", "[\"192.0.2.3\"]"]);
        await_answer(&running, "new.example.org", "A", "NOERROR 192.0.2.3", AGAIN);
        redis.cli(&["HSET", "org:example:new", "A", "[\"192.0.2.4\"]"]);
        await_answer(&running, "new.example.org", "A", "NOERROR 192.0.2.4", SOON);
        assert_eq!(told(&running, "www.example.org", "A"), "NOERROR 192.0.2.2");
        running.stop_blocking().unwrap();
    }

    #[test]
    fn real_peers_redis_without_notifications_is_compared_periodically() {
        let Some(redis) = Redis::start() else { return };
        redis.cli(&["CONFIG", "SET", "notify-keyspace-events", ""]);
        let store = RedisStore::new(&redis.url()).unwrap();
        let store = Arc::new(store.compare_every(Duration::from_millis(300)));
        let running = serve(Arc::clone(&store));
        redis.cli(&["HSET", "org:example:www", "A", "[\"192.0.2.1\"]"]);
        await_answer(&running, "www.example.org", "A", "NOERROR 192.0.2.1", SOON);
        redis.cli(&["FLUSHALL"]);
        await_answer(&running, "www.example.org", "A", "NXDOMAIN", SOON);
        running.stop_blocking().unwrap();
    }

    #[test]
    fn real_peers_redis_that_falls_silent_is_noticed_while_its_data_are_answered() {
        let Some(redis) = Redis::start() else { return };
        let store = Arc::new(RedisStore::new(&redis.url()).unwrap());
        store.set(&www("192.0.2.1")).unwrap();
        let running = serve(Arc::clone(&store));
        let mut watch = store.watch(&"example.org".parse().unwrap()).unwrap();
        redis.freeze();
        let frozen = Instant::now();
        while watch.wait(Duration::from_millis(500)).is_ok() {
            assert!(frozen.elapsed() < Duration::from_secs(20));
            assert_eq!(told(&running, "www.example.org", "A"), "NOERROR 192.0.2.1");
        }
        assert!(frozen.elapsed() > Duration::from_secs(10));
        let stopping = Instant::now();
        running.stop_blocking().unwrap();
        assert!(stopping.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn real_peers_redis_with_another_password_is_servfail_and_the_error_hides_it() {
        let Some(redis) = Redis::start() else { return };
        let url = redis.url().replacen("s3cret", "guess", 1);
        let store = RedisStore::new(&url).unwrap();
        let error = store.get("example.org").unwrap_err().to_string();
        assert!(error.contains("WRONGPASS") && !error.contains("guess"), "{error}");
        let running = serve(store);
        assert_eq!(told(&running, "www.example.org", "A"), "SERVFAIL");
        running.stop_blocking().unwrap();
    }

    /// Returns a store over TLS that trusts the authority of a file, in a server of this name.
    fn trusting(redis: &Redis, host: &str, authority: &Path) -> RedisStore {
        let url = redis.url().replacen("127.0.0.1", host, 1);
        RedisStore::new(&format!("{url}/0?ca={}", authority.display())).unwrap()
    }

    #[test]
    fn real_peers_redis_over_tls_passes_the_tests_of_every_store() {
        let Some(redis) = Redis::start_with_tls(&["127.0.0.1", "localhost"]) else { return };
        let authority = &redis.certificates().authority;
        check_store(trusting(&redis, "127.0.0.1", authority));
        redis.cli(&["FLUSHALL"]);
        check_store(trusting(&redis, "localhost", authority));
    }

    #[test]
    fn real_peers_redis_over_tls_is_followed_through_foreign_changes_and_a_restart() {
        let Some(mut redis) = Redis::start_with_tls(&["127.0.0.1"]) else { return };
        let running = serve(trusting(&redis, "127.0.0.1", &redis.certificates().authority));
        redis.cli(&["HSET", "org:example:www", "A", "[\"192.0.2.1\"]"]);
        await_answer(&running, "www.example.org", "A", "NOERROR 192.0.2.1", SOON);
        for number in 2..20 {
            let value = format!("[\"192.0.2.{number}\"]");
            redis.cli(&["HSET", "org:example:www", "A", &value]);
            let expected = format!("NOERROR 192.0.2.{number}");
            await_answer(&running, "www.example.org", "A", &expected, SOON);
        }
        redis.stop();
        redis.restart();
        redis.cli(&["HSET", "org:example:new", "A", "[\"192.0.2.3\"]"]);
        await_answer(&running, "new.example.org", "A", "NOERROR 192.0.2.3", AGAIN);
        running.stop_blocking().unwrap();
    }

    #[test]
    fn real_peers_redis_over_tls_sends_and_takes_more_than_a_record_of_tls_holds() {
        let Some(redis) = Redis::start_with_tls(&["127.0.0.1"]) else { return };
        let store = trusting(&redis, "127.0.0.1", &redis.certificates().authority);
        let text = vec![format!("\"{}\"", "x".repeat(250)); 200].join(" ");
        let sets: Vec<_> = (0..200)
            .map(|number| {
                RecordSet::new(format!("n{number}.example.org"), "TXT", 60, [text.as_str()])
            })
            .collect();
        store.set_many(&sets).unwrap();
        let mut loaded = store.load(&"example.org".parse().unwrap()).unwrap();
        loaded.sort_by_key(|set| set.owner[1..].split('.').next().unwrap().parse::<u32>().unwrap());
        assert!(loaded == sets, "{} sets", loaded.len());
    }

    #[test]
    fn real_peers_redis_of_another_authority_is_refused() {
        let Some(redis) = Redis::start_with_tls(&["127.0.0.1"]) else { return };
        let store = trusting(&redis, "127.0.0.1", &redis.certificates().other_authority);
        let error = store.get("www.example.org").unwrap_err().to_string();
        assert!(error.contains("invalid peer certificate: UnknownIssuer"), "{error}");
        let store = RedisStore::new(&redis.url()).unwrap(); // by public roots
        let error = store.get("www.example.org").unwrap_err().to_string();
        assert!(error.contains("invalid peer certificate: UnknownIssuer"), "{error}");
    }

    #[test]
    fn real_peers_redis_with_a_certificate_for_another_name_is_refused() {
        let Some(redis) = Redis::start_with_tls(&["127.0.0.1", "db.example"]) else { return };
        let store = trusting(&redis, "localhost", &redis.certificates().authority);
        let error = store.get("www.example.org").unwrap_err().to_string();
        assert!(error.contains("certificate not valid for name \"localhost\""), "{error}");
    }

    #[test]
    fn real_peers_redis_that_encrypts_is_not_spoken_to_in_the_open_nor_the_reverse() {
        let (Some(open), Some(encrypting)) =
            (Redis::start(), Redis::start_with_tls(&["127.0.0.1"]))
        else {
            return;
        };
        let url = encrypting.url().replacen("rediss", "redis", 1);
        assert!(RedisStore::new(&url).unwrap().get("www.example.org").is_err());
        let url = open.url().replacen("redis", "rediss", 1);
        let error = RedisStore::new(&url).unwrap().get("www.example.org").unwrap_err();
        assert!(error.to_string().contains("TLS: "), "{error}");
    }

    #[test]
    fn a_file_of_roots_that_cannot_be_read_is_an_error_of_the_url() {
        let no_file = RedisStore::new("rediss://127.0.0.1/0?ca=/absent/ca.pem").unwrap_err();
        assert!(no_file.to_string().contains("/absent/ca.pem: No such file"), "{no_file}");
        let folder = Folder::new("roots");
        let file = folder.write("empty.pem", "no certificate\n");
        let url = format!("rediss://127.0.0.1/0?ca={}", file.display());
        let empty = RedisStore::new(&url).unwrap_err();
        assert!(empty.to_string().contains("there is no certificate in it"), "{empty}");
    }
}

#[cfg(feature = "postgres")]
mod postgresql {
    use super::*;
    use zonda::PostgresStore;
    use zonda_testkit::Postgres;

    /// Returns a statement that adds a record.
    fn insert(owner: &str, rtype: &str, data: &str) -> String {
        format!("INSERT INTO zonda_records VALUES ('{owner}', '{rtype}', 60, '{data}')")
    }

    #[test]
    fn real_peers_postgresql_passes_the_tests_of_every_store() {
        let Some(postgres) = Postgres::start() else { return };
        check_store(PostgresStore::new(&postgres.parameters()).unwrap());
        let first = "SELECT owner, type, ttl, data FROM zonda_records ORDER BY owner LIMIT 1";
        assert_eq!(postgres.psql(first), "elsewhere.example|A|60|192.0.2.1");
    }

    #[test]
    fn real_peers_postgresql_is_followed_through_foreign_changes_and_a_restart() {
        let Some(mut postgres) = Postgres::start() else { return };
        let running = serve(PostgresStore::new(&postgres.parameters()).unwrap());
        assert_eq!(told(&running, "www.example.org", "A"), "NXDOMAIN");

        postgres.psql(&insert("WWW.example.org.", "A", "192.0.2.1"));
        await_answer(&running, "www.example.org", "A", "NOERROR 192.0.2.1", SOON);
        postgres.psql("UPDATE zonda_records SET data = '192.0.2.2'");
        await_answer(&running, "www.example.org", "A", "NOERROR 192.0.2.2", SOON);
        postgres.psql("UPDATE zonda_records SET owner = 'mail.example.org'");
        await_answer(&running, "www.example.org", "A", "NXDOMAIN", SOON);
        assert_eq!(told(&running, "mail.example.org", "A"), "NOERROR 192.0.2.2");
        postgres.psql(&insert("bad..example.org", "A", "192.0.2.1"));
        postgres.psql(&insert("bad.example.org", "A", "192.0.2"));
        postgres.psql(
            "INSERT INTO zonda_records SELECT 'n' || n || '.example.org', 'A', 60, '192.0.2.7'
             FROM generate_series(1, 3000) AS n",
        );
        await_answer(&running, "n3000.example.org", "A", "NOERROR 192.0.2.7", SOON);
        assert_eq!(told(&running, "bad.example.org", "A"), "NXDOMAIN");
        postgres.psql("TRUNCATE zonda_records");
        await_answer(&running, "n3000.example.org", "A", "NXDOMAIN", SOON);
        postgres.psql(&insert("www.example.org", "A", "192.0.2.3"));
        await_answer(&running, "www.example.org", "A", "NOERROR 192.0.2.3", SOON);

        postgres.stop();
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(told(&running, "www.example.org", "A"), "NOERROR 192.0.2.3");
        postgres.restart();
        postgres.psql(&insert("new.example.org", "A", "192.0.2.4"));
        await_answer(&running, "new.example.org", "A", "NOERROR 192.0.2.4", AGAIN);
        postgres.psql("UPDATE zonda_records SET data = '192.0.2.5'");
        await_answer(&running, "new.example.org", "A", "NOERROR 192.0.2.5", SOON);
        running.stop_blocking().unwrap();
    }

    /// A PostgreSQL store whose content is compared often.
    fn compared_often(postgres: &Postgres) -> Arc<PostgresStore> {
        let store = PostgresStore::new(&postgres.parameters()).unwrap();
        Arc::new(store.compare_every(Duration::from_millis(300)))
    }

    #[test]
    fn real_peers_postgresql_that_has_lost_its_trigger_is_compared_and_gets_another() {
        let Some(postgres) = Postgres::start() else { return };
        let running = serve(compared_often(&postgres));
        postgres.psql("ALTER TABLE zonda_records DISABLE TRIGGER zonda_records_changed");
        postgres.psql(&insert("www.example.org", "A", "192.0.2.1"));
        await_answer(&running, "www.example.org", "A", "NOERROR 192.0.2.1", 3 * SOON);
        for number in 2..5 {
            postgres.psql("DROP TRIGGER IF EXISTS zonda_records_changed ON zonda_records");
            postgres.psql(&format!("UPDATE zonda_records SET data = '192.0.2.{number}'"));
            let expected = format!("NOERROR 192.0.2.{number}");
            await_answer(&running, "www.example.org", "A", &expected, 3 * SOON);
        }
        let triggers = "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'zonda_records_%'";
        let asked = Instant::now();
        while postgres.psql(triggers) != "2" {
            assert!(asked.elapsed() < 3 * SOON, "the trigger is not made anew");
        }
        running.stop_blocking().unwrap();
    }

    #[test]
    fn real_peers_postgresql_whose_table_was_dropped_gets_another_and_is_written_to() {
        let Some(postgres) = Postgres::start() else { return };
        let store = compared_often(&postgres);
        let running = serve(Arc::clone(&store));
        store.set(&www("192.0.2.1")).unwrap();
        await_answer(&running, "www.example.org", "A", "NOERROR 192.0.2.1", SOON);
        postgres.psql("DROP TABLE zonda_records");
        store.set(&RecordSet::new("new.example.org", "A", 60, ["192.0.2.2"])).unwrap();
        await_answer(&running, "new.example.org", "A", "NOERROR 192.0.2.2", 3 * SOON);
        await_answer(&running, "www.example.org", "A", "NXDOMAIN", 3 * SOON);
        store.set(&www("192.0.2.3")).unwrap();
        await_answer(&running, "www.example.org", "A", "NOERROR 192.0.2.3", SOON);
        running.stop_blocking().unwrap();
    }

    /// Returns a store with these parameters besides, in a server of this name.
    fn store_with(postgres: &Postgres, host: &str, more: &str) -> PostgresStore {
        let parameters = postgres.parameters().replacen("127.0.0.1", host, 1);
        PostgresStore::new(&format!("{parameters} {more}")).unwrap()
    }

    /// Returns how many connections of stores there are, and how many of them are encrypted.
    fn connections(postgres: &Postgres) -> String {
        postgres.psql(
            "SELECT count(*), count(*) FILTER (WHERE ssl) FROM pg_stat_activity
             JOIN pg_stat_ssl USING (pid) WHERE application_name = 'zonda'",
        )
    }

    #[test]
    fn real_peers_postgresql_over_tls_passes_the_tests_of_every_store() {
        let Some(postgres) = Postgres::start_with_tls(&["127.0.0.1"]) else { return };
        let authority = postgres.certificates().authority.display();
        let more = format!("sslmode=verify-full sslrootcert={authority}");
        check_store(store_with(&postgres, "127.0.0.1", &more));
        let url = format!("{}?sslmode=require&sslrootcert={authority}", postgres.url());
        let store = PostgresStore::new(&url).unwrap();
        let _watch = store.watch(&"example.org".parse().unwrap()).unwrap();
        assert!(store.get("elsewhere.example").unwrap().len() == 1);
        assert_eq!(connections(&postgres), "2|2");
    }

    #[test]
    fn real_peers_postgresql_over_tls_is_followed_through_foreign_changes_and_a_restart() {
        let Some(mut postgres) = Postgres::start_with_tls(&["127.0.0.1"]) else { return };
        let authority = postgres.certificates().authority.display();
        let more = format!("sslmode=verify-full sslrootcert={authority}");
        let running = serve(store_with(&postgres, "127.0.0.1", &more));
        postgres.psql(
            "INSERT INTO zonda_records SELECT 'n' || n || '.example.org', 'A', 60, '192.0.2.7'
             FROM generate_series(1, 3000) AS n",
        );
        await_answer(&running, "n3000.example.org", "A", "NOERROR 192.0.2.7", SOON);
        postgres.stop();
        postgres.restart();
        postgres.psql(&insert("new.example.org", "A", "192.0.2.4"));
        await_answer(&running, "new.example.org", "A", "NOERROR 192.0.2.4", AGAIN);
        postgres.psql("UPDATE zonda_records SET data = '192.0.2.5'");
        await_answer(&running, "new.example.org", "A", "NOERROR 192.0.2.5", SOON);
        running.stop_blocking().unwrap();
    }

    #[test]
    fn real_peers_postgresql_of_another_authority_is_refused_where_that_is_verified() {
        let Some(postgres) = Postgres::start_with_tls(&["127.0.0.1"]) else { return };
        let other = postgres.certificates().other_authority.display();
        for more in [
            format!("sslmode=require sslrootcert={other}"),
            format!("sslmode=verify-full sslrootcert={other}"),
            "sslmode=require".to_owned(), // by public roots
        ] {
            let store = store_with(&postgres, "127.0.0.1", &more);
            let error = store.get("www.example.org").unwrap_err().to_string();
            assert!(error.contains("invalid peer certificate: UnknownIssuer"), "{more}: {error}");
        }
        for (more, encrypted) in
            [("", "1|1"), ("sslmode=prefer", "1|1"), ("sslmode=disable", "1|0")]
        {
            let store = store_with(&postgres, "127.0.0.1", more);
            store.get("www.example.org").unwrap();
            assert_eq!(connections(&postgres), encrypted, "{more}");
            drop(store);
            let dropped = Instant::now();
            while connections(&postgres) != "0|0" {
                assert!(dropped.elapsed() < AGAIN, "{more}: the connection stays");
            }
        }
    }

    #[test]
    fn real_peers_postgresql_with_a_certificate_for_another_name_is_refused() {
        let Some(postgres) = Postgres::start_with_tls(&["db.example"]) else { return };
        let authority = postgres.certificates().authority.display();
        for mode in ["require", "verify-full"] {
            let more = format!("sslmode={mode} sslrootcert={authority}");
            let error = store_with(&postgres, "localhost", &more).get("example.org").unwrap_err();
            let error = error.to_string();
            assert!(error.contains("certificate not valid for name \"localhost\""), "{error}");
            // The name is that of the host, also where an address is given besides.
            let more = format!("{more} hostaddr=127.0.0.1");
            assert_eq!(store_with(&postgres, "db.example", &more).get("example.org").unwrap(), []);
        }
    }

    #[test]
    fn real_peers_postgresql_without_tls_is_used_by_sslmode_prefer_and_refused_by_others() {
        let Some(postgres) = Postgres::start() else { return };
        for mode in ["require", "verify-full"] {
            let store = store_with(&postgres, "127.0.0.1", &format!("sslmode={mode}"));
            let error = store.get("www.example.org").unwrap_err().to_string();
            assert!(error.contains("server does not support TLS"), "{error}");
        }
        for mode in ["prefer", "disable"] {
            let store = store_with(&postgres, "127.0.0.1", &format!("sslmode={mode}"));
            assert_eq!(store.get("www.example.org").unwrap(), []);
        }
    }

    #[test]
    fn real_peers_postgresql_may_be_written_to_by_asynchronous_code() {
        let Some(postgres) = Postgres::start() else { return };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = PostgresStore::new(&postgres.parameters()).unwrap();
            store.set(&www("192.0.2.1")).unwrap();
            let watch = store.watch(&"example.org".parse().unwrap()).unwrap();
            assert_eq!(store.get("www.example.org").unwrap(), [www("192.0.2.1")]);
            drop((watch, store));
        });
    }
}

#[test]
fn a_zone_that_follows_a_store_answers_queries_without_sockets() {
    let store = MemoryStore::new();
    store.set(&www("192.0.2.1")).unwrap();
    let running = serve(store);
    let query = Question::new("www.example.org", "A").to_bytes(7);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let reply = runtime.block_on(running.query_message(&query)).unwrap();
    assert_eq!(Message::parse(&reply).unwrap().records[0].rdata, [192, 0, 2, 1]);
    running.stop_blocking().unwrap();
}
