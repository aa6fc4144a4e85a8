//! The serial of NOTIFY messages that primaries send.

use crate::decisions::Scripted;
use crate::primaries::{Secondary, name, soa_of};
use std::net::UdpSocket;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

/// Timers with which a zone is checked when it is told to be.
const SELDOM: [u32; 3] = [3600, 3600, 36_000];

/// A primary with serial 5, and a server that has its zone.
fn served() -> (Scripted, Secondary) {
    let script = Scripted::start("zone.test", SELDOM, |it| it.send_zone());
    script.set_serial(5);
    let server = Secondary::start(&script.section(&[], ""));
    script.await_serial(&server, 5);
    (script, server)
}

/// Sends a NOTIFY message with a serial, which has to be acknowledged.
fn notify(server: &Secondary, serial: u32) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let head = [7, 7, 0x24, 0, 0, 1, 0, 1, 0, 0, 0, 0];
    let record = soa_of("zone.test", serial);
    let message = [&head[..], &name("zone.test"), &[0, 6, 0, 1], &record].concat();
    socket.send_to(&message, server.address).unwrap();
    let mut reply = [0; 512];
    let len = socket.recv(&mut reply).unwrap();
    assert!(len >= 12 && reply[3] & 0x0f == 0, "{reply:?}");
}

#[test]
fn a_notify_with_the_serial_that_is_here_costs_the_primary_no_question() {
    let (script, server) = served();
    let checks = script.checks.load(SeqCst);
    for _ in 0..20 {
        notify(&server, 5);
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(Duration::from_millis(500));
    assert_eq!(script.checks.load(SeqCst), checks, "{}", server.log());
    script.set_serial(6);
    notify(&server, 6);
    script.await_serial(&server, 6);
}

#[test]
fn a_notify_that_comes_before_the_primary_has_the_version_is_not_lost() {
    let (script, server) = served();
    let checks = script.checks.load(SeqCst);
    notify(&server, 6);
    crate::primary::wait_until("a check", || script.checks.load(SeqCst) > checks);
    thread::sleep(Duration::from_millis(300));
    script.set_serial(6);
    let began = Instant::now();
    script.await_serial(&server, 6);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn a_serial_that_no_primary_ever_has_is_asked_for_three_times_more() {
    let (script, server) = served();
    let checks = script.checks.load(SeqCst);
    notify(&server, 9);
    // At once, and after one, two and four seconds more.
    thread::sleep(Duration::from_secs(12));
    assert_eq!(script.checks.load(SeqCst), checks + 4, "{}", server.log());
    assert_eq!(server.serial("zone.test"), Some(5));
}
