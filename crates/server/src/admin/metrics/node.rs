//! Metrics of a node's own DNS cache: its interface, and the ConfigMap that it follows.

use super::page::Page;
use crate::control::Control;
use std::sync::atomic::Ordering::Relaxed;

/// Writes what is known of the interface and the ConfigMap; nothing without them.
pub fn write(page: &mut Page, control: &Control) {
    if let Some(interface) = &control.interface {
        let name = "zonda_interface_repairs_total";
        let help = "Times the interface of [node-local], or a part of it, was gone, by result.";
        page.metric(name, "counter", help);
        page.value(name, &[("result", "made")], interface.repairs.load(Relaxed));
        page.value(name, &[("result", "failed")], interface.failures.load(Relaxed));
    }
    let state = control.state();
    if let Some(kube_dns) = &state.config().kube_dns {
        let name = "zonda_config_map_in_force";
        let help = "Whether the ConfigMap of [kube-dns] was usable when last read: 1 or 0.";
        page.single(name, "gauge", help, u8::from(!kube_dns.is_broken()));
    }
}
