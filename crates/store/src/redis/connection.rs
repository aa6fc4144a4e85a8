//! A connection to a Redis server, in its protocol RESP2.
//!
//! Small enough to be written here: the crate `redis` would bring some thirty more crates, most of
//! them to read a URL.

use super::address::Address;
use super::stream::Stream;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

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
/// Octets of commands that are collected before they are sent.
const OUTPUT_BYTES: usize = 8 << 10;
/// Octets that a server may send until a password is accepted and a database selected.
const GREETING_MAX: u64 = 64 << 10;

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

/// A connection to the server.
pub(super) struct Connection {
    /// The stream in both directions, of which what came is read ahead.
    input: BufReader<Stream>,
    /// Commands that are not sent yet.
    output: Vec<u8>,
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

    /// Encrypts if that is asked for, authenticates and selects the database.
    fn greet(stream: TcpStream, address: &Address) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY))?;
        stream.set_write_timeout(Some(REPLY))?;
        let stream = Stream::new(stream, GREETING_MAX, &address.host, address.trust.as_ref())?;
        let (input, output) = (BufReader::new(stream), Vec::new());
        let mut connection = Self { input, output };
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
        if self.output.len() < OUTPUT_BYTES { Ok(()) } else { self.flush() }
    }

    /// Sends what was written.
    pub fn flush(&mut self) -> io::Result<()> {
        let stream = self.input.get_mut();
        stream.write_all(&self.output)?;
        self.output.clear();
        stream.flush()
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
            true => self.input.get_ref().socket().set_nonblocking(true)?,
            false => self.input.get_ref().socket().set_read_timeout(Some(patience))?,
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
            true => self.input.get_ref().socket().set_nonblocking(false)?,
            false => self.input.get_ref().socket().set_read_timeout(Some(REPLY))?,
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
