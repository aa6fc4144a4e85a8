//! Transfers that wait for memory before they begin.
//!
//! Such a zone has no thread and no connection: it is due again after a second, or later where
//! thousands wait, and asks whether there is room then, at the place among all transfers that it
//! had before. Its primaries are asked once there is. What has asked for the refresh waits as well.

use super::secondary_state::MemoryWaitStatus;
use super::secondary_zone::{MemoryWait, SecondaryZone, ZoneWork, now_secs};
use crate::log_budget::LogBudget;
use std::time::Duration;
use zonda_secondary::budget::octets_of;
use zonda_secondary::intake::octets_of_record;
use zonda_zone::Zone;

/// Bounds the lines about transfers that wait: thousands may at once.
static WAITS: LogBudget = LogBudget::new();

/// After how long the zone is to ask again whether there is room, if its transfer still waits.
pub fn wait_left(work: &ZoneWork) -> Option<Duration> {
    let wait = work.wait.as_ref()?;
    (!wait.kept.has_room(wait.octets)).then(|| wait.kept.ask_interval())
}

/// Has a transfer wait until there are the octets of memory that it is to have, and then begin
/// anew.
pub fn postpone(zone: &SecondaryZone, work: &mut ZoneWork, wait: MemoryWait) {
    let limits = zone.limits(); // changes may have twice as much
    let [records, most] = [limits.records_max, limits.octets_max].map(|it| it.saturating_mul(2));
    let (primary, octets) = (wait.primary, wait.octets.min(octets_of(records, most)));
    if wait.since.is_none() {
        WAITS.spend(|left_out| {
            let apex = &zone.apex;
            tracing::info!(zone = %apex, %primary, octets, left_out, "a transfer waits for memory");
        });
    }
    let since = wait.since.unwrap_or_else(now_secs);
    zone.state.lock().memory_wait = Some(MemoryWaitStatus { primary, since, octets }.into());
    work.wait = Some(MemoryWait { octets, since: Some(since), ..wait }.into());
}

/// Ends the wait of a zone, if its transfer has waited: it is done, or there is none to be made.
pub fn end_wait(zone: &SecondaryZone, work: &mut ZoneWork) {
    work.wait = None;
    zone.state.lock().memory_wait = None;
}

/// The octets of memory that the transfer of a whole zone will take if it is as large as the
/// version in force; 0 where there is none. Looks at each record.
pub fn estimate(zone: Option<&Zone>) -> u64 {
    let Some(zone) = zone else { return 0 };
    let soa = octets_of_record(zone.apex().len(), zone.soa().0.first().len());
    let (mut records, mut stored) = (1, soa); // the SOA record comes twice
    for node in zone.nodes() {
        let owner = node.relative_owner().len() + zone.apex().len();
        for rdata in node.sets().flat_map(|set| set.rdatas()) {
            records += 1;
            stored += octets_of_record(owner, rdata.len());
        }
    }
    octets_of(records, stored)
}
