//! Descriptors passed over a Unix socket and adopted on the other side.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket as Client};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;

use zonda_netio::descriptors::{self, DESCRIPTORS_MAX, InheritedSocket};
use zonda_netio::tcp::{TcpOptions, listen};
use zonda_netio::{DatagramBatch, UdpOptions, UdpSocket};

/// Sends one frame and receives it.
fn pass(payload: &[u8], fds: &[BorrowedFd<'_>]) -> (Vec<u8>, Vec<OwnedFd>) {
    let (old, new) = UnixStream::pair().unwrap();
    descriptors::send(&old, payload, fds).unwrap();
    descriptors::receive(&new).unwrap()
}

/// Adopts with the usual options.
fn adopt(descriptor: OwnedFd) -> std::io::Result<InheritedSocket> {
    InheritedSocket::adopt(descriptor, &UdpOptions::default())
}

#[test]
fn a_passed_udp_socket_keeps_its_queue() {
    let server = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &UdpOptions::default()).unwrap();
    let client = Client::bind("127.0.0.1:0").unwrap();
    client.send_to(b"queued", server.address()).unwrap();
    let (payload, mut fds) = pass(b"one listener", &[server.as_fd()]);
    assert_eq!(payload, b"one listener");
    let address = server.address();
    drop(server);
    let InheritedSocket::Udp(adopted) = adopt(fds.pop().unwrap()).unwrap() else {
        panic!("not UDP")
    };
    assert_eq!(adopted.address(), address);
    let mut batch = DatagramBatch::new(4, 512);
    assert_eq!(batch.receive(&adopted).unwrap(), 1);
    assert_eq!(batch.send(&adopted).replies, 1);
    client.recv(&mut [0; 16]).unwrap();
}

#[test]
fn a_passed_tcp_listener_keeps_the_connections_that_wait() {
    let listener = listen("127.0.0.1:0".parse().unwrap(), &TcpOptions::default()).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.write_all(b"early").unwrap();
    let (_, mut fds) = pass(b"", &[listener.as_fd()]);
    drop(listener);
    let InheritedSocket::Tcp(adopted) = adopt(fds.pop().unwrap()).unwrap() else {
        panic!("not TCP")
    };
    let (mut connection, _) = adopted.accept().unwrap();
    connection.set_nonblocking(false).unwrap();
    let mut text = [0; 5];
    connection.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"early");
}

#[test]
fn frames_with_and_without_descriptors_keep_their_order() {
    let (old, new) = UnixStream::pair().unwrap();
    let file = File::open("/dev/null").unwrap();
    let frames: [(Vec<u8>, usize); 4] =
        [(vec![1; 3], 2), (vec![2; 65535], DESCRIPTORS_MAX), (vec![3; 1], 0), (Vec::new(), 1)];
    let expected = frames.clone();
    let sender = thread::spawn(move || {
        for (payload, count) in &frames {
            descriptors::send(&old, payload, &vec![file.as_fd(); *count]).unwrap();
        }
    });
    for (payload, count) in expected {
        let (received, fds) = descriptors::receive(&new).unwrap();
        assert_eq!((received == payload, fds.len()), (true, count));
    }
    sender.join().unwrap();
    assert_eq!(descriptors::receive(&new).unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn too_much_in_one_frame_is_refused_before_anything_is_sent() {
    let (old, _new) = UnixStream::pair().unwrap();
    let many = vec![old.as_fd(); DESCRIPTORS_MAX + 1];
    let refused = descriptors::send(&old, b"", &many).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    let refused = descriptors::send(&old, &vec![0; 65536], &[]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}

#[test]
fn what_is_no_bound_internet_socket_is_not_adopted() {
    let unbound = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
    let connected = Client::bind("127.0.0.1:0").unwrap();
    connected.connect(connected.local_addr().unwrap()).unwrap();
    for descriptor in [
        File::open("/dev/null").unwrap().into(),
        UnixStream::pair().unwrap().0.into(),
        unbound.unwrap().into(),
        connected.into(),
    ] {
        assert!(adopt(descriptor).is_err());
    }
}
