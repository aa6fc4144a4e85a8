//! A part of the cache that one lock guards against writers; readers pass it by.

mod writer;

use crate::body::change_ttl;
use crate::entry::{HEADER_WORDS, Header};
use crate::index::{Index, LogName, Place, Word, count_hit};
use crate::ring::{LOG_WORDS_MAX, Position};
use crate::words::{LINE_BYTES, WORD_BYTES, Words, copy_octets};
use crate::{Contents, Freshness, Hit, Key, Kind, Stats};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, fence};
use std::sync::{Mutex, PoisonError};
use writer::{WriteGuard, Writer};

/// Octets that a bucket of the index, its share of the ghosts, and of the logs have together.
pub const UNIT_BYTES: usize = 512;
/// Most units in a shard: then its main log has as many words as a position can name.
pub const UNITS_MAX: usize = LOG_WORDS_MAX / MAIN_WORDS;
/// A unit's part of the small log, a tenth (S3-FIFO).
const SMALL_WORDS: usize = 5;
/// A unit's part of the main log: the rest.
const MAIN_WORDS: usize =
    (UNIT_BYTES - LINE_BYTES - crate::ghost::BUCKET_BYTES) / WORD_BYTES - SMALL_WORDS;
/// How often a look-up starts again when the entry it reads moves or leaves.
const ATTEMPTS: usize = 8;
/// An entry found as often as this since it was stored is worth fetching before it expires.
const POPULAR_HITS: u64 = 2;

/// A part of the cache: its index, logs, and writers' lock.
pub struct Shard {
    index: Index,
    logs: [Words; 2],
    progress: Progress,
    writer: Mutex<Writer>,
    freshness: SharedFreshness,
}

/// A [`Freshness`] that changes while readers look at it. They may see one part of it changed
/// before another.
struct SharedFreshness {
    prefetch_percent: AtomicU8,
    prefetch_ttl_secs_min: AtomicU32,
    stale_ttl_secs: AtomicU32,
}

impl SharedFreshness {
    fn new(freshness: Freshness) -> Self {
        let Freshness { prefetch_percent, prefetch_ttl_secs_min, stale_ttl_secs } = freshness;
        Self {
            prefetch_percent: prefetch_percent.into(),
            prefetch_ttl_secs_min: prefetch_ttl_secs_min.into(),
            stale_ttl_secs: stale_ttl_secs.into(),
        }
    }

    fn get(&self) -> Freshness {
        Freshness {
            prefetch_percent: self.prefetch_percent.load(Relaxed),
            prefetch_ttl_secs_min: self.prefetch_ttl_secs_min.load(Relaxed),
            stale_ttl_secs: self.stale_ttl_secs.load(Relaxed),
        }
    }

    fn set(&self, freshness: Freshness) {
        self.prefetch_percent.store(freshness.prefetch_percent, Relaxed);
        self.prefetch_ttl_secs_min.store(freshness.prefetch_ttl_secs_min, Relaxed);
        self.stale_ttl_secs.store(freshness.stale_ttl_secs, Relaxed);
    }
}

/// State that writers change and readers look at, in a cache line of its own.
#[repr(align(64))]
#[derive(Default)]
struct Progress {
    /// The oldest valid position of each log.
    tails: [AtomicU64; 2],
    /// The number of entries that were written so far.
    inserts: AtomicU64,
}

/// The entry was overwritten while it was read.
struct Overwrite;

impl Shard {
    /// Makes an empty shard of `units` times [`UNIT_BYTES`] octets, at most [`UNITS_MAX`].
    pub fn new(units: usize, freshness: Freshness) -> Self {
        let words = [units * SMALL_WORDS, units * MAIN_WORDS];
        Self {
            index: Index::new(units),
            logs: words.map(Words::new),
            progress: Progress::default(),
            writer: Mutex::new(Writer::new(words, units)),
            freshness: SharedFreshness::new(freshness),
        }
    }

    /// Returns what becomes of answers shortly before they expire, and after.
    pub fn freshness(&self) -> Freshness {
        self.freshness.get()
    }

    /// Changes that: at once for expired answers, and for answers that are stored from now on.
    pub fn set_freshness(&self, freshness: Freshness) {
        self.freshness.set(freshness);
    }

    /// Returns how many entries were written so far. What is looked up after that sees them all.
    #[inline]
    pub fn inserts(&self) -> u64 {
        self.progress.inserts.load(Acquire)
    }

    /// Reads the bucket of a place, and nothing more.
    #[inline]
    pub fn touch_bucket(&self, place: Place) -> u64 {
        self.index.bucket(place).first().map_or(0, |slot| slot.load(Relaxed))
    }

    /// Reads the first two lines of the entry at one of two places in a bucket, if there may be
    /// one.
    #[inline]
    pub fn touch_entry(&self, places: [Place; 2]) -> u64 {
        let words = self.index.bucket(places[0]).iter().map(|slot| Word(slot.load(Relaxed)));
        let mut words = words.filter(|word| places.iter().any(|&place| word.may_be(place)));
        let Some(word) = words.next() else { return 0 };
        let log = self.logs[word.log() as usize].as_slice();
        let start = word.position(Position(0)).offset();
        let read = |at: usize| log.get(at).map_or(0, |word| word.load(Relaxed));
        read(start) | read(start + HEADER_WORDS + 2)
    }

    /// Copies the body of an answer to `out`, its TTLs aged.
    pub fn find(&self, key: &Key<'_>, place: Place, now_secs: u32, out: &mut [u8]) -> Option<Hit> {
        for _ in 0..ATTEMPTS {
            if let Ok(found) = self.try_find(key, place, now_secs, out) {
                return found;
            }
            std::hint::spin_loop();
        }
        None
    }

    /// Makes one attempt at [`find`](Self::find): reads first, then looks whether it was allowed
    /// to.
    #[inline]
    fn try_find(
        &self,
        key: &Key<'_>,
        place: Place,
        now_secs: u32,
        out: &mut [u8],
    ) -> Result<Option<Hit>, Overwrite> {
        let tails = self.progress.tails.each_ref().map(|tail| Position(tail.load(Acquire)));
        let number = self.index.number(place);
        for slot in self.index.slots(number) {
            let word = Word(slot.load(Acquire));
            if !word.may_be(place) {
                continue;
            }
            let log = word.log() as usize;
            let position = word.position(tails[log]);
            let copied = self.copy(key, word.log(), position, (now_secs, word.frequency()), out);
            fence(Acquire);
            if Position(self.progress.tails[log].load(Relaxed)) > position {
                return Err(Overwrite);
            }
            match copied {
                Candidate::Usable(hit) => {
                    count_hit(slot, word);
                    return Ok(Some(hit));
                }
                Candidate::Worthless => return Ok(None),
                Candidate::Other => {}
            }
        }
        // An entry that left the bucket when that was split is in another one.
        if self.index.number(place) == number { Ok(None) } else { Err(Overwrite) }
    }

    /// Copies what lies at a position, if it is the entry of `key`. What it returns holds only if
    /// the position is still valid afterwards.
    #[inline]
    fn copy(
        &self,
        key: &Key<'_>,
        log: LogName,
        position: Position,
        (now_secs, frequency): (u32, u64),
        out: &mut [u8],
    ) -> Candidate {
        let Some((header, entry)) = self.entry(log, position) else { return Candidate::Other };
        if !header.asks_as(key) || !header.has_octets_of(entry, key) {
            return Candidate::Other;
        }
        let is_stale = now_secs >= header.expires_at;
        if is_stale && (header.kind == Kind::Failure || now_secs >= header.stale_until) {
            return Candidate::Worthless;
        }
        let body_bytes = usize::from(header.body_len);
        if let Some(out) = out.get_mut(..body_bytes) {
            copy_octets(&entry[header.body_start()..], out);
            let age = now_secs.saturating_sub(header.stored_at);
            let stale_ttl = self.freshness.stale_ttl_secs.load(Relaxed);
            for offset in header.ttl_offsets(entry) {
                let aged = |ttl: u32| if is_stale { stale_ttl } else { ttl.saturating_sub(age) };
                change_ttl(out, offset, aged);
            }
        }
        Candidate::Usable(Hit {
            kind: header.kind,
            flags: header.flags,
            onward: header.onward,
            ede: header.ede,
            counts: header.counts,
            body_bytes,
            is_stale,
            refresh_due: refresh_due(&header, now_secs, frequency),
        })
    }

    /// Returns the words of what lies at a position, as far as they can be an entry.
    #[inline]
    fn entry(&self, log: LogName, position: Position) -> Option<(Header, &[AtomicU64])> {
        let words = self.logs[log as usize].as_slice().get(position.offset()..)?;
        let header = Header::read(words.first_chunk()?);
        Some((header, words.get(..header.words())?))
    }

    /// Allocates the memory of the index and the logs; whether it is there.
    #[must_use]
    fn allocate(&self) -> bool {
        self.index.allocate() && self.logs.iter().all(Words::allocate)
    }

    /// Waits for the right to write.
    pub fn write(&self) -> WriteGuard<'_> {
        WriteGuard::new(self, self.writer.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the writers' lock if it is free.
    pub fn try_write(&self) -> Option<WriteGuard<'_>> {
        self.writer.try_lock().ok().map(|writer| WriteGuard::new(self, writer))
    }

    /// Adds what this shard counted.
    pub fn add_stats(&self, stats: &mut Stats) {
        self.write().add_stats(stats);
    }

    /// Adds what is in this shard.
    pub fn add_contents(&self, contents: &mut Contents) {
        self.write().add_contents(contents);
    }

    /// Returns how many buckets the shard's index has.
    pub fn buckets(&self) -> usize {
        self.index.buckets()
    }
}

/// The result of reading a position of the log.
enum Candidate {
    /// An answer for the question, copied.
    Usable(Hit),
    /// The answer, but too old, or a failure that may be tried again.
    Worthless,
    /// The answer to something else.
    Other,
}

/// Whether the answer should be refreshed.
#[inline]
fn refresh_due(header: &Header, now_secs: u32, frequency: u64) -> bool {
    header.kind != Kind::Failure
        && now_secs >= header.refresh_at
        && (now_secs >= header.expires_at || frequency >= POPULAR_HITS)
}
