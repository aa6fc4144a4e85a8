//! Aliases whose targets handlers answer for.

#![allow(clippy::unwrap_used)]

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use zonda::{A, App, Cname, Message, Query, Rcode, Reply, Running, Section, Type, Vary};

/// A zone whose aliases lead to names that handlers have.
const ZONE: &str = "\
    @ 3600 SOA ns host 7 7200 900 1209600 300\n@ NS ns\nns A 192.0.2.9\n\
    to-user 60 CNAME ann.users\nto-sync 60 CNAME sync.test.\nto-async 60 CNAME async.test.\n\
    to-first 60 CNAME first.test.\nto-absent 60 CNAME absent.test.\n\
    to-empty 60 CNAME empty.test.\nto-refused 60 CNAME refused.test.\n\
    to-failed 60 CNAME failed.test.\nto-late 60 CNAME late.test.\n\
    to-dropped 60 CNAME dropped.test.\nto-passed 60 CNAME passed.test.\n\
    to-loop 60 CNAME loop.test.\nto-kept 60 CNAME kept.test.\nto-many 60 CNAME many.test.\n\
    to-awaited 60 CNAME awaited.test.\n";

/// An alias for a minute.
fn alias(target: &str) -> Cname {
    Cname::new(target).unwrap().ttl(60)
}

/// An address record of 198.51.100.0/24, for a minute.
fn address(last: u8) -> A {
    A::new([198, 51, 100, last]).ttl(60)
}

/// An app with the zone, and handlers for the targets of its aliases.
fn app() -> App {
    App::new()
        .zone_text("example.org", ZONE)
        .handle("sync.test", || address(1))
        .handle_async("async.test", async || address(2))
        .handle(":user.users.example.org", || address(3))
        .handle("first.test", || alias("second.test"))
        .handle_async("second.test", async || alias("third.test"))
        .handle_async("third.test", async || alias("to-sync.example.org"))
        .handle("absent.test", |_: &Query, reply: &mut Reply| {
            reply.nxdomain();
            reply.cache_negative(30);
        })
        .handle_async("empty.test", async || {
            let mut reply = Reply::default();
            reply.no_data();
            reply
        })
        .handle("refused.test", || Rcode::REFUSED)
        .handle_async("failed.test", async || Err::<A, _>("no database"))
        .handle("dropped.test", |_: &Query, reply: &mut Reply| reply.drop())
        .handle_async("passed.test", async || {
            let mut reply = Reply::default();
            reply.pass_on();
            reply
        })
        .handle("loop.test", || alias("to-loop.example.org"))
}

/// Returns the reply of a running app.
fn ask(running: &Running, name: &str) -> Option<Message> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let asked = running.query_from("192.0.2.7", name, Type::A);
    runtime.block_on(async { asked.await.ok() })
}

/// Response code of a reply, AA, and owner, type and last octet of each record of its answer.
fn told(reply: &Message) -> String {
    let answers = reply.records.iter().filter(|it| it.section == Section::Answer);
    let records = answers.map(|it| match it.rtype {
        Type::A => format!(" {} A {}", it.owner, it.rdata[3]),
        rtype => format!(" {} {rtype}", it.owner),
    });
    let start = format!("{}{}", reply.rcode(), if reply.flags & 0x0400 != 0 { " aa" } else { "" });
    records.fold(start, |text, record| text + &record)
}

#[test]
fn a_reply_has_an_alias_and_what_the_handler_says_of_its_target() {
    let running = app().listen_nowhere().start_blocking().unwrap();
    let chain = "first.test. CNAME second.test. CNAME third.test. CNAME \
                 to-sync.example.org. CNAME sync.test. A 1";
    for (name, rest) in [
        ("to-sync.example.org", "CNAME sync.test. A 1"),
        ("to-async.example.org", "CNAME async.test. A 2"),
        ("to-user.example.org", "CNAME ann.users.example.org. A 3"),
        ("to-first.example.org", &format!("CNAME {chain}")),
        ("first.test", chain.strip_prefix("first.test. ").unwrap()),
        ("second.test", chain.strip_prefix("first.test. CNAME second.test. ").unwrap()),
    ] {
        let reply = ask(&running, name).unwrap();
        assert_eq!(told(&reply), format!("NOERROR aa {name}. {rest}"));
    }
    running.stop_blocking().unwrap();
}

#[test]
fn the_end_of_a_handler_for_a_target_is_that_of_the_query() {
    let running = app().listen_nowhere().start_blocking().unwrap();
    for (name, rcode, chain) in [
        ("to-absent", "NXDOMAIN", ""),
        ("to-empty", "NOERROR", ""),
        ("to-refused", "REFUSED", ""),
        ("to-failed", "SERVFAIL", ""),
        ("to-passed", "NOERROR", ""), // left to the client: no zone has the name
        ("to-loop", "NOERROR", " loop.test. CNAME"),
    ] {
        let reply = ask(&running, &format!("{name}.example.org")).unwrap();
        assert_eq!(told(&reply), format!("{rcode} aa {name}.example.org. CNAME{chain}"));
    }
    let absent = ask(&running, "to-absent.example.org").unwrap();
    assert_eq!(absent.records[1].rtype, Type::SOA, "as the handler has it cached");
    assert!(ask(&running, "to-dropped.example.org").is_none());
    running.stop_blocking().unwrap();
}

#[test]
fn a_handler_for_a_target_that_takes_too_long_fails_the_query() {
    let running = App::new()
        .listen_nowhere()
        .zone_text("example.org", ZONE)
        .deadline(Duration::from_millis(200))
        .handle_async("late.test", async || {
            std::future::pending::<()>().await;
            address(4)
        })
        .start_blocking()
        .unwrap();
    let reply = ask(&running, "to-late.example.org").unwrap();
    assert_eq!(told(&reply), "SERVFAIL aa to-late.example.org. CNAME");
    running.stop_blocking().unwrap();
}

#[test]
fn a_kept_reply_of_a_target_is_given_behind_its_alias_until_it_expires() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let running = App::new()
        .listen_nowhere()
        .zone_text("example.org", ZONE)
        .handle("kept.test", move |_: &Query, reply: &mut Reply| {
            reply.cache(60, Vary::Nothing);
            reply.answer(address(counted.fetch_add(1, Ordering::Relaxed) as u8));
        })
        .start_blocking()
        .unwrap();
    for _ in 0..5 {
        let reply = ask(&running, "to-kept.example.org").unwrap();
        assert_eq!(told(&reply), "NOERROR aa to-kept.example.org. CNAME kept.test. A 0");
    }
    assert_eq!(told(&ask(&running, "kept.test").unwrap()), "NOERROR aa kept.test. A 0");
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    running.stop_blocking().unwrap();
}

#[test]
fn a_target_that_middleware_is_for_is_left_to_the_client_where_that_runs_in_workers() {
    let guarded = |guard: App| {
        let running = guard.listen_nowhere().start_blocking().unwrap();
        let told = told(&ask(&running, "to-awaited.example.org").unwrap());
        running.stop_blocking().unwrap();
        told
    };
    let app = || {
        App::new().zone_text("example.org", ZONE).handle_async("awaited.test", async || address(5))
    };
    let here = app().middleware_for("*.test", |_: &Query, _: &mut Reply| {});
    assert_eq!(guarded(here), "NOERROR aa to-awaited.example.org. CNAME");
    let elsewhere = app().middleware_for_async("*.test", async |_: zonda::OwnedQuery| {});
    let followed = "NOERROR aa to-awaited.example.org. CNAME awaited.test. A 5";
    assert_eq!(guarded(elsewhere), followed);
}

#[test]
fn a_reply_of_several_parts_leaves_over_udp_with_the_clients_question() {
    let many = |_: &Query, reply: &mut Reply| reply.answers((0..100).map(address));
    let running = app().handle("many.test", many).listen("127.0.0.1:0").start_blocking().unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    client.connect(running.addresses()[0]).unwrap();
    for (name, answers, is_cut) in
        [("to-first", 6, false), ("to-async", 2, false), ("to-many", 1, true)]
    {
        let name: zonda::Name = format!("{name}.example.org").parse().unwrap();
        let mut query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01".to_vec();
        query.extend_from_slice(name.as_wire());
        query.extend_from_slice(b"\0\x01\0\x01\0\0\x29\x04\xd0\0\0\0\0\0\0");
        client.send(&query).unwrap();
        let mut reply = [0; 4096];
        let len = client.recv(&mut reply).unwrap();
        let reply = Message::parse(&reply[..len]).unwrap();
        assert_eq!((reply.id, &reply.questions[0].name), (0x1234, &name));
        let found = reply.records.iter().filter(|it| it.section == Section::Answer).count();
        assert_eq!((found, reply.flags & 0x0200 != 0), (answers, is_cut), "{name}");
        assert!(reply.opt.is_some());
    }
    running.stop_blocking().unwrap();
}
