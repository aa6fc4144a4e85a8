//! Asking a running server over its admin socket.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zonda_netio::local;

/// How long an answer may take; a reload of large zones is the slowest request.
const ANSWER_MAX: Duration = Duration::from_secs(600);

/// An answer of the server.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status, 200 to 299 for success.
    pub status: u16,
    /// The body of the response.
    pub body: String,
}

/// The server could not be asked.
#[derive(Debug)]
pub struct AskError {
    socket: PathBuf,
    error: io::Error,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { socket, error } = self;
        write!(f, "no server answers on {}: {error}", socket.display())
    }
}

impl std::error::Error for AskError {}

/// Sends a request without a body and waits for the answer.
///
/// # Errors
/// When no server answers on the socket.
pub fn ask(socket: &Path, method: &str, path: &str) -> Result<Answer, AskError> {
    ask_within(socket, method, path, ANSWER_MAX)
}

/// Sends a request with a JSON body, and further header fields, and waits for the answer.
///
/// # Errors
/// When no server answers on the socket.
pub fn ask_with(
    socket: &Path,
    (method, path): (&str, &str),
    headers: &[(&str, &str)],
    body: &str,
) -> Result<Answer, AskError> {
    let fields: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
    let rest = format!("{fields}{kind}content-length: {length}\r\n\r\n{body}");
    exchange(socket, &format!("{method} {path}"), &rest, ANSWER_MAX)
}

/// Sends a request, with a limit on how long the server may be silent.
///
/// # Errors
/// As there, and when the time is over.
pub fn ask_within(
    socket: &Path,
    method: &str,
    path: &str,
    silence_max: Duration,
) -> Result<Answer, AskError> {
    exchange(socket, &format!("{method} {path}"), "\r\n", silence_max)
}

/// Sends a request: its method and path, and what follows the first header fields.
fn exchange(
    socket: &Path,
    target: &str,
    rest: &str,
    silence_max: Duration,
) -> Result<Answer, AskError> {
    let exchange = || {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(silence_max))?;
        write!(stream, "{target} HTTP/1.1\r\nhost: zonda\r\nconnection: close\r\n{rest}")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        parse(&answer).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    };
    exchange().map_err(|error| AskError { socket: socket.to_owned(), error })
}

/// Whether a server answers on a socket; `is_foreign_believed`: also one of a user that is neither
/// the present one nor root.
#[must_use]
pub fn answers(socket: &Path, is_foreign_believed: bool) -> bool {
    let stream = UnixStream::connect(socket);
    stream.is_ok_and(|it| is_foreign_believed || local::is_own_or_root(&it).unwrap_or(false))
}

/// A text as a part of a path or query string (rfc3986#2.1).
#[must_use]
pub fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for octet in text.bytes() {
        match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(octet.into());
            }
            _ => encoded.push_str(&format!("%{octet:02X}")),
        }
    }
    encoded
}

/// The status and body of an HTTP answer that ends with its connection.
fn parse(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some(Answer { status, body: body.to_owned() })
}
