//! Metrics of zones that are transferred from primaries.

use super::page::Page;
use crate::control::Control;
use crate::feed::secondaries::SecondaryStates;
use crate::feed::secondary_state::{SecondaryCounts, SecondaryStatus};
use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use zonda_wire::Name;

/// Writes how zones follow primaries, if any do.
pub fn write(page: &mut Page, control: &Control) {
    let states = control.stores.secondaries.states();
    if states.is_empty() {
        return;
    }
    let counters = control.stores.secondaries.counters();
    let counts = SecondaryCounts::of(states.values());
    let name = "zonda_secondary_zones";
    page.metric(name, "gauge", "Zones that are transferred from primaries, by their state.");
    page.value(name, &[("state", "current")], counts.current);
    page.value(name, &[("state", "failing")], counts.failing);
    page.value(name, &[("state", "awaited")], counts.awaited);
    page.value(name, &[("state", "expired")], counts.expired);
    let soonest = states.values().filter_map(|state| state.lock().expiry()).min();
    if let Some(soonest) = soonest {
        let name = "zonda_secondary_next_expiry_timestamp_seconds";
        let help = "When the first of all zones expires unless a primary is in step before.";
        page.single(name, "gauge", help, soonest);
    }
    zones(page, control, &states);
    let name = "zonda_secondary_unkept_zones";
    let help = "Zones whose file could not be written the last time.";
    page.single(name, "gauge", help, counts.unkept);
    let name = "zonda_secondary_queue";
    page.metric(name, "gauge", "Zones from primaries that wait for a thread, or have one.");
    page.value(name, &[("queue", "unread")], counters.unread.load(Relaxed));
    page.value(name, &[("queue", "notified")], counters.notified.load(Relaxed));
    page.value(name, &[("queue", "waiting")], counters.waiting.load(Relaxed));
    page.value(name, &[("queue", "running")], counters.running.load(Relaxed));
    let name = "zonda_secondary_transfers_total";
    page.metric(name, "counter", "Transfers from primaries, by what came of them.");
    page.value(name, &[("result", "zone")], counters.whole.load(Relaxed));
    page.value(name, &[("result", "changes")], counters.changes.load(Relaxed));
    page.value(name, &[("result", "failed")], counters.failed_transfers.load(Relaxed));
    let mut single = |name, help, counter: &AtomicU64| {
        page.single(name, "counter", help, counter.load(Relaxed));
    };
    let help = "Checks of a serial that a primary answered.";
    single("zonda_secondary_checks_total", help, &counters.checks);
    let help = "Refreshes after which a zone was not known to be in step with any primary.";
    single("zonda_secondary_failed_refreshes_total", help, &counters.failed_refreshes);
    let help = "Zones that were taken out of service, as no primary was in step for too long.";
    single("zonda_secondary_expired_total", help, &counters.expired);
    let help = "NOTIFY messages that a zone was queued for.";
    single("zonda_secondary_notices_total", help, &counters.notices);
    let help = "Replies of primaries whose signature was wrong, or missing.";
    single("zonda_secondary_signature_faults_total", help, &counters.signature_faults);
    let help = "Whole zones that were asked for, as changes could not be taken.";
    single("zonda_secondary_fallbacks_total", help, &counters.fallbacks);
    let help = "Records that were left out, as they lie outside their zone.";
    single("zonda_secondary_outside_records_total", help, &counters.outside);
    let budget = control.stores.secondaries.budget();
    let help = "Times that a transfer has waited for memory that other transfers had.";
    page.single("zonda_secondary_memory_waits_total", "counter", help, budget.waits());
    let help = "Zones whose transfer waits for memory that other transfers have.";
    page.single("zonda_secondary_memory_waiting", "gauge", help, counts.waiting);
    let help = "Octets of memory that running transfers have of `transfers.memory-max`.";
    page.single("zonda_secondary_memory_bytes", "gauge", help, budget.used());
    let mut single = |name, help, counter: &AtomicU64| {
        page.single(name, "counter", help, counter.load(Relaxed));
    };
    let help = "Octets of messages of transfers from primaries.";
    single("zonda_secondary_transferred_bytes_total", help, &counters.octets);
    let help = "Records in these messages.";
    single("zonda_secondary_transferred_records_total", help, &counters.records);
}

/// Writes the states of single zones: of those that `metrics.zones` lists; without a list, of all
/// if there are no more than `metrics.busiest`.
fn zones(page: &mut Page, control: &Control, states: &SecondaryStates) {
    let state = control.state();
    let metrics = &state.config().metrics;
    let listed: HashSet<Name> = metrics.zones.iter().map(Name::to_lowercase).collect();
    let is_told = |zone: &Name| listed.is_empty() || listed.contains(zone);
    if listed.is_empty() && states.len() > metrics.busiest as usize {
        return;
    }
    let told = states.iter().filter(|(zone, _)| is_told(zone));
    let mut told: Vec<(String, SecondaryStatus)> =
        told.map(|(zone, state)| (zone.to_string(), state.lock().clone())).collect();
    told.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let mut metric = |name, help, value: fn(&SecondaryStatus) -> Option<u64>| {
        page.metric(name, "gauge", help);
        for (zone, status) in &told {
            if let Some(value) = value(status) {
                page.value(name, &[("zone", zone)], value);
            }
        }
    };
    let help = "The serial of a zone from primaries, as it is served.";
    metric("zonda_secondary_serial", help, |it| it.serial.map(u64::from));
    let help = "The serial of the best primary of a zone that answered last.";
    metric("zonda_secondary_primary_serial", help, |it| it.primary_serial.map(u64::from));
    let help = "Whether the last refresh of a zone failed: 1 or 0.";
    metric("zonda_secondary_failing", help, |it| Some(it.error().is_some().into()));
    let help = "When a zone from primaries is refreshed next.";
    let name = "zonda_secondary_next_refresh_timestamp_seconds";
    metric(name, help, |it| Some(it.next_refresh.secs()));
    let help = "When a zone expires unless a primary is in step before.";
    metric("zonda_secondary_expires_timestamp_seconds", help, SecondaryStatus::expiry);
}
