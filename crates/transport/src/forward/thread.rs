//! The thread that asks upstreams.
//!
//! It waits for its inbox, its sockets and its timers at once, and for nothing else. A question is
//! asked again at the next upstream when no answer came for a while, and at once when an upstream
//! says that it will not answer; answers to all queries sent for it are welcome until it is done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use zonda_cache::Lifetime;
use zonda_engine::{Fetched, Now, Reason};
use zonda_netio::{Poller, ReplyBatch, UdpSocket};
use zonda_wire::Rcode;

use super::ask::{Body, BodyReader, Dice, Question};
use super::counters::ForwarderCounters;
use super::fetch::{Fetch, FetchId, Fetches, Groups};
use super::inbox::{Contents, Deferred, Inbox, StreamAnswer, Way};
use super::judge::{Step, judge};
use super::ports::{Ports, Waiting};
use super::stream;
use crate::clock::Clock;
use crate::faults::{Failure, FailureSender, Fault, FaultBudget, survives};
use crate::responder::Responder;

/// The inbox among what is waited for; ports count from 0.
const INBOX: usize = usize::MAX;
/// Longest wait.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Questions that are fetched at once.
const FETCHES_MAX: usize = 16_384;
/// Clients that wait for one of them.
const WAITERS_MAX: usize = 1024;
/// How long a stopped thread goes on fetching what clients wait for.
const DRAIN_MAX: Duration = Duration::from_secs(5);
/// Octets of the longest reply.
const MESSAGE_MAX: usize = u16::MAX as usize;

/// What a thread needs to know.
pub struct ForwarderConfig {
    /// The thread's name, of which the system shows 15 octets.
    pub name: String,
    /// Where its work comes from.
    pub inbox: Arc<Inbox>,
    /// Who can be asked.
    pub groups: Arc<ArcSwap<Groups>>,
    /// Tells the time as those do who received the queries.
    pub clock: Clock,
    /// Runs what goes over streams.
    pub runtime: Handle,
}

/// A running thread. Dropping it leaves the thread running; see [`stop_forwarders`].
pub struct ForwarderThread {
    /// Tells it to stop.
    stop: Arc<AtomicBool>,
    /// Wakes it.
    inbox: Arc<Inbox>,
    /// Ends when it has stopped or failed.
    thread: JoinHandle<()>,
    /// See [`ForwarderCounters`].
    counters: Arc<ForwarderCounters>,
}

impl ForwarderThread {
    /// Starts a thread that writes replies with what `make` makes, now and again after each panic.
    ///
    /// # Errors
    /// When the system has no thread or descriptor left.
    pub fn spawn<R: Responder>(
        config: ForwarderConfig,
        make: impl FnMut() -> R + Send + 'static,
        failures: FailureSender,
    ) -> io::Result<Self> {
        let stop = Arc::<AtomicBool>::default();
        let counters = Arc::<ForwarderCounters>::default();
        let inbox = Arc::clone(&config.inbox);
        let name = config.name.clone();
        let is_stopped = Arc::clone(&stop);
        let mut forwarder = Forwarder::new(config, make, Arc::clone(&counters))?;
        let thread = thread::Builder::new().name(name.clone()).spawn(move || {
            if let Err(fault) = forwarder.run(&is_stopped) {
                tracing::error!(thread = name, ?fault, "giving up");
                // A full channel holds failures enough to end the process.
                let _ = failures.try_send(Failure { worker: name, fault });
            }
        })?;
        Ok(Self { stop, inbox, thread, counters })
    }

    /// What it has done so far.
    pub fn counters(&self) -> &Arc<ForwarderCounters> {
        &self.counters
    }
}

/// Stops threads once nobody waits for what they fetch, which takes at most five seconds. Those
/// that hand queries over must have stopped before.
///
/// Returns whether all have ended before `deadline`.
pub fn stop_forwarders(threads: Vec<ForwarderThread>, deadline: Instant) -> bool {
    for thread in &threads {
        thread.stop.store(true, Ordering::Release);
        thread.inbox.wake().wake();
    }
    while Instant::now() < deadline && threads.iter().any(|it| !it.thread.is_finished()) {
        thread::sleep(Duration::from_millis(1));
    }
    threads.iter().all(|thread| thread.thread.is_finished())
}

/// What the thread owns.
struct Forwarder<R, F> {
    config: ForwarderConfig,
    responder: R,
    make: F,
    counters: Arc<ForwarderCounters>,
    poller: Poller,
    ports: Ports,
    fetches: Fetches,
    /// When to look at which fetch.
    timers: BinaryHeap<Reverse<(u64, FetchId)>>,
    dice: Dice,
    reader: BodyReader,
    /// Replies over UDP, by the socket that they leave from.
    replies: Vec<(Arc<UdpSocket>, ReplyBatch)>,
    /// A query, then its reply.
    buffer: Box<[u8]>,
    /// The groups whose upstreams have ports.
    groups: Arc<Groups>,
}

impl<R: Responder, F: FnMut() -> R> Forwarder<R, F> {
    /// One that waits for its inbox only.
    fn new(
        config: ForwarderConfig,
        mut make: F,
        counters: Arc<ForwarderCounters>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(config.inbox.wake(), INBOX)?;
        Ok(Self {
            responder: make(),
            make,
            counters,
            poller,
            ports: Ports::new(),
            fetches: Fetches::default(),
            timers: BinaryHeap::new(),
            dice: Dice::new(),
            reader: BodyReader::new(),
            replies: Vec::new(),
            buffer: vec![0; MESSAGE_MAX].into(),
            groups: config.groups.load_full(),
            config,
        })
    }

    /// Works until told to stop and nobody waits any more; an error is one fault too many.
    fn run(&mut self, stop: &AtomicBool) -> Result<(), Fault> {
        let mut faults = FaultBudget::new();
        let mut drain_until = None;
        loop {
            let ready = match self.wait() {
                Ok(ready) => ready,
                Err(error) if faults.is_spent() => return Err(Fault::Receive(error)),
                Err(_) => continue,
            };
            if !survives(|| self.turn(&ready)) {
                tracing::error!("a forwarder panicked");
                if faults.is_spent() {
                    return Err(Fault::Panic);
                }
                self.responder = (self.make)();
                self.give_up_all();
            }
            if stop.load(Ordering::Acquire) {
                let until = *drain_until.get_or_insert_with(|| Instant::now() + DRAIN_MAX);
                if self.fetches.len() == 0 || Instant::now() >= until {
                    self.give_up_all();
                    return Ok(());
                }
            }
        }
    }

    /// Waits until there is something to do; returns what can be read.
    fn wait(&mut self) -> io::Result<Vec<usize>> {
        let limit = match self.timers.peek() {
            Some(Reverse((at, _))) => {
                let now = self.config.clock.monotonic_nanos();
                Duration::from_nanos(at.saturating_sub(now)).min(WAIT_MAX)
            }
            None => WAIT_MAX,
        };
        Ok(self.poller.wait(limit)?.collect())
    }

    /// Does all there is to do now.
    fn turn(&mut self, ready: &[usize]) {
        let now = self.config.clock.now();
        for &number in ready {
            if number == INBOX {
                self.empty_inbox(now);
            } else {
                self.receive(number, now);
            }
        }
        while let Some(Reverse((at, id))) = self.timers.peek().copied()
            && at <= now.monotonic_nanos
        {
            self.timers.pop();
            if self.fetches.get(id).is_some_and(|fetch| fetch.look_at_nanos == at) {
                self.look_at(id, now);
            }
        }
        for (socket, replies) in &mut self.replies {
            if !replies.is_empty() {
                replies.send(socket);
            }
        }
    }

    /// Takes what was handed over.
    fn empty_inbox(&mut self, now: Now) {
        let Contents { queries, answers } = self.config.inbox.take_all();
        self.see_groups();
        self.counters.received.add(queries.len() as u64);
        for query in queries {
            self.admit(query, now);
        }
        for StreamAnswer { fetch: id, upstream, query, message } in answers {
            let Some(fetch) = self.fetches.get(id) else { continue };
            fetch.streams -= 1;
            let message = message.unwrap_or_default();
            let step = match judge(&fetch.question, &query, &message, true) {
                Step::Ignore => Step::Elsewhere, // nothing else will come over that stream
                step => step,
            };
            self.take(id, step, (upstream, query, message), now);
        }
    }

    /// Closes the ports to upstreams that nobody is forwarded to any more.
    fn see_groups(&mut self) {
        let groups = self.config.groups.load();
        if !Arc::ptr_eq(&groups, &self.groups) {
            self.groups = Arc::clone(&groups);
            self.ports.retain(|upstream| {
                groups.values().any(|group| group.upstreams.contains(&upstream))
            });
        }
    }

    /// Has a query wait for its answer; begins to fetch it if nobody does.
    fn admit(&mut self, query: Deferred, now: Now) {
        let number = query.deferral.forward;
        let Some(question) = Question::of(number, &query.query) else {
            return self.fail(vec![query], Reason::UpstreamFailed, now);
        };
        if let Some(fetch) = self.fetches.find(&question) {
            if fetch.waiters.len() < WAITERS_MAX {
                fetch.waiters.push(query);
                return self.counters.coalesced.add(1);
            }
            return self.turn_away(query, now);
        }
        let Some(group) = self.groups.get(&number).cloned() else {
            return self.fail(vec![query], Reason::UpstreamFailed, now);
        };
        if self.fetches.len() >= FETCHES_MAX {
            return self.turn_away(query, now);
        }
        let first = self.dice.roll() as usize;
        let id = self.fetches.begin(question, group, query, (now.monotonic_nanos, first));
        self.ask(id, now);
    }

    /// Refuses a query because too many wait.
    fn turn_away(&mut self, query: Deferred, now: Now) {
        self.counters.refused.add(1);
        self.fail(vec![query], Reason::UpstreamBusy, now);
    }

    /// Asks the next upstream.
    fn ask(&mut self, id: FetchId, now: Now) {
        if let Some(fetch) = self.fetches.get(id) {
            let place = fetch.next;
            fetch.next = (place + 1) % fetch.group.upstreams.len();
            self.ask_at(place, id, now);
        }
    }

    /// Asks the upstream at this place in the group.
    fn ask_at(&mut self, place: usize, id: FetchId, now: Now) {
        let Some(fetch) = self.fetches.get(id) else { return };
        let upstream = fetch.group.upstreams[place];
        fetch.tries += 1;
        self.counters.sent.add(1);
        self.counters.repeated.add(u64::from(fetch.tries > 1));
        // Without a port it is as if the query were lost.
        if let Ok((port, query_id)) = self.ports.choose(upstream, &self.poller, &mut self.dice) {
            let query = fetch.question.query(query_id, fetch.how, &mut self.dice);
            fetch.asked.push((port, query_id));
            self.ports.send(port, query_id, Waiting { fetch: id, upstream: place, query });
        }
        fetch.look_at_nanos = fetch.next_look(now.monotonic_nanos);
        self.timers.push(Reverse((fetch.look_at_nanos, id)));
    }

    /// Looks at a fetch whose time has come: gives it up, or asks once more.
    fn look_at(&mut self, id: FetchId, now: Now) {
        let Some(fetch) = self.fetches.get(id) else { return };
        let waited = Duration::from_nanos(now.monotonic_nanos - fetch.since_nanos);
        let (timeout, stale_after) = (fetch.group.timeout, fetch.group.stale_after);
        if waited >= timeout {
            self.counters.timed_out.add(1);
            return self.end_without_answer(id, Reason::UpstreamTimeout, now);
        }
        let is_on_its_way = fetch.streams > 0;
        if waited >= stale_after {
            self.give_stale(id, now);
        }
        if !is_on_its_way {
            return self.ask(id, now);
        }
        if let Some(fetch) = self.fetches.get(id) {
            fetch.look_at_nanos = fetch.next_look(now.monotonic_nanos);
            self.timers.push(Reverse((fetch.look_at_nanos, id)));
        }
    }

    /// Reads what a port has received.
    fn receive(&mut self, number: usize, now: Now) {
        let mut has_more = true;
        while has_more {
            // "Port unreachable" says nothing that the lost query does not say.
            has_more = self
                .ports
                .receive(number)
                .unwrap_or_else(|error| error.kind() == io::ErrorKind::ConnectionRefused);
            let messages: Vec<Vec<u8>> = self.ports.received().map(<[u8]>::to_vec).collect();
            for message in messages {
                self.read(number, message, now);
            }
        }
    }

    /// Takes a message that came to a port.
    fn read(&mut self, number: usize, message: Vec<u8>, now: Now) {
        let id = message.first_chunk().map(|id| u16::from_be_bytes(*id));
        let waiting = id.and_then(|id| Some((id, self.ports.waiting(number, id)?)));
        let found = waiting.and_then(|(id, waiting)| {
            let fetch = self.fetches.get(waiting.fetch)?;
            let step = judge(&fetch.question, &waiting.query, &message, false);
            Some((id, step))
        });
        let Some((id, step)) = found else { return self.counters.ignored.add(1) };
        if matches!(step, Step::Ignore) {
            return self.counters.ignored.add(1); // the right one may still come
        }
        if let Some(Waiting { fetch, upstream, query }) = self.ports.forget(number, id) {
            self.take(fetch, step, (upstream, query, message), now);
        }
    }

    /// Does what a message for a fetch calls for, which came from an upstream to a query.
    fn take(
        &mut self,
        id: FetchId,
        step: Step,
        (upstream, query, message): (usize, Vec<u8>, Vec<u8>),
        now: Now,
    ) {
        match step {
            Step::Ignore => self.counters.ignored.add(1),
            Step::Accept => self.accept(id, message, now),
            Step::OverTcp => self.ask_over_tcp(id, (upstream, query), now),
            Step::Otherwise { edns, mixed_case } => {
                if let Some(fetch) = self.fetches.get(id) {
                    fetch.how.edns &= edns;
                    fetch.how.mixed_case &= mixed_case;
                    self.ask_at(upstream, id, now);
                }
            }
            Step::Elsewhere => self.ask_elsewhere(id, now),
        }
    }

    /// Ends a fetch with an answer.
    fn accept(&mut self, id: FetchId, mut message: Vec<u8>, now: Now) {
        let Some(fetch) = self.fetches.get(id) else { return };
        let Some(body) = self.reader.read(&fetch.question, &mut message) else {
            return self.ask_elsewhere(id, now);
        };
        self.counters.answered.add(1);
        let Some(fetch) = self.end(id) else { return };
        keep(&fetch, &body, now);
        let fetched = Fetched {
            rcode: body.rcode,
            counts: body.counts,
            body: &body.octets,
            reason: Reason::Forwarded,
        };
        self.answer(fetch.waiters, &fetched, now);
    }

    /// Asks another upstream because one will not answer; gives up when none will.
    fn ask_elsewhere(&mut self, id: FetchId, now: Now) {
        let Some(fetch) = self.fetches.get(id) else { return };
        fetch.refusals += 1;
        if fetch.refusals < fetch.group.upstreams.len().max(2) {
            return self.ask(id, now);
        }
        self.counters.failed.add(1);
        self.end_without_answer(id, Reason::UpstreamFailed, now);
    }

    /// Asks the upstream that gave a truncated answer once more, over TCP.
    fn ask_over_tcp(&mut self, id: FetchId, (place, query): (usize, Vec<u8>), now: Now) {
        let Some(fetch) = self.fetches.get(id) else { return };
        fetch.streams += 1;
        let upstream = fetch.group.upstreams[place];
        let waited = Duration::from_nanos(now.monotonic_nanos - fetch.since_nanos);
        let limit = fetch.group.timeout.saturating_sub(waited);
        let inbox = Arc::clone(&self.config.inbox);
        self.counters.sent.add(1);
        self.config.runtime.spawn(async move {
            let message = stream::ask(upstream, &query, limit).await;
            let answer = StreamAnswer { fetch: id, upstream: place, query, message };
            inbox.put(|contents| contents.answers.push(answer));
        });
    }

    /// Ends a fetch that nobody has answered: with what had expired, or else with a failure.
    fn end_without_answer(&mut self, id: FetchId, reason: Reason, now: Now) {
        self.give_stale(id, now);
        if let Some(fetch) = self.end(id) {
            self.fail(fetch.waiters, reason, now);
        }
    }

    /// Answers all who wait for a fetch with an answer that has expired, if there is one.
    fn give_stale(&mut self, id: FetchId, now: Now) {
        let Some(fetch) = self.fetches.get(id).filter(|fetch| !fetch.waiters.is_empty()) else {
            return;
        };
        let mut body = vec![0; MESSAGE_MAX];
        let (key, secs) = (fetch.cache_key(), now.monotonic_secs());
        let Some(hit) = fetch.group.cache.find(&key, secs, &mut body) else { return };
        let waiters = std::mem::take(&mut fetch.waiters);
        self.counters.stale.add(waiters.len() as u64);
        let fetched = Fetched {
            rcode: Rcode(hit.flags & 0x000f),
            counts: hit.counts,
            body: &body[..hit.body_bytes.min(MESSAGE_MAX)],
            reason: Reason::Stale,
        };
        self.answer(waiters, &fetched, now);
    }

    /// Ends a fetch; answers that still come are not waited for.
    fn end(&mut self, id: FetchId) -> Option<Fetch> {
        let fetch = self.fetches.end(id)?;
        for &(port, query_id) in &fetch.asked {
            self.ports.forget(port, query_id);
        }
        Some(fetch)
    }

    /// Answers SERVFAIL.
    fn fail(&mut self, waiters: Vec<Deferred>, reason: Reason, now: Now) {
        let (rcode, counts) = (Rcode::SERVFAIL, [0; 3]);
        self.answer(waiters, &Fetched { rcode, counts, body: &[], reason }, now);
    }

    /// Answers queries.
    fn answer(&mut self, waiters: Vec<Deferred>, fetched: &Fetched<'_>, now: Now) {
        for Deferred { query, peer, way, .. } in waiters {
            self.buffer[..query.len()].copy_from_slice(&query);
            let len = self.responder.resume(now, &peer, &mut self.buffer, query.len(), fetched);
            let reply = &self.buffer[..len];
            match way {
                // It is only gone when the connection is.
                Way::Tcp(sender) => _ = sender.try_send(reply.to_vec()),
                Way::Udp(_, _) if reply.is_empty() => {}
                Way::Udp(socket, path) => {
                    let same = |it: &(Arc<UdpSocket>, _)| Arc::ptr_eq(&it.0, &socket);
                    let place = self.replies.iter().position(same).unwrap_or_else(|| {
                        self.replies.push((socket, ReplyBatch::default()));
                        self.replies.len() - 1
                    });
                    self.replies[place].1.push(path, reply);
                }
            }
        }
    }

    /// Ends all fetches with a failure.
    fn give_up_all(&mut self) {
        let now = self.config.clock.now();
        for fetch in self.fetches.end_all() {
            for &(port, query_id) in &fetch.asked {
                self.ports.forget(port, query_id);
            }
            self.fail(fetch.waiters, Reason::UpstreamFailed, now);
        }
        self.turn(&[]);
    }
}

/// Keeps an answer for as long as it says.
fn keep(fetch: &Fetch, body: &Body, now: Now) {
    if body.ttl_secs == 0 {
        return;
    }
    let answer = zonda_cache::Answer {
        kind: body.kind,
        flags: body.rcode.0,
        ede: None,
        counts: body.counts,
        body: &body.octets,
    };
    let lifetime = Lifetime {
        now_secs: now.monotonic_secs(),
        ttl_secs: body.ttl_secs,
        stale_secs: u32::try_from(fetch.group.stale_max.as_secs()).unwrap_or(u32::MAX),
    };
    // What is too large for the cache is fetched each time.
    let _ = fetch.group.cache.insert(&fetch.cache_key(), &answer, lifetime);
}
