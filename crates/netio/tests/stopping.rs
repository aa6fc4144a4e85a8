//! Threads that block in a receive call end when asked to.
#![allow(clippy::unwrap_used)]

use std::io::ErrorKind;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use zonda_netio::stop::stop_all;
use zonda_netio::{DatagramBatch, StopHandle, StopToken, UdpOptions, UdpSocket, stop_channel};

/// Blocks in receive until the token is stopped.
fn wait_for_stop(token: &StopToken) {
    let address = "127.0.0.1:0".parse().unwrap();
    let socket = UdpSocket::bind(address, &UdpOptions::default()).unwrap();
    let mut batch = DatagramBatch::new(1, 64);
    token.enter();
    while !token.is_requested() {
        let error = batch.receive(&socket).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
    }
}

/// Starts a worker that does nothing else.
fn worker() -> (StopHandle, JoinHandle<()>) {
    let (handle, token) = stop_channel().unwrap();
    (handle, thread::spawn(move || wait_for_stop(&token)))
}

/// Soon, for a machine that is busy.
fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

#[test]
fn two_hundred_workers_stop_at_once() {
    let (handles, threads): (Vec<_>, Vec<_>) = (0..200).map(|_| worker()).unzip();
    thread::sleep(Duration::from_millis(50));
    assert!(stop_all(&handles, deadline()));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_request_at_any_moment_of_the_start_is_seen() {
    for round in 0..300_u32 {
        let (handle, thread) = worker();
        thread::sleep(Duration::from_micros(u64::from(round % 30) * 10));
        assert!(stop_all([&handle], deadline()));
        thread.join().unwrap();
    }
}

#[test]
fn a_request_before_the_worker_enters_is_seen() {
    let (handle, token) = stop_channel().unwrap();
    handle.request();
    thread::spawn(move || wait_for_stop(&token)).join().unwrap();
    assert!(stop_all([&handle], deadline()));
}

#[test]
fn a_worker_that_is_gone_is_not_waited_for() {
    let (handle, token) = stop_channel().unwrap();
    let worker = thread::spawn(move || {
        token.enter();
        panic!("on purpose");
    });
    assert!(worker.join().is_err());
    assert!(stop_all([&handle], deadline()));
}

#[test]
fn a_worker_that_ignores_the_stop_is_abandoned_at_the_deadline() {
    let (handle, token) = stop_channel().unwrap();
    token.enter();
    assert!(!stop_all([&handle], Instant::now() + Duration::from_millis(20)));
    assert!(token.is_requested());
    assert!(stop_all([&handle], Instant::now()));
}
