//! One thread per socket: receive a batch, answer, send.
//!
//! The thread owns its engine and blocks only in the receive call, so nothing is shared between
//! workers on the way of a query. Several workers on one address each bind it with `SO_REUSEPORT`;
//! several addresses have workers of their own.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use zonda_deferral::{Clock, Deferrals, Deferred, ReplyTo, Responder, keep_octets, servfail};
use zonda_engine::counters::Counter;
use zonda_engine::{Batch, Deferral, Message, Peer, Transport};
use zonda_netio::{
    DatagramBatch, StopHandle, StopToken, UdpSocket, process, stop::stop_all, stop_channel,
};

use zonda_deferral::faults::{Failure, FailureSender, Fault, FaultBudget, survives};

/// How long a worker that was told to stop goes on answering what keeps arriving.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// How long a worker runs at a time while the user's code wants its CPU: the shortest that Linux
/// knows. With the usual 3 ms, a query for a zone waits until code has used them up.
const SLICE_BESIDE_CODE: Duration = Duration::from_micros(100);

/// Settings of a UDP worker.
#[derive(Clone, Debug)]
pub struct UdpConfig {
    /// The thread's name, of which the system shows 15 octets.
    pub name: String,
    /// Passed on to the engine with each query.
    pub listener: u16,
    /// Most datagrams per system call; 1 to 1024.
    pub batch_width: usize,
    /// Room for one query or reply. Longer queries are cut, so they are answered FORMERR.
    pub buffer_bytes: usize,
    /// The CPU to keep the thread on; none leaves it to the scheduler.
    pub cpu: Option<usize>,
    /// Whether threads of the user's code want the same CPUs.
    pub is_beside_code: bool,
}

impl Default for UdpConfig {
    fn default() -> Self {
        Self {
            name: "udp".to_owned(),
            listener: 0,
            batch_width: 64,
            buffer_bytes: 4096,
            cpu: None,
            is_beside_code: false,
        }
    }
}

/// What one worker has done. `received` = `replied` + `refused` + `unanswered` + `deferred`.
#[derive(Default)]
pub struct UdpCounters {
    /// Receive calls that returned datagrams.
    pub batches: Counter,
    /// Datagrams that were received.
    pub received: Counter,
    /// Replies that the kernel took.
    pub replied: Counter,
    /// Replies that the kernel refused: no route, a firewall's no, port 0, a full send buffer.
    pub refused: Counter,
    /// Datagrams to which there is no reply.
    pub unanswered: Counter,
    /// Queries that are answered later, by another thread.
    pub deferred: Counter,
    /// Panics of the engine, one per batch at most.
    pub panics: Counter,
    /// Receive calls that failed.
    pub receive_errors: Counter,
}

/// A running worker. Dropping it leaves the thread running; see [`stop_workers`].
pub struct UdpWorker {
    /// Handle that asks the worker to stop.
    stop: StopHandle,
    /// Thread that ends when the worker has stopped or failed.
    thread: JoinHandle<()>,
    /// What the worker has done.
    counters: Arc<UdpCounters>,
}

impl UdpWorker {
    /// Starts a thread that answers on `socket` with what `make` makes, in that thread: once now
    /// and again after each panic. Deferred queries go to `deferrals`.
    pub fn spawn<R: Responder>(
        socket: Arc<UdpSocket>,
        config: UdpConfig,
        clock: Clock,
        make: impl FnMut() -> R + Send + 'static,
        deferrals: Deferrals,
        failures: FailureSender,
    ) -> io::Result<Self> {
        let (stop, token) = stop_channel()?;
        let counters = Arc::<UdpCounters>::default();
        let shared = Arc::clone(&counters);
        let thread = thread::Builder::new().name(config.name.clone()).spawn(move || {
            let name = config.name.clone();
            // Stands if the thread panics outside the engine.
            let mut outcome = Err(Fault::Panic);
            survives(|| {
                let mut worker = Worker::new(socket, &config, clock, make, deferrals, shared);
                outcome = worker.run(&token);
            });
            if let Err(fault) = outcome {
                let told = format!("{fault:?}");
                // A full channel holds failures enough to end the process. Told first: a log that
                // a program writes may panic.
                let _ = failures.try_send(Failure { worker: name.clone(), fault });
                tracing::error!(worker = name, fault = told, "giving up");
            }
        })?;
        Ok(Self { stop, thread, counters })
    }

    /// Returns the counters of the UDP worker.
    pub fn counters(&self) -> &Arc<UdpCounters> {
        &self.counters
    }

    /// Whether the thread has ended, so that it has its socket open no more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }
}

/// Stops workers: each finishes its batch, answers what its socket has received by then, and ends.
///
/// Returns those that have not ended before `deadline`, whose threads are left behind.
#[must_use]
pub fn stop_workers(mut workers: Vec<UdpWorker>, deadline: Instant) -> Vec<UdpWorker> {
    stop_all(workers.iter().map(|worker| &worker.stop), deadline);
    while Instant::now() < deadline && !workers.iter().all(UdpWorker::has_ended) {
        thread::sleep(Duration::from_millis(1));
    }
    workers.retain(|worker| !worker.has_ended());
    workers
}

/// What the thread owns.
struct Worker<R, F> {
    /// Where queries come from and replies go.
    socket: Arc<UdpSocket>,
    /// The datagrams at hand.
    batch: ReceivedBatch,
    /// The responder that makes replies.
    responder: R,
    /// The function that makes responders.
    make: F,
    /// Read once per received and once per sent batch.
    clock: Clock,
    /// Panics and failed receive calls.
    faults: FaultBudget,
    /// Where deferred queries go.
    deferrals: Deferrals,
    /// Deferred queries of the batch at hand, until they are in their queues.
    deferred: Vec<Deferred>,
    /// Written by this thread only.
    counters: Arc<UdpCounters>,
}

impl<R: Responder, F: FnMut() -> R> Worker<R, F> {
    /// Allocates all that the worker ever needs.
    fn new(
        socket: Arc<UdpSocket>,
        config: &UdpConfig,
        clock: Clock,
        mut make: F,
        deferrals: Deferrals,
        counters: Arc<UdpCounters>,
    ) -> Self {
        if let Some(cpu) = config.cpu
            && let Err(error) = process::pin_thread(&[cpu])
        {
            tracing::warn!(worker = config.name, cpu, %error, "cannot keep the worker on its CPU");
        }
        if config.is_beside_code
            && let Err(error) = process::use_short_slices(SLICE_BESIDE_CODE)
        {
            tracing::debug!(worker = config.name, %error, "code may delay the worker");
        }
        let batch = ReceivedBatch {
            datagrams: DatagramBatch::new(config.batch_width, config.buffer_bytes),
            listener: config.listener,
            deferred: Vec::new(),
        };
        let (responder, faults) = (make(), FaultBudget::new());
        let deferred = Vec::new();
        Self { socket, batch, responder, make, clock, faults, deferrals, deferred, counters }
    }

    /// Answers until told to stop, then what is queued; an error is one fault too many.
    fn run(&mut self, stop: &StopToken) -> Result<(), Fault> {
        stop.enter();
        while !stop.is_requested() {
            let received = self.batch.datagrams.receive(&self.socket);
            self.serve(received)?;
        }
        let deadline = Instant::now() + DRAIN_MAX;
        while Instant::now() < deadline {
            let received = self.batch.datagrams.receive_queued(&self.socket);
            if matches!(received, Ok(0)) {
                break;
            }
            self.serve(received)?;
        }
        Ok(())
    }

    /// Answers one batch, or deals with the failure to receive it.
    fn serve(&mut self, received: io::Result<usize>) -> Result<(), Fault> {
        match received {
            Ok(count) => self.answer(count as u64),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => {
                self.counters.receive_errors.add(1);
                tracing::error!(address = %self.socket.address(), %error, "cannot receive");
                // Lack of memory may pass; other errors come back until the budget is spent.
                thread::sleep(Duration::from_millis(10));
                if self.faults.is_spent() { Err(Fault::Receive(error)) } else { Ok(()) }
            }
        }
    }

    /// Answers the batch at hand and sends the replies.
    fn answer(&mut self, count: u64) -> Result<(), Fault> {
        let now = self.clock.now();
        let sound = survives(|| self.responder.answer_batch(now, &mut self.batch));
        if !sound {
            self.batch.fail_unanswered();
        }
        let deferred = self.gather_deferred();
        let sent = self.batch.datagrams.send(&self.socket);
        if deferred > 0 {
            // Only now: a thread that is woken may take this CPU, and the replies would wait for
            // it.
            self.deferrals.submit(&mut self.deferred);
        }
        let (replied, refused) = (sent.replies as u64, sent.refused as u64);
        self.counters.batches.add(1);
        self.counters.received.add(count);
        self.counters.replied.add(replied);
        self.counters.refused.add(refused);
        self.counters.deferred.add(deferred);
        self.counters.unanswered.add(count - replied - refused - deferred);
        if !sound {
            return self.replace_responder();
        }
        let nanos = self.clock.monotonic_nanos().saturating_sub(now.monotonic_nanos);
        self.responder.observe_latency(Transport::Udp, nanos, replied);
        Ok(())
    }

    /// Gathers the queries that are answered later; returns how many there are.
    fn gather_deferred(&mut self) -> u64 {
        if self.batch.deferred.is_empty() {
            return 0;
        }
        let (datagrams, socket) = (&mut self.batch.datagrams, &self.socket);
        let query = |(index, mut deferral): (usize, Deferral)| {
            let (path, len) = (datagrams.reply_path(index), datagrams.received_len(index));
            let datagram = datagrams.get(index);
            let (address, listener) = (datagram.peer, self.batch.listener);
            Deferred {
                query: keep_octets(&datagram.buffer[..len], &mut deferral),
                peer: Peer::new(address, Transport::Udp, listener),
                deferral,
                reply_to: ReplyTo::Datagram(Arc::clone(socket), path),
            }
        };
        self.deferred.extend(self.batch.deferred.drain(..).map(query));
        self.deferred.len() as u64
    }

    /// After a panic, whose replies are on their way: a new responder, unless there were too many.
    #[cold]
    fn replace_responder(&mut self) -> Result<(), Fault> {
        self.counters.panics.add(1);
        tracing::error!(address = %self.socket.address(), "the engine panicked on a UDP batch");
        if self.faults.is_spent() {
            return Err(Fault::Panic);
        }
        self.responder = (self.make)();
        Ok(())
    }
}

/// A received batch of datagrams as the engine sees it.
struct ReceivedBatch {
    /// The datagrams that were received.
    datagrams: DatagramBatch,
    /// On which listener.
    listener: u16,
    /// The datagrams that are answered later, by their places.
    deferred: Vec<(usize, Deferral)>,
}

impl ReceivedBatch {
    /// After a panic: SERVFAIL for each query that has no reply yet, silence for what was none.
    ///
    /// A reply of the query's own length cannot be told from a response that a stranger sent; both
    /// are left out, for the one client asks again and the other must not be echoed.
    fn fail_unanswered(&mut self) {
        for index in 0..self.datagrams.len() {
            let received = self.datagrams.received_len(index);
            let datagram = self.datagrams.get(index);
            if *datagram.len == received {
                *datagram.len = servfail::write(datagram.buffer, received);
            }
        }
    }
}

impl Batch for ReceivedBatch {
    #[inline]
    fn len(&self) -> usize {
        self.datagrams.len()
    }

    #[inline]
    fn get(&mut self, index: usize) -> Message<'_> {
        let datagram = self.datagrams.get(index);
        let (address, listener) = (datagram.peer, self.listener);
        let peer = Peer::new(address, Transport::Udp, listener);
        Message { peer, buffer: datagram.buffer, len: datagram.len }
    }

    fn defer(&mut self, index: usize, deferral: Deferral) {
        self.deferred.push((index, deferral));
    }
}
