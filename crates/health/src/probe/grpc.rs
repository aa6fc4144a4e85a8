//! Calls of the gRPC health service.

use h2::RecvStream;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, TE};
use http::{Method, Request, Response, Uri};
use tokio::io::{AsyncRead, AsyncWrite};

use super::http2::{exchange, fault};
use crate::check::{GrpcCheck, Target};
use crate::decode::{health_request, health_response};
use crate::outcome::Fault;

/// Path of the call.
const PATH: &str = "/grpc.health.v1.Health/Check";
/// Octets of a response; a serving status takes seven.
const RESPONSE_BYTES_MAX: usize = 1024;
/// Parts of a response that are read, also empty ones.
const PARTS_MAX: usize = 2 * RESPONSE_BYTES_MAX;
/// The status of a call that went well.
const OK: u16 = 0;
/// The status of a call whose status cannot be read.
const UNKNOWN: u16 = 2;
/// The serving status of a healthy service.
const SERVING: u8 = 1;

/// Calls the service.
///
/// # Errors
/// Why the target is not healthy.
pub async fn ask(
    check: &GrpcCheck,
    target: &Target,
    stream: impl AsyncRead + AsyncWrite + Unpin,
) -> Result<(), Fault> {
    let body = health_request(check.service());
    exchange(stream, request(check, target), Some(body), judge).await
}

/// Returns the request without its message.
fn request(check: &GrpcCheck, target: &Target) -> Request<()> {
    let authority = match check.host() {
        Some(host) => host.as_str().to_owned(),
        None => target.socket_address().to_string(),
    };
    let scheme = if check.tls.is_some() { "https" } else { "http" };
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(PATH);
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri.build().expect("all parts are valid on their own");
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(TE, HeaderValue::from_static("trailers"));
    request
}

/// Judges the response: status of HTTP, status of the call, serving status.
async fn judge(response: Response<RecvStream>) -> Result<(), Fault> {
    let (head, mut body) = response.into_parts();
    if head.status != http::StatusCode::OK {
        return Err(Fault::Status(head.status.as_u16()));
    }
    let mut message = Vec::new();
    let mut parts = 0;
    while let Some(part) = body.data().await {
        let part = part.map_err(fault)?;
        parts += 1;
        if parts > PARTS_MAX || message.len() + part.len() > RESPONSE_BYTES_MAX {
            return Err(Fault::Protocol("gRPC"));
        }
        message.extend_from_slice(&part);
        body.flow_control().release_capacity(part.len()).map_err(fault)?;
    }
    let trailers = body.trailers().await.map_err(fault)?;
    // A call without a message has its status in the head.
    let status = trailers.as_ref().and_then(call_status).or_else(|| call_status(&head.headers));
    match status {
        Some(OK) => {}
        Some(status) => return Err(Fault::Grpc(status)),
        None => return Err(Fault::Protocol("gRPC")),
    }
    match health_response(&message) {
        Some(SERVING) => Ok(()),
        Some(status) => Err(Fault::NotServing(status)),
        None => Err(Fault::Protocol("gRPC")),
    }
}

/// Returns the status of the call in headers or trailers.
fn call_status(headers: &HeaderMap) -> Option<u16> {
    let value = headers.get("grpc-status")?;
    Some(value.to_str().ok().and_then(|text| text.parse().ok()).unwrap_or(UNKNOWN))
}
