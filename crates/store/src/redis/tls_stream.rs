//! A TLS stream over one that waits.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::{ClientConnection, StreamOwned};

use crate::tls::{Trust, server_name};

/// An encrypted stream, over one that waits.
pub(super) struct TlsStream<S: Read + Write>(StreamOwned<ClientConnection, S>);

impl<S: Read + Write> TlsStream<S> {
    /// Has a server prove that it is trusted and has the name of the host.
    ///
    /// # Errors
    /// When it cannot, or the stream fails, of which the error has the kind.
    pub fn connect(trust: &Trust, host: &str, mut stream: S) -> io::Result<Self> {
        let settings = Arc::new(trust.client()?);
        let mut connection =
            ClientConnection::new(settings, server_name(host)?).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection
                .complete_io(&mut stream)
                .map_err(|error| io::Error::new(error.kind(), format!("TLS: {error}")))?;
        }
        Ok(Self(StreamOwned::new(connection, stream)))
    }

    /// Returns the stream below.
    pub fn get_ref(&self) -> &S {
        &self.0.sock
    }

    /// Returns the stream below, to be changed.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.0.sock
    }
}

impl<S: Read + Write> Read for TlsStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<S: Read + Write> Write for TlsStream<S> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
