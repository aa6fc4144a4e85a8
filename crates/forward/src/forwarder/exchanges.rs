//! What a forwarder thread does for each fetch: the queries that its exchange wants sent, and the
//! answers to all queries that wait for it.
//!
//! Deliberately absent: which upstream is asked when, which [`Exchange`] decides.

use std::time::Duration;

use zonda_cache::policy::Limits;
use zonda_cache::{Flushes, Kind};
use zonda_deferral::Responder;
use zonda_engine::counters::type_place;
use zonda_engine::{Now, Reason, UpstreamAnswer};
use zonda_upstream::check::Failure;
use zonda_upstream::exchange::{self, Action, Exchange, Form, Outcome};
use zonda_wire::Rcode;

use super::Forwarder;
use crate::answers::{cached, failure};
use crate::cause::{Attempt, Cause, FetchId};
use crate::departures::RefusedQuery;
use crate::failure_text::failure_text;
use crate::fairness::client;
use crate::fetch::{SentQuery, Waiter};
use crate::fetch_key::FetchKey;
use crate::group::{Group, Server};
use crate::stream::Patience;
use crate::timers::Timer;
use crate::wires::{Departure, Outgoing};

/// How many fetches may have to end before upstreams that can take no more are asked: one that
/// waits for its next query has none under way.
const MAKE_ROOM_MAX: usize = 8;
/// The client for which an answer is fetched anew before it expires.
const NO_CLIENT: u64 = u64::MAX;
/// Longest time for which it is kept that no upstream could be reached, seconds: when they are
/// back, no client shall have to wait for longer.
const UNREACHED_SECS_MAX: u32 = 5;

impl<R: Responder> Forwarder<R> {
    /// Starts a fetch for a query, or for none to replace an answer before it expires. If the
    /// upstreams can take no more, older fetches give way.
    pub(super) fn begin(
        &mut self,
        key: FetchKey,
        name_hash: u64,
        waiter: Option<Waiter>,
        now: Now,
    ) {
        let asking = waiter.as_ref().map(|it| client(it.query.query.peer.address.ip()));
        let asking = asking.unwrap_or(NO_CLIENT);
        let mut rooms = 0;
        let started = loop {
            let started = self.start(&key, name_hash, now);
            let is_busy = matches!(&started, Some((.., actions))
                if actions[..] == [Action::Fail(exchange::Reason::Busy)]);
            let may_retry = is_busy && rooms < MAKE_ROOM_MAX;
            if !may_retry || !self.make_room_for(asking, key.group, now) {
                break started;
            }
            rooms += 1;
        };
        let Some((exchange, asked, actions)) = started else {
            return self.fail(Vec::from_iter(waiter), Reason::UpstreamFailed, "", now);
        };
        let (group, ticket) = (key.group, waiter.as_ref().map(|waiter| waiter.ticket));
        let id = self.queries.fetches.begin((key, name_hash), asked, exchange, waiter);
        if let (Some(known), Some(fetch)) =
            (self.outbound.upstreams.get_mut(group), self.queries.fetches.get(id))
        {
            fetch.ticket = Some(known.enter(asking, id));
        }
        ticket.into_iter().for_each(|ticket| self.queries.waiters.wait_for(ticket, id));
        self.perform(id, actions, now);
    }

    /// Starts to ask upstreams; nothing if they are not known.
    fn start(
        &mut self,
        key: &FetchKey,
        name_hash: u64,
        now: Now,
    ) -> Option<(Exchange, Flushes, Vec<Action>)> {
        let known = self.outbound.upstreams.get_mut(key.group)?;
        let (mut actions, random) =
            (std::mem::take(&mut self.outbound.actions), self.outbound.random.next());
        let (at, asked) = (now.monotonic_nanos, known.group.cache.flushes());
        let exchange = Exchange::start(&mut known.pool, at, name_hash, random, &mut actions);
        Some((exchange, asked, actions))
    }

    /// Ends a fetch so that the upstreams of a group can be asked for a client; false if there is
    /// none. It is the oldest of a client for which they are asked more than their share, so that
    /// what cannot be answered starves no other client.
    fn make_room_for(&mut self, client: u64, group: u32, now: Now) -> bool {
        let room = self.outbound.upstreams.get_mut(group).and_then(|known| known.make_room(client));
        let Some((id, is_own)) = room else { return false };
        let waiting = self.queries.fetches.get(id).map_or(0, |fetch| fetch.waiters.len());
        (0..waiting).for_each(|_| self.count_evicted(is_own));
        self.answer_stale(id, now);
        let waiters = self.queries.fetches.get(id).map(|fetch| std::mem::take(&mut fetch.waiters));
        self.end(id);
        self.fail(waiters.unwrap_or_default(), Reason::UpstreamBusy, "", now);
        true
    }

    /// Does what is due for a fetch.
    pub(super) fn on_timer(&mut self, id: FetchId, now: Now) {
        let Some(fetch) = self.queries.fetches.get(id) else { return };
        fetch.wake_at = u64::MAX;
        let Some(known) = self.outbound.upstreams.get_mut(fetch.key.group) else {
            return self.lose(id, now);
        };
        let (mut actions, random) = (Vec::new(), self.outbound.random.next());
        fetch.exchange.on_timer(&mut known.pool, now.monotonic_nanos, random, &mut actions);
        self.perform(id, actions, now);
    }

    /// Tells a fetch what became of one of its queries.
    pub(super) fn on_outcome(
        &mut self,
        attempt: Attempt,
        outcome: Outcome,
        now: Now,
        actions: &mut Vec<Action>,
    ) {
        let Some(fetch) = self.queries.fetches.get(attempt.fetch) else { return };
        let Some(known) = self.outbound.upstreams.get_mut(fetch.key.group) else { return };
        // Where the next upstream is to be chosen.
        let random = if outcome == Outcome::Answered { 0 } else { self.outbound.random.next() };
        let (pool, at) = (&mut known.pool, now.monotonic_nanos);
        fetch.exchange.on_outcome(pool, at, attempt.index, outcome, random, actions);
    }

    /// Does what an exchange wants done, and sees to what is due next.
    pub(super) fn perform(&mut self, id: FetchId, mut actions: Vec<Action>, now: Now) {
        self.act(id, &mut actions, now);
        if actions.capacity() > 0 {
            actions.clear();
            self.outbound.actions = actions;
        }
        self.see_to_next(id, now);
    }

    /// Does what an exchange wants done.
    fn act(&mut self, id: FetchId, actions: &mut Vec<Action>, now: Now) {
        let mut next = 0;
        while let Some(&action) = actions.get(next) {
            next += 1;
            match action {
                Action::Send { attempt: index, upstream, form } => {
                    let attempt = Attempt { fetch: id, index, upstream };
                    if self.would_come_back(attempt, now) {
                        let outcome = Outcome::Failed(Failure::Loop);
                        self.on_outcome(attempt, outcome, now, actions);
                    } else if !self.send(attempt, form, now) {
                        self.on_outcome(attempt, Outcome::Unreachable, now, actions);
                    }
                }
                Action::ServeStale => self.answer_stale(id, now),
                Action::Fail(reason) => self.give_up(id, reason, now),
            }
        }
    }

    /// Sets the timer for what is due next for a fetch, or ends it.
    fn see_to_next(&mut self, id: FetchId, now: Now) {
        let Some(fetch) = self.queries.fetches.get(id) else { return };
        let number = fetch.key.group;
        let Some(known) = self.outbound.upstreams.get(number) else { return self.lose(id, now) };
        match fetch.exchange.timer(&known.pool) {
            Some(at) if fetch.wake_at == at => {}
            Some(at) => {
                fetch.wake_at = at;
                self.timers.set(at, Timer::Fetch(id));
            }
            None => {
                if !fetch.waiters.is_empty() {
                    // The thread has slept, so that they were not told in time.
                    self.give_up(id, exchange::Reason::Timeout, now);
                }
                self.end(id);
            }
        }
        self.await_probes(number, now);
    }

    /// Sends a query; false when that is not possible.
    fn send(&mut self, attempt: Attempt, form: Form, now: Now) -> bool {
        let Some(fetch) = self.queries.fetches.get(attempt.fetch) else { return false };
        let Some(known) = self.outbound.upstreams.get_mut(fetch.key.group) else { return false };
        let place = usize::from(attempt.upstream);
        let server = &known.group.servers[place];
        self.counters.sent_types[type_place(fetch.key.qtype)].add(1);
        if let (false, Some(silent)) =
            (form.over_tcp || !server.over_udp, fetch.lost_at(attempt.index, attempt.upstream))
        {
            server.connections.pass_over(silent);
        }
        let limit = Duration::from_nanos(known.group.settings.fetch_nanos);
        // A client that was refused before, when there is no other upstream, is served as soon as
        // this one is back.
        let waits_for_connection = !form.over_tcp && fetch.exchange.repeats_lost(attempt.index);
        let cause = Cause::Fetch(attempt);
        let departure = self.outbound.wires.send(Outgoing {
            server,
            manner: known.group.manner,
            options: &known.group.options,
            facts: fetch.key.facts,
            question: fetch.key.question(),
            form,
            cookies: &mut known.pool.members[place].cookies,
            cause,
            patience: Patience { limit, waits_for_connection },
            now: now.monotonic_nanos,
        });
        match departure {
            Departure::OverConnection => {}
            Departure::FromPort(port, id, address) => {
                fetch.sent.push(SentQuery { port, id, upstream: attempt.upstream, address });
            }
            Departure::WithoutPort => {
                self.counters.without_port.add(1);
                self.outbound.wires.ports().put_off(cause);
            }
            Departure::Unreachable => return false,
        }
        true
    }

    /// Goes on without a query that the kernel refused to send.
    pub(super) fn take_refused(&mut self, refused: RefusedQuery, now: Now) {
        let Some((address, cause)) = self.outbound.wires.ports().take_refused(refused.from) else {
            return;
        };
        if refused.is_exhaustion && matches!(cause, Cause::Fetch(_)) {
            self.counters.without_port.add(1);
            return self.outbound.wires.ports().put_off(cause);
        }
        self.outbound.upstreams.pass_over(address);
        match cause {
            Cause::Fetch(attempt) => self.conclude(attempt, Outcome::Unreachable, now),
            Cause::Probe(probe) => self.probe_ended(probe, None, now),
            Cause::Check(_) => {}
        }
    }

    /// Answers all queries that wait for a fetch with an answer that has expired, if there is one.
    pub(super) fn answer_stale(&mut self, id: FetchId, now: Now) {
        let Some(fetch) = self.queries.fetches.get(id) else { return };
        fetch.is_stale = true;
        let Some(known) = self.outbound.upstreams.get(fetch.key.group) else { return };
        if fetch.waiters.is_empty() {
            return;
        }
        let (cache_key, secs) = (fetch.key.cache_key(fetch.name_hash), now.monotonic_secs());
        let hit = known.group.cache.find(&cache_key, secs, &mut self.clients.body);
        let Some(hit) = hit.filter(|hit| hit.kind != Kind::Failure) else { return };
        let waiters = std::mem::take(&mut fetch.waiters);
        self.counters.stale.add(if hit.is_stale { waiters.len() as u64 } else { 0 });
        let name = fetch.key.name.clone();
        let body = std::mem::take(&mut self.clients.body);
        self.answer(waiters, &cached(&hit, &body, &name), now);
        self.clients.body = body;
    }

    /// Answers all queries that wait with one that has expired, or SERVFAIL. The fetch may go on.
    fn give_up(&mut self, id: FetchId, reason: exchange::Reason, now: Now) {
        self.answer_stale(id, now);
        let Some(fetch) = self.queries.fetches.get(id) else { return };
        let known = self.outbound.upstreams.get(fetch.key.group);
        let text = known.map(|it| {
            let addresses = it.group.servers.iter().map(Server::address);
            failure_text(addresses, &it.pool, &fetch.exchange)
        });
        let text = text.unwrap_or_default();
        fetch.failed = Some((reason, text.clone()));
        let waiters = std::mem::take(&mut fetch.waiters);
        let mut told = told(reason);
        if let Some(known) = known {
            let cache_key = fetch.key.cache_key(fetch.name_hash);
            keep_failure(&known.group, &cache_key, reason, &text, now);
            if known.group.loops.hold_any(now.monotonic_nanos) {
                told = Reason::UpstreamLoop;
            }
        }
        match reason {
            exchange::Reason::Timeout => self.counters.timed_out.add(1),
            _ => self.counters.failed.add(1),
        }
        self.fail(waiters, told, &text, now);
    }

    /// Ends a fetch whose upstreams are not configured any more.
    fn lose(&mut self, id: FetchId, now: Now) {
        let waiters = self.queries.fetches.settle(id);
        self.fail(waiters, Reason::UpstreamFailed, "", now);
        self.end(id);
    }

    /// Ends a fetch; answers that still come are not waited for.
    pub(super) fn end(&mut self, id: FetchId) {
        let Some(mut fetch) = self.queries.fetches.end(id) else { return };
        if let Some(known) = self.outbound.upstreams.get_mut(fetch.key.group) {
            fetch.exchange.abandon(&mut known.pool);
            fetch.ticket.into_iter().for_each(|ticket| known.leave(ticket));
        }
        for sent in &fetch.sent {
            self.outbound.wires.ports().forget_fetch(sent.port, sent.id, id);
        }
        self.queries.fetches.take_back_sent(fetch.sent);
        self.queries.fetches.take_back_waiters(fetch.waiters);
    }

    /// Answers queries SERVFAIL, and says why.
    pub(super) fn fail(&mut self, waiters: Vec<Waiter>, reason: Reason, text: &str, now: Now) {
        self.answer(waiters, &failure(reason, text), now);
    }

    /// Answers queries, which wait no longer.
    pub(super) fn answer(
        &mut self,
        mut waiters: Vec<Waiter>,
        fetched: &UpstreamAnswer<'_>,
        now: Now,
    ) {
        for Waiter { ticket, query } in waiters.drain(..) {
            self.queries.waiters.release(ticket);
            self.clients.deliveries.deliver(query, fetched, &self.outbound.upstreams, now);
        }
        self.queries.fetches.take_back_waiters(waiters);
    }
}

/// Returns the reason that replies give when an exchange has failed.
pub(super) fn told(reason: exchange::Reason) -> Reason {
    match reason {
        exchange::Reason::AllDown | exchange::Reason::Timeout => Reason::UpstreamTimeout,
        exchange::Reason::Busy => Reason::UpstreamBusy,
        exchange::Reason::Failed(Failure::Malformed | Failure::Unfit(_)) => Reason::UpstreamInvalid,
        exchange::Reason::Failed(Failure::Loop) => Reason::UpstreamLoop,
        exchange::Reason::Unreachable | exchange::Reason::Failed(_) => Reason::UpstreamFailed,
    }
}

/// Keeps that there is no answer, so that upstreams are not asked in vain (rfc9520#3.2). Nothing is
/// kept when no upstream was asked: for want of places, or since all are down, which probes watch.
fn keep_failure(
    group: &Group,
    key: &zonda_cache::Key<'_>,
    reason: exchange::Reason,
    text: &str,
    now: Now,
) {
    let limits = group.policy.failure;
    let limits = match reason {
        exchange::Reason::AllDown | exchange::Reason::Busy => return,
        exchange::Reason::Timeout
        | exchange::Reason::Unreachable
        | exchange::Reason::Failed(Failure::Loop) => {
            let secs_max = limits.secs_max.min(UNREACHED_SECS_MAX.max(limits.secs_min));
            Limits { secs_max, ..limits }
        }
        exchange::Reason::Failed(_) => limits,
    };
    let (flags, ede, text) = (Rcode::SERVFAIL.0, Some(reason.ede()), text.as_bytes());
    let failure = zonda_cache::Failure { flags, ede, text };
    group.cache.insert_failure(key, failure, limits, now.monotonic_secs());
}
