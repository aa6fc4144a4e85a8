//! Metrics of transfers of zones to other servers.

use super::page::Page;
use crate::control::Control;
use crate::notify::NotifyCounts;
use std::sync::atomic::Ordering::Relaxed;

/// Writes what transfers have done.
pub fn write(page: &mut Page, control: &Control) {
    let counts = control.snapshot().settings.transfers.state.counts();
    let name = "zonda_transfers_total";
    page.metric(name, "counter", "Transfers of zones to clients, by what became of them.");
    page.value(name, &[("result", "completed")], counts.completed);
    page.value(name, &[("result", "failed")], counts.failed);
    page.value(name, &[("result", "refused")], counts.refused);
    page.value(name, &[("result", "busy")], counts.busy);
    page.value(name, &[("result", "client_busy")], counts.client_busy);
    let help = "Transfers of what changed instead of the whole zone.";
    page.single("zonda_transfers_incremental_total", "counter", help, counts.incremental);
    page.single("zonda_transfers_running", "gauge", "Transfers that run.", counts.running);
    let help = "Messages of transfers.";
    page.single("zonda_transfer_messages_total", "counter", help, counts.messages);
    let help = "Octets of these messages.";
    page.single("zonda_transfer_bytes_total", "counter", help, counts.octets);
    let help = "Records in these messages.";
    page.single("zonda_transfer_records_total", "counter", help, counts.records);
    write_notify(page, &control.state().notify);
}

/// Writes what has become of NOTIFY messages.
fn write_notify(page: &mut Page, counts: &NotifyCounts) {
    let name = "zonda_notifies_total";
    page.metric(name, "counter", "NOTIFY messages, and what has become of them.");
    page.value(name, &[("result", "sent")], counts.sent.load(Relaxed));
    page.value(name, &[("result", "acknowledged")], counts.acknowledged.load(Relaxed));
    page.value(name, &[("result", "refused")], counts.refused.load(Relaxed));
    page.value(name, &[("result", "superseded")], counts.superseded.load(Relaxed));
    page.value(name, &[("result", "postponed")], counts.postponed.load(Relaxed));
    let help = "Versions of zones that receivers have not acknowledged yet.";
    page.single("zonda_notifies_pending", "gauge", help, counts.pending.load(Relaxed));
    let help = "Receivers that acknowledge nothing, as the log says.";
    page.single("zonda_notify_receivers_silent", "gauge", help, counts.silent.load(Relaxed));
}
