//! What is being fetched, for whom, and from where.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use zonda_cache::Cache;
use zonda_wire::Class;

use super::ask::{How, Question};
use super::inbox::Deferred;

/// The servers that answer for a zone.
pub struct Group {
    /// Where they are; at least one.
    pub upstreams: Vec<SocketAddr>,
    /// How long a client waits for them.
    pub timeout: Duration,
    /// After how long it gets an answer that has expired, if there is one.
    pub stale_after: Duration,
    /// How long after it has expired an answer may still be given.
    pub stale_max: Duration,
    /// Where their answers are kept.
    pub cache: Arc<Cache>,
}

/// All groups, by the number of their [`Forward`](zonda_engine::zones::Forward).
pub type Groups = HashMap<u32, Arc<Group>>;

/// Something that is being fetched.
pub struct Fetch {
    /// Tells it from others that had its place before.
    pub number: u64,
    /// What is asked.
    pub question: Question,
    /// Who is asked.
    pub group: Arc<Group>,
    /// The hash of the name.
    pub name_hash: u64,
    /// Who waits for it.
    pub waiters: Vec<Deferred>,
    /// When it began; nanoseconds of the monotonic clock.
    pub since_nanos: u64,
    /// The upstream that is asked next, by its place in the group.
    pub next: usize,
    /// When to look whether it was answered; nanoseconds of the monotonic clock.
    pub look_at_nanos: u64,
    /// Streams on which it is asked now.
    pub streams: u32,
    /// Queries sent so far.
    pub tries: u32,
    /// Upstreams that have said that they will not answer.
    pub refusals: usize,
    /// How it is asked from now on.
    pub how: How,
    /// Where answers may still come from: a port and an id on it.
    pub asked: Vec<(usize, u16)>,
}

/// How long after the first query of a question the second is sent; each later one waits twice as
/// long as the one before.
const REPEAT_AFTER: Duration = Duration::from_millis(100);

impl Fetch {
    /// When to look at it next if nothing happens.
    pub fn next_look(&self, now_nanos: u64) -> u64 {
        let nanos = |time: Duration| time.as_nanos() as u64;
        let repeat = nanos(REPEAT_AFTER) << self.tries.saturating_sub(1).min(10);
        let moments = [self.group.timeout, self.group.stale_after].map(nanos);
        let moments = moments.into_iter().map(|moment| self.since_nanos + moment);
        let next = moments.filter(|at| *at > now_nanos).min();
        next.unwrap_or(u64::MAX).min(now_nanos + repeat)
    }

    /// Under which the answer is kept.
    pub fn cache_key(&self) -> zonda_cache::Key<'_> {
        zonda_cache::Key {
            name: &self.question.name,
            hash: self.name_hash,
            qtype: self.question.qtype,
            qclass: Class::IN,
            source: self.question.group,
            dnssec_ok: self.question.dnssec_ok,
            checking_disabled: self.question.checking_disabled,
        }
    }
}

/// A fetch by its place and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FetchId {
    /// Its place in the table.
    pub place: usize,
    /// See [`Fetch::number`].
    pub number: u64,
}

/// All fetches of a thread.
#[derive(Default)]
pub struct Fetches {
    /// By place; those that are free are empty.
    fetches: Vec<Option<Fetch>>,
    /// Free places.
    free: Vec<usize>,
    /// Where a question is being fetched.
    by_question: HashMap<Question, usize>,
    /// The number of the next one.
    next_number: u64,
}

impl Fetches {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_question.len()
    }

    /// The one for a question.
    pub fn find(&mut self, question: &Question) -> Option<&mut Fetch> {
        self.fetches[*self.by_question.get(question)?].as_mut()
    }

    /// The one with an id, if it is still there.
    pub fn get(&mut self, id: FetchId) -> Option<&mut Fetch> {
        let fetch = self.fetches.get_mut(id.place)?.as_mut()?;
        (fetch.number == id.number).then_some(fetch)
    }

    /// Begins one for a question that has none.
    pub fn begin(
        &mut self,
        question: Question,
        group: Arc<Group>,
        waiter: Deferred,
        (now_nanos, first): (u64, usize),
    ) -> FetchId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.fetches.push(None);
            self.fetches.len() - 1
        });
        let number = self.next_number;
        self.next_number += 1;
        self.by_question.insert(question.clone(), place);
        self.fetches[place] = Some(Fetch {
            number,
            question,
            name_hash: waiter.deferral.name_hash,
            next: first % group.upstreams.len(),
            group,
            waiters: vec![waiter],
            since_nanos: now_nanos,
            look_at_nanos: 0,
            streams: 0,
            tries: 0,
            refusals: 0,
            how: How { edns: true, mixed_case: true },
            asked: Vec::new(),
        });
        FetchId { place, number }
    }

    /// Ends one.
    pub fn end(&mut self, id: FetchId) -> Option<Fetch> {
        self.get(id)?;
        let fetch = self.fetches[id.place].take()?;
        self.by_question.remove(&fetch.question);
        self.free.push(id.place);
        Some(fetch)
    }

    /// Ends all.
    pub fn end_all(&mut self) -> impl Iterator<Item = Fetch> + use<> {
        std::mem::take(self).fetches.into_iter().flatten()
    }
}
