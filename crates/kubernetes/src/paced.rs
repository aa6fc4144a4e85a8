//! A TCP stream whose small pieces are read together.
//!
//! A watch of a busy cluster brings each change in a piece of its own. Waking for each of them
//! costs more than reading it, so that a paced stream which has been read to its end is left to the
//! kernel for [`PAUSE`], or until [`LOW_WATER`] octets wait in it. What comes after a longer
//! silence is read at once.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};
use zonda_netio::tcp::set_receive_low_water;

/// How long a stream that was read to its end is left alone. It delays a change that follows
/// another one by so much; 30 ms have thirty changes of a thousand a second read together.
const PAUSE: Duration = Duration::from_millis(30);
/// Octets in the kernel that end a pause: half of the least buffer that Linux gives a connection.
const LOW_WATER: u32 = 64 << 10;

/// Whether small pieces of a stream are read together, as its owner says and may change.
#[derive(Clone, Default)]
pub struct Pace(Arc<AtomicBool>);

impl Pace {
    /// Reads small pieces together from now on, or each of them at once.
    pub fn set(&self, is_paced: bool) {
        self.0.store(is_paced, Ordering::Relaxed);
    }

    /// Whether small pieces are read together.
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A TCP stream whose small pieces are read together while its pace is set.
pub struct PacedStream {
    stream: TcpStream,
    pace: Pace,
    /// The end of the last pause.
    timer: Pin<Box<Sleep>>,
    /// Whether a pause goes on.
    is_pausing: bool,
}

impl PacedStream {
    /// Returns a stream that has the pace of its owner.
    pub fn new(stream: TcpStream, pace: Pace) -> Self {
        Self { stream, pace, timer: Box::pin(tokio::time::sleep(PAUSE)), is_pausing: false }
    }

    /// Begins a pause.
    fn pause(&mut self) -> io::Result<()> {
        set_receive_low_water(&self.stream, LOW_WATER)?;
        self.timer.as_mut().reset(Instant::now() + PAUSE);
        self.is_pausing = true;
        Ok(())
    }

    /// Waits for the end of the pause: its time, much data, or the end of the connection.
    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.timer.as_mut().poll(cx).is_pending() {
            ready!(self.stream.poll_read_ready(cx))?;
        }
        self.is_pausing = false;
        Poll::Ready(set_receive_low_water(&self.stream, 1))
    }
}

impl AsyncRead for PacedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.is_pausing {
            ready!(this.poll_pause(cx))?;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        let is_drained = buffer.filled().len() > before && buffer.remaining() > 0;
        if is_drained && this.pace.is_set() {
            this.pause()?;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for PacedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, data)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::future::poll_fn;
    use std::io::Write;
    use tokio::io::AsyncReadExt;

    /// A stream with its pace, and the peer that writes to it.
    async fn connected() -> (PacedStream, Pace, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (peer, _) = listener.accept().unwrap();
        peer.set_nodelay(true).unwrap();
        let pace = Pace::default();
        (PacedStream::new(stream, pace.clone()), pace, peer)
    }

    /// The octets that a read has now; none if it waits.
    async fn octets_now(stream: &mut PacedStream) -> Option<Vec<u8>> {
        let mut buffer = [0; 64];
        let mut buffer = ReadBuf::new(&mut buffer);
        poll_fn(|cx| match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => Poll::Ready(None),
        })
        .await?
        .unwrap();
        Some(buffer.filled().to_vec())
    }

    /// The octets of the next read.
    async fn next(stream: &mut PacedStream) -> Vec<u8> {
        let mut octets = vec![0; 64];
        let len = stream.read(&mut octets).await.unwrap();
        octets.truncate(len);
        octets
    }

    // The clock stands still until the test waits, so that a pause is over only then.
    #[tokio::test(start_paused = true)]
    async fn pieces_that_follow_another_one_soon_are_read_together() {
        let (mut stream, pace, mut peer) = connected().await;
        pace.set(true);
        for _ in 0..3 {
            peer.write_all(b"first").unwrap();
            assert_eq!(next(&mut stream).await, b"first");
            peer.write_all(b"second").unwrap();
            assert_eq!(octets_now(&mut stream).await, None, "a pause");
            peer.write_all(b"third").unwrap();
            assert_eq!(next(&mut stream).await, b"secondthird");
            assert_eq!(octets_now(&mut stream).await, None, "nothing came");
            tokio::time::sleep(2 * PAUSE).await;
        }
        drop(peer);
        assert_eq!(next(&mut stream).await, b"");
    }

    #[tokio::test(start_paused = true)]
    async fn each_piece_is_read_at_once_without_a_pace() {
        let (mut stream, _, mut peer) = connected().await;
        for piece in [b"first", b"other", b"third"] {
            peer.write_all(piece).unwrap();
            let began = Instant::now();
            assert_eq!(next(&mut stream).await, piece);
            assert_eq!(began.elapsed(), Duration::ZERO);
        }
    }
}
