//! Transfers that wait for memory before they begin.
//!
//! Such a zone has no thread and no connection: it is due again after a second, and asks whether
//! there is room then, at the place among all transfers that it had before. Its primaries are asked
//! once there is. What has asked for the refresh waits as well.

use super::secondary_state::MemoryWaitStatus;
use super::secondary_zone::{
    Fallback, MemoryWait, SecondaryZone, Surroundings, ZoneWork, now_secs,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use zonda_secondary::Share;
use zonda_secondary::budget::octets_of;
use zonda_zone::Zone;

/// How often a zone whose transfer waits asks whether there is room.
pub const ROOM_INTERVAL: Duration = Duration::from_secs(1);

/// Whether the transfer of a zone still waits.
pub fn is_waiting(work: &ZoneWork, around: &Surroundings) -> bool {
    work.wait.as_ref().is_some_and(|wait| !around.budget.has_room(wait.place, wait.octets))
}

/// Has a transfer wait until so many octets of memory may be had, and then begin anew.
pub fn postpone(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    (share, octets): (&Share<'_>, u64),
    (primary, fallback): (SocketAddr, Option<Fallback>),
) {
    let limits = zone.limits(); // changes may have twice as much
    let [records, most] = [limits.records_max, limits.octets_max].map(|it| it.saturating_mul(2));
    let octets = octets.min(octets_of(records, most));
    let mut status = zone.state.lock();
    let since = status.memory_wait.as_ref().map_or_else(now_secs, |it| it.since);
    status.memory_wait = Some(MemoryWaitStatus { primary, since, octets }.into());
    work.wait = Some(MemoryWait { place: share.place(), octets, primary, fallback }.into());
}

/// Ends the wait of a zone, if its transfer has waited: it is done, or there is none to be made.
pub fn end_wait(zone: &SecondaryZone, work: &mut ZoneWork, around: &Surroundings) {
    if let Some(wait) = work.wait.take() {
        around.budget.leave(wait.place);
    }
    zone.state.lock().memory_wait = None;
}

/// The octets of memory that the transfer of a whole zone will take: as far as the version in force
/// tells it, which takes up to half more than its records in a row.
pub fn estimate(work: &ZoneWork) -> u64 {
    let of_zone = |zone: &Arc<Zone>| octets_of(work.records as u64, zone.bytes() as u64);
    work.zone.as_ref().map_or(0, of_zone)
}
