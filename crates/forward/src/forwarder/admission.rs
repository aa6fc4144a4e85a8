//! Admission of queries: what is answered at once, what joins a fetch, and which query gives its
//! place to a newer one.

use std::sync::Arc;

use zonda_cache::{Hit, Kind, Onward};
use zonda_deferral::{Deferred, Responder};
use zonda_engine::{
    AliasQuestion, Checkpoint, ClientFacts, Deferral, Now, Reason, To, fetched_name,
};
use zonda_upstream::Ticket;
use zonda_wire::query::HEADER_BYTES;

use super::Forwarder;
use crate::answers::cached;
use crate::cause::FetchId;
use crate::fairness::{client, place_to_evict};
use crate::fetch::Waiter;
use crate::fetch_key::FetchKey;
use crate::pending::PendingQuery;
use crate::waiters::Evicted;

impl<R: Responder> Forwarder<R> {
    /// Answers a query from the cache, has it join the fetch for its question, or starts one.
    pub(super) fn admit(&mut self, query: PendingQuery, now: Now) {
        let key = self.fetch_key(&query);
        let Some(key) = key.filter(|key| self.outbound.upstreams.get(key.group).is_some()) else {
            return self.clients.deliveries.fail(query, Reason::UpstreamFailed, now);
        };
        // Before all else: what has come back must not be asked for once more.
        if self.has_come_back(&key, now) {
            return self.clients.deliveries.fail(query, Reason::UpstreamLoop, now);
        }
        // Before there is talk of room, of which this takes none. No client waits for a refresh.
        let Some(query) = self.answer_from_cache(&key, query, now) else { return };
        // A new fetch needs room; a query for what is being fetched needs a place there.
        let name_hash = query.query.deferral.name_hash;
        let fetch = self.queries.fetches.find(&key, name_hash);
        let waiting =
            fetch.and_then(|id| self.queries.fetches.get(id)).map_or(0, |it| it.waiters.len());
        let share = self.outbound.upstreams.share();
        if fetch.is_none() && self.queries.fetches.len() >= share.fetches_max() {
            self.counters.turned_away.add(1);
            return self.answer_without_place(query, &key, now);
        }
        if let Some(id) = fetch.filter(|_| waiting >= share.waiting_per_answer_max as usize) {
            self.evict_waiter(id, client(query.query.peer.address.ip()), now);
        }
        // Last, since the oldest of all queries that wait may have to leave for it.
        let waiter = Waiter { ticket: self.take_place(&query, now), query };
        // To make room, even this fetch may have lost its last query.
        match self.queries.fetches.find(&key, name_hash) {
            Some(id) => self.join(id, waiter, now),
            None => {
                self.counters.fetched.add(1);
                self.begin(key, name_hash, Some(waiter), now);
            }
        }
    }

    /// Fetches addresses that an ALIAS record leads to, for which no query waits, unless they are
    /// being fetched or there is no room.
    pub(super) fn refresh(&mut self, question: AliasQuestion, now: Now) {
        let AliasQuestion { forward, name, name_hash, qtype } = question;
        let (dnssec_ok, checking_disabled) = (false, false);
        let (group, facts) = (forward, ClientFacts::NONE);
        let key = FetchKey { group, name, qtype, dnssec_ok, checking_disabled, facts };
        let has_room = self.queries.fetches.len() < self.outbound.upstreams.share().fetches_max();
        if has_room
            && self.outbound.upstreams.get(forward).is_some()
            && self.queries.fetches.find(&key, name_hash).is_none()
        {
            self.counters.prefetched.add(1);
            self.begin(key, name_hash, None, now);
        }
    }

    /// Returns the key of what is to be fetched for a query; nothing if its group is not known any
    /// more.
    fn fetch_key(&self, query: &PendingQuery) -> Option<FetchKey> {
        let checkpoint = query.query.deferral.history.checkpoint.as_ref();
        let is_of_alias_record = checkpoint.is_some_and(Checkpoint::is_of_alias_record);
        let key = self.client_key(query)?;
        Some(if is_of_alias_record { key.for_alias_record() } else { key })
    }

    /// Returns the key of what is to be fetched for a query as its client has asked it.
    fn client_key(&self, query: &PendingQuery) -> Option<FetchKey> {
        let Deferred { query: octets, deferral, .. } = &*query.query;
        let Deferral { to: To::Forward(group), query: asked, name_hash, is_alias, .. } = deferral
        else {
            return None;
        };
        let from = (*group, self.client_facts(*group, &query.query));
        if let Some(chain) = &query.chain {
            return Some(FetchKey::new(from, asked, &chain.next));
        }
        if let Some(target) = deferral.history.checkpoint.as_ref().and_then(Checkpoint::target) {
            return Some(FetchKey::new(from, asked, target));
        }
        let own_name = octets.get(HEADER_BYTES..usize::from(asked.name_end))?;
        if !is_alias {
            return Some(FetchKey::new(from, asked, own_name));
        }
        let step = deferral.history.search_step;
        let snapshot = self.config.snapshot.load();
        let snapshot = snapshot.at(query.query.peer.listener);
        let (number, name) = fetched_name(snapshot, own_name, (asked.qtype, step))?;
        // Not after a reload, perhaps.
        let is_same = number == *group && name.hash(0) == *name_hash;
        is_same.then(|| FetchKey::new(from, asked, name.as_wire()))
    }

    /// Returns what the upstreams of a group are told of the client of a query.
    fn client_facts(&self, group: u32, query: &Deferred) -> ClientFacts {
        let known = self.outbound.upstreams.get(group);
        let options = known.map(|known| &known.group.options);
        let Some(options) = options.filter(|options| options.tells_of_client) else {
            return ClientFacts::NONE;
        };
        let seed = self.config.snapshot.load().zones.seed();
        options.facts(&(&query.peer).into(), &query.deferral.history.option_codes, seed)
    }

    /// Answers a query from the cache, and fetches the answer anew if that is due and there is
    /// room, so that popular answers are replaced before they expire. Returns the query if nothing
    /// fresh is cached.
    fn answer_from_cache(
        &mut self,
        key: &FetchKey,
        query: PendingQuery,
        now: Now,
    ) -> Option<PendingQuery> {
        let Some(known) = self.outbound.upstreams.get(key.group) else { return Some(query) };
        let (hash, listener) = (query.query.deferral.name_hash, query.query.peer.listener);
        let (cache_key, secs) = (key.cache_key(hash), now.monotonic_secs());
        let missed_at = query.query.deferral.missed_at;
        if missed_at.is_some_and(|missed_at| missed_at == known.group.cache.inserts(&cache_key)) {
            return Some(query);
        }
        let hit = known.group.cache.find(&cache_key, secs, &mut self.clients.body);
        let hit = hit.filter(|hit| !hit.is_stale || !hit.refresh_due); // rfc8767#5
        let Some(hit) = hit else { return Some(query) };
        let cache = Arc::clone(&known.group.cache);
        let answer = cached(&hit, &self.clients.body, &key.name);
        let is_of_use =
            self.clients.deliveries.is_target_elsewhere((key, listener), hit.onward, &answer);
        let left = if is_of_use {
            self.counters.kept.add(1);
            self.counters.stale.add(u64::from(hit.is_stale));
            self.clients.deliveries.deliver(query, &answer, &self.outbound.upstreams, now);
            None
        } else {
            Some(query)
        };
        let may_fetch = self.queries.fetches.find(key, hash).is_none()
            && self.queries.fetches.len() < self.outbound.upstreams.share().fetches_max();
        let is_due = is_of_use && hit.refresh_due && may_fetch;
        if is_due && cache.claim_refresh(&cache_key, &hit, secs) {
            self.counters.prefetched.add(1);
            self.begin(key.clone(), hash, None, now);
        }
        left
    }

    /// Takes a place for a query; the oldest may have to leave for it.
    fn take_place(&mut self, query: &PendingQuery, now: Now) -> Ticket {
        let (ticket, evicted) = self.queries.waiters.admit(client(query.query.peer.address.ip()));
        if let Some(Evicted { ticket, fetch, is_own }) = evicted {
            self.count_evicted(is_own);
            self.answer_evicted(fetch, ticket, now);
        }
        ticket
    }

    /// Has one of the queries that wait for a fetch give way to one of a client.
    fn evict_waiter(&mut self, id: FetchId, newcomer: u64, now: Now) {
        let random = self.outbound.random.next();
        let Some(fetch) = self.queries.fetches.get(id) else { return };
        let waiters = &mut fetch.waiters;
        let client_at = |place: usize| client(waiters[place].query.query.peer.address.ip());
        let place = place_to_evict(waiters.len(), random, client_at);
        let is_own = client_at(place) == newcomer;
        let waiter = waiters.swap_remove(place);
        let key = fetch.key.clone();
        self.count_evicted(is_own);
        self.queries.waiters.release(waiter.ticket);
        self.answer_without_place(waiter.query, &key, now);
    }

    /// Counts a query that gave its place to a newer one, of the same client or of another.
    pub(super) fn count_evicted(&self, is_own: bool) {
        match is_own {
            true => self.counters.dropped_own.add(1),
            false => self.counters.dropped_other.add(1),
        }
    }

    /// Answers a query that lost its place, and waited for a fetch if that is known. A fetch for
    /// which no query waits any more ends.
    fn answer_evicted(&mut self, fetch: Option<FetchId>, ticket: Ticket, now: Now) {
        let Some(id) = fetch else { return };
        let Some(fetch) = self.queries.fetches.get(id) else { return };
        let Some(at) = fetch.waiters.iter().position(|waiter| waiter.ticket == ticket) else {
            return;
        };
        let waiter = fetch.waiters.swap_remove(at);
        let key = fetch.key.clone();
        if fetch.waiters.is_empty() {
            self.end(id);
        }
        self.answer_without_place(waiter.query, &key, now);
    }

    /// Answers a query that has lost its place before it was looked at.
    pub(super) fn reject(&mut self, query: PendingQuery, now: Now) {
        match self.fetch_key(&query) {
            Some(key) => self.answer_without_place(query, &key, now),
            None => self.clients.deliveries.fail(query, Reason::UpstreamBusy, now),
        }
    }

    /// Answers a query for which there is no place: with an answer that has expired, if there is
    /// one, or else that too much is being asked.
    fn answer_without_place(&mut self, query: PendingQuery, key: &FetchKey, now: Now) {
        let Some(known) = self.outbound.upstreams.get(key.group) else {
            return self.clients.deliveries.fail(query, Reason::UpstreamBusy, now);
        };
        let cache_key = key.cache_key(query.query.deferral.name_hash);
        let hit = known.group.cache.find(&cache_key, now.monotonic_secs(), &mut self.clients.body);
        // One that leads to names that are forwarded elsewhere would have to wait there.
        let is_whole = |hit: &Hit| hit.onward != Some(Onward::Others);
        let hit = hit.filter(|hit| hit.kind != Kind::Failure && is_whole(hit));
        let Some(hit) = hit else {
            return self.clients.deliveries.fail(query, Reason::UpstreamBusy, now);
        };
        let answer = cached(&hit, &self.clients.body, &key.name);
        let listener = query.query.peer.listener;
        if self.clients.deliveries.is_target_elsewhere((key, listener), hit.onward, &answer) {
            self.counters.stale.add(u64::from(hit.is_stale));
            self.clients.deliveries.deliver(query, &answer, &self.outbound.upstreams, now);
        } else {
            self.clients.deliveries.fail(query, Reason::UpstreamBusy, now);
        }
    }

    /// Has a query wait for what is being fetched already, and answers it as the queries were that
    /// waited before it.
    fn join(&mut self, id: FetchId, waiter: Waiter, now: Now) {
        self.counters.coalesced.add(1);
        self.queries.waiters.wait_for(waiter.ticket, id);
        let Some(fetch) = self.queries.fetches.get(id) else {
            return self.fail(vec![waiter], Reason::UpstreamFailed, "", now);
        };
        fetch.waiters.push(waiter);
        let (is_stale, failed) = (fetch.is_stale, fetch.failed.clone());
        if is_stale || failed.is_some() {
            self.answer_stale(id, now);
        }
        if let Some((reason, text)) = failed {
            let waiters =
                self.queries.fetches.get(id).map(|fetch| std::mem::take(&mut fetch.waiters));
            self.fail(waiters.unwrap_or_default(), super::exchanges::told(reason), &text, now);
        }
    }
}
