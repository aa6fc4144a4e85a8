//! Metrics of zones that are transferred from primaries.

use super::page::Page;
use crate::control::Control;
use crate::feed::secondary_state::SecondaryCounts;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

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
    let help = "Octets of messages of transfers from primaries.";
    single("zonda_secondary_transferred_bytes_total", help, &counters.octets);
    let help = "Records in these messages.";
    single("zonda_secondary_transferred_records_total", help, &counters.records);
}
