//! Zone data: master files, JSON zones, hosts files, semantic checks, lookup, immutable snapshots.
//!
//! Text becomes [`Records`]; records become a snapshot that the answer path reads.
//!
//! Deliberately absent: sockets, clocks, threads that outlive a call, and signing.

pub mod check;
pub mod diagnostic;
pub mod disk;
pub mod file;
pub mod hosts;
#[cfg(feature = "json")]
pub mod json;
#[cfg(not(feature = "json"))]
#[path = "no_json.rs"]
pub mod json;
mod json_zone;
pub mod lookup_name;
pub mod order;
pub mod print;
mod random;
pub mod records;
mod release;
pub mod rules;
pub mod snapshot;
pub mod update;

pub use diagnostic::{Diagnostic, Diagnostics, Errors, Place, Problem, RecordName, Severity};
pub use json_zone::{JsonFile, JsonZone};
pub use lookup_name::{HashSeed, LookupName};
pub use random::{random_octets, try_random_octets};
pub use records::{Position, Record, Records};
pub use rules::{OwnerKind, OwnerRule, owner_rules};
pub use snapshot::{
    BuildError, ChangeError, ChangeRule, ChangeSet, Diff, Digest, HashedRecords, LookupResult,
    Merge, NetChange, Node, Rdatas, RecordCursor, Serial, SerialPolicy, Set, SetChange, Start,
    Zone, ZoneRecord, build, is_greater,
};
