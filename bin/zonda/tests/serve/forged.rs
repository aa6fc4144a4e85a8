//! Messages and errors forged by a host that is not on the way: what clients lose by them, and what
//! the forger learns.

use super::hostile::{Forwarder, recursive};
use super::server::wait_until;
use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::forger::ephemeral_ports;
use zonda_testkit::paced::ask_at_pace;
use zonda_testkit::upstream::{Gate, Reply, always, say, tell, until, wait, when};
use zonda_testkit::{Forger, Upstream};

/// A forger of what comes from and about an upstream; none where raw sockets are not permitted,
/// which is told.
fn forger(upstream: &Upstream) -> Option<Forger> {
    let SocketAddr::V4(address) = upstream.address else { panic!("{}", upstream.address) };
    let forger = Forger::new(address);
    forger.inspect_err(|error| eprintln!("skipped, as nothing can be forged: {error}")).ok()
}

/// Waits for a query for a name over UDP; returns the port that it left from.
fn port_of(upstream: &Upstream, name: &str) -> u16 {
    let name = format!("{name}.");
    let find = || upstream.log().into_iter().find(|asked| asked.name == name && !asked.tcp);
    wait_until("the upstream is asked", || find().is_some());
    find().unwrap().client.port()
}

#[test]
fn a_flood_of_forged_icmp_errors_to_known_ports_loses_nothing() {
    let upstream = Upstream::start([always().then([wait(20..40), say(Reply::address(7))])]);
    let Some(forger) = forger(&upstream) else { return };
    // A machine that does much else may hold up some answers, but not so many.
    let forwarder = Forwarder::start(&[&upstream], "suspect-after = 100");
    forwarder.ask("first.example.net", "A").answered(Duration::from_secs(2));
    let is_over = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let flood = scope.spawn(|| {
            let (mut sent, start) = (0, Instant::now());
            while !is_over.load(Ordering::Relaxed) {
                for port in forger.ports() {
                    forger.say_unreachable(port);
                    sent += 1;
                    thread::sleep(Duration::from_millis(sent).saturating_sub(start.elapsed()));
                }
            }
            sent
        });
        let questions = (0..600).map(|it| recursive(&format!("name{it}.example.net"), "A"));
        let address = forwarder.server.zonda.address;
        let seen = ask_at_pace(address, Ipv4Addr::LOCALHOST, 200, questions);
        is_over.store(true, Ordering::Relaxed);
        let sent = flood.join().unwrap();
        assert!(sent > 1000, "{sent} errors were forged");
        seen
    });
    seen.check_all_answered();
    let told = forwarder.server.metric("zonda_forward_icmp_errors_total");
    assert!(told > 100.0, "{told} reached the server");
    assert_eq!(forwarder.threads_that_see(&upstream, "down"), 0.0);
    let log = forwarder.server.zonda.process.log(" is ");
    assert!(!log.contains("suspect") && !log.contains("down"), "{log}");
}

#[test]
fn an_answer_that_comes_after_a_forged_icmp_error_is_taken() {
    let gate = Gate::default();
    let first = when(|asked| asked.number == 0);
    let upstream = Upstream::start([first.then([until(&gate), say(Reply::address(7))])]);
    let Some(forger) = forger(&upstream) else { return };
    let forwarder = Forwarder::start(&[&upstream], "");
    let told = thread::scope(|scope| {
        let asking = scope.spawn(|| forwarder.ask("www.example.net", "A"));
        let port = port_of(&upstream, "www.example.net");
        for _ in 0..5 {
            forger.say_unreachable(port);
            thread::sleep(Duration::from_millis(5)); // each is told by a call of its own
        }
        wait_until("the server was told", || {
            forwarder.server.metric("zonda_forward_icmp_errors_total") >= 1.0
        });
        gate.open();
        asking.join().unwrap()
    });
    assert_eq!(told.answered(Duration::from_secs(4)), ["192.0.2.7"]);
    assert_eq!(forwarder.results(&upstream, "failed"), 0.0);
}

#[test]
fn icmp_errors_to_all_ports_change_neither_which_answer_is_taken_nor_when() {
    let own = tell(|asked| Reply::address(asked.number as u8));
    let upstream = Upstream::start([always().then([wait(1000..1001), own])]);
    let Some(forger) = forger(&upstream) else { return };
    let forwarder = Forwarder::start(&[&upstream], "");
    // Returns whether the answer came when the upstream gave it; what the machine holds up is no
    // fault, so that the best of some tries counts.
    let try_once = |number: u32| {
        let name = format!("name{number}.example.net");
        let (told, swept) = thread::scope(|scope| {
            let (start, asking) = (Instant::now(), scope.spawn(|| forwarder.ask(&name, "A")));
            port_of(&upstream, &name);
            ephemeral_ports().for_each(|port| forger.say_unreachable(port));
            let swept = start.elapsed();
            (asking.join().unwrap(), swept)
        });
        let (full_name, log) = (format!("{name}."), upstream.log());
        let first = log.iter().position(|asked| asked.name == full_name).unwrap();
        let data = told.answered(Duration::from_secs(4));
        assert_eq!(data, [format!("192.0.2.{first}")], "the answer to the first query");
        swept < Duration::from_millis(900) && told.took < Duration::from_millis(1100)
    };
    assert!((0..6).any(try_once), "no answer came in the time that the upstream takes");
    assert!(forwarder.server.metric("zonda_forward_icmp_errors_total") >= 1.0);
}

/// Sends answers with wrong ids to the port of a query for a name, which the upstream leaves
/// without answer over UDP; returns what the client is told.
fn ask_while_answers_are_forged(
    name: &str,
    upstream: &Upstream,
    (forwarder, forger): (&Forwarder, &Forger),
) -> super::hostile::TimedReply {
    thread::scope(|scope| {
        let asking = scope.spawn(|| forwarder.ask(name, "A"));
        let port = port_of(upstream, name);
        // The id that is right may be among them; what it comes with is the question of no query.
        for id in 0..200_u16 {
            let forged = [&id.to_be_bytes()[..], &[0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0], &[0; 5]];
            forger.say(port, &forged.concat());
        }
        let told = asking.join().unwrap();
        assert!(!forger.ports().contains(&port), "the port is closed");
        told
    })
}

#[test]
fn forged_answers_at_a_port_close_it_and_what_waits_there_is_asked_over_tcp() {
    let upstream = Upstream::start([when(|asked| asked.tcp).then([say(Reply::address(7))])]);
    let Some(forger) = forger(&upstream) else { return };
    let forwarder = Forwarder::start(&[&upstream], "suspect-after = 100");
    for name in ["one.example.net", "two.example.net"] {
        let start = Instant::now();
        let told = ask_while_answers_are_forged(name, &upstream, (&forwarder, &forger));
        assert_eq!(told.answered(Duration::from_secs(4)), ["192.0.2.7"], "{:?}", start.elapsed());
    }
    assert_eq!(upstream.count(|asked| asked.tcp), 2);
    assert_eq!(forwarder.server.metric("zonda_forward_forgery_suspected_total"), 2.0);
    assert!(forwarder.server.metric("zonda_forward_ignored_total") >= 60.0);
    let log = forwarder.server.zonda.process.log_soon("forged");
    assert_eq!(log.lines().count(), 1, "once a minute:\n{log}");
    for fact in ["zone=.".to_owned(), format!("upstream={}", upstream.address)] {
        assert!(log.contains(&fact), "no {fact} in\n{log}");
    }
    assert_eq!(forwarder.threads_that_see(&upstream, "down"), 0.0);
}

#[test]
fn an_upstream_without_tcp_is_asked_from_another_port_when_answers_are_forged() {
    let first = when(|asked| asked.number == 0).then([]);
    let upstream = Upstream::without_tcp([first, always().then([say(Reply::address(7))])]);
    let Some(forger) = forger(&upstream) else { return };
    let forwarder = Forwarder::start(&[&upstream], "repeat-after-min = \"1s\"");
    let told = ask_while_answers_are_forged("www.example.net", &upstream, (&forwarder, &forger));
    assert_eq!(told.answered(Duration::from_secs(4)), ["192.0.2.7"]);
    let log = upstream.log();
    assert_ne!(log[0].client.port(), log[1].client.port());
}

#[test]
fn few_queries_leave_from_the_same_port() {
    let upstream = Upstream::start([always().then([say(Reply::address(7))])]);
    let forwarder = Forwarder::start(&[&upstream], "");
    let questions = (0..5000).map(|it| recursive(&format!("name{it}.example.net"), "A"));
    let address = forwarder.server.zonda.address;
    ask_at_pace(address, Ipv4Addr::LOCALHOST, 4000, questions).check_all_answered();
    let log = upstream.log();
    let ports: HashSet<u16> = log.iter().map(|asked| asked.client.port()).collect();
    // Some are drawn twice out of the system's 28,232.
    assert!(ports.len() > 5000 * 9 / 10 / 4, "{} ports for {} queries", ports.len(), log.len());
}
