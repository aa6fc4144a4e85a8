//! Why a request was not carried out, as programs read it (rfc9457).

use super::reply::{Reply, text};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Map, Value, json};
use zonda_zone::json::JsonProblem;

/// Why a request was not carried out.
pub struct Problem {
    /// The status of the reply.
    pub status: StatusCode,
    /// Text that says what is wrong, and what to do.
    pub detail: String,
    /// Further members of the reply.
    pub members: Vec<(&'static str, Value)>,
}

impl Problem {
    /// A problem without further members.
    pub fn new(status: StatusCode, detail: String) -> Self {
        Self { status, detail, members: Vec::new() }
    }

    /// A request that has no meaning.
    pub fn bad_request(detail: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// A body with a wrong value.
    pub fn body(error: &JsonProblem) -> Self {
        let mut problem = Self::bad_request(error.to_string());
        problem.members.push(("path", json!(&*error.path)));
        problem
    }
}

/// The reply to a request with a problem.
pub fn problem(found: &Problem) -> Reply {
    let mut body = Map::new();
    body.insert("title".to_owned(), json!(found.status.canonical_reason()));
    body.insert("status".to_owned(), json!(found.status.as_u16()));
    body.insert("detail".to_owned(), json!(found.detail));
    let members = found.members.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    body.extend(members);
    let mut reply = text(found.status, format!("{:#}\n", Value::Object(body)));
    let kind = HeaderValue::from_static("application/problem+json");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}
