//! Metrics of transfers of zones to other servers.

use super::page::Page;
use crate::control::Control;

/// Writes what transfers have done.
pub fn write(page: &mut Page, control: &Control) {
    let counts = control.snapshot().settings.transfers.state.counts();
    let name = "zonda_transfers_total";
    page.metric(name, "counter", "Transfers of zones to clients, by what became of them.");
    page.value(name, &[("result", "completed")], counts.completed);
    page.value(name, &[("result", "failed")], counts.failed);
    page.value(name, &[("result", "refused")], counts.refused);
    page.value(name, &[("result", "busy")], counts.busy);
    page.single("zonda_transfers_running", "gauge", "Transfers that run.", counts.running);
    let help = "Messages of transfers.";
    page.single("zonda_transfer_messages_total", "counter", help, counts.messages);
    let help = "Octets of these messages.";
    page.single("zonda_transfer_bytes_total", "counter", help, counts.octets);
    let help = "Records in these messages.";
    page.single("zonda_transfer_records_total", "counter", help, counts.records);
}
