//! Queries to send, ready-made or made when they are sent.
//!
//! The messages of a file are written once, before the run; a run copies them and sets their IDs. A
//! file is read piece by piece, so that it takes no more memory than its messages. Generated ones
//! take none: they are written anew, also when a reply is held to its query.

mod capture;
mod frame;
mod generated;
pub(super) mod input;
mod text;
mod update;
mod zipf;

pub use generated::Names;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use zonda_wire::name::{self, NameError};
use zonda_wire::{Class, Opcode, Type};

use crate::random::scatter;
use frame::Frame;
use generated::GeneratedQueries;

/// What all queries have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// Send an OPT record.
    pub edns: bool,
    /// Ask for signatures and proofs; brings an OPT record along.
    pub dnssec: bool,
    /// EDNS options, code and value; bring an OPT record along.
    pub options: Vec<(u16, Vec<u8>)>,
    /// Whether to set RD, recursion desired, in queries.
    pub recursion: bool,
    /// Operation of the messages: QUERY; NOTIFY of the zones whose names are asked for; or UPDATE,
    /// of which files have other lines.
    pub operation: Opcode,
}

impl Default for Form {
    /// Recursion desired and no OPT record, as dnsperf sends.
    fn default() -> Self {
        Self {
            edns: false,
            dnssec: false,
            options: Vec::new(),
            recursion: true,
            operation: Opcode::QUERY,
        }
    }
}

/// Why there are no queries, or no answers to hold replies to.
#[derive(Debug)]
pub enum QueriesError {
    /// The file cannot be read.
    File(PathBuf, io::Error),
    /// A line is wrong: the file, the line's number from 1, and what is wrong.
    Line(PathBuf, usize, String),
    /// The file is of another format: what it is, and how it is made readable.
    Format(PathBuf, &'static str),
    /// The file holds no query.
    Empty(PathBuf),
    /// The file is a capture with queries in so many TCP packets alone.
    OnlyTcp(PathBuf, u64),
}

impl fmt::Display for QueriesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Line(path, line, what) => write!(f, "{}:{line}: {what}", path.display()),
            Self::Format(path, what) => write!(f, "{}: {what}", path.display()),
            Self::Empty(path) => write!(f, "{}: holds no query", path.display()),
            Self::OnlyTcp(path, count) => write!(
                f,
                "{}: holds no query over UDP; those in its {count} packets to port 53 over TCP \
                 are not read",
                path.display()
            ),
        }
    }
}

impl std::error::Error for QueriesError {}

/// Queries in the order in which they are sent, again from the first after the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Queries(Source);

/// Where queries come from.
#[derive(Clone, Debug, PartialEq)]
enum Source {
    /// A list of messages.
    Listed {
        /// Messages without gaps, their IDs 0.
        octets: Vec<u8>,
        /// End of each message in `octets`; never empty.
        ends: Vec<usize>,
    },
    /// Random names, one for each 32-bit place.
    Generated(GeneratedQueries),
}

impl Queries {
    /// Reads a file of lines with a name and a type, as dnsperf takes them, or a capture of a
    /// network (pcap), or either compressed by gzip; `-` is standard input. A form of updates has
    /// blocks of lines, as dnsperf takes those.
    ///
    /// # Errors
    /// What cannot be read, with file and line.
    pub fn read(path: &Path, form: &Form) -> Result<Self, QueriesError> {
        Self::read_some(path, form, Lines::AllGood).map(|(queries, _)| queries)
    }

    /// Reads a file as [`read`](Self::read) does; lines that are wrong may be left out. Returns
    /// what was left out, too: of lines, and of a capture its TCP packets and an end that was cut
    /// short.
    ///
    /// # Errors
    /// What cannot be read, with file and line.
    pub fn read_some(
        path: &Path,
        form: &Form,
        lines: Lines,
    ) -> Result<(Self, Omissions), QueriesError> {
        let file = input::open(path);
        let file = file.map_err(|error| QueriesError::File(path.to_owned(), error))?;
        Self::gather(file, path, form, lines)
    }

    /// Reads lines as [`read`](Self::read) does.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn from_lines(lines: &str, form: &Form) -> Result<Self, QueriesError> {
        Self::from_reader(lines.as_bytes(), Path::new("queries"), form)
    }

    /// Reads lines as [`read`](Self::read) does; in the queries, resolvers tell networks of so many
    /// clients (rfc7871), one after the other, /24 each, spread over 10.0.0.0/8.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn of_clients(lines: &str, form: &Form, clients: usize) -> Result<Self, QueriesError> {
        /// The number of the option CLIENT-SUBNET.
        const CLIENT_SUBNET: u16 = 8;
        let lines: Vec<&str> = lines.lines().collect();
        let mut all = QueryList::new(form);
        for turn in 0..lines.len().max(clients) {
            let [middle, low, ..] = scatter((turn % clients.max(1)) as u64).to_be_bytes();
            let mut form = form.clone();
            form.options.push((CLIENT_SUBNET, vec![0, 1, 24, 0, 10, middle, low]));
            let line = lines.get(turn % lines.len().max(1)).copied().unwrap_or_default();
            if let Self(Source::Listed { octets, .. }) = Self::from_lines(line, &form)? {
                all.octets.extend_from_slice(&octets);
                all.ends.push(all.octets.len());
            }
        }
        all.finish().ok_or_else(|| QueriesError::Empty("queries".into()))
    }

    /// Reads lines or a capture that come from `path`, already unpacked.
    ///
    /// # Errors
    /// What cannot be read, with file and line.
    pub fn from_reader(
        file: impl io::BufRead,
        path: &Path,
        form: &Form,
    ) -> Result<Self, QueriesError> {
        Self::gather(file, path, form, Lines::AllGood).map(|(queries, _)| queries)
    }

    /// Reads lines or a capture, and notes what was left out.
    fn gather(
        file: impl io::BufRead,
        path: &Path,
        form: &Form,
        lines: Lines,
    ) -> Result<(Self, Omissions), QueriesError> {
        let peeked = input::peek(file, capture::MAGIC_OCTETS);
        let (start, file) = peeked.map_err(|error| QueriesError::File(path.to_owned(), error))?;
        if let Some((_, what)) = FOREIGN.iter().find(|(magic, _)| start.starts_with(magic)) {
            return Err(QueriesError::Format(path.to_owned(), what));
        }
        let (mut gathering, mut left_out) = (QueryList::new(form), Omissions::default());
        if form.operation != Opcode::UPDATE && capture::is_capture(&start) {
            capture::parse(file, path, &mut gathering, &mut left_out)?;
        } else {
            let on_bad = |bad: QueriesError| match lines {
                Lines::AllGood => Err(bad),
                Lines::SkipBad => {
                    left_out.bad_lines += 1;
                    left_out.first_bad.get_or_insert_with(|| bad.to_string());
                    Ok(())
                }
            };
            match form.operation {
                Opcode::UPDATE => {
                    let opt = frame::opt(form);
                    update::parse(file, path, opt.as_ref(), &mut gathering, on_bad)?;
                }
                _ => text::parse(file, path, &mut gathering, on_bad)?,
            }
        }
        let queries = gathering.finish().ok_or_else(|| match left_out.tcp_packets {
            0 => QueriesError::Empty(path.to_owned()),
            count => QueriesError::OnlyTcp(path.to_owned(), count),
        })?;
        Ok((queries, left_out))
    }

    /// Queries for random names and each of `types`, of which there is at least one; the same ones
    /// in the same order with the same seed.
    #[must_use]
    pub fn generated(names: Names, types: Vec<Type>, seed: u64, form: &Form) -> Self {
        Self(Source::Generated(GeneratedQueries::new(names, types, seed, form)))
    }

    /// Whether the messages are dynamic updates.
    #[must_use]
    pub fn are_updates(&self) -> bool {
        match &self.0 {
            Source::Listed { octets, .. } => {
                octets.get(2).is_some_and(|flags| flags >> 3 & 15 == Opcode::UPDATE.0)
            }
            Source::Generated(_) => false,
        }
    }

    /// Returns the number of queries, at least 1.
    #[must_use]
    pub fn count(&self) -> u64 {
        match &self.0 {
            Source::Listed { ends, .. } => ends.len() as u64,
            Source::Generated(_) => 1 << 32,
        }
    }

    /// Returns the query at a place below [`Self::count`], its ID 0; it may be written to
    /// `scratch`.
    #[must_use]
    pub fn message<'q>(&'q self, place: u32, scratch: &'q mut Vec<u8>) -> &'q [u8] {
        match &self.0 {
            Source::Listed { octets, ends } => {
                let place = place as usize;
                let start = place.checked_sub(1).map_or(0, |before| ends[before]);
                &octets[start..ends[place]]
            }
            Source::Generated(generated) => {
                generated.write(place, scratch);
                scratch
            }
        }
    }
}

/// Whether all lines of a file must be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// A wrong line is an error.
    AllGood,
    /// A wrong line is left out, as dnsperf does.
    SkipBad,
}

/// What of a file was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Omissions {
    /// Number of wrong lines.
    pub bad_lines: u64,
    /// First wrong line, with what is wrong.
    pub first_bad: Option<String>,
    /// The packet in which a capture was cut short, from 1: what wrote it was killed.
    pub cut_packet: Option<u64>,
    /// Packets of a capture with octets for port 53 over TCP.
    pub tcp_packets: u64,
}

/// What files of other formats begin with, and how they are made readable.
const FOREIGN: [(&[u8], &str); 4] = [
    (b"\x0a\x0d\x0d\x0a", "a capture in pcapng: convert it by `editcap -F pcap FILE OUT.pcap`"),
    (b"\xfd7zX", "compressed by xz: unpack it by `xz -dc FILE` and read it by `-d -`"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd: unpack it by `zstd -dc FILE` and read it by `-d -`"),
    (b"BZh", "compressed by bzip2: unpack it by `bzip2 -dc FILE` and read it by `-d -`"),
];

/// Queries while they are gathered.
struct QueryList {
    /// Header and OPT record of all queries.
    frame: Frame,
    /// Messages as in [`Queries`].
    octets: Vec<u8>,
    /// Ends as in [`Queries`], but empty at first.
    ends: Vec<usize>,
}

impl QueryList {
    /// Makes an empty list.
    fn new(form: &Form) -> Self {
        Self { frame: Frame::new(form), octets: Vec::new(), ends: Vec::new() }
    }

    /// Adds a question, or nothing when the name is none.
    fn ask(&mut self, name: &str, qtype: Type, qclass: Class) -> Result<(), NameError> {
        let start = self.octets.len();
        self.frame.begin(&mut self.octets);
        if let Err(error) = name::parse_into(name.as_bytes(), &[0], &mut self.octets) {
            self.octets.truncate(start);
            return Err(error);
        }
        self.frame.end(qtype, qclass, &mut self.octets);
        self.ends.push(self.octets.len());
        Ok(())
    }

    /// Adds a message that is whole.
    fn add(&mut self, message: &[u8]) {
        self.octets.extend_from_slice(message);
        self.ends.push(self.octets.len());
    }

    /// Adds a question whose name is in wire form.
    fn ask_wire(&mut self, name: &[u8], qtype: Type, qclass: Class) {
        self.frame.begin(&mut self.octets);
        self.octets.extend_from_slice(name);
        self.frame.end(qtype, qclass, &mut self.octets);
        self.ends.push(self.octets.len());
    }

    /// Returns all of them; nothing if there are none.
    fn finish(self) -> Option<Queries> {
        let Self { octets, ends, .. } = self;
        (!ends.is_empty()).then_some(Queries(Source::Listed { octets, ends }))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::collections::BTreeSet;

    /// The queries for clients of so many networks.
    fn queries(lines: &str, clients: usize) -> Vec<Vec<u8>> {
        let queries = Queries::of_clients(lines, &Form::default(), clients).unwrap();
        let message = |place| queries.message(place, &mut Vec::new()).to_vec();
        (0..queries.count() as u32).map(message).collect()
    }

    #[test]
    fn queries_of_clients_tell_as_many_networks_and_ask_every_line() {
        let option = |query: &Vec<u8>| query[query.len() - 7..].to_vec();
        let of_one_name = queries("a.test A\n", 100);
        let networks: BTreeSet<_> = of_one_name.iter().map(option).collect();
        assert_eq!((of_one_name.len(), networks.len()), (100, 100));
        assert!(networks.iter().all(|it| it.starts_with(&[0, 1, 24, 0, 10])));
        let of_many_names = queries("a.test A\nb.test A\nc.test AAAA\n", 2);
        assert_eq!(of_many_names.len(), 3);
        assert_eq!(option(&of_many_names[0]), option(&of_many_names[2]));
        let error = Queries::of_clients("", &Form::default(), 5).unwrap_err();
        assert!(error.to_string().contains("no query"), "{error}");
    }
}
