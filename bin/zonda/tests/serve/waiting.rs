//! What queries cost that wait for an upstream.

use super::hostile::{Forwarder, recursive};
use super::server::wait_until;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;
use zonda_testkit::Upstream;
use zonda_testkit::upstream::{ReceivedQuery, Reply, always, say, when};

/// Connections of the client that pads its queries.
const CONNECTIONS: usize = 80;
/// Queries on each of them: as many as the server lets wait.
const QUERIES: usize = 128;
/// Octets of each query.
const QUERY_BYTES: usize = 65_000;
/// Most KiB by which the server may grow while they wait, of the 650 MiB that it is sent.
const GROWTH_KIB_MAX: u64 = 46 * 1024;
/// Most KiB that it may keep of them in the end.
const KEPT_KIB_MAX: u64 = 30 * 1024;

/// A query for `c<connection>q<number>.silent.example A`, padded to [`QUERY_BYTES`] (rfc7830), with
/// its length in front.
fn padded(connection: usize, number: usize) -> Vec<u8> {
    let label = format!("c{connection}q{number}");
    let mut query = (QUERY_BYTES as u16).to_be_bytes().to_vec();
    query.extend((number as u16).to_be_bytes());
    query.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 1, label.len() as u8]);
    query.extend(label.as_bytes());
    query.extend(b"\x06silent\x07example\0\0\x01\0\x01\0\0\x29\x04\xd0\0\0\0\0");
    let padding = QUERY_BYTES + 2 - query.len() - 6;
    query.extend((padding as u16 + 4).to_be_bytes());
    query.extend([0, 12]);
    query.extend((padding as u16).to_be_bytes());
    query.resize(QUERY_BYTES + 2, 0);
    query
}

/// Sends all queries of a connection.
fn send_padded(server: SocketAddr, connection: usize) -> TcpStream {
    let mut stream = TcpStream::connect(server).unwrap();
    (0..QUERIES).for_each(|number| stream.write_all(&padded(connection, number)).unwrap());
    stream
}

/// Takes the replies to all queries of a connection; how many said SERVFAIL.
fn failures(mut stream: TcpStream) -> usize {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut reply = || {
        let mut length = [0; 2];
        stream.read_exact(&mut length).unwrap();
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut message).unwrap();
        message[3] & 0x0f
    };
    (0..QUERIES).filter(|_| reply() == 2).count()
}

#[test]
fn padding_of_queries_that_wait_is_not_kept_and_memory_is_given_back() {
    check_memory(false);
}

#[test]
fn memory_of_many_queries_is_given_back_though_some_always_wait() {
    check_memory(true);
}

/// Makes sure that the server neither grows by the padding of queries that wait, nor keeps their
/// memory; with `some_wait`, though new queries wait afterwards.
fn check_memory(some_wait: bool) {
    let is_silent = |asked: &ReceivedQuery| asked.name.contains("silent");
    let upstream =
        Upstream::start([when(is_silent).then([]), always().then([say(Reply::address(7))])]);
    // Failures are kept in the cache, which has a bound of its own.
    let keys = "timeout = \"3s\"\ndown-after = \"5m\"\n[cache]\nbytes = \"1 MiB\"";
    let forwarder = Forwarder::start(&[&upstream], keys);
    let (server, address) = (&forwarder.server, forwarder.server.zonda.address);
    let before = server.process_status("VmRSS");
    let senders: Vec<_> = (0..CONNECTIONS)
        .map(|connection| thread::spawn(move || send_padded(address, connection)))
        .collect();
    let streams: Vec<_> = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
    assert_eq!(forwarder.ask("www.example.net", "A").reply.rcode_text(), "NOERROR");
    let grown = server.process_status("VmHWM").saturating_sub(before);
    assert!(grown < GROWTH_KIB_MAX, "{grown} KiB");
    let receivers: Vec<_> =
        streams.into_iter().map(|stream| thread::spawn(move || failures(stream))).collect();
    let failed: usize = receivers.into_iter().map(|receiver| receiver.join().unwrap()).sum();
    assert_eq!(failed, CONNECTIONS * QUERIES, "each query is answered");
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut names = 0..;
    wait_until("memory is given back", || {
        if some_wait {
            // Each waits for 3 seconds, and this is called more often.
            let name = format!("w{}.silent.example", names.next().unwrap());
            client.send_to(&recursive(&name, "A").to_bytes(1), address).unwrap();
        }
        let is_waiting = server.metric("zonda_forward_waiting") > 0.0;
        let grown = server.process_status("VmRSS").saturating_sub(before);
        is_waiting == some_wait && grown < KEPT_KIB_MAX
    });
}
