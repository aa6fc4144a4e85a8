//! Engines that all connections share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use zonda_deferral::{Clock, Responder, keep_octets, servfail};
use zonda_engine::{Deferral, Now, Outcome, Peer, To, Transfer, Transport};

use super::TcpCounters;

use zonda_deferral::faults::{Failure, FailureSender, Fault, FaultBudget, survives};

/// Octets of the length in front of each message; rfc1035#4.2.2
const LENGTH_BYTES: usize = 2;
/// The longest message that its length can tell.
const MESSAGE_MAX: usize = u16::MAX as usize;

/// Makes the responder of the executor with this number.
type Make<R> = dyn Fn(usize) -> R + Send + Sync;

/// A fixed number of engines, each behind a lock that is never held across an await.
pub(super) struct Executors<R> {
    /// Taken in turn.
    executors: Vec<Mutex<Executor<R>>>,
    /// Where the next search for a free one begins.
    next: AtomicUsize,
}

impl<R: Responder> Executors<R> {
    /// Makes all engines.
    pub(super) fn new(
        count: usize,
        clock: Clock,
        make: impl Fn(usize) -> R + Send + Sync + 'static,
        failures: FailureSender,
        counters: Arc<TcpCounters>,
    ) -> Self {
        let make: Arc<Make<R>> = Arc::new(make);
        let executor = |number| {
            Mutex::new(Executor {
                number,
                responder: make(number),
                make: Arc::clone(&make),
                buffer: vec![0; MESSAGE_MAX].into(),
                clock,
                faults: FaultBudget::new(),
                failures: failures.clone(),
                counters: Arc::clone(&counters),
            })
        };
        let executors = (0..count.max(1)).map(executor).collect();
        Self { executors, next: AtomicUsize::new(0) }
    }

    /// A free executor; if there is none, waits for the next in turn.
    pub(super) fn take(&self) -> MutexGuard<'_, Executor<R>> {
        let count = self.executors.len();
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        for offset in 0..count {
            match self.executors[first.wrapping_add(offset) % count].try_lock() {
                Ok(executor) => return executor,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        self.executors[first % count].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One engine and what it needs to answer the messages of a connection.
pub(super) struct Executor<R> {
    /// The responder that makes replies.
    responder: R,
    /// The place of the executor among all.
    number: usize,
    /// The function that makes responders.
    make: Arc<Make<R>>,
    /// The message at hand, then its reply; [`MESSAGE_MAX`] octets.
    buffer: Box<[u8]>,
    /// Read once per call.
    clock: Clock,
    /// The panics of the last minute.
    faults: FaultBudget,
    /// Sender of the failure that there were too many panics.
    failures: FailureSender,
    /// Shared by all executors.
    counters: Arc<TcpCounters>,
}

/// What [`Executor::answer_all`] has done.
#[derive(Default)]
pub(super) struct AnswerCount {
    /// Octets of the input that are done with.
    pub(super) octets: usize,
    /// Messages in them.
    pub(super) queries: u64,
    /// The transfer that the last of them has begun: what follows is to be answered behind it.
    pub(super) transfer: Option<Box<Transfer>>,
}

/// Queries that are answered later, as far as they are [kept](keep_octets).
pub(super) type DeferredMessages = Vec<(Vec<u8>, Deferral)>;

impl<R: Responder> Executor<R> {
    /// Answers the whole messages at the beginning of `input`, appending replies with their lengths
    /// to `output` and what is answered later to `later`, until `queries_max` are answered or
    /// `output` has grown enough for one write, or a transfer begins.
    pub(super) fn answer_all(
        &mut self,
        peer: &Peer,
        input: &[u8],
        (output, later): (&mut Vec<u8>, &mut DeferredMessages),
        queries_max: u64,
    ) -> AnswerCount {
        /// Some hundred replies; with the longest reply on top, a connection's output is bounded.
        const OUTPUT_ENOUGH: usize = 16 << 10;

        let now = self.clock.now();
        let mut done = AnswerCount::default();
        let mut replies = 0;
        while done.queries < queries_max
            && output.len() < OUTPUT_ENOUGH
            && done.transfer.is_none()
            && let Some(message) = first_message(&input[done.octets..])
        {
            done.octets += LENGTH_BYTES + message.len();
            done.queries += 1;
            match self.answer(now, peer, message, output) {
                Outcome::Reply(_) => replies += 1,
                Outcome::Deferred(deferral) if deferral.to == To::Transfer => {
                    done.transfer = self.responder.take_transfer();
                }
                Outcome::Deferred(mut deferral) => {
                    later.push((keep_octets(message, &mut deferral), deferral));
                }
                Outcome::Silence => {}
            }
        }
        let nanos = self.clock.monotonic_nanos().saturating_sub(now.monotonic_nanos);
        self.responder.observe_latency(Transport::Tcp, nanos, replies);
        self.counters.received.add(done.queries);
        self.counters.replied.add(replies);
        done
    }

    /// Appends the reply to one message, if there is one now.
    fn answer(&mut self, now: Now, peer: &Peer, message: &[u8], output: &mut Vec<u8>) -> Outcome {
        let buffer = &mut self.buffer;
        buffer[..message.len()].copy_from_slice(message);
        let mut outcome = Outcome::Silence;
        if !survives(|| outcome = self.responder.answer(now, peer, buffer, message.len())) {
            buffer[..message.len()].copy_from_slice(message);
            outcome = match servfail::write(buffer, message.len()) {
                0 => Outcome::Silence,
                len => Outcome::Reply(len),
            };
            self.replace_responder();
        }
        if let Outcome::Reply(len) = outcome {
            debug_assert!(len <= MESSAGE_MAX, "a reply longer than its buffer");
            append_reply(output, &self.buffer[..len.min(MESSAGE_MAX)]);
        }
        outcome
    }

    /// After a panic: a new responder, and word to the supervisor if there were too many.
    #[cold]
    fn replace_responder(&mut self) {
        self.counters.panics.add(1);
        tracing::error!("the engine panicked on a TCP query");
        if self.faults.is_spent() {
            let failure = Failure { worker: "tcp".to_owned(), fault: Fault::Panic };
            // A full channel holds failures enough to end the process.
            let _ = self.failures.try_send(failure);
        }
        self.responder = (self.make)(self.number);
    }
}

/// Appends a reply, which has at most [`MESSAGE_MAX`] octets, with its length.
pub(super) fn append_reply(output: &mut Vec<u8>, reply: &[u8]) {
    output.extend_from_slice(&(reply.len() as u16).to_be_bytes());
    output.extend_from_slice(reply);
}

/// The message at the beginning of `input`, without its length; none if it is not whole.
fn first_message(input: &[u8]) -> Option<&[u8]> {
    let (length, rest) = input.split_first_chunk::<LENGTH_BYTES>()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}
