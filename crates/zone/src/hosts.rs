//! Hosts files: addresses and their names, a line each (hosts(5)).
//!
//! ```text
//! 192.0.2.7  printer.example.com printer   # a comment
//! ```
//! Each name gets the address, and the first name of an address that it is looked up by in reverse.
//! What lies outside the zone is left out. Reading goes on behind an error.
//!
//! Deliberately absent: names completed by a search domain, and other formats of block lists.

use crate::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
use crate::disk::{Unreadable, open};
use crate::file::{BYTE_ORDER_MARK, Snippet};
use crate::records::{Record, Records, TooManyRecords};
use std::collections::HashSet;
use std::fmt;
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use zonda_wire::{Name, NameError, Type, name};

/// TTL of all records unless another is wished, seconds: short, because no serial is raised when
/// the file changes.
const TTL_SECS: u32 = 60;
/// The largest file that is read, octets: ten times the largest block lists.
const FILE_BYTES_MAX: u64 = 128 << 20;

/// What is made of the lines of a hosts file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The TTL of the records but SOA, seconds.
    pub ttl_secs: u32,
    /// Whether the addresses have names (PTR).
    pub has_reverse: bool,
}

impl Default for Terms {
    /// A minute, and names of addresses.
    fn default() -> Self {
        Self { ttl_secs: TTL_SECS, has_reverse: true }
    }
}

/// What is wrong with a hosts file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostsProblem {
    /// The file cannot be read.
    Unreadable(Unreadable),
    /// The file is longer than is read.
    TooLong,
    /// A line does not begin with an address.
    Address,
    /// A line has an address and no name.
    NoName,
    /// What follows the address is not a name.
    Name(Snippet, NameError),
    /// More records than can be stored.
    TooManyRecords,
}

impl fmt::Display for HostsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => why.fmt(f),
            Self::TooLong => write!(f, "the file has over {} MiB", FILE_BYTES_MAX >> 20),
            Self::Address => {
                f.write_str("expected an IP address: write one, or # before a comment")
            }
            Self::NoName => f.write_str("the address has no name: write one behind it"),
            Self::Name(word, error) => write!(f, "{word} is not a name: {error}"),
            Self::TooManyRecords => f.write_str("the file has more records than can be stored"),
        }
    }
}

/// Reads the names of a file that lie in the zone of `apex`.
///
/// The records, with an SOA record, are all that could be read; when the diagnostics hold an error,
/// some are missing.
#[must_use]
pub fn read(path: &Path, apex: &Name, terms: Terms) -> (Records, Diagnostics) {
    let mut text = Vec::new();
    let problem = match open(path) {
        Err(why) => Some(HostsProblem::Unreadable(why)),
        Ok((_, len)) if len > FILE_BYTES_MAX => Some(HostsProblem::TooLong),
        Ok((file, _)) => {
            let read = file.take(FILE_BYTES_MAX).read_to_end(&mut text);
            read.err().map(|error| HostsProblem::Unreadable(error.into()))
        }
    };
    let (records, mut diagnostics) = read_text(&text, path, apex, terms);
    if let Some(problem) = problem {
        let place = Place { file: path.into(), line: 0, column: 0 };
        diagnostics.push(error(place, problem));
    }
    (records, diagnostics)
}

/// Reads a text that messages call `name`.
#[must_use]
pub fn read_text(text: &[u8], name: &Path, apex: &Name, terms: Terms) -> (Records, Diagnostics) {
    let mut reader = Reader {
        apex,
        terms,
        place: Place { file: Arc::from(name), line: 0, column: 0 },
        records: Records::with_capacity(text.len()),
        named: HashSet::new(),
        diagnostics: Diagnostics::default(),
    };
    reader.records.begin_file(name);
    if push_soa(apex, &mut reader.records).is_err() {
        reader.report(HostsProblem::TooManyRecords);
    }
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    for line in text.split(|octet| *octet == b'\n') {
        reader.place.line = reader.place.line.saturating_add(1);
        if let Err(problem) = reader.line(line) {
            reader.report(problem);
        }
    }
    (reader.records, reader.diagnostics)
}

/// Adds the SOA record that a zone needs whose data come from no zone file. Its times are only
/// shown: nothing is transferred.
///
/// # Errors
/// When there is no room.
pub fn push_soa(apex: &Name, records: &mut Records) -> Result<(), TooManyRecords> {
    /// `localhost. nobody.invalid.`, serial, refresh, retry, expire, negative TTL.
    const RDATA: &[u8] = b"\x09localhost\0\x06nobody\x07invalid\0\
        \0\0\0\x01\0\0\x0e\x10\0\0\x04\xb0\0\x09\x3a\x80\0\0\0\x3c";
    let soa = Record { owner: apex.as_wire(), rtype: Type::SOA, ttl: TTL_SECS, rdata: RDATA };
    records.push(soa, 0)
}

/// The state of reading a hosts file.
struct Reader<'a> {
    apex: &'a Name,
    terms: Terms,
    /// The word that is looked at.
    place: Place,
    records: Records,
    /// Addresses that have a name in reverse.
    named: HashSet<IpAddr>,
    diagnostics: Diagnostics,
}

impl Reader<'_> {
    /// Reads a line.
    fn line(&mut self, line: &[u8]) -> Result<(), HostsProblem> {
        let text = line.split(|octet| *octet == b'#').next().unwrap_or_default();
        let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let mut words = words.map(|word| (column_of(line, word), word));
        let Some((column, word)) = words.next() else { return Ok(()) };
        self.place.column = column;
        let Some(address) = address(word) else {
            return Err(HostsProblem::Address);
        };
        let Some(address) = address else { return Ok(()) };
        let mut is_first = true;
        for (column, word) in words {
            self.place.column = column;
            let owner = Name::parse(word, &[0])
                .map_err(|error| HostsProblem::Name(Snippet::new(word), error))?;
            self.push_address(&owner, address)?;
            if is_first && self.terms.has_reverse && self.named.insert(address) {
                self.push(&reverse_name(address), Type::PTR, owner.as_wire())?;
            }
            is_first = false;
        }
        if is_first { Err(HostsProblem::NoName) } else { Ok(()) }
    }

    /// Adds an address of a name.
    fn push_address(&mut self, owner: &Name, address: IpAddr) -> Result<(), HostsProblem> {
        match address {
            IpAddr::V4(v4) => self.push(owner, Type::A, &v4.octets()),
            IpAddr::V6(v6) => self.push(owner, Type::AAAA, &v6.octets()),
        }
    }

    /// Adds a record, if it lies in the zone.
    fn push(&mut self, owner: &Name, rtype: Type, rdata: &[u8]) -> Result<(), HostsProblem> {
        let owner = owner.as_wire();
        if !name::is_at_or_below(owner, self.apex.as_wire()) {
            return Ok(());
        }
        let record = Record { owner, rtype, ttl: self.terms.ttl_secs, rdata };
        let pushed = self.records.push(record, self.place.line);
        pushed.map_err(|TooManyRecords| HostsProblem::TooManyRecords)
    }

    /// Reports what is wrong with the present word.
    fn report(&mut self, problem: HostsProblem) {
        self.diagnostics.push(error(self.place.clone(), problem));
    }
}

/// The octet of a line at which a word of it begins, from 1 on.
fn column_of(line: &[u8], word: &[u8]) -> u32 {
    let octets = word.as_ptr().addr().saturating_sub(line.as_ptr().addr());
    u32::try_from(octets).unwrap_or(u32::MAX).saturating_add(1)
}

/// The address that a word is. One with a zone, such as `fe80::1%eth0`, means nothing on another
/// host: its line gives no name, and is no error.
fn address(word: &[u8]) -> Option<Option<IpAddr>> {
    let text = std::str::from_utf8(word).ok()?;
    match text.split_once('%') {
        Some((address, _)) => address.parse::<IpAddr>().ok().map(|_| None),
        None => text.parse().ok().map(Some),
    }
}

/// The name under which the name of an address is looked up (rfc1035#3.5, rfc3596#2.5).
fn reverse_name(address: IpAddr) -> Name {
    let text = match address {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(v6) => {
            let nibbles = v6.octets().into_iter().rev().flat_map(|it| [it & 15, it >> 4]);
            nibbles.map(|nibble| format!("{nibble:x}.")).collect::<String>() + "ip6.arpa"
        }
    };
    text.parse().expect("labels of digits, shorter than a name may be")
}

/// An error.
fn error(place: Place, problem: HostsProblem) -> Diagnostic {
    Diagnostic { severity: Severity::Error, place, record: None, problem: problem.into() }
}
