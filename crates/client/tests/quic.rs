//! QUIC with a server that does what it should not.
//!
//! Debian 12 has no server of DNS over QUIC, so that this test has a small one, over the same QUIC
//! library as the client; that other programs understand it is shown with `kdig`, which has a
//! library of its own.

#![allow(clippy::unwrap_used)]

mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Identity, SERVER, answer, assert_answers, query, target};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{
    Connection, ConnectionError, Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig,
    VarInt,
};
use rustls::server::ProducesTickets;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use zonda_client::{Connections, Distrust, Fault, Protocol, Session, Tls, Trust};

/// What the server does with a query.
enum Act {
    /// Answers with this message, framed.
    Answer(Vec<u8>),
    /// Sends these octets and ends the stream.
    Octets(Vec<u8>),
    /// Breaks off the stream.
    Reset(u32),
    /// Has the client stop sending, which has sent all, and answers with this message.
    StopAndAnswer(Vec<u8>),
    /// Has the client stop sending, and breaks off the stream.
    StopAndReset(u32),
    /// Closes the connection.
    Close(u32),
    /// Tries to open a stream of its own, then answers with this message.
    OpenStreamAndAnswer(Vec<u8>),
    /// Sends no answer.
    Wait,
}

/// A server that follows a script.
struct Server {
    address: SocketAddr,
    identity: Identity,
    seen: Arc<ServerLog>,
    endpoint: Endpoint,
}

/// What a server has seen.
#[derive(Debug, Default)]
struct ServerLog {
    /// Number of connections taken.
    taken: AtomicUsize,
    /// Number of queries read.
    queries: AtomicUsize,
    /// Streams of its own opened.
    opened: AtomicUsize,
    /// Errors with which connections have ended.
    ends: Mutex<Vec<ConnectionError>>,
    /// With which codes streams were stopped.
    stops: Mutex<Vec<u64>>,
}

/// How a server differs from the usual one.
struct Manner {
    /// Name of the protocol that the server speaks.
    protocol: &'static [u8],
    /// How long connections may be unused.
    idle_max: Duration,
    /// How tickets are made, by which sessions are resumed.
    ticketer: Option<Arc<dyn ProducesTickets>>,
}

/// Some code.
const CODE: VarInt = VarInt::from_u32(5);
/// The manner of most servers.
const USUAL: Manner =
    Manner { protocol: b"doq", idle_max: Duration::from_secs(30), ticketer: None };

impl Server {
    /// Starts one; the script gets the number of the query, from 0 on, and the query.
    fn start(script: impl Fn(usize, &[u8]) -> Act + Send + Sync + 'static) -> Self {
        Self::start_with(USUAL, script)
    }

    /// Starts one that answers all.
    fn answering() -> Self {
        Self::start(|_, query| Act::Answer(answer(query, 300)))
    }

    fn start_with(
        manner: Manner,
        script: impl Fn(usize, &[u8]) -> Act + Send + Sync + 'static,
    ) -> Self {
        let identity = Identity::new(SERVER);
        Self::start_at((Ipv4Addr::LOCALHOST, 0).into(), identity, manner, script)
    }

    /// Starts one at an address, with a certificate.
    fn start_at(
        address: SocketAddr,
        identity: Identity,
        manner: Manner,
        script: impl Fn(usize, &[u8]) -> Act + Send + Sync + 'static,
    ) -> Self {
        let mut tls = identity.server_config(manner.protocol);
        if let Some(ticketer) = manner.ticketer {
            tls.ticketer = ticketer;
        }
        let mut config =
            ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()));
        let mut transport = TransportConfig::default();
        transport.max_idle_timeout(Some(manner.idle_max.try_into().unwrap()));
        config.transport_config(Arc::new(transport));
        let endpoint = Endpoint::server(config, address).unwrap();
        let (address, seen) = (endpoint.local_addr().unwrap(), Arc::new(ServerLog::default()));
        let (accepting, noting, script) = (endpoint.clone(), Arc::clone(&seen), Arc::new(script));
        tokio::spawn(async move {
            while let Some(incoming) = accepting.accept().await {
                let (seen, script) = (Arc::clone(&noting), Arc::clone(&script));
                tokio::spawn(async move {
                    let Ok(connection) = incoming.await else { return };
                    seen.taken.fetch_add(1, Ordering::Relaxed);
                    let end = converse(connection, Arc::clone(&seen), script).await;
                    seen.ends.lock().unwrap().push(end);
                });
            }
        });
        Self { address, identity, seen, endpoint }
    }

    async fn session(&self) -> Session {
        let protocol = Protocol::Quic(self.identity.tls());
        Session::open(&target(self.address, protocol)).await.unwrap()
    }

    fn connections(&self) -> Arc<Connections> {
        Connections::new(Protocol::Quic(self.identity.tls()), vec![self.address])
    }

    /// Returns the fault of a connection to a server that is trusted like this.
    async fn fault(&self, tls: Tls) -> Option<Fault> {
        Session::open(&target(self.address, Protocol::Quic(Arc::new(tls)))).await.err()
    }

    fn taken(&self) -> usize {
        self.seen.taken.load(Ordering::Relaxed)
    }
}

/// Follows the script over one connection, until it ends.
async fn converse(
    connection: Connection,
    seen: Arc<ServerLog>,
    script: Arc<impl Fn(usize, &[u8]) -> Act + Send + Sync + 'static>,
) -> ConnectionError {
    loop {
        let (sending, receiving) = match connection.accept_bi().await {
            Ok(streams) => streams,
            Err(error) => return error,
        };
        let (connection, seen) = (connection.clone(), Arc::clone(&seen));
        let script = Arc::clone(&script);
        tokio::spawn(async move {
            let mut streams = Streams { sending, receiving };
            let Some(query) = streams.read_query().await else { return };
            let act = script(seen.queries.fetch_add(1, Ordering::Relaxed), &query);
            streams.perform(act, connection, &seen).await;
        });
    }
}

/// A stream, both ways.
struct Streams {
    sending: SendStream,
    receiving: RecvStream,
}

impl Streams {
    /// Reads a query, not yet the end of its stream, and makes sure that its id is 0.
    async fn read_query(&mut self) -> Option<Vec<u8>> {
        let mut len = [0; 2];
        self.receiving.read_exact(&mut len).await.ok()?;
        let mut query = vec![0; usize::from(u16::from_be_bytes(len))];
        self.receiving.read_exact(&mut query).await.ok()?;
        assert_eq!(query[..2], [0, 0], "rfc9250#4.2.1");
        Some(query)
    }

    async fn perform(mut self, act: Act, connection: Connection, seen: &ServerLog) {
        match act {
            Act::StopAndAnswer(_) | Act::StopAndReset(_) => self.receiving.stop(CODE).unwrap(),
            _ => drop(self.receiving.read_to_end(0).await.expect("the stream ends there")),
        }
        match act {
            Act::Answer(message) | Act::StopAndAnswer(message) => {
                self.write(&framed(&message)).await;
            }
            Act::Octets(octets) => self.write(&octets).await,
            Act::Reset(code) | Act::StopAndReset(code) => {
                self.sending.reset(VarInt::from_u32(code)).unwrap();
            }
            Act::Close(code) => connection.close(VarInt::from_u32(code), b""),
            Act::OpenStreamAndAnswer(message) => {
                let opened = timeout(Duration::from_millis(200), connection.open_uni()).await;
                seen.opened.fetch_add(opened.is_ok().into(), Ordering::Relaxed);
                self.write(&framed(&message)).await;
            }
            Act::Wait => {
                let code = self.sending.stopped().await.unwrap().unwrap();
                seen.stops.lock().unwrap().push(code.into_inner());
            }
        }
    }

    /// Writes octets and ends the stream, whether or not the client reads them.
    async fn write(&mut self, octets: &[u8]) {
        let _ = self.sending.write_all(octets).await;
        let _ = self.sending.finish();
    }
}

/// Returns a message behind its length.
fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes(), message].concat()
}

/// Counts how often a session is resumed.
#[derive(Debug)]
struct CountingTickets {
    tickets: Arc<dyn ProducesTickets>,
    resumed: AtomicUsize,
}

impl ProducesTickets for CountingTickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.tickets.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.tickets.encrypt(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.resumed.fetch_add(1, Ordering::Relaxed);
        self.tickets.decrypt(cipher)
    }
}

#[tokio::test]
async fn a_thousand_queries_go_over_a_few_connections() {
    let server = Server::answering();
    let connections = server.connections();
    let ask = |id| {
        let connections = Arc::clone(&connections);
        tokio::spawn(async move { connections.ask(&query(id)).await })
    };
    let asked: Vec<_> = (0..1000).map(ask).collect();
    for (id, asked) in asked.into_iter().enumerate() {
        assert_eq!(assert_answers(&asked.await.unwrap().unwrap(), id as u16), 300);
    }
    assert!((1..=8).contains(&server.taken()), "{}", server.taken());
    assert_eq!(connections.counts().failed, 0);
}

#[tokio::test]
async fn kdig_is_answered_by_the_server_of_these_tests() {
    let server = Server::answering();
    let port = server.address.port().to_string();
    let asking = tokio::task::spawn_blocking(move || {
        let arguments = ["@127.0.0.1", "-p", &port, "+quic", "+short", "www.example", "A"];
        Command::new("kdig").args(arguments).output()
    });
    let output = asking.await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "192.0.2.1", "{output:?}");
}

#[tokio::test]
async fn a_session_is_resumed() {
    let tickets = rustls::crypto::ring::Ticketer::new().unwrap();
    let tickets = Arc::new(CountingTickets { tickets, resumed: AtomicUsize::new(0) });
    let manner = Manner { ticketer: Some(tickets.clone()), ..USUAL };
    let server = Server::start_with(manner, |_, query| Act::Answer(answer(query, 300)));
    let target = target(server.address, Protocol::Quic(server.identity.tls()));
    for id in 0..3 {
        let session = Session::open(&target).await.unwrap();
        assert_answers(&session.ask(&query(id)).await.unwrap(), id);
        assert_eq!(session.is_resumed(), id > 0);
    }
    assert_eq!(tickets.resumed.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_server_with_another_certificate_is_not_queried() {
    let server = Server::answering();
    let own = &server.identity;
    let roots = |pem: &str| Trust::in_pem(pem.as_bytes()).unwrap();
    let distrust = |distrust| Some(Fault::Certificate(distrust));

    let other_ca = roots(&Identity::new(SERVER).roots);
    let told = server.fault(Tls::new(SERVER, &other_ca).unwrap()).await;
    assert_eq!(told, distrust(Distrust::UnknownIssuer));
    let told = server.fault(Tls::new("other.example", &roots(&own.roots)).unwrap()).await;
    assert_eq!(told, distrust(Distrust::OtherName));
    let told = server.fault(Tls::new(SERVER, &Trust::Pins(vec![[7; 32]])).unwrap()).await;
    assert_eq!(told, distrust(Distrust::OtherKey));
    let told = server.fault(Tls::new("other.example", &Trust::Pins(vec![own.pin])).unwrap()).await;
    assert_eq!(told, None, "who has the pinned key may have any name");
}

#[tokio::test]
async fn a_server_of_another_protocol_is_not_queried() {
    let manner = Manner { protocol: b"h3", ..USUAL };
    let server = Server::start_with(manner, |_, _| Act::Wait);
    let target = target(server.address, Protocol::Quic(server.identity.tls()));
    let fault = Session::open(&target).await.unwrap_err();
    assert!(matches!(fault, Fault::Handshake(_)), "{fault}");
}

#[tokio::test]
async fn what_breaks_the_rules_ends_the_connection_with_a_protocol_error() {
    let scripts: [fn(&[u8]) -> Act; 6] = [
        |query| Act::Answer([&[0, 1], &answer(query, 300)[2..]].concat()), // an id
        |query| Act::Octets(framed(&answer(query, 300))[..30].to_vec()),   // ends early
        |query| Act::Octets(framed(&answer(query, 300)).repeat(2)),        // two messages
        |_| Act::Octets(Vec::new()),
        |_| Act::Octets(framed(b"short")),
        |_| Act::Octets(vec![0xff; 70_000]),
    ];
    for script in scripts {
        let server = Server::start(move |_, query| script(query));
        let session = server.session().await;
        let fault = session.ask(&query(7)).await.unwrap_err();
        assert_eq!(fault.to_string(), "it breaks the rules of DNS over QUIC");
        assert!(!session.is_open());
        server.endpoint.wait_idle().await;
        let ends = server.seen.ends.lock().unwrap();
        let [ConnectionError::ApplicationClosed(close)] = &ends[..] else { panic!("{ends:?}") };
        assert_eq!(close.error_code, VarInt::from_u32(2));
    }
}

#[tokio::test]
async fn a_reset_stream_is_reported_and_the_next_query_answered() {
    let server = Server::start(|number, query| match number {
        0 => Act::Reset(4), // DOQ_EXCESSIVE_LOAD
        _ => Act::Answer(answer(query, 300)),
    });
    let session = server.session().await;
    assert_eq!(session.ask(&query(1)).await, Err(Fault::Aborted(4)));
    assert_answers(&session.ask(&query(2)).await.unwrap(), 2);
}

#[tokio::test]
async fn a_server_that_stops_a_query_may_still_answer_it() {
    let server = Server::start(|number, query| match number {
        0 => Act::StopAndReset(4),
        _ => Act::StopAndAnswer(answer(query, 300)),
    });
    let session = server.session().await;
    assert_eq!(session.ask(&query(1)).await, Err(Fault::Aborted(4)));
    assert_answers(&session.ask(&query(2)).await.unwrap(), 2);
}

#[tokio::test]
async fn a_query_on_a_closed_connection_is_sent_over_another() {
    let server = Server::start(|number, query| match number {
        1 => Act::Close(0),
        3 => Act::Close(5),
        _ => Act::Answer(answer(query, 300)),
    });
    let connections = server.connections();
    for id in 0..5 {
        assert_answers(&connections.ask(&query(id)).await.unwrap(), id);
    }
    assert_eq!(server.taken(), 3);
}

#[tokio::test]
async fn a_connection_that_was_unused_for_too_long_is_replaced() {
    let manner = Manner { idle_max: Duration::from_millis(200), ..USUAL };
    let server = Server::start_with(manner, |_, query| Act::Answer(answer(query, 300)));
    let connections = server.connections();
    for id in 0..2 {
        assert_answers(&connections.ask(&query(id)).await.unwrap(), id);
        sleep(Duration::from_millis(500)).await;
    }
    assert_eq!(server.taken(), 2);
}

#[tokio::test]
async fn a_server_may_open_no_stream() {
    let server = Server::start(|_, query| Act::OpenStreamAndAnswer(answer(query, 300)));
    assert_answers(&server.session().await.ask(&query(1)).await.unwrap(), 1);
    assert_eq!(server.seen.opened.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_abandoned_query_is_cancelled() {
    let server = Server::start(|_, _| Act::Wait);
    let session = server.session().await;
    assert!(timeout(Duration::from_millis(100), session.ask(&query(0))).await.is_err());
    sleep(Duration::from_millis(100)).await;
    assert_eq!(*server.seen.stops.lock().unwrap(), [3]); // DOQ_REQUEST_CANCELLED
}

#[tokio::test]
async fn a_connection_is_left_when_nothing_comes_over_it() {
    let server = Server::start(|number, query| match number {
        0 => Act::Wait,
        _ => Act::Answer(answer(query, 300)),
    });
    let connections = server.connections();
    let asked = timeout(Duration::from_millis(1600), connections.ask(&query(0))).await;
    assert!(asked.is_err());
    assert_answers(&connections.ask(&query(1)).await.unwrap(), 1);
    assert_eq!(server.taken(), 2);
}

#[tokio::test]
async fn long_answers_side_by_side_are_no_flood() {
    let server =
        Server::start(|_, query| Act::Answer([answer(query, 300), vec![0; 60_000]].concat()));
    let connections = server.connections();
    let ask = |id| {
        let connections = Arc::clone(&connections);
        tokio::spawn(async move { connections.ask(&query(id)).await })
    };
    for round in 0..5 {
        let asked: Vec<_> = (0..50).map(ask).collect();
        for asked in asked {
            assert!(asked.await.unwrap().unwrap().len() > 60_000, "{round}");
        }
    }
    assert_eq!((server.taken(), connections.counts().flooded), (1, 0));
}

#[tokio::test]
async fn a_restarted_server_is_queried_again_soon() {
    let (sender, started) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let Server { address, identity, endpoint, .. } = Server::answering();
            sender.send((address, identity)).ok().unwrap();
            let _ = stopped.await;
            endpoint.close(CODE, b"");
            endpoint.wait_idle().await;
        });
    });
    let (address, identity) = started.await.unwrap();
    let connections = Connections::new(Protocol::Quic(identity.tls()), vec![address]);
    assert_answers(&connections.ask(&query(1)).await.unwrap(), 1);
    drop(stop);
    running.join().unwrap(); // whatever ran there held the socket
    let start = Instant::now();
    let waiting = {
        let connections = Arc::clone(&connections);
        tokio::spawn(async move { connections.ask(&query(2)).await })
    };
    sleep(Duration::from_millis(150)).await;
    let answers = |_: usize, query: &[u8]| Act::Answer(answer(query, 300));
    let _again = Server::start_at(address, identity, USUAL, answers);
    let answer = timeout(Duration::from_secs(5), waiting).await.unwrap().unwrap().unwrap();
    assert_answers(&answer, 2);
    // The second or third repeat of the first packet is heard; the first of them came after 1 s.
    assert!(start.elapsed() < Duration::from_millis(800), "{:?}", start.elapsed());
}
