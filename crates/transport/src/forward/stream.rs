//! One question to an upstream over TCP, when its answer was truncated.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use zonda_upstream::exchange::Form;

use super::ports::Attempt;

/// An answer that came over a stream, or why none came.
#[derive(Debug)]
pub struct StreamAnswer {
    /// The query.
    pub attempt: Attempt,
    /// In which form it was sent.
    pub form: Form,
    /// As it was sent.
    pub query: Vec<u8>,
    /// The message.
    pub message: io::Result<Vec<u8>>,
}

/// Asks and returns the answer.
///
/// # Errors
/// When there is no whole answer within `limit`.
pub async fn ask(upstream: SocketAddr, query: &[u8], limit: Duration) -> io::Result<Vec<u8>> {
    let exchange = async {
        let mut stream = TcpStream::connect(upstream).await?;
        stream.set_nodelay(true)?;
        let len = u16::try_from(query.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        stream.write_all(&[&len.to_be_bytes(), query].concat()).await?;
        let mut answer = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut answer).await?;
        Ok(answer)
    };
    timeout(limit, exchange).await.map_err(|_| io::ErrorKind::TimedOut)?
}
