//! A connection to the API server, with one request after the other.

use crate::error::ConnectError;
use crate::format::{self, Format};
use crate::limits::Limits;
use crate::paced::{Pace, PacedStream};
use crate::settings::Settings;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long the text of a refusal may take.
const REFUSAL_MAX: Duration = Duration::from_secs(5);
/// Octets of the text of a refusal that are read.
const REFUSAL_BYTES_MAX: usize = 4096;
/// Octets that are read at once: bounds what a chunk of a list is decoded into.
const READ_BYTES_MAX: usize = 64 << 10;
/// How long a connection is silent before its peer is probed.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// How long between two probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Probes without an answer after which the connection is cut.
const KEEPALIVE_PROBES: u32 = 3;

/// The body of a response, as it comes.
pub struct Body {
    incoming: Incoming,
    /// The form of the objects in it.
    pub format: Format,
    /// The address of this machine that the connection has.
    pub own_address: Option<IpAddr>,
    /// Ends the connection with the body.
    connection: Connection,
}

/// A connection that carries one response at a time.
pub struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    own_address: Option<IpAddr>,
    /// Whether small pieces of the response are read together.
    pace: Pace,
    /// Ends the connection when it is dropped.
    _driver: Driver,
}

/// The task that drives a connection, which ends with it.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Body {
    /// Returns the connection, whose next response can be asked for when the body is at its end.
    pub fn into_connection(self) -> Connection {
        self.connection
    }

    /// Reads small pieces together from now on, which delays those that follow another one.
    pub fn pace(&self) {
        self.connection.pace.set(true);
    }

    /// Returns the next octets; none at the end.
    ///
    /// # Errors
    /// When nothing comes in time, or the connection fails.
    pub async fn next(&mut self, limit: Duration) -> Result<Option<Bytes>, ConnectError> {
        timeout(limit, self.octets()).await.map_err(|_| ConnectError::Timeout("data"))?
    }

    /// Returns the next octets, however long they take; none at the end.
    ///
    /// # Errors
    /// When the connection fails.
    pub async fn octets(&mut self) -> Result<Option<Bytes>, ConnectError> {
        loop {
            match self.incoming.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(ConnectError::Connection(text_of(&error))),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

/// The words of an error, and of those behind it.
fn text_of(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// What is asked of the API.
#[derive(Clone, Copy)]
pub struct Get<'r> {
    /// The path with its parameters.
    pub path: &'r str,
    /// The media types that can be read, the best first.
    pub accepted: &'static str,
}

/// Sends a request over a connection of its own, and returns the body of the response.
///
/// # Errors
/// When there is no connection, or the API refuses the request.
pub async fn get(
    settings: &Settings,
    request: Get<'_>,
    limits: &Limits,
) -> Result<Body, ConnectError> {
    let connect = timeout(limits.connect, connect(settings)).await;
    let connection = connect.map_err(|_| ConnectError::Timeout("connection"))??;
    get_by(connection, settings, request, limits).await
}

/// Sends a request over a connection whose former response is at its end, or over a new
/// one if the server has closed that.
///
/// # Errors
/// When there is no connection, or the API refuses the request.
pub async fn get_next(
    mut connection: Connection,
    settings: &Settings,
    request: Get<'_>,
    limits: &Limits,
) -> Result<Body, ConnectError> {
    let ready = timeout(limits.connect, connection.sender.ready()).await;
    if matches!(ready, Ok(Ok(()))) {
        match get_by(connection, settings, request, limits).await {
            Err(ConnectError::Connection(_)) => {} // it was closed at the same moment
            result => return result,
        }
    }
    get(settings, request, limits).await
}

/// Sends a request over a connection.
async fn get_by(
    mut connection: Connection,
    settings: &Settings,
    request: Get<'_>,
    limits: &Limits,
) -> Result<Body, ConnectError> {
    let request = self::request(settings, request)?;
    let head = timeout(limits.head, connection.sender.send_request(request)).await;
    let response = head.map_err(|_| ConnectError::Timeout("response"))?;
    let response = response.map_err(|error| ConnectError::Connection(text_of(&error)))?;
    let (status, own_address) = (response.status().as_u16(), connection.own_address);
    let media_type = response.headers().get(CONTENT_TYPE).map(|it| it.as_bytes());
    let format = Format::of(media_type.unwrap_or_default());
    let mut body = Body { incoming: response.into_body(), format, own_address, connection };
    match status {
        200 => Ok(body),
        410 => Err(ConnectError::Expired),
        _ => Err(ConnectError::Refused(status, refusal(&mut body).await)),
    }
}

/// Reads why the API refuses a request, as far as it says so in time.
async fn refusal(body: &mut Body) -> String {
    let mut text = Vec::new();
    let read = async {
        while let Ok(Some(octets)) = body.next(REFUSAL_MAX).await {
            let rest = REFUSAL_BYTES_MAX - text.len();
            text.extend(octets.iter().take(rest));
            if text.len() >= REFUSAL_BYTES_MAX {
                break;
            }
        }
    };
    // What has come until then is text enough.
    let _ = timeout(REFUSAL_MAX, read).await;
    format::refusal(body.format, &text)
}

/// Connects to the API server, with TLS if it has it.
async fn connect(settings: &Settings) -> Result<Connection, ConnectError> {
    let failed = |error: std::io::Error| ConnectError::Unreachable(error.to_string());
    let stream = TcpStream::connect((&*settings.host, settings.port)).await.map_err(failed)?;
    let _ = stream.set_nodelay(true); // a request is one segment anyway
    // Without probes a watch of a network that is cut is silent until its time is over.
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    SockRef::from(&stream).set_tcp_keepalive(&keepalive).map_err(failed)?;
    let own_address = stream.local_addr().ok().map(|address| address.ip());
    let pace = Pace::default();
    let stream = PacedStream::new(stream, pace.clone());
    let (sender, driver) = match &settings.tls {
        None => drive(stream).await?,
        Some((config, name)) => {
            let connector = TlsConnector::from(config.clone());
            drive(connector.connect(name.clone(), stream).await.map_err(failed)?).await?
        }
    };
    Ok(Connection { sender, own_address, pace, _driver: driver })
}

/// Speaks HTTP over a stream.
async fn drive(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Result<(SendRequest<Empty<Bytes>>, Driver), ConnectError> {
    let failed = |error: hyper::Error| ConnectError::Connection(text_of(&error));
    let mut builder = http1::Builder::new();
    builder.max_buf_size(READ_BYTES_MAX);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(failed)?;
    let driver = tokio::spawn(async move {
        let _ = connection.await; // the body has its error
    });
    Ok((sender, Driver(driver)))
}

/// Returns a request with its head.
fn request(settings: &Settings, get: Get<'_>) -> Result<Request<Empty<Bytes>>, ConnectError> {
    let host = match settings.host.contains(':') {
        true => format!("[{}]:{}", settings.host, settings.port),
        false => format!("{}:{}", settings.host, settings.port),
    };
    let mut request = Request::get(format!("{}{}", settings.path, get.path))
        .header(HOST, host)
        .header(ACCEPT, get.accepted)
        .header(USER_AGENT, concat!("zonda/", env!("CARGO_PKG_VERSION")));
    if let Some(authorization) = settings.authorization()? {
        request = request.header(AUTHORIZATION, authorization);
    }
    let request = request.body(Empty::<Bytes>::new());
    request.map_err(|error| ConnectError::Connection(error.to_string()))
}
