//! Queries that wait for the user's code, which the test plays.
#![allow(clippy::unwrap_used)]

#[path = "../../transport/tests/support/mod.rs"]
mod support;

use std::net::UdpSocket as Client;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use support::{Toy, failures, query};
use zonda_deferral::{Clock, Deferrals, Queue};
use zonda_engine::code::{Call, HandlerReply};
use zonda_engine::{AnswerBelow, HandlerOutcome};
use zonda_netio::{UdpOptions, UdpSocket};
use zonda_runtime::{Answerer, Deadlines, LongCalls, Runtime, RuntimeConfig, Ticket};
use zonda_transport::udp::{UdpConfig, UdpWorker, stop_workers};

/// A worker whose queries for `code` wait for a runtime.
struct Server {
    socket: Arc<UdpSocket>,
    runtime: Arc<Runtime>,
    deferrals: Deferrals,
    worker: UdpWorker,
    clock: Clock,
    /// How often the runtime was woken.
    woken: Arc<AtomicU32>,
}

impl Server {
    fn start(waiting_max: usize, patience: Duration) -> Self {
        Self::on(socket(), waiting_max, patience, || {})
    }

    /// One on a socket, whose runtime calls a function whenever it is woken.
    fn on(
        socket: Arc<UdpSocket>,
        waiting_max: usize,
        patience: Duration,
        also: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let (clock, woken) = (Clock::start(), Arc::<AtomicU32>::default());
        let counted = Arc::clone(&woken);
        let wake = Box::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            also();
        });
        let patience_nanos = patience.as_nanos() as u64;
        let config = RuntimeConfig { waiting_max, patience_nanos, wake };
        let runtime = Arc::new(Runtime::new(config, clock));
        let forwarders = Arc::new(support::Fetcher::default());
        let queues: Vec<Arc<dyn Queue>> =
            vec![forwarders.clone(), forwarders, Arc::clone(&runtime) as _];
        let deferrals = Deferrals::new(queues, clock, Toy);
        let (own, config) = (Arc::clone(&socket), UdpConfig::default());
        let sender = failures().0;
        let worker =
            UdpWorker::spawn(own, config, clock, Toy::default, deferrals.clone(), sender).unwrap();
        Self { socket, runtime, deferrals, worker, clock, woken }
    }

    /// A client with queries under way.
    fn client(&self, ids: std::ops::Range<u16>) -> Client {
        let client = Client::bind("127.0.0.1:0").unwrap();
        client.connect(self.socket.address()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        for id in ids {
            client.send(&query(id, "code")).unwrap();
        }
        client
    }

    /// The queries that the runtime has not seen, at least so many.
    fn take(&self, count: usize) -> Vec<(Ticket, u16)> {
        let (mut taken, limit) = (Vec::new(), Instant::now() + Duration::from_secs(5));
        while taken.len() < count && Instant::now() < limit {
            self.runtime.take(7, |ticket, handler, deferred| {
                assert_eq!(handler, 5);
                taken.push((ticket, support::id(&deferred.query)));
            });
            std::thread::sleep(Duration::from_millis(1));
        }
        taken
    }

    fn answerer(&self) -> Answerer<Toy> {
        Answerer::new(Toy, self.clock, self.deferrals.clone())
    }

    fn stop(self) {
        let late = stop_workers(vec![self.worker], Instant::now() + Duration::from_secs(5));
        assert!(late.is_empty());
    }
}

/// A socket on a free port.
fn socket() -> Arc<UdpSocket> {
    let address = "127.0.0.1:0".parse().unwrap();
    Arc::new(UdpSocket::bind(address, &UdpOptions::default()).unwrap())
}

/// The next reply of a client.
fn reply(client: &Client) -> Vec<u8> {
    let mut buffer = [0; 512];
    let len = client.recv(&mut buffer).unwrap();
    buffer[..len].to_vec()
}

#[test]
fn queries_are_seen_in_the_order_in_which_they_came_and_answered_in_any() {
    let server = Server::start(1000, Duration::from_secs(60));
    let client = server.client(0..50);
    let taken = server.take(50);
    assert_eq!(taken.iter().map(|(_, id)| *id).collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
    let mut answerer = server.answerer();
    for (ticket, _) in taken.iter().rev() {
        answerer.answer(&server.runtime, *ticket, HandlerOutcome::Reply(&HandlerReply::default()));
    }
    answerer.send();
    let ids: Vec<u16> = (0..50).map(|_| support::id(&reply(&client))).collect();
    assert_eq!(ids, (0..50).rev().collect::<Vec<_>>());
    assert!(server.woken.load(Ordering::Relaxed) >= 1);
    server.stop();
}

#[test]
fn an_answerer_that_goes_on_keeps_no_socket_of_a_server_that_has_stopped() {
    let server = Server::start(1000, Duration::from_secs(60));
    let client = server.client(0..1);
    let (ticket, _) = server.take(1)[0];
    let mut answerer = server.answerer();
    answerer.answer(&server.runtime, ticket, HandlerOutcome::Reply(&HandlerReply::default()));
    answerer.send();
    reply(&client);
    let address = server.socket.address();
    server.stop();
    assert!(Client::bind(address).is_ok(), "the answerer has the socket");
    drop(answerer);
}

#[test]
fn queries_that_come_together_wake_the_code_once() {
    let socket = socket();
    let client = Client::bind("127.0.0.1:0").unwrap();
    client.connect(socket.address()).unwrap();
    for id in 0..50 {
        client.send(&query(id, "code")).unwrap(); // all of them wait for the worker
    }
    let server = Server::on(socket, 1000, Duration::from_secs(60), || {});
    assert_eq!(server.take(50).len(), 50);
    assert_eq!(server.woken.load(Ordering::Relaxed), 1);
    server.stop();
}

#[test]
fn replies_of_a_batch_leave_before_code_is_woken_for_others_of_it() {
    let socket = socket();
    let client = Client::bind("127.0.0.1:0").unwrap();
    client.connect(socket.address()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    for (id, name) in [(0, "code"), (1, "zone")] {
        client.send(&query(id, name)).unwrap(); // both wait for the worker
    }
    let wake = || std::thread::sleep(Duration::from_secs(2));
    let server = Server::on(socket, 1000, Duration::from_secs(60), wake);
    assert_eq!(support::id(&reply(&client)), 1);
    assert_eq!(server.take(1).len(), 1);
    server.stop();
}

#[test]
fn a_ticket_is_good_for_one_answer() {
    let server = Server::start(1000, Duration::from_secs(60));
    let client = server.client(0..1);
    let (ticket, _) = server.take(1)[0];
    let mut answerer = server.answerer();
    for _ in 0..3 {
        answerer.answer(&server.runtime, ticket, HandlerOutcome::Reply(&HandlerReply::default()));
    }
    answerer.send();
    assert_eq!(support::id(&reply(&client)), 0);
    assert_eq!(server.runtime.counters.in_vain.get(), 2);
    // Its place is another query's now.
    client.send(&query(1, "code")).unwrap();
    let (next, _) = server.take(1)[0];
    assert_ne!(next, ticket);
    answerer.answer(&server.runtime, ticket, HandlerOutcome::Reply(&HandlerReply::default()));
    answerer.answer(&server.runtime, next, HandlerOutcome::Reply(&HandlerReply::default()));
    answerer.send();
    assert_eq!(support::id(&reply(&client)), 1);
    assert_eq!(server.runtime.counters.in_vain.get(), 3);
    server.stop();
}

#[test]
fn queries_for_which_there_is_no_room_are_answered_at_once_and_by_the_engine() {
    let server = Server::start(3, Duration::from_secs(60));
    let client = server.client(0..5);
    let refused = [reply(&client), reply(&client)];
    let told = refused.map(|reply| (support::id(&reply), reply.last().copied()));
    assert_eq!(told, [(3, Some(b'?')), (4, Some(b'?'))]);
    assert_eq!(server.take(3).len(), 3);
    assert_eq!(server.runtime.counters.refused.get(), 2);
    assert_eq!(server.runtime.counters.queries.get(), 3);
    server.stop();
}

#[test]
fn late_queries_are_answered_although_a_look_panicked_and_panics_too_many_end_the_process() {
    let server = Server::start(1000, Duration::from_millis(100));
    let runtimes = || Arc::from([Arc::clone(&server.runtime)]);
    let (failures, mut failed) = tokio::sync::mpsc::channel(1);
    let mut looks = 0;
    let panic_once = Box::new(move || {
        looks += 1;
        assert!(looks != 1, "injected by the test");
    });
    let deadlines = Deadlines::start(runtimes(), server.answerer(), panic_once, failures.clone());
    let deadlines = deadlines.unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let client = server.client(0..1);
    assert_eq!(reply(&client).last(), Some(&b'!'));
    assert!(failed.try_recv().is_err());
    deadlines.stop();
    let always = Box::new(|| panic!("injected by the test"));
    let _ended = Deadlines::start(runtimes(), server.answerer(), always, failures).unwrap();
    assert_eq!(failed.blocking_recv().unwrap().worker, "deadlines");
}

#[test]
fn what_is_not_answered_in_time_is_answered_for_the_code_seen_by_it_or_not() {
    let server = Server::start(1000, Duration::from_millis(100));
    let runtimes = Arc::from([Arc::clone(&server.runtime)]);
    let (failures, _) = tokio::sync::mpsc::channel(1);
    let deadlines = Deadlines::start(runtimes, server.answerer(), Box::new(|| {}), failures);
    let deadlines = deadlines.unwrap();
    let client = server.client(0..1);
    let (seen, _) = server.take(1)[0];
    client.send(&query(1, "code")).unwrap();
    let replies = [reply(&client), reply(&client)];
    assert!(replies.iter().all(|reply| reply.last() == Some(&b'!')), "{replies:?}");
    assert_eq!(server.runtime.counters.late.get(), 2);
    let mut answerer = server.answerer();
    answerer.answer(&server.runtime, seen, HandlerOutcome::Reply(&HandlerReply::default()));
    answerer.send();
    assert_eq!(server.runtime.counters.in_vain.get(), 1);
    assert!(!server.runtime.take(10, |_, _, _| panic!("it is answered")));
    deadlines.stop();
    server.stop();
}

#[test]
fn a_long_call_is_told_once() {
    let call = |number| Some(Call { number, route: 4 });
    let mut seen = LongCalls::default();
    let mut look = |calls: [Option<Call>; 2]| seen.look(calls.into_iter(), 3);
    assert!(look([call(1), None]).is_empty());
    assert!(look([call(1), call(1)]).is_empty());
    assert!(look([call(1), call(2)]).is_empty());
    assert_eq!(look([call(1), call(3)]), [4]);
    assert!(look([call(1), call(4)]).is_empty());
    assert!(look([call(2), None]).is_empty());
}

#[test]
fn the_octets_and_the_client_of_a_query_are_there_while_it_waits() {
    let server = Server::start(1000, Duration::from_secs(60));
    let client = server.client(7..8);
    let [(ticket, _)] = server.take(1).try_into().unwrap();
    let (octets, peer) = server.runtime.waiting_query(ticket).unwrap();
    assert_eq!(support::id(&octets), 7);
    assert_eq!(peer.address, client.local_addr().unwrap());
    let mut answerer = server.answerer();
    server.runtime.keep(ticket, AnswerBelow::new(octets, None));
    answerer.answer(&server.runtime, ticket, HandlerOutcome::Reply(&HandlerReply::default()));
    answerer.send();
    assert_eq!(support::id(&reply(&client)), 7);
    assert!(server.runtime.waiting_query(ticket).is_none());
    server.stop();
}
