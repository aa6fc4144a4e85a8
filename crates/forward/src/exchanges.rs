//! What a forwarder thread does for each fetch: whom it asks, what it makes of the answers, and
//! what it tells those who wait.
//!
//! Deliberately absent: who is asked when, which [`Exchange`] decides.

use std::sync::Arc;
use std::time::Duration;

use zonda_cache::policy::Limits;
use zonda_cache::{Flushes, Hit, Kind, Onward};
use zonda_deferral::{Deferred, Responder};
use zonda_engine::counters::type_place;
use zonda_engine::{Deferral, Now, Reason, To, UpstreamAnswer, alias_of};
use zonda_netio::is_exhaustion;
use zonda_upstream::Ticket;
use zonda_upstream::check::Failure;
use zonda_upstream::exchange::{self, Action, Exchange, Form, Outcome};
use zonda_wire::Rcode;
use zonda_wire::query::HEADER_BYTES;

use crate::answers::{cached, failure};
use crate::departures::Refused;
use crate::failure_text::failure_text;
use crate::fairness::{client, gives_way};
use crate::fetch::{FetchId, Fetches, Sent, Waiter};
use crate::fetch_key::FetchKey;
use crate::group::{Group, Manner, Server};
use crate::pending::PendingQuery;
use crate::ports::{Attempt, Cause, Waiting};
use crate::stream::{Patience, send_over_stream};
use crate::thread::{Forwarder, Timer};

/// How many others may have to end before upstreams that can take no more are asked: one that waits
/// for its next query has none under way.
const MAKE_ROOM_MAX: usize = 8;
/// For whom an answer is fetched anew.
const NOBODY: u64 = u64::MAX;
/// Octets of the longest body.
pub(crate) const BODY_BYTES_MAX: usize = u16::MAX as usize;
/// Longest time for which it is kept that no upstream could be reached, seconds: when they are
/// back, nobody shall have to wait for longer.
const UNREACHED_SECS_MAX: u32 = 5;

impl<R: Responder, F: FnMut() -> R> Forwarder<R, F> {
    /// Has a query wait for its answer; begins to fetch it if nobody does.
    pub(crate) fn admit(&mut self, query: PendingQuery, now: Now) {
        let To::Forward(number) = query.query.deferral.to else { return }; // only those come here
        let wanted = self.wanted(&query);
        let known = self.groups.contains_key(&number);
        let Some(wanted) = wanted.filter(|_| known) else {
            return self.reply_failure(query, Reason::UpstreamFailed, now);
        };
        // Before all else: what has come back must not be asked for once more.
        if self.has_come_back(&wanted.name, now) {
            return self.reply_failure(query, Reason::UpstreamLoop, now);
        }
        // Before there is talk of room, of which this takes none. Nobody waits for a refresh.
        let Some(query) = self.give_kept(&wanted, query, now) else { return };
        // A new fetch needs room; who wants what is being fetched needs a place there.
        let name_hash = query.query.deferral.name_hash;
        let fetch = self.fetches.find(&wanted, name_hash);
        let waiting = fetch.and_then(|id| self.fetches.get(id)).map_or(0, |it| it.waiters.len());
        let share = self.share;
        if fetch.is_none() && self.fetches.len() >= share.fetches_max() {
            self.counters.turned_away.add(1);
            return self.reply_without_place(query, &wanted, now);
        }
        if let Some(id) = fetch.filter(|_| waiting >= share.waiting_per_answer_max as usize) {
            self.make_room(id, client(query.query.peer.address.ip()), now);
        }
        // Last, since the oldest of all who wait may have to leave for it.
        let waiter = Waiter { ticket: self.place(&query, now), query };
        // To make room, even this fetch may have lost its last query.
        match self.fetches.find(&wanted, name_hash) {
            Some(id) => self.join(id, waiter, now),
            None => {
                self.counters.fetched.add(1);
                self.begin(wanted, name_hash, vec![waiter], now);
            }
        }
    }

    /// What a query wants to be fetched; nothing if that is not known any more.
    fn wanted(&self, query: &PendingQuery) -> Option<FetchKey> {
        let Deferred { query: octets, deferral, .. } = &query.query;
        let Deferral { to: To::Forward(forward), query: asked, name_hash, is_alias, .. } = deferral
        else {
            return None;
        };
        let own_name = octets.get(HEADER_BYTES..usize::from(asked.name_end))?;
        if let Some(chain) = &query.chain {
            return Some(FetchKey::new(*forward, asked, &chain.next));
        }
        if !is_alias {
            return Some(FetchKey::new(*forward, asked, own_name));
        }
        let snapshot = self.config.snapshot.load();
        let (from, name) = alias_of(&snapshot, own_name, asked.qtype)?;
        // Not after a reload, perhaps.
        let is_same = from == *forward && name.hash(0) == *name_hash;
        is_same.then(|| FetchKey::new(*forward, asked, name.as_wire()))
    }

    /// Answers a query with what is kept, and fetches that anew if it is due and there is room, so
    /// that popular answers are replaced before they expire. Returns the query if nothing fresh is
    /// kept.
    fn give_kept(
        &mut self,
        wanted: &FetchKey,
        query: PendingQuery,
        now: Now,
    ) -> Option<PendingQuery> {
        let Some(known) = self.groups.get(&wanted.group) else { return Some(query) };
        let (cache, hash) = (Arc::clone(&known.group.cache), query.query.deferral.name_hash);
        let (key, secs) = (wanted.cache_key(hash), now.monotonic_secs());
        let hit = cache.find(&key, secs, &mut self.body);
        let hit = hit.filter(|hit| !hit.is_stale || !hit.refresh_due); // rfc8767#5
        let Some(hit) = hit else { return Some(query) };
        let body = std::mem::take(&mut self.body);
        let fetched = cached(&hit, &body, &wanted.name);
        let is_of_use = self.leads_on(wanted, hit.onward, &fetched);
        let left = if is_of_use {
            self.counters.kept.add(1);
            self.counters.stale.add(u64::from(hit.is_stale));
            self.deliver(query, &fetched, now);
            None
        } else {
            Some(query)
        };
        self.body = body;
        let may_fetch = self.fetches.find(wanted, hash).is_none()
            && self.fetches.len() < self.share.fetches_max();
        let is_due = is_of_use && hit.refresh_due && may_fetch;
        if is_due && cache.claim_refresh(&key, &hit, secs) {
            self.counters.prefetched.add(1);
            self.begin(wanted.clone(), hash, Vec::new(), now);
        }
        left
    }

    /// A place for a query; the oldest may have to leave for it.
    fn place(&mut self, query: &PendingQuery, now: Now) -> Ticket {
        let own_before = self.admission.counters.dropped_own;
        let (ticket, dropped) = self.admission.admit(client(query.query.peer.address.ip()));
        if let Some(dropped) = dropped {
            self.count_dropped(self.admission.counters.dropped_own > own_before);
            self.drop_waiter(dropped, now);
        }
        ticket
    }

    /// Notes what a query waits for.
    fn keep_place(&mut self, ticket: Ticket, id: FetchId) {
        let place = ticket.place();
        if self.places.len() <= place {
            self.places.resize(place + 1, None); // there are no more than ever waited at once
        }
        self.places[place] = Some((ticket, id));
    }

    /// What a query waited for, which waits no longer.
    fn take_place(&mut self, ticket: Ticket) -> Option<FetchId> {
        let place = self.places.get_mut(ticket.place())?;
        Some(place.take_if(|(held, _)| *held == ticket)?.1)
    }

    /// Has one of those who wait for a fetch give way to a newcomer.
    fn make_room(&mut self, id: FetchId, newcomer: u64, now: Now) {
        let random = self.random.next();
        let Some(fetch) = self.fetches.get(id) else { return };
        let waiters = &mut fetch.waiters;
        let client_at = |place: usize| client(waiters[place].query.query.peer.address.ip());
        let place = gives_way(waiters.len(), random, client_at);
        let is_own = client_at(place) == newcomer;
        let waiter = waiters.swap_remove(place);
        let wanted = fetch.wanted.clone();
        self.count_dropped(is_own);
        self.admission.release(waiter.ticket);
        self.take_place(waiter.ticket);
        self.reply_without_place(waiter.query, &wanted, now);
    }

    /// Counts a query that gave its place to a newer one, of the same client or of another.
    fn count_dropped(&self, is_own: bool) {
        match is_own {
            true => self.counters.dropped_own.add(1),
            false => self.counters.dropped_other.add(1),
        }
    }

    /// Tells a query that it lost its place. What nobody waits for any more is not fetched either.
    fn drop_waiter(&mut self, ticket: Ticket, now: Now) {
        let Some(id) = self.take_place(ticket) else { return };
        let Some(fetch) = self.fetches.get(id) else { return };
        let Some(at) = fetch.waiters.iter().position(|waiter| waiter.ticket == ticket) else {
            return;
        };
        let waiter = fetch.waiters.swap_remove(at);
        let wanted = fetch.wanted.clone();
        if fetch.waiters.is_empty() {
            self.end(id);
        }
        self.reply_without_place(waiter.query, &wanted, now);
    }

    /// Answers a query that has lost its place before it was looked at.
    pub(crate) fn turn_away(&mut self, query: PendingQuery, now: Now) {
        match self.wanted(&query) {
            Some(wanted) => self.reply_without_place(query, &wanted, now),
            None => self.reply_failure(query, Reason::UpstreamBusy, now),
        }
    }

    /// Answers a query for which there is no place: with an answer that has expired, if there is
    /// one, or else that too much is being asked.
    fn reply_without_place(&mut self, query: PendingQuery, wanted: &FetchKey, now: Now) {
        let Some(known) = self.groups.get(&wanted.group) else {
            return self.reply_failure(query, Reason::UpstreamBusy, now);
        };
        let key = wanted.cache_key(query.query.deferral.name_hash);
        let hit = known.group.cache.find(&key, now.monotonic_secs(), &mut self.body);
        // One that leads to names that are forwarded elsewhere would have to wait there.
        let is_whole = |hit: &Hit| hit.onward != Some(Onward::Others);
        let hit = hit.filter(|hit| hit.kind != Kind::Failure && is_whole(hit));
        let Some(hit) = hit else {
            return self.reply_failure(query, Reason::UpstreamBusy, now);
        };
        let body = std::mem::take(&mut self.body);
        let fetched = cached(&hit, &body, &wanted.name);
        if self.leads_on(wanted, hit.onward, &fetched) {
            self.counters.stale.add(u64::from(hit.is_stale));
            self.deliver(query, &fetched, now);
        } else {
            self.reply_failure(query, Reason::UpstreamBusy, now);
        }
        self.body = body;
    }

    /// Has a query wait for what is being fetched already, and tells it what others were told.
    fn join(&mut self, id: FetchId, waiter: Waiter, now: Now) {
        self.counters.coalesced.add(1);
        self.keep_place(waiter.ticket, id);
        let Some(fetch) = self.fetches.get(id) else {
            return self.fail(vec![waiter], Reason::UpstreamFailed, "", now);
        };
        fetch.waiters.push(waiter);
        let (is_stale, failed) = (fetch.is_stale, fetch.failed.clone());
        if is_stale || failed.is_some() {
            self.give_stale(id, now);
        }
        if let Some((reason, text)) = failed {
            let waiters = self.fetches.get(id).map(|fetch| std::mem::take(&mut fetch.waiters));
            self.fail(waiters.unwrap_or_default(), told(reason), &text, now);
        }
    }

    /// Begins to fetch. If the upstreams can take no more, others give way.
    fn begin(&mut self, wanted: FetchKey, name_hash: u64, waiters: Vec<Waiter>, now: Now) {
        let who = waiters.first().map_or(NOBODY, |it| client(it.query.query.peer.address.ip()));
        let mut started = self.start(&wanted, name_hash, now);
        for _ in 0..MAKE_ROOM_MAX {
            let is_busy = matches!(&started, Some((.., actions))
                if actions[..] == [Action::Fail(exchange::Reason::Busy)]);
            if !is_busy || !self.make_room_for(who, wanted.group, now) {
                break;
            }
            started = self.start(&wanted, name_hash, now);
        }
        let Some((exchange, asked, actions)) = started else {
            return self.fail(waiters, Reason::UpstreamFailed, "", now);
        };
        let group = wanted.group;
        let id = self.fetches.begin((wanted, name_hash), asked, exchange, waiters);
        if let (Some(known), Some(fetch)) = (self.groups.get_mut(&group), self.fetches.get(id)) {
            fetch.ticket = Some(known.enter(who, id));
        }
        let ticket =
            |fetches: &mut Fetches, place: usize| Some(fetches.get(id)?.waiters.get(place)?.ticket);
        for place in 0.. {
            let Some(ticket) = ticket(&mut self.fetches, place) else { break };
            self.keep_place(ticket, id);
        }
        self.perform(id, actions, now);
    }

    /// Starts to ask upstreams; nothing if they are not known.
    fn start(
        &mut self,
        wanted: &FetchKey,
        name_hash: u64,
        now: Now,
    ) -> Option<(Exchange, Flushes, Vec<Action>)> {
        let known = self.groups.get_mut(&wanted.group)?;
        let (mut actions, random) = (std::mem::take(&mut self.actions), self.random.next());
        let (at, asked) = (now.monotonic_nanos, known.group.cache.flushes());
        let exchange = Exchange::start(&mut known.pool, at, name_hash, random, &mut actions);
        Some((exchange, asked, actions))
    }

    /// Ends a fetch so that the upstreams of a group can be asked for a client; false if there is
    /// none. It is the oldest of a client for which they are asked more than their share, so that
    /// what cannot be answered starves nobody else.
    fn make_room_for(&mut self, client: u64, group: u32, now: Now) -> bool {
        let room = self.groups.get_mut(&group).and_then(|known| known.make_room(client));
        let Some((id, is_own)) = room else { return false };
        let waiting = self.fetches.get(id).map_or(0, |fetch| fetch.waiters.len());
        (0..waiting).for_each(|_| self.count_dropped(is_own));
        self.give_stale(id, now);
        let waiters = self.fetches.get(id).map(|fetch| std::mem::take(&mut fetch.waiters));
        self.end(id);
        self.fail(waiters.unwrap_or_default(), Reason::UpstreamBusy, "", now);
        true
    }

    /// Does what is due for a fetch.
    pub(crate) fn on_timer(&mut self, id: FetchId, now: Now) {
        let Some(fetch) = self.fetches.get(id) else { return };
        fetch.wake_at = u64::MAX;
        let Some(known) = self.groups.get_mut(&fetch.wanted.group) else {
            return self.lose(id, now);
        };
        let (mut actions, random) = (Vec::new(), self.random.next());
        fetch.exchange.on_timer(&mut known.pool, now.monotonic_nanos, random, &mut actions);
        self.perform(id, actions, now);
    }

    /// Tells a fetch what became of one of its queries.
    pub(crate) fn on_outcome(
        &mut self,
        attempt: Attempt,
        outcome: Outcome,
        now: Now,
        actions: &mut Vec<Action>,
    ) {
        let Some(fetch) = self.fetches.get(attempt.fetch) else { return };
        let Some(known) = self.groups.get_mut(&fetch.wanted.group) else { return };
        // Where the next upstream is to be chosen.
        let random = if outcome == Outcome::Answered { 0 } else { self.random.next() };
        let (pool, at) = (&mut known.pool, now.monotonic_nanos);
        fetch.exchange.on_outcome(pool, at, attempt.index, outcome, random, actions);
    }

    /// Does what an exchange wants done, and sees to what is due next.
    pub(crate) fn perform(&mut self, id: FetchId, mut actions: Vec<Action>, now: Now) {
        self.act(id, &mut actions, now);
        if actions.capacity() > 0 {
            actions.clear();
            self.actions = actions;
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
                    if self.leads_back(attempt, now) {
                        let outcome = Outcome::Failed(Failure::Loop);
                        self.on_outcome(attempt, outcome, now, actions);
                    } else if !self.send(attempt, form, now) {
                        self.on_outcome(attempt, Outcome::Unreachable, now, actions);
                    }
                }
                Action::ServeStale => self.give_stale(id, now),
                Action::Fail(reason) => self.give_up(id, reason, now),
            }
        }
    }

    /// Sets the timer for what is due next for a fetch, or ends it.
    fn see_to_next(&mut self, id: FetchId, now: Now) {
        let Some(fetch) = self.fetches.get(id) else { return };
        let number = fetch.wanted.group;
        let Some(known) = self.groups.get(&number) else { return self.lose(id, now) };
        match fetch.exchange.timer(&known.pool) {
            Some(at) if fetch.wake_at == at => {}
            Some(at) => {
                fetch.wake_at = at;
                self.set_timer(at, Timer::Fetch(id));
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
        let Some(fetch) = self.fetches.get(attempt.fetch) else { return false };
        let Some(known) = self.groups.get_mut(&fetch.wanted.group) else { return false };
        let place = usize::from(attempt.upstream);
        let server = &known.group.servers[place];
        let manner @ Manner { udp_bytes, .. } = known.group.manner;
        let cookies = &mut known.pool.members[place].cookies;
        let case = self.random.case_bits(fetch.wanted.name.len());
        let mut query = self.ports.room();
        let cause = Cause::Fetch(attempt);
        self.counters.sent_types[type_place(fetch.wanted.qtype)].add(1);
        if form.over_tcp || !server.over_udp {
            let question = fetch.wanted.question();
            let cookies = cookies.at(server.address(), now.monotonic_nanos);
            question.write((0, form), &case, &cookies, udp_bytes, &mut query);
            let limit = Duration::from_nanos(known.group.settings.fetch_nanos);
            // Who was refused before, and has nobody else to ask, is served as soon as it is back.
            let waits_for_connection = !form.over_tcp && fetch.exchange.repeats_lost(attempt.index);
            let patience = Patience { limit, waits_for_connection };
            send_over_stream(&self.config, server, Waiting { cause, form, query }, patience);
            return true;
        }
        if let Some(silent) = fetch.lost_at(attempt.index, attempt.upstream) {
            server.connections.pass_over(silent);
        }
        let Some(address) = server.address() else { return false };
        let at = now.monotonic_nanos;
        let chosen = self.ports.choose((address, manner, at), &self.poller, &mut self.random);
        let (port, id) = match chosen {
            Ok(chosen) => chosen,
            Err(error) if is_exhaustion(&error) => {
                self.counters.without_port.add(1);
                self.ports.put_off(cause);
                return true;
            }
            Err(_) => {
                server.connections.pass_over(address);
                return false;
            }
        };
        let cookies = cookies.at(Some(address), now.monotonic_nanos);
        fetch.wanted.question().write((id, form), &case, &cookies, udp_bytes, &mut query);
        fetch.sent.push(Sent { port, id, upstream: attempt.upstream, address });
        self.ports.send(port, id, Waiting { cause, form, query });
        true
    }

    /// Goes on without a query that the kernel refused to send.
    pub(crate) fn take_refused(&mut self, refused: Refused, now: Now) {
        let Some((address, cause)) = self.ports.take_refused(refused.from) else { return };
        if refused.is_exhaustion && matches!(cause, Cause::Fetch(_)) {
            self.counters.without_port.add(1);
            return self.ports.put_off(cause);
        }
        self.pass_over(address);
        match cause {
            Cause::Fetch(attempt) => self.conclude(attempt, Outcome::Unreachable, now),
            Cause::Probe(probe) => self.probe_ended(probe, None, now),
            Cause::Check(_) => {}
        }
    }

    /// Answers all who wait for a fetch with an answer that has expired, if there is one.
    fn give_stale(&mut self, id: FetchId, now: Now) {
        let Some(fetch) = self.fetches.get(id) else { return };
        fetch.is_stale = true;
        let Some(known) = self.groups.get(&fetch.wanted.group) else { return };
        if fetch.waiters.is_empty() {
            return;
        }
        let (key, secs) = (fetch.wanted.cache_key(fetch.name_hash), now.monotonic_secs());
        let hit = known.group.cache.find(&key, secs, &mut self.body);
        let Some(hit) = hit.filter(|hit| hit.kind != Kind::Failure) else { return };
        let waiters = std::mem::take(&mut fetch.waiters);
        self.counters.stale.add(if hit.is_stale { waiters.len() as u64 } else { 0 });
        let name = fetch.wanted.name.clone();
        let body = std::mem::take(&mut self.body);
        self.answer(waiters, &cached(&hit, &body, &name), now);
        self.body = body;
    }

    /// Tells all who wait that there is no answer, or gives them one that has expired. The fetch
    /// may go on.
    fn give_up(&mut self, id: FetchId, reason: exchange::Reason, now: Now) {
        self.give_stale(id, now);
        let Some(fetch) = self.fetches.get(id) else { return };
        let known = self.groups.get(&fetch.wanted.group);
        let text = known.map(|it| {
            let addresses = it.group.servers.iter().map(Server::address);
            failure_text(addresses, &it.pool, &fetch.exchange)
        });
        let text = text.unwrap_or_default();
        fetch.failed = Some((reason, text.clone()));
        let waiters = std::mem::take(&mut fetch.waiters);
        let mut told = told(reason);
        if let Some(known) = known {
            let key = fetch.wanted.cache_key(fetch.name_hash);
            keep_failure(&known.group, &key, reason, &text, now);
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
        let waiters = self.fetches.settle(id);
        self.fail(waiters, Reason::UpstreamFailed, "", now);
        self.end(id);
    }

    /// Ends a fetch; answers that still come are not waited for.
    fn end(&mut self, id: FetchId) {
        let Some(mut fetch) = self.fetches.end(id) else { return };
        if let Some(known) = self.groups.get_mut(&fetch.wanted.group) {
            fetch.exchange.abandon(&mut known.pool);
            fetch.ticket.into_iter().for_each(|ticket| known.leave(ticket));
        }
        for sent in &fetch.sent {
            self.ports.forget_fetch(sent.port, sent.id, id);
        }
    }

    /// Answers SERVFAIL to all of these, and why.
    pub(crate) fn fail(&mut self, waiters: Vec<Waiter>, reason: Reason, text: &str, now: Now) {
        self.answer(waiters, &failure(reason, text), now);
    }

    /// Answers SERVFAIL to a query that does not wait.
    pub(crate) fn reply_failure(&mut self, query: PendingQuery, reason: Reason, now: Now) {
        self.replies.answer(query.query, &failure(reason, ""), now);
    }

    /// Answers queries, which wait no longer.
    pub(crate) fn answer(&mut self, waiters: Vec<Waiter>, fetched: &UpstreamAnswer<'_>, now: Now) {
        for Waiter { ticket, query } in waiters {
            self.admission.release(ticket);
            self.take_place(ticket);
            self.deliver(query, fetched, now);
        }
    }
}

/// What clients are told, when an exchange has failed.
fn told(reason: exchange::Reason) -> Reason {
    match reason {
        exchange::Reason::AllDown | exchange::Reason::Timeout => Reason::UpstreamTimeout,
        exchange::Reason::Busy => Reason::UpstreamBusy,
        exchange::Reason::Failed(Failure::Malformed | Failure::Unfit(_)) => Reason::UpstreamInvalid,
        exchange::Reason::Failed(Failure::Loop) => Reason::UpstreamLoop,
        exchange::Reason::Unreachable | exchange::Reason::Failed(_) => Reason::UpstreamFailed,
    }
}

/// Keeps that there is no answer, so that upstreams are not asked in vain (rfc9520#3.2). Nothing is
/// kept when nobody was asked: for want of places, or since all are down, which probes watch.
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
