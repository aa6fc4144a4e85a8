//! What an app reports about itself over HTTP.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use zonda::store::{Announcer, Changes, StoreError, Watch};
use zonda::{
    App, Event, MemoryStore, Message, Name, OwnedQuery, Rcode, RecordSet, Reply, Store, Type,
};
use zonda_engine::Reason;
use zonda_testkit::process::{Folder, free_port};

/// The page that documents all metrics.
const DOCS: &str = include_str!("../../../docs/metrics.md");

/// Returns the status and what else is answered to the beginning of a request, without headers.
fn exchange(mut connection: impl Read + Write, head: &str) -> (u16, String) {
    let request = format!("{head}Host: localhost\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    connection.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}

/// Returns what a path answers, without headers.
fn get(address: SocketAddr, path: &str) -> String {
    exchange(TcpStream::connect(address).unwrap(), &format!("GET {path} HTTP/1.1\r\n")).1
}

/// Returns the value of a metric of the zone `example.org`.
fn metric(address: SocketAddr, name: &str) -> u64 {
    let page = get(address, "/metrics");
    let start = format!("{name}{{zone=\"example.org.\"}} ");
    let value = page.lines().find_map(|line| line.strip_prefix(&start));
    value.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().unwrap()
}

/// Waits until a metric of the zone `example.org` has a value.
fn await_metric(address: SocketAddr, name: &str, expected: u64) {
    let since = Instant::now();
    while metric(address, name) != expected {
        assert!(since.elapsed() < Duration::from_secs(8), "{name}: {}", metric(address, name));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A store with records that nothing checks, and that can be switched off.
#[derive(Default)]
struct SwitchableStore {
    sets: Mutex<Vec<RecordSet>>,
    is_down: AtomicBool,
    announcer: Announcer,
}

impl SwitchableStore {
    /// Fails if it is switched off.
    fn answer<T>(&self, answer: T) -> Result<T, StoreError> {
        match self.is_down.load(Ordering::Relaxed) {
            true => Err(StoreError::failed("it is switched off")),
            false => Ok(answer),
        }
    }

    /// Adds records to the store.
    fn add(&self, records: RecordSet) {
        let owner = records.owner.clone();
        self.sets.lock().unwrap().push(records);
        self.announcer.announce(&owner);
    }
}

/// The store as an app takes it.
struct Handle(Arc<SwitchableStore>);

/// Fails when the store is switched off.
struct SwitchableWatch(Arc<SwitchableStore>, Box<dyn Watch>);

impl Store for Handle {
    fn load(&self, _: &Name) -> Result<Vec<RecordSet>, StoreError> {
        self.0.answer(self.0.sets.lock().unwrap().clone())
    }

    fn get(&self, owner: &str) -> Result<Vec<RecordSet>, StoreError> {
        let sets = self.0.sets.lock().unwrap();
        self.0.answer(sets.iter().filter(|set| set.owner == owner).cloned().collect())
    }

    fn set(&self, _: &RecordSet) -> Result<(), StoreError> {
        self.0.answer(())
    }

    fn remove(&self, _: &str, _: Type) -> Result<bool, StoreError> {
        self.0.answer(false)
    }

    fn watch(&self, _: &Name) -> Result<Box<dyn Watch>, StoreError> {
        self.0.answer(Box::new(SwitchableWatch(Arc::clone(&self.0), self.0.announcer.watch())))
    }
}

impl Watch for SwitchableWatch {
    fn wait(&mut self, patience: Duration) -> Result<Changes, StoreError> {
        let changes = self.1.wait(patience.min(Duration::from_millis(10)))?;
        self.0.answer(changes)
    }
}

#[test]
fn metrics_and_the_list_of_zones_show_how_a_zone_follows_its_store() {
    let (store, other) = (Arc::<SwitchableStore>::default(), MemoryStore::new());
    store.add(RecordSet::new("www.example.org", "A", 60, ["192.0.2.1"]));
    store.is_down.store(true, Ordering::Relaxed);
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let folder = Folder::new("store");
    let socket = folder.path().join("admin.sock");
    let config = format!("version = 1\n[admin]\nsocket = {socket:?}\n");
    let app = App::new()
        .config(folder.write("zonda.toml", config))
        .listen("127.0.0.1:0")
        .workers(1)
        .metrics(admin)
        .store("example.net", other)
        .store("Example.org", Handle(Arc::clone(&store)))
        .zone_text("example.com", "@ 60 SOA ns.a. a. 1 2 3 4 5\n@ 60 NS ns.a.\n");
    let running = app.start_blocking().unwrap();
    let told = |name: &str| metric(admin, name);
    assert_eq!(told("zonda_store_reachable"), 0);
    assert_eq!(told("zonda_store_in_step_timestamp_seconds"), 0);
    assert!(get(admin, "/metrics").contains("zonda_store_reachable{zone=\"example.net.\"} 1\n"));

    store.is_down.store(false, Ordering::Relaxed);
    await_metric(admin, "zonda_store_reachable", 1);
    assert_eq!(told("zonda_store_loads_total"), 1);
    assert_eq!(told("zonda_store_changes_total"), 0);
    assert_eq!(told("zonda_store_left_out_records"), 0);
    store.add(RecordSet::new("x.example.org", "A", 60, ["192.0.2.2", "no", "nor this"]));
    store.add(RecordSet::new("x.example.org", "CNAME", 60, ["www.example.org"]));
    store.add(RecordSet::new("x.example.com", "A", 60, ["of another zone"]));
    await_metric(admin, "zonda_store_left_out_records", 3);
    assert!((1..=2).contains(&told("zonda_store_changes_total")));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert!(now.abs_diff(told("zonda_store_in_step_timestamp_seconds")) <= 2);

    store.is_down.store(true, Ordering::Relaxed);
    await_metric(admin, "zonda_store_reachable", 0);
    let last = told("zonda_store_in_step_timestamp_seconds");
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(told("zonda_store_in_step_timestamp_seconds"), last);
    let ask = |path: &str| {
        let connection = UnixStream::connect(&socket).unwrap();
        exchange(connection, &format!("GET {path} HTTP/1.1\r\n")).1
    };
    let zone = ask("/v1/zones/example.org");
    for part in ["\"reachable\": false", "\"left_out\": 3", "\"loads\": 1", "\"in_step\": \"20"] {
        assert!(zone.contains(part), "{part} in {zone}");
    }
    assert!(ask("/v1/zones/example.com").contains("\"store\": null"));
    store.is_down.store(false, Ordering::Relaxed);
    await_metric(admin, "zonda_store_loads_total", 2);
    running.stop_blocking().unwrap();
}

#[test]
fn metrics_on_a_public_address_are_refused_without_a_token() {
    let public = SocketAddr::from(([0, 0, 0, 0], free_port()));
    let app = App::new().listen("127.0.0.1:0").workers(1).metrics(public);
    let Err(error) = app.start_blocking() else { panic!("it started") };
    let told = error.to_string();
    assert!(told.contains(&format!("others can reach {public}")), "{told}");
}

#[test]
fn an_address_of_metrics_accepts_no_commands() {
    const TOKEN: &str = "Authorization: Bearer correct-horse-battery\r\n";
    let folder = Folder::new("token");
    let config = "version = 1\n[admin]\nsocket = \"off\"\ntoken = \"correct-horse-battery\"\n";
    let config = folder.write("zonda.toml", config);
    let port = free_port();
    for (has_token, address) in [(false, [127, 0, 0, 1]), (true, [0, 0, 0, 0])] {
        let mut app = App::new().listen("127.0.0.1:0").workers(1).metrics((address, port));
        if has_token {
            app = app.config(&config);
        }
        let running = app.start_blocking().unwrap();
        for (request, without, with) in [
            ("GET /metrics", 200, 200),
            ("GET /health", 200, 200),
            ("GET /ready", 200, 200),
            ("GET /v1/version", 200, 200),
            ("GET /v1/status", 404, 404),
            ("GET /v1/zones", 404, 404),
            ("DELETE /v1/cache/example.org", 404, 404),
            ("POST /v1/reload", 404, 404),
            ("POST /v1/stop", 404, 404),
            ("GET /health", 200, 200),
        ] {
            let status = |token: &str| {
                let connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
                exchange(connection, &format!("{request} HTTP/1.1\r\n{token}")).0
            };
            let without = if has_token { 401 } else { without };
            assert_eq!([status(""), status(TOKEN)], [without, with], "{request}, {has_token}");
        }
        running.stop_blocking().unwrap();
    }
}

#[test]
fn all_metrics_and_reasons_are_documented() {
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let app = App::new()
        .listen("127.0.0.1:0")
        .workers(1)
        .metrics(admin)
        .forward("127.0.0.1:9")
        .store("example.org", MemoryStore::new())
        .handle_async("example.net", |_: OwnedQuery| async { Reply::default() });
    let running = app.start_blocking().unwrap();
    let page = get(admin, "/metrics");
    let names = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let undocumented: Vec<_> = names.filter(|name| !DOCS.contains(&format!("`{name}`"))).collect();
    assert!(undocumented.is_empty(), "{undocumented:?}");
    for reason in Reason::ALL {
        assert!(DOCS.contains(&format!("\n| `{}` |", reason.name())), "{}", reason.name());
    }
    running.stop_blocking().unwrap();
}

/// Returns the value of the metric that a line of the page starts with; 0 if there is none.
fn counted(admin: SocketAddr, metric: &str) -> u64 {
    let page = get(admin, "/metrics");
    let value = page.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
    value.map_or(0, |value| value.parse().unwrap())
}

#[test]
fn a_query_for_which_code_has_no_room_is_answered_counted_and_logged() {
    let (sender, lines) = std::sync::mpsc::channel();
    let admin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let app = App::new()
        .listen("127.0.0.1:0")
        .workers(1)
        .metrics(admin)
        .waiting_max(1)
        .deadline(Duration::from_millis(500))
        .handle_async("*.example", |_: OwnedQuery| std::future::pending::<Reply>())
        .logger(move |event: &Event| {
            let _ = sender.send((event.reason.name(), event.rcode, event.qtype()));
        });
    let running = app.start_blocking().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(running.addresses()[0]).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let header = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01".as_slice();
    let name = b"\x01a\x07example\0".as_slice();
    let opt = b"\0\x01\0\0\x29\x04\xd0\0\0\0\0\0\0".as_slice();
    for qtype in [[0, 1], [0, 16]] {
        socket.send(&[header, name, &qtype, opt].concat()).unwrap();
    }
    let mut replies = Vec::new();
    for _ in 0..2 {
        let mut buffer = [0; 512];
        let len = socket.recv(&mut buffer).unwrap();
        let reply = Message::parse(&buffer[..len]).unwrap();
        assert_eq!(reply.rcode(), Rcode::SERVFAIL);
        let [(15, error)] = &reply.opt.as_ref().unwrap().options[..] else { panic!("{reply:?}") };
        assert_eq!(error[..2], [0, 0]);
        replies.push((reply.questions[0].qtype, String::from_utf8_lossy(&error[2..]).into_owned()));
    }
    let busy = "too many queries wait for the code that answers for this name";
    let late = "the code that answers for this name did not answer in time";
    assert_eq!(replies, [(Type::TXT, busy.to_owned()), (Type::A, late.to_owned())]);
    let logged = [(); 2].map(|()| lines.recv_timeout(Duration::from_secs(20)).unwrap());
    let line = |reason, qtype| (reason, Some(Rcode::SERVFAIL), qtype);
    assert_eq!(logged, [line("handler_busy", Type::TXT), line("handler_timeout", Type::A)]);
    assert_eq!(counted(admin, "zonda_queries_total{reason=\"handler_busy\"}"), 1);
    let page = get(admin, "/metrics");
    let replies = page.lines().filter(|line| line.starts_with("zonda_replies_total{"));
    let sum: u64 = replies.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum();
    assert_eq!(sum, 2, "{page}");
    running.stop_blocking().unwrap();
}
