//! What other threads hand over to a forwarder thread: deferred queries, answers that came over
//! streams, and questions about what it knows.

use std::fmt;
use std::io;
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use zonda_deferral::{Deferred, Queue, ReplyTo};
use zonda_engine::AliasQuestion;
use zonda_netio::Wake;
use zonda_netio::process::current_cpu;

use crate::departures::RefusedQuery;
use crate::fairness::{client, place_to_evict};
use crate::known_group::Report;
use crate::loops::LoopQuestions;
use crate::pending::PendingQuery;
use crate::stream::StreamAnswer;

/// Queries that are handed over at once: what a thread admits in some 20 ms. More come only when it
/// cannot keep up.
const QUERIES_MAX: usize = 4096;
/// Queries with which the thread that brings them does this one's work while it sleeps. More are
/// worth waking it, unless it waits for the same CPU: what brings them has other queries to answer
/// meanwhile.
const ADMIT_NOW_MAX: usize = 16;
/// Queries that gave way and are answered all the same, that there is no room or by what is kept:
/// what a thread writes in a few milliseconds. Those beyond get no answer.
const DROPPED_MAX: usize = 1024;
/// Fetches for which no query waits that a thread has not taken; more of them are left out.
const REFRESHES_MAX: usize = 1024;
/// How long a thread has time to tell what it knows.
const REPORT_MAX: Duration = Duration::from_secs(1);

/// The threads that fetch, as those that receive queries see them: equal questions go to the same
/// thread, so that they can wait together.
#[derive(Clone, Debug, Default)]
pub struct Forwarders {
    /// The inboxes, one for each forwarder thread.
    inboxes: Arc<[Arc<Inbox>]>,
    /// The questions that show a loop, which may come back to any of the threads.
    loop_questions: Arc<LoopQuestions>,
}

impl Forwarders {
    /// The forwarder threads that take queries from `inboxes`.
    #[must_use]
    pub fn new(inboxes: Vec<Arc<Inbox>>) -> Self {
        Self { inboxes: inboxes.into(), loop_questions: Arc::default() }
    }

    /// The questions that show a loop.
    pub(crate) fn loop_questions(&self) -> &LoopQuestions {
        &self.loop_questions
    }

    /// Returns the number of forwarder threads, at least 1.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.inboxes.len()).unwrap_or(u32::MAX).max(1)
    }

    /// Hands over a query from within a thread's work, for which clients wait: the thread does not
    /// yield its CPU.
    pub(crate) fn pass_on(&self, query: PendingQuery) {
        if let Some(inbox) = self.inboxes.get(self.place_of(&query.query)) {
            inbox.submit(&mut iter::once(query), false);
        }
    }

    /// The place of the thread that fetches what a query asks for.
    fn place_of(&self, query: &Deferred) -> usize {
        // The upper half of the hash, as tables take the lower one.
        (query.deferral.name_hash >> 32) as usize % self.inboxes.len().max(1)
    }

    /// Has addresses fetched that ALIAS records lead to, for which no query waits, unless they are
    /// being fetched already or a thread has no room for more.
    pub fn refresh(&self, question: AliasQuestion) {
        let place = (question.name_hash >> 32) as usize % self.inboxes.len().max(1);
        if let Some(inbox) = self.inboxes.get(place) {
            inbox.put(|contents| {
                if contents.refreshes.len() < REFRESHES_MAX {
                    contents.refreshes.push(question);
                }
            });
        }
    }

    /// Returns the reports of all threads on the upstreams. A thread that does not report in time
    /// is left out.
    #[must_use]
    pub fn reports(&self) -> Vec<Report> {
        let (sender, receiver) = std::sync::mpsc::channel();
        for inbox in &*self.inboxes {
            inbox.put(|contents| contents.reports.push(sender.clone()));
        }
        drop(sender); // so that the end comes with the last thread's answer
        let deadline = Instant::now() + REPORT_MAX;
        let left = || deadline.saturating_duration_since(Instant::now());
        iter::from_fn(|| receiver.recv_timeout(left()).ok()).flatten().collect()
    }
}

impl Queue for Forwarders {
    fn put(&self, queries: &mut Vec<Deferred>) {
        if let [only] = &*self.inboxes {
            return only.submit(&mut queries.drain(..).map(PendingQuery::from), true);
        }
        for (place, inbox) in self.inboxes.iter().enumerate() {
            let is_for = |query: &mut Deferred| self.place_of(query) == place;
            let own: Vec<Deferred> = queries.extract_if(.., is_for).collect();
            if !own.is_empty() {
                inbox.submit(&mut own.into_iter().map(PendingQuery::from), true);
            }
        }
    }

    /// Whether no query waits in any inbox, and each thread has answered all that it has taken.
    fn is_idle(&self) -> bool {
        let handed_over =
            || self.inboxes.iter().map(|inbox| inbox.handed_over.load(Relaxed)).sum::<u64>();
        let before = handed_over();
        // The threads are looked at one after the other; meanwhile one may hand a query to another.
        self.inboxes.iter().all(|inbox| inbox.is_at_rest()) && handed_over() == before
    }
}

/// The queries and answers handed over to a thread.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Deferred queries that were handed over.
    pub(crate) queries: Vec<PendingQuery>,
    /// Queries that gave way and shall be told so.
    pub(crate) dropped: Vec<PendingQuery>,
    /// Answers that came over connections.
    pub(crate) answers: Vec<StreamAnswer>,
    /// Queries that the kernel has refused to send.
    pub(crate) refused: Vec<RefusedQuery>,
    /// What is to be fetched although no query waits for it.
    pub(crate) refreshes: Vec<AliasQuestion>,
    /// The senders of those that want to know what the thread knows of the upstreams.
    pub(crate) reports: Vec<std::sync::mpsc::Sender<Vec<Report>>>,
    /// How many gave way to newer ones of the same client.
    pub(crate) dropped_own: u64,
    /// How many gave way to one of another client.
    pub(crate) dropped_other: u64,
}

impl Contents {
    /// Adds a query. If it is one too many, another gives way and is told so; unless there are too
    /// many of those as well, as a client that brings far more than the thread can take must not be
    /// answered as much.
    fn push(&mut self, query: PendingQuery) {
        if self.queries.len() < QUERIES_MAX {
            return self.queries.push(query);
        }
        let client_at = |place: usize| client(self.queries[place].query.peer.address.ip());
        let place = place_to_evict(QUERIES_MAX, query.query.deferral.name_hash, client_at);
        match client_at(place) == client(query.query.peer.address.ip()) {
            true => self.dropped_own += 1,
            false => self.dropped_other += 1,
        }
        let dropped = std::mem::replace(&mut self.queries[place], query);
        if self.dropped.len() < DROPPED_MAX {
            self.dropped.push(dropped);
        } else if let ReplyTo::Connection(sender) = &dropped.query.reply_to {
            let _ = sender.try_send(Vec::new()); // it is only gone when the connection is
        }
    }

    /// Whether nothing was handed over.
    fn is_empty(&self) -> bool {
        self.has_no_queries()
            && self.answers.is_empty()
            && self.refused.is_empty()
            && self.refreshes.is_empty()
            && self.reports.is_empty()
    }

    /// Whether no query waits.
    fn has_no_queries(&self) -> bool {
        self.queries.is_empty() && self.dropped.is_empty()
    }
}

/// Queries on their way to a thread, those that it has not taken.
pub(crate) type Queries<'q> = dyn ExactSizeIterator<Item = PendingQuery> + 'q;

/// Admission of queries to a forwarder, for the threads that find it idle.
pub(crate) trait AdmitNow: Send + Sync {
    /// Takes queries in place of the thread, unless that is at work: then they stay.
    fn admit_now(&self, queries: &mut Queries<'_>);
}

/// The inbox of one forwarder thread.
pub struct Inbox {
    /// The forwarder of the thread, while it lives.
    work: OnceLock<Weak<dyn AdmitNow>>,
    /// Everything handed over since the inbox was last emptied.
    contents: Mutex<Contents>,
    /// The thread has said that no query waits for it, and has taken none since. Changed and read
    /// with the contents locked, so that no query is ever between the two.
    is_at_rest: AtomicBool,
    /// How often queries were handed over.
    handed_over: AtomicU64,
    /// The CPU that the thread was last seen on while it worked.
    runs_on: AtomicUsize,
    /// Wakes the thread.
    wake: Wake,
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("contents", &self.contents).finish_non_exhaustive()
    }
}

impl Inbox {
    /// An empty inbox.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            work: OnceLock::new(),
            contents: Mutex::default(),
            is_at_rest: AtomicBool::new(false),
            handed_over: AtomicU64::new(0),
            runs_on: AtomicUsize::new(usize::MAX),
            wake: Wake::new()?,
        }))
    }

    /// Lets the threads that bring queries do the thread's work while it sleeps: that spares a
    /// change to another thread.
    pub(crate) fn set_work(&self, work: Weak<dyn AdmitNow>) {
        let _ = self.work.set(work); // an inbox has one thread
    }

    /// Hands over queries.
    fn submit(&self, queries: &mut Queries<'_>, may_yield: bool) {
        let is_now = queries.len() <= ADMIT_NOW_MAX || self.shares_our_cpu();
        let work = self.work.get().filter(|_| is_now);
        if let Some(work) = work.and_then(Weak::upgrade) {
            work.admit_now(queries);
            if may_yield && queries.len() > 0 && self.shares_our_cpu() {
                thread::yield_now(); // most likely it works, and was held up to bring these
                work.admit_now(queries);
            }
        }
        if queries.len() > 0 {
            self.put(|contents| queries.for_each(|query| contents.push(query)));
        }
        self.handed_over.fetch_add(1, Relaxed); // at last: a thread that rests later has locked
    }

    /// The thread works now.
    pub(crate) fn works_here(&self) {
        self.runs_on.store(current_cpu().unwrap_or(usize::MAX), Relaxed);
    }

    /// Whether the thread has the CPU on which the caller runs, or waits for it.
    fn shares_our_cpu(&self) -> bool {
        current_cpu() == Some(self.runs_on.load(Relaxed))
    }

    /// Returns the wake-up that the thread waits for.
    #[must_use]
    pub(crate) fn wake(&self) -> &Wake {
        &self.wake
    }

    /// The thread has answered all that it has taken.
    pub(crate) fn rest(&self) {
        let _contents = self.lock();
        self.is_at_rest.store(true, Relaxed);
    }

    /// The thread has taken queries, or another one has in its place.
    pub(crate) fn stir(&self) {
        if self.is_at_rest.load(Relaxed) {
            let _contents = self.lock();
            self.is_at_rest.store(false, Relaxed);
        }
    }

    /// Whether no query waits here, and the thread has answered all that it has taken.
    fn is_at_rest(&self) -> bool {
        let contents = self.lock();
        contents.has_no_queries() && self.is_at_rest.load(Relaxed)
    }

    /// Takes all that has come.
    pub(crate) fn take_all(&self) -> Contents {
        self.wake.rest();
        let mut contents = self.lock();
        if !contents.has_no_queries() {
            self.is_at_rest.store(false, Relaxed);
        }
        std::mem::take(&mut *contents)
    }

    /// The contents, for a moment; no thread waits while it holds them.
    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds something; wakes the thread if it has taken all else.
    pub(crate) fn put(&self, add: impl FnOnce(&mut Contents)) {
        let mut contents = self.lock();
        let was_empty = contents.is_empty();
        add(&mut contents);
        drop(contents);
        if was_empty {
            self.wake.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::net::IpAddr;
    use tokio::sync::mpsc;
    use zonda_engine::{Deferral, Peer, To, Transport};

    /// A query of a client that is known by the last octet of its address.
    fn query(client: u8, name_hash: u64) -> (PendingQuery, mpsc::Receiver<Vec<u8>>) {
        let (sender, receiver) = mpsc::channel(1);
        let address = ([192, 0, 2, client], 5353).into();
        let peer = Peer::new(address, Transport::Tcp, 0);
        let deferral = Deferral::new(To::Forward(0), name_hash);
        let reply_to = ReplyTo::Connection(sender);
        (Deferred { query: Vec::new(), peer, deferral, reply_to }.into(), receiver)
    }

    #[test]
    fn inbox_overflow_evicts_queries_of_the_client_with_most_of_them() {
        let mut contents = Contents::default();
        for number in 0..100_000 {
            contents.push(query(1, number).0);
            if number % 1000 == 0 {
                contents.push(query(2, number).0);
            }
        }
        let is_modest =
            |query: &&PendingQuery| query.query.peer.address.ip() == IpAddr::from([192, 0, 2, 2]);
        let modest = contents.queries.iter().filter(is_modest).count();
        assert_eq!((contents.queries.len(), modest), (QUERIES_MAX, 100));
        assert_eq!(contents.dropped_own + contents.dropped_other, 100_100 - QUERIES_MAX as u64);
        assert_eq!(contents.dropped.len(), DROPPED_MAX);
    }

    #[test]
    fn what_place_to_evict_is_to_be_told_and_a_connection_at_once_if_there_are_too_many() {
        let mut contents = Contents::default();
        let mut receivers = Vec::new();
        for number in 0..=(QUERIES_MAX + DROPPED_MAX) as u64 {
            assert!(contents.dropped.len() == receivers.len().saturating_sub(QUERIES_MAX));
            let (query, receiver) = query(1, number);
            contents.push(query);
            receivers.push(receiver);
        }
        let told = receivers.iter_mut().filter_map(|receiver| receiver.try_recv().ok());
        assert_eq!(told.collect::<Vec<_>>(), [Vec::<u8>::new()]);
    }

    #[test]
    fn threads_are_idle_only_when_no_query_waits_for_any_of_them() {
        let inboxes = [Inbox::new().unwrap(), Inbox::new().unwrap()];
        let all = Forwarders::new(inboxes.to_vec());
        inboxes[0].rest();
        assert!(!all.is_idle(), "the second has said nothing yet");
        inboxes[1].rest();
        assert!(all.is_idle());
        inboxes[0].put(|contents| contents.push(query(1, 0).0));
        assert!(!all.is_idle(), "a query waits");
        let taken = inboxes[0].take_all();
        assert!(!all.is_idle(), "the thread has not answered yet");
        drop(taken);
        inboxes[0].rest();
        assert!(all.is_idle());
    }
}
