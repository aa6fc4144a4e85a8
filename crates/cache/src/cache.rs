//! The cache as a whole: shards, and what is asked of them.

use crate::body::shift_pointers;
use crate::contents::Contents;
use crate::cuts::Cuts;
use crate::index::Place;
use crate::key::{EVERY_TYPE, denies_below, denies_name};
use crate::policy::Limits;
use crate::shard::{Shard, UNIT_BYTES, UNITS_MAX};
use crate::walk::{self, Walk};
use crate::{Answer, Entry, Failure, Freshness, Hit, Key, Kind, Lifetime};
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use zonda_wire::name::is_at_or_below;

/// The smallest cache, octets. It has room for the largest answers of everyday.
pub const BYTES_MIN: usize = 256 << 10;
/// Octets of a shard that suffice for any message.
const SHARD_BYTES_MIN: usize = 4 << 20;
/// Octets of a shard that are looked through in milliseconds.
const SHARD_BYTES_MAX: usize = 32 << 20;
/// Shards of a cache of middling size: enough for the threads that write.
const SHARDS: usize = 16;
/// Seconds for which a claim to refresh an answer keeps other callers from claiming it.
pub const REFRESH_SECS: u32 = 10;

/// Most names above a name that [`Cache::find_cut`] looks up. Each costs a line of memory, and a
/// name can have 127.
pub const CUTS_MAX: usize = 8;

/// Answers that were given before, shared by all threads.
pub struct Cache {
    shards: Box<[Shard]>,
    bytes_max: usize,
    /// Number of flushes on demand.
    flushes: AtomicU64,
    /// Depths at which names are denied.
    cuts: Cuts,
}

/// A name above another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// Number of labels of the name.
    pub labels: usize,
    /// Octets of the other name in front of this one.
    pub skip: usize,
    /// Hash of the name, as in [`Key::hash`].
    pub hash: u64,
}

/// A moment among the demands to forget something; see [`Cache::insert_since`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flushes(u64);

/// A moment among the insertions into one part of the cache; see [`Cache::find_or_moment`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inserts(u64);

/// Contents of the cache, and counts of what was done with it since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of answers that can be found.
    pub entries: u64,
    /// Octets of these answers in the logs.
    pub bytes: u64,
    /// Number of answers stored.
    pub inserts: u64,
    /// Answers dropped to make room.
    pub evictions: u64,
    /// Answers that had expired when their room was used again.
    pub expired: u64,
    /// Answers stored again soon after they were dropped.
    pub ghost_hits: u64,
    /// Answers refused because they are too large for this cache.
    pub too_large: u64,
    /// Answers refused because the system has no memory for the shard they belong to.
    pub no_memory: u64,
}

/// Why an answer is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertError {
    /// The body is not the records that the counts promise, or holds OPT.
    Malformed,
    /// The answer would evict too much of a cache as small as this one.
    TooLarge,
    /// The system has no memory for the part of the cache that it belongs to.
    NoMemory,
    /// Something was to be forgotten while it was fetched.
    Flushed,
    /// The question was for type 0, which is none: what stands there holds for all types.
    NoType,
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the body of the answer is malformed",
            Self::TooLarge => "the answer is too large for the cache",
            Self::NoMemory => "the system has no memory for this part of the cache",
            Self::Flushed => "the cache was flushed while the answer was fetched",
            Self::NoType => "type 0 is reserved",
        })
    }
}

impl std::error::Error for InsertError {}

impl Cache {
    /// Makes an empty cache that takes at most `bytes_max` octets of memory, at least
    /// [`BYTES_MIN`], and none of them before it is used.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self::with(bytes_max, Freshness::default())
    }

    /// Makes a cache whose answers are refreshed, and stale, as `freshness` says.
    #[must_use]
    pub fn with(bytes_max: usize, freshness: Freshness) -> Self {
        let bytes_max = bytes_max.max(BYTES_MIN);
        let few = (bytes_max / SHARD_BYTES_MIN).clamp(1, SHARDS);
        let many = bytes_max.div_ceil(SHARD_BYTES_MAX).next_power_of_two();
        let count = many.max(1 << few.ilog2()).min(Place::SHARDS_MAX);
        let units = (bytes_max / count / UNIT_BYTES).min(UNITS_MAX);
        let shards = (0..count).map(|_| Shard::new(units, freshness)).collect();
        Self { shards, bytes_max, flushes: AtomicU64::new(0), cuts: Cuts::new() }
    }

    /// Changes when answers are refreshed, and what TTL stale ones have: at once for expired
    /// answers, and for answers that are stored from now on.
    pub fn set_freshness(&self, freshness: Freshness) {
        self.shards.iter().for_each(|shard| shard.set_freshness(freshness));
    }

    /// Returns the bound, octets.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Brings the line of memory where [`find`](Self::find) will begin, so that a batch waits for
    /// all of its lines together. Keep what is returned, or the compiler leaves the reading out.
    #[inline]
    #[must_use]
    pub fn touch(&self, key: &Key<'_>) -> u64 {
        let place = key.place();
        self.shard(place).touch_bucket(place)
    }

    /// Brings the lines that [`find`](Self::find) will go on with; for callers that touched before.
    #[inline]
    #[must_use]
    pub fn touch_entry(&self, key: &Key<'_>) -> u64 {
        let places = [key.place(), key.of_every_type().place()];
        self.shard(places[0]).touch_entry(places)
    }

    /// Copies the body of the answer to a question into `out`, TTLs aged. No lock, no allocation.
    ///
    /// That the name does not exist counts as an answer for every type. A fresh answer is preferred
    /// to a stale one and to a failure. `out` may be written to even when nothing is found.
    #[inline]
    pub fn find(&self, key: &Key<'_>, now_secs: u32, out: &mut [u8]) -> Option<Hit> {
        self.find_or_moment(key, now_secs, out).ok()
    }

    /// Does as [`find`](Self::find), and returns the moment at which nothing was found: as long as
    /// [`inserts`](Self::inserts) is the same, there is nothing still.
    #[inline]
    pub fn find_or_moment(
        &self,
        key: &Key<'_>,
        now_secs: u32,
        out: &mut [u8],
    ) -> Result<Hit, Inserts> {
        let place = key.place();
        let shard = self.shard(place); // that of all types of the name
        let moment = Inserts(shard.inserts());
        let own = shard.find(key, place, now_secs, out);
        if let Some(hit) = own.filter(|hit| !hit.is_stale && hit.kind != Kind::Failure) {
            return Ok(hit);
        }
        let any_key = key.of_every_type();
        let every_type = shard.find(&any_key, any_key.place(), now_secs, out);
        let found = match every_type.filter(|hit| denies_name(hit.kind, hit.counts)) {
            Some(hit) if own.is_none() || !hit.is_stale => every_type,
            _ if own.is_none() => None,
            _ => shard.find(key, place, now_secs, out), // copied once more: `out` may have changed
        };
        found.ok_or(moment)
    }

    /// Copies the answer that a name above does not exist, so that this one does not either
    /// (rfc8020#2). For questions that [`find`](Self::find) knows nothing about. Answers without
    /// [`DENIES_BELOW`](crate::DENIES_BELOW) are passed over.
    ///
    /// `ancestors` gives names above, best nearest to the root first. Looked up are at most
    /// [`CUTS_MAX`] of them, at depths at which names are denied in their part of the tree.
    pub fn find_cut(
        &self,
        key: &Key<'_>,
        ancestors: impl IntoIterator<Item = Ancestor>,
        now_secs: u32,
        out: &mut [u8],
    ) -> Option<Hit> {
        let row = self.cuts.row(key.name);
        let denied = ancestors.into_iter().filter(|it| row.may_deny(it.labels, now_secs));
        denied.take(CUTS_MAX).find_map(|Ancestor { skip, hash, .. }| {
            let ancestor = Key { name: key.name.get(skip..)?, hash, ..key.of_every_type() };
            let hit = self.find_exactly(&ancestor, now_secs, out)?;
            if hit.is_stale || !denies_below(hit.kind, hit.flags, hit.counts) {
                return None;
            }
            if let Some(body) = out.get_mut(..hit.body_bytes) {
                shift_pointers(body, hit.counts, skip).ok()?;
            }
            Some(Hit { refresh_due: false, ..hit })
        })
    }

    /// Returns what is stored under just this key.
    #[inline]
    fn find_exactly(&self, key: &Key<'_>, now_secs: u32, out: &mut [u8]) -> Option<Hit> {
        let place = key.place();
        self.shard(place).find(key, place, now_secs, out)
    }

    /// Keeps an answer, instead of the one there was.
    ///
    /// # Errors
    /// When the body is malformed or too large for this cache.
    pub fn insert(
        &self,
        key: &Key<'_>,
        answer: &Answer<'_>,
        lifetime: Lifetime,
    ) -> Result<(), InsertError> {
        self.insert_unless(|| false, key, answer, lifetime)
    }

    /// Returns the present of the part of the cache that a question belongs to, to be compared with
    /// that of an earlier [`find_or_moment`](Self::find_or_moment).
    #[inline]
    #[must_use]
    pub fn inserts(&self, key: &Key<'_>) -> Inserts {
        Inserts(self.shard(key.place()).inserts())
    }

    /// Returns the present, for an answer that is about to be fetched.
    pub fn flushes(&self) -> Flushes {
        Flushes(self.flushes.load(Relaxed))
    }

    /// Inserts as [`insert`](Self::insert) does, an answer whose fetch began at `asked`. If
    /// anything was flushed since then it is not kept: it may be what was to be forgotten.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), and when it comes too late.
    pub fn insert_since(
        &self,
        asked: Flushes,
        key: &Key<'_>,
        answer: &Answer<'_>,
        lifetime: Lifetime,
    ) -> Result<(), InsertError> {
        self.insert_unless(|| self.flushes() != asked, key, answer, lifetime)
    }

    /// Stores an answer unless it is late, which is checked under the writers' lock: a flush that
    /// begins after that comes to this shard later.
    fn insert_unless(
        &self,
        is_late: impl FnOnce() -> bool,
        key: &Key<'_>,
        answer: &Answer<'_>,
        lifetime: Lifetime,
    ) -> Result<(), InsertError> {
        if key.qtype == EVERY_TYPE {
            return Err(InsertError::NoType);
        }
        let stored = key.stored_with(answer.kind, answer.counts);
        let mut writing = self.shard(stored.place()).write();
        if is_late() {
            return Err(InsertError::Flushed);
        }
        writing.insert(&stored, answer, lifetime)?;
        // The name exists now, or does not any more: what stands under the other key, in the same
        // bucket, is older.
        let other = if stored == *key { key.of_every_type() } else { *key };
        writing.remove(&other);
        drop(writing);
        self.note_cut(&stored, answer, lifetime);
        Ok(())
    }

    /// Keeps an answer under just this key.
    pub(crate) fn insert_exactly(
        &self,
        key: &Key<'_>,
        answer: &Answer<'_>,
        lifetime: Lifetime,
    ) -> Result<(), InsertError> {
        self.shard(key.place()).write().insert(key, answer, lifetime)?;
        self.note_cut(key, answer, lifetime);
        Ok(())
    }

    /// Notes a name below which nothing exists, if the stored answer says so.
    fn note_cut(&self, stored: &Key<'_>, answer: &Answer<'_>, lifetime: Lifetime) {
        if denies_below(answer.kind, answer.flags, answer.counts) {
            let expires_at = lifetime.now_secs.saturating_add(lifetime.ttl_secs);
            self.cuts.note(stored.name, expires_at);
        }
    }

    /// Stores that an answer could not be fetched, and returns for how many seconds it should not
    /// be tried again: longer each time in a row (rfc9520#3.2).
    ///
    /// An answer that is still fresh or may be given stale stays instead, and is not
    /// [due](Hit::refresh_due) for as long.
    pub fn insert_failure(
        &self,
        key: &Key<'_>,
        failure: Failure<'_>,
        backoff: Limits,
        now_secs: u32,
    ) -> u32 {
        if key.qtype == EVERY_TYPE {
            return backoff.backoff_secs(1);
        }
        let put_off =
            |key: &Key<'_>| self.shard(key.place()).write().put_off(key, now_secs, backoff);
        put_off(key).or_else(|| put_off(&key.of_every_type())).unwrap_or_else(|| {
            let mut writing = self.shard(key.place()).write();
            writing.insert_failure(key, failure, backoff, now_secs)
        })
    }

    /// Whether the caller shall fetch anew an answer that was found and is
    /// [due](Hit::refresh_due). Says yes to one caller in [`REFRESH_SECS`]; never waits.
    #[must_use]
    pub fn claim_refresh(&self, key: &Key<'_>, hit: &Hit, now_secs: u32) -> bool {
        let key = key.stored_with(hit.kind, hit.counts);
        let retry_at = now_secs.saturating_add(REFRESH_SECS);
        let writing = self.shard(key.place()).try_write();
        writing.is_some_and(|writing| writing.claim_refresh(&key, now_secs, retry_at))
    }

    /// Forgets the answer to one question; whether there was one.
    pub fn remove(&self, key: &Key<'_>) -> bool {
        self.remove_exactly(key) | self.remove_exactly(&key.of_every_type())
    }

    /// Forgets what is stored under just this key.
    fn remove_exactly(&self, key: &Key<'_>) -> bool {
        self.shard(key.place()).write().remove(key)
    }

    /// Forgets every answer to questions for a name, in lower case; how many there were.
    pub fn remove_name(&self, name: &[u8]) -> u64 {
        self.remove_where(|entry| entry.name == name)
    }

    /// Forgets every answer to questions for a name and all below it; how many there were.
    pub fn remove_tree(&self, name: &[u8]) -> u64 {
        self.remove_where(|entry| is_at_or_below(entry.name, name))
    }

    /// Forgets what `gone` says yes to; how many answers that were.
    fn remove_where(&self, gone: impl Fn(&Entry<'_>) -> bool) -> u64 {
        self.flushes.fetch_add(1, Relaxed); // the lock of each shard publishes it
        let mut count = 0;
        for shard in &self.shards {
            let mut walk = Walk::new(shard);
            while walk.retain_slice(|entry| {
                let gone = gone(entry);
                count += u64::from(gone);
                !gone
            }) {}
        }
        count
    }

    /// Shows every answer, also those that expired, and some twice if writers are active. Writers
    /// wait for each step, so `visit` must be quick.
    pub fn for_each(&self, mut visit: impl FnMut(&Entry<'_>)) {
        for shard in &self.shards {
            let mut walk = Walk::new(shard);
            while walk.retain_slice(|entry| {
                visit(entry);
                true
            }) {}
        }
    }

    /// Shows the answers to all questions that differ from `key` in their type only.
    pub fn for_each_type(&self, key: &Key<'_>, visit: impl FnMut(&Entry<'_>)) {
        walk::for_each_type(self.shard(key.place()), key, visit);
    }

    /// Returns the shards, each of which goes to a file by itself.
    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Removes all entries.
    pub fn clear(&self) {
        self.flushes.fetch_add(1, Relaxed);
        self.shards.iter().for_each(|shard| shard.write().clear());
    }

    /// Returns what is in it, and what happened to it.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.shards.iter().for_each(|shard| shard.add_stats(&mut stats));
        stats
    }

    /// Returns how many answers there are of each kind and type, those that expired included.
    #[must_use]
    pub fn contents(&self) -> Contents {
        let mut contents = Contents::default();
        self.shards.iter().for_each(|shard| shard.add_contents(&mut contents));
        contents
    }

    /// Returns how many buckets the index has.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        self.shards.iter().map(|shard| shard.buckets() as u64).sum()
    }

    /// Returns the shard of a place.
    #[inline]
    fn shard(&self, place: Place) -> &Shard {
        &self.shards[place.shard(self.shards.len())]
    }
}
