//! Journal of zones' changes.
//!
//! An entry is a change of a zone from one serial to the next: octets that this crate does not
//! read. The owner of the journal, one thread, appends the entries of any number of zones and
//! commits them together with one `fdatasync` ([`Journal::commit`]); what was committed is read
//! back from a serial on ([`Journal::history`]), at the start of the server and for incremental
//! transfers.
//!
//! ```text
//! file     "zondajr1" 8 | id of the file 8 | checksum 8 | records | zeros
//! record   mark 4 | kind 1 | octets of the name 1 | octets since the group's start 4
//!          | serial from 4 | serial to 4 | octets of the payload 4
//!          | checksum of the file's id, the record's offset and these 22 octets 8
//!          | name | payload | checksum of both, continued from the first checksum 8
//! kinds    0 entry | 1 the zone's entries before this record are void
//!          | 2 end of a group, without name and payload
//!          | 3 the zone's file holds its changes up to the serial "to"
//! ```
//! Numbers are big-endian; an entry takes 38 octets beside its name and payload.
//!
//! A *group* is what one commit writes. It begins only after the group before it is on the disk,
//! and once it is there itself, an end record is written behind it. Nothing waits for the end
//! record to be on the disk: it gets there with the next group, in any order. So a record that is
//! whole proves that all groups before its own were committed, but not that their last end record
//! was, and what a crash leaves can be told from damage:
//! - octets that are no record, with no later group behind them, or with one that begins behind the
//!   place of a missing end record, are a commit that was never acknowledged. They are cut off;
//!   [`Recovery::torn`] says so. Without its end record on the disk, damage to the very last group
//!   is reported so, too, and not at all if it has left zeros alone from the damage on;
//! - octets that are no record, with any other later group behind them, were committed once.
//!   [`Error::Damaged`] names the file, the offset and what can be done; nothing is changed.
//!
//! The zeros are room for later groups: `fdatasync` of a group that makes the file longer has the
//! file system commit its own journal as well. They are written with the group that needs a longer
//! file, and cut off when the journal is closed; a killed process leaves them.
//!
//! # Why a file of its own and not an embedded database
//! What is needed is: append, make durable, read in order, drop the oldest. A copy-on-write tree
//! (redb, LMDB) writes several pages of 4096 octets and a root for each commit, where this writes
//! the entry and 38 octets; it grows until it is compacted, too, and it has to be opened whole or
//! not at all, while a log can say at which octet it is damaged and keep what lies before. An entry
//! is found by an index of 16 octets in memory, which is read from the file in one pass at the
//! start. The price: the file is rewritten when more than half of it is no longer needed.
//!
//! # Cost
//! `examples/cost.rs` measures it. With 1,000 entries a second of 200 octets of payload, on a
//! virtual disk with ext4 that needs 5 ms for `fdatasync`: 6 entries a commit, 24 µs of CPU and 257
//! octets an entry. Nearly all of it is the file system's: 3 µs at 10,000 a second, 70 a commit.
//!
//! # Invariants
//! - After `commit` has returned `Ok`, its entries are read back after any crash of the process,
//!   and after a loss of power if the disk keeps what `fdatasync` reported as written.
//! - One process at a time has a journal open ([`Error::Locked`]): a file beside it is locked.
//! - A zone's entries follow each other: each begins with the serial that the one before it ends
//!   with.
//! - An entry is only dropped once its zone's file holds the change ([`Journal::release`]).
//! - Memory is bounded: [`GROUP_OCTETS_MAX`] waits for a commit, the index has 16 octets an entry
//!   (32 while it grows), and reading takes a buffer of fixed size and one entry.
//! - After an error that leaves the disk's state unknown nothing more is accepted
//!   ([`Error::Failed`]).
//!
//! Deliberately absent: what a payload means, threads, clocks.

pub mod checksum;
mod error;
mod history;
mod index;
mod journal;
mod record;
pub mod scan;

pub use error::Error;
pub use history::{Change, History};
pub use index::{HistoryLimit, Serials};
pub use journal::{Entry, GROUP_OCTETS_MAX, Journal, PAYLOAD_OCTETS_MAX, Recovery, Sizes};
pub use record::Kind;
pub use scan::Torn;
