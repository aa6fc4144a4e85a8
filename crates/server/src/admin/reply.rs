//! Replies, and the parameters of the requests that they answer.

use super::reply_body::ReplyBody;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::Value;
use zonda_wire::Name;

/// An answer.
pub type Reply = Response<ReplyBody>;

/// A reply of plain text.
pub fn text(status: StatusCode, body: String) -> Reply {
    let mut reply = Response::new(ReplyBody::whole(body.into()));
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

/// Answers a request about a name with the result of `work`.
pub fn about_name(given: &str, work: impl FnOnce(&Name) -> Value) -> Reply {
    match given.parse::<Name>() {
        Ok(name) if !given.is_empty() => json_reply(&work(&name)),
        _ => text(StatusCode::BAD_REQUEST, "a name is needed, such as www.example.com\n".into()),
    }
}

/// The value of a key in a query string.
pub fn parameter(query: &str, key: &str) -> Option<String> {
    query.split('&').find_map(|pair| decoded(pair.strip_prefix(key)?.strip_prefix('=')?))
}

/// A part of a path or query string without its percent signs (rfc3986#2.1).
pub fn decoded(part: &str) -> Option<String> {
    let mut octets = Vec::with_capacity(part.len());
    let mut pieces = part.split('%');
    octets.extend(pieces.next()?.bytes());
    for piece in pieces {
        octets.push(u8::from_str_radix(piece.get(..2)?, 16).ok()?);
        octets.extend(&piece.as_bytes()[2..]);
    }
    String::from_utf8(octets).ok()
}
