//! How much a server may send over a connection: what its answers take, and little more.
//!
//! HTTP/2, TLS and QUIC have frames that answer nothing, such as PING, and a server may send DNS
//! messages that answer nothing. Reading them costs time and no memory, so that only their number
//! needs a bound. All octets that are received are a debt; a query that ends pays for an answer of
//! its length, and so does the answer to an abandoned query, once for each, where it can be
//! distinguished from unsolicited octets. A connection whose debt is more than [`SPARE_OCTETS`],
//! and [`QUERY_OCTETS`] for each query that waits, is closed.
//!
//! Deliberately absent: what the octets say.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::fault::Flood;

/// Octets that a server may send unasked: two of the largest answers, late.
const SPARE_OCTETS: u64 = 128 * 1024;
/// Octets that may come for a query that waits: the largest answer twice, for what carries it.
const QUERY_OCTETS: u64 = 128 * 1024;
/// Octets that a query pays for beside twice its answer: frames, headers, padding.
const FRAMES_OCTETS: u64 = 4 * 1024;

/// Octets received over a connection beyond what its queries pay for; shared by the queries and the
/// reading task.
#[derive(Debug, Default)]
pub struct Intake(Mutex<State>);

/// The state of a connection at a moment.
#[derive(Debug, Default)]
struct State {
    /// Octets that no query has paid for.
    debt: u64,
    /// Octets that were received in all, where they are counted so.
    total: u64,
    /// Queries that wait.
    waiting: u64,
    /// Whether the debt was too large once.
    is_flooded: bool,
}

impl Intake {
    /// Counts octets that were received.
    ///
    /// # Errors
    /// When they are too many.
    pub fn receive(&self, octets: u64) -> Result<(), Flood> {
        let mut state = self.lock();
        state.debt = state.debt.saturating_add(octets);
        state.is_flooded |= state.debt > SPARE_OCTETS + QUERY_OCTETS * state.waiting;
        if state.is_flooded { Err(Flood) } else { Ok(()) }
    }

    /// Counts octets, given how many were received in all.
    ///
    /// # Errors
    /// When they are too many.
    pub fn receive_in_all(&self, total: u64) -> Result<(), Flood> {
        let mut state = self.lock();
        let octets = total.saturating_sub(state.total);
        state.total = total.max(state.total);
        drop(state);
        self.receive(octets)
    }

    /// Forgets what was received so far, which was needed to set up the connection.
    pub fn begin(&self) {
        self.lock().debt = 0;
    }

    /// Registers a query, which waits until the returned value is dropped.
    pub fn ask(&self) -> AwaitedAnswer<'_> {
        self.lock().waiting += 1;
        AwaitedAnswer { intake: self, answer_octets: 0 }
    }

    /// Counts an answer of so many octets to a query that was sent and has been abandoned.
    pub fn answered_late(&self, octets: usize) {
        self.lock().pay(octets as u64);
    }

    /// Whether the server has sent too much.
    pub fn is_flooded(&self) -> bool {
        self.lock().is_flooded
    }

    /// Returns the state, which is held for a moment only.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A query that waits; dropped, it pays for its answer.
pub struct AwaitedAnswer<'i> {
    intake: &'i Intake,
    /// Octets of its answer; 0 until that has come.
    answer_octets: u64,
}

impl AwaitedAnswer<'_> {
    /// Records the length of the answer.
    pub fn answered(&mut self, octets: usize) {
        self.answer_octets = octets as u64;
    }
}

impl Drop for AwaitedAnswer<'_> {
    fn drop(&mut self) {
        let mut state = self.intake.lock();
        state.waiting -= 1;
        state.pay(self.answer_octets);
    }
}

impl State {
    /// Pays for an answer of `answer_octets`.
    fn pay(&mut self, answer_octets: u64) {
        self.debt = self.debt.saturating_sub(FRAMES_OCTETS + 2 * answer_octets);
    }
}

/// A stream whose octets are counted as they are received. It fails when they are too many.
#[derive(Debug)]
pub struct MeteredStream<S> {
    stream: S,
    intake: Arc<Intake>,
}

impl<S> MeteredStream<S> {
    /// Counts what is received over a stream.
    pub fn new(stream: S, intake: &Arc<Intake>) -> Self {
        Self { stream, intake: Arc::clone(intake) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let received = buffer.filled().len() - before;
        Poll::Ready(self.intake.receive(received as u64).map_err(io::Error::other))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, octets)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, octets)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_accounts_for_its_answer_and_its_framing() {
        let intake = Intake::default();
        for _ in 0..1000 {
            let mut asking = intake.ask();
            assert_eq!(intake.receive(FRAMES_OCTETS + 2 * 65_535), Ok(()));
            asking.answered(65_535);
        }
        assert_eq!(intake.receive(SPARE_OCTETS), Ok(()), "nothing is owed");
        assert_eq!(intake.receive(1), Err(Flood));
        assert!(intake.is_flooded());
    }

    #[test]
    fn answers_that_come_in_pieces_beside_each_other_are_no_flood() {
        let intake = Intake::default();
        let asking: Vec<_> = (0..100).map(|_| intake.ask()).collect();
        for _ in 0..64 {
            asking.iter().for_each(|_| assert_eq!(intake.receive(1024), Ok(())));
        }
        for mut asking in asking {
            asking.answered(65_535);
        }
        assert!(!intake.is_flooded());
    }

    #[test]
    fn what_comes_beside_short_answers_is_a_flood_in_the_end() {
        let intake = Intake::default();
        let is_flood = |_: &i32| {
            let mut asking = intake.ask();
            asking.answered(100);
            intake.receive(FRAMES_OCTETS + 200 + 1024).is_err()
        };
        let queries = (0..1000).find(is_flood);
        assert!(matches!(queries, Some(240..256)), "a kibioctet is owed for each: {queries:?}");
    }
}
