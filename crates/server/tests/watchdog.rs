//! What becomes of the server when one of its own threads panics.
//!
//! The log is what panics: a program may write it as it likes, and each thread logs.

#![allow(clippy::unwrap_used)]

use std::fmt::{Debug, Write as _};
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use zonda_config::Flags;
use zonda_server::client::{Answer, ask};
use zonda_server::{Options, Program, Server, read_config};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The zone `example.org`.
const ZONE: &str = "@ 300 SOA ns h 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.1\n";

/// Texts of log lines for which the log panics.
static POISON: Mutex<Vec<&str>> = Mutex::new(Vec::new());

/// A log that panics.
struct PanickingLog;

/// The fields of an event as text.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        write!(self.0, "{value:?} ").unwrap();
    }
}

impl Subscriber for PanickingLog {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let is_poison = POISON.lock().unwrap().iter().any(|poison| text.0.contains(poison));
        assert!(!is_poison, "injected by the test: {}", text.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// Waits until something is so.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let limit = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < limit, "still not so: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// The number of a metric, labels included in its name.
fn metric(socket: &Path, name: &str) -> u64 {
    let page = ask(socket, "GET", "/metrics").unwrap().body;
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse().unwrap()
}

/// Asks for the sockets as a successor does, and goes away; whether there were any. A thread of the
/// hand-over that is down for good has closed its socket.
fn go_away_as_a_successor(socket: &Path) -> bool {
    let mut beside = socket.as_os_str().to_owned();
    beside.push(".hand-over");
    let Ok(mut stream) = UnixStream::connect(Path::new(&beside)) else { return false };
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    stream.read_exact(&mut [0; 6]).is_ok()
}

#[test]
fn a_thread_that_panics_goes_on_and_one_that_is_down_is_told_of_until_the_end() {
    tracing::subscriber::set_global_default(PanickingLog).unwrap();
    let folder = std::env::temp_dir().join(format!("zonda-watchdog-{}", std::process::id()));
    fs::create_dir_all(folder.join("zones")).unwrap();
    let (socket, config) = (folder.join("admin.sock"), folder.join("zonda.toml"));
    let admin = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = format!(
        "version = 1\nwatch = true\nwatch-interval = \"100 ms\"\n[admin]\nsocket = {socket:?}\n\
         [[zone]]\ndirectory = \"zones\"\n"
    );
    fs::write(&config, text).unwrap();
    let flags = Flags { listen: vec!["127.0.0.1:0".to_owned()], ..Flags::default() };
    let load = move || read_config(Some(&config), &flags, Some(admin));
    let (config, read_config) = (load().unwrap(), Box::new(load));
    let program = Program::default();
    let options = Options { config, read_config, take_over: false, program };
    let server = Server::start(options).unwrap();
    let ready = || ask(&socket, "GET", "/ready").unwrap();
    let is_ready = |answer: Answer| answer.status == 200;
    assert!(is_ready(ready()));
    for thread in ["hand-over", "tcp-0", "admin-socket", "admin-http"] {
        assert_eq!(metric(&socket, &format!("zonda_thread_down{{thread=\"{thread}\"}}")), 0);
    }

    // Looks at watched files: what they do is told of while it panics, and goes on.
    *POISON.lock().unwrap() = vec!["zones reloaded"];
    fs::write(folder.join("zones/example.org.zone"), ZONE).unwrap();
    wait_until("a look has panicked", || {
        metric(&socket, "zonda_thread_panics_total{thread=\"watch\"}") > 0
    });
    POISON.lock().unwrap().clear();
    fs::write(folder.join("zones/example.net.zone"), ZONE).unwrap();
    wait_until("both zones are served", || {
        let zones = ask(&socket, "GET", "/v1/zones").unwrap().body;
        zones.contains("example.org.") && zones.contains("example.net.")
    });
    wait_until("it is ready again", || is_ready(ready()));

    // The publisher: what the reload was to remove and to load is removed and loaded by the next.
    *POISON.lock().unwrap() = vec!["a zone was not loaded"];
    fs::write(folder.join("zones/example.com.zone"), ZONE).unwrap();
    fs::write(folder.join("zones/example.net.zone"), "@ wrong").unwrap();
    fs::remove_file(folder.join("zones/example.org.zone")).unwrap();
    wait_until("the publisher has panicked", || {
        metric(&socket, "zonda_thread_panics_total{thread=\"publisher\"}") > 0
    });
    POISON.lock().unwrap().clear();
    wait_until("the zones are those of the files", || {
        let zones = ask(&socket, "GET", "/v1/zones").unwrap().body;
        let has = |name| zones.contains(name);
        has("example.com.") && has("example.net.") && !has("example.org.")
    });
    wait_until("the zone that is wrong is served as it was", || {
        let zone = ask(&socket, "GET", "/v1/zones/example.net").unwrap().body;
        zone.contains("error") && zone.contains("\"serial\": 1")
    });
    fs::write(folder.join("zones/example.net.zone"), ZONE).unwrap();
    wait_until("it is ready again", || is_ready(ready()));

    // The thread of the hand-over: each panic is followed by a new start, up to a bound.
    *POISON.lock().unwrap() = vec!["the successor went away"];
    assert!(go_away_as_a_successor(&socket));
    let panics = || metric(&socket, "zonda_thread_panics_total{thread=\"hand-over\"}");
    wait_until("the first panic is counted", || panics() == 1);
    assert!(is_ready(ready()));
    wait_until("it panics too often", || {
        go_away_as_a_successor(&socket);
        !is_ready(ready())
    });
    assert_eq!(ready().body, "thread hand-over is down; see the log\n");
    assert_eq!(panics(), 11);
    assert_eq!(metric(&socket, "zonda_thread_down{thread=\"hand-over\"}"), 1);
    let status = ask(&socket, "GET", "/v1/status").unwrap().body;
    assert!(status.contains("thread hand-over is down; see the log"), "{status}");
    let end = server.stop().unwrap_err().to_string();
    assert_eq!(end, "threads that had ended before the stop: hand-over; see the log");
    fs::remove_dir_all(folder).unwrap();
}
