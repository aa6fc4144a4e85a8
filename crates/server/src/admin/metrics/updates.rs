//! Metrics of messages that change zones.

use super::page::Page;
use crate::control::Control;
use std::sync::atomic::Ordering::Relaxed;

/// Writes what has become of messages that change zones.
pub fn write(page: &mut Page, control: &Control) {
    let counters = &control.updates.counters;
    let name = "zonda_updates_total";
    page.metric(name, "counter", "Messages that change zones, by what became of them.");
    for (result, counter) in [
        ("changed", &counters.changed),
        ("unchanged", &counters.unchanged),
        ("refused", &counters.refused),
        ("unmet", &counters.unmet),
        ("invalid", &counters.invalid),
        ("failed", &counters.failed),
        ("busy", &counters.busy),
        ("repeated", &counters.repeated),
        ("relayed", &counters.relayed),
        ("relay_failed", &counters.relay_failed),
    ] {
        page.value(name, &[("result", result)], counter.load(Relaxed));
    }
    let help = "Times that messages which waited were carried out together.";
    let batches = counters.batches.load(Relaxed);
    page.single("zonda_update_batches_total", "counter", help, batches);
    let help = "Messages that wait to change zones.";
    page.single("zonda_updates_waiting", "gauge", help, control.updates.waiting() as u64);
}
