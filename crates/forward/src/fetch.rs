//! What is being fetched, and the queries that wait for it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use zonda_cache::Flushes;
use zonda_upstream::exchange::Reason;
use zonda_upstream::numbers::NumberMap;
use zonda_upstream::{Exchange, Ticket};

use crate::cause::{Attempt, FetchId};
use crate::fetch_key::FetchKey;
use crate::pending::PendingQuery;

/// A question in the course of being asked of a group of upstreams.
pub struct Fetch {
    /// Number that tells this fetch from former ones in the same place.
    number: u64,
    /// The question, and the group that it is asked of.
    pub key: FetchKey,
    /// The hash of the name.
    pub name_hash: u64,
    /// The right of the fetch to have upstreams asked.
    pub ticket: Option<Ticket>,
    /// The beginning of the fetch among the flushes of the cache.
    pub asked: Flushes,
    /// The queries that wait for the fetch.
    pub waiters: Vec<Waiter>,
    /// The upstreams that it is asked of, and when again.
    pub exchange: Exchange,
    /// When a timer is set for it; nanoseconds of the monotonic clock.
    pub wake_at: u64,
    /// The queries that waited have been given an answer that has expired, if there is one.
    pub is_stale: bool,
    /// The reason, and its words, with which the queries that waited were answered SERVFAIL.
    pub failed: Option<(Reason, String)>,
    /// Where answers may still come from.
    pub sent: Vec<SentQuery>,
}

/// A query over UDP.
#[derive(Clone, Copy, Debug)]
pub struct SentQuery {
    /// The port that the query left from.
    pub port: usize,
    /// The id of the query.
    pub id: u16,
    /// The upstream that it was sent to, by its place in the group.
    pub upstream: u8,
    /// The address that the query was sent to.
    pub address: SocketAddr,
}

impl Fetch {
    /// Where a query was lost that an attempt repeats: no other address of the upstream was asked
    /// since.
    pub fn lost_at(&self, attempt: u8, upstream: u8) -> Option<SocketAddr> {
        let mut sent = self.sent.iter().rev();
        let last = sent.find(|sent| sent.upstream == upstream)?;
        self.exchange.repeats_lost(attempt).then_some(last.address)
    }
}

/// A query that waits.
pub struct Waiter {
    /// The query, and what was fetched for it before.
    pub query: PendingQuery,
    /// The right of the query to wait.
    pub ticket: Ticket,
}

/// All fetches of a thread.
#[derive(Default)]
pub struct Fetches {
    /// The fetches by place; free places are empty.
    fetches: Vec<Option<Fetch>>,
    /// Free places, of which the lowest is taken first, so that the last ones become free for good.
    free: BinaryHeap<Reverse<usize>>,
    /// Where something is being fetched that was not answered yet, by [`FetchKey::number`], which
    /// has a secret in it. Of two that share a number, which is next to impossible, the later one
    /// is found.
    by_key: NumberMap<u64, usize>,
    /// The number of the next fetch.
    next_number: u64,
    /// Empty lists of fetches that have ended, for the next ones.
    spare: Spare,
}

/// Memory of fetches that have ended, which the next ones use.
#[derive(Default)]
struct Spare {
    /// Lists of queries that wait.
    waiters: Vec<Vec<Waiter>>,
    /// Lists of queries to upstreams.
    sent: Vec<Vec<SentQuery>>,
}

/// Empty lists of each kind that are kept.
const SPARE_MAX: usize = 64;
/// The longest list that is kept.
const SPARE_LEN_MAX: usize = 8;

/// Keeps an empty list for later, unless it or its kind takes too much memory.
fn keep_spare<T>(lists: &mut Vec<Vec<T>>, list: Vec<T>) {
    debug_assert!(list.is_empty());
    if lists.len() < SPARE_MAX && (1..=SPARE_LEN_MAX).contains(&list.capacity()) {
        lists.push(list);
    }
}

impl Fetches {
    /// Returns the number of fetches.
    pub fn len(&self) -> usize {
        self.fetches.len() - self.free.len()
    }

    /// Returns the number of fetches without an answer; the rest wait for late messages.
    pub fn unanswered(&self) -> usize {
        self.by_key.len()
    }

    /// Whether a query waits for any fetch.
    pub fn have_waiters(&self) -> bool {
        self.fetches.iter().flatten().any(|fetch| !fetch.waiters.is_empty())
    }

    /// All queries that wait for an answer, each with the number of the group that is asked.
    pub fn waiting(&self) -> impl Iterator<Item = (u32, Attempt)> {
        self.fetches.iter().enumerate().flat_map(|(place, fetch)| {
            fetch.iter().flat_map(move |fetch| {
                let id = FetchId { place, number: fetch.number };
                let group = fetch.key.group;
                let waiting = fetch.exchange.waiting_attempts();
                waiting
                    .map(move |(index, upstream)| (group, Attempt { fetch: id, index, upstream }))
            })
        })
    }

    /// The one that fetches something, whose name has this hash, unless that was answered already.
    pub fn find(&self, key: &FetchKey, name_hash: u64) -> Option<FetchId> {
        let place = *self.by_key.get(&key.number(name_hash))?;
        let fetch = self.fetches[place].as_ref().filter(|fetch| fetch.key == *key)?;
        Some(FetchId { place, number: fetch.number })
    }

    /// The one with an id, if it is still there.
    pub fn get(&mut self, id: FetchId) -> Option<&mut Fetch> {
        let fetch = self.fetches.get_mut(id.place)?.as_mut()?;
        (fetch.number == id.number).then_some(fetch)
    }

    /// When a fetch wants its timer, if it is still there.
    pub fn wake_at(&self, id: FetchId) -> Option<u64> {
        let fetch = self.fetches.get(id.place)?.as_ref()?;
        (fetch.number == id.number).then_some(fetch.wake_at)
    }

    /// Begins one for what no other fetches, and whose name has this hash.
    pub fn begin(
        &mut self,
        (key, name_hash): (FetchKey, u64),
        asked: Flushes,
        exchange: Exchange,
        waiter: Option<Waiter>,
    ) -> FetchId {
        let place = self.free.pop().map_or_else(
            || {
                self.fetches.push(None);
                self.fetches.len() - 1
            },
            |Reverse(place)| place,
        );
        let number = self.next_number;
        self.next_number += 1;
        let mut waiters = self.spare.waiters.pop().unwrap_or_default();
        waiters.extend(waiter);
        let sent = self.spare.sent.pop().unwrap_or_default();
        self.by_key.insert(key.number(name_hash), place);
        self.fetches[place] = Some(Fetch {
            number,
            key,
            name_hash,
            ticket: None,
            asked,
            waiters,
            exchange,
            wake_at: u64::MAX,
            is_stale: false,
            failed: None,
            sent,
        });
        FetchId { place, number }
    }

    /// Takes the queries that wait for a fetch that was answered; no query joins them any more.
    pub fn settle(&mut self, id: FetchId) -> Vec<Waiter> {
        let Some(fetch) = self.get(id) else { return Vec::new() };
        let waiters = std::mem::take(&mut fetch.waiters);
        self.close(id);
        waiters
    }

    /// Takes back a list of queries that were answered.
    pub fn take_back_waiters(&mut self, waiters: Vec<Waiter>) {
        keep_spare(&mut self.spare.waiters, waiters);
    }

    /// Takes back a list of queries to upstreams that were given up.
    pub fn take_back_sent(&mut self, mut sent: Vec<SentQuery>) {
        sent.clear();
        keep_spare(&mut self.spare.sent, sent);
    }

    /// Ends a fetch.
    pub fn end(&mut self, id: FetchId) -> Option<Fetch> {
        self.get(id)?;
        self.close(id);
        self.free.push(Reverse(id.place));
        self.fetches[id.place].take()
    }

    /// Ends all.
    pub fn end_all(&mut self) -> impl Iterator<Item = Fetch> + use<> {
        self.by_key.clear();
        self.free.clear();
        std::mem::take(&mut self.fetches).into_iter().flatten()
    }

    /// Gives up room behind the last of them; returns for how many there still is.
    pub fn shrink(&mut self) -> usize {
        while self.fetches.pop_if(|fetch| fetch.is_none()).is_some() {}
        let places = self.fetches.len();
        self.free.retain(|Reverse(place)| *place < places);
        self.fetches.shrink_to_fit();
        self.free.shrink_to_fit();
        self.by_key.shrink_to_fit();
        self.spare = Spare::default();
        places
    }

    /// Lets another fetch what this one does. Its place is its own still, so that no other's entry
    /// can be meant.
    fn close(&mut self, id: FetchId) {
        let Some(Some(fetch)) = self.fetches.get(id.place) else { return };
        let number = fetch.key.number(fetch.name_hash);
        if self.by_key.get(&number) == Some(&id.place) {
            self.by_key.remove(&number);
        }
    }
}
