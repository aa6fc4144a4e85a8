//! The answer cache that all threads share.
//!
//! Keeps the octets behind the question of answers that came from elsewhere, until they expire and
//! a while longer, and copies them into replies with aged TTLs. Forwarder threads fill it, UDP
//! workers read it. Bounded in octets from its construction on; its memory is not touched before
//! it is used.
//!
//! Deliberately absent: clocks (callers pass seconds), sockets, and resizing.
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
//! This is S3-FIFO (Yang and others, 2023) in octets instead of entries: an answer asked for once
//! crosses a tenth of the memory and leaves; one asked for again gets the rest. Replacing an answer
//! appends the new one; the old is dead weight until the tail passes it. As long as less than seven
//! eighths are alive, what would leave stays (but for the bound on what one insertion moves). Each
//! shard has one lock for writers.
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
//! A refused reader starts again, since the entry may have moved; it is written to its new place,
//! and the index points there, before the tail passes the old one. What a reader reads may be
//! anything until (e), so every access is checked, and nothing is believed before.
//!
//! # Invariants
//! - An answer is found for its own question only: the whole name is compared, not its hash.
//! - It is fresh before `expires`, stale until `stale until`, and not found after that.
//! - Logs, index and ghosts never exceed `bytes_max`; beside them a shard has a scratch entry.

mod body;
mod cache;
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

pub use cache::{BYTES_MIN, CUTS_MAX, Cache, Flushes, REFRESH_SECS, Refused, Stats};
pub use key::{Answer, FAILURE_TEXT_BYTES_MAX, Failure, Hit, Key, Kind, Lifetime};
pub use policy::Policy;
pub use walk::Entry;

/// The TTL of every record of a stale answer, seconds (rfc8767#4).
pub const STALE_TTL_SECS: u32 = 30;
/// The shortest TTL of an answer that is fetched again before it expires, seconds. With a shorter
/// one, a tenth of it is no time.
pub const PREFETCH_TTL_SECS_MIN: u32 = 5;
