//! A server over TCP or TLS that does what a test says.
#![allow(dead_code, clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;

/// What a server does after it has answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Answers each query at once.
    Prompt,
    /// Waits for so many queries, then answers them, the last one first.
    Reversed(usize),
    /// Closes the connection after so many answers.
    Closing(usize),
    /// Closes it after so many answers, without answering what came behind them.
    Dropping(usize),
    /// Answers the first query of all, and nothing ever after on that connection.
    Dying,
    /// Answers the first query of a connection so late, and each other one at once then.
    Late(Duration),
    /// Answers, and wants the connection closed (rfc7828#3.3.2).
    Leaving,
}

/// A running server.
pub struct Server {
    pub address: SocketAddr,
    /// Number of connections accepted.
    pub accepted: Arc<AtomicUsize>,
}

impl Server {
    /// Starts one, with TLS or without.
    pub async fn start(manner: Manner, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        Self::listen(TcpListener::bind("127.0.0.1:0").await.unwrap(), manner, tls)
    }

    /// Starts one without TLS at an address.
    pub async fn start_at(address: SocketAddr, manner: Manner) -> Self {
        Self::listen(TcpListener::bind(address).await.unwrap(), manner, None)
    }

    /// Accepts connections and serves each.
    fn listen(
        listener: TcpListener,
        manner: Manner,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let accepted = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                let acceptor = tls.clone().map(TlsAcceptor::from);
                tokio::spawn(async move {
                    match acceptor {
                        None => serve(stream, manner, number).await,
                        Some(acceptor) => {
                            let Ok(stream) = acceptor.accept(stream).await else { return };
                            serve(stream, manner, number).await;
                        }
                    }
                });
            }
        });
        Self { address, accepted }
    }

    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// Serves the connection of a number.
async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, manner: Manner, number: usize) {
    let (mut held, mut answered) = (Vec::new(), 0);
    while let Ok(len) = stream.read_u16().await {
        let mut query = vec![0; usize::from(len)];
        if stream.read_exact(&mut query).await.is_err() {
            return;
        }
        held.push(query);
        if let Manner::Late(delay) = manner
            && answered == 0
        {
            sleep(delay).await;
        }
        let wanted = if let Manner::Reversed(count) = manner { count } else { 1 };
        if held.len() < wanted || manner == Manner::Dying && number == 0 && answered == 1 {
            continue;
        }
        while let Some(query) = held.pop() {
            if manner == Manner::Dropping(answered) {
                return;
            }
            let message = answer(&query, manner == Manner::Leaving);
            let len = (message.len() as u16).to_be_bytes();
            if stream.write_all(&[&len[..], &message].concat()).await.is_err() {
                return;
            }
            let _ = stream.flush().await;
            answered += 1;
        }
        if manner == Manner::Closing(answered) {
            return;
        }
    }
}

/// Returns a query for one name of these letters under an id.
pub fn query(id: u16, name: &str) -> Vec<u8> {
    let mut message = id.to_be_bytes().to_vec();
    message.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0, name.len() as u8]);
    message.extend_from_slice(name.as_bytes());
    message.extend_from_slice(&[0, 0, 1, 0, 1]);
    message
}

/// Returns the query with QR set; with `is_leaving`, and the timeout 0.
pub fn answer(query: &[u8], is_leaving: bool) -> Vec<u8> {
    let mut message = query.to_vec();
    message[2] |= 0x80;
    if is_leaving {
        message[11] = 1;
        message.extend_from_slice(&[0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 6, 0, 11, 0, 2, 0, 0]);
    }
    message
}
