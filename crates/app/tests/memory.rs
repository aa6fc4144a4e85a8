//! A million handled queries leave as much memory as the first of them did.
//!
//! Longer runs are kept in bench/runs. A test of its own, so that nothing else allocates.

#![allow(clippy::unwrap_used)]

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;
use zonda::{A, App, OwnedQuery, Query, Rcode, Reply, Type};

/// Queries in all.
const QUERIES: usize = 1_000_000;
/// Queries after which all buffers have grown, and caches and the allocator's arenas are full.
const WARM_UP: usize = 200_000;
/// By how much resident memory may grow behind them: five octets a query, less than any object
/// that could be forgotten.
const GROWTH_MAX_KIB: u64 = 4096;
/// Queries that wait for replies at once: as many as fit into a socket's buffer.
const WINDOW: usize = 64;
/// How a query may end, each of a thousand names in turn; code is called for all of them.
const ENDINGS: [(&str, Rcode); 5] = [
    ("worker.example", Rcode::NOERROR),
    ("elsewhere.example", Rcode::NOERROR),
    ("denies.example", Rcode::NXDOMAIN),
    ("fails.example", Rcode::SERVFAIL),
    ("passes.example", Rcode::NOERROR),
];

/// Returns an app with code of all kinds.
fn app() -> App {
    App::new()
        .listen("127.0.0.1:0")
        .workers(1)
        .handle("*.worker.example", |_: &Query, reply: &mut Reply| {
            reply.answer(A::new([192, 0, 2, 1]));
        })
        .handle_async("*.elsewhere.example", |query: OwnedQuery| async move {
            tokio::task::yield_now().await;
            let mut reply = Reply::default();
            reply.answer(A::new([192, 0, 2, u8::from(query.qtype() == Type::A)]));
            reply
        })
        .handle("*.denies.example", |_: &Query, reply: &mut Reply| reply.nxdomain())
        .handle("*.fails.example", |_: &Query, _: &mut Reply| Err::<(), _>("no database"))
        .handle("*.passes.example", |_: &Query, _: &mut Reply| {})
}

/// Returns the query of a number, with as much of the number as an ID holds.
fn query(number: usize) -> (Vec<u8>, Rcode) {
    let (zone, rcode) = ENDINGS[number % ENDINGS.len()];
    let name: zonda::Name = format!("h{}.{zone}", number / ENDINGS.len() % 1000).parse().unwrap();
    let mut message = (number as u16).to_be_bytes().to_vec();
    message.extend_from_slice(b"\x01\0\0\x01\0\0\0\0\0\0");
    message.extend_from_slice(name.as_wire());
    message.extend_from_slice(b"\0\x01\0\x01");
    (message, rcode)
}

/// Asks the queries of these numbers, some at a time.
fn ask(socket: &UdpSocket, server: SocketAddr, numbers: std::ops::Range<usize>) {
    let mut reply = [0; 512];
    for start in numbers.clone().step_by(WINDOW) {
        let window = start..numbers.end.min(start + WINDOW);
        for number in window.clone() {
            socket.send_to(&query(number).0, server).unwrap();
        }
        for _ in window.clone() {
            let len = socket.recv(&mut reply).unwrap();
            let id = usize::from(u16::from_be_bytes([reply[0], reply[1]]));
            let number = window.clone().find(|number| number & 0xffff == id);
            let (_, expected) = query(number.unwrap());
            assert_eq!(Rcode(u16::from(reply[3] & 0xf)), expected, "{:?}", &reply[..len]);
        }
    }
}

/// Resident memory of this process.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim_end_matches("kB").trim().parse().unwrap()
}

#[test]
fn a_million_handled_queries_leave_nothing_behind() {
    let running = app().start_blocking().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let server = running.addresses()[0];
    ask(&socket, server, 0..WARM_UP);
    let before = resident_kib();
    ask(&socket, server, WARM_UP..QUERIES);
    let after = resident_kib();
    assert!(after <= before + GROWTH_MAX_KIB, "{before} KiB, {after} KiB after {QUERIES} queries");
    running.stop_blocking().unwrap();
}
