//! Queries to send, ready-made.
//!
//! Every message is written once, before the run; a run copies it and sets its ID.

mod text;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use zonda_wire::message::{Message, Opt, Question};
use zonda_wire::query::flag;
use zonda_wire::{Class, Name, Type};

/// What all queries have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// Send an OPT record.
    pub edns: bool,
    /// Ask for signatures and proofs; brings an OPT record along.
    pub dnssec: bool,
    /// EDNS options, code and value; bring an OPT record along.
    pub options: Vec<(u16, Vec<u8>)>,
    /// Ask the server to ask others.
    pub recursion: bool,
}

impl Default for Form {
    /// Recursion desired and no OPT record, as dnsperf sends.
    fn default() -> Self {
        Self { edns: false, dnssec: false, options: Vec::new(), recursion: true }
    }
}

/// Why there are no queries.
#[derive(Debug)]
pub enum QueriesError {
    /// The file cannot be read.
    File(PathBuf, io::Error),
    /// A line is wrong: the file, the line's number from 1, and what is wrong.
    Line(PathBuf, usize, String),
    /// The file holds no query.
    Empty(PathBuf),
}

impl fmt::Display for QueriesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Line(path, line, what) => write!(f, "{}:{line}: {what}", path.display()),
            Self::Empty(path) => write!(f, "{}: holds no query", path.display()),
        }
    }
}

impl std::error::Error for QueriesError {}

/// Queries in the order in which they are sent, again from the first after the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queries {
    /// Messages without gaps, their IDs 0.
    octets: Vec<u8>,
    /// Where each message ends in `octets`; never empty.
    ends: Vec<usize>,
}

impl Queries {
    /// Reads a file of lines with a name and a type, as dnsperf takes them; `-` is standard input.
    ///
    /// # Errors
    /// What cannot be read, with file and line.
    pub fn read(path: &Path, form: &Form) -> Result<Self, QueriesError> {
        let octets = match path.as_os_str().as_encoded_bytes() {
            b"-" => io::read_to_string(io::stdin()).map(String::into_bytes),
            _ => std::fs::read(path),
        };
        let octets = octets.map_err(|error| QueriesError::File(path.to_owned(), error))?;
        text::parse(&octets, form, path)
    }

    /// Reads lines as [`read`](Self::read) does.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn from_lines(lines: &str, form: &Form) -> Result<Self, QueriesError> {
        text::parse(lines.as_bytes(), form, Path::new("queries"))
    }

    /// How many there are, at least 1.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The query at a place below [`Self::count`], its ID 0.
    pub fn message(&self, place: usize) -> &[u8] {
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.octets[start..self.ends[place]]
    }
}

/// Queries while they are gathered.
struct Gathering<'f> {
    /// What they have in common.
    form: &'f Form,
    /// As in [`Queries`].
    octets: Vec<u8>,
    /// As in [`Queries`], but empty at first.
    ends: Vec<usize>,
}

impl<'f> Gathering<'f> {
    /// None yet.
    fn new(form: &'f Form) -> Self {
        Self { form, octets: Vec::new(), ends: Vec::new() }
    }

    /// Adds a question.
    fn ask(&mut self, name: Name, qtype: Type) {
        let Form { edns, dnssec, options, recursion } = self.form;
        let message = Message {
            id: 0,
            flags: if *recursion { flag::RD } else { 0 },
            questions: vec![Question { name, qtype, qclass: Class::IN }],
            records: Vec::new(),
            opt: (*edns || *dnssec || !options.is_empty()).then(|| Opt {
                udp_bytes: 4096, // as dnsperf says
                rcode_high: 0,
                version: 0,
                flags: if *dnssec { 0x8000 } else { 0 },
                options: options.clone(),
            }),
        };
        self.octets.extend_from_slice(&message.to_wire());
        self.ends.push(self.octets.len());
    }

    /// All of them; nothing if there are none.
    fn finish(self) -> Option<Queries> {
        (!self.ends.is_empty()).then_some(Queries { octets: self.octets, ends: self.ends })
    }
}
