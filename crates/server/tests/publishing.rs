//! The admin interface while zones load and changes are published.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};
use zonda_config::Flags;
use zonda_engine::code::{Handler, HandlerQuery, HandlerReply, Route};
use zonda_server::client::ask;
use zonda_server::{Code, Options, Program, Server, Texts, read_config};
use zonda_store::{MemoryStore, Store};
use zonda_wire::{Name, Rcode};

/// Longest time that most requests may take.
const REQUEST_MOST: Duration = Duration::from_millis(10);
/// Longest time that any of them may take: a build without optimisation on two busy CPUs needs tens
/// of milliseconds for a page, and what is waited for here takes seconds. The example `changes`
/// measures the longest time of an optimised build.
const REQUEST_MAX: Duration = Duration::from_millis(250);
/// Requests that must have been answered while a zone loads.
const REQUESTS_MIN: usize = 60;
/// How long the handler keeps its worker.
const BUSY: Duration = Duration::from_secs(4);
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with the zone `example.org` of a file, a pool of that name, the zone `example.net` of
/// the program, and code that keeps a worker busy.
struct Zonda {
    server: Arc<Server>,
    folder: PathBuf,
    /// Whether the code was called.
    is_busy: Arc<AtomicBool>,
}

/// The text of a zone with this serial and so many further names.
fn zone(serial: u32, names: u32) -> String {
    let more =
        if names == 0 { String::new() } else { format!("$GENERATE 1-{names} h$ A 192.0.2.1\n") };
    format!("$TTL 60\n@ SOA ns h {serial} 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n{more}")
}

impl Zonda {
    fn start(name: &str) -> Self {
        Self::start_with(name, Vec::new())
    }

    /// Starts a server that also has zones which follow stores of the program.
    fn start_with(name: &str, stores: Vec<(Name, Arc<dyn Store>)>) -> Self {
        let folder = std::env::temp_dir().join(format!("zonda-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("example.org.zone"), zone(1, 0)).unwrap();
        let socket = folder.join("admin.sock");
        let config = folder.join("zonda.toml");
        let text = format!(
            "version = 1\n[admin]\naddress = \"off\"\nsocket = {socket:?}\n\
             [[zone]]\nname = \"example.org\"\nfile = \"example.org.zone\"\n\
             [[pool]]\nname = \"example.org\"\nmembers = [{{ address = \"192.0.2.1\" }}]\n"
        );
        fs::write(&config, text).unwrap();
        let flags = Flags { listen: vec!["127.0.0.1:0".to_owned()], ..Flags::default() };
        let texts = Texts::from([("example.net".parse().unwrap(), zone(1, 0).into())]);
        let load = move || read_config(Some(&config), &flags, None);
        let is_busy = Arc::<AtomicBool>::default();
        let called = Arc::clone(&is_busy);
        let code = move |_: &HandlerQuery<'_>, reply: &mut HandlerReply| {
            called.store(true, Ordering::SeqCst);
            thread::sleep(BUSY);
            reply.reply(Rcode::NOERROR);
        };
        let handler = Handler::Here(Arc::new(code));
        let route = Route { pattern: "busy.test/A".parse().unwrap(), handler };
        let code = Code { routes: vec![route], ..Code::default() };
        let program = Program { code, texts, stores, ..Program::default() };
        let (config, read_config) = (load().unwrap(), Box::new(load));
        let options = Options { config, read_config, take_over: false, program };
        let server = Arc::new(Server::start(options).unwrap());
        Self { server, folder, is_busy }
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("admin.sock")
    }

    /// Asks each request that reads once; returns the time that each has taken, with its path.
    fn request_times(&self) -> Vec<(Duration, String)> {
        let socket = self.socket();
        let list: Value = serde_json::from_str(&ask(&socket, "GET", "/v1").unwrap().body).unwrap();
        let requests = list["requests"].as_array().unwrap();
        let reading = requests.iter().filter(|request| request["method"] == "GET");
        let paths = reading.map(|request| request["path"].as_str().unwrap());
        let timed = paths.map(|path| {
            let path = path.replace("ZONE", "example.org").replace("NAME", "example.org");
            let path = path.replace("TYPE", "SOA");
            let path = if path == "/v1/cache" { "/v1/cache?name=a.test".to_owned() } else { path };
            let started = Instant::now();
            let answer = ask(&socket, "GET", &path).unwrap();
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            (started.elapsed(), path)
        });
        timed.collect()
    }

    fn end(self) {
        Arc::into_inner(self.server).unwrap().stop().unwrap();
        fs::remove_dir_all(self.folder).unwrap();
    }
}

/// Sends a query for the code, and does not wait for its answer.
fn keep_a_worker_busy(server: SocketAddr) {
    let name: Name = "busy.test".parse().unwrap();
    let header = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0";
    let query = [&header[..], name.as_wire(), &[0, 1, 0, 1]].concat();
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&query, server).unwrap();
}

/// Waits until something is so.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let limit = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < limit, "still not so: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn serial(socket: &Path, zone: &str) -> u64 {
    let body = ask(socket, "GET", &format!("/v1/zones/{zone}")).unwrap().body;
    serde_json::from_str::<Value>(&body).unwrap()["serial"].as_u64().unwrap()
}

#[test]
fn neither_readers_nor_changes_wait_for_a_worker_that_reads_an_older_snapshot() {
    let zonda = Zonda::start("busy");
    keep_a_worker_busy(zonda.server.addresses()[0]);
    wait_until("the code is called", || zonda.is_busy.load(Ordering::SeqCst));
    let called = Instant::now();
    let server = Arc::clone(&zonda.server);
    let change = thread::spawn(move || {
        let name = "example.net".parse().unwrap();
        server.set_zone_text(&name, &zone(2, 0)).unwrap();
        server.set_code(Code::default());
        Instant::now()
    });
    thread::sleep(Duration::from_millis(100));
    let (slowest, path) = zonda.request_times().into_iter().max().unwrap();
    assert!(slowest < REQUEST_MAX, "{path} took {slowest:?}");
    let changed = change.join().unwrap();
    assert_eq!(serial(&zonda.socket(), "example.net"), 2);
    assert!(changed - called < BUSY / 2, "the changes took {:?}", changed - called);
    assert!(called.elapsed() < BUSY, "the worker was not busy all the time");
    zonda.end();
}

#[test]
fn readers_are_answered_at_once_while_a_zone_loads_and_others_change() {
    /// Names of the zone that loads: a build without optimisation reads them for seconds.
    const NAMES: u32 = 400_000;
    let zonda = Zonda::start("load");
    let is_over = Arc::<AtomicBool>::default();
    let changes = Arc::<AtomicU32>::default();
    let (server, over, changed) =
        (Arc::clone(&zonda.server), Arc::clone(&is_over), Arc::clone(&changes));
    let changing = thread::spawn(move || {
        let name = "example.net".parse().unwrap();
        while !over.load(Ordering::SeqCst) {
            let serial = changed.fetch_add(1, Ordering::SeqCst) + 2;
            server.set_zone_text(&name, &zone(serial, 0)).unwrap();
            thread::sleep(Duration::from_micros(500));
        }
    });
    let mut times = Vec::new();
    let watch = Instant::now();
    while watch.elapsed() < Duration::from_secs(1) {
        times.extend(zonda.request_times());
    }
    let before = times.len();
    fs::write(zonda.folder.join("example.org.zone"), zone(2, NAMES)).unwrap();
    let server = Arc::clone(&zonda.server);
    let loading = thread::spawn(move || server.reload().unwrap());
    while !loading.is_finished() {
        times.extend(zonda.request_times());
    }
    assert!(loading.join().unwrap().is_empty());
    assert_eq!(serial(&zonda.socket(), "example.org"), 2);
    is_over.store(true, Ordering::SeqCst);
    changing.join().unwrap();
    let changes = changes.load(Ordering::SeqCst);
    let meanwhile = times.len() - before;
    assert!(meanwhile >= REQUESTS_MIN, "{meanwhile} requests were answered while the zone loaded");
    times.sort();
    let (most, (longest, path)) = (times[times.len() / 2].0, &times[times.len() - 1]);
    assert!(most < REQUEST_MOST, "half of the requests took longer than {most:?}");
    assert!(*longest < REQUEST_MAX, "{path} took {longest:?}");
    assert!(changes > 100, "{changes} changes");
    zonda.end();
}

#[test]
fn what_a_program_has_updated_stays_when_its_zone_is_reloaded_again_and_again() {
    let zonda = Zonda::start("updated");
    let name = "example.net".parse().unwrap();
    zonda.server.set_zone_text(&name, &zone(2, 0)).unwrap();
    for round in 1..=3 {
        let answer = ask(&zonda.socket(), "POST", "/v1/reload?zone=example.net").unwrap();
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(serial(&zonda.socket(), "example.net"), 2, "after reload {round}");
    }
    zonda.end();
}

#[test]
fn stores_that_were_stopped_are_not_followed_again_by_a_reload() {
    let name: Name = "stored.test".parse().unwrap();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let zonda = Zonda::start_with("stopped", vec![(name.clone(), store)]);
    zonda.server.reload().unwrap();
    assert!(zonda.server.follows_store(&name));
    zonda.server.stop_stores();
    assert!(zonda.server.reload().unwrap().is_empty());
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = threads.filter_map(|it| fs::read_to_string(it.path().join("comm")).ok());
    assert_eq!(names.filter(|name| name.trim() == "zonda-store").count(), 0);
    zonda.end();
}
