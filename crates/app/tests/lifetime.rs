//! How an app starts, stops, ends by itself, and changes its handlers while it runs.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};
use zonda::{App, Captures, State, Txt, Type};
use zonda_testkit::process::{Folder, free_port};

/// How long a server may take to start or stop.
const CHANGE_MAX: Duration = Duration::from_secs(20);

/// Waits until something is so.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let limit = Instant::now() + CHANGE_MAX;
    while !is_so() {
        assert!(Instant::now() < limit, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whether an address can be listened on.
fn is_free(address: SocketAddr) -> bool {
    UdpSocket::bind(address).is_ok()
}

/// Returns an app on a free port that shares a value, and what is gone when nothing has it.
fn app() -> (App, Weak<u8>) {
    let shared = Arc::new(7_u8);
    let watched = Arc::downgrade(&shared);
    let app = App::new()
        .listen("127.0.0.1:0")
        .workers(1)
        .state(shared)
        .handle("a.example", |number: State<Arc<u8>>| Txt::new(number.to_string()))
        .handle_async("b.example", async || {
            tokio::time::sleep(Duration::from_millis(1)).await;
            Txt::new("b")
        });
    (app, watched)
}

/// Waits for something that another thread does; fails if it gives no other task of the runtime,
/// which has one thread, a turn.
async fn beside_others<T>(what: &str, work: impl Future<Output = T>) -> T {
    let (mut work, mut turns) = (std::pin::pin!(work), 0);
    let result = loop {
        tokio::select! {
            biased;
            result = &mut work => break result,
            () = tokio::task::yield_now() => turns += 1,
        }
    };
    assert!(turns > 0, "the runtime waited for {what}");
    result
}

#[tokio::test]
async fn an_app_starts_and_stops_without_blocking_the_runtime_of_one_thread() {
    let (app, watched) = app();
    let app = app.handle_async("slow.example", async || {
        tokio::time::sleep(Duration::from_millis(100)).await;
        Txt::new("slow")
    });
    let running = beside_others("the start", app.start()).await.unwrap();
    let reply = running.query("b.example", Type::TXT).await.unwrap();
    assert_eq!(Txt::all_in(&reply)[0].strings, [b"b"]);
    let address = running.addresses()[0];
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(CHANGE_MAX)).unwrap();
    let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x04slow\x07example\0\0\x10\0\x01";
    client.send_to(query, address).unwrap();
    beside_others("the stop", running.stop()).await.unwrap();
    assert!(is_free(address));
    wait_until("its values are dropped", || watched.upgrade().is_none());
}

#[tokio::test]
async fn an_app_that_parts_of_a_program_and_its_handlers_share_stops_and_leaves_nothing() {
    let (app, watched) = app();
    let running = Arc::new(app.start().await.unwrap());
    let (held, address) = (Arc::clone(&running), running.addresses()[0]);
    running
        .handle_async("stop.example", move || {
            let held = Arc::clone(&held);
            async move { held.stop().await.map(|()| Txt::new("stopping")) }
        })
        .unwrap();
    let waiting = Arc::clone(&running);
    let closed = tokio::spawn(async move { waiting.closed().await });
    let reply = running.query("stop.example", Type::TXT).await.unwrap();
    assert_eq!(Txt::all_in(&reply)[0].strings, [b"stopping"]);
    tokio::time::timeout(CHANGE_MAX, closed).await.unwrap().unwrap().unwrap();
    wait_until("its address is free", || is_free(address));
    wait_until("its values are dropped", || watched.upgrade().is_none());
    assert!(running.addresses().is_empty());
    let late = running.handle("late.example", || Txt::new("late"));
    assert!(matches!(late, Err(zonda::Error::Stopped)), "{late:?}");
    running.stop().await.unwrap();
    wait_until("no handler keeps it", || Arc::strong_count(&running) == 1);
}

#[tokio::test]
async fn an_app_stops_when_code_in_a_worker_has_it_stopped_and_the_query_is_answered() {
    for kind in ["handler", "blocked on the future", "asked by the program"] {
        let (app, watched) = app();
        let running = Arc::new(app.start().await.unwrap());
        let (held, address) = (Arc::clone(&running), running.addresses()[0]);
        let stop = move || {
            let stopped = match kind {
                "blocked on the future" => {
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    // A worker has no runtime; the task of a query by the program has one.
                    runtime.block_on(held.stop())
                }
                _ => held.stop_blocking(),
            };
            stopped.map(|()| Txt::new("stopping"))
        };
        running.handle("stop.example", stop).unwrap();
        let began = Instant::now();
        if kind == "asked by the program" {
            let asked = Arc::clone(&running);
            let asked = thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                runtime.block_on(asked.query("stop.example", Type::TXT)).unwrap()
            });
            assert_eq!(Txt::all_in(&asked.join().unwrap())[0].strings, [b"stopping"]);
        } else {
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.set_read_timeout(Some(CHANGE_MAX)).unwrap();
            let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x04stop\x07example\0\0\x10\0\x01";
            client.send_to(query, address).unwrap();
            let mut reply = [0; 512];
            let len = client.recv(&mut reply).unwrap();
            assert!(reply[..len].ends_with(b"\x08stopping"), "{kind}");
        }
        wait_until("its address is free", || is_free(address));
        let taken = began.elapsed();
        assert!(taken < Duration::from_secs(5), "{kind}: the worker was waited for {taken:?}");
        wait_until("its values are dropped", || watched.upgrade().is_none());
        wait_until("no handler keeps it", || Arc::strong_count(&running) == 1);
    }
}

#[tokio::test]
async fn an_app_that_is_dropped_stops() {
    let (app, watched) = app();
    let running = app.start().await.unwrap();
    let address = running.addresses()[0];
    assert!(!is_free(address));
    drop(running);
    wait_until("its address is free", || is_free(address));
    wait_until("its values are dropped", || watched.upgrade().is_none());
}

#[tokio::test]
async fn an_app_stops_whose_start_is_not_awaited_to_the_end() {
    let (app, watched) = app();
    let started = tokio::time::timeout(Duration::ZERO, app.start()).await;
    drop(started);
    wait_until("its values are dropped", || watched.upgrade().is_none());
}

#[tokio::test]
async fn an_app_stops_whose_stop_is_not_awaited() {
    let (app, watched) = app();
    let running = app.start().await.unwrap();
    let address = running.addresses()[0];
    drop(running.stop());
    wait_until("its address is free", || is_free(address));
    wait_until("its values are dropped", || watched.upgrade().is_none());
}

#[tokio::test]
async fn a_detached_app_goes_on_with_code_of_both_kinds() {
    let (app, watched) = app();
    let running = app.start().await.unwrap();
    let address = running.addresses()[0];
    running.detach();
    thread::sleep(Duration::from_millis(300)); // longer than a stop takes
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(CHANGE_MAX)).unwrap();
    socket.connect(address).unwrap();
    for letter in [b'a', b'b'] {
        let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01_\x07example\0\0\x10\0\x01";
        let query: Vec<u8> = query.iter().map(|&it| if it == b'_' { letter } else { it }).collect();
        socket.send(&query).unwrap();
        let mut buffer = [0; 512];
        let len = socket.recv(&mut buffer).unwrap();
        assert_eq!(buffer[3] & 0xf, 0, "{}", buffer[..len].escape_ascii());
        assert_eq!(buffer[7], 1, "one answer");
    }
    assert!(watched.upgrade().is_some());
}

#[tokio::test]
async fn an_app_that_an_administrator_stops_tells_that_it_is_closed() {
    let folder = Folder::new("closed");
    let socket = folder.path().join("admin.sock");
    let config = format!("version = 1\n[admin]\nsocket = {socket:?}\n");
    let (app, _) = app();
    let running = app.config(folder.write("zonda.toml", config)).start().await.unwrap();
    let waiting = tokio::time::timeout(Duration::from_millis(50), running.closed()).await;
    assert!(waiting.is_err(), "it runs");
    let ask = move || {
        let mut admin = UnixStream::connect(socket).unwrap();
        let request = "POST /v1/stop HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\
                       connection: close\r\n\r\n";
        admin.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        admin.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    };
    tokio::task::spawn_blocking(ask).await.unwrap();
    for _ in 0..2 {
        tokio::time::timeout(CHANGE_MAX, running.closed()).await.unwrap().unwrap();
    }
    running.stop().await.unwrap();
}

#[tokio::test]
async fn an_app_with_an_admin_socket_has_left_its_addresses_when_it_has_stopped() {
    let folder = Folder::new("left");
    let socket = folder.path().join("admin.sock");
    let config = format!("version = 1\n[admin]\nsocket = {socket:?}\naddress = \"off\"\n");
    let (app, watched) = app();
    let running = app.config(folder.write("zonda.toml", config)).start().await.unwrap();
    let address = running.addresses()[0];
    running.stop().await.unwrap();
    assert!(is_free(address), "a thread of the app still has the address");
    wait_until("its values are dropped", || watched.upgrade().is_none());
}

#[tokio::test]
async fn two_apps_that_share_an_address_answer_on_it() {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let app = |text: &'static str| {
        let app = App::new().listen(address).workers(1).reuse_port();
        app.handle("a.example", move || Txt::new(text)).start()
    };
    let (one, two) = (app("one").await.unwrap(), app("two").await.unwrap());
    let mut texts = std::collections::BTreeSet::new();
    wait_until("each of them answers some clients", || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(CHANGE_MAX)).unwrap();
        socket
            .send_to(b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x01a\x07example\0\0\x10\0\x01", address)
            .unwrap();
        let mut buffer = [0; 512];
        let len = socket.recv(&mut buffer).unwrap();
        texts.insert(buffer[len - 3..len].to_vec());
        texts.len() == 2
    });
    one.stop().await.unwrap();
    two.stop().await.unwrap();
}

#[test]
fn a_program_without_a_runtime_runs_until_a_mistake_is_told() {
    let error = App::new().listen("nowhere").run().unwrap_err();
    assert_eq!(error.code(), "ZONDA_CONFIG");
}

#[tokio::test]
async fn zones_given_as_text_and_the_configuration_change_without_blocking() {
    let text =
        |last: u8| format!("@ 300 SOA ns h 1 2 3 4 5\n@ 300 NS ns\nns 300 A 192.0.2.{last}\n");
    let large: String = (0..20_000).map(|number| format!("n{number} 300 TXT text\n")).collect();
    let app = App::new().listen_nowhere().zone_text("example.org", text(1));
    let running = app.start().await.unwrap();
    let set = running.set_zone_text("example.org", text(2) + &large);
    beside_others("the zone", set).await.unwrap();
    let reply = running.query("ns.example.org", Type::A).await.unwrap();
    assert_eq!(reply.records[0].rdata, [192, 0, 2, 2]);
    running.reload().await.unwrap();
    assert!(running.set_zone_text("example.org", "a A 1").await.is_err());
    assert!(running.remove_zone_text("example.org").await.unwrap());
    running.stop().await.unwrap();
}

/// Handlers of an app that has many.
const MANY: usize = 10_000;
/// What one change may take while it runs, unoptimized and beside other tests; optimized, on a
/// machine with nothing else to do, it takes a twentieth of it.
const CHANGE_OF_MANY_MAX: Duration = Duration::from_millis(1);

#[tokio::test]
async fn a_handler_is_added_to_ten_thousand_others_without_waiting_for_them() {
    let mut app = App::new().listen("127.0.0.1:0").workers(1);
    for number in 0..MANY {
        app = app.handle(&format!("n{number}.example"), move || Txt::new(number.to_string()));
    }
    let running = app.start().await.unwrap();
    let mut taken = Vec::new();
    for number in 0..100 {
        let name = format!("later{number}.example");
        let start = Instant::now();
        running.handle(&name, move || Txt::new("later")).unwrap();
        taken.push(start.elapsed());
        let start = Instant::now();
        assert!(running.remove_handler(&format!("N{number}.example.")).unwrap());
        taken.push(start.elapsed());
    }
    taken.sort_unstable();
    let median = taken[taken.len() / 2];
    eprintln!("a change of {MANY} handlers: {median:?}, the slowest {:?}", taken[taken.len() - 1]);
    assert!(median < CHANGE_OF_MANY_MAX, "{median:?}");
    // A query of the program comes behind all changes.
    for (name, texts) in
        [("later99.example", 1), ("n99.example", 0), ("n100.example", 1), ("n9999.example", 1)]
    {
        let reply = running.query(name, Type::TXT).await.unwrap();
        assert_eq!(Txt::all_in(&reply).len(), texts, "{name}");
    }
    // For clients, too.
    running.handle("n100.example", || Txt::new("another")).unwrap();
    running.settled().await;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(CHANGE_MAX)).unwrap();
    let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x04n100\x07example\0\0\x10\0\x01";
    socket.send_to(query, running.addresses()[0]).unwrap();
    let mut buffer = [0; 512];
    let len = socket.recv(&mut buffer).unwrap();
    assert!(buffer[..len].ends_with(b"\x07another"), "{}", buffer[..len].escape_ascii());
    running.stop().await.unwrap();
}

#[tokio::test]
async fn of_two_handlers_for_one_pattern_the_later_is_called_and_removed() {
    let app = App::new()
        .listen_nowhere()
        .handle("A.example", || Txt::new("former"))
        .handle_async("a.example.", async || Txt::new("later"))
        .handle(":user.example", |Captures([user]): Captures<1>| Txt::new(user));
    let running = app.start().await.unwrap();
    let text = async |name| {
        let reply = running.query(name, Type::TXT).await.unwrap();
        Txt::all_in(&reply).first().map(|it| it.strings.concat()).unwrap_or_default()
    };
    assert_eq!(text("a.example").await, b"later");
    assert!(running.remove_handler("a.example").unwrap());
    assert_eq!(text("a.example").await, b"a", "the next pattern that matches");
    assert!(!running.remove_handler("a.example").unwrap());
    running.stop().await.unwrap();
}
