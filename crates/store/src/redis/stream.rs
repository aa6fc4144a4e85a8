//! The stream of a connection, and what may be read of it.

use super::tls_stream::TlsStream;
use crate::limit::{READ_TIME_MAX, too_large};
use crate::tls::Trust;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// A TCP stream of which so much is read at most, and for so long.
pub(super) struct LimitedStream {
    stream: TcpStream,
    /// Octets that may be read at a time.
    max: u64,
    /// How many of them may still be read.
    left: u64,
    /// When all must have been read.
    deadline: Instant,
}

impl LimitedStream {
    /// Allows so many octets to be read at first.
    fn new(stream: TcpStream, max: u64) -> Self {
        Self { stream, max, left: max, deadline: Instant::now() + READ_TIME_MAX }
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

impl Write for LimitedStream {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.stream.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// A stream to a server and from it. What is encrypted counts as it is sent: handshake and
/// records of TLS are within the limits of what is read.
pub(super) enum Stream {
    /// What is sent can be read on the way.
    Plain(LimitedStream),
    /// What is sent is encrypted.
    Tls(Box<TlsStream<LimitedStream>>),
}

impl Stream {
    /// Begins to encrypt where servers are trusted by certificates; so many octets may be read at
    /// first.
    ///
    /// # Errors
    /// When the server of this host is not trusted, or the stream fails.
    pub fn new(stream: TcpStream, max: u64, host: &str, trust: Option<&Trust>) -> io::Result<Self> {
        let stream = LimitedStream::new(stream, max);
        Ok(match trust {
            Some(trust) => Self::Tls(Box::new(TlsStream::connect(trust, host, stream)?)),
            None => Self::Plain(stream),
        })
    }

    /// Allows so many octets to be read from now on, in ten minutes.
    pub fn allow(&mut self, max: u64) {
        let limited = match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_mut(),
        };
        (limited.max, limited.left) = (max, max);
        limited.deadline = Instant::now() + READ_TIME_MAX;
    }

    /// Returns the socket below, of which the times to wait can be set.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => &stream.stream,
            Self::Tls(stream) => &stream.get_ref().stream,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(octets),
            Self::Tls(stream) => stream.write(octets),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
