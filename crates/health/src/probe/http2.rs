//! Requests by HTTP/2, with a connection for each.
//!
//! The connection is driven by the probe itself and ends with it, so that a target that does not
//! close its side holds no task of this one.

use std::future::Future;
use std::io::Cursor;
use std::pin::pin;

use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};

use super::connect;
use crate::check::{HttpCheck, TEXT_BYTES_MAX, Target};
use crate::outcome::{Fault, Step};
use crate::text::Text;

/// Octets that the headers of a response can have.
const HEADERS_BYTES_MAX: u32 = 16 * 1024;
/// Parts of a body that are read: as many as it can have with an octet in each, and as many empty
/// ones, which a target could send without end.
const PARTS_MAX: usize = 2 * TEXT_BYTES_MAX;
/// Octets of a body that a target may send before they are read.
const WINDOW_BYTES: u32 = 64 * 1024;

/// Sends the request of a check and judges the response; returns its status.
///
/// # Errors
/// Why the target is not healthy.
pub async fn ask(
    check: &HttpCheck,
    target: &Target,
    stream: impl AsyncRead + AsyncWrite + Unpin,
) -> Result<u16, Fault> {
    let request = check.http2_request(target.socket_address());
    exchange(stream, request, None, async |response: Response<RecvStream>| {
        let status = response.status().as_u16();
        check.judge_status(status)?;
        find(check.text(), response.into_body()).await?;
        Ok(status)
    })
    .await
}

/// Sends a request, perhaps with a body, and lets `judge` read the response while the connection is
/// driven.
///
/// # Errors
/// Why there is no response, or what `judge` says.
pub async fn exchange<T>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    request: Request<()>,
    body: Option<Vec<u8>>,
    judge: impl AsyncFnOnce(Response<RecvStream>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let (requests, connection) = h2::client::Builder::new()
        .enable_push(false)
        .max_header_list_size(HEADERS_BYTES_MAX)
        .initial_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .handshake(stream)
        .await
        .map_err(fault)?;
    let exchange = async move {
        let response = send(requests, request, body).await?;
        judge(response).await
    };
    drive(connection, exchange).await
}

/// Sends a request; returns the response without its body.
async fn send(
    requests: SendRequest<Cursor<Vec<u8>>>,
    request: Request<()>,
    body: Option<Vec<u8>>,
) -> Result<Response<RecvStream>, Fault> {
    let mut requests = requests.ready().await.map_err(fault)?;
    let is_end = body.is_none();
    let (response, mut stream) = requests.send_request(request, is_end).map_err(fault)?;
    if let Some(body) = body {
        stream.send_data(Cursor::new(body), true).map_err(fault)?;
    }
    response.await.map_err(fault)
}

/// Drives a connection until the exchange over it has ended.
async fn drive<T>(
    connection: impl Future,
    exchange: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let mut exchange = pin!(exchange);
    tokio::select! {
        biased;
        result = &mut exchange => return result,
        _ = connection => {} // the exchange gets the error
    }
    exchange.await
}

/// Reads a body until the text has come, or cannot come any more.
async fn find(text: &[u8], mut body: RecvStream) -> Result<(), Fault> {
    if text.is_empty() {
        return Ok(());
    }
    let mut text = Text::new(text, TEXT_BYTES_MAX);
    for _ in 0..PARTS_MAX {
        let Some(part) = body.data().await else { return Err(Fault::Text) };
        let part = part.map_err(fault)?;
        match text.read(&part) {
            Some(true) => return Ok(()),
            Some(false) => return Err(Fault::Text),
            None => {}
        }
        body.flow_control().release_capacity(part.len()).map_err(fault)?;
    }
    Err(Fault::Protocol("HTTP/2"))
}

/// Returns what an error of HTTP/2 means for the target.
pub fn fault(error: h2::Error) -> Fault {
    if error.is_io() {
        return match error.into_io() {
            Some(error) => connect::fault(&error, Step::Reply),
            None => Fault::Closed(Step::Reply),
        };
    }
    match error.reason() {
        Some(Reason::NO_ERROR | Reason::REFUSED_STREAM | Reason::CANCEL) if error.is_remote() => {
            Fault::Closed(Step::Reply)
        }
        _ => Fault::Protocol("HTTP/2"),
    }
}
