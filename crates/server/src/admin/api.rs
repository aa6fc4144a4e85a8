//! Requests and their answers.

use super::access::Rights;
use super::metrics;
use super::problem::{Problem, problem};
use super::routes::{Call, Match};
use crate::control::Control;
use crate::query_log::Rfc3339;
use crate::zone_set::Outcome;
use crate::zone_set_view::KnownZone;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue, IF_MATCH};
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::timeout;
use zonda_wire::Name;

/// Zones in one page of `/v1/zones`, unless the request wants fewer or more.
const PAGE: usize = 1000;
/// Most zones in one page.
const PAGE_MAX: usize = 100_000;

/// Octets of a request's body at most: it is held in memory, and so is what it changes.
const BODY_OCTETS_MAX: usize = 8 << 20;
/// How long the body of a request may take.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);

/// An answer.
pub type Reply = Response<Full<Bytes>>;

/// Answers a request.
pub async fn answer(request: Request<Incoming>, rights: Rights, control: Arc<Control>) -> Reply {
    let segments: Option<Vec<String>> =
        request.uri().path().split('/').skip(1).map(decoded).collect();
    let owned = segments.unwrap_or_default();
    let segments: Vec<&str> = owned.iter().map(String::as_str).collect();
    let found = Match::of(request.method(), &segments);
    if let Some(refusal) = rights.refusal(&request, found.scope(&segments)) {
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
        true => match read_body(&head.headers, body).await {
            Ok(body) => body,
            Err(found) => return problem(&found),
        },
        false => Bytes::new(),
    };
    // Reloads read files, and even a list of zones takes a while when there are a million.
    let work = move || {
        let segments: Vec<&str> = owned.iter().map(String::as_str).collect();
        (route.answer)(&Call {
            control: &control,
            arguments: route.arguments(&segments),
            query: head.uri.query().unwrap_or_default(),
            body: &body,
            if_match: head.headers.get(IF_MATCH).and_then(|value| value.to_str().ok()),
            tells_all: rights.tells_all(),
        })
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
        text(StatusCode::INTERNAL_SERVER_ERROR, "the request failed; see the log\n".into())
    })
}

/// Reads the body of a request, which is JSON.
async fn read_body(headers: &HeaderMap, body: Incoming) -> Result<Bytes, Problem> {
    let kind = headers.get(CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
    let kind = kind.split(|octet| *octet == b';').next().unwrap_or_default();
    if !kind.trim_ascii().eq_ignore_ascii_case(b"application/json") {
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

/// The value of a key in a query string.
pub fn parameter(query: &str, key: &str) -> Option<String> {
    query.split('&').find_map(|pair| decoded(pair.strip_prefix(key)?.strip_prefix('=')?))
}

/// A part of a path or query string without its percent signs (rfc3986#2.1).
fn decoded(part: &str) -> Option<String> {
    let mut octets = Vec::with_capacity(part.len());
    let mut pieces = part.split('%');
    octets.extend(pieces.next()?.bytes());
    for piece in pieces {
        octets.push(u8::from_str_radix(piece.get(..2)?, 16).ok()?);
        octets.extend(&piece.as_bytes()[2..]);
    }
    String::from_utf8(octets).ok()
}

/// A reply that says that the process answers.
pub fn health() -> Reply {
    text(StatusCode::OK, "ok\n".into())
}

/// The version of the server.
pub fn version() -> Reply {
    json_reply(&json!({ "version": crate::VERSION }))
}

/// The metrics for Prometheus.
pub fn metrics_page(control: &Control) -> Reply {
    let mut reply = text(StatusCode::OK, metrics::page(control));
    let version = "text/plain; version=0.0.4; charset=utf-8";
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(version));
    reply
}

/// Ready means that every zone is served and every thread does its work; otherwise the reasons, a
/// line each. What is wrong with a file is told only if `tells_all`.
pub fn ready(control: &Control, tells_all: bool) -> Reply {
    let state = control.state();
    let unserved = state.zone_set().zones().filter(|zone| zone.data().is_none());
    let zones = unserved.filter_map(|zone| {
        let (apex, error) = (&zone.entry.apex, zone.error.as_ref()?);
        Some(match tells_all {
            true => format!("zone {apex} is not served: {error}\n"),
            false => format!("zone {apex} is not served: `zonda zone show {apex}` tells why\n"),
        })
    });
    let failures = state.zone_set().failures().filter(|failure| !failure.is_served);
    let failures = failures.map(|failure| match tells_all {
        true => format!("{}\n", failure.error),
        false => "a file of zones cannot be read: `zonda status` tells which\n".to_owned(),
    });
    let down = control.watchdog.down();
    let threads = down.iter().map(|name| format!("thread {name} is down; see the log\n"));
    match threads.chain(zones).chain(failures).take(PAGE).collect::<String>() {
        reasons if reasons.is_empty() => text(StatusCode::OK, "ready\n".into()),
        reasons => text(StatusCode::SERVICE_UNAVAILABLE, reasons),
    }
}

/// What the server is and how it is.
pub fn status(control: &Control) -> Value {
    let state = control.state();
    let zone_set = state.zone_set();
    let unserved = zone_set.zones().filter(|zone| zone.data().is_none()).count();
    let failed = zone_set.zones().filter(|zone| zone.error.is_some()).count();
    let history = &state.history;
    let failures = zone_set.failures().map(|failure| failure.error.to_string());
    let down = control.watchdog.down();
    let threads = down.iter().map(|name| format!("thread {name} is down; see the log"));
    let journal = control.state().journal.failure.clone();
    let problems: Vec<String> = history
        .config_error
        .iter()
        .cloned()
        .chain(threads)
        .chain(failures)
        .chain(journal)
        .collect();
    json!({
        "version": crate::VERSION,
        "pid": std::process::id(),
        "uptime_seconds": control.started.elapsed().as_secs(),
        "listeners": control.addresses().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "workers": control.udp.len(),
        "zones": zone_set.zone_count(),
        "zones_not_served": unserved,
        "zones_with_errors": failed,
        "problems": problems,
        "zones_not_flushed": state.journal.sizes.map_or(0, |sizes| sizes.unreleased_zones),
        "tcp_connections": control.tcp.open_connections(),
        "reloads": history.reloads,
        "failed_reloads": history.failed_reloads,
        "last_reload": history.last.map(time),
    })
}

/// A page of the list of zones, in the order of their names.
pub fn zones(query: &str, control: &Control) -> Reply {
    let limit = parameter(query, "limit").map(|text| text.parse::<usize>());
    let Ok(limit) = limit.unwrap_or(Ok(PAGE)) else {
        return text(StatusCode::BAD_REQUEST, "limit must be a number\n".into());
    };
    let after = parameter(query, "after").map(|text| text.parse::<Name>());
    let Ok(after) = after.transpose() else {
        return text(StatusCode::BAD_REQUEST, "after must be the name of a zone\n".into());
    };
    let after = after.map(|name| name.to_lowercase());
    let state = control.state();
    let order = |a: &Name, b: &Name| zonda_wire::name::canonical_cmp(a.as_wire(), b.as_wire());
    let by_name = |a: &&KnownZone, b: &&KnownZone| order(&a.entry.apex, &b.entry.apex);
    let is_behind =
        |zone: &&KnownZone| after.as_ref().is_none_or(|it| order(&zone.entry.apex, it).is_gt());
    let mut zones: Vec<_> = state.zone_set().zones().filter(is_behind).collect();
    let limit = limit.min(PAGE_MAX);
    if limit < zones.len() {
        zones.select_nth_unstable_by(limit, by_name);
        zones.truncate(limit);
    }
    zones.sort_unstable_by(by_name);
    let page: Vec<_> = zones.into_iter().map(|zone| describe(zone, control)).collect();
    json_reply(&json!({ "total": state.zone_set().zone_count(), "zones": page }))
}

/// One zone by its name.
pub fn zone(name: &str, control: &Control) -> Reply {
    let Ok(name) = name.parse::<Name>() else {
        return text(StatusCode::BAD_REQUEST, "not the name of a zone\n".into());
    };
    match control.state().zone_set().zone(&name) {
        Some(zone) => json_reply(&describe(zone, control)),
        None => text(StatusCode::NOT_FOUND, format!("zone {name} is not served here\n")),
    }
}

/// A zone as `/v1/zones` shows it.
fn describe(zone: &KnownZone, control: &Control) -> Value {
    let at = |secs| time(UNIX_EPOCH + Duration::from_secs(secs));
    let store = control.stores().get(&zone.entry.apex).map(|following| following.to_json(at));
    json!({
        "name": zone.entry.apex.to_string(),
        "file": zone.path(),
        "served": zone.data().is_some(),
        "serial": zone.data().map(|data| data.serial()),
        "records": zone.records,
        "memory_bytes": zone.data().map(|data| data.bytes()),
        "loaded": zone.loaded.map(time),
        "error": zone.error.as_ref().map(ToString::to_string),
        "store": store,
    })
}

/// What is to be told of, or done with, a name.
pub fn about_name(given: &str, work: impl FnOnce(&Name) -> Value) -> Reply {
    match given.parse::<Name>() {
        Ok(name) if !given.is_empty() => json_reply(&work(&name)),
        _ => text(StatusCode::BAD_REQUEST, "a name is needed, such as www.example.com\n".into()),
    }
}

/// Reloads all that changed, or one zone.
pub fn reload(query: &str, control: &Control) -> Reply {
    let Some(name) = parameter(query, "zone") else {
        return match control.reload() {
            Ok(outcome) => outcome_reply(&outcome),
            Err(error) => text(StatusCode::UNPROCESSABLE_ENTITY, format!("{error}\n")),
        };
    };
    match name.parse::<Name>() {
        Ok(name) if control.state().zone_set().zone(&name).is_some() => {
            match control.reload_zone(&name) {
                Ok(outcome) => outcome_reply(&outcome),
                Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
            }
        }
        Ok(name) => text(StatusCode::NOT_FOUND, format!("zone {name} is not served here\n")),
        Err(error) => text(StatusCode::BAD_REQUEST, format!("{name}: {error}\n")),
    }
}

/// What a reload did; a failure of any zone is a failure.
fn outcome_reply(outcome: &Outcome) -> Reply {
    let names = |names: &[Name]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut reply = json_reply(&json!({
        "loaded": names(&outcome.loaded),
        "removed": names(&outcome.removed),
        "failed": outcome.failed,
    }));
    if !outcome.failed.is_empty() {
        *reply.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    }
    reply
}

/// A moment as text.
fn time(moment: SystemTime) -> String {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    Rfc3339(u32::try_from(since.as_secs()).unwrap_or(u32::MAX)).to_string()
}

/// A reply of plain text.
pub fn text(status: StatusCode, body: String) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    *reply.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

/// A reply of JSON.
pub fn json_reply(value: &Value) -> Reply {
    let mut reply = text(StatusCode::OK, format!("{value:#}\n"));
    let kind = HeaderValue::from_static("application/json");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}
