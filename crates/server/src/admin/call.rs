//! A request on its way to its answer, and what its client must be allowed.

use crate::control::Control;
use hyper::header::HeaderMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a client must be allowed for a request, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The health of the server: answered over TCP even where no token is configured.
    Open,
    /// All that changes nothing.
    Read,
    /// Changes of the server and its data.
    Write,
}

/// A request on its way to the function that answers it.
pub struct Call<'a> {
    /// The server that is asked.
    pub control: &'a Arc<Control>,
    /// The segments of the path that stand for arguments, decoded.
    pub arguments: Vec<&'a str>,
    /// The query string, as it was sent.
    pub query: &'a str,
    /// The body; empty where the request has none.
    pub body: &'a [u8],
    /// The header fields.
    pub headers: &'a HeaderMap,
    /// Whether the client may know what is wrong with files.
    pub tells_all: bool,
    /// Whether the request came over the Unix socket.
    pub is_over_socket: bool,
    /// Whether the client has closed its connection, so that nothing need be awaited for it.
    pub is_gone: &'a AtomicBool,
}

impl<'a> Call<'a> {
    /// The first argument; a route that asks for one has it.
    pub fn argument(&self) -> &'a str {
        self.arguments.first().copied().unwrap_or_default()
    }

    /// The second argument; a route that asks for one has it.
    pub fn second_argument(&self) -> &'a str {
        self.arguments.get(1).copied().unwrap_or_default()
    }
}
