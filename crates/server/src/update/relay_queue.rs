//! Which message is forwarded next; without threads and clocks.
//!
//! # Invariants
//! - Messages that wait, and their octets, are bounded; so are the threads.
//! - No more than [`OF_PRIMARY_MAX`] threads have messages whose first primary is the same, and no
//!   more than [`OF_SLOW_MAX`] those for slow ones. A primary that is tried second is not counted.
//! - What waits for one first primary leaves room to what waits for the rest.
//! - A message whose octets are being forwarded already is not taken from a stream: it has gone
//!   round, as servers forward updates to each other.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Threads that forward messages at most: as many wait for primaries at once.
pub const THREADS_MAX: usize = 16;
/// Threads that forward messages to one primary.
const OF_PRIMARY_MAX: usize = 4;
/// Threads that forward messages to one slow primary.
const OF_SLOW_PRIMARY_MAX: usize = 2;
/// Threads that forward messages to slow primaries.
const OF_SLOW_MAX: usize = 8;
/// A thread that forwards a message for longer makes its primary a slow one.
const LONG: Duration = Duration::from_secs(1);
/// How long a primary is slow after a thread that was busy with it for long, and is tried behind
/// the other ones after it has not replied.
const SLOW: Duration = Duration::from_secs(30);
/// Messages that wait for a thread at most.
const WAITING_MAX: usize = 2000;
/// Octets that they have at most, and one message more.
const OCTETS_MAX: usize = 4 << 20;
/// The part of both that messages with one first primary take up at most.
const OF_PRIMARY_PART: usize = 4;

/// Why a message is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayRefusal {
    /// Too many messages or octets wait.
    Busy,
    /// The message is being forwarded already: it has come back.
    Returned,
}

/// A message that is to be forwarded.
#[derive(Debug)]
pub struct RelayedMessage<M> {
    /// The message of a client.
    pub message: M,
    /// The addresses of the primaries, in the order in which they are tried.
    pub primaries: Vec<SocketAddr>,
    /// The moment at which the message is given up.
    pub limit: Instant,
    /// Number of its octets.
    octets: usize,
    /// A hash of its octets.
    digest: u64,
}

/// What a thread has taken on, which ends with [`RelayQueue::finish`].
#[derive(Debug)]
pub struct RunningRelay {
    /// The primary whose thread it is, if there is one.
    primary: Option<SocketAddr>,
    began: Instant,
    digest: u64,
}

/// The messages that wait for a thread, and the primaries that threads are busy with.
pub struct RelayQueue<M> {
    waiting: VecDeque<RelayedMessage<M>>,
    /// Octets of the messages that wait.
    octets: usize,
    /// The primaries that threads are busy with, or that are slow or silent.
    busy: HashMap<SocketAddr, BusyPrimary>,
    /// The hashes of the messages that wait or are being forwarded, and how many have each.
    under_way: HashMap<u64, usize>,
    hasher: RandomState,
}

/// A primary that threads are busy with, or that is slow or silent.
#[derive(Default)]
struct BusyPrimary {
    /// The moments at which threads began to forward messages to it, and how many did at each.
    running: BTreeMap<Instant, usize>,
    /// The moment until which it is slow, whatever its threads do.
    slow_until: Option<Instant>,
    /// The moment until which it counts as silent.
    silent_until: Option<Instant>,
}

impl BusyPrimary {
    /// The number of its threads.
    fn threads(&self) -> usize {
        self.running.values().sum()
    }

    /// Whether it keeps or has kept a thread for long.
    fn is_slow(&self, now: Instant) -> bool {
        let first = self.running.keys().next();
        let keeps_long = first.is_some_and(|began| now.saturating_duration_since(*began) > LONG);
        keeps_long || self.slow_until.is_some_and(|until| now < until)
    }

    /// Whether it has not replied a short time ago.
    fn is_silent(&self, now: Instant) -> bool {
        self.silent_until.is_some_and(|until| now < until)
    }
}

impl<M> Default for RelayQueue<M> {
    fn default() -> Self {
        let (waiting, octets, hasher) = (VecDeque::new(), 0, RandomState::new());
        Self { waiting, octets, busy: HashMap::new(), under_way: HashMap::new(), hasher }
    }
}

impl<M> RelayQueue<M> {
    /// Queues a message with these octets for the primaries at these addresses, to be given up at a
    /// moment; `is_of_stream` tells that no client sends it again by itself.
    ///
    /// # Errors
    /// Why it is not forwarded; the message is given back.
    pub fn push(
        &mut self,
        message: M,
        (octets, is_of_stream): (&[u8], bool),
        primaries: Vec<SocketAddr>,
        limit: Instant,
    ) -> Result<(), (RelayRefusal, M)> {
        let digest = self.hasher.hash_one(octets);
        if is_of_stream && self.under_way.contains_key(&digest) {
            return Err((RelayRefusal::Returned, message));
        }
        let is_full =
            |count, octets, parts| count >= WAITING_MAX / parts || octets >= OCTETS_MAX / parts;
        let same = self.waiting.iter().filter(|it| it.primaries.first() == primaries.first());
        let (own, own_octets) = same.fold((0, 0), |(n, sum), it| (n + 1, sum + it.octets));
        if is_full(self.waiting.len(), self.octets, 1) || is_full(own, own_octets, OF_PRIMARY_PART)
        {
            return Err((RelayRefusal::Busy, message));
        }
        self.octets += octets.len();
        *self.under_way.entry(digest).or_default() += 1;
        let octets = octets.len();
        self.waiting.push_back(RelayedMessage { message, primaries, limit, octets, digest });
        Ok(())
    }

    /// Takes the message back that was queued last.
    pub fn take_back(&mut self) -> Option<M> {
        let last = self.waiting.pop_back()?;
        self.octets -= last.octets;
        self.forget(last.digest);
        Some(last.message)
    }

    /// Returns whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the number of messages that threads could take on now, were there so many.
    pub fn ready(&self, now: Instant) -> usize {
        self.waiting.iter().filter(|it| self.place(it, now).is_some()).count()
    }

    /// Takes a message for a thread, which ends with [`finish`](Self::finish). Its primaries stand
    /// in the order in which they are tried: those that did not reply a short time ago are last.
    pub fn take(&mut self, now: Instant) -> Option<(RelayedMessage<M>, RunningRelay)> {
        let ready = self.waiting.iter().enumerate();
        let mut ready = ready.filter_map(|(at, it)| Some((at, self.place(it, now)?)));
        let (at, primary) = ready.next()?;
        let mut taken = self.waiting.remove(at)?;
        self.octets -= taken.octets;
        taken.primaries.sort_by_key(|primary| self.is_silent(*primary, now)); // a stable sort
        if let Some(primary) = primary {
            let busy = self.busy.entry(primary).or_default();
            *busy.running.entry(now).or_default() += 1;
        }
        let running = RunningRelay { primary, began: now, digest: taken.digest };
        Some((taken, running))
    }

    /// Notes that a thread has forwarded a message, or given it up, and which primaries have not
    /// replied.
    pub fn finish(&mut self, running: RunningRelay, silent: &[SocketAddr], now: Instant) {
        let RunningRelay { primary, began, digest } = running;
        if let Some(busy) = primary.and_then(|primary| self.busy.get_mut(&primary)) {
            if let Some(count) = busy.running.get_mut(&began) {
                *count -= 1;
            }
            busy.running.retain(|_, count| *count > 0);
            if now.saturating_duration_since(began) > LONG {
                busy.slow_until = Some(now + SLOW);
            }
        }
        for primary in silent {
            self.busy.entry(*primary).or_default().silent_until = Some(now + SLOW);
        }
        self.forget(digest);
        self.busy.retain(|_, it| it.threads() > 0 || it.is_slow(now) || it.is_silent(now));
    }

    /// Whether a primary has not replied a short time ago.
    fn is_silent(&self, primary: SocketAddr, now: Instant) -> bool {
        self.busy.get(&primary).is_some_and(|busy| busy.is_silent(now))
    }

    /// The primary whose thread would take a message on, if that may have one more. A message that
    /// is given up, or that has no primary, needs the thread of none.
    fn place(&self, message: &RelayedMessage<M>, now: Instant) -> Option<Option<SocketAddr>> {
        let is_silent = |primary: &&SocketAddr| self.is_silent(**primary, now);
        let Some(first) = message.primaries.iter().min_by_key(is_silent) else { return Some(None) };
        if message.limit <= now {
            return Some(None);
        }
        let Some(busy) = self.busy.get(first) else { return Some(Some(*first)) };
        let may_have_more = match busy.is_slow(now) {
            true => busy.threads() < OF_SLOW_PRIMARY_MAX && self.of_slow(now) < OF_SLOW_MAX,
            false => busy.threads() < OF_PRIMARY_MAX,
        };
        may_have_more.then_some(Some(*first))
    }

    /// The number of threads that are busy with slow primaries.
    fn of_slow(&self, now: Instant) -> usize {
        self.busy.values().filter(|it| it.is_slow(now)).map(BusyPrimary::threads).sum()
    }

    /// Forgets a message that is no longer under way.
    fn forget(&mut self, digest: u64) {
        if let Some(count) = self.under_way.get_mut(&digest) {
            *count -= 1;
            if *count == 0 {
                self.under_way.remove(&digest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The address of a primary of a number.
    fn primary(number: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, number], 53))
    }

    /// A queue with so many messages for each of some primaries, each for one of them alone, and
    /// the moment at which they came.
    fn queue(counts: &[(u8, usize)]) -> (RelayQueue<u8>, Instant) {
        let (mut queue, now) = (RelayQueue::default(), Instant::now());
        for (number, count) in counts {
            for message in 0..*count {
                let octets = [*number, message as u8];
                let limit = now + Duration::from_secs(10);
                queue.push(*number, (&octets, false), vec![primary(*number)], limit).unwrap();
            }
        }
        (queue, now)
    }

    /// Takes all messages that threads may take on, as if there were so many threads.
    fn take_all(queue: &mut RelayQueue<u8>, now: Instant) -> (Vec<u8>, Vec<RunningRelay>) {
        let taken = std::iter::from_fn(|| queue.take(now));
        taken.map(|(taken, running)| (taken.message, running)).unzip()
    }

    #[test]
    fn messages_for_one_primary_leave_threads_to_those_for_the_next() {
        let (mut queue, now) = queue(&[(1, 100), (2, 1)]);
        assert_eq!(queue.ready(now), 101, "each alone could be taken");
        let (taken, running) = take_all(&mut queue, now);
        assert_eq!(taken, [1, 1, 1, 1, 2]);
        assert_eq!(queue.ready(now), 0);
        for it in running {
            queue.finish(it, &[], now);
        }
        assert_eq!(take_all(&mut queue, now).0, [1, 1, 1, 1]);
    }

    #[test]
    fn primaries_that_keep_threads_for_long_get_few_and_recover() {
        let counts: Vec<(u8, usize)> = (1..=5).map(|number| (number, 20)).collect();
        let (mut queue, now) = queue(&counts);
        let (taken, running) = take_all(&mut queue, now);
        assert_eq!(taken.len(), 20, "more than there are threads for");
        let late = now + LONG + Duration::from_millis(1);
        for it in running {
            queue.finish(it, &[], late);
        }
        let (taken, running) = take_all(&mut queue, late);
        assert_eq!(taken, [1, 1, 2, 2, 3, 3, 4, 4], "two of each, and eight of all");
        for it in running {
            queue.finish(it, &[], late);
        }
        let later = late + SLOW;
        let limit = later + Duration::from_secs(10);
        let (_, running) = take_all(&mut queue, later); // these are given up
        assert_eq!(running.len(), 72);
        (0..10).for_each(|it| {
            queue.push(1, (&[9, it], false), vec![primary(1)], limit).unwrap();
        });
        assert_eq!(take_all(&mut queue, later).0.len(), OF_PRIMARY_MAX);
    }

    #[test]
    fn a_message_whose_time_is_over_needs_no_thread_of_its_primary() {
        let (mut queue, now) = queue(&[(1, 6)]);
        assert_eq!(take_all(&mut queue, now).0.len(), OF_PRIMARY_MAX);
        let over = now + Duration::from_secs(10);
        assert_eq!(queue.ready(over), 2);
        assert_eq!(take_all(&mut queue, over).0.len(), 2);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_primary_that_did_not_reply_is_tried_behind_the_other_ones_for_a_while() {
        let (mut queue, now) = (RelayQueue::default(), Instant::now());
        let order = |queue: &mut RelayQueue<u8>, now: Instant, silent: &[SocketAddr]| {
            let (primaries, limit) = (vec![primary(1), primary(2)], now + LONG);
            queue.push(0, (&[1], false), primaries, limit).unwrap();
            let (taken, running) = queue.take(now).unwrap();
            queue.finish(running, silent, now);
            taken.primaries
        };
        assert_eq!(order(&mut queue, now, &[primary(1)]), [primary(1), primary(2)]);
        assert_eq!(order(&mut queue, now, &[]), [primary(2), primary(1)]);
        assert_eq!(order(&mut queue, now + SLOW, &[]), [primary(1), primary(2)]);
        assert!(queue.busy.is_empty() && queue.under_way.is_empty());
    }

    #[test]
    fn messages_and_octets_that_wait_are_bounded() {
        let (mut queue, now) = queue(&[]);
        let mut push = |message: &[u8]| {
            queue.push(0, (message, false), vec![primary(1)], now + LONG).map_err(|(why, _)| why)
        };
        let large = vec![0; 60_000];
        let count = (0..100).take_while(|_| push(&large).is_ok()).count();
        assert_eq!(count, (OCTETS_MAX / OF_PRIMARY_PART).div_ceil(60_000));
        assert_eq!(push(&[1]), Err(RelayRefusal::Busy));
        let part = WAITING_MAX / OF_PRIMARY_PART;
        let (mut queue, now) = self::queue(&[(1, part), (2, part), (3, part), (4, part - 1)]);
        let mut push = |number| {
            let pushed = queue.push(0, (&[7], false), vec![primary(number)], now + LONG);
            pushed.map_err(|(why, _)| why)
        };
        assert_eq!(push(1), Err(RelayRefusal::Busy), "one primary leaves room to the rest");
        assert_eq!(push(5), Ok(()));
        assert_eq!(push(6), Err(RelayRefusal::Busy), "all together");
        assert_eq!(queue.take_back(), Some(0));
        assert!(queue.push(0, (&[7], false), vec![primary(4)], now + LONG).is_ok());
    }

    #[test]
    fn a_message_that_comes_back_over_a_stream_while_it_is_forwarded_is_refused() {
        let (mut queue, now) = (RelayQueue::default(), Instant::now());
        let push = |queue: &mut RelayQueue<u8>, octets: &[u8], is_of_stream| {
            let pushed = queue.push(0, (octets, is_of_stream), vec![primary(1)], now + LONG);
            pushed.map_err(|(why, _)| why)
        };
        assert_eq!(push(&mut queue, &[1], true), Ok(()));
        assert_eq!(push(&mut queue, &[1], true), Err(RelayRefusal::Returned), "while it waits");
        let (_, running) = queue.take(now).unwrap();
        assert_eq!(push(&mut queue, &[1], true), Err(RelayRefusal::Returned), "while it runs");
        assert_eq!(push(&mut queue, &[2], true), Ok(()), "another message");
        assert_eq!(push(&mut queue, &[1], false), Ok(()), "a client that repeats a datagram");
        queue.finish(running, &[], now);
        assert_eq!(push(&mut queue, &[1], true), Err(RelayRefusal::Returned), "the datagram waits");
        while let Some((_, running)) = queue.take(now) {
            queue.finish(running, &[], now);
        }
        assert_eq!(push(&mut queue, &[1], true), Ok(()), "a client that sends it later");
    }
}
