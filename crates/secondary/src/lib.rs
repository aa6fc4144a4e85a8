//! Zones that are transferred from primaries (rfc5936, rfc1995).
//!
//! ```text
//! question ─► exchange ─► message ─► signature ─► intake ─► Transferred: whole zone, changes, none
//!                 ▲ limits: octets, records, time; budget     │
//! schedule ─ serials, timers ◄────────────────────────────────┘ ─► zone_file: zone and timers
//! ```
//!
//! A reply that is not perfect is a [`Fault`], which says in words what is wrong; the version that
//! a secondary has stays in force.
//!
//! Deliberately absent: threads, and which zones are due when: the server has those.

pub mod budget;
pub mod catalog;
pub mod exchange;
mod fault;
pub mod hooks;
pub mod intake;
pub mod membership;
pub mod question;
pub mod removed;
pub mod timers;
pub mod whole_zone;
pub mod zone_file;

pub use budget::{Budget, KeptPlace, Place, Share};
pub use catalog::{Catalog, CatalogFault, Listing, ListingChange, MemberId};
pub use exchange::{Limits, Primary, SoaReply};
pub use fault::{ChangesLack, Fault};
pub use hooks::TransferHooks;
pub use intake::{Counts, Intake, Transferred};
pub use membership::{Member, MemberStep, Membership, VersionLimits};
pub use question::Question;
pub use removed::MemberTag;
pub use timers::{TimerBounds, Timers};
pub use whole_zone::WholeZone;
pub use zone_file::{FileState, StoredZone, ZoneFile};
