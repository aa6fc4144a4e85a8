//! A connection to a Redis server, in its protocol RESP2.
//!
//! Small enough to be written here: the crate `redis` would bring some thirty more crates, most of
//! them to read a URL.

use crate::limit::{READ_TIME_MAX, too_large};
use std::fmt;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How long a connection may take to come up.
const CONNECT: Duration = Duration::from_secs(3);
/// How long a reply may take.
const REPLY: Duration = Duration::from_secs(10);
/// Octets of the longest text; a set of records has at most a few hundred thousand.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// Octets of the longest line.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// How deep lists may lie in lists.
const DEPTH_MAX: usize = 4;
/// Octets that a server may send until a password is accepted and a database selected.
const GREETING_MAX: u64 = 64 << 10;
/// Where a server listens that says nothing else.
const PORT: u16 = 6379;

/// Address of a server, and the user's credentials.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    host: String,
    port: u16,
    user: Option<String>,
    password: Option<String>,
    /// The number of the database.
    pub database: u32,
}

impl fmt::Display for Address {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl FromStr for Address {
    type Err = String;

    /// Reads a URL: `redis://[[user]:password@]host[:port][/database]`.
    fn from_str(url: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("redis://…: {why}"); // the URL may hold a password
        let rest = url
            .strip_prefix("redis://")
            .ok_or_else(|| wrong("it does not begin with `redis://`"))?;
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let database = match database {
            "" => 0,
            number => number.parse().map_err(|_| wrong("the database is not a number"))?,
        };
        let (credentials, server) = match authority.rsplit_once('@') {
            Some((credentials, server)) => (Some(credentials), server),
            None => (None, authority),
        };
        let decoded = |text: &str| {
            decoded(text).ok_or_else(|| wrong("a `%` is not followed by two digits of a character"))
        };
        let (mut user, mut password) = (None, None);
        if let Some(credentials) = credentials {
            let (name, secret) = credentials.split_once(':').unwrap_or(("", credentials));
            user = (!name.is_empty()).then(|| decoded(name)).transpose()?;
            password = Some(decoded(secret)?);
        }
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong("the port is not a number"))?)
            }
            _ => (server, PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(wrong("the host is missing"));
        }
        Ok(Self { host, port, user, password, database })
    }
}

/// Text with its `%xx` put back.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut octets = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        octets.push(u8::from_str_radix(digits, 16).ok()?);
        octets.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(octets).ok()
}

/// What a server says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// A text, or a status.
    Text(Vec<u8>),
    /// A number: the reply `:1`.
    Number(i64),
    /// There is no such thing.
    Nothing,
    /// A list of replies.
    List(Vec<Reply>),
    /// What went wrong.
    Failure(String),
}

impl Reply {
    /// As text; what is none is empty.
    pub fn text(&self) -> String {
        match self {
            Self::Text(octets) => String::from_utf8_lossy(octets).into_owned(),
            Self::Number(number) => number.to_string(),
            _ => String::new(),
        }
    }

    /// The error that it is where it makes no sense.
    pub fn unexpected(&self) -> io::Error {
        match self {
            Self::Failure(why) => io::Error::other(why.clone()),
            _ => io::Error::new(ErrorKind::InvalidData, "an unexpected reply"),
        }
    }
}

/// A stream of which so much is read at most, and for so long.
struct LimitedStream {
    stream: TcpStream,
    /// Octets that may be read at a time.
    max: u64,
    /// How many of them may still be read.
    left: u64,
    /// When all must have been read.
    deadline: Instant,
}

impl LimitedStream {
    /// Allows so many octets to be read from now on.
    fn allow(&mut self, max: u64) {
        (self.max, self.left, self.deadline) = (max, max, Instant::now() + READ_TIME_MAX);
    }
}

impl Read for LimitedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::new(ErrorKind::QuotaExceeded, too_large(self.max)));
        }
        if Instant::now() >= self.deadline {
            let secs = READ_TIME_MAX.as_secs();
            let why = format!("the records were not read within {secs} seconds");
            return Err(io::Error::new(ErrorKind::QuotaExceeded, why));
        }
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.stream.read(&mut buffer[..wanted])?;
        self.left -= count as u64;
        Ok(count)
    }
}

/// A connection to the server.
pub(super) struct Connection {
    input: BufReader<LimitedStream>,
    output: BufWriter<TcpStream>,
}

impl Connection {
    /// Connects and authenticates.
    pub fn open(address: &Address) -> io::Result<Self> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the host has no address");
        for candidate in (address.host.as_str(), address.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&candidate, CONNECT) {
                Ok(stream) => return Self::greet(stream, address),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Authenticates and selects the database.
    fn greet(stream: TcpStream, address: &Address) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY))?;
        stream.set_write_timeout(Some(REPLY))?;
        let output = BufWriter::new(stream.try_clone()?);
        let deadline = Instant::now() + READ_TIME_MAX;
        let stream = LimitedStream { stream, max: GREETING_MAX, left: GREETING_MAX, deadline };
        let mut connection = Self { input: BufReader::new(stream), output };
        match (&address.user, &address.password) {
            (Some(user), Some(password)) => connection.authenticate(&["AUTH", user, password])?,
            (None, Some(password)) => connection.authenticate(&["AUTH", password])?,
            (_, None) => {}
        }
        if address.database != 0 {
            connection.call(&["SELECT", &address.database.to_string()])?;
        }
        Ok(connection)
    }

    /// Allows so many octets to be received from now on, in ten minutes.
    pub fn allow(&mut self, octets: u64) {
        self.input.get_mut().allow(octets);
    }

    /// Sends a command with a password. The error has only the first word of the reply: some
    /// servers repeat the command in it.
    fn authenticate(&mut self, command: &[&str]) -> io::Result<()> {
        self.send(command)?;
        match self.receive()? {
            Reply::Failure(why) => {
                let kind = why.split_whitespace().next().unwrap_or_default();
                Err(io::Error::other(format!("the server refuses the password: {kind}")))
            }
            _ => Ok(()),
        }
    }

    /// Sends a command and waits for its reply; a failure is an error.
    pub fn call(&mut self, command: &[&str]) -> io::Result<Reply> {
        self.send(command)?;
        match self.receive()? {
            failure @ Reply::Failure(_) => Err(failure.unexpected()),
            reply => Ok(reply),
        }
    }

    /// Writes a command, which is sent before the next reply is read at the latest.
    pub fn send(&mut self, command: &[&str]) -> io::Result<()> {
        write!(self.output, "*{}\r\n", command.len())?;
        for word in command {
            write!(self.output, "${}\r\n{word}\r\n", word.len())?;
        }
        Ok(())
    }

    /// Sends what was written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Waits for the next reply.
    pub fn receive(&mut self) -> io::Result<Reply> {
        self.flush()?;
        read(&mut self.input, 0)
    }

    /// Waits for the beginning of a message that is no reply; returns whether there is one.
    pub fn has_more(&mut self, patience: Duration) -> io::Result<bool> {
        if !self.input.buffer().is_empty() {
            return Ok(true);
        }
        let is_asked = patience.is_zero(); // the kernel would round the shortest wait up to 8 ms
        match is_asked {
            true => self.input.get_ref().stream.set_nonblocking(true)?,
            false => self.input.get_ref().stream.set_read_timeout(Some(patience))?,
        }
        let has_more = match self.input.fill_buf() {
            Ok([]) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(false),
                _ => Err(error),
            },
        };
        match is_asked {
            true => self.input.get_ref().stream.set_nonblocking(false)?,
            false => self.input.get_ref().stream.set_read_timeout(Some(REPLY))?,
        }
        has_more
    }
}

/// Reads a reply.
fn read(input: &mut impl BufRead, depth: usize) -> io::Result<Reply> {
    let malformed =
        || io::Error::new(ErrorKind::InvalidData, "this is not a reply of a Redis server");
    let mut line = Vec::new();
    input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let line = line.strip_suffix(b"\r\n").ok_or_else(malformed)?;
    let (kind, rest) = line.split_first().ok_or_else(malformed)?;
    let text = String::from_utf8_lossy(rest);
    let number = || text.parse::<i64>().map_err(|_| malformed());
    match kind {
        b'+' => Ok(Reply::Text(rest.to_vec())),
        b'-' => Ok(Reply::Failure(text.into_owned())),
        b':' => number().map(Reply::Number),
        b'$' | b'*' if number()? < 0 => Ok(Reply::Nothing),
        b'$' => {
            let len = usize::try_from(number()?).map_err(|_| malformed())?;
            if len > TEXT_BYTES_MAX {
                return Err(io::Error::new(ErrorKind::InvalidData, "a text of over 16 MiB"));
            }
            let mut octets = vec![0; len + 2];
            input.read_exact(&mut octets)?;
            octets.truncate(len);
            Ok(Reply::Text(octets))
        }
        b'*' if depth < DEPTH_MAX => (0..number()?)
            .map(|_| read(input, depth + 1))
            .collect::<Result<_, _>>()
            .map(Reply::List),
        _ => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Host, port, user, password and database.
    type Parts = (String, u16, Option<String>, Option<String>, u32);

    fn address(url: &str) -> Result<Parts, String> {
        url.parse::<Address>().map(|it| (it.host, it.port, it.user, it.password, it.database))
    }

    #[test]
    fn a_url_gives_server_credentials_and_database() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(address("redis://db"), Ok(("db".into(), 6379, None, None, 0)));
        assert_eq!(
            address("redis://me:p%40ss:x@[::1]:7000/3"),
            Ok(("::1".into(), 7000, some("me"), some("p@ss:x"), 3))
        );
        assert_eq!(
            address("redis://:secret@db/"),
            Ok(("db".into(), 6379, None, some("secret"), 0))
        );
        assert_eq!(address("redis://[::1]").map(|it| it.0), Ok("::1".into()));
        for wrong in ["rediss://db", "redis://", "redis://db:x", "redis://db/x", "redis://%zz@db"] {
            let error = address(wrong).unwrap_err();
            assert!(error.starts_with("redis://…: "), "{error}");
        }
    }

    #[test]
    fn replies_of_each_kind_are_read_and_unknown_kinds_refused() {
        let read = |mut octets: &[u8]| read(&mut octets, 0).ok();
        let text = |text: &str| Reply::Text(text.as_bytes().to_vec());
        assert_eq!(read(b"+OK\r\n"), Some(text("OK")));
        assert_eq!(read(b"-ERR no\r\n"), Some(Reply::Failure("ERR no".into())));
        assert_eq!(read(b"$-1\r\n"), Some(Reply::Nothing));
        assert_eq!(
            read(b"*3\r\n$4\r\na\r\nb\r\n:-7\r\n*0\r\n"),
            Some(Reply::List(vec![text("a\r\nb"), Reply::Number(-7), Reply::List(vec![])]))
        );
        for wrong in
            [&b""[..], b"OK\r\n", b"+OK", b"$5\r\na\r\n", b"$99999999999\r\n", b"*1\r\n", b":x\r\n"]
        {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
        assert_eq!(read("*1\r\n".repeat(100).as_bytes()), None);
    }
}
