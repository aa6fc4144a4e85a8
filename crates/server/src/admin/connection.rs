//! Connections to the administrative interface, and the bounds within which they live.
//!
//! A client that takes no answers, or takes many connections, keeps other clients from nothing:
//! each has few connections, and each connection little time. Many clients that send no request, or
//! none after the first, keep an operator from nothing either: where all places are taken, a
//! connection without a request goes, or the one that has been idle longest.

use super::access::{self, Rights};
use super::counters::Counters;
use super::page_sockets::Pages;
use super::pages;
use super::reply::Reply;
use super::{bind_statistics, dispatch};
use crate::control::Control;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep, timeout};
use zonda_config::Network;
use zonda_transport::tcp::admission::{Activity, Admission, Ticket};

/// Connections open at once on each socket; for one more, an idle one is closed, or it is itself.
const CONNECTIONS_MAX: usize = 64;
/// Connections that one client, an IPv4 address or an IPv6 /64, has open at once; more are closed.
const CONNECTIONS_PER_CLIENT: usize = 16;
/// How long a client may take to send a request's header.
const HEADER_MAX: Duration = Duration::from_secs(10);
/// How long a client may take to take anything of an answer.
const WRITE_MAX: Duration = Duration::from_secs(10);
/// How long a connection may last, unless a request takes longer: many requests may share one.
const CONNECTION_MAX: Duration = Duration::from_secs(30);
/// How long a connection may last besides, until its last answer is taken: the slowest request is a
/// reload of many zones, the longest answer a large zone, to a client that reads slowly.
const REQUEST_MAX: Duration = Duration::from_secs(900);

/// A socket that accepts connections of the interface.
pub enum Listener {
    /// A TCP listener, for clients that reach its address.
    Tcp(tokio::net::TcpListener),
    /// A Unix socket, for processes that may open its file.
    Unix(tokio::net::UnixListener),
}

/// The interface that a socket serves, and to which clients.
#[derive(Clone)]
pub enum Interface {
    /// The admin interface, as far as the rights of the socket's clients allow.
    Admin(Rights),
    /// Single pages, to all clients; a reload changes which.
    Pages(Arc<Mutex<Pages>>),
    /// BIND's statistics, to this machine and to some networks.
    BindStatistics {
        /// The networks whose clients may read the page.
        clients: Arc<[Network]>,
        /// Whether only this machine reaches the address.
        is_loopback: bool,
    },
}

impl Interface {
    /// Whether a client may ask anything at all.
    fn is_for(&self, client: Option<IpAddr>) -> bool {
        match (self, client) {
            (Self::BindStatistics { clients, .. }, Some(client)) => {
                client.is_loopback() || clients.iter().any(|network| network.contains(client))
            }
            _ => true,
        }
    }

    /// Answers a request.
    async fn answer(self, request: Request<Incoming>, control: Arc<Control>) -> Reply {
        match self {
            Self::Admin(rights) => dispatch::answer(request, rights, control).await,
            Self::Pages(pages) => {
                let pages = *pages.lock().unwrap_or_else(PoisonError::into_inner);
                pages::answer(pages, request, control).await
            }
            // Exporters elsewhere may know the server by a name; on this machine, only a page of
            // the web needs one.
            Self::BindStatistics { is_loopback: true, .. } if !access::is_host_own(&request) => {
                access::misdirected()
            }
            Self::BindStatistics { .. } => bind_statistics::answer(request, control).await,
        }
    }
}

/// A connection of either kind.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl Listener {
    /// The next connection, and the client's address if it has one.
    async fn accept(&self) -> io::Result<(Box<dyn Stream>, Option<IpAddr>)> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, client) = listener.accept().await?;
                (Box::new(stream), Some(client.ip()))
            }
            Self::Unix(listener) => (Box::new(listener.accept().await?.0), None),
        })
    }
}

/// Places for the connections of a socket.
fn places() -> Arc<Admission> {
    Admission::new(CONNECTIONS_MAX, CONNECTIONS_PER_CLIENT)
}

/// Accepts connections, a bounded number at a time.
pub async fn accept_all(listener: &Listener, interface: Interface, control: Arc<Control>) {
    let places = places();
    loop {
        match listener.accept().await {
            Ok((_, client)) if !interface.is_for(client) => {}
            Ok((stream, client)) => {
                let now = control.clock.now().monotonic_nanos;
                if let Some(ticket) = places.admit(client, now, &control.admin.admission) {
                    tokio::spawn(keep(stream, ticket, interface.clone(), Arc::clone(&control)));
                }
            }
            Err(_) => sleep(Duration::from_millis(50)).await, // out of descriptors
        }
    }
}

/// Serves a connection until it ends or has to make room for another.
async fn keep(stream: impl Stream, ticket: Ticket, interface: Interface, control: Arc<Control>) {
    let answer = |request| async {
        if !ticket.set_busy() {
            pending::<()>().await; // it has to go, and does not begin what it could not end
        }
        interface.clone().answer(request, Arc::clone(&control)).await
    };
    let rest = || {
        // One that was told to go before is about to.
        let _ = ticket.set_waiting(Activity::Idle(control.clock.now().monotonic_nanos));
    };
    tokio::select! {
        () = serve(stream, &control.admin, answer, rest) => {}
        () = ticket.evicted() => {}
    }
}

/// Serves the requests of one connection; calls `rest` when an answer has left, whole.
async fn serve<A: Future<Output = Reply>>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    counters: &Counters,
    answer: impl Fn(Request<Incoming>) -> A,
    rest: impl Fn(),
) {
    // Held while a request is answered, until the body of the reply is taken.
    let work = Arc::new(tokio::sync::Mutex::new(()));
    let is_unsent = Arc::new(AtomicBool::new(false));
    let service = service_fn(|request| async {
        let working = Arc::clone(&work).lock_owned().await;
        is_unsent.store(false, Relaxed);
        let mut reply = answer(request).await;
        reply.body_mut().note_taken(&is_unsent); // what is flushed next is its end
        reply.body_mut().hold_until_taken(working);
        Ok::<_, Infallible>(reply)
    });
    let sent = || {
        if is_unsent.swap(false, Relaxed) {
            rest();
        }
    };
    let stream = PromptStream { stream, stalled: None, has_written: false, sent, counters };
    let mut served = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_MAX)
            .serve_connection(TokioIo::new(stream), service)
    );
    // A client that goes away or sends rubbish is no event.
    if timeout(CONNECTION_MAX, served.as_mut()).await.is_ok() {
        return;
    }
    counters.expired.fetch_add(1, Relaxed);
    served.as_mut().graceful_shutdown(); // no request after the one that is being answered
    let last_answer = async {
        let _ = timeout(REQUEST_MAX, work.lock()).await;
        sleep(WRITE_MAX).await;
    };
    tokio::select! {
        _ = served => {}
        () = last_answer => {}
    }
}

/// A stream that fails when its peer takes nothing for [`WRITE_MAX`].
struct PromptStream<'c, S, F> {
    stream: S,
    /// Something was written since the last flush.
    has_written: bool,
    /// Called when what was written has left.
    sent: F,
    /// Runs while the peer takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    counters: &'c Counters,
}

impl<S: AsyncRead + Unpin, F: Unpin> AsyncRead for PromptStream<'_, S, F> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin, F: Fn() + Unpin> AsyncWrite for PromptStream<'_, S, F> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(context, octets) {
            self.stalled = None;
            self.has_written = true;
            return Poll::Ready(written);
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(WRITE_MAX)));
        ready!(stalled.as_mut().poll(context));
        self.counters.write_timeouts.fetch_add(1, Relaxed);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(context));
        if flushed.is_ok() && std::mem::take(&mut self.has_written) {
            (self.sent)();
        }
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::admin::reply::text;
    use crate::admin::reply_body::ReplyBody;
    use hyper::StatusCode;
    use std::sync::atomic::AtomicU64;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::time::Instant;
    use zonda_transport::tcp::admission::AdmissionCounters;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
    /// What a client may leave in a connection before the server has to wait for it.
    const ROOM: usize = 64;

    /// Serves one end of a connection; every answer takes so long. How long it is served, and what
    /// was counted.
    async fn serve_end(end: DuplexStream, answer_time: Duration) -> (Duration, Counters) {
        let (start, counters) = (Instant::now(), Counters::default());
        let answer = |_| async move {
            sleep(answer_time).await;
            text(StatusCode::OK, "x".repeat(10 * ROOM))
        };
        serve(end, &counters, answer, || ()).await;
        (start.elapsed(), counters)
    }

    #[test]
    fn statistics_are_for_this_machine_and_for_the_networks_that_are_configured() {
        let network = Network { address: "192.0.2.0".parse().unwrap(), prefix: 24 };
        let interface = Interface::BindStatistics { clients: [network].into(), is_loopback: false };
        for (client, expected) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("192.0.2.7", true),
            ("192.0.3.7", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(interface.is_for(client.parse().ok()), expected, "{client}");
        }
    }

    #[test]
    fn one_client_has_its_share_of_places_whatever_its_address_in_an_ipv6_64() {
        let (places, counters) = (places(), AdmissionCounters::default());
        let admit = |client: String| places.admit(client.parse().ok(), 0, &counters);
        let mut held: Vec<_> =
            (0..CONNECTIONS_PER_CLIENT).map(|host| admit(format!("2001:db8::{host:x}"))).collect();
        assert!(held.iter().all(Option::is_some));
        assert!(admit("2001:db8::ffff".to_owned()).is_none());
        assert!(admit("2001:db8:0:1::1".to_owned()).is_some());
        assert!(admit("192.0.2.2".to_owned()).is_some());
        held.pop();
        assert!(admit("2001:db8::ffff".to_owned()).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_no_answer_is_left_after_ten_seconds() {
        let (mut client, server) = duplex(ROOM);
        let served = tokio::spawn(serve_end(server, Duration::ZERO));
        client.write_all(REQUEST).await.unwrap();
        let (lasted, counters) = served.await.unwrap();
        assert_eq!(lasted.as_secs(), WRITE_MAX.as_secs());
        assert_eq!(counters.write_timeouts.load(Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_asks_again_and_again_is_served_for_half_a_minute() {
        let (mut client, server) = duplex(1 << 20);
        let served = tokio::spawn(serve_end(server, Duration::ZERO));
        let mut answer = [0; 4096];
        while client.write_all(REQUEST).await.is_ok() && client.read(&mut answer).await.unwrap() > 0
        {
            sleep(Duration::from_secs(1)).await;
        }
        let (lasted, counters) = served.await.unwrap();
        assert_eq!(lasted.as_secs(), CONNECTION_MAX.as_secs());
        assert_eq!(counters.expired.load(Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reload_that_takes_minutes_is_answered() {
        let (mut client, server) = duplex(1 << 20);
        let served = tokio::spawn(serve_end(server, Duration::from_secs(300)));
        client.write_all(REQUEST).await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(b"xx"));
        assert_eq!(served.await.unwrap().0.as_secs(), 300);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_an_answer_octet_by_octet_is_left() {
        let (mut client, server) = duplex(ROOM);
        let served = tokio::spawn(serve_end(server, Duration::ZERO));
        client.write_all(REQUEST).await.unwrap();
        while matches!(client.read(&mut [0]).await, Ok(1)) {
            sleep(Duration::from_secs(5)).await;
        }
        let (lasted, _) = served.await.unwrap();
        assert_eq!(lasted.as_secs(), (CONNECTION_MAX + WRITE_MAX).as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_gets_the_whole_of_a_long_answer() {
        const SECONDS: usize = 60;
        const EACH_SECOND: usize = 64 << 10;
        let bodies: [fn() -> ReplyBody; 2] = [
            || ReplyBody::whole(vec![b'x'; SECONDS * EACH_SECOND]),
            || ReplyBody::pieces(Box::new((0..SECONDS).map(|_| vec![b'x'; EACH_SECOND]))),
        ];
        for make in bodies {
            let (mut client, server) = duplex(ROOM);
            let served = tokio::spawn(async move {
                let answer = |_| async {
                    let mut reply = text(StatusCode::OK, String::new());
                    *reply.body_mut() = make();
                    reply
                };
                serve(server, &Counters::default(), answer, || ()).await;
            });
            client.write_all(REQUEST).await.unwrap();
            let (start, mut taken) = (Instant::now(), 0);
            let mut some = vec![0; EACH_SECOND];
            while let Ok(len @ 1..) = client.read_exact(&mut some).await {
                taken += len;
                sleep(Duration::from_secs(1)).await;
            }
            assert_eq!(taken, SECONDS * EACH_SECOND, "after {:?}", start.elapsed());
            served.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_rests_once_its_answer_has_left_and_not_while_it_is_written() {
        let (mut client, server) = duplex(ROOM);
        let rests = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&rests);
        let served = tokio::spawn(async move {
            let answer = |_| async { text(StatusCode::OK, "x".repeat(10 * ROOM)) };
            let rest = || _ = counted.fetch_add(1, Relaxed);
            serve(server, &Counters::default(), answer, rest).await;
        });
        client.write_all(REQUEST).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(rests.load(Relaxed), 0, "most of it waits to be read");
        let mut answer = vec![0; 11 * ROOM];
        client.read_exact(&mut answer).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(rests.load(Relaxed), 1);
        drop(client);
        served.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_does_not_rest_between_the_pieces_of_an_answer() {
        let (mut client, server) = duplex(ROOM);
        let rests = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&rests);
        let served = tokio::spawn(async move {
            let answer = |_| async {
                let mut reply = text(StatusCode::OK, String::new());
                let pieces = (0..10).map(|_| vec![b'x'; 10 * ROOM]);
                *reply.body_mut() = ReplyBody::pieces(Box::new(pieces));
                reply
            };
            let rest = || _ = counted.fetch_add(1, Relaxed);
            serve(server, &Counters::default(), answer, rest).await;
        });
        client.write_all(REQUEST).await.unwrap();
        let mut answer = vec![0; 50 * ROOM];
        client.read_exact(&mut answer).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(rests.load(Relaxed), 0, "half of it waits to be read");
        while !answer.ends_with(b"\r\n0\r\n\r\n") {
            answer.push(client.read_u8().await.unwrap());
        }
        sleep(Duration::from_secs(1)).await;
        assert_eq!(rests.load(Relaxed), 1);
        drop(client);
        served.await.unwrap();
    }
}
