//! From a request to the function that answers it.

use super::access::Rights;
use super::call::Call;
use super::powerdns;
use super::problem::{Problem, problem};
use super::reply::{Reply, decoded, text};
use super::routes::Match;
use crate::control::Control;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Request, StatusCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::timeout;

/// Octets of a request's body at most: it is held in memory, and so is what it changes.
const BODY_OCTETS_MAX: usize = 8 << 20;
/// How long the body of a request may take.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);

/// A client that awaits its answer. With its connection ends what answers the request, and this.
#[derive(Default)]
struct Presence(Arc<AtomicBool>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Answers a request.
pub async fn answer(request: Request<Incoming>, rights: Rights, control: Arc<Control>) -> Reply {
    let segments: Option<Vec<String>> =
        request.uri().path().split('/').skip(1).map(decoded).collect();
    let owned = segments.unwrap_or_default();
    let segments: Vec<&str> = owned.iter().map(String::as_str).collect();
    let is_powerdns = rights.have_powerdns() && powerdns::is_path(&segments);
    let found = Match::of(request.method(), &segments, is_powerdns);
    let refusal = match is_powerdns {
        true => rights.refusal_of_powerdns(&request),
        false => rights.refusal(&request, found.scope(&segments)),
    };
    if let Some(refusal) = refusal {
        return refusal;
    }
    let route = match found {
        Match::Route(route) => route,
        Match::OtherMethods(methods) => return other_method(&methods),
        Match::NoPath => {
            return text(StatusCode::NOT_FOUND, "no such path; see docs/admin.md\n".into());
        }
    };
    let (head, body) = request.into_parts();
    let body = match route.has_body {
        // Clients of PowerDNS send JSON as whatever their program takes for the default.
        true => match read_body(&head.headers, body, !is_powerdns).await {
            Ok(body) => body,
            Err(found) if is_powerdns => return powerdns::problem(&found),
            Err(found) => return problem(&found),
        },
        false => Bytes::new(),
    };
    // Reloads read files, and even a list of zones takes a while when there are a million.
    let presence = Presence::default();
    let is_gone = Arc::clone(&presence.0);
    let work = move || {
        let segments: Vec<&str> = owned.iter().map(String::as_str).collect();
        (route.answer)(&Call {
            control: &control,
            arguments: route.arguments(&segments),
            query: head.uri.query().unwrap_or_default(),
            body: &body,
            headers: &head.headers,
            tells_all: rights.tells_all(),
            is_over_socket: !matches!(rights, Rights::Tcp { .. }),
            is_gone: &is_gone,
        })
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        text(StatusCode::INTERNAL_SERVER_ERROR, "the request failed; see the log\n".into())
    })
}

/// Reads the body of a request, which is JSON, and must say so if `is_strict`.
async fn read_body(headers: &HeaderMap, body: Incoming, is_strict: bool) -> Result<Bytes, Problem> {
    let kind = headers.get(CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    let kind = kind.split(|octet| *octet == b';').next().unwrap_or_default();
    if is_strict && !kind.trim_ascii().eq_ignore_ascii_case(b"application/json") {
        let detail = "the body must be JSON: send it with `Content-Type: application/json`";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail.to_owned()));
    }
    let read = timeout(BODY_TIME_MAX, Limited::new(body, BODY_OCTETS_MAX).collect()).await;
    match read {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let detail = format!("the body has over {BODY_OCTETS_MAX} octets: send it in parts");
            Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail))
        }
        Ok(Err(error)) => Err(Problem::bad_request(format!("the body could not be read: {error}"))),
        Err(_) => {
            let detail = "the body did not come in time".to_owned();
            Err(Problem::new(StatusCode::REQUEST_TIMEOUT, detail))
        }
    }
}

/// A reply to a method that a path does not take; `methods` are those it takes (rfc9110#15.5.6).
fn other_method(methods: &str) -> Reply {
    let why = format!("this path takes another method: {methods}\n");
    let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, why);
    if let Ok(methods) = HeaderValue::from_str(methods) {
        reply.headers_mut().insert(ALLOW, methods);
    }
    reply
}
