//! The thread that asks upstreams.
//!
//! It waits for its inbox, its sockets and its timers at once, and for nothing else. Answers that
//! have arrived are taken before timers, so that a busy thread calls nothing overdue that is there.
//!
//! While it sleeps, the thread that brings queries does its work with them: that spares a change of
//! threads for each. Its state is behind a lock for that, which it holds while it works; a thread
//! that brings queries never waits for it, but leaves them in the inbox then. What a turn sends, to
//! upstreams and to clients, leaves after the state is unlocked.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use zonda_deferral::faults::{Failure, FailureSender, Fault, FaultBudget, survives};
use zonda_deferral::{Clock, Peak, Queue, Replies, Responder, SocketReplies};
use zonda_engine::{Now, Reason, Snapshot};
use zonda_netio::{Alarm, Poller, ReplyBatch};
use zonda_upstream::exchange::Action;
use zonda_upstream::numbers::NumberMap;
use zonda_upstream::{Admission, Ticket};

use crate::body::BodyReader;
use crate::counters::ForwarderCounters;
use crate::departures::Departures;
use crate::exchanges::BODY_BYTES_MAX;
use crate::fetch::{FetchId, Fetches};
use crate::group::{Bounds, Groups, KnownGroup, Report};
use crate::inbox::{AdmitNow, Contents, Forwarders, Inbox, Queries};
use crate::pending::PendingQuery;
use crate::ports::{Ports, Probe};
use crate::random::RandomSource;

/// The inbox among what is waited for; ports count from 0.
const INBOX: usize = usize::MAX;
/// The next moment for which there is something to do.
const ALARM: usize = usize::MAX - 1;
/// How long a stopped thread goes on fetching what clients wait for.
const DRAIN_MAX: Duration = Duration::from_secs(5);
/// How often a stopped thread looks whether the others have ended, too, nanoseconds.
const DRAIN_LOOK_NANOS: u64 = 20_000_000;
/// Most replies of a turn for which memory is kept until the next.
const REPLIES_KEPT_MAX: usize = 1024;
/// How long after a peak of waiting queries memory is given back, nanoseconds.
const PEAK_ENDS_NANOS: u64 = 2_000_000_000;

/// What a thread needs to know.
pub struct ForwarderConfig {
    /// The thread's name, of which the system shows 15 octets.
    pub name: String,
    /// Where its work comes from.
    pub inbox: Arc<Inbox>,
    /// All threads: a chain may lead to what another one fetches.
    pub forwarders: Forwarders,
    /// The zones of this server, which win over what others say of their names.
    pub snapshot: Arc<ArcSwap<Snapshot>>,
    /// Who can be asked.
    pub groups: Arc<ArcSwap<Groups>>,
    /// Tells the time as those do who received the queries.
    pub clock: Clock,
    /// Runs what goes over streams.
    pub runtime: Handle,
    /// Most ports from which this thread asks upstreams at a time, at least 2.
    pub ports_max: usize,
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
        let forwarder = Mutex::new(Forwarder::new(config, make, Arc::clone(&counters))?);
        let shared = Arc::new(Shared { forwarder, spare: Mutex::default() });
        let work: Weak<Shared<_, _>> = Arc::downgrade(&shared);
        inbox.set_work(work);
        let thread = thread::Builder::new().name(name.clone()).spawn(move || {
            // Stands if the thread panics outside of what it survives.
            let mut outcome = Err(Fault::Panic);
            survives(|| outcome = run(&shared, &is_stopped));
            if let Err(fault) = outcome {
                let told = format!("{fault:?}");
                // A full channel holds failures enough to end the process. Told first: a log that
                // a program writes may panic.
                let _ = failures.try_send(Failure { worker: name.clone(), fault });
                tracing::error!(thread = name, fault = told, "giving up");
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
pub(crate) struct Forwarder<R, F> {
    pub(crate) config: ForwarderConfig,
    make: F,
    pub(crate) counters: Arc<ForwarderCounters>,
    pub(crate) poller: Poller,
    /// Wakes the thread when a timer may be due.
    alarm: Alarm,
    pub(crate) ports: Ports,
    pub(crate) fetches: Fetches,
    /// Who may wait.
    pub(crate) admission: Admission,
    /// How many have waited, or were fetched.
    peak: Peak,
    /// What each query waits for, by its place.
    pub(crate) places: Vec<Option<(Ticket, FetchId)>>,
    /// Queries taken from the inbox and not looked at yet, the next one last.
    taken: Vec<PendingQuery>,
    /// What to do when.
    timers: BinaryHeap<Reverse<(u64, Timer)>>,
    pub(crate) random: RandomSource,
    pub(crate) reader: BodyReader,
    pub(crate) replies: Replies<R>,
    /// The body of a kept answer.
    pub(crate) body: Box<[u8]>,
    /// A message that was received.
    pub(crate) message: Vec<u8>,
    /// Empty room for what an exchange wants done.
    pub(crate) actions: Vec<Action>,
    /// The groups as they were when they were last looked at.
    seen: Arc<Groups>,
    /// How much of all this thread may take on.
    pub(crate) share: Bounds,
    /// What is known of them.
    pub(crate) groups: NumberMap<u32, KnownGroup>,
    /// How many loops had been found when that was last heeded.
    pub(crate) loops_heeded: u64,
    /// Panics, and failures to wait.
    faults: FaultBudget,
    /// Failures to receive from upstreams, of which the log is told as many.
    pub(crate) receive_faults: FaultBudget,
    /// Whether there were too many panics.
    is_spent: bool,
}

/// Room for the body of a kept answer.
fn new_body() -> Box<[u8]> {
    vec![0; BODY_BYTES_MAX].into()
}

/// What may be due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// To look at a fetch.
    Fetch(FetchId),
    /// To probe the upstreams of a group.
    Probes(u32),
    /// To wait no longer for the answer to a probe, sent from this port under this id.
    ProbeOverdue(usize, u16, Probe),
    /// To look whether the others have ended, too.
    Drain,
    /// To give memory back if a peak of waiting queries is over.
    EndPeak,
}

/// Works until told to stop; an error is one fault too many.
fn run<R: Responder, F: FnMut() -> R>(
    shared: &Shared<R, F>,
    stop: &AtomicBool,
) -> Result<(), Fault> {
    let (mut poller, inbox) = {
        let forwarder = shared.lock();
        (forwarder.poller.share(), Arc::clone(&forwarder.config.inbox))
    };
    let (mut ready, mut output) = (Vec::new(), Output::default());
    let (mut drain_until, mut is_over, mut alarm) = (None, false, Ok(()));
    while !is_over {
        ready.clear();
        let waited = alarm.and_then(|()| poller.wait(None).map(|numbers| ready.extend(numbers)));
        let mut forwarder = shared.lock();
        inbox.works_here();
        let fault = match waited {
            Ok(()) => {
                forwarder.work(|it| it.turn(&ready));
                forwarder.is_spent.then_some(Fault::Panic)
            }
            Err(error) => forwarder.faults.is_spent().then_some(Fault::Receive(error)),
        };
        if fault.is_some() {
            forwarder.give_up_all();
        }
        if stop.load(Ordering::Acquire) {
            let until = *drain_until.get_or_insert_with(|| Instant::now() + DRAIN_MAX);
            is_over = forwarder.is_drained() || Instant::now() >= until;
            if is_over {
                forwarder.give_up_all();
            }
        }
        alarm = forwarder.set_alarm();
        forwarder.swap_output(&mut output);
        drop(forwarder);
        output.send(&inbox);
        if let Some(fault) = fault {
            return Err(fault); // the queries that waited have been answered
        }
    }
    Ok(())
}

/// A forwarder's state, and memory for what is sent without it.
struct Shared<R, F> {
    /// The state.
    forwarder: Mutex<Forwarder<R, F>>,
    /// Empty outputs, of the threads that bring queries.
    spare: Mutex<Vec<Output>>,
}

impl<R, F> Shared<R, F> {
    /// The state, which a thread that brings queries may have for a moment.
    fn lock(&self) -> MutexGuard<'_, Forwarder<R, F>> {
        self.forwarder.lock().unwrap_or_else(PoisonError::into_inner) // panics are caught within
    }

    /// The empty outputs.
    fn spare(&self) -> MutexGuard<'_, Vec<Output>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Responder, F: FnMut() -> R + Send> AdmitNow for Shared<R, F> {
    fn admit_now(&self, queries: &mut Queries<'_>) {
        let Ok(mut forwarder) = self.forwarder.try_lock() else { return };
        let inbox = Arc::clone(&forwarder.config.inbox);
        inbox.stir();
        forwarder.work(|it| it.admit_all(queries));
        if forwarder.set_alarm().is_err() || forwarder.is_spent {
            inbox.wake().wake(); // the thread sees to it
        }
        let mut output = self.spare().pop().unwrap_or_default();
        forwarder.swap_output(&mut output);
        drop(forwarder);
        output.send(&inbox);
        self.spare().push(output);
    }
}

/// What a turn sends once the state is unlocked: a send may wake its receiver on the same CPU, and
/// the receiver's answer the thread, which would wait for the state then.
#[derive(Default)]
struct Output {
    /// Queries to upstreams.
    queries: Departures,
    /// Replies to clients.
    replies: Vec<SocketReplies>,
}

impl Output {
    /// Sends all; queries that the kernel refuses come back by way of the inbox.
    fn send(&mut self, inbox: &Inbox) {
        let refused = self.queries.send();
        if !refused.is_empty() {
            inbox.put(|contents| contents.refused.extend(refused));
        }
        for (socket, batch) in self.replies.iter_mut().filter(|(_, batch)| !batch.is_empty()) {
            let is_burst = batch.len() > REPLIES_KEPT_MAX;
            batch.send(socket);
            if is_burst {
                *batch = ReplyBatch::default(); // its memory is as large as the burst
            }
        }
    }
}

impl<R: Responder, F: FnMut() -> R> Forwarder<R, F> {
    /// One that has nothing to do yet.
    fn new(
        config: ForwarderConfig,
        mut make: F,
        counters: Arc<ForwarderCounters>,
    ) -> io::Result<Self> {
        let (poller, alarm) = (Poller::new()?, Alarm::new()?);
        poller.add(config.inbox.wake(), INBOX)?;
        poller.add(&alarm, ALARM)?;
        let ports = Ports::new(config.ports_max);
        Ok(Self {
            config,
            replies: Replies::new(make()),
            make,
            counters,
            poller,
            alarm,
            ports,
            fetches: Fetches::default(),
            admission: Admission::new(Bounds::default().waiting_max),
            peak: Peak::default(),
            places: Vec::new(),
            taken: Vec::new(),
            timers: BinaryHeap::new(),
            random: RandomSource::new(),
            reader: BodyReader::new(),
            body: new_body(),
            message: Vec::new(),
            actions: Vec::new(),
            seen: Arc::default(),
            share: Bounds::default(), // until the groups are seen
            groups: NumberMap::default(),
            loops_heeded: 0,
            faults: FaultBudget::new(),
            receive_faults: FaultBudget::new(),
            is_spent: false,
        })
    }

    /// Whether nobody waits any more, neither for this thread nor for another one, whose chains may
    /// lead to this one. If somebody does, looks again soon.
    fn is_drained(&mut self) -> bool {
        if self.fetches.have_waiters() {
            return false;
        }
        self.config.inbox.rest();
        let is_drained = self.config.forwarders.is_idle();
        if !is_drained {
            let look_at = self.config.clock.monotonic_nanos() + DRAIN_LOOK_NANOS;
            self.set_timer(look_at, Timer::Drain);
        }
        is_drained
    }

    /// Does something; after a panic, everybody who waits is told SERVFAIL.
    fn work(&mut self, work: impl FnOnce(&mut Self)) {
        if !survives(|| work(self)) {
            tracing::error!("a forwarder panicked");
            self.is_spent |= self.faults.is_spent();
            self.replies = Replies::new((self.make)());
            self.give_up_all();
        }
    }

    /// Has the thread woken up when the next timer is due.
    fn set_alarm(&mut self) -> io::Result<()> {
        match self.first_timer() {
            Some((at, _)) => self.alarm.set_by(at, || self.config.clock.monotonic_nanos()),
            None => Ok(()),
        }
    }

    /// Takes queries that others bring while the thread sleeps.
    fn admit_all(&mut self, queries: &mut Queries<'_>) {
        let now = self.config.clock.now();
        self.ports.begin_turn();
        self.see_groups();
        self.counters.received.add(queries.len() as u64);
        self.taken.extend(queries);
        self.taken.reverse();
        self.admit_taken(now);
        self.repeat_closed(now);
        if self.ports.take_new() {
            self.close_ports();
        }
    }

    /// Exchanges what is to be sent for an empty output.
    fn swap_output(&mut self, output: &mut Output) {
        self.ports.swap_departures(&mut output.queries);
        self.replies.swap_batches(&mut output.replies);
    }

    /// Does all there is to do now.
    fn turn(&mut self, ready: &[usize]) {
        let mut now = self.config.clock.now();
        self.ports.begin_turn();
        self.take(ready, now);
        if self.next_timer(now).is_some() {
            // The thread may have slept since it last looked.
            now = self.config.clock.now();
            let ready: Vec<usize> = match self.poller.wait(Some(Duration::ZERO)) {
                Ok(ready) => ready.collect(),
                Err(_) => Vec::new(), // the next wait tells
            };
            self.take(&ready, now);
        }
        self.heed_loops(now);
        while let Some((at, timer)) = self.next_timer(now) {
            self.timers.pop();
            match timer {
                Timer::Fetch(id) => self.on_timer(id, now),
                Timer::Probes(group) => self.send_probes(group, at, now),
                Timer::ProbeOverdue(port, id, probe) => self.probe_overdue(port, id, probe, now),
                Timer::Drain => {} // it has woken the thread
                Timer::EndPeak => self.end_peak(),
            }
        }
        self.repeat_closed(now);
        if self.ports.take_new() {
            self.close_ports();
        }
        self.counters.waiting.set(self.admission.held().into());
        self.counters.fetching.set(self.fetches.unanswered() as u64);
        self.counters.ports.set(self.ports.open_count() as u64);
        self.counters.ports_closed_early.add(self.ports.take_closed_early());
        self.counters.icmp_errors.add(self.ports.take_icmp_errors());
        if self.peak.note(self.under_way()) {
            self.set_timer(now.monotonic_nanos + PEAK_ENDS_NANOS, Timer::EndPeak);
        }
    }

    /// Queries that wait, or fetches if they are more: these go on for what comes late.
    fn under_way(&self) -> usize {
        self.fetches.len().max(self.admission.held() as usize)
    }

    /// Gives memory back if a peak of waiting queries is over: by a thread that may take its time.
    fn end_peak(&mut self) {
        if self.peak.is_over(self.under_way()) {
            let left = self.fetches.shrink();
            self.peak.gave_back(left);
            self.timers.shrink_to_fit();
            while self.places.pop_if(|place| place.is_none()).is_some() {}
            self.places.shrink_to_fit();
            self.config.runtime.spawn_blocking(zonda_netio::memory::give_back);
        }
    }

    /// The next timer, if it is due.
    fn next_timer(&mut self, now: Now) -> Option<(u64, Timer)> {
        self.first_timer().filter(|(at, _)| *at <= now.monotonic_nanos)
    }

    /// The next timer. Those of fetches that have ended or wait for another are void, and taken
    /// away here: the thread would wake up for each answer that came in time.
    fn first_timer(&mut self) -> Option<(u64, Timer)> {
        loop {
            let Reverse((at, timer)) = *self.timers.peek()?;
            let is_void = matches!(timer, Timer::Fetch(id)
                if self.fetches.get(id).is_none_or(|fetch| fetch.wake_at != at));
            if !is_void {
                return Some((at, timer));
            }
            self.timers.pop();
        }
    }

    /// Sets a timer.
    pub(crate) fn set_timer(&mut self, at: u64, timer: Timer) {
        self.timers.push(Reverse((at, timer)));
    }

    /// Takes what has come.
    fn take(&mut self, ready: &[usize], now: Now) {
        for &number in ready {
            match number {
                INBOX => self.empty_inbox(now),
                ALARM => self.alarm.rest(),
                port => self.receive(port, now),
            }
        }
    }

    /// Takes what was handed over.
    fn empty_inbox(&mut self, now: Now) {
        let contents = self.config.inbox.take_all();
        let Contents { queries, dropped, answers, refused, reports, dropped_own, dropped_other } =
            contents;
        self.see_groups();
        self.counters.received.add(queries.len() as u64 + dropped_own + dropped_other);
        self.counters.dropped_own.add(dropped_own);
        self.counters.dropped_other.add(dropped_other);
        for query in dropped {
            self.turn_away(query, now);
        }
        self.taken.extend(queries.into_iter().rev());
        self.admit_taken(now);
        for answer in answers {
            self.read_stream(answer, now);
        }
        for query in refused {
            self.take_refused(query, now);
        }
        for report in reports {
            let _ = report.send(self.report()); // who asked may have lost patience
        }
    }

    /// Admits what was taken.
    fn admit_taken(&mut self, now: Now) {
        while let Some(query) = self.taken.pop() {
            self.admit(query, now);
        }
    }

    /// Forgets the groups that nobody is forwarded to any more, and closes the ports to their
    /// upstreams; makes the acquaintance of new ones, and heeds what is new about the others.
    fn see_groups(&mut self) {
        let groups = self.config.groups.load_full();
        if Arc::ptr_eq(&groups, &self.seen) {
            return;
        }
        let threads = self.config.forwarders.count();
        self.groups.retain(|number, _| groups.by_number.contains_key(number));
        for (number, group) in &groups.by_number {
            let new = || KnownGroup::new(Arc::clone(group), threads);
            self.groups.entry(*number).or_insert_with(new).follow(group, threads);
        }
        self.share = groups.bounds.share(threads);
        self.admission.resize(self.share.waiting_max);
        self.seen = groups;
        self.close_ports();
    }

    /// Closes the ports to where no upstream is any more.
    fn close_ports(&mut self) {
        let servers = || self.seen.by_number.values().flat_map(|group| &group.servers);
        let is_asked =
            |address| servers().any(|server| server.connections.addresses().contains(&address));
        self.ports.retain(is_asked);
    }

    /// What is known of the upstreams.
    fn report(&self) -> Vec<Report> {
        let at = self.config.clock.monotonic_nanos();
        let report = |(number, known): (&u32, &KnownGroup)| Report {
            group: *number,
            at,
            members: known.pool.members.clone(),
            rcodes: known.rcodes.clone(),
            loops: known.loops(at),
        };
        self.groups.iter().map(report).collect()
    }

    /// Ends all fetches with a failure, and tells all who wait.
    fn give_up_all(&mut self) {
        let now = self.config.clock.now();
        self.ports.forget_all();
        if self.body.is_empty() {
            self.body = new_body(); // a panic came while it was lent
        }
        for query in std::mem::take(&mut self.taken) {
            self.reply_failure(query, Reason::UpstreamFailed, now);
        }
        for mut fetch in self.fetches.end_all() {
            if let Some(known) = self.groups.get_mut(&fetch.wanted.group) {
                fetch.exchange.abandon(&mut known.pool);
                fetch.ticket.into_iter().for_each(|ticket| known.leave(ticket));
            }
            self.fail(fetch.waiters, Reason::UpstreamFailed, "", now);
        }
    }
}
