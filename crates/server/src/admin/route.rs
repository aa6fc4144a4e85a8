//! A request that the interface answers: how it is recognised, and what it is for.

use super::call::{Call, Scope};
use super::reply::Reply;
use hyper::Method;
use serde_json::{Value, json};

/// A request that is answered.
pub struct Route {
    /// The method of the request.
    pub method: Method,
    /// The segments of its path, joined by `/`; one in capitals stands for an argument.
    pub path: &'static str,
    /// The parameters of its query string, as the documentation writes them.
    pub parameters: &'static str,
    /// What a client must be allowed.
    pub scope: Scope,
    /// Whether the request has a body, which is JSON.
    pub has_body: bool,
    /// What the request does, for the documentation.
    pub doc: &'static str,
    /// The commands that send the request, for the documentation.
    pub command: &'static str,
    /// Answers the request.
    pub answer: fn(&Call<'_>) -> Reply,
}

impl Route {
    /// The request as `/v1` lists it.
    pub fn to_json(&self) -> Value {
        json!({
            "method": self.method.as_str(),
            "path": format!("/{}", self.path),
            "parameters": self.parameters,
            "scope": format!("{:?}", self.scope).to_lowercase(),
            "description": self.doc,
            "command": self.command.replace('`', ""),
        })
    }

    /// Whether a path of these segments is the route's.
    pub fn has_path(&self, segments: &[&str]) -> bool {
        let mut given = segments.iter();
        self.path
            .split('/')
            .all(|part| given.next().is_some_and(|segment| is_argument(part) || part == *segment))
            && given.next().is_none()
    }

    /// The segments of a path of the route that stand for arguments.
    pub fn arguments<'s>(&self, segments: &[&'s str]) -> Vec<&'s str> {
        let parts = self.path.split('/').zip(segments);
        parts.filter(|(part, _)| is_argument(part)).map(|(_, &segment)| segment).collect()
    }
}

/// Whether a part of a route's path stands for an argument.
fn is_argument(part: &str) -> bool {
    part.starts_with(|first: char| first.is_ascii_uppercase())
}
