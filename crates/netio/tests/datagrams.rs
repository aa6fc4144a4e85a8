//! Batches over real loopback sockets.
#![allow(clippy::unwrap_used)]

use std::net::{SocketAddr, UdpSocket as Client};
use std::time::Duration;

use zonda_netio::{DatagramBatch, ReplyBatch, SendResult, UdpOptions, UdpSocket};

/// Returns a server socket on `ip` and a client beside it.
fn pair(ip: &str) -> (UdpSocket, Client) {
    let address = SocketAddr::new(ip.parse().unwrap(), 0);
    let server = UdpSocket::bind(address, &UdpOptions::default()).unwrap();
    let client = Client::bind(address).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    (server, client)
}

/// Answers all that is queued with what was asked, in upper case.
fn echo_once(server: &UdpSocket, batch: &mut DatagramBatch) -> SendResult {
    for index in 0..batch.receive(server).unwrap() {
        let datagram = batch.get(index);
        datagram.buffer[..*datagram.len].make_ascii_uppercase();
    }
    batch.send(server)
}

#[test]
fn replies_go_back_to_the_sender_over_v4_and_v6() {
    for ip in ["127.0.0.1", "::1"] {
        let (server, client) = pair(ip);
        let mut batch = DatagramBatch::new(8, 512);
        client.send_to(b"hello", server.address()).unwrap();
        assert_eq!(batch.receive(&server).unwrap(), 1);
        assert_eq!(batch.get(0).peer, client.local_addr().unwrap());
        *batch.get(0).len = 4;
        assert_eq!(batch.received_len(0), 5);
        assert_eq!(batch.send(&server), SendResult { replies: 1, refused: 0 });
        let mut reply = [0; 16];
        let (len, from) = client.recv_from(&mut reply).unwrap();
        assert_eq!((&reply[..len], from), (&b"hell"[..], server.address()));
    }
}

#[test]
fn a_wildcard_socket_replies_from_the_address_that_was_asked() {
    for (wildcard, asked) in [("0.0.0.0", "127.0.0.2"), ("0.0.0.0", "127.77.0.1"), ("::", "::1")] {
        let (server, client) = pair(wildcard);
        let mut batch = DatagramBatch::new(8, 512);
        let asked = SocketAddr::new(asked.parse().unwrap(), server.address().port());
        for _ in 0..3 {
            client.send_to(b"where", asked).unwrap();
            assert_eq!(echo_once(&server, &mut batch).replies, 1);
            let (_, from) = client.recv_from(&mut [0; 16]).unwrap();
            assert_eq!(from, asked);
        }
    }
}

#[test]
fn replies_sent_after_their_batch_leave_from_the_address_that_was_asked() {
    for (bound, asked) in [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.77.0.1"), ("::", "::1")] {
        let (server, client) = pair(bound);
        let mut batch = DatagramBatch::new(8, 512);
        let asked = SocketAddr::new(asked.parse().unwrap(), server.address().port());
        let paths = [(); 2].map(|()| {
            client.send_to(b"later", asked).unwrap();
            assert_eq!(batch.receive(&server).unwrap(), 1);
            let path = batch.reply_path(0);
            *batch.get(0).len = 0;
            assert_eq!(batch.send(&server).replies, 0);
            path
        });
        let mut replies = ReplyBatch::default();
        for (path, reply) in paths.into_iter().zip([&b"a"[..], b"longer"]) {
            assert_eq!(path.peer().port(), client.local_addr().unwrap().port());
            replies.push(path, reply);
        }
        assert_eq!(replies.send(&server), SendResult { replies: 2, refused: 0 });
        assert!(replies.is_empty());
        for expected in [&b"a"[..], b"longer"] {
            let mut reply = [0; 16];
            let (len, from) = client.recv_from(&mut reply).unwrap();
            assert_eq!((&reply[..len], from), (expected, asked));
        }
    }
}

#[test]
fn more_datagrams_than_slots_are_taken_in_several_batches_in_order() {
    let (server, client) = pair("127.0.0.1");
    for number in 0..200_u32 {
        client.send_to(&number.to_be_bytes(), server.address()).unwrap();
    }
    let mut batch = DatagramBatch::new(64, 4096);
    let mut sizes = Vec::new();
    while sizes.iter().sum::<usize>() < 200 {
        sizes.push(batch.receive(&server).unwrap());
        assert_eq!(batch.send(&server).replies, *sizes.last().unwrap());
    }
    assert_eq!(sizes, [64, 64, 64, 8]);
    for number in 0..200_u32 {
        let mut reply = [0; 4];
        client.recv(&mut reply).unwrap();
        assert_eq!(u32::from_be_bytes(reply), number);
    }
}

#[test]
fn a_reply_of_length_zero_is_skipped_and_the_rest_is_sent() {
    let (server, client) = pair("127.0.0.1");
    let mut batch = DatagramBatch::new(16, 512);
    for round in 0..3 {
        for number in 0..10_u8 {
            client.send_to(&[number, round], server.address()).unwrap();
        }
        assert_eq!(batch.receive(&server).unwrap(), 10);
        (0..10).filter(|index| index % 3 != 1).for_each(|index| *batch.get(index).len = 0);
        assert_eq!(batch.send(&server), SendResult { replies: 3, refused: 0 });
        for expected in [1, 4, 7] {
            let mut reply = [0; 2];
            client.recv(&mut reply).unwrap();
            assert_eq!(reply, [expected, round]);
        }
    }
}

#[test]
fn a_reply_that_the_kernel_refuses_is_counted_and_the_rest_is_sent() {
    // Answers can be as long as UDP has them: one byte more than fits is refused (EMSGSIZE).
    let (server, client) = pair("127.0.0.1");
    let mut batch = DatagramBatch::new(16, 65536);
    for number in 0..6_u8 {
        client.send_to(&[number], server.address()).unwrap();
    }
    assert_eq!(batch.receive(&server).unwrap(), 6);
    for index in [0, 3, 5] {
        *batch.get(index).len = 65508;
    }
    assert_eq!(batch.send(&server), SendResult { replies: 3, refused: 3 });
    for expected in [1, 2, 4] {
        let mut reply = [0; 1];
        client.recv(&mut reply).unwrap();
        assert_eq!(reply, [expected]);
    }
}

#[test]
fn a_datagram_longer_than_the_buffer_is_cut_and_an_empty_one_has_length_zero() {
    let (server, client) = pair("127.0.0.1");
    let mut batch = DatagramBatch::new(4, 100);
    client.send_to(&[7; 300], server.address()).unwrap();
    client.send_to(&[], server.address()).unwrap();
    assert_eq!(batch.receive(&server).unwrap(), 2);
    assert_eq!((*batch.get(0).len, batch.get(0).buffer.len()), (100, 100));
    assert_eq!(*batch.get(1).len, 0);
    assert_eq!(batch.send(&server), SendResult { replies: 1, refused: 0 });
}

#[test]
fn receiving_what_is_queued_never_waits() {
    let (server, client) = pair("127.0.0.1");
    let mut batch = DatagramBatch::new(4, 512);
    assert_eq!(batch.receive_queued(&server).unwrap(), 0);
    client.send_to(b"x", server.address()).unwrap();
    assert_eq!(batch.receive_queued(&server).unwrap(), 1);
    assert_eq!(batch.receive_queued(&server).unwrap(), 0);
    assert!(batch.is_empty());
}

#[test]
fn a_batch_moves_between_threads_and_serves_several_sockets() {
    let (v4, v4_client) = pair("127.0.0.1");
    let (wildcard, v6_client) = pair("::");
    let asked = SocketAddr::new("::1".parse().unwrap(), wildcard.address().port());
    let mut batch = DatagramBatch::new(4, 512);
    for _ in 0..2 {
        v4_client.send_to(b"a", v4.address()).unwrap();
        v6_client.send_to(b"b", asked).unwrap();
        (batch, ..) = std::thread::scope(|scope| {
            let (v4, wildcard) = (&v4, &wildcard);
            let serve = move || {
                let sent = (echo_once(v4, &mut batch), echo_once(wildcard, &mut batch));
                (batch, sent)
            };
            scope.spawn(serve).join().unwrap()
        });
        assert_eq!(v4_client.recv_from(&mut [0; 4]).unwrap().1, v4.address());
        assert_eq!(v6_client.recv_from(&mut [0; 4]).unwrap().1, asked);
    }
}

#[test]
fn a_slot_beyond_the_batch_is_a_programming_error() {
    let mut batch = DatagramBatch::new(4, 512);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| batch.get(0).peer));
    assert!(result.is_err());
}
