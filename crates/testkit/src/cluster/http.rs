//! HTTP/1.1 over TLS, as much of it as a test needs: one request after the other on a connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// How long a server may be silent.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A connection to a server, kept alive between requests.
pub(super) struct Connection(BufReader<StreamOwned<ClientConnection, TcpStream>>);

impl Connection {
    /// Connects to a server, whose certificate has to be for its address.
    ///
    /// # Errors
    /// When the server does not take the connection.
    pub(super) fn open(server: SocketAddr, tls: &Arc<ClientConfig>) -> io::Result<Self> {
        let socket = TcpStream::connect_timeout(&server, TIMEOUT)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        socket.set_nodelay(true)?;
        let name = ServerName::IpAddress(server.ip().into());
        let session = ClientConnection::new(Arc::clone(tls), name).map_err(io::Error::other)?;
        Ok(Self(BufReader::new(StreamOwned::new(session, socket))))
    }

    /// Sends a request, head and body, and returns the status and the body of the response, which
    /// is read to its end.
    ///
    /// # Errors
    /// When the connection ends before the response does.
    pub(super) fn exchange(&mut self, request: &[u8]) -> io::Result<(u16, String)> {
        let stream = self.0.get_mut();
        stream.write_all(request)?;
        stream.flush()?;
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        let mut length = Some(0);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(':') {
                None => break,
                Some(("content-length", value)) => length = value.trim().parse().ok(),
                Some(("transfer-encoding", _)) => length = None,
                Some(_) => {}
            }
        }
        let body = match length {
            Some(length) => self.octets(length)?,
            None => self.chunks()?,
        };
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    /// Reads a line without its end.
    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }

    /// Reads as many octets.
    fn octets(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut octets = vec![0; length];
        self.0.read_exact(&mut octets)?;
        Ok(octets)
    }

    /// Reads a body in chunks (rfc9112#7.1).
    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = self.line()?;
            let size = size.split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size, 16).map_err(io::Error::other)?;
            body.extend(self.octets(size)?);
            self.line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }
}
