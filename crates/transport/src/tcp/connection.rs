//! One connection, from admission to its end.

use std::future::{pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use zonda_deferral::{Deferred, ReplyTo, Responder};
use zonda_engine::{Peer, Transfer, TransferError};

use super::admission::{Activity, Ticket};
use super::executor::{DeferredMessages, append_reply};
use super::{Stop, TcpServer, transfer};

/// How long a stopped connection waits for bytes that are on their way.
const STOP_GRACE: Duration = Duration::from_millis(50);
/// How long a stopped connection goes on answering a client that goes on asking.
const STOP_MAX: Duration = Duration::from_secs(1);
/// How long a connection without a waiting client stays open after a hand-over, at most: longer
/// than a reply and the query behind it are on their way, and no longer than a client may be idle.
const HANDED_OVER_GRACE: Duration = Duration::from_secs(1);
const HANDED_OVER_MAX: Duration = Duration::from_secs(10);
/// How long a connection is given to come to a point between two queries after that.
const LAST_QUERIES_MAX: Duration = Duration::from_secs(1);
/// How long it is given instead while queries wait that were read before: as long as code and other
/// servers take at most, unless their limits were raised.
const LAST_REPLIES_MAX: Duration = Duration::from_secs(7);
/// Queries of one connection that wait for other servers at once. More are not read until one of
/// these is answered.
const WAITING_MAX: usize = 128;
/// How long a connection lasts at least while one of them waits: longer than any is fetched.
const WAITING_IDLE_MAX: Duration = Duration::from_secs(30);
/// How long to wait for the client's end of a connection that the server has ended first.
const LINGER_MAX: Duration = Duration::from_millis(500);

/// Why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The client has ended it and has all its replies.
    Client,
    /// The server stops, and what had arrived is answered.
    Stopped,
    /// The connection made room for another.
    Evicted,
    /// No message came within the idle timeout.
    IdleTimeout,
    /// A message took too long to come.
    ReadTimeout,
    /// Replies took too long to go.
    WriteTimeout,
    /// The client has sent as many queries as one connection may carry.
    QueryLimit,
    /// A transfer cannot go on.
    Transfer(TransferError),
    /// Reset, or another error of the connection.
    Error,
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Error
    }
}

/// Brings replies to queries that were answered later.
type ReplyChannel = (mpsc::Sender<Vec<u8>>, mpsc::Receiver<Vec<u8>>);

/// A connection and all that is kept for it: an idle one has two empty vectors.
pub(super) struct Connection<R> {
    /// Limits, executors, counters.
    server: Arc<TcpServer<R>>,
    /// The socket of the connection.
    stream: TcpStream,
    /// The client that asks.
    peer: Peer,
    /// The place that admission gave.
    ticket: Ticket,
    /// When admission gave the place, nanoseconds of the server's clock.
    opened_at: u64,
    /// Received and not answered yet: part of a message, or more than one write of replies takes.
    /// At most a message and one read.
    input: Vec<u8>,
    /// Replies that the client has not taken yet. At most one message more than a full write.
    output: Vec<u8>,
    /// The transfer whose messages the client is being sent.
    transfer: Option<Box<Transfer>>,
    /// Takes replies to queries that were answered later; made with the first of them.
    later: Option<ReplyChannel>,
    /// Queries that are still to be answered that way.
    waiting: usize,
    /// When the message whose beginning is in `input` began to arrive.
    message_since: Instant,
    /// Queries answered so far.
    queries: u64,
    /// The client will send no more.
    is_half_closed: bool,
    /// How the connection ends, once the server stops.
    ending: Option<Ending>,
}

/// How a connection ends when the server stops: by itself when the client pauses, else between two
/// queries.
#[derive(Clone, Copy)]
struct Ending {
    /// How long the client may pause.
    pause_max: Duration,
    /// From when on it ends as soon as all that was received is answered.
    last_queries: Instant,
}

impl<R: Responder> Connection<R> {
    /// A connection just admitted.
    pub(super) fn new(
        server: Arc<TcpServer<R>>,
        stream: TcpStream,
        peer: Peer,
        (ticket, opened_at): (Ticket, u64),
    ) -> Self {
        Self {
            server,
            stream,
            peer,
            ticket,
            opened_at,
            input: Vec::new(),
            output: Vec::new(),
            transfer: None,
            later: None,
            waiting: 0,
            message_since: Instant::now(),
            queries: 0,
            is_half_closed: false,
            ending: None,
        }
    }

    /// Serves until either side ends it, then counts why.
    pub(super) async fn run(mut self, mut stop: watch::Receiver<Stop>) {
        let end = loop {
            if let Err(end) = self.step(&mut stop).await {
                break end;
            }
        };
        if let Some(transfer) = self.transfer.take() {
            transfer::log_failure(&transfer, self.server.clock.now(), &end);
        }
        let counters = &self.server.counters;
        let counter = match end {
            // An eviction is counted by the connection that asked for it.
            End::Client | End::Stopped | End::Evicted => None,
            End::IdleTimeout => Some(&counters.idle_timeouts),
            End::ReadTimeout => Some(&counters.read_timeouts),
            End::WriteTimeout => Some(&counters.write_timeouts),
            End::QueryLimit => Some(&counters.query_limits),
            End::Transfer(_) | End::Error => Some(&counters.errors),
        };
        if let Some(counter) = counter {
            counter.add(1);
        }
        if matches!(end, End::Stopped | End::QueryLimit) {
            self.linger().await;
        }
    }

    /// Delivers what is to be sent, answers what has been received, or waits for more; in this
    /// order, so that a client that does not read is not read from.
    async fn step(&mut self, stop: &mut watch::Receiver<Stop>) -> Result<(), End> {
        let how = *stop.borrow();
        self.begin_ending(how);
        self.deliver().await?;
        if self.is_late_by(self.patience()) {
            return Err(End::Stopped);
        }
        if self.transfer.is_some() {
            return self.go_on().await;
        }
        if self.answer()? {
            return Ok(());
        }
        if self.is_half_closed && self.waiting == 0 {
            return Err(End::Client);
        }
        if self.wait(stop).await? { self.read() } else { Ok(()) }
    }

    /// Ends soon, if the server stops.
    fn begin_ending(&mut self, stop: Stop) {
        let (pause_max, patience) = match stop {
            Stop::No => return,
            Stop::Now => (STOP_GRACE, STOP_MAX),
            Stop::HandedOver => {
                (HANDED_OVER_GRACE, self.server.limits.idle_max().min(HANDED_OVER_MAX))
            }
        };
        let ending = || Ending { pause_max, last_queries: Instant::now() + patience };
        self.ending.get_or_insert_with(ending);
    }

    /// How long it may last when the time in which it may end by itself is over.
    fn patience(&self) -> Duration {
        if self.waiting > 0 { LAST_REPLIES_MAX } else { LAST_QUERIES_MAX }
    }

    /// Whether the time in which it may end by itself is over, for as long as `more`.
    fn is_late_by(&self, more: Duration) -> bool {
        self.ending.is_some_and(|ending| Instant::now() >= ending.last_queries + more)
    }

    /// Sends all output.
    async fn deliver(&mut self) -> Result<(), End> {
        let mut sent = 0;
        let deadline = Instant::now() + self.server.limits.write_max();
        while sent < self.output.len() {
            match self.stream.try_write(&self.output[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let writable = timeout_at(deadline, self.stream.writable()).await;
                    writable.map_err(|_| End::WriteTimeout)??;
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.output = Vec::new();
        Ok(())
    }

    /// Answers whole messages of the input, at most one write of replies; whether there were any.
    fn answer(&mut self) -> Result<bool, End> {
        let left = self.queries_left();
        if left == 0 && self.waiting == 0 {
            return Err(End::QueryLimit);
        }
        if self.input.is_empty() {
            return Ok(false);
        }
        let left = left.min((WAITING_MAX - self.waiting) as u64);
        let mut later = Vec::new();
        let mut executor = self.server.executors.take();
        let to = (&mut self.output, &mut later);
        let done = executor.answer_all(&self.peer, &self.input, to, left);
        drop(executor);
        self.transfer = done.transfer;
        self.defer(later);
        if done.queries == 0 {
            return Ok(false);
        }
        self.queries += done.queries;
        self.message_since = Instant::now();
        if done.octets == self.input.len() {
            self.input = Vec::new();
        } else {
            self.input.drain(..done.octets);
        }
        Ok(true)
    }

    /// Looks up addresses that the transfer needs, or writes messages, as many as one write takes;
    /// the client has taken all former ones.
    async fn go_on(&mut self) -> Result<(), End> {
        let now = self.server.clock.now();
        let Some(transfer) = &mut self.transfer else { return Ok(()) };
        if transfer.needs_addresses() {
            let pause = (self.server.expand_aliases)(transfer, now).map_err(End::Transfer)?;
            match pause {
                Some(Duration::ZERO) => yield_now().await,
                Some(pause) => sleep(pause).await,
                None => {}
            }
            return Ok(());
        }
        let has_more = transfer::write(transfer, now, &mut self.output).map_err(End::Transfer)?;
        if !has_more {
            transfer::log_success(transfer, now);
            self.transfer = None;
            self.server.counters.replied.add(1);
        }
        yield_now().await; // other connections of the thread have their turn
        Ok(())
    }

    /// Queries that the client may still ask.
    fn queries_left(&self) -> u64 {
        match self.server.limits.queries_max() {
            0 => u64::MAX,
            max => max.saturating_sub(self.queries), // it may have been lowered
        }
    }

    /// Hands over queries that are answered later.
    fn defer(&mut self, later: DeferredMessages) {
        if later.is_empty() {
            return;
        }
        let (sender, _) = self.later.get_or_insert_with(|| mpsc::channel(WAITING_MAX));
        self.waiting += later.len();
        let deferred = later.into_iter().map(|(query, deferral)| {
            let reply_to = ReplyTo::Connection(sender.clone());
            Deferred { query, peer: self.peer, deferral, reply_to }
        });
        self.server.deferrals.submit(&mut deferred.collect());
    }

    /// Takes a reply to a query that was answered later. Silence counts as a reply of no octets.
    fn take_reply(&mut self, reply: &[u8]) {
        self.waiting -= 1;
        if !reply.is_empty() {
            append_reply(&mut self.output, reply);
            self.server.counters.replied.add(1);
        }
    }

    /// Waits until there is something to read or to send, but no longer than the connection may
    /// last; returns whether to read.
    async fn wait(&mut self, stop: &mut watch::Receiver<Stop>) -> Result<bool, End> {
        let is_ending = self.ending.is_some();
        let is_late = self.is_late_by(Duration::ZERO);
        if self.waiting == 0 && is_late {
            return Ok(true); // what there is to read is read, no more is waited for
        }
        let (deadline, end) = self.deadline();
        let may_read = self.waiting < WAITING_MAX && self.queries_left() > 0;
        let reads = may_read && !self.is_half_closed && !is_late;
        let activity = self.activity();
        if activity.is_some_and(|activity| !self.ticket.set_waiting(activity)) {
            return Err(End::Evicted);
        }
        let mut reply = None;
        let waited = tokio::select! {
            biased;
            how = stop.wait_for(|stop| *stop != Stop::No), if !is_ending => {
                let how = how.map_or(Stop::Now, |how| *how);
                self.begin_ending(how);
                Ok(false)
            }
            () = self.ticket.evicted(), if !is_ending => Err(End::Evicted),
            octets = next_reply(&mut self.later, self.waiting) => {
                reply = Some(octets);
                Ok(false)
            }
            readable = self.stream.readable(), if reads => {
                readable.map(|()| true).map_err(End::from)
            }
            () = sleep_until(deadline) => Err(end),
        };
        if let Some(reply) = reply {
            self.take_reply(&reply);
        }
        if activity.is_some() && !self.ticket.set_busy() {
            return Err(End::Evicted);
        }
        waited
    }

    /// Returns what the connection waits for, if it may be evicted meanwhile: not while it ends by
    /// itself, or a query is to be answered.
    fn activity(&self) -> Option<Activity> {
        if self.ending.is_some() || self.waiting > 0 {
            return None;
        }
        if self.queries == 0 {
            return Some(Activity::Opened(self.opened_at));
        }
        let now = self.server.clock.monotonic_nanos();
        if self.input.is_empty() {
            return Some(Activity::Idle(now));
        }
        let nanos = u64::try_from(self.message_since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Some(Activity::HalfSent(now.saturating_sub(nanos)))
    }

    /// How long to wait for what happens next, and what it means if nothing does.
    fn deadline(&self) -> (Instant, End) {
        let limits = &self.server.limits;
        if let Some(Ending { pause_max, last_queries }) = self.ending {
            return match self.waiting {
                0 => (last_queries.min(Instant::now() + pause_max), End::Stopped),
                _ => (last_queries + LAST_REPLIES_MAX, End::Stopped),
            };
        }
        if self.waiting > 0 {
            return (Instant::now() + limits.idle_max().max(WAITING_IDLE_MAX), End::IdleTimeout);
        }
        if !self.input.is_empty() {
            return (self.message_since + limits.read_max(), End::ReadTimeout);
        }
        (Instant::now() + limits.idle_max(), End::IdleTimeout)
    }

    /// Takes what has arrived, if anything has.
    fn read(&mut self) -> Result<(), End> {
        let mut chunk = [0; 16 << 10];
        match self.stream.try_read(&mut chunk) {
            Ok(0) => self.is_half_closed = true,
            Ok(count) => {
                if self.input.is_empty() {
                    self.message_since = Instant::now();
                }
                self.input.extend_from_slice(&chunk[..count]);
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error.into()),
            Err(_) if self.is_late_by(Duration::ZERO) => return Err(End::Stopped),
            Err(_) => {}
        }
        Ok(())
    }

    /// Ends the server's side and waits for the client's: closing while bytes arrive would reset
    /// the connection, and the client would lose replies that it has not read yet.
    async fn linger(mut self) {
        let shutdown = poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await;
        let deadline = Instant::now() + LINGER_MAX;
        let mut is_open = shutdown.is_ok();
        while is_open
            && Instant::now() < deadline
            && matches!(timeout_at(deadline, self.stream.readable()).await, Ok(Ok(())))
        {
            let read = self.stream.try_read(&mut [0; 4096]);
            is_open = match read {
                Ok(count) => count > 0,
                Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            };
        }
    }
}

/// The next reply to a query that was answered later; never, if none is waited for.
async fn next_reply(later: &mut Option<ReplyChannel>, waiting: usize) -> Vec<u8> {
    match later {
        // The connection holds a sender itself, so that the channel never closes.
        Some((_, replies)) if waiting > 0 => replies.recv().await.unwrap_or_default(),
        _ => pending().await,
    }
}
