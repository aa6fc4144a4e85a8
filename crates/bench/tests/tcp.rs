//! The generator over TCP: against servers by script, which close and cut as they like, and real
//! ones.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use zonda_bench::load::{
    self, End, Form, LoadError, Mode, Outcome, Pace, Plan, Queries, Transport,
};
use zonda_testkit::{Peer, PeerKind};

/// Starts a server that treats each connection as `serve` does. It ends with the test's process.
fn start(serve: fn(TcpStream) -> Option<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || serve(stream.unwrap()));
        }
    });
    address
}

/// Returns the next query, answered with NOERROR and behind its length; nothing at the end.
fn next_reply(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length).ok()?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message).ok()?;
    message[2] |= 0x80;
    Some([&length[..], &message].concat())
}

/// Returns a plan for `count` queries, ten outstanding.
fn plan(server: SocketAddr, count: u64) -> Plan {
    let queries = Queries::from_lines("a.example A\nlonger.b.example AAAA\n", &Form::default());
    let mut plan = Plan::new(server, queries.unwrap());
    plan.transport = Transport::Tcp;
    plan.mode = Mode::Closed { outstanding: 10, rate_max: None };
    plan.end = End { count: Some(count), after: Some(Duration::from_secs(20)), runs: None };
    plan.timeout = Duration::from_secs(1);
    plan
}

/// Runs a plan that can be followed.
fn run(plan: &Plan) -> Outcome {
    load::run(plan, None).unwrap()
}

/// Counts of a run: sent, completed, lost, opened again; unexpected, duplicate, late, wrong.
fn counts(outcome: &Outcome) -> ([u64; 4], [u64; 4]) {
    let traffic = &outcome.traffic;
    let main = [traffic.sent, traffic.completed, traffic.lost, traffic.reconnects];
    (main, [traffic.unexpected, traffic.duplicate, traffic.late, traffic.wrong])
}

/// Answers every query.
fn answer_all(mut stream: TcpStream) -> Option<()> {
    loop {
        let reply = next_reply(&mut stream)?;
        stream.write_all(&reply).ok()?;
    }
}

#[test]
fn queries_are_answered_on_one_connection_for_each_client() {
    let server = start(answer_all);
    let mut plan = plan(server, 1000);
    assert_eq!(counts(&run(&plan)), ([1000, 1000, 0, 0], [0; 4]));
    (plan.threads, plan.sockets) = (2, 5);
    assert_eq!(counts(&run(&plan)), ([1000, 1000, 0, 0], [0; 4]));
    (plan.mode, plan.end.count) = (Mode::Open { rate: 2000.0 }, Some(500));
    let outcome = run(&plan);
    assert_eq!(counts(&outcome), ([500, 500, 0, 0], [0; 4]));
    assert!(outcome.lateness.is_some());
}

#[test]
fn queries_do_not_wait_for_replies_which_come_in_any_order_and_any_pieces() {
    let server = start(|mut stream| {
        stream.set_nodelay(true).unwrap();
        loop {
            // No query is answered before all ten have come.
            let replies: Option<Vec<Vec<u8>>> = (0..10).map(|_| next_reply(&mut stream)).collect();
            let mut replies = replies?;
            replies.reverse();
            for piece in replies.concat().chunks(17) {
                stream.write_all(piece).ok()?;
            }
        }
    });
    assert_eq!(counts(&run(&plan(server, 200))), ([200, 200, 0, 0], [0; 4]));
}

#[test]
fn a_connection_that_the_server_closes_is_opened_again_and_what_waited_is_lost() {
    let server = start(|mut stream| {
        for _ in 0..10 {
            let reply = next_reply(&mut stream)?;
            stream.write_all(&reply).ok()?;
        }
        next_reply(&mut stream).map(drop)
    });
    let mut plan = plan(server, 110);
    plan.mode = Mode::Closed { outstanding: 1, rate_max: None };
    assert_eq!(counts(&run(&plan)), ([110, 100, 10, 9], [0; 4]));
}

#[test]
fn queries_never_sent_to_a_server_that_does_not_read_are_part_of_the_loss() {
    let server = start(|stream| {
        thread::sleep(Duration::from_secs(20));
        drop(stream);
        None
    });
    let mut plan = plan(server, u64::MAX);
    plan.mode = Mode::Open { rate: 100_000.0 };
    (plan.end.after, plan.end.count) = (Some(Duration::from_secs(1)), None);
    (plan.timeout, plan.buffer_octets) = (Duration::from_millis(200), 4096);
    let outcome = run(&plan);
    let traffic = &outcome.traffic;
    assert!(traffic.unsent > 50_000, "{traffic:?}");
    assert_eq!(traffic.sent + traffic.unsent, 100_000);
    assert_eq!((traffic.lost, outcome.loss()), (traffic.sent, 1.0));
}

#[test]
fn a_server_that_closes_every_connection_at_once_does_not_keep_the_run_from_its_end() {
    let server = start(|stream| {
        drop(stream);
        None
    });
    let outcome = run(&plan(server, 30));
    let ([sent, completed, lost, reconnects], _) = counts(&outcome);
    assert_eq!((sent, completed, lost), (30, 0, 30));
    assert!(reconnects >= 1, "{reconnects}");
}

#[test]
fn a_server_that_does_not_answer_loses_queries_by_timeout() {
    let server = start(|mut stream| {
        loop {
            next_reply(&mut stream)?;
        }
    });
    let mut plan = plan(server, 20);
    plan.timeout = Duration::from_millis(200);
    assert_eq!(counts(&run(&plan)), ([20, 0, 20, 0], [0; 4]));
}

#[test]
fn a_closed_port_and_datagram_system_calls_are_refused() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut plan = plan(server, 1);
    assert!(matches!(load::run(&plan, None), Err(LoadError::Connect(..))));
    plan.pace = Pace::Dnsperf;
    assert!(matches!(load::run(&plan, None), Err(LoadError::Plan(_))));
    (plan.pace, plan.segment) = (Pace::Batch, true);
    assert!(matches!(load::run(&plan, None), Err(LoadError::Plan(_))));
}

#[test]
fn real_servers_answer_over_tcp() {
    let zone = "\
$ORIGIN example.
$TTL 60
@ SOA ns h 1 7200 3600 1209600 60
@ NS ns
ns A 127.0.0.1
a A 127.0.0.2
";
    for kind in [PeerKind::Nsd, PeerKind::Knot] {
        let peer = Peer::start(kind, &[("example.", zone)]);
        let mut plan = plan(peer.address, 2000);
        (plan.sockets, plan.timeout) = (4, Duration::from_secs(5));
        let outcome = run(&plan);
        assert_eq!(counts(&outcome), ([2000, 2000, 0, 0], [0; 4]), "{kind}");
        assert_eq!(outcome.traffic.rcodes["NXDOMAIN"], 1000, "{kind}");
    }
}
