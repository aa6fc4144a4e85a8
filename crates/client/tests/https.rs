//! HTTPS with a server that does what it should not.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::Cursor;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Identity, SERVER, answer, assert_answers, query, target};
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use zonda_client::{Connections, Fault, Protocol, Session, Url};

/// What the server does with a request.
enum Act {
    /// Responds with these headers and this body.
    Respond(Vec<(&'static str, &'static str)>, Vec<u8>),
    /// Responds with this body, octet by octet, one in a hundredth of a second.
    Drip(Vec<u8>),
    /// Breaks off the stream.
    Reset(Reason),
    /// Answers, and takes no more requests over this connection.
    AnswerAndLeave,
    /// Takes no more requests over this connection, nor this one.
    Leave,
    /// Closes the connection without a word.
    Close,
    /// Sends no answer.
    Wait,
}

/// The type of messages, as a header.
const MESSAGE: (&str, &str) = ("content-type", "application/dns-message");

/// A server that follows a script.
struct Server {
    address: SocketAddr,
    identity: Identity,
    /// Number of connections taken.
    taken: Arc<AtomicUsize>,
    /// Number of requests read.
    requests: Arc<AtomicUsize>,
}

impl Server {
    /// Starts one; the script gets the number of the request, from 0 on, and its body.
    async fn start(script: impl Fn(usize, &[u8]) -> Act + Send + Sync + 'static) -> Self {
        let identity = Identity::new(SERVER);
        let acceptor = TlsAcceptor::from(Arc::new(identity.server_config(b"h2")));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (taken, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (count, script) = (Arc::clone(&taken), Arc::new(script));
        let all_requests = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let (requests, script) = (Arc::clone(&requests), Arc::clone(&script));
                tokio::spawn(converse(acceptor.clone(), stream, requests, script));
            }
        });
        Self { address, identity, taken, requests: all_requests }
    }

    fn protocol(&self) -> Protocol {
        let url = Url::new(SERVER, 443, "/dns-query").unwrap();
        Protocol::Https { tls: self.identity.tls(), url }
    }

    async fn session(&self) -> Session {
        Session::open(&target(self.address, self.protocol())).await.unwrap()
    }

    fn connections(&self) -> Arc<Connections> {
        Connections::new(self.protocol(), vec![self.address])
    }

    fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

/// Follows the script over one connection.
async fn converse(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    requests: Arc<AtomicUsize>,
    script: Arc<impl Fn(usize, &[u8]) -> Act + Send + Sync + 'static>,
) {
    let stream = acceptor.accept(stream).await.unwrap();
    let mut connection = h2::server::Builder::new().handshake(stream).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        // A body of this size has come with the head, or comes while the connection is read.
        let body = tokio::select! {
            body = read_query(request) => body,
            _ = connection.accept() => return,
        };
        match script(requests.fetch_add(1, Ordering::Relaxed), &body) {
            Act::Respond(headers, body) => send(&mut respond, &headers, body, Duration::ZERO).await,
            Act::Drip(body) => drip(respond, body),
            Act::Reset(reason) => respond.send_reset(reason),
            Act::AnswerAndLeave => {
                send(&mut respond, &[MESSAGE], answer(&body, 300), Duration::ZERO).await;
                connection.graceful_shutdown();
            }
            Act::Leave => connection.abrupt_shutdown(Reason::NO_ERROR),
            Act::Close => return,
            Act::Wait => drop(tokio::spawn(async move {
                sleep(Duration::from_secs(60)).await;
                drop(respond);
            })),
        }
    }
}

/// Reads a query and makes sure that it is sent as RFC 8484 has it.
async fn read_query(request: Request<RecvStream>) -> Vec<u8> {
    assert_eq!(
        (request.method().as_str(), request.uri().to_string().as_str()),
        ("POST", "https://dns.example/dns-query")
    );
    assert_eq!(request.headers()["content-type"], "application/dns-message");
    assert_eq!(request.headers()["accept"], "application/dns-message");
    let mut body = request.into_body();
    let mut query = Vec::new();
    while let Some(part) = body.data().await {
        query.extend_from_slice(&part.unwrap());
    }
    assert_eq!(query[..2], [0, 0], "equal queries look equal");
    query
}

/// Sends a response whose status is that of the header `:status`, or 200.
async fn send(
    respond: &mut SendResponse<Cursor<Vec<u8>>>,
    headers: &[(&str, &str)],
    body: Vec<u8>,
    pause: Duration,
) {
    let mut head = Response::builder();
    for (name, value) in headers {
        head = match *name {
            ":status" => head.status(*value),
            name => head.header(name, *value),
        };
    }
    let mut stream = respond.send_response(head.body(()).unwrap(), false).unwrap();
    let step = if pause.is_zero() { body.len().max(1) } else { 1 };
    for part in body.chunks(step) {
        let _ = stream.send_data(Cursor::new(part.to_vec()), false);
        sleep(pause).await;
    }
    let _ = stream.send_data(Cursor::default(), true);
}

/// Sends a body slowly.
fn drip(mut respond: SendResponse<Cursor<Vec<u8>>>, body: Vec<u8>) {
    tokio::spawn(async move {
        send(&mut respond, &[MESSAGE], body, Duration::from_millis(10)).await;
    });
}

/// Returns why one query to a server that always does this has no answer.
async fn fault_of(act: impl Fn(&[u8]) -> Act + Send + Sync + 'static) -> Fault {
    let server = Server::start(move |_, query| act(query)).await;
    server.session().await.ask(&query(7)).await.unwrap_err()
}

#[tokio::test]
async fn a_status_other_than_200_is_reported_with_its_retry_after() {
    let status = |status, retry_after| {
        fault_of(move |_| {
            Act::Respond(vec![(":status", status), ("retry-after", retry_after)], Vec::new())
        })
    };
    let http =
        |status, secs: Option<u64>| Fault::Http { status, rest: secs.map(Duration::from_secs) };
    assert_eq!(status("500", "").await, http(500, None));
    assert_eq!(status("429", "17").await, http(429, Some(17)));
    assert_eq!(status("503", "99999999999").await, http(503, Some(u32::MAX.into())));
    assert_eq!(status("204", "soon").await, http(204, None));
    let moved = status("307", "").await;
    assert_eq!(moved.to_string(), "HTTP status 307: redirections are not followed");
}

#[tokio::test]
async fn a_body_that_is_no_dns_message_is_reported() {
    let typed = |media_type| {
        fault_of(move |query| Act::Respond(vec![("content-type", media_type)], answer(query, 300)))
    };
    assert_eq!(typed("text/html; charset=utf-8").await, Fault::MediaType("text/html".into()));
    assert_eq!(typed("").await, Fault::MediaType(String::new()));
    let short = fault_of(|_| Act::Respond(vec![MESSAGE], vec![0; 11])).await;
    assert_eq!(short, Fault::Malformed);
    let other_id =
        fault_of(|query| Act::Respond(vec![MESSAGE], [&[1], &answer(query, 300)[1..]].concat()));
    assert_eq!(other_id.await, Fault::Malformed);
}

#[tokio::test]
async fn the_media_type_is_read_whatever_its_case_and_parameters() {
    let headers = vec![("content-type", "Application/DNS-Message ; x=y")];
    let script = move |_, query: &[u8]| Act::Respond(headers.clone(), answer(query, 300));
    let server = Server::start(script).await;
    assert_answers(&server.session().await.ask(&query(7)).await.unwrap(), 7);
}

#[tokio::test]
async fn an_age_is_taken_from_the_ttl_and_never_more_than_that() {
    for (age, ttl) in [("0", 300), ("299", 1), ("301", 0), ("99999999999", 0), ("-1", 300)] {
        let script = move |_, query: &[u8]| {
            let headers = vec![MESSAGE, ("age", age), ("cache-control", "max-age=300")];
            Act::Respond(headers, answer(query, 300))
        };
        let server = Server::start(script).await;
        let message = server.session().await.ask(&query(7)).await.unwrap();
        assert_eq!(assert_answers(&message, 7), ttl, "Age: {age}");
    }
}

#[tokio::test]
async fn a_body_is_read_up_to_the_length_of_a_message() {
    let body = |len| move |_: usize, _: &[u8]| Act::Respond(vec![MESSAGE], vec![0; len]);
    let longest = Server::start(body(65_535)).await.session().await.ask(&query(0)).await;
    assert_eq!(longest.map(|message| message.len()), Ok(65_535));
    let server = Server::start(move |number, query: &[u8]| match number {
        0..20 => Act::Respond(vec![MESSAGE], vec![0; 200_000]),
        _ => Act::Respond(vec![MESSAGE], answer(query, 300)),
    })
    .await;
    let session = server.session().await;
    for _ in 0..20 {
        assert_eq!(session.ask(&query(7)).await, Err(Fault::Malformed));
    }
    // What was not read has given its room back.
    assert_answers(&session.ask(&query(7)).await.unwrap(), 7);
}

#[tokio::test]
async fn a_slow_body_delays_no_other_query() {
    let server = Server::start(|number, query| match number {
        0 => Act::Drip(answer(query, 300)),
        _ => Act::Respond(vec![MESSAGE], answer(query, 300)),
    })
    .await;
    let session = Arc::new(server.session().await);
    let slow = tokio::spawn({
        let session = Arc::clone(&session);
        async move { session.ask(&query(1)).await }
    });
    sleep(Duration::from_millis(100)).await;
    assert_answers(&session.ask(&query(2)).await.unwrap(), 2);
    assert!(!slow.is_finished());
    assert_answers(&slow.await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn a_reset_request_is_reported_and_the_next_one_answered() {
    let server = Server::start(|number, query| match number {
        0 => Act::Reset(Reason::INTERNAL_ERROR),
        _ => Act::Respond(vec![MESSAGE], answer(query, 300)),
    })
    .await;
    let session = server.session().await;
    assert_eq!(session.ask(&query(1)).await, Err(Fault::Aborted(2)));
    assert_answers(&session.ask(&query(2)).await.unwrap(), 2);
}

#[tokio::test]
async fn a_query_refused_by_goaway_is_sent_over_another_connection() {
    let server = Server::start(|number, query| match number {
        1 => Act::AnswerAndLeave,
        3 => Act::Leave,
        5 => Act::Close,
        7 => Act::Reset(Reason::REFUSED_STREAM),
        _ => Act::Respond(vec![MESSAGE], answer(query, 300)),
    })
    .await;
    let connections = server.connections();
    for id in 0..9 {
        assert_answers(&connections.ask(&query(id)).await.unwrap(), id);
        sleep(Duration::from_millis(20)).await;
    }
    assert!(server.taken() >= 4, "{}", server.taken());
}

#[tokio::test]
async fn a_server_that_wants_to_be_left_alone_is_left_alone() {
    let server = Server::start(|number, query| match number {
        1 => Act::Respond(vec![(":status", "429"), ("retry-after", "1")], Vec::new()),
        _ => Act::Respond(vec![MESSAGE], answer(query, 300)),
    })
    .await;
    let connections = server.connections();
    assert_answers(&connections.ask(&query(0)).await.unwrap(), 0);
    let fault = Fault::Http { status: 429, rest: Some(Duration::from_secs(1)) };
    for id in 1..5 {
        assert_eq!(connections.ask(&query(id)).await, Err(fault.clone()));
        assert_eq!(connections.counts().fault, Some(fault.clone()));
    }
    sleep(Duration::from_secs(1)).await;
    assert_answers(&connections.ask(&query(5)).await.unwrap(), 5);
    assert_eq!((server.requests(), connections.counts().fault), (3, None));
}

#[tokio::test]
async fn the_last_fault_of_a_server_is_reported_until_it_answers() {
    let server = Server::start(|number, query| match number {
        0 => Act::Respond(vec![(":status", "302"), ("location", "https://a.example/")], Vec::new()),
        _ => Act::Respond(vec![MESSAGE], answer(query, 300)),
    })
    .await;
    let connections = server.connections();
    let moved = Fault::Http { status: 302, rest: None };
    assert_eq!(connections.ask(&query(0)).await, Err(moved.clone()));
    assert_eq!(connections.counts().fault, Some(moved));
    assert_answers(&connections.ask(&query(1)).await.unwrap(), 1);
    assert_eq!(connections.counts().fault, None);
}

#[tokio::test]
async fn a_connection_is_left_when_nothing_comes_over_it() {
    let server = Server::start(|number, query| match number {
        0 => Act::Wait,
        _ => Act::Respond(vec![MESSAGE], answer(query, 300)),
    })
    .await;
    let connections = server.connections();
    let asked = timeout(Duration::from_millis(1600), connections.ask(&query(0))).await;
    assert!(asked.is_err());
    assert_answers(&connections.ask(&query(1)).await.unwrap(), 1);
    assert_eq!(server.taken(), 2);
}

#[tokio::test]
async fn a_server_of_http_1_is_not_queried() {
    let identity = Identity::new(SERVER);
    let acceptor = TlsAcceptor::from(Arc::new(identity.server_config(b"http/1.1")));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { acceptor.accept(listener.accept().await.unwrap().0).await });
    let url = Url::new(SERVER, 443, "/dns-query").unwrap();
    let protocol = Protocol::Https { tls: identity.tls(), url };
    let fault = Session::open(&target(address, protocol)).await.unwrap_err();
    assert!(matches!(fault, Fault::Handshake(_)), "{fault}");
}

#[tokio::test]
async fn long_answers_one_after_the_other_are_no_flood() {
    let server = Server::start(|_, query| {
        Act::Respond(vec![MESSAGE], [answer(query, 300), vec![0; 60_000]].concat())
    })
    .await;
    let connections = server.connections();
    for id in 0..50 {
        assert!(connections.ask(&query(id)).await.unwrap().len() > 60_000, "{id}");
    }
    assert_eq!((server.taken(), connections.counts().flooded), (1, 0));
}
