//! Probes by TCP connections.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{LONG, SHORT, probe, probe_within, refusing, server, target, words};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use zonda_health::{Check, Fault, HttpCheck, Kind, Probe, Step};

#[tokio::test]
async fn a_listening_target_is_up_and_one_that_refuses_is_down() {
    for at in ["127.0.0.1:0", "[::1]:0"] {
        let address = server(at, |_| async {}).await;
        assert_eq!(words(&probe(address, Kind::Tcp).await), "connected");
    }
    assert_eq!(probe(refusing().await, Kind::Tcp).await, Err(Fault::Refused));
}

#[tokio::test]
async fn a_target_that_does_not_accept_is_given_up_after_the_timeout() {
    // A listener whose queue of connections is full: the system leaves further SYNs unanswered.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut filling = Vec::new();
    for _ in 0..4 {
        let connect = tokio::net::TcpStream::connect(address);
        filling.push(tokio::time::timeout(Duration::from_millis(50), connect).await);
    }
    let begun = Instant::now();
    let outcome = probe_within(address, Kind::Tcp, SHORT).await;
    assert_eq!(outcome, Err(Fault::Timeout(Step::Connect)));
    assert!(begun.elapsed() < 4 * SHORT);
}

#[tokio::test]
async fn a_connection_ends_with_a_reset_and_leaves_no_time_wait() {
    let (sender, mut ended) = tokio::sync::mpsc::unbounded_channel();
    let address = server("127.0.0.1:0", move |mut stream| {
        let sender = sender.clone();
        async move { sender.send(stream.read_u8().await.unwrap_err().kind()).unwrap() }
    })
    .await;
    probe(address, Kind::Tcp).await.unwrap();
    assert_eq!(ended.recv().await.unwrap(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_probe_is_sent_from_the_source_address() {
    let (sender, mut sources) = tokio::sync::mpsc::unbounded_channel();
    let address = server("127.0.0.1:0", move |mut stream| {
        sender.send(stream.peer_addr().unwrap().ip()).unwrap();
        async move { stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap() }
    })
    .await;
    // By HTTP, as a connection that was reset has no address any more.
    let kind = Kind::Http(HttpCheck::new("/").unwrap());
    let source = "127.0.0.77".parse().unwrap();
    let check = Check { source_v4: Some(source), ..Check::from(kind.clone()) };
    let mut target = target(address, kind);
    target.check = Arc::new(check.clone());
    Probe::new(&target).unwrap().run(LONG).await.unwrap();
    assert_eq!(sources.recv().await.unwrap(), source);

    // 192.0.2.0/24 is for documentation, so that no machine has the address.
    target.check = Arc::new(Check { source_v4: Some("192.0.2.1".parse().unwrap()), ..check });
    let told = words(&Probe::new(&target).unwrap().run(LONG).await);
    assert!(told.starts_with("FAULT 192.0.2.1 cannot be the source address"), "{told}");
}
