//! TLS under PostgreSQL's client, which has a runtime of its own.

use crate::StoreError;
use crate::tls::{Trust, server_name};
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use postgres::{Client, Config, Socket};
use rustls::ClientConfig;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How long a TLS handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// The protocol within TLS, which servers since PostgreSQL 17 ask for where TLS comes first.
const PROTOCOL: &[u8] = b"postgresql";

/// Connects, and encrypts if the server offers it; returns whether the connection is encrypted.
///
/// # Errors
/// When the server cannot be reached, refuses the credentials, is not trusted, or does not offer
/// the encryption that is required.
pub(super) fn connect(config: &Config, trust: &Trust) -> Result<(Client, bool), StoreError> {
    let mut settings = trust.client().map_err(StoreError::failed)?;
    settings.alpn_protocols = vec![PROTOCOL.to_vec()];
    let is_encrypted = Arc::new(AtomicBool::new(false));
    let connector =
        Connector { settings: Arc::new(settings), is_encrypted: Arc::clone(&is_encrypted) };
    let client = config.connect(connector).map_err(StoreError::failed)?;
    Ok((client, is_encrypted.load(Relaxed)))
}

/// Encrypts the connections of the client.
struct Connector {
    settings: Arc<ClientConfig>,
    /// Whether the last connection is encrypted.
    is_encrypted: Arc<AtomicBool>,
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = EncryptedStream;
    type TlsConnect = Handshake;
    type Error = io::Error;

    /// Begins with a host of the parameters. It is not looked at before a handshake, as it is empty
    /// for a Unix socket.
    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        self.is_encrypted.store(false, Relaxed);
        Ok(Handshake {
            settings: Arc::clone(&self.settings),
            is_encrypted: Arc::clone(&self.is_encrypted),
            host: host.to_owned(),
        })
    }
}

/// The handshake with a host.
struct Handshake {
    settings: Arc<ClientConfig>,
    is_encrypted: Arc<AtomicBool>,
    host: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = EncryptedStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<EncryptedStream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let connector = tokio_rustls::TlsConnector::from(self.settings);
            let handshake = connector.connect(server_name(&self.host)?, socket);
            // The client's own limit ends with the connection that the handshake needs.
            let Ok(stream) = tokio::time::timeout(HANDSHAKE_MAX, handshake).await else {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the server did not end the TLS handshake within 5 s",
                ));
            };
            let stream = stream?;
            self.is_encrypted.store(true, Relaxed);
            Ok(EncryptedStream(stream))
        })
    }
}

/// A connection within TLS.
struct EncryptedStream(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for EncryptedStream {
    /// Binds a password to no certificate: the certificate has been verified where that counts.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for EncryptedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for EncryptedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, octets)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
