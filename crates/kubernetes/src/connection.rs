//! A connection to the API server, with one request.

use crate::decode::Status;
use crate::error::ConnectError;
use crate::settings::Settings;
use http::header::{ACCEPT, AUTHORIZATION, HOST, USER_AGENT};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long a connection may take, with TLS.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long the head of a response may take.
const HEAD_MAX: Duration = Duration::from_secs(30);
/// Octets of the text of a refusal that are read.
const REFUSAL_BYTES_MAX: usize = 4096;

/// The body of a response, as it comes.
pub struct Body {
    incoming: Incoming,
    /// Drives the connection.
    driver: JoinHandle<()>,
}

impl Drop for Body {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Body {
    /// Returns the next octets; none at the end.
    ///
    /// # Errors
    /// When nothing comes in time, or the connection fails.
    pub async fn next(&mut self, limit: Duration) -> Result<Option<Bytes>, ConnectError> {
        loop {
            let frame = timeout(limit, self.incoming.frame()).await;
            match frame.map_err(|_| ConnectError::Timeout("data"))? {
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

/// Sends a request for a path over a connection of its own, and returns the body of the response.
///
/// # Errors
/// When there is no connection, or the API refuses the request.
pub async fn get(settings: &Settings, path: &str) -> Result<Body, ConnectError> {
    let connect = timeout(CONNECT_MAX, connect(settings, path));
    let mut body = connect.await.map_err(|_| ConnectError::Timeout("connection"))??;
    let head = timeout(HEAD_MAX, &mut body.0).await;
    let response = head.map_err(|_| ConnectError::Timeout("response"))?;
    let response = response.map_err(|error| ConnectError::Connection(text_of(&error)))?;
    let status = response.status().as_u16();
    let mut body = Body { incoming: response.into_body(), driver: body.1 };
    match status {
        200 => Ok(body),
        410 => Err(ConnectError::Expired),
        _ => {
            let mut text = Vec::new();
            while let Ok(Some(octets)) = body.next(Duration::from_secs(5)).await {
                text.extend_from_slice(&octets);
                if text.len() > REFUSAL_BYTES_MAX {
                    break;
                }
            }
            let message = serde_json::from_slice::<Status>(&text).map(|status| status.message);
            let message = message.unwrap_or_else(|_| String::from_utf8_lossy(&text).into_owned());
            Err(ConnectError::Refused(status, message.chars().take(300).collect()))
        }
    }
}

/// A response that is awaited, and what drives its connection.
type Sent = (
    std::pin::Pin<Box<dyn Future<Output = hyper::Result<hyper::Response<Incoming>>> + Send>>,
    JoinHandle<()>,
);

/// Connects, and sends the request.
async fn connect(settings: &Settings, path: &str) -> Result<Sent, ConnectError> {
    let failed = |error: std::io::Error| ConnectError::Connection(error.to_string());
    let stream = TcpStream::connect((&*settings.host, settings.port)).await.map_err(failed)?;
    let _ = stream.set_nodelay(true); // a request is one segment anyway
    match &settings.tls {
        None => send(stream, settings, path).await,
        Some((config, name)) => {
            let connector = TlsConnector::from(config.clone());
            let stream = connector.connect(name.clone(), stream).await.map_err(failed)?;
            send(stream, settings, path).await
        }
    }
}

/// Sends the request over a stream.
async fn send(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    settings: &Settings,
    path: &str,
) -> Result<Sent, ConnectError> {
    let failed = |error: hyper::Error| ConnectError::Connection(text_of(&error));
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(failed)?;
    let driver = tokio::spawn(async move {
        let _ = connection.await; // the body has its error
    });
    let host = match settings.host.contains(':') {
        true => format!("[{}]:{}", settings.host, settings.port),
        false => format!("{}:{}", settings.host, settings.port),
    };
    let mut request = hyper::Request::get(format!("{}{path}", settings.path))
        .header(HOST, host)
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, concat!("zonda/", env!("CARGO_PKG_VERSION")));
    if let Some(authorization) = settings.authorization()? {
        request = request.header(AUTHORIZATION, authorization);
    }
    let request = request.body(Empty::<Bytes>::new());
    let request = request.map_err(|error| ConnectError::Connection(error.to_string()))?;
    let response = async move { sender.send_request(request).await };
    Ok((Box::pin(response), driver))
}
