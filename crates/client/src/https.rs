//! Queries over HTTPS: many at a time over one HTTP/2 connection (rfc8484).
//!
//! A query is the body of a POST, under id 0 (rfc8484#4.1), and its answer that of a response with
//! status 200. How long an answer has lain in caches of HTTP is taken from its TTLs
//! (rfc8484#5.1); `Cache-Control` is for these caches, and there is none here.
//!
//! Deliberately absent: redirections, since a server that has moved should be corrected in the
//! configuration; cookies; HTTP/1.1 and HTTP/3.

use std::io::Cursor;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::header::{ACCEPT, AGE, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, Request, StatusCode};
use rustls::HandshakeKind;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use zonda_wire::query::HEADER_BYTES;
use zonda_wire::{Response, Type};

use crate::fault::Fault;
use crate::intake::{AwaitedAnswer, Intake, MeteredStream};
use crate::session::{MESSAGE_BYTES_MAX, replace_id};
use crate::target::Url;
use crate::tls::Tls;
use crate::usage::Usage;

/// The media type of messages (rfc8484#6).
const MEDIA_TYPE: &str = "application/dns-message";
/// What TLS calls HTTP/2.
const ALPN: &[u8] = b"h2";
/// How long a connection stays open unused. Servers of HTTP are used to minutes, and close earlier
/// if they like.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Requests at a time until the server has said how many it bears; what is too much for it, it
/// would refuse.
const STREAMS_UNSAID: usize = 10;
/// Octets of bodies under way at a time, in all streams: a few of the largest.
const WINDOW_BYTES: u32 = 1 << 20;
/// Octets of a response's headers.
const HEADERS_BYTES_MAX: u32 = 16 * 1024;
/// Characters of a wrong media type that an error quotes.
const TOLD_CHARS: usize = 60;

/// An HTTP/2 connection.
#[derive(Debug)]
pub struct HttpsSession {
    requests: SendRequest<Cursor<Vec<u8>>>,
    url: Url,
    usage: Arc<Usage>,
    /// Count of received octets.
    intake: Arc<Intake>,
    /// Reads and writes until the connection ends.
    driver: JoinHandle<()>,
    /// Whether TLS has resumed an earlier session.
    is_resumed: bool,
}

impl HttpsSession {
    /// Connects.
    ///
    /// # Errors
    /// Why there is no connection.
    pub async fn open(address: SocketAddr, tls: &Tls, url: &Url) -> Result<Self, Fault> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let intake = Arc::new(Intake::default());
        let connector = TlsConnector::from(Arc::new(tls.config_for(ALPN)));
        let stream = MeteredStream::new(stream, &intake);
        let stream = connector.connect(tls.name().clone(), stream).await?;
        intake.begin();
        let (_, state) = stream.get_ref();
        if state.alpn_protocol() != Some(ALPN) {
            return Err(Fault::Handshake(rustls::Error::NoApplicationProtocol));
        }
        let is_resumed = state.handshake_kind() == Some(HandshakeKind::Resumed);
        let (requests, connection) = h2::client::Builder::new()
            .enable_push(false)
            .initial_max_send_streams(STREAMS_UNSAID)
            .initial_connection_window_size(WINDOW_BYTES)
            .max_header_list_size(HEADERS_BYTES_MAX)
            .handshake(stream)
            .await?;
        let usage = Arc::new(Usage::new());
        let watched = Arc::clone(&usage);
        let driver = tokio::spawn(async move {
            tokio::select! {
                _ = connection => {} // each request gets the error
                () = watched.ends(IDLE_MAX) => {}
            }
        });
        Ok(Self { requests, url: url.clone(), usage, intake, driver, is_resumed })
    }

    /// Sends a query; see [`Session::ask`](crate::Session::ask).
    pub async fn ask(&self, query: &[u8]) -> Result<Vec<u8>, Fault> {
        let (asked, mut asking) = (self.usage.ask()?, self.intake.ask());
        let mut query = query.to_vec();
        let id = replace_id(&mut query, [0; 2])?;
        let answer = self.post(query, &mut asking).await;
        match answer {
            Err(Fault::Closed) => self.usage.leave(),
            _ => asked.answered(),
        }
        let mut answer = answer?;
        match replace_id(&mut answer, id)? {
            [0, 0] => Ok(answer),
            _ => Err(Fault::Malformed),
        }
    }

    /// Posts a query and returns its answer, aged.
    async fn post(&self, query: Vec<u8>, asking: &mut AwaitedAnswer<'_>) -> Result<Vec<u8>, Fault> {
        let request = Request::post(self.url.0.clone())
            .header(ACCEPT, MEDIA_TYPE)
            .header(CONTENT_TYPE, MEDIA_TYPE)
            .header(CONTENT_LENGTH, query.len())
            .body(())
            .expect("all parts are valid on their own");
        let mut requests = self.requests.clone().ready().await?;
        let (response, mut body) = requests.send_request(request, false)?;
        body.send_data(Cursor::new(query), true)?;
        let (head, body) = response.await?.into_parts();
        check_head(head.status, &head.headers)?;
        let mut answer = read_body(body, asking).await?;
        if let Some(age_secs) = number(&head.headers, &AGE) {
            grow_older(&mut answer, age_secs);
        }
        Ok(answer)
    }

    /// Says whether queries are taken; see [`Session::is_open`](crate::Session::is_open).
    pub fn is_open(&self) -> bool {
        !self.driver.is_finished() && self.usage.is_open()
    }

    /// Says whether the server seems dead; see [`Session::is_stalled`](crate::Session::is_stalled).
    pub fn is_stalled(&self) -> bool {
        !self.driver.is_finished() && self.usage.is_stalled()
    }

    /// Counts waiting queries; see [`Session::waiting`](crate::Session::waiting).
    pub fn waiting(&self) -> usize {
        self.usage.waiting()
    }

    /// Says whether the server sent too much; see
    /// [`Session::is_flooded`](crate::Session::is_flooded).
    pub fn is_flooded(&self) -> bool {
        self.intake.is_flooded()
    }

    /// Says whether TLS resumed a session; see [`Session::is_resumed`](crate::Session::is_resumed).
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }
}

/// Whether a response can hold an answer.
fn check_head(status: StatusCode, headers: &HeaderMap) -> Result<(), Fault> {
    if status != StatusCode::OK {
        let rest = number(headers, &RETRY_AFTER).map(|secs| Duration::from_secs(secs.into()));
        return Err(Fault::Http { status: status.as_u16(), rest });
    }
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = media_type.unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case(MEDIA_TYPE) {
        return Ok(());
    }
    Err(Fault::MediaType(essence.chars().take(TOLD_CHARS).collect()))
}

/// Reads a body that is no longer than a message can be.
async fn read_body(mut body: RecvStream, asking: &mut AwaitedAnswer<'_>) -> Result<Vec<u8>, Fault> {
    let mut message = Vec::new();
    while let Some(part) = body.data().await {
        let part = part?;
        asking.answered(message.len() + part.len()); // of use or not
        if message.len() + part.len() > MESSAGE_BYTES_MAX {
            return Err(Fault::Malformed);
        }
        message.extend_from_slice(&part);
        body.flow_control().release_capacity(part.len())?;
    }
    if message.len() < HEADER_BYTES { Err(Fault::Malformed) } else { Ok(message) }
}

/// Returns a header that is a number, such as of seconds; one that is too large is the largest.
fn number(headers: &HeaderMap, name: &HeaderName) -> Option<u32> {
    let number: u64 = headers.get(name)?.to_str().ok()?.trim().parse().ok()?;
    Some(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Takes an age from all TTLs of a message. A malformed message stays as it is: its reader will
/// find out.
fn grow_older(message: &mut [u8], age_secs: u32) {
    let Ok(response) = Response::parse(message) else { return };
    let records = response.records().filter(|record| record.rtype != Type::OPT);
    let ttls: Vec<(usize, u32)> =
        records.map(|record| (record.ttl_at(), record.ttl.saturating_sub(age_secs))).collect();
    for (at, ttl) in ttls {
        message[at..at + 4].copy_from_slice(&ttl.to_be_bytes()); // it was read there
    }
}

impl From<h2::Error> for Fault {
    fn from(error: h2::Error) -> Self {
        if error.is_io() {
            return error.into_io().map_or(Self::Closed, Self::from);
        }
        match error.reason() {
            // The server has not begun with the request, so that it may be asked again.
            Some(Reason::REFUSED_STREAM) => Self::Closed,
            _ if error.is_go_away() && error.is_remote() => Self::Closed,
            Some(reason) if error.is_reset() && error.is_remote() => {
                Self::Aborted(u32::from(reason).into())
            }
            _ => Self::Rules("HTTP/2"),
        }
    }
}
