//! Metrics of pools, their members and the probes of these.

use super::page::Page;
use crate::control::Control;
use crate::steering::checks::ChecksHandle;
use std::collections::HashMap;
use zonda_health::TargetId;

/// Writes what is known of pools, if there are any.
pub fn write(page: &mut Page, control: &Control) {
    let Some(checks) = &control.checks else { return };
    let (mut members, mut pools, mut ids) = (Vec::new(), Vec::new(), HashMap::new());
    let mut loads = Vec::new();
    let states = checks.states.lock();
    states.each(|report| {
        let name = &report.config.name;
        pools.push((name.clone(), report.is_up, report.ttl));
        for (described, member) in report.config.members.iter().zip(&report.members) {
            let (is_up, load) = (member.state.is_up, member.state.load);
            members.push((name.clone(), described.name.clone(), is_up, member.is_healthy));
            loads.extend(load.map(|load| (name.clone(), described.name.clone(), load)));
            ids.insert(member.id, (name.clone(), described.name.clone()));
        }
    });
    drop(states);
    if pools.is_empty() {
        return;
    }
    let name = "zonda_pool_up";
    page.metric(name, "gauge", "Whether enough members of a pool are up: 1 or 0.");
    pools.iter().for_each(|(pool, up, _)| page.value(name, &[("pool", pool)], u8::from(*up)));
    let name = "zonda_pool_ttl_seconds";
    page.metric(name, "gauge", "TTL of what a pool answers.");
    pools.iter().for_each(|(pool, _, ttl)| page.value(name, &[("pool", pool)], ttl));
    let mut metric = |name, help, one: fn(&(String, String, bool, bool)) -> bool| {
        page.metric(name, "gauge", help);
        for member in &members {
            let labels = [("pool", &*member.0), ("member", &*member.1)];
            page.value(name, &labels, u8::from(one(member)));
        }
    };
    let help = "Whether a member counts as up: 1 or 0.";
    metric("zonda_pool_member_up", help, |member| member.2);
    let help = "Whether the probes of a member say that it is up, whatever operators say: 1 or 0.";
    metric("zonda_pool_member_healthy", help, |member| member.3);
    let name = "zonda_pool_member_load_percent";
    if !loads.is_empty() {
        page.metric(name, "gauge", "Load of a member, as it was last told.");
    }
    for (pool, member, load) in &loads {
        page.value(name, &[("pool", pool), ("member", member)], load);
    }
    write_checks(page, checks, &ids);
    let counts = checks.prober.counts();
    let help = "Probes that have begun.";
    page.single("zonda_probes_total", "counter", help, counts.started);
    let help = "Probes that were left out, as the former one of the target was under way.";
    page.single("zonda_probes_skipped_total", "counter", help, counts.skipped);
    let help = "Probes under way.";
    page.single("zonda_probes_running", "gauge", help, counts.running);
}

/// Writes what the checks of members have found, by the members' pools and names.
fn write_checks(page: &mut Page, checks: &ChecksHandle, ids: &HashMap<TargetId, (String, String)>) {
    let mut found = Vec::new();
    checks.prober.each(|status| {
        let Some((pool, member)) = ids.get(&status.id) else { return };
        let took = status.health.last().map(|last| last.took.as_secs_f64());
        let kind = status.target.check.kind.word();
        found.push((pool, member, kind, took, status.health.changes_total()));
    });
    found.sort_unstable_by_key(|(pool, member, ..)| (*pool, *member));
    let name = "zonda_check_last_seconds";
    page.metric(name, "gauge", "How long the last probe of a member took.");
    for (pool, member, kind, took, _) in &found {
        if let Some(took) = took {
            page.value(name, &[("pool", pool), ("member", member), ("kind", kind)], took);
        }
    }
    let name = "zonda_check_changes_total";
    page.metric(name, "counter", "Changes of state that the probes of a member have brought.");
    for (pool, member, kind, _, changes) in &found {
        page.value(name, &[("pool", pool), ("member", member), ("kind", kind)], changes);
    }
}
