//! TCP connections with a toy engine, over loopback.
#![allow(clippy::unwrap_used)]

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use support::{Fetcher, Toy, failures, id, query, rcode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use zonda_deferral::Clock;
use zonda_deferral::Deferrals;
use zonda_deferral::faults::FAULTS_PER_MINUTE_MAX;
use zonda_netio::tcp::{TcpOptions, listen};
use zonda_transport::tcp::{ExpandAliases, Stop, TcpConfig, TcpCounters, TcpServer};

/// A running server.
struct Running {
    server: Arc<TcpServer<Toy>>,
    address: SocketAddr,
    stop: watch::Sender<Stop>,
    task: JoinHandle<std::io::Result<()>>,
    failures: tokio::sync::mpsc::Receiver<zonda_deferral::faults::Failure>,
}

impl Running {
    /// Starts a server with two toy engines.
    fn start(config: TcpConfig) -> Self {
        Self::start_with(config, Deferrals::default())
    }

    /// Starts the server with queues to defer queries to.
    fn start_with(config: TcpConfig, deferrals: Deferrals) -> Self {
        let (sender, failures) = failures();
        let later = (deferrals, Box::new(|_: &mut _, _| Ok(None)) as Box<ExpandAliases>);
        let server = TcpServer::new(config, 2, Clock::start(), |_| Toy, later, sender);
        let listener = listen("127.0.0.1:0".parse().unwrap(), &TcpOptions::default()).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(Stop::No);
        let task = tokio::spawn(Arc::clone(&server).serve(listener, 0, stopped));
        Self { server, address, stop, task, failures }
    }

    /// Connects a client.
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Stops the server and waits for its end.
    async fn stop(self) -> Arc<TcpCounters> {
        self.stop_as(Stop::Now).await
    }

    /// Stops the server in one of two ways and waits for its end.
    async fn stop_as(self, stop: Stop) -> Arc<TcpCounters> {
        self.stop.send(stop).unwrap();
        timeout(Duration::from_secs(10), self.task).await.unwrap().unwrap().unwrap();
        assert_eq!(self.server.open_connections(), 0);
        Arc::clone(self.server.counters())
    }

    /// Waits until `counted` is true of the counters.
    async fn until(&self, counted: impl Fn(&TcpCounters) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !counted(self.server.counters()) {
            assert!(Instant::now() < deadline, "{:?}", self.server.counters());
            sleep(Duration::from_millis(2)).await;
        }
    }
}

/// A message behind its length.
fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes(), message].concat()
}

/// The next message.
async fn receive(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let len = timeout(Duration::from_secs(10), client.read_u16()).await.unwrap()?;
    let mut message = vec![0; usize::from(len)];
    client.read_exact(&mut message).await?;
    Ok(message)
}

/// Sends one query for `label` and checks that it is answered.
async fn ask(client: &mut TcpStream, label: &str) {
    client.write_all(&framed(&query(9, label))).await.unwrap();
    assert_eq!(id(&receive(client).await.unwrap()), 9);
}

/// Whether the server has ended the connection.
async fn is_closed(client: &mut TcpStream) -> bool {
    let read = timeout(Duration::from_secs(10), client.read(&mut [0; 512])).await;
    matches!(read, Ok(Ok(0) | Err(_)))
}

#[tokio::test]
async fn a_hundred_queries_in_one_segment_are_answered_in_order_in_one_write() {
    let running = Running::start(TcpConfig::default());
    let mut client = running.connect().await;
    let queries: Vec<u8> = (0..100).flat_map(|number| framed(&query(number, "a"))).collect();
    client.write_all(&queries).await.unwrap();
    for number in 0..100 {
        let reply = receive(&mut client).await.unwrap();
        assert_eq!((id(&reply), rcode(&reply)), (number, 0));
    }
    let counters = running.stop().await;
    assert_eq!((counters.received.get(), counters.replied.get()), (100, 100));
}

#[tokio::test]
async fn a_message_may_come_byte_by_byte() {
    let running = Running::start(TcpConfig::default());
    let mut client = running.connect().await;
    client.set_nodelay(true).unwrap();
    for byte in [framed(&query(1, "one")), framed(&query(2, "two"))].concat() {
        client.write_all(&[byte]).await.unwrap();
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(id(&receive(&mut client).await.unwrap()), 1);
    assert_eq!(id(&receive(&mut client).await.unwrap()), 2);
    running.stop().await;
}

#[tokio::test]
async fn a_client_that_sends_no_more_gets_all_replies_and_then_the_end() {
    let running = Running::start(TcpConfig::default());
    let mut client = running.connect().await;
    let queries: Vec<u8> = (0..50).flat_map(|number| framed(&query(number, "slow"))).collect();
    client.write_all(&queries).await.unwrap();
    client.shutdown().await.unwrap();
    for number in 0..50 {
        assert_eq!(id(&receive(&mut client).await.unwrap()), number);
    }
    assert!(is_closed(&mut client).await);
    running.stop().await;
}

#[tokio::test]
async fn silence_and_messages_without_content_do_not_end_a_connection() {
    let running = Running::start(TcpConfig::default());
    let mut client = running.connect().await;
    client
        .write_all(&[framed(&query(1, "silent")), framed(b""), framed(b"x")].concat())
        .await
        .unwrap();
    ask(&mut client, "a").await;
    let counters = running.stop().await;
    assert_eq!((counters.received.get(), counters.replied.get()), (4, 1));
}

#[tokio::test]
async fn long_replies_reach_a_slow_reader_whole() {
    let running = Running::start(TcpConfig::default());
    let mut client = running.connect().await;
    let queries: Vec<u8> = (0..200).flat_map(|number| framed(&query(number, "long"))).collect();
    client.write_all(&queries).await.unwrap();
    for number in 0..200 {
        if number % 50 == 0 {
            sleep(Duration::from_millis(50)).await;
        }
        let reply = receive(&mut client).await.unwrap();
        assert_eq!((id(&reply), reply.len()), (number, 60_000));
    }
    running.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let write_max = Duration::from_millis(100);
    let running = Running::start(TcpConfig { write_max, ..TcpConfig::default() });
    let mut client = running.connect().await;
    let queries: Vec<u8> = (0..500).flat_map(|number| framed(&query(number, "long"))).collect();
    client.write_all(&queries).await.unwrap();
    running.until(|counters| counters.write_timeouts.get() == 1).await;
    assert_eq!(running.server.open_connections(), 0);
    running.stop().await;
}

#[tokio::test]
async fn an_idle_connection_and_a_message_that_never_ends_are_closed_in_time() {
    let config = TcpConfig {
        idle_max: Duration::from_millis(150),
        read_max: Duration::from_millis(150),
        ..TcpConfig::default()
    };
    let running = Running::start(config);
    let mut idle = running.connect().await;
    ask(&mut idle, "a").await;
    assert!(is_closed(&mut idle).await);
    running.until(|counters| counters.idle_timeouts.get() == 1).await;

    let mut slow = running.connect().await;
    let start = Instant::now();
    slow.write_all(&[0, 200]).await.unwrap();
    while slow.write_all(b"x").await.is_ok() && start.elapsed() < Duration::from_secs(5) {
        sleep(Duration::from_millis(20)).await;
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    running.until(|counters| counters.read_timeouts.get() == 1).await;
    running.stop().await;
}

#[tokio::test]
async fn a_connection_may_be_idle_for_the_time_that_clients_are_told_however_many_there_are() {
    let idle_max = Duration::from_millis(800);
    let config = TcpConfig { connections_max: 1, idle_max, ..TcpConfig::default() };
    let running = Running::start(config);
    let mut client = running.connect().await;
    let start = Instant::now();
    assert!(is_closed(&mut client).await);
    assert!(start.elapsed() >= idle_max);
    running.stop().await;
}

#[tokio::test]
async fn a_full_server_closes_the_longest_idle_connection() {
    let running = Running::start(TcpConfig { connections_max: 3, ..TcpConfig::default() });
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = running.connect().await;
        ask(&mut client, "a").await;
        clients.push(client);
    }
    ask(&mut clients[0], "a").await;
    sleep(Duration::from_millis(20)).await;
    let mut newcomer = running.connect().await;
    ask(&mut newcomer, "a").await;
    assert!(is_closed(&mut clients[1]).await);
    ask(&mut clients[0], "a").await;
    ask(&mut clients[2], "a").await;
    assert_eq!(running.stop().await.admission.evicted.get(), 1);
}

#[tokio::test]
async fn connections_in_the_middle_of_a_message_are_not_closed_for_a_newcomer() {
    let running = Running::start(TcpConfig { connections_max: 2, ..TcpConfig::default() });
    let mut clients = [running.connect().await, running.connect().await];
    for client in &mut clients {
        ask(client, "a").await;
        client.write_all(&framed(&query(1, "b"))[..5]).await.unwrap();
    }
    sleep(Duration::from_millis(50)).await;
    assert!(is_closed(&mut running.connect().await).await);
    for client in &mut clients {
        client.write_all(&framed(&query(1, "b"))[5..]).await.unwrap();
        assert_eq!(id(&receive(client).await.unwrap()), 1);
    }
    assert_eq!(running.stop().await.admission.refused_total.get(), 1);
}

#[tokio::test]
async fn one_client_has_a_share_of_connections_and_a_connection_of_queries() {
    let config =
        TcpConfig { connections_per_client_max: 2, queries_max: 3, ..TcpConfig::default() };
    let running = Running::start(config);
    let mut clients = [running.connect().await, running.connect().await];
    ask(&mut clients[1], "a").await;
    assert!(is_closed(&mut running.connect().await).await);
    let queries: Vec<u8> = (0..5).flat_map(|number| framed(&query(number, "a"))).collect();
    clients[0].write_all(&queries).await.unwrap();
    for number in 0..3 {
        assert_eq!(id(&receive(&mut clients[0]).await.unwrap()), number);
    }
    assert!(is_closed(&mut clients[0]).await);
    let counters = running.stop().await;
    assert_eq!((counters.admission.refused_client.get(), counters.query_limits.get()), (1, 1));
}

#[tokio::test]
async fn other_bounds_hold_for_connections_that_are_open_and_for_new_ones() {
    let running = Running::start(TcpConfig::default());
    let mut clients = [running.connect().await, running.connect().await];
    for client in &mut clients {
        ask(client, "a").await;
        ask(client, "a").await;
    }
    running.server.configure(&TcpConfig {
        connections_per_client_max: 2,
        idle_max: Duration::from_millis(150),
        ..TcpConfig::default()
    });
    assert!(is_closed(&mut running.connect().await).await, "a third connection is one too many");
    ask(&mut clients[0], "a").await;
    assert!(is_closed(&mut clients[0]).await);
    assert_eq!(running.server.counters().idle_timeouts.get(), 1);
    running.server.configure(&TcpConfig { queries_max: 1, ..TcpConfig::default() });
    clients[1].write_all(&framed(&query(9, "a"))).await.unwrap();
    assert!(is_closed(&mut clients[1]).await, "it has carried more queries than it now may");
    let counters = running.stop().await;
    assert_eq!((counters.admission.refused_client.get(), counters.query_limits.get()), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_under_load_answers_every_query_that_had_arrived() {
    let running = Running::start(TcpConfig::default());
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = running.connect().await;
        let queries: Vec<u8> = (0..20).flat_map(|number| framed(&query(number, "slow"))).collect();
        client.write_all(&queries).await.unwrap();
        clients.push(client);
    }
    let counters = running.stop().await;
    for client in &mut clients {
        for number in 0..20 {
            assert_eq!(id(&receive(client).await.unwrap()), number);
        }
        assert!(is_closed(client).await);
    }
    assert_eq!(counters.replied.get(), 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_server_does_not_wait_for_clients_that_go_on_asking() {
    let running = Running::start(TcpConfig::default());
    let mut client = running.connect().await;
    let asking = tokio::spawn(async move {
        let end = Instant::now() + Duration::from_secs(8);
        let mut replies = vec![0; 1 << 16];
        while Instant::now() < end
            && client.write_all(&framed(&query(1, "a"))).await.is_ok()
            && matches!(client.read(&mut replies).await, Ok(1..))
        {}
        Instant::now() < end
    });
    sleep(Duration::from_millis(50)).await;
    running.stop().await;
    assert!(asking.await.unwrap());
}

/// Asks again and again for some seconds, until the server ends the connection; how many queries
/// were answered and whether one was not.
async fn ask_on(mut client: TcpStream, label: &'static str, secs: u64) -> (u32, bool) {
    let end = Instant::now() + Duration::from_secs(secs);
    let mut answered = 0;
    while Instant::now() < end {
        if client.try_read(&mut [0; 1]).is_ok_and(|count| count == 0) {
            return (answered, false);
        }
        let sent = client.write_all(&framed(&query(1, label))).await;
        if sent.is_err() || receive(&mut client).await.is_err() {
            return (answered, true);
        }
        answered += 1;
        sleep(Duration::from_millis(80)).await; // time for the end to arrive
    }
    (answered, false)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 6)]
async fn a_stop_that_ends_busy_connections_answers_what_it_has_read() {
    let running = Running::start(TcpConfig::default());
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(tokio::spawn(ask_on(running.connect().await, "slower", 8)));
    }
    sleep(Duration::from_millis(100)).await;
    running.stop().await;
    for client in clients {
        assert!(!client.await.unwrap().1, "a query was not answered");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_go_on_after_a_hand_over_while_they_are_used() {
    let running = Running::start(TcpConfig::default());
    let mut idle = running.connect().await;
    ask(&mut idle, "a").await;
    let busy = tokio::spawn(ask_on(running.connect().await, "a", 3));
    sleep(Duration::from_millis(50)).await;
    let start = Instant::now();
    let stopping = tokio::spawn(running.stop_as(Stop::HandedOver));
    assert!(is_closed(&mut idle).await);
    assert!(start.elapsed() < Duration::from_millis(2500), "it had paused");
    let (answered, lost) = busy.await.unwrap();
    assert!(answered > 10 && !lost, "{answered}");
    assert!(start.elapsed() > Duration::from_millis(2500), "it was in use");
    stopping.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_hand_over_connections_end_in_the_time_of_an_idle_one() {
    let idle_max = Duration::from_millis(300);
    let running = Running::start(TcpConfig { idle_max, ..TcpConfig::default() });
    let busy = tokio::spawn(ask_on(running.connect().await, "a", 8));
    sleep(Duration::from_millis(50)).await;
    let start = Instant::now();
    running.stop_as(Stop::HandedOver).await;
    assert!(start.elapsed() < Duration::from_secs(3));
    assert!(!busy.await.unwrap().1);
}

#[tokio::test]
async fn a_panic_answers_servfail_and_the_connection_goes_on() {
    let mut running = Running::start(TcpConfig::default());
    let mut client = running.connect().await;
    let panic = query(7, "panic");
    // Two engines have a budget of their own.
    for _ in 0..=2 * FAULTS_PER_MINUTE_MAX {
        client.write_all(&framed(&panic)).await.unwrap();
        let reply = receive(&mut client).await.unwrap();
        assert_eq!((id(&reply), rcode(&reply), &reply[4..]), (7, 2, &panic[4..]));
    }
    ask(&mut client, "a").await;
    let failure = timeout(Duration::from_secs(5), running.failures.recv()).await;
    assert_eq!(failure.unwrap().unwrap().worker, "tcp");
    assert_eq!(running.stop().await.panics.get(), u64::from(2 * FAULTS_PER_MINUTE_MAX + 1));
}

#[tokio::test]
async fn a_stopped_server_does_not_wait_for_clients_that_read_slowly() {
    let running = Running::start(TcpConfig::default());
    let mut client = running.connect().await;
    let queries: Vec<u8> = (0..500).flat_map(|number| framed(&query(number, "long"))).collect();
    client.write_all(&queries).await.unwrap();
    let reading = tokio::spawn(async move {
        let mut some = vec![0; 200_000];
        while matches!(client.read(&mut some).await, Ok(1..)) {
            sleep(Duration::from_millis(100)).await;
        }
    });
    sleep(Duration::from_millis(100)).await;
    let start = Instant::now();
    running.stop().await;
    assert!(start.elapsed() < Duration::from_secs(8));
    reading.abort();
}

/// Waits until so many deferred queries have come.
async fn until_deferred(fetcher: &mut Fetcher, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !fetcher.has(count) {
        assert!(Instant::now() < deadline);
        sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_deferred_query_is_overtaken_by_those_that_need_not_wait() {
    let (deferrals, mut fetcher) = Fetcher::start();
    let running = Running::start_with(TcpConfig::default(), deferrals);
    let mut client = running.connect().await;
    let labels = ["later", "now", "later", "now"];
    let queries: Vec<u8> =
        (0..).zip(labels).flat_map(|(number, label)| framed(&query(number, label))).collect();
    client.write_all(&queries).await.unwrap();
    for number in [1, 3] {
        assert_eq!(id(&receive(&mut client).await.unwrap()), number);
    }
    until_deferred(&mut fetcher, 2).await;
    fetcher.answer();
    for number in [2, 0] {
        assert_eq!(id(&receive(&mut client).await.unwrap()), number);
    }
    let counters = running.stop().await;
    assert_eq!((counters.received.get(), counters.replied.get()), (4, 4));
}

#[tokio::test]
async fn a_client_that_sends_no_more_gets_deferred_replies_too_and_then_the_end() {
    let (deferrals, mut fetcher) = Fetcher::start();
    let config = TcpConfig { idle_max: Duration::from_millis(50), ..TcpConfig::default() };
    let running = Running::start_with(config, deferrals);
    let mut client = running.connect().await;
    client.write_all(&framed(&query(1, "later"))).await.unwrap();
    client.shutdown().await.unwrap();
    until_deferred(&mut fetcher, 1).await;
    sleep(Duration::from_millis(200)).await; // far longer than an idle connection would last
    fetcher.answer();
    assert_eq!(id(&receive(&mut client).await.unwrap()), 1);
    assert!(is_closed(&mut client).await);
    running.stop().await;
}

#[tokio::test]
async fn a_connection_reads_no_more_while_too_many_of_its_queries_wait() {
    let (deferrals, mut fetcher) = Fetcher::start();
    let running = Running::start_with(TcpConfig::default(), deferrals);
    let mut client = running.connect().await;
    let queries: Vec<u8> = (0..200).flat_map(|number| framed(&query(number, "later"))).collect();
    client.write_all(&queries).await.unwrap();
    until_deferred(&mut fetcher, 128).await;
    sleep(Duration::from_millis(50)).await;
    assert_eq!(running.server.counters().received.get(), 128);
    fetcher.be_silent();
    until_deferred(&mut fetcher, 72).await;
    fetcher.answer();
    for number in (128..200).rev() {
        assert_eq!(id(&receive(&mut client).await.unwrap()), number);
    }
    let counters = running.stop().await;
    assert_eq!((counters.received.get(), counters.replied.get()), (200, 72));
}

#[tokio::test]
async fn a_server_that_stops_answers_deferred_queries_first() {
    // Longer than an idle client is waited for, and longer than one that goes on asking.
    for patience in [Duration::from_millis(300), Duration::from_secs(4)] {
        let (deferrals, mut fetcher) = Fetcher::start();
        let running = Running::start_with(TcpConfig::default(), deferrals);
        let mut client = running.connect().await;
        client.write_all(&framed(&query(1, "later"))).await.unwrap();
        until_deferred(&mut fetcher, 1).await;
        let client = tokio::spawn(async move { receive(&mut client).await });
        let answer = tokio::spawn(async move {
            sleep(patience).await;
            fetcher.answer();
        });
        running.stop().await;
        answer.await.unwrap();
        assert_eq!(id(&client.await.unwrap().expect("a reply")), 1);
    }
}

#[tokio::test]
async fn a_server_that_stops_does_not_wait_for_replies_for_ever() {
    let (deferrals, mut fetcher) = Fetcher::start();
    let running = Running::start_with(TcpConfig::default(), deferrals);
    let mut client = running.connect().await;
    client.write_all(&framed(&query(1, "later"))).await.unwrap();
    until_deferred(&mut fetcher, 1).await;
    let stopping = Instant::now();
    running.stop().await;
    assert!((7..12).contains(&stopping.elapsed().as_secs()));
    assert!(is_closed(&mut client).await);
}

/// A connection from an address of this machine.
async fn connect_from(address: [u8; 4], server: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.bind((address, 0).into())?;
    socket.connect(server).await
}

/// Ten addresses take all places ten times over, each connection with one octet of a message.
#[tokio::test]
async fn connections_that_send_half_a_message_keep_nobody_out() {
    let (connections_max, connections_per_client_max) = (50, 10);
    let config = TcpConfig { connections_max, connections_per_client_max, ..TcpConfig::default() };
    let running = Running::start(config);
    let server = running.address;
    let attack = |client: u8| async move {
        let mut held = std::collections::VecDeque::new();
        for _ in 0..50 {
            let mut stream = connect_from([127, 0, 2, client], server).await.unwrap();
            stream.write_all(&[0]).await.unwrap();
            held.push_back(stream);
            if held.len() > connections_per_client_max {
                held.pop_front(); // or it would only be refused
            }
            sleep(Duration::from_millis(60)).await;
        }
    };
    let attacks: Vec<_> = (1..=10).map(|client| tokio::spawn(attack(client))).collect();
    let mut answered = 0;
    while !attacks.iter().all(JoinHandle::is_finished) {
        let mut client = running.connect().await;
        client.write_all(&framed(&query(answered, "a"))).await.unwrap();
        let reply = receive(&mut client).await.expect("the connection is not closed unanswered");
        assert_eq!(id(&reply), answered);
        answered += 1;
        sleep(Duration::from_millis(20)).await;
    }
    assert!(answered > 20, "{answered}");
    let counters = running.stop().await;
    assert_eq!(counters.admission.refused_total.get(), 0, "{counters:?}");
    assert!(counters.admission.evicted.get() > 100, "{counters:?}");
}
