//! UDP workers with a toy engine, over loopback.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::ErrorKind;
use std::net::UdpSocket as Client;
use std::sync::Arc;
use std::time::{Duration, Instant};

use support::{Fetcher, Toy, failures, id, query, rcode};
use zonda_deferral::Clock;
use zonda_deferral::Deferrals;
use zonda_deferral::faults::{FAULTS_PER_MINUTE_MAX, FailureSender};
use zonda_netio::{UdpOptions, UdpSocket};
use zonda_transport::udp::{UdpConfig, UdpWorker, stop_workers};

/// A bound socket and its worker, not started yet.
fn socket() -> Arc<UdpSocket> {
    Arc::new(UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &UdpOptions::default()).unwrap())
}

/// Starts a worker with toy engines.
fn spawn(socket: &Arc<UdpSocket>, failures: FailureSender) -> UdpWorker {
    spawn_with(socket, Deferrals::default(), failures)
}

/// Starts the worker with queues to defer queries to.
fn spawn_with(socket: &Arc<UdpSocket>, deferrals: Deferrals, failures: FailureSender) -> UdpWorker {
    let (socket, config, clock) = (Arc::clone(socket), UdpConfig::default(), Clock::start());
    UdpWorker::spawn(socket, config, clock, Toy::default, deferrals, failures).unwrap()
}

/// A client that talks to `socket` only.
fn client(socket: &UdpSocket) -> Client {
    let client = Client::bind("127.0.0.1:0").unwrap();
    client.connect(socket.address()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    client
}

/// Asks and returns the reply.
fn ask(client: &Client, message: &[u8]) -> Vec<u8> {
    client.send(message).unwrap();
    receive(client)
}

/// The next reply.
fn receive(client: &Client) -> Vec<u8> {
    let mut buffer = [0; 4096];
    let len = client.recv(&mut buffer).unwrap();
    buffer[..len].to_vec()
}

/// Stops in good time.
fn stop(workers: Vec<UdpWorker>) -> bool {
    stop_workers(workers, Instant::now() + Duration::from_secs(20)).is_empty()
}

#[test]
fn workers_on_one_address_answer_their_clients() {
    let first = socket();
    let options = UdpOptions::default();
    let second = Arc::new(UdpSocket::bind(first.address(), &options).unwrap());
    let (sender, _failures) = failures();
    let workers = vec![spawn(&first, sender.clone()), spawn(&second, sender)];
    for number in 0..50 {
        let reply = ask(&client(&first), &query(number, "a"));
        assert_eq!((id(&reply), rcode(&reply)), (number, 0));
    }
    let counters: Vec<_> = workers.iter().map(|worker| Arc::clone(worker.counters())).collect();
    assert!(stop(workers));
    assert!(counters.iter().all(|counters| counters.received.get() > 0));
    assert_eq!(counters.iter().map(|counters| counters.replied.get()).sum::<u64>(), 50);
}

#[test]
fn a_stopped_worker_has_answered_all_that_it_received() {
    let socket = socket();
    let (sender, _failures) = failures();
    let worker = spawn(&socket, sender);
    let client = client(&socket);
    // One batch of these takes 64 ms, so that most still wait when the stop comes.
    for number in 0..200 {
        client.send(&query(number, "slow")).unwrap();
    }
    assert!(stop(vec![worker]));
    for number in 0..200 {
        assert_eq!(id(&receive(&client)), number);
    }
}

#[test]
fn a_new_worker_takes_over_a_socket_without_losing_a_query() {
    let socket = socket();
    let (sender, _failures) = failures();
    let client = client(&socket);
    let asking = std::thread::spawn(move || {
        let end = Instant::now() + Duration::from_secs(1);
        let mut asked = 0;
        while Instant::now() < end {
            for number in 0..50 {
                client.send(&query(number, "a")).unwrap();
            }
            for _ in 0..50 {
                receive(&client);
                asked += 1;
            }
        }
        asked
    });
    let mut worker = spawn(&socket, sender.clone());
    let mut counters = vec![Arc::clone(worker.counters())];
    while !asking.is_finished() {
        let next = spawn(&socket, sender.clone());
        counters.push(Arc::clone(next.counters()));
        assert!(stop(vec![std::mem::replace(&mut worker, next)]));
    }
    assert!(stop(vec![worker]));
    let replied = counters.iter().map(|counters| counters.replied.get()).sum::<u64>();
    assert_eq!(asking.join().unwrap(), replied);
}

#[test]
fn workers_stop_although_clients_go_on_asking() {
    let socket = socket();
    let (sender, _failures) = failures();
    let worker = spawn(&socket, sender);
    let (client, end) = (client(&socket), Instant::now() + Duration::from_secs(2));
    let asking = std::thread::spawn(move || {
        while Instant::now() < end {
            let _ = client.send(&query(1, "a"));
        }
    });
    std::thread::sleep(Duration::from_millis(50));
    assert!(stop(vec![worker]));
    asking.join().unwrap();
}

#[test]
fn a_panic_answers_servfail_and_the_worker_goes_on() {
    let socket = socket();
    let (sender, mut failures) = failures();
    let client = client(&socket);
    // All in one batch: answered, silence, panic, not reached, a response, not reached.
    let mut response = query(5, "a");
    response[2] |= 0x80;
    for message in [&query(1, "a"), &query(2, "silent"), &query(3, "panic"), &query(4, "b")] {
        client.send(message).unwrap();
    }
    client.send(&response).unwrap();
    client.send(&query(6, "c")).unwrap();
    let worker = spawn(&socket, sender);
    let replies: Vec<_> = (0..4).map(|_| receive(&client)).collect();
    let codes: Vec<_> = replies.iter().map(|reply| (id(reply), rcode(reply))).collect();
    assert_eq!(codes, [(1, 0), (3, 2), (4, 2), (6, 2)]);
    assert_eq!(replies[1][4..], query(3, "panic")[4..]);
    assert_eq!(rcode(&ask(&client, &query(7, "a"))), 0);
    let counters = Arc::clone(worker.counters());
    assert!(stop(vec![worker]));
    let sum = counters.replied.get() + counters.refused.get() + counters.unanswered.get();
    assert_eq!((counters.panics.get(), counters.received.get(), sum), (1, 7, 7));
    assert!(failures.try_recv().is_err());
}

#[test]
fn too_many_panics_end_the_worker_and_are_reported() {
    let socket = socket();
    let (sender, mut failures) = failures();
    let worker = spawn(&socket, sender);
    let client = client(&socket);
    for number in 0..=FAULTS_PER_MINUTE_MAX as u16 {
        assert_eq!(rcode(&ask(&client, &query(number, "panic"))), 2);
    }
    assert_eq!(failures.blocking_recv().unwrap().worker, "udp");
    assert!(stop(vec![worker]));
    client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    client.send(&query(1, "a")).unwrap();
    assert_eq!(client.recv(&mut [0; 512]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn deferred_queries_hold_up_no_others_and_are_answered_when_their_answer_is_there() {
    let socket = socket();
    let (sender, _failures) = failures();
    let (deferrals, fetcher) = Fetcher::start();
    let worker = spawn_with(&socket, deferrals, sender);
    let client = client(&socket);
    for number in 0..100 {
        client.send(&query(number, if number % 2 == 0 { "later" } else { "now" })).unwrap();
    }
    for number in (1..100).step_by(2) {
        assert_eq!(id(&receive(&client)), number);
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    while !fetcher.has(50) {
        assert!(Instant::now() < deadline);
    }
    fetcher.answer();
    for number in (0..100).step_by(2).rev() {
        assert_eq!(receive(&client)[12..], query(number, "later")[12..]);
    }
    let counters = Arc::clone(worker.counters());
    assert!(stop(vec![worker]));
    let count = |counter: &zonda_engine::counters::Counter| counter.get();
    assert_eq!(
        [&counters.received, &counters.replied, &counters.deferred, &counters.unanswered]
            .map(count),
        [100, 50, 50, 0]
    );
}
