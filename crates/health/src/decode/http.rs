//! Responses of HTTP/1.1, as far as a check looks at them.
//!
//! The head is parsed by httparse, hyper's parser; here is what lies around it: how long a head may
//! be, which responses are interim, where a body ends. hyper's client itself takes 20 KB for each
//! response that is awaited, so that 4,000 targets that do not answer would take 80 MB.

use http::Method;

use crate::check::{HttpCheck, TEXT_BYTES_MAX};
use crate::outcome::{Fault, Step};
use crate::text::Text;

/// Octets that the head of a response can have.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Headers that a response can have.
const HEADERS_MAX: usize = 100;
/// Octets of the line in front of a chunk.
const CHUNK_LINE_BYTES_MAX: usize = 256;
/// Interim responses in front of the final one: a target that sends nothing else would keep this
/// machine busy until the timeout.
const INTERIM_MAX: usize = 64;
/// What every response begins with.
const BEGINNING: &[u8] = b"HTTP/";
/// The fault of a response that cannot be read.
const MALFORMED: Fault = Fault::Protocol("HTTP/1.1");

/// A response that comes in parts.
#[derive(Debug)]
pub struct HttpResponse<'c> {
    check: &'c HttpCheck,
    /// Octets of the head that have come; empty once it was read.
    head: Vec<u8>,
    /// Number of interim responses.
    interim: usize,
    /// Status and body, once the head was read.
    body: Option<(u16, Body<'c>)>,
}

impl<'c> HttpResponse<'c> {
    /// Begins to read the response to a check's request.
    #[must_use]
    pub fn new(check: &'c HttpCheck) -> Self {
        Self { check, head: Vec::new(), interim: 0, body: None }
    }

    /// Reads the next part; returns the status, or why it is not what the check expects, as soon as
    /// either is known.
    pub fn read(&mut self, part: &[u8]) -> Option<Result<u16, Fault>> {
        if let Some((status, body)) = &mut self.body {
            let status = *status;
            return body.read(part).map(|result| result.map(|()| status));
        }
        // A blank line that spans two parts begins at most two octets in front of the second.
        let mut from = self.head.len().saturating_sub(2);
        self.head.extend_from_slice(part);
        loop {
            let compared = self.head.len().min(BEGINNING.len());
            if self.head[..compared] != BEGINNING[..compared] {
                return Some(Err(MALFORMED));
            }
            let end = blank_line(&self.head[from..]).map(|end| from + end);
            if end.unwrap_or(self.head.len()) > HEAD_BYTES_MAX {
                return Some(Err(MALFORMED));
            }
            let rest = self.head.split_off(end?);
            let head = std::mem::replace(&mut self.head, rest);
            from = 0;
            match parse_head(&head, self.check.method()) {
                None => return Some(Err(MALFORMED)),
                Some((100..=199, _)) if self.interim < INTERIM_MAX => self.interim += 1,
                Some((100..=199, _)) => return Some(Err(MALFORMED)),
                Some((status, framing)) => return self.begin_body(status, framing),
            }
        }
    }

    /// Returns the result of a response that the target has ended here.
    ///
    /// # Errors
    /// Always: a response that needs its end lacks the text.
    pub fn end(&self) -> Result<u16, Fault> {
        match &self.body {
            Some((_, Body { framing: Framing::UntilClose, .. })) => Err(Fault::Text),
            _ => Err(Fault::Closed(Step::Reply)),
        }
    }

    /// Judges the status, and reads what has come of the body behind the head.
    fn begin_body(&mut self, status: u16, framing: Framing) -> Option<Result<u16, Fault>> {
        if let Err(fault) = self.check.judge_status(status) {
            return Some(Err(fault));
        }
        if self.check.text().is_empty() {
            return Some(Ok(status));
        }
        let rest = std::mem::take(&mut self.head);
        let mut body = Body { framing, text: Text::new(self.check.text(), TEXT_BYTES_MAX) };
        let result = body.read(&rest);
        self.body = Some((status, body));
        result.map(|result| result.map(|()| status))
    }
}

/// Returns the number of octets through the first blank line.
fn blank_line(octets: &[u8]) -> Option<usize> {
    let mut ends = (0..octets.len()).filter(|at| octets[*at] == b'\n');
    ends.find_map(|at| match octets[at + 1..] {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

/// Reads a head; returns the status and how the body is framed.
fn parse_head(head: &[u8], method: &Method) -> Option<(u16, Framing)> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    if !response.parse(head).ok()?.is_complete() {
        return None;
    }
    let status = response.code?;
    if method == Method::HEAD || matches!(status, 204 | 304) {
        return Some((status, Framing::Length(0)));
    }
    let values = |name: &'static str| {
        let headers = response.headers.iter().filter(move |it| it.name.eq_ignore_ascii_case(name));
        headers.map(|header| header.value.trim_ascii())
    };
    if let Some(coding) = values("transfer-encoding").next_back() {
        // A body that is not in chunks in the end ends with the connection.
        let last = coding.rsplit(|octet| *octet == b',').next().unwrap_or_default();
        return Some(match last.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            true => (status, Framing::Chunked(Chunk::Size(Vec::new()))),
            false => (status, Framing::UntilClose),
        });
    }
    let mut lengths = values("content-length").map(number);
    let Some(length) = lengths.next() else { return Some((status, Framing::UntilClose)) };
    if lengths.any(|other| other != length) {
        return None;
    }
    Some((status, Framing::Length(length?)))
}

/// Reads a number of digits alone.
fn number(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    if digits.starts_with('+') { None } else { digits.parse().ok() }
}

/// The body of a response, in which a text is searched.
#[derive(Debug)]
struct Body<'c> {
    framing: Framing,
    text: Text<'c>,
}

/// Where a body ends.
#[derive(Debug)]
enum Framing {
    /// Behind so many octets.
    Length(u64),
    /// With the connection.
    UntilClose,
    /// Behind the last chunk.
    Chunked(Chunk),
}

/// What comes next of a body in chunks.
#[derive(Debug)]
enum Chunk {
    /// The line with the size of a chunk; what has come of it.
    Size(Vec<u8>),
    /// So many octets of a chunk.
    Data(u64),
    /// The end of the line behind a chunk.
    DataEnd,
}

impl Body<'_> {
    /// Reads the next part; returns whether the text is there as soon as that is known.
    fn read(&mut self, mut part: &[u8]) -> Option<Result<(), Fault>> {
        match &mut self.framing {
            Framing::UntilClose => return search(&mut self.text, part),
            Framing::Length(left) => {
                let result = search(&mut self.text, take(&mut part, left));
                return result.or((*left == 0).then_some(Err(Fault::Text)));
            }
            Framing::Chunked(_) => {}
        }
        while let Framing::Chunked(chunk) = &mut self.framing
            && !part.is_empty()
        {
            match chunk {
                Chunk::Size(line) => match read_size(line, &mut part) {
                    None => return Some(Err(MALFORMED)),
                    Some(None) => {}
                    Some(Some(0)) => return Some(Err(Fault::Text)),
                    Some(Some(size)) => *chunk = Chunk::Data(size),
                },
                Chunk::Data(left) => {
                    let result = search(&mut self.text, take(&mut part, left));
                    if result.is_some() {
                        return result;
                    }
                    if *left == 0 {
                        *chunk = Chunk::DataEnd;
                    }
                }
                Chunk::DataEnd => {
                    match split_first(&mut part) {
                        Some(b'\r') => {}
                        Some(b'\n') => *chunk = Chunk::Size(Vec::new()),
                        _ => return Some(Err(MALFORMED)),
                    };
                }
            }
        }
        None
    }
}

/// Takes octets off the front, `left` at most, and counts them down.
fn take<'p>(part: &mut &'p [u8], left: &mut u64) -> &'p [u8] {
    let len = usize::try_from(*left).unwrap_or(usize::MAX).min(part.len());
    let (taken, rest) = part.split_at(len);
    *left -= len as u64;
    *part = rest;
    taken
}

/// Takes an octet off the front.
fn split_first(part: &mut &[u8]) -> Option<u8> {
    let (octet, rest) = part.split_first()?;
    *part = rest;
    Some(*octet)
}

/// Looks for the text in the next octets of a body.
fn search(text: &mut Text<'_>, octets: &[u8]) -> Option<Result<(), Fault>> {
    match text.read(octets)? {
        true => Some(Ok(())),
        false => Some(Err(Fault::Text)),
    }
}

/// Reads the line with the size of a chunk; returns the size once the line is whole, and `None`
/// when it is malformed.
fn read_size(line: &mut Vec<u8>, part: &mut &[u8]) -> Option<Option<u64>> {
    let end = part.iter().position(|octet| *octet == b'\n').map(|at| at + 1);
    let (taken, rest) = part.split_at(end.unwrap_or(part.len()));
    *part = rest;
    if line.len() + taken.len() > CHUNK_LINE_BYTES_MAX {
        return None;
    }
    line.extend_from_slice(taken);
    if end.is_none() {
        return Some(None);
    }
    match httparse::parse_chunk_size(line) {
        Ok(httparse::Status::Complete((_, size))) => Some(Some(size)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a response in parts of so many octets, and its end.
    fn read(response: &[u8], method: &str, text: &str, part: usize) -> Result<u16, Fault> {
        let check = HttpCheck::new("/").unwrap().with_method(method).unwrap();
        let check = check.with_text(text).unwrap();
        let mut reader = HttpResponse::new(&check);
        response.chunks(part).find_map(|part| reader.read(part)).unwrap_or_else(|| reader.end())
    }

    #[test]
    fn a_body_ends_where_its_head_says() {
        const CLOSED: Result<u16, Fault> = Err(Fault::Closed(Step::Reply));
        for (head, body, result) in [
            ("Content-Length: 5", "ready", Ok(200)),
            ("Content-Length: 4", "ready", Err(Fault::Text)),
            ("Content-Length: 6", "other", CLOSED),
            ("Content-Length: 0", "", Err(Fault::Text)),
            ("content-length:5\r\nContent-Length: 5", "ready", Ok(200)),
            ("Content-Length: 5\r\nContent-Length: 6", "ready", Err(MALFORMED)),
            ("Content-Length: +5", "ready", Err(MALFORMED)),
            ("Content-Length: 99999999999999999999", "ready", Err(MALFORMED)),
            ("X: y", "all ready", Ok(200)),
            ("X: y", "other", Err(Fault::Text)),
            ("Transfer-Encoding: chunked", "2\r\nre\r\n3;x=y\r\nady\r\n0\r\n\r\n", Ok(200)),
            ("Transfer-Encoding: gzip, Chunked", "5\r\nready\r\n", Ok(200)),
            ("Transfer-Encoding: chunked", "2\r\nre\r\n0\r\n\r\nady", Err(Fault::Text)),
            ("Transfer-Encoding: chunked", "2\r\nre\r\n3\r\nad", CLOSED),
            ("Transfer-Encoding: chunked", "2\r\nready", Err(MALFORMED)),
            ("Transfer-Encoding: chunked", "ready\r\n", Err(MALFORMED)),
            ("Transfer-Encoding: chunked", "fffffffffffffffff\r\n", Err(MALFORMED)),
            ("Transfer-Encoding: chunked, gzip", "ready", Ok(200)),
        ] {
            let response = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}");
            for part in [1, 2, 7, 1000] {
                let told = read(response.as_bytes(), "GET", "ready", part);
                assert_eq!(told, result, "{head} {body:?} in parts of {part}");
            }
        }
    }

    #[test]
    fn responses_that_have_no_body_lack_every_text() {
        for (status, method) in [(204, "GET"), (304, "GET"), (200, "HEAD")] {
            let response = format!("HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\nready");
            assert_eq!(read(response.as_bytes(), method, "ready", 9), Err(Fault::Text));
            assert_eq!(read(response.as_bytes(), method, "", 9), Ok(status));
        }
    }

    #[test]
    fn heads_are_read_across_parts_and_have_a_limit() {
        let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(50);
        let response = format!("{early}HTTP/1.0 404 No\nX: y\n\n");
        for part in [1, 3, 100_000] {
            assert_eq!(read(response.as_bytes(), "GET", "", part), Err(Fault::Status(404)));
        }
        let endless = "HTTP/1.1 100 Continue\r\n\r\n".repeat(INTERIM_MAX + 1);
        assert_eq!(read(endless.as_bytes(), "GET", "", 9), Err(MALFORMED));
        let with = |octets: usize| {
            let value = "x".repeat(octets - "HTTP/1.1 200 OK\r\nX: \r\n\r\n".len());
            format!("HTTP/1.1 200 OK\r\nX: {value}\r\n\r\n")
        };
        for part in [1, 1000, 100_000] {
            assert_eq!(read(with(HEAD_BYTES_MAX).as_bytes(), "GET", "", part), Ok(200));
            let told = read(with(HEAD_BYTES_MAX + 1).as_bytes(), "GET", "", part);
            assert_eq!(told, Err(MALFORMED), "in parts of {part}");
        }
        let many = "X: y\r\n".repeat(HEADERS_MAX + 1);
        let told = read(format!("HTTP/1.1 200 OK\r\n{many}\r\n").as_bytes(), "GET", "", 50);
        assert_eq!(told, Err(MALFORMED));
        assert_eq!(read(b"HTTQ", "GET", "", 1), Err(MALFORMED), "without waiting for a line");
        assert_eq!(read(b"HTTP", "GET", "", 1), Err(Fault::Closed(Step::Reply)));
    }
}
