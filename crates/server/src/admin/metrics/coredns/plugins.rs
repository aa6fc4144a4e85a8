//! Plugins of CoreDNS, as far as the configuration has their counterparts.

use super::queries;
use crate::admin::metrics::page::Page;
use crate::control::Control;
use crate::settings::label_zones;
use std::collections::BTreeSet;
use zonda_config::{Action, Config, Source, Zone};
use zonda_wire::{Name, name};

/// Writes which are in force, by server and zone.
pub fn write(page: &mut Page, control: &Control) {
    let metric = "coredns_plugin_enabled";
    page.metric(metric, "gauge", "Plugins of CoreDNS whose counterparts are in force: 1.");
    let state = control.state();
    let (config, zones) = (state.config(), label_zones(state.config()));
    let servers = queries::servers(control);
    for zone in &zones {
        let text = zone.to_string();
        let plugins = plugins(config, zone, &zones);
        // Also of zones beyond those whose queries are counted apart.
        for server in &servers {
            for plugin in &plugins {
                let labels = [("server", &**server), ("zone", &text), ("view", "")];
                page.value(metric, &[&labels[..], &[("name", plugin)]].concat(), 1);
            }
        }
    }
}

/// Returns the plugins that a server block of a zone would have, out of the zones of all blocks.
fn plugins(config: &Config, block: &Name, blocks: &[Name]) -> BTreeSet<&'static str> {
    let mut plugins = BTreeSet::from(["any", "errors", "minimal", "prometheus"]);
    let is_here = |zone: &&Zone| match &zone.name {
        Some(apex) => {
            let holds = |it: &&Name| name::is_at_or_below(apex.as_wire(), it.as_wire());
            blocks.iter().filter(holds).max_by_key(|it| it.label_count()) == Some(block)
        }
        None => false, // a directory's zones may be those of any block
    };
    for zone in config.zones.iter().filter(is_here) {
        plugins.extend(of_zone(zone));
        if matches!(&zone.source, Source::Kubernetes(keys) if keys.autopath) {
            plugins.insert("autopath");
        }
    }
    let identity = &config.identity;
    let is_told =
        identity.version.is_some() || identity.server_id.is_some() || !identity.authors.is_empty();
    for (plugin, is_on) in [
        ("chaos", is_told),
        ("loadbalance", config.answers.rotate),
        ("log", config.query_log.output.0.is_some()),
        ("nsid", config.edns.nsid.is_some()),
        ("rewrite", config.rewrites.is_some()),
        ("template", config.templates.is_some()),
    ] {
        if is_on {
            plugins.insert(plugin);
        }
    }
    plugins
}

/// Returns the plugins that a zone's section stands for.
fn of_zone(zone: &Zone) -> Vec<&'static str> {
    let mut plugins = match &zone.source {
        Source::File(_) => vec!["file"],
        Source::Hosts(_) => vec!["hosts"],
        Source::Forward(_) => vec!["cache", "forward", "loop"],
        Source::Secondary(_) => vec!["secondary"],
        Source::Kubernetes(keys) if keys.external => vec!["k8s_external"],
        Source::Kubernetes(_) => vec!["kubernetes"],
        Source::Json(_) | Source::Directory(_) | Source::Store(_) | Source::Members(_) => {
            Vec::new()
        }
    };
    if zone.terms.hosts.is_some() {
        plugins.push("hosts");
    }
    if let Some(access) = &zone.access {
        if access.otherwise != Action::Allow
            || access.rules.iter().any(|rule| rule.action != Action::Allow)
        {
            plugins.push("acl");
        }
        if !access.transfers.to.is_empty() {
            plugins.push("transfer");
        }
    }
    plugins
}
