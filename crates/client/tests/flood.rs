//! Servers that send what answers nothing, as fast as they can.

#![allow(clippy::unwrap_used)]

mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Identity, SERVER, answer, assert_answers, query};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{ConnectionError, Endpoint, ServerConfig, TransportConfig, VarInt};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, sink, split};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use zonda_client::{Connections, Fault, Protocol, Url};

/// Long enough for any answer on a busy machine.
const LONG: Duration = Duration::from_secs(10);
/// More octets than the buffers of both kernels take.
const OCTETS_MAX: usize = 32 << 20;
/// A header with QR set: a DNS message that answers nothing, its length before it.
const MESSAGE: &[u8] = b"\0\x0c\x12\x34\x80\0\0\0\0\0\0\0\0\0";

/// A server that floods each connection.
struct Flooder {
    address: SocketAddr,
    /// Number of connections taken.
    taken: Arc<AtomicUsize>,
    /// Octets that were written before each connection ended.
    ended: UnboundedReceiver<usize>,
}

impl Flooder {
    /// Starts one, with TLS or without, that writes `first`, answers so many queries, and then
    /// writes a piece over and over.
    async fn start(
        tls: Option<rustls::ServerConfig>,
        first: &'static [u8],
        answers: usize,
        piece: &'static [u8],
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (address, taken) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
        let (acceptor, count) = (tls.map(|it| TlsAcceptor::from(Arc::new(it))), Arc::clone(&taken));
        let (sender, ended) = unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                let (acceptor, sender) = (acceptor.clone(), sender.clone());
                tokio::spawn(async move {
                    let octets = match acceptor {
                        None => flood(stream, first, answers, piece).await,
                        Some(acceptor) => {
                            let stream = acceptor.accept(stream).await.unwrap();
                            flood(stream, first, answers, piece).await
                        }
                    };
                    let _ = sender.send(octets);
                });
            }
        });
        Self { address, taken, ended }
    }

    /// Makes sure that a query is not answered, the connection closed, and no other opened.
    async fn check(&mut self, protocol: Protocol) {
        let connections = Connections::new(protocol, vec![self.address]);
        for _ in ["flooded", "left alone"] {
            let fault = timeout(LONG, connections.ask(&query(1))).await.unwrap();
            assert_eq!(fault, Err(Fault::Flood));
        }
        self.check_end(&connections).await;
    }

    /// Makes sure that a connection is closed before much was sent.
    async fn check_end(&mut self, connections: &Arc<Connections>) {
        let octets = timeout(LONG, self.ended.recv()).await.unwrap().unwrap();
        assert!(octets < OCTETS_MAX, "{octets}");
        let counts = connections.counts();
        assert_eq!((counts.open, counts.flooded, counts.fault), (0, 1, Some(Fault::Flood)));
        assert_eq!(self.taken.load(Ordering::Relaxed), 1);
    }
}

/// Writes until the connection ends, and reads what comes; returns how many octets it wrote.
async fn flood(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    first: &[u8],
    answers: usize,
    piece: &[u8],
) -> usize {
    let (mut reader, mut writer) = split(stream);
    for _ in 0..answers {
        let mut query = vec![0; reader.read_u16().await.unwrap().into()];
        reader.read_exact(&mut query).await.unwrap();
        let answer = answer(&query, 300);
        writer.write_u16(answer.len().try_into().unwrap()).await.unwrap();
        writer.write_all(&answer).await.unwrap();
    }
    tokio::spawn(async move { copy(&mut reader, &mut sink()).await });
    let (pieces, mut octets) = (piece.repeat(100), 0);
    writer.write_all(first).await.unwrap();
    while octets < OCTETS_MAX && writer.write_all(&pieces).await.is_ok() {
        octets += pieces.len();
    }
    octets
}

#[tokio::test]
async fn messages_that_answer_nothing_close_a_connection_over_tcp() {
    let mut server = Flooder::start(None, b"", 0, MESSAGE).await;
    server.check(Protocol::Tcp).await;
}

#[tokio::test]
async fn messages_that_answer_nothing_close_a_connection_over_tls() {
    let identity = Identity::new(SERVER);
    let mut server = Flooder::start(Some(identity.server_config(b"dot")), b"", 0, MESSAGE).await;
    server.check(Protocol::Tls(identity.tls())).await;
}

#[tokio::test]
async fn unsolicited_messages_close_an_idle_connection() {
    let mut server = Flooder::start(None, b"", 3, MESSAGE).await;
    let connections = Connections::new(Protocol::Tcp, vec![server.address]);
    for id in 1..4 {
        assert_answers(&timeout(LONG, connections.ask(&query(id))).await.unwrap().unwrap(), id);
    }
    server.check_end(&connections).await;
}

#[tokio::test]
async fn frames_that_answer_nothing_close_a_connection_over_https() {
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    for frame in [
        &b"\0\0\x08\x06\0\0\0\0\0PINGPING"[..],
        SETTINGS,
        b"\0\0\x05\x02\0\0\0\0\x01\0\0\0\0\x10", // PRIORITY
        b"\0\0\0\xf0\0\0\0\0\0",                 // of no type that is known
    ] {
        let identity = Identity::new(SERVER);
        let tls = identity.server_config(b"h2");
        let mut server = Flooder::start(Some(tls), SETTINGS, 0, frame).await;
        let url = Url::new(SERVER, 443, "/dns-query").unwrap();
        server.check(Protocol::Https { tls: identity.tls(), url }).await;
    }
}

#[tokio::test]
async fn packets_that_answer_nothing_close_a_connection_over_quic() {
    let identity = Identity::new(SERVER);
    let tls = QuicServerConfig::try_from(identity.server_config(b"doq")).unwrap();
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    let mut transport = TransportConfig::default();
    transport.keep_alive_interval(Some(Duration::from_millis(1))).pad_to_mtu(true); // PING
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = endpoint.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        connection.closed().await
    });
    let connections = Connections::new(Protocol::Quic(identity.tls()), vec![address]);
    let fault = timeout(LONG, connections.ask(&query(1))).await.unwrap();
    assert_eq!(fault, Err(Fault::Flood));
    let end = timeout(LONG, server).await.unwrap().unwrap();
    let excessive_load = VarInt::from_u32(4);
    assert!(
        matches!(&end, ConnectionError::ApplicationClosed(it) if it.error_code == excessive_load),
        "{end}"
    );
    assert_eq!(connections.counts().flooded, 1);
}
