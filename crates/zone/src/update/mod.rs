//! Dynamic update (rfc2136): what a message asks of a zone, and which changes it amounts to.
//!
//! ```text
//! prerequisites ─► check_prerequisites ─┐
//! updates ───────► check_updates ───────┼─► changes ─► Zone::with
//!                                       └ an UpdateFault has the response code
//! ```
//!
//! Deliberately absent: messages, which client may change what, and the serial where the message
//! gives none: that of the change set.

mod changes;
mod fault;
mod prerequisites;

pub use changes::{changes, check_updates};
pub use fault::{FormatRule, UpdateFault};
pub use prerequisites::check_prerequisites;

use zonda_wire::{UpdateRecord, name};

/// Fails for a record whose owner lies outside the zone (rfc2136#3.2.5, #3.4.1.3).
fn check_owner(apex: &[u8], record: &UpdateRecord) -> Result<(), UpdateFault> {
    match name::is_at_or_below(record.owner.as_wire(), apex) {
        true => Ok(()),
        false => Err(UpdateFault::OutsideZone(record.owner.clone())),
    }
}
