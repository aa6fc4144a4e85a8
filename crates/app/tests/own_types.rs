//! What programs read of queries, events and errors, by the library's own types.

#![allow(clippy::unwrap_used)]

use std::error::Error as _;
use std::net::TcpListener;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;
use zonda::{App, Cache, Error, Event, OwnedQuery, Query, Reply, Running, ServeError, Txt, Type};

/// The flag RD of the header.
const RD: u16 = 0x0100;
/// The flag CD of the header.
const CD: u16 = 0x0010;

/// A query for the TXT records of a name, with an OPT record for 1400 octets if `dnssec_ok` says
/// whether it has DO.
fn query(name: &str, flags: u16, dnssec_ok: Option<bool>) -> Vec<u8> {
    let name: zonda::Name = name.parse().unwrap();
    let mut message = vec![0x12, 0x34];
    message.extend_from_slice(&flags.to_be_bytes());
    message.extend_from_slice(&[0, 1, 0, 0, 0, 0, 0, u8::from(dnssec_ok.is_some())]);
    message.extend_from_slice(name.as_wire());
    message.extend_from_slice(&[0, 16, 0, 1]);
    if let Some(dnssec_ok) = dnssec_ok {
        message.extend_from_slice(&[0, 0, 41, 0x05, 0x78, 0, 0, u8::from(dnssec_ok) << 7, 0, 0, 0]);
    }
    message
}

/// Returns the text in the reply to a query.
fn ask(running: &Running, query: &[u8]) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let reply = runtime.block_on(running.query_message(query)).unwrap();
    let reply = zonda::Message::parse(&reply).unwrap();
    String::from_utf8(reply.records[0].rdata[1..].to_vec()).unwrap()
}

/// Makes a handler of either kind tell what it reads of a query.
macro_rules! tell {
    ($query:expr) => {{
        let query = $query;
        let (rd, cd) = (query.recursion_desired(), query.checking_disabled());
        let text =
            format!("{} {rd} {cd} {} {:?}", query.qtype(), query.dnssec_ok(), query.udp_size());
        Txt::new(text)
    }};
}

#[test]
fn handlers_and_loggers_read_flags_and_edns_of_a_query() {
    let (sender, events) = mpsc::channel();
    let app = App::new()
        .listen_nowhere()
        .handle("worker.example", |query: &Query, reply: &mut Reply| reply.answer(tell!(query)))
        .handle_async("async.example", |query: OwnedQuery| async move {
            let mut reply = Reply::default();
            reply.answer(tell!(&query));
            reply
        })
        .logger(move |event: &Event| {
            let (rd, cd) = (event.recursion_desired(), event.checking_disabled());
            let text = format!("{} {rd} {cd} {}", event.qtype(), event.dnssec_ok());
            let _ = sender.send((text, event.not_reused()));
        });
    let running = app.start_blocking().unwrap();
    for (flags, dnssec_ok, flags_text, udp_size) in [
        (RD, None, "TXT true false false", "None"),
        (CD, Some(false), "TXT false true false", "Some(1400)"),
        (RD | CD, Some(true), "TXT true true true", "Some(1400)"),
    ] {
        for name in ["worker.example", "async.example"] {
            let expected = format!("{flags_text} {udp_size}");
            assert_eq!(ask(&running, &query(name, flags, dnssec_ok)), expected, "{name}");
            let (event, not_reused) = events.recv_timeout(Duration::from_secs(20)).unwrap();
            assert_eq!(event, flags_text, "{name}");
            assert_eq!(not_reused, Some("the handler cache keeps what code answers"), "{name}");
        }
    }
    running.stop_blocking().unwrap();
}

#[test]
fn apps_and_running_servers_may_be_used_across_threads_and_behind_a_caught_panic() {
    let app = App::new()
        .listen_nowhere()
        .handle("a.example", |_: &Query, reply: &mut Reply| reply.answer(Txt::new("1")));
    let running = catch_unwind(move || app.start_blocking().unwrap()).unwrap();
    let panicking = catch_unwind(|| {
        running.handle("b.example", |_: &Query, reply: &mut Reply| reply.nxdomain()).unwrap();
        panic!("of the program");
    });
    assert!(panicking.is_err());
    let asked = thread::scope(|threads| {
        threads.spawn(|| ask(&running, &query("a.example", RD, None))).join().unwrap()
    });
    assert_eq!(asked, "1");
    assert!(running.remove_handler("b.example").unwrap());
    running.stop_blocking().unwrap();
}

/// A cache that counts the replies that it gets, and keeps none.
#[derive(Default)]
struct Inserts(AtomicU32);

impl Cache for Inserts {
    fn lookup(&self, _: &Query, _: &mut Reply) {}

    fn insert(&self, _: &Query, _: &Reply) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_reply_is_cached_for_all_clients_unless_it_depends_on_rd_or_the_udp_size() {
    let inserts = Arc::<Inserts>::default();
    let app = App::new()
        .listen_nowhere()
        .cache(Arc::clone(&inserts))
        .handle("cd.example", |query: &Query, reply: &mut Reply| {
            reply.answer(Txt::new(query.checking_disabled().to_string()));
        })
        .handle("rd.example", |query: &Query, reply: &mut Reply| {
            reply.answer(Txt::new(query.recursion_desired().to_string()));
        })
        .handle("size.example", |query: &Query, reply: &mut Reply| {
            reply.answer(Txt::new(format!("{:?}", query.udp_size())));
        })
        .handle_async(":what.async.example", |query: OwnedQuery| async move {
            let mut reply = Reply::default();
            reply.answer(Txt::new(match query.capture("what").unwrap() {
                b"cd" => query.checking_disabled().to_string(),
                b"rd" => query.recursion_desired().to_string(),
                _ => format!("{:?}", query.udp_size()),
            }));
            reply
        });
    let running = app.start_blocking().unwrap();
    for (name, text, inserted) in [
        ("cd.example", "false", 1),
        ("rd.example", "true", 0),
        ("size.example", "Some(1400)", 0),
        ("cd.async.example", "false", 1),
        ("rd.async.example", "true", 0),
        ("size.async.example", "Some(1400)", 0),
    ] {
        let before = inserts.0.load(Ordering::Relaxed);
        assert_eq!(ask(&running, &query(name, RD, Some(false))), text, "{name}");
        assert_eq!(inserts.0.load(Ordering::Relaxed) - before, inserted, "{name}");
    }
    running.stop_blocking().unwrap();
}

#[test]
fn a_query_for_what_is_no_name_is_an_error_that_speaks_of_a_name_and_no_zone() {
    let app = App::new().listen_nowhere();
    let running = app.start_blocking().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let error = runtime.block_on(running.query("a..b", Type::A)).unwrap_err();
    assert!(error.to_string().starts_with("name `a..b`: "), "{error}");
    running.stop_blocking().unwrap();
}

#[test]
fn an_address_that_is_taken_is_an_error_that_names_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let app = App::new().listen(address);
    let Err(Error::Serve(ServeError::Listen(error))) = app.start_blocking() else {
        panic!("the app starts, or the error is another")
    };
    let text = error.to_string();
    assert!(text.starts_with(&format!("cannot listen on {address} (TCP): ")), "{text}");
}

/// Returns the error of an app that listens nowhere, unless it is told to, and cannot start.
fn start_error(define: impl FnOnce(App) -> App) -> Error {
    define(App::new().listen_nowhere()).start_blocking().unwrap_err()
}

#[test]
fn each_kind_of_error_has_its_code() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let answer = |_: &Query, reply: &mut Reply| reply.nxdomain();
    let two = start_error(|app| app.handle("a..b", answer).zone_text("b..c", ""));
    for (error, code) in [
        (start_error(|app| app.handle("a..b", answer)), "ZONDA_PATTERN"),
        (start_error(|app| app.zone_text("a..b", "")), "ZONDA_ZONE"),
        (start_error(|app| app.zone_text("a.example", "@ A 1")), "ZONDA_ZONE"),
        (start_error(|app| app.forward("no address")), "ZONDA_CONFIG"),
        (start_error(|app| app.listen(address)), "EADDRINUSE"),
        (start_error(|app| app.listen("192.0.2.1:0")), "EADDRNOTAVAIL"),
        (two, "ZONDA_PATTERN"),
        (Error::Silence, "ZONDA_NO_REPLY"),
    ] {
        assert_eq!(error.code(), code, "{error:?}");
    }
}

#[test]
fn an_error_of_the_system_is_the_source_and_names_the_address() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = start_error(|app| app.listen(address));
    let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    assert_eq!(source.map(std::io::Error::kind), Some(std::io::ErrorKind::AddrInUse));
    let Error::Serve(ServeError::Listen(error)) = error else { panic!("{error:?}") };
    assert_eq!(error.address(), Some(address));
}

#[test]
fn the_wrong_pattern_is_the_source_of_an_error_and_several_mistakes_have_none() {
    let answer = |_: &Query, reply: &mut Reply| reply.nxdomain();
    let one = start_error(|app| app.handle("a..b", answer));
    assert!(one.source().unwrap().is::<zonda::PatternError>(), "{one:?}");
    let two = start_error(|app| app.handle("a..b", answer).handle("b..c", answer));
    assert!(two.source().is_none(), "{two:?}");
}

#[test]
fn an_app_and_a_running_one_print_patterns_and_addresses_for_debugging() {
    let app = App::new()
        .listen("127.0.0.1:0")
        .handle("*.example/A", |_: &Query, reply: &mut Reply| reply.nxdomain());
    assert_eq!(
        format!("{app:?}"),
        r#"App { config: None, listen: ["127.0.0.1:0"], routes: ["*.example/A"], .. }"#
    );
    let running = app.start_blocking().unwrap();
    let address = running.addresses()[0];
    assert_eq!(format!("{running:?}"), format!("Running {{ addresses: [{address}], .. }}"));
    running.stop_blocking().unwrap();
}
