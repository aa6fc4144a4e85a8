//! What code that fails or takes too long leaves in the log. One test: a process has one log.

#![allow(clippy::unwrap_used)]

use std::fmt::Debug;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};
use zonda::{App, OwnedQuery, Query, Rcode, Reply, Running, Stage, Type};
use zonda_testkit::process::free_port;

/// The lines that were logged as warnings and errors.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Collects the lines of the log.
struct LogLines;

/// Reads the message of a line, and its fields behind it.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &match field.name() {
            "message" => format!("{value:?}"),
            name => format!(" {name}={value:?}"),
        };
    }
}

impl Subscriber for LogLines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        LINES.lock().unwrap().push(format!("{} {}", event.metadata().level(), text.0));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Returns the lines of the log that hold all of some words, once there are any.
fn lines(words: &[&str]) -> Vec<String> {
    let since = Instant::now();
    loop {
        let all = LINES.lock().unwrap().clone();
        let found: Vec<String> = all
            .iter()
            .filter(|line| words.iter().all(|word| line.contains(word)))
            .cloned()
            .collect();
        if !found.is_empty() {
            return found;
        }
        assert!(since.elapsed() < Duration::from_secs(20), "no {words:?} in {all:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns how many calls in workers took too long.
fn long_calls(admin: SocketAddr) -> u64 {
    let mut connection = TcpStream::connect(admin).unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    connection.write_all(request.as_bytes()).unwrap();
    let mut page = String::new();
    connection.read_to_string(&mut page).unwrap();
    let metric = "zonda_handler_long_calls_total ";
    let value = page.lines().find_map(|line| line.strip_prefix(metric));
    value.unwrap_or_else(|| panic!("no {metric}in {page}")).parse().unwrap()
}

/// Panics, or keeps its worker, before and after some names.
struct FaultySource(Arc<AtomicBool>);

impl Stage for FaultySource {
    fn before(&self, query: &Query, _: &mut Reply) {
        assert_ne!(query.name().label(0), b"before", "a mistake in front");
        if query.name().label(0) == b"lingers" {
            wait_for(&self.0);
        }
    }

    fn after(&self, query: &Query, _: &mut Reply) {
        assert_ne!(query.name().label(0), b"after", "a mistake behind");
    }
}

/// Blocks the thread until it is released, after the long call was logged.
fn wait_for(release: &AtomicBool) {
    let since = Instant::now();
    while !release.load(Ordering::Acquire) && since.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Asks for a name, in a thread of its own, until `look` has seen what it waits for.
fn ask_while(running: &Running, name: &str, release: &AtomicBool, look: impl FnOnce()) {
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| rcode(running, name));
        look();
        release.store(true, Ordering::Release);
        assert_eq!(asked.join().unwrap(), Rcode::REFUSED);
    });
    release.store(false, Ordering::Release);
}

/// Returns the response code for a name.
fn rcode(running: &Running, name: &str) -> Rcode {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(running.query(name, Type::A)).unwrap().rcode()
}

#[test]
fn code_that_fails_or_takes_too_long_is_named_in_the_log_and_does_not_fill_it() {
    tracing::subscriber::set_global_default(LogLines).unwrap();
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.to_string().contains("a mistake") {
            print(panic);
        }
    }));
    let (release, admin) = (Arc::<AtomicBool>::default(), free_port());
    let admin = SocketAddr::from(([127, 0, 0, 1], admin));
    let mut app = App::new()
        .listen_nowhere()
        .metrics(admin)
        .stage(FaultySource(Arc::clone(&release)))
        .handle("here.example", |_: &Query, _: &mut Reply| -> () { panic!("a mistake here") })
        .handle("error.example", |_: &Query, _: &mut Reply| Err::<(), _>("no database"))
        .handle_async("afar.example", |_: OwnedQuery| async {
            panic!("a mistake {}", "afar") as Reply
        })
        .handle_async("at-once.example", |_: OwnedQuery| -> std::future::Ready<Reply> {
            panic!("a mistake at once")
        });
    let known = Arc::clone(&release);
    app = app.handle("*.long.test", move |_: &Query, reply: &mut Reply| {
        wait_for(&known);
        reply.refused();
    });
    let running = app.start_blocking().unwrap();

    for (name, words) in [
        ("here.example", ["code panicked code=\"the handler of here.example\"", "a mistake here"]),
        ("error.example", ["the handler failed route=error.example", "no database"]),
        ("afar.example", ["code panicked route=\"afar.example\"", "a mistake afar"]),
        ("at-once.example", ["code panicked route=\"at-once.example\"", "a mistake at once"]),
        ("before.example", ["code=\"a middleware\"", "a mistake in front"]),
        ("after.example", ["code=\"a middleware\"", "a mistake behind"]),
    ] {
        assert_eq!(rcode(&running, name), Rcode::SERVFAIL, "{name}");
        assert!(lines(&words)[0].starts_with("ERROR "), "{name}");
    }
    for (name, what) in [("here.example", "panicked"), ("error.example", "failed")] {
        let (since, before) = (Instant::now(), lines(&[name, what]).len());
        (0..500).for_each(|_| assert_eq!(rcode(&running, name), Rcode::SERVFAIL));
        let (seconds, after) = (since.elapsed().as_secs() as usize, lines(&[name, what]).len());
        assert!(after - before <= 10 * (seconds + 2), "{} in {seconds} s", after - before);
    }

    for (name, what) in
        [("a.long.test", "the handler of *.long.test"), ("lingers.test", "a middleware")]
    {
        let before = long_calls(admin); // a panic may take long where its trace is printed
        ask_while(&running, name, &release, || {
            let told = lines(&[what, "has been running for a second in a worker"]);
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(told[0].starts_with("WARN "), "{told:?}");
            assert_eq!(long_calls(admin), before + 1);
        });
    }
    running.stop_blocking().unwrap();
}
