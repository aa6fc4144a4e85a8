//! The side of a shard that changes it: appends, evictions, and marks on entries.
//!
//! Every step keeps what readers rely on: an entry leaves the index before the tail of its log
//! passes it, and its words are overwritten after that.

use super::Shard;
use crate::body::{MalformedRecords, ttl_offsets};
use crate::entry::{self, ENTRY_WORDS_MAX, FAILURES_MAX, Header, MARKS_WORD, REFRESH_WORD};
use crate::ghost::Ghosts;
use crate::index::{LogName, Place, Word};
use crate::policy::Limits;
use crate::ring::{Position, Ring};
use crate::words::WORD_BYTES;
use crate::{
    Answer, Contents, FAILURE_TEXT_BYTES_MAX, Failure, InsertError, Key, Kind, Lifetime, Stats,
};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

/// Words of old entries that an insertion may move for each of its own: seven of eight that it
/// passes may be alive, and twice that for unevenness. The rest leave, which bounds its time.
const MOVED_PER_WORD: usize = 16;
/// Words that the smallest insertion may move.
const MOVED_MIN: usize = 1024;
/// Words kept free in the main log, so that the oldest entry can be written at the head before it
/// leaves the tail, and is found at every moment. Larger ones leave.
const RESERVE_WORDS: usize = 1024;

/// Buckets of the index for each entry, as long as it can grow: few enough entries share one that
/// none has to leave it, and ten thousand entries need 1.3 MB of it.
const BUCKETS_PER_ENTRY: u64 = 2;
/// Most buckets for each entry while an insertion meets a full bucket. Splitting more would not
/// help: all entries of that bucket are of one name.
const BUCKETS_PER_ENTRY_MAX: u64 = 8;
/// Buckets that one insertion may split, which takes some microseconds.
const SPLITS_MAX: usize = 16;

/// State of a shard that only the holder of the writers' lock uses.
pub struct Writer {
    rings: [Ring; 2],
    ghosts: Ghosts,
    /// Buffer in which an entry and its TTLs' offsets are put together; kept for its memory.
    entry: Vec<u64>,
    offsets: Vec<u16>,
    /// Words of the entries in the index.
    live_words: usize,
    stats: Stats,
    /// Counts of the entries in the index, by kind.
    contents: Contents,
}

impl Writer {
    /// Returns the state beside empty logs of so many words.
    pub fn new(log_words: [usize; 2], ghost_buckets: usize) -> Self {
        Self {
            rings: log_words.map(Ring::new),
            ghosts: Ghosts::new(ghost_buckets),
            entry: Vec::new(),
            offsets: Vec::new(),
            live_words: 0,
            stats: Stats::default(),
            contents: Contents::default(),
        }
    }

    /// Words that an entry may have at most, so that none sweeps the small log.
    fn entry_words_max(&self) -> usize {
        ENTRY_WORDS_MAX.min(self.rings[0].capacity() / 4)
    }

    /// Words that stay free at the head of a log.
    fn reserve(&self, log: LogName) -> usize {
        match log {
            LogName::Small => 0,
            LogName::Main => RESERVE_WORDS.min(self.entry_words_max()),
        }
    }

    /// Whether nothing need leave: the main log has room for `words` words, or less than seven
    /// eighths of both are alive, so that going round finds room.
    fn has_spare(&self, words: usize) -> bool {
        let capacity: usize = self.rings.iter().map(Ring::capacity).sum();
        self.live_words < capacity / 8 * 7 || self.fits(LogName::Main, words)
    }

    /// Whether an entry of `words` words can be appended to a log as it is.
    fn fits(&self, log: LogName, words: usize) -> bool {
        let mut tried = self.rings[log as usize];
        tried.append(words).is_some() && tried.append(self.reserve(log)).is_some()
    }
}

/// The right to change a shard.
pub struct WriteGuard<'s> {
    shard: &'s Shard,
    writer: MutexGuard<'s, Writer>,
}

/// An entry that is in the index.
struct LiveEntry<'s> {
    slot: &'s AtomicU64,
    word: Word,
    header: Header,
    entry: &'s [AtomicU64],
}

impl LiveEntry<'_> {
    /// Whether the entry answers the question of `key`.
    fn has_key(&self, key: &Key<'_>) -> bool {
        self.header.asks_as(key) && self.header.has_octets_of(self.entry, key)
    }
}

impl<'s> WriteGuard<'s> {
    /// Holds the lock.
    pub fn new(shard: &'s Shard, writer: MutexGuard<'s, Writer>) -> Self {
        Self { shard, writer }
    }

    /// Keeps an answer instead of the one there was.
    pub fn insert(
        &mut self,
        key: &Key<'_>,
        answer: &Answer<'_>,
        lifetime: Lifetime,
    ) -> Result<(), InsertError> {
        let offsets = &mut self.writer.offsets;
        ttl_offsets(answer.body, answer.counts, offsets)
            .map_err(|MalformedRecords| InsertError::Malformed)?;
        let (first_ttl, freshness) = (offsets.first().copied(), self.shard.freshness());
        let header = Header::new(key, answer, (lifetime, freshness), first_ttl.unwrap_or(0));
        self.append(key, header, answer.body, lifetime.now_secs)
    }

    /// Writes an entry to the log where it belongs and points the index at it.
    fn append(
        &mut self,
        key: &Key<'_>,
        header: Header,
        body: &[u8],
        now_secs: u32,
    ) -> Result<(), InsertError> {
        let writer = &mut *self.writer;
        entry::write(header, key, body, &writer.offsets, &mut writer.entry);
        let words = writer.entry.len();
        if words > writer.entry_words_max() {
            writer.stats.too_large += 1;
            return Err(InsertError::TooLarge);
        }
        let place = header.place;
        if !self.shard.allocate() {
            writer.stats.no_memory += 1;
            return Err(InsertError::NoMemory);
        }
        self.grow_index(place);
        let (log, frequency) = match self.live(key, place) {
            Some(former) => match former.word.frequency() {
                0 => (former.word.log(), 0),
                hits => (LogName::Main, hits),
            },
            None if self.writer.ghosts.take(place) => {
                self.writer.stats.ghost_hits += 1;
                (LogName::Main, 0)
            }
            None => (LogName::Small, 0),
        };
        self.make_room(log, words, now_secs, &mut (MOVED_MIN + MOVED_PER_WORD * words));
        let slot = self.slot_for(key, place, now_secs);
        let at = self.writer.rings[log as usize].append(words).expect("room was made for it");
        self.overwrite(log, at, self.writer.entry.iter().copied());
        slot.store(Word::new(place, log, at, frequency).0, Release);
        self.writer.live_words += words;
        self.writer.stats.entries += 1;
        self.writer.stats.inserts += 1;
        self.writer.contents.add(header.kind, header.qtype);
        // After the entry can be found: a reader that misses it has read the former number.
        self.shard.progress.inserts.store(self.writer.stats.inserts, Release);
        Ok(())
    }

    /// Takes more buckets of the index into use if it is dense, or the bucket of a place is full.
    fn grow_index(&self, place: Place) {
        let index = &self.shard.index;
        for _ in 0..SPLITS_MAX {
            let (buckets, entries) = (index.buckets() as u64, self.writer.stats.entries + 1);
            let is_occupied = |slot: &AtomicU64| Word(slot.load(Relaxed)).is_occupied();
            let is_enough = buckets >= entries * BUCKETS_PER_ENTRY_MAX
                || buckets >= entries * BUCKETS_PER_ENTRY
                    && !index.bucket(place).iter().all(is_occupied);
            if is_enough {
                return;
            }
            let Some(split) = index.next_split() else { return };
            let place_of = |word: Word| {
                let position = word.position(self.writer.rings[word.log() as usize].tail());
                let (header, _) = self.shard.entry(word.log(), position)?;
                Some(header.place)
            };
            index.split(&split, place_of);
        }
    }

    /// Returns the entry of a question.
    fn live(&self, key: &Key<'_>, place: Place) -> Option<LiveEntry<'s>> {
        let slots = self.shard.index.bucket(place).iter();
        let alike = slots.filter(|slot| Word(slot.load(Relaxed)).may_be(place));
        let mut entries = alike.filter_map(|slot| self.live_at(slot));
        entries.find(|live| live.has_key(key))
    }

    /// Returns the entry that a slot points at.
    fn live_at(&self, slot: &'s AtomicU64) -> Option<LiveEntry<'s>> {
        let word = Word(slot.load(Relaxed));
        let position = word.position(self.writer.rings[word.log() as usize].tail());
        let (header, entry) =
            self.shard.entry(word.log(), position).filter(|_| word.is_occupied())?;
        Some(LiveEntry { slot, word, header, entry })
    }

    /// Returns a free slot for the entry of a question: its own, an empty one, that of an entry
    /// which is worthless now, or the least used.
    fn slot_for(&mut self, key: &Key<'_>, place: Place, now_secs: u32) -> &'s AtomicU64 {
        if let Some(former) = self.live(key, place) {
            self.forget(&former);
            return former.slot;
        }
        let bucket = self.shard.index.bucket(place);
        let word = |slot: &AtomicU64| Word(slot.load(Relaxed));
        if let Some(empty) = bucket.iter().find(|slot| !word(slot).is_occupied()) {
            return empty;
        }
        // Only a full bucket has its entries read, each in a line of memory of its own.
        let mut held = bucket.iter().filter_map(|slot| self.live_at(slot));
        if let Some(worthless) = held.find(|live| now_secs >= live.header.stale_until) {
            self.forget(&worthless);
            return worthless.slot;
        }
        let least =
            bucket.iter().min_by_key(|slot| (word(slot).frequency(), word(slot).log() as u8));
        let slot = least.expect("a bucket has slots");
        if let Some(live) = self.live_at(slot) {
            self.evict(&live);
        }
        slot
    }

    /// Takes an entry out of the index.
    fn forget(&mut self, live: &LiveEntry<'_>) {
        live.slot.store(0, Release); // as every 0 that a reader may meet after a split
        self.writer.live_words -= live.header.words();
        self.writer.stats.entries -= 1;
        self.writer.contents.subtract(live.header.kind, live.header.qtype);
    }

    /// Takes an entry out of the index because its room or its slot is wanted.
    fn evict(&mut self, live: &LiveEntry<'_>) {
        self.forget(live);
        self.writer.stats.evictions += 1;
    }

    /// Lets the oldest entries of a log go, or go round, until `words` words fit at its head.
    fn make_room(&mut self, log: LogName, words: usize, now_secs: u32, movable: &mut usize) {
        while !self.writer.fits(log, words) {
            self.pass_tail(log, now_secs, movable);
        }
    }

    /// Decides about the oldest entry of a log, which then gives up its words.
    fn pass_tail(&mut self, log: LogName, now_secs: u32, movable: &mut usize) {
        let tail = self.writer.rings[log as usize].tail();
        let (header, entry) = self.shard.entry(log, tail).expect("an entry begins at the tail");
        let word = Word::new(header.place, log, tail, 0);
        if let Some(slot) = self.shard.index.slot_of(header.place, word) {
            let word = Word(slot.load(Relaxed));
            let live = LiveEntry { slot, word, header, entry };
            let wanted = word.frequency() > 0 || self.writer.has_spare(header.words());
            if now_secs >= header.stale_until {
                self.forget(&live);
                self.writer.stats.expired += 1;
            } else if !(wanted && self.move_to_main(&live, now_secs, movable)) {
                if log == LogName::Small {
                    self.writer.ghosts.insert(header.place);
                }
                self.evict(&live);
            }
        }
        self.writer.rings[log as usize].release(header.words());
        self.publish_tail(log);
    }

    /// Appends a copy of an entry to the main log and points the index at it; `false` when there
    /// is no room.
    fn move_to_main(&mut self, live: &LiveEntry<'_>, now_secs: u32, movable: &mut usize) -> bool {
        let words = live.entry.len();
        let Some(rest) = movable.checked_sub(words) else { return false };
        *movable = rest;
        if live.word.log() == LogName::Small {
            self.make_room(LogName::Main, words, now_secs, movable);
        }
        let Some(at) = self.writer.rings[LogName::Main as usize].append(words) else {
            return false;
        };
        self.overwrite(LogName::Main, at, live.entry.iter().map(|word| word.load(Relaxed)));
        // Hits counted meanwhile are lost with the old word.
        let frequency = match live.word.log() {
            LogName::Small => 0,
            LogName::Main => live.word.frequency().saturating_sub(1),
        };
        live.slot.store(Word::new(live.header.place, LogName::Main, at, frequency).0, Release);
        true
    }

    /// Writes words that the tail has passed before.
    fn overwrite(&self, log: LogName, at: Position, words: impl Iterator<Item = u64>) {
        // A reader that meets one of these words must also see that the tail moved.
        fence(Release);
        let room = &self.shard.logs[log as usize].as_slice()[at.offset()..];
        room.iter().zip(words).for_each(|(old, new)| old.store(new, Relaxed));
    }

    /// Publishes to readers where a log begins.
    fn publish_tail(&self, log: LogName) {
        let tail = self.writer.rings[log as usize].tail();
        self.shard.progress.tails[log as usize].store(tail.0, Release);
    }

    /// Whether the caller may refresh an answer; other callers may not until `retry_at`.
    pub fn claim_refresh(&self, key: &Key<'_>, now_secs: u32, retry_at: u32) -> bool {
        let Some(live) = self.live(key, key.place()) else { return false };
        let claimed = now_secs >= live.header.refresh_at;
        if claimed {
            self.mark(&live, Header { refresh_at: retry_at, ..live.header });
        }
        claimed
    }

    /// Counts a failure to fetch an answer anew that may still be given; how long to wait before
    /// the next attempt. `None` when there is no such answer.
    pub fn put_off(&self, key: &Key<'_>, now_secs: u32, backoff: Limits) -> Option<u32> {
        let live = self.live(key, key.place())?;
        let usable = live.header.kind != Kind::Failure && now_secs < live.header.stale_until;
        usable.then(|| {
            let failures = live.header.failures.saturating_add(1).min(FAILURES_MAX);
            let wait_secs = backoff.backoff_secs(failures);
            let refresh_at = now_secs.saturating_add(wait_secs).max(live.header.refresh_at);
            self.mark(&live, Header { failures, refresh_at, ..live.header });
            wait_secs
        })
    }

    /// Keeps that an answer could not be fetched; how long to wait before the next attempt.
    pub fn insert_failure(
        &mut self,
        key: &Key<'_>,
        failure: Failure<'_>,
        backoff: Limits,
        now_secs: u32,
    ) -> u32 {
        let former = self.live(key, key.place()).map(|live| live.header);
        let in_a_row = former.filter(|it| it.kind == Kind::Failure && now_secs < it.stale_until);
        let failures = in_a_row.map_or(0, |it| it.failures).saturating_add(1).min(FAILURES_MAX);
        let ttl_secs = backoff.backoff_secs(failures);
        let Failure { flags, ede, text } = failure;
        let body = &text[..text.len().min(FAILURE_TEXT_BYTES_MAX)];
        let answer = Answer { kind: Kind::Failure, flags, onward: None, ede, counts: [0; 3], body };
        // Not served stale, but remembered, so that a failure soon after counts as the next.
        let lifetime = Lifetime { now_secs, ttl_secs, stale_secs: backoff.secs_max };
        let life = (lifetime, self.shard.freshness());
        let header = Header { failures, ..Header::new(key, &answer, life, 0) };
        self.writer.offsets.clear();
        let kept = self.append(key, header, body, now_secs);
        debug_assert_eq!(kept, Ok(()), "a failure is small");
        ttl_secs
    }

    /// Changes what may change while an entry lies in its log.
    fn mark(&self, live: &LiveEntry<'_>, header: Header) {
        let words = header.to_words();
        for at in [MARKS_WORD, REFRESH_WORD] {
            live.entry[at].store(words[at], Relaxed);
        }
    }

    /// Forgets the answer to a question; whether there was one.
    pub fn remove(&mut self, key: &Key<'_>) -> bool {
        let live = self.live(key, key.place());
        if let Some(live) = &live {
            self.forget(live);
        }
        live.is_some()
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.shard.index.clear();
        self.writer.rings.iter_mut().for_each(Ring::clear);
        self.writer.ghosts.clear();
        self.writer.live_words = 0;
        self.writer.stats.entries = 0;
        self.writer.contents = Contents::default();
        self.publish_tail(LogName::Small);
        self.publish_tail(LogName::Main);
    }

    /// Shows the entries of a log from a position on, some `words` words of them, each with its
    /// words and its frequency; forgets those that `keep` does not want. Returns where to go on.
    pub fn retain(
        &mut self,
        log: LogName,
        from: Position,
        words: usize,
        mut keep: impl FnMut(&Header, &[AtomicU64], u64) -> bool,
    ) -> Option<Position> {
        let ring = self.writer.rings[log as usize];
        let (mut at, mut left) = (ring.after(from.max(ring.tail()), 0), words);
        while at < ring.head() {
            if left == 0 {
                return Some(at);
            }
            let (header, entry) = self.shard.entry(log, at).expect("an entry begins here");
            let word = Word::new(header.place, log, at, 0);
            if let Some(slot) = self.shard.index.slot_of(header.place, word) {
                let word = Word(slot.load(Relaxed));
                if !keep(&header, entry, word.frequency()) {
                    self.forget(&LiveEntry { slot, word, header, entry });
                }
            }
            left = left.saturating_sub(header.words());
            at = ring.after(at, header.words());
        }
        None
    }

    /// Shows every entry in the bucket of a place.
    pub fn for_each_at(&self, place: Place, mut visit: impl FnMut(&Header, &[AtomicU64], u64)) {
        let live = self.shard.index.bucket(place).iter().filter_map(|slot| self.live_at(slot));
        live.for_each(|live| visit(&live.header, live.entry, live.word.frequency()));
    }

    /// Adds what was counted.
    pub fn add_stats(&self, stats: &mut Stats) {
        let own = &self.writer.stats;
        stats.entries += own.entries;
        stats.bytes += (self.writer.live_words * WORD_BYTES) as u64;
        stats.inserts += own.inserts;
        stats.evictions += own.evictions;
        stats.expired += own.expired;
        stats.ghost_hits += own.ghost_hits;
        stats.too_large += own.too_large;
        stats.no_memory += own.no_memory;
    }

    /// Adds the shard's entries to the counts.
    pub fn add_contents(&self, contents: &mut Contents) {
        *contents += &self.writer.contents;
    }
}
