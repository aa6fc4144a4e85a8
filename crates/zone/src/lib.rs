//! Zone data: master files, JSON zones, semantic checks, lookup, immutable snapshots.
//!
//! Text becomes [`Records`]; records become a snapshot that the answer path reads.
//!
//! Deliberately absent: sockets, clocks, threads that outlive a call, and signing.

pub mod records;

pub use records::{Position, Record, Records};
