//! What a transport asks of the engine.

use zonda_engine::code::History;
use zonda_engine::{Batch, Engine, Now, Outcome, Peer, Supplied, Transport, UpstreamAnswer};

/// Makes replies from queries: the engine, or a stand-in in tests.
///
/// Each worker or executor has its own, so `&mut self` takes no lock.
pub trait Responder: Send + 'static {
    /// Answers all messages of a batch in place.
    fn answer_batch<B: Batch>(&mut self, now: Now, batch: &mut B);

    /// Answers the query in the first `len` octets of `buffer`, where the reply then lies.
    fn answer(&mut self, now: Now, peer: &Peer, buffer: &mut [u8], len: usize) -> Outcome;

    /// Answers a query that was deferred, with what was fetched for it; returns the reply's length,
    /// 0 for silence.
    fn resume(
        &mut self,
        now: Now,
        peer: &Peer,
        buffer: &mut [u8],
        len: usize,
        history: &History,
        fetched: &UpstreamAnswer<'_>,
    ) -> usize;

    /// Answers a query that was deferred to the user's code, with what that says.
    fn supply(
        &mut self,
        now: Now,
        peer: &Peer,
        buffer: &mut [u8],
        len: usize,
        history: &History,
        supplied: Supplied<'_>,
    ) -> Outcome;

    /// Takes note that `replies` each took `nanos` from being received to being sent.
    fn observe_latency(&mut self, transport: Transport, nanos: u64, replies: u64);
}

impl Responder for Engine {
    fn answer_batch<B: Batch>(&mut self, now: Now, batch: &mut B) {
        Self::answer_batch(self, now, batch);
    }

    fn answer(&mut self, now: Now, peer: &Peer, buffer: &mut [u8], len: usize) -> Outcome {
        Self::answer(self, now, peer, buffer, len)
    }

    fn resume(
        &mut self,
        now: Now,
        peer: &Peer,
        buffer: &mut [u8],
        len: usize,
        history: &History,
        fetched: &UpstreamAnswer<'_>,
    ) -> usize {
        Self::resume(self, now, peer, buffer, len, history, fetched)
    }

    fn supply(
        &mut self,
        now: Now,
        peer: &Peer,
        buffer: &mut [u8],
        len: usize,
        history: &History,
        supplied: Supplied<'_>,
    ) -> Outcome {
        Self::supply(self, now, peer, buffer, len, history, supplied)
    }

    fn observe_latency(&mut self, transport: Transport, nanos: u64, replies: u64) {
        self.counters().observe_latency(transport, nanos, replies);
    }
}

/// A responder that is made when the first query comes, for threads that may never have one: an
/// engine takes some ten pages of memory.
pub struct LazyResponder<R> {
    /// Makes it.
    make: Box<dyn FnMut() -> R + Send>,
    /// It, once it was made.
    made: Option<R>,
}

impl<R> LazyResponder<R> {
    /// One that `make` makes.
    pub fn new(make: impl FnMut() -> R + Send + 'static) -> Self {
        Self { make: Box::new(make), made: None }
    }

    /// The responder, made now if it was not before.
    pub fn get(&mut self) -> &mut R {
        self.made.get_or_insert_with(&mut self.make)
    }
}

impl<R: Responder> Responder for LazyResponder<R> {
    fn answer_batch<B: Batch>(&mut self, now: Now, batch: &mut B) {
        self.get().answer_batch(now, batch);
    }

    fn answer(&mut self, now: Now, peer: &Peer, buffer: &mut [u8], len: usize) -> Outcome {
        self.get().answer(now, peer, buffer, len)
    }

    fn resume(
        &mut self,
        now: Now,
        peer: &Peer,
        buffer: &mut [u8],
        len: usize,
        history: &History,
        fetched: &UpstreamAnswer<'_>,
    ) -> usize {
        self.get().resume(now, peer, buffer, len, history, fetched)
    }

    fn supply(
        &mut self,
        now: Now,
        peer: &Peer,
        buffer: &mut [u8],
        len: usize,
        history: &History,
        supplied: Supplied<'_>,
    ) -> Outcome {
        self.get().supply(now, peer, buffer, len, history, supplied)
    }

    fn observe_latency(&mut self, transport: Transport, nanos: u64, replies: u64) {
        self.get().observe_latency(transport, nanos, replies);
    }
}
