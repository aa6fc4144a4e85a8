//! The state of a forwarder thread, and what it does with each event.
//!
//! Three owners hold the state, and know nothing of one another: [`PendingQueries`] the queries
//! that wait and what is fetched for them, [`Outbound`] the side of the upstreams, [`Clients`] that
//! of the clients. What concerns several of them is done here.
//!
//! | file | events |
//! |---|---|
//! | `admission` | a query that comes: it is answered, joins a fetch, or is given a place |
//! | `exchanges` | what an exchange wants done: queries, answers to all that wait |
//! | `receive` | messages of upstreams |
//! | `probes` | questions that find whether an upstream is back, or leads back here |

mod admission;
mod clients;
mod exchanges;
mod outbound;
mod pending_queries;
mod probes;
mod receive;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::runtime::Handle;
use zonda_deferral::faults::{FaultBudget, survives};
use zonda_deferral::{Clock, Queue, Responder};
use zonda_engine::{Now, Reason, Snapshot};
use zonda_netio::Poller;

use self::clients::Clients;
use self::outbound::Outbound;
use self::pending_queries::PendingQueries;
use crate::counters::ForwarderCounters;
use crate::group::Groups;
use crate::inbox::{Contents, Forwarders, Inbox, Queries};
use crate::output::Output;
use crate::timers::{Timer, Timers};
use crate::wires::Wires;

/// The inbox among what is waited for; ports count from 0.
const INBOX: usize = usize::MAX;
/// The alarm among what is waited for.
const ALARM: usize = usize::MAX - 1;
/// Nanoseconds between two checks by a stopped thread whether the other forwarder threads have
/// ended, too.
const DRAIN_LOOK_NANOS: u64 = 20_000_000;
/// The time after a peak of waiting queries at which memory is given back, nanoseconds.
const PEAK_ENDS_NANOS: u64 = 2_000_000_000;

/// How a forwarder thread works.
pub struct ForwarderConfig {
    /// The thread's name, of which the system shows 15 octets.
    pub name: String,
    /// The inbox that the thread's work comes from.
    pub inbox: Arc<Inbox>,
    /// All threads: a chain may lead to what another one fetches.
    pub forwarders: Forwarders,
    /// The zones of this server, which win over what upstreams say of their names.
    pub snapshot: Arc<ArcSwap<Snapshot>>,
    /// The groups of upstreams.
    pub groups: Arc<ArcSwap<Groups>>,
    /// The clock of the threads that receive the queries.
    pub clock: Clock,
    /// The I/O runtime, which carries queries over connections.
    pub runtime: Handle,
    /// Most ports from which this thread asks upstreams at a time, at least 2.
    pub ports_max: usize,
}

/// The state of a forwarder thread.
pub struct Forwarder<R> {
    /// The part of the thread's configuration that it goes on using.
    config: ForwarderConfig,
    /// The counters of the thread.
    counters: Arc<ForwarderCounters>,
    /// The inbox, the ports and the alarm, to be waited for.
    poller: Poller,
    /// Timers: what is to be done, and when.
    timers: Timers,
    /// The queries that wait, and what is fetched for them.
    queries: PendingQueries,
    /// The side of the upstreams: the ways to them, and what they are and say.
    outbound: Outbound,
    /// The side of the clients: what they are answered.
    clients: Clients<R>,
    /// Panics, and failures to wait.
    faults: FaultBudget,
    /// Whether there were too many panics.
    is_spent: bool,
}

impl<R: Responder> Forwarder<R> {
    /// A state in which there is nothing to do yet.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new(
        config: ForwarderConfig,
        make: impl FnMut() -> R + Send + 'static,
        counters: Arc<ForwarderCounters>,
    ) -> io::Result<Self> {
        let (poller, timers) = (Poller::new()?, Timers::new()?);
        poller.add(config.inbox.wake(), INBOX)?;
        poller.add(timers.alarm(), ALARM)?;
        let (runtime, inbox) = (config.runtime.clone(), Arc::clone(&config.inbox));
        let wires = Wires::new(config.ports_max, poller.share(), runtime, inbox);
        let (snapshot, forwarders) = (Arc::clone(&config.snapshot), config.forwarders.clone());
        Ok(Self {
            config,
            counters,
            poller,
            timers,
            queries: PendingQueries::default(),
            outbound: Outbound::new(wires),
            clients: Clients::new(make, snapshot, forwarders),
            faults: FaultBudget::new(),
            is_spent: false,
        })
    }

    /// The inbox, the ports and the alarm, for the thread to wait for.
    pub fn poller(&self) -> Poller {
        self.poller.share()
    }

    /// The inbox that the thread's work comes from.
    pub fn inbox(&self) -> &Arc<Inbox> {
        &self.config.inbox
    }

    /// Whether there were too many panics.
    pub fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// Counts a failure to wait; whether it is one too many.
    pub fn is_spent_by_fault(&mut self) -> bool {
        self.faults.is_spent()
    }

    /// Whether no query waits any more, neither for this thread nor for another one, whose chains
    /// may lead to this one. If any does, looks again soon.
    pub fn is_drained(&mut self) -> bool {
        if self.queries.fetches.have_waiters() {
            return false;
        }
        self.config.inbox.rest();
        let is_drained = self.config.forwarders.is_idle();
        if !is_drained {
            let look_at = self.config.clock.monotonic_nanos() + DRAIN_LOOK_NANOS;
            self.timers.set(look_at, Timer::Drain);
        }
        is_drained
    }

    /// Does some work; after a panic, all queries that wait are answered SERVFAIL.
    pub fn work(&mut self, work: impl FnOnce(&mut Self)) {
        if !survives(|| work(self)) {
            tracing::error!("a forwarder panicked");
            self.is_spent |= self.faults.is_spent();
            self.clients.replace_responder();
            self.give_up_all();
        }
    }

    /// Has the thread woken up when the next timer is due.
    ///
    /// # Errors
    /// When the system does not take the alarm.
    pub fn set_alarm(&mut self) -> io::Result<()> {
        let at = self.first_timer().map(|(at, _)| at);
        self.timers.set_alarm(at, self.config.clock)
    }

    /// Takes queries that another thread brings while this one sleeps.
    pub fn admit_all(&mut self, queries: &mut Queries<'_>) {
        let now = self.config.clock.now();
        self.outbound.wires.ports().begin_turn();
        self.follow_groups();
        self.counters.received.add(queries.len() as u64);
        self.queries.taken.extend(queries);
        self.queries.taken.reverse();
        self.admit_taken(now);
        self.repeat_closed(now);
        self.forget_addresses();
    }

    /// Exchanges what is to be sent for an empty output.
    pub fn swap_output(&mut self, output: &mut Output) {
        self.outbound.wires.ports().swap_departures(&mut output.queries);
        self.clients.deliveries.swap_output(output);
    }

    /// Does all there is to do now; `ready` are the numbers of what can be read.
    pub fn turn(&mut self, ready: &[usize]) {
        let mut now = self.config.clock.now();
        self.outbound.wires.ports().begin_turn();
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
        self.abort_looping_attempts(now);
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
        self.forget_addresses();
        self.set_gauges();
        if self.queries.note_peak() {
            self.timers.set(now.monotonic_nanos + PEAK_ENDS_NANOS, Timer::EndPeak);
        }
    }

    /// Brings the counters up to date that are not counted as things happen.
    fn set_gauges(&mut self) {
        let ports = self.outbound.wires.ports();
        self.counters.waiting.set(self.queries.waiters.held().into());
        self.counters.fetching.set(self.queries.fetches.unanswered() as u64);
        self.counters.ports.set(ports.open_count() as u64);
        self.counters.ports_closed_early.add(ports.take_closed_early());
        self.counters.icmp_errors.add(ports.take_icmp_errors());
    }

    /// Gives memory back if a peak of waiting queries is over: by a thread that may take its time.
    fn end_peak(&mut self) {
        if self.queries.shrink_after_peak() {
            self.timers.shrink();
            self.config.runtime.spawn_blocking(zonda_netio::memory::give_back);
        }
    }

    /// Returns the next timer, if it is due.
    fn next_timer(&mut self, now: Now) -> Option<(u64, Timer)> {
        self.first_timer().filter(|(at, _)| *at <= now.monotonic_nanos)
    }

    /// The next timer. Those of fetches that have ended or wait for another time are void.
    fn first_timer(&mut self) -> Option<(u64, Timer)> {
        let fetches = &self.queries.fetches;
        self.timers
            .first(|at, timer| matches!(timer, Timer::Fetch(id) if fetches.wake_at(id) != Some(at)))
    }

    /// Takes what has come.
    fn take(&mut self, ready: &[usize], now: Now) {
        for &number in ready {
            match number {
                INBOX => self.empty_inbox(now),
                ALARM => self.timers.rest(),
                port => self.receive(port, now),
            }
        }
    }

    /// Takes what was handed over.
    fn empty_inbox(&mut self, now: Now) {
        let contents = self.config.inbox.take_all();
        let Contents { queries, dropped, answers, refused, reports, refreshes, .. } = contents;
        let (dropped_own, dropped_other) = (contents.dropped_own, contents.dropped_other);
        self.follow_groups();
        self.counters.received.add(queries.len() as u64 + dropped_own + dropped_other);
        self.counters.dropped_own.add(dropped_own);
        self.counters.dropped_other.add(dropped_other);
        for query in dropped {
            self.reject(query, now);
        }
        self.queries.taken.extend(queries.into_iter().rev());
        self.admit_taken(now);
        for question in refreshes {
            self.refresh(question, now);
        }
        for answer in answers {
            self.receive_stream(answer, now);
        }
        for query in refused {
            self.take_refused(query, now);
        }
        for report in reports {
            // The thread that asked may have lost patience.
            let _ =
                report.send(self.outbound.upstreams.report(self.config.clock.monotonic_nanos()));
        }
    }

    /// Admits the queries that were taken.
    fn admit_taken(&mut self, now: Now) {
        while let Some(query) = self.queries.taken.pop() {
            self.admit(query, now);
        }
    }

    /// Takes over the groups of upstreams that are configured now, and how much is taken on for
    /// them.
    fn follow_groups(&mut self) {
        let groups = self.config.groups.load_full();
        if self.outbound.upstreams.follow(groups, self.config.forwarders.count()) {
            self.queries.waiters.resize(self.outbound.upstreams.share().waiting_max);
            self.outbound
                .wires
                .ports()
                .retain(|address| self.outbound.upstreams.have_address(address));
        }
    }

    /// Forgets the addresses that no upstream has any more, after there was a new one.
    fn forget_addresses(&mut self) {
        let ports = self.outbound.wires.ports();
        if ports.take_new() {
            ports.retain(|address| self.outbound.upstreams.have_address(address));
        }
    }

    /// Ends all fetches with a failure, and answers all queries that wait.
    pub fn give_up_all(&mut self) {
        let now = self.config.clock.now();
        self.outbound.wires.ports().forget_all();
        self.clients.restore_body();
        for query in std::mem::take(&mut self.queries.taken) {
            self.clients.deliveries.fail(query, Reason::UpstreamFailed, now);
        }
        for mut fetch in self.queries.fetches.end_all() {
            if let Some(known) = self.outbound.upstreams.get_mut(fetch.key.group) {
                fetch.exchange.abandon(&mut known.pool);
                fetch.ticket.into_iter().for_each(|ticket| known.leave(ticket));
            }
            self.fail(fetch.waiters, Reason::UpstreamFailed, "", now);
        }
    }
}
