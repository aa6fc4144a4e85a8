//! Transfers that wait for memory before they begin.
//!
//! Such a zone has no thread and no connection: it is due again after a second, or later where
//! thousands wait, and asks whether there is room then, at the place among all transfers that it
//! had before. Its primaries are asked once there is, and meanwhile after the retry time, so that
//! a version which is theirs does not expire, and changes are taken for which there is room. What
//! has asked for the refresh waits as well.

use super::secondary_state::MemoryWaitStatus;
use super::secondary_work::{MemoryWait, ZoneWork};
use super::secondary_zone::{SecondaryZone, now_secs};
use crate::log_budget::LogBudget;
use std::time::{Duration, Instant};
use zonda_secondary::budget::{octets_of_changes, octets_of_zone};
use zonda_secondary::intake::octets_of_record;
use zonda_zone::Zone;

/// Bounds the lines about transfers that wait: thousands may at once.
static WAITS: LogBudget = LogBudget::new();

/// After how long the zone is to ask again whether there is room, if its transfer still waits, and
/// its primaries are not to be asked.
pub fn wait_left(zone: &SecondaryZone, work: &mut ZoneWork) -> Option<Duration> {
    let wait = work.rare_if_any()?.wait.as_mut()?;
    let octets = wait.octets.min(octets_max(zone)); // a reload may allow fewer
    if octets < wait.octets {
        (wait.octets, wait.of_changes) = (octets, wait.of_changes.min(octets));
        show(zone, wait);
    }
    if wait.kept.has_room(wait.octets) {
        return None;
    }
    let asks = wait.kept.ask_interval();
    let now = Instant::now();
    match wait.check_at.map(|check_at| check_at.saturating_duration_since(now)) {
        Some(Duration::ZERO) => None,
        left => Some(left.map_or(asks, |left| left.min(asks))),
    }
}

/// The octets of memory that a transfer of a zone is to have before it begins, at most. Names that
/// have names below them, or very many records, may make it take more: it waits for that in the
/// middle.
pub fn octets_max(zone: &SecondaryZone) -> u64 {
    let limits = zone.limits(); // changes may have twice as much
    let [records, most] = [limits.records_max, limits.octets_max].map(|it| it.saturating_mul(2));
    octets_of_changes(records, most).max(octets_of_zone(records, most, || 0))
}

/// Has all that read know of a wait.
fn show(zone: &SecondaryZone, wait: &MemoryWait) {
    let Some(since) = wait.since else { return };
    let status = MemoryWaitStatus { primary: wait.primary, since, octets: wait.octets };
    zone.state.lock().rare_mut().memory_wait = Some(status.into());
}

/// Has a transfer wait until there are the octets of memory that it is to have, and then begin
/// anew.
pub fn postpone(zone: &SecondaryZone, work: &mut ZoneWork, wait: MemoryWait) {
    let (primary, octets_max) = (wait.primary, octets_max(zone));
    let [octets, of_changes] = [wait.octets, wait.of_changes].map(|it| it.min(octets_max));
    if wait.since.is_none() {
        WAITS.spend(|left_out| {
            let apex = &zone.apex;
            tracing::info!(zone = %apex, %primary, octets, left_out, "a transfer waits for memory");
        });
    }
    let since = wait.since.or_else(|| Some(now_secs()));
    let timers = work.zone.as_ref().and_then(|_| zone.timers(work));
    let check_at = timers.map(|it| Instant::now() + work.before_expiry(it.retry));
    let wait = MemoryWait { octets, of_changes, since, check_at, ..wait };
    show(zone, &wait);
    work.rare_mut().wait = Some(wait.into());
}

/// Has a transfer go on waiting whose primaries were asked meanwhile, and have nothing that can be
/// taken; they are asked again after some time. Returns after how long the zone is to ask whether
/// there is room; none where there is already, or no transfer has waited.
pub fn go_on_waiting(
    zone: &SecondaryZone,
    work: &mut ZoneWork,
    next: Duration,
) -> Option<Duration> {
    let wait = work.rare_if_any()?.wait.as_mut().filter(|wait| wait.since.is_some())?;
    wait.check_at = Some(Instant::now() + next);
    show(zone, wait);
    wait_left(zone, work)
}

/// Ends the wait of a zone, if its transfer has waited: it is done, or there is none to be made.
pub fn end_wait(zone: &SecondaryZone, work: &mut ZoneWork) {
    if let Some(rare) = work.rare_if_any() {
        rare.wait = None;
    }
    if let Some(rare) = zone.state.lock().rare_if_any() {
        rare.memory_wait = None;
    }
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
    octets_of_zone(records, stored, || zone.bytes_besides() as u64)
}
