//! Sockets that a supervisor opened: a program without a test harness, since it must have one
//! thread.
#![allow(clippy::unwrap_used)]

use std::env;
use std::os::fd::OwnedFd;
use std::process::Command;

use zonda_netio::descriptors::InheritedSocket;
use zonda_netio::supervisor::take_descriptors;
use zonda_netio::tcp::{TcpOptions, listen};
use zonda_netio::{UdpOptions, UdpSocket};

/// In the child: addresses of the sockets it should find.
const EXPECTED: &str = "ZONDA_TEST_ADDRESSES";

fn main() {
    match env::var(EXPECTED) {
        Ok(addresses) => activated(&addresses),
        Err(_) => {
            activated_sockets_are_taken_once();
            println!("activated_sockets_are_taken_once ... ok\n1 passed, 0 failed");
        }
    }
}

/// Starts this program as a supervisor would: sockets on descriptors 3 and 4, variables that say
/// so.
fn activated_sockets_are_taken_once() {
    let udp = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &UdpOptions::default()).unwrap();
    let tcp = listen("127.0.0.1:0".parse().unwrap(), &TcpOptions::default()).unwrap();
    let addresses = format!("{} {}", udp.address(), tcp.local_addr().unwrap());
    let script = "LISTEN_PID=$$ LISTEN_FDS=2; export LISTEN_PID LISTEN_FDS; \
                  exec \"$0\" 3<&0 4>&1";
    let status = Command::new("sh")
        .args(["-c", script])
        .arg(env::current_exe().unwrap())
        .env(EXPECTED, addresses)
        .stdin(OwnedFd::from(socket2::SockRef::from(&udp).try_clone().unwrap()))
        .stdout(OwnedFd::from(tcp))
        .status();
    assert!(status.unwrap().success());
}

/// In the child.
fn activated(addresses: &str) {
    let mut sockets = take_descriptors().unwrap().into_iter();
    assert!(env::var_os("LISTEN_FDS").is_none());
    assert!(take_descriptors().unwrap().is_empty());
    let mut adopt =
        || InheritedSocket::adopt(sockets.next().unwrap(), &UdpOptions::default()).unwrap();
    let (InheritedSocket::Udp(udp), InheritedSocket::Tcp(tcp)) = (adopt(), adopt()) else {
        panic!("sockets of other kinds");
    };
    assert_eq!(format!("{} {}", udp.address(), tcp.local_addr().unwrap()), addresses);
}
