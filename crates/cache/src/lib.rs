//! The answer cache that all threads share.
//!
//! Keeps the octets behind the question of answers that came from elsewhere, until they expire and
//! a while longer, and copies them into replies with aged TTLs. Forwarder threads fill it, UDP
//! workers read it. Bounded in octets from its construction on; its memory is not touched before
//! it is used.
//!
//! Deliberately absent: clocks (callers pass seconds), sockets, shrinking, and sweeping: what has
//! expired is not found, lies where it lies until its room is wanted, and then leaves before
//! anything that has not. So memory once used stays used, up to the bound, whatever expires.
//!
//! # Shape
//! ```text
//!  hash ─► shard ─► index: buckets of eight words, a cache line each
//!                   [ tag | position | log | frequency ] ─► an entry in one of two logs
//!
//!  small log, 1/10   tail [e][e][e][e][e] head ◄── insert ◄── not seen before
//!                     │
//!                     ├─ found since ───────────────────────────────┐
//!                     └─ not found ─► leaves; its hash to the ghosts│
//!                                                                   ▼
//!  main log, 9/10    tail [e][e][e][e][e][e][e][e][e][e][e][e][e] head ◄── insert ◄── a ghost
//!                     │                                             ▲
//!                     ├─ found since ───────────────────────────────┘
//!                     └─ not found ─► leaves
//! ```
//! This is S3-FIFO (Yang et al., 2023) in octets instead of entries: an answer asked for once
//! crosses a tenth of the memory and leaves; one asked for again gets the rest. Replacing an answer
//! appends the new one; the old is dead weight until the tail passes it. An expired one is dropped
//! there, never moved, and makes room in a full bucket first. As long as less than seven eighths
//! are alive, what would leave stays (but for the bound on what one insertion moves). Each shard
//! has one lock for writers.
//!
//! # Why a reader needs no lock
//! A log only grows: an entry lies at a *position* (lap and word), and positions are never used
//! twice. A log's *tail* is the oldest valid position. A writer that needs room (1) takes entries
//! out of the index or points it at their copies, (2) stores the new tail, (3) issues a release
//! fence, (4) overwrites words with relaxed stores, (5) points the index at them with a release
//! store. A reader (a) loads the tails with acquire, (b) loads a word of the index with acquire,
//! (c) copies the entry with relaxed loads, (d) issues an acquire fence, (e) loads the tail again.
//! The copy is valid if the tail has not passed the entry's position:
//! - *Not too old*: (b) reads what (5) stored, or a hit's read-modify-write on it, which continues
//!   the release sequence. So the entry's words happen before (c), which cannot read older ones.
//! - *Not too young*: if (c) read a word of a later (4), the fences (3) and (d) synchronise through
//!   it, so (2) happens before (e), which then sees a tail beyond the position.
//! - *The right position*: the index holds its lower 34 bits; the reader completes them to the
//!   first position at or above the tail of (a). An entry in the index at (b) lies there: had (a)
//!   seen the (2) of its eviction, then (b) would see the (1). Were a reader to sleep between (a)
//!   and (b) until the bits have come round, it would complete them to too low a position, which
//!   (e) refuses.
//!
//! A reader whose copy is invalid starts again, since the entry may have moved; it is written to
//! its new place, and the index points there, before the tail passes the old one. What a reader
//! reads may be anything until (e), so every access is checked, and nothing is used before.
//!
//! The index grows bucket by bucket: a writer (6) stores the words of entries that move into the
//! new bucket, (7) stores how many buckets are in use, with release, and (8) empties the slots that
//! they leave, with release. A reader that knows of the new bucket sees (6). One that does not, and
//! comes to a slot after (8), has not found its entry, sees (7) when it looks once more in which
//! bucket that belongs, and starts again. Moving a word counts as (5): the lock of the writers
//! orders it behind the entry's words.
//!
//! # Invariants
//! - An answer is found for its own question only: the whole name is compared, and what else the
//!   answer depends on ([`Variant`]), not their hashes.
//! - It is fresh before `expires`, stale until `stale until`, and not found after that.
//! - Logs, index and ghosts never exceed `bytes_max`; beside them a shard has a scratch entry and
//!   2 KiB of counters, and the cache 16 KiB of the depths at which names are denied.
//! - The memory that is touched grows with what is cached, up to the bound: the logs with its
//!   octets, the index with its number.

mod body;
mod cache;
mod contents;
mod cuts;
mod entry;
mod ghost;
mod index;
mod key;
pub mod persist;
pub mod policy;
mod ring;
mod shard;
mod walk;
mod words;

pub use cache::{
    Ancestor, BYTES_MIN, CUTS_MAX, Cache, Flushes, InsertError, Inserts, REFRESH_SECS, Stats,
};
pub use contents::{Content, Contents};
pub use key::{
    Answer, DENIES_BELOW, FAILURE_TEXT_BYTES_MAX, Failure, Hit, Key, Kind, Lifetime, Onward,
    VARIANT_BYTES_MAX, Variant,
};
pub use policy::Policy;
pub use walk::Entry;

/// How answers are treated shortly before they expire, and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// In this share of its TTL, the last, a popular answer is fetched anew; percent, at most 50.
    /// 0: never before it expires.
    pub prefetch_percent: u8,
    /// The shortest TTL of which that is done, seconds, at least 2: a tenth of less is no time.
    pub prefetch_ttl_secs_min: u32,
    /// The TTL of every record of a stale answer, seconds (rfc8767#4).
    pub stale_ttl_secs: u32,
}

impl Default for Freshness {
    fn default() -> Self {
        Self { prefetch_percent: 10, prefetch_ttl_secs_min: 5, stale_ttl_secs: 30 }
    }
}

impl Freshness {
    /// For how long before it expires a popular answer may be fetched anew, seconds.
    fn prefetch_secs(self, ttl_secs: u32) -> u32 {
        if ttl_secs < self.prefetch_ttl_secs_min {
            return 0;
        }
        let part = u64::from(ttl_secs) * u64::from(self.prefetch_percent);
        u32::try_from(part.div_ceil(100)).unwrap_or(ttl_secs) // it is a part of the TTL
    }
}
