//! What a transport asks of the engine.

use zonda_engine::{
    AnswerFacts, Batch, DeferredQuery, Engine, Now, Outcome, Peer, Resumption, Single, Transfer,
    Transport,
};

/// Makes replies from queries: the engine, or a stand-in in tests.
///
/// Each worker or executor has its own, so `&mut self` takes no lock.
pub trait Responder: Send + 'static {
    /// Answers all messages of a batch in place.
    fn answer_batch<B: Batch>(&mut self, now: Now, batch: &mut B);

    /// Answers a query that was deferred, with what it was deferred for.
    fn resume(&mut self, now: Now, query: DeferredQuery<'_>, resumption: Resumption<'_>)
    -> Outcome;

    /// Answers the query in the first `len` octets of `buffer`, where the reply then lies.
    fn answer(&mut self, now: Now, peer: &Peer, buffer: &mut [u8], len: usize) -> Outcome {
        Single::answer(peer, buffer, len, |batch| self.answer_batch(now, batch))
    }

    /// Takes out the facts about the last reply, if that was one that code has asked to see. A
    /// responder that is no engine has none.
    fn take_facts(&mut self) -> Option<AnswerFacts> {
        None
    }

    /// Takes out the transfer that the last query has begun. A responder that is no engine has
    /// none.
    fn take_transfer(&mut self) -> Option<Box<Transfer>> {
        None
    }

    /// Takes note that `replies` each took `nanos` from being received to being sent. A responder
    /// without counters takes none.
    fn observe_latency(&mut self, _transport: Transport, _nanos: u64, _replies: u64) {}
}

impl Responder for Engine {
    fn answer_batch<B: Batch>(&mut self, now: Now, batch: &mut B) {
        Self::answer_batch(self, now, batch);
    }

    fn resume(
        &mut self,
        now: Now,
        query: DeferredQuery<'_>,
        resumption: Resumption<'_>,
    ) -> Outcome {
        Self::resume(self, now, query, resumption)
    }

    fn take_facts(&mut self) -> Option<AnswerFacts> {
        Self::take_facts(self)
    }

    fn take_transfer(&mut self) -> Option<Box<Transfer>> {
        Self::take_transfer(self)
    }

    fn observe_latency(&mut self, transport: Transport, nanos: u64, replies: u64) {
        self.counters().observe_latency(transport, nanos, replies);
    }
}

/// A responder that is made when the first query comes, for threads that may never have one: an
/// engine takes some ten pages of memory.
pub struct LazyResponder<R> {
    /// The function that makes the responder.
    make: Box<dyn FnMut() -> R + Send>,
    /// The responder, from the first reply on.
    made: Option<R>,
}

impl<R> LazyResponder<R> {
    /// A responder that `make` makes when the first reply is to be written.
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

    fn resume(
        &mut self,
        now: Now,
        query: DeferredQuery<'_>,
        resumption: Resumption<'_>,
    ) -> Outcome {
        self.get().resume(now, query, resumption)
    }

    fn take_facts(&mut self) -> Option<AnswerFacts> {
        self.get().take_facts()
    }

    fn take_transfer(&mut self) -> Option<Box<Transfer>> {
        self.get().take_transfer()
    }

    fn observe_latency(&mut self, transport: Transport, nanos: u64, replies: u64) {
        self.get().observe_latency(transport, nanos, replies);
    }
}
