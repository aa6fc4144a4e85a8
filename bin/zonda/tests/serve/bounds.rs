//! Floods, dead upstreams and other troubles, of which clients with other questions notice nothing.
//!
//! Times are medians where a flood and the tests beside it take the machine from the server.

use super::hostile::{Forwarder, recursive};
use super::server::{Server, wait_until};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use zonda_testkit::paced::{Flood, QueryResults, ask_at_pace};
use zonda_testkit::upstream::{Gate, ReceivedQuery, Reply, Rule, always, say, until, wait, when};
use zonda_testkit::{Upstream, ask};

/// The address of a client that asks modestly.
const MODEST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// The address of a client that floods the server.
const GREEDY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
/// Most KiB that a flood may cost: places, fetches and what is remembered of failures.
const FLOOD_KIB_MAX: u64 = 64 * 1024;

/// A server that forwards `alive.example` and `dead.example` to an upstream each.
fn two_zones(alive: SocketAddr, dead: SocketAddr) -> Server {
    let zone = |name: &str, to: SocketAddr| {
        format!("[[zone]]\nname = \"{name}\"\nforward.to = \"{to}\"\n")
    };
    Server::start(&[], &[zone("alive.example", alive), zone("dead.example", dead)].concat())
}

/// An upstream that answers after 2 to 6 ms, if the first rules do not apply.
fn sound(before: Vec<Rule>) -> Upstream {
    let answers = always().then([wait(2..6), say(Reply::address(7))]);
    Upstream::start([before, vec![answers]].concat())
}

/// What a client sees that asks for names of a zone, each once.
fn ask_modestly(server: &Server, zone: &str, count: usize, a_second: u32) -> QueryResults {
    let questions = (0..count).map(|number| recursive(&format!("name{number}.{zone}"), "A"));
    ask_at_pace(server.zonda.address, MODEST, a_second, questions)
}

/// Sends questions for names of a client; returns the socket where answers come.
fn ask_at_once(server: SocketAddr, names: impl Iterator<Item = String>) -> UdpSocket {
    let socket = UdpSocket::bind((MODEST, 0)).unwrap();
    socket.connect(server).unwrap();
    for (id, name) in (0..).zip(names) {
        socket.send(&recursive(&name, "A").to_bytes(id)).unwrap();
    }
    socket
}

/// Nothing here depends on time: there are few places, the modest one's answers are kept back until
/// the flood has gone through all of them several times, and further questions are asked over TCP,
/// where the kernel drops none while a busy machine keeps the server from reading.
#[test]
fn a_client_that_floods_takes_no_place_from_one_that_asks_modestly() {
    const PLACES: f64 = 200.0;
    const HELD: usize = 10;
    const MORE: usize = 50;
    let gate = Gate::default();
    let is_flood = |asked: &ReceivedQuery| asked.name.starts_with("flood");
    let upstream = Upstream::start([
        when(move |asked| is_flood(asked) && !asked.one_of(10)).then([]), // it is not down
        when(|asked| asked.name.starts_with("held")).then([until(&gate), say(Reply::address(7))]),
        always().then([say(Reply::address(7))]),
    ]);
    let keys = format!(
        "timeout = \"1m\"\noutstanding-max = {}\n[forwarding]\nwaiting-max = {PLACES}",
        PLACES / 2.0
    );
    let forwarder = Forwarder::start(&[&upstream], &keys);
    let (server, address) = (&forwarder.server, forwarder.server.zonda.address);
    let before = server.process_status("VmRSS");
    let held = ask_at_once(address, (0..HELD).map(|number| format!("held{number}.example.net")));
    let is_asked_for = |number: usize| {
        upstream.count(|asked| asked.name == format!("held{number}.example.net.")) > 0
    };
    wait_until("all that is held is asked for", || (0..HELD).all(is_asked_for));
    let flood = Flood::start(address, GREEDY, 5000, |number| format!("flood{number}.example"));
    let dropped = |of: &str| {
        server.metric(&format!("zonda_forward_dropped_total{{newer_of=\"{of}_client\"}}"))
    };
    let turned_over = 3.0 * PLACES;
    wait_until("all places were taken over and over", || dropped("same") > turned_over);
    for number in 0..MORE {
        let question = recursive(&format!("name{number}.example.net"), "A").over_tcp();
        // A machine that is busy elsewhere is given time: the question is joined with the first.
        let reply = (0..10).find_map(|_| ask(address, &question).ok()).unwrap();
        assert_eq!(reply.rcode_text(), "NOERROR", "{} were sent by the other", flood.sent());
    }
    held.set_nonblocking(true).unwrap();
    let early = held.recv(&mut [0; 512]).map_err(|error| error.kind());
    assert_eq!(early, Err(ErrorKind::WouldBlock), "none lost its place");
    gate.open();
    let mut answered = HashSet::new();
    wait_until("all that was held is answered", || {
        let mut reply = [0; 512];
        while held.recv(&mut reply).is_ok() {
            assert_eq!(reply[3] & 0x0f, 0, "no failure");
            answered.insert([reply[0], reply[1]]);
        }
        answered.len() == HELD
    });
    // Each may need a place twice: in front of the thread, and for the upstream.
    assert!(dropped("other") <= 2.0 * MORE as f64, "{}", dropped("other"));
    let grown = server.process_status("VmRSS").saturating_sub(before);
    assert!(grown < FLOOD_KIB_MAX, "{grown} KiB");
}

#[test]
fn a_flood_for_one_name_leaves_room_for_others_who_want_it() {
    let upstream = sound(vec![
        when(|asked| asked.name.starts_with("popular"))
            .then([wait(1600..1601), say(Reply::address(7))]),
    ]);
    let forwarder = Forwarder::start(&[&upstream], "");
    let address = forwarder.server.zonda.address;
    let flood = Flood::start(address, GREEDY, 10_000, |_| "popular.example".to_owned());
    wait_until("many wait", || flood.sent() > 5_000);
    let question = recursive("popular.example", "A");
    let modest = ask_at_pace(address, MODEST, 10, [question]);
    modest.check_all_answered();
    let dropped = "zonda_forward_dropped_total{newer_of=\"same_client\"}";
    assert!(forwarder.server.metric(dropped) > 1000.0);
}

#[test]
fn names_that_nobody_answers_take_no_upstream_from_those_who_ask_for_others() {
    let is_silent = |asked: &ReceivedQuery| asked.name.starts_with("flood");
    let upstream = sound(vec![when(is_silent).then([])]);
    let forwarder = Forwarder::start(&[&upstream], "outstanding-max = 50");
    let server = &forwarder.server;
    ask_modestly(server, "example", 50, 200);
    let flood =
        Flood::start(server.zonda.address, GREEDY, 200, |number| format!("flood{number}.example"));
    let refused = "zonda_forward_dropped_total{newer_of=\"same_client\"}";
    wait_until("the upstream can take no more", || server.metric(refused) > 0.0);
    let seen = ask_modestly(server, "example.net", 300, 100);
    drop(flood);
    seen.check_all_answered();
}

#[test]
fn a_dead_upstream_costs_other_zones_nothing() {
    let dead = UdpSocket::bind("127.0.0.1:0").unwrap(); // receives, and says nothing
    let alive = sound(Vec::new());
    let server = two_zones(alive.address, dead.local_addr().unwrap());
    let name = |number| format!("flood{number}.dead.example");
    let flood = Flood::start(server.zonda.address, GREEDY, 3000, name);
    let seen = ask_modestly(&server, "alive.example", 1000, 250);
    drop(flood);
    seen.check_all_answered();
    assert!(seen.within(50) < Duration::from_millis(50), "{:?}", seen.within(50));
    let state = format!("zone=\"dead.example.\",upstream=\"{}\"", dead.local_addr().unwrap());
    let state = format!("zonda_upstream_state{{{state},state=\"down\"}}");
    wait_until("nobody asks the dead one any more", || server.metric(&state) >= 1.0);
}

/// The last name that was asked for to see whether questions come back: 32 digits below a zone.
fn check_name(upstream: &Upstream, zone: &str) -> Option<String> {
    let seen = Mutex::new(None);
    let note = |asked: &ReceivedQuery| {
        let digits = asked.name.strip_suffix(zone).filter(|digits| digits.len() == 33);
        if digits.is_some() {
            *seen.lock().unwrap() = Some(asked.name.clone());
        }
        digits.is_some()
    };
    upstream.count(note);
    seen.into_inner().unwrap()
}

#[test]
fn a_loop_of_one_zone_ends_no_question_of_another_that_the_same_server_answers() {
    let upstream = sound(vec![
        when(|asked| asked.name.ends_with("dead.example.")).then([]),
        when(|asked| asked.name.starts_with("slow"))
            .then([wait(1500..1501), say(Reply::address(7))]),
    ]);
    let server = two_zones(upstream.address, upstream.address);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |name: &str| {
        let query = recursive(name, "A").to_bytes(1);
        client.send_to(&query, server.zonda.address).unwrap();
    };
    (0..40).for_each(|number| send(&format!("name{number}.dead.example")));
    let mut name = None;
    wait_until("it is seen whether questions come back", || {
        name = check_name(&upstream, "dead.example.");
        name.is_some()
    });
    let (asked_at, address) = (Instant::now(), server.zonda.address);
    let slow =
        thread::spawn(move || ask(address, &recursive("slow.alive.example", "A").over_tcp()));
    wait_until("it is asked for", || upstream.count(|asked| asked.name.starts_with("slow")) > 0);
    send(&name.unwrap()); // it comes back
    wait_until("the loop is noticed", || server.zonda.process.log("loop: ").contains("come back"));
    assert_eq!(slow.join().unwrap().unwrap().rcode_text(), "NOERROR");
    assert!(asked_at.elapsed() < Duration::from_millis(2200), "{:?}", asked_at.elapsed());
}

#[test]
fn an_upstream_that_never_stops_talking_costs_other_zones_nothing() {
    let babbler = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = babbler.local_addr().unwrap();
    let alive = sound(Vec::new());
    let server = two_zones(alive.address, address);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let talk = thread::spawn(move || {
        let mut query = [0; 512];
        let (len, client) = babbler.recv_from(&mut query).unwrap();
        while !stopped.load(Ordering::Relaxed) {
            query[0] ^= 1; // the ID of no query, or of this one
            let _ = babbler.send_to(&query[..len], client);
        }
    });
    let question = recursive("www.dead.example", "A");
    let asked = thread::spawn({
        let server = server.zonda.address;
        move || ask(server, &question)
    });
    let seen = ask_modestly(&server, "alive.example", 500, 250);
    stop.store(true, Ordering::Relaxed);
    let reply = asked.join().unwrap().unwrap();
    assert_eq!(reply.rcode_text(), "SERVFAIL");
    talk.join().unwrap();
    seen.check_all_answered();
    assert!(seen.within(50) < Duration::from_millis(50), "{:?}", seen.within(50));
    assert!(server.metric("zonda_forward_ignored_total") > 32.0);
    assert!(server.metric("zonda_forward_forgery_suspected_total") >= 1.0);
}

#[test]
fn an_upstream_that_is_silent_over_tcp_costs_few_connections_and_no_other_name() {
    let is_big = |asked: &ReceivedQuery| asked.name.starts_with("big") && !asked.tcp;
    let upstream = sound(vec![
        when(|asked| asked.tcp).then([]),
        when(is_big).then([say(Reply::empty().truncated())]),
    ]);
    let forwarder = Forwarder::start(&[&upstream], "timeout = \"1 s\"");
    let server = &forwarder.server;
    let questions = (0..3000).map(|number| recursive(&format!("big{number}.example"), "A"));
    let before = server.metric("process_open_fds");
    let (big, others) = thread::scope(|scope| {
        let asked = || ask_at_pace(server.zonda.address, GREEDY, 1000, questions);
        let big = scope.spawn(asked);
        let others = ask_modestly(server, "example.net", 300, 100);
        // A UDP socket for each port that is open, and some for the next.
        let descriptors = server.metric("process_open_fds") - before;
        assert!(descriptors < 1100.0, "{descriptors} descriptors");
        assert!(upstream.connections() <= 60, "{} connections", upstream.connections());
        (big.join().unwrap(), others)
    });
    assert!(big.0.iter().all(|asked| matches!(asked.answer, Some((_, 2)))), "each has SERVFAIL");
    others.check_all_answered();
    assert!(others.within(50) < Duration::from_millis(50), "{:?}", others.within(50));
    // Eight at a time, and those that are given up close after ten seconds.
    assert!(upstream.connections() <= 60, "{} connections", upstream.connections());
}

#[test]
fn one_of_two_upstreams_black_holed_in_mid_run_costs_no_query_and_is_forgotten_in_2_seconds() {
    let (first, second) = (sound(Vec::new()), sound(Vec::new()));
    let keys = "policy = \"fastest\"";
    let to = [first.address, second.address].map(|address| format!("\"{address}\"")).join(", ");
    let keys = format!("[[zone]]\nname = \".\"\n[zone.forward]\nto = [{to}]\n{keys}");
    let server = Server::start(&[], &keys);
    let begins = Instant::now();
    let (falls_at, ends_at) = (Duration::from_secs(2), Duration::from_secs(7));
    let seen = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(falls_at.saturating_sub(begins.elapsed()));
            // The upstream that is asked most falls silent.
            let busier = if first.asked() > second.asked() { &first } else { &second };
            busier.now_does([]);
        });
        ask_modestly(&server, "example.net", 7 * 2000, 2000)
    });
    seen.check_all_answered();
    let slowest = [99, 100].map(|percent| seen.within(percent));
    assert!(slowest[0] < Duration::from_millis(300), "{slowest:?}");
    assert!(slowest[1] < Duration::from_secs(1), "{slowest:?}"); // the machine's pauses included
    let later = seen.between(falls_at + Duration::from_secs(2), ends_at);
    let (before, after) = (seen.between(Duration::ZERO, falls_at).within(99), later.within(99));
    assert!(after < (3 * before).max(Duration::from_millis(50)), "p99: {before:?}, then {after:?}");
}
