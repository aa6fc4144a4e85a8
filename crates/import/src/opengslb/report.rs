//! What became of each key: a line for each that the files have.

use super::files::File;
use crate::document::{Effect, ReportLine};
use crate::error::Place;
use crate::tree::{Content, Node};
use Effect::{Lost, Needless, Taken, Works};
use std::collections::HashMap;

/// Effect, reason, and the keys that it is for; `[]` stands for each element of a list.
type Group = (Effect, &'static str, &'static [&'static str]);

/// Every key that OpenGSLB 1.1.9 reads.
#[rustfmt::skip] // a list of words, filled like text
pub(super) const GROUPS: &[Group] = &[
    (Taken, "read into one configuration", &["includes"]),
    (Taken, "`address` of [[listen]]", &["dns.listen_address"]),
    (Taken, "`ttl-min` and `ttl-max` of pools whose domain has no `ttl`", &["dns.default_ttl"]),
    (Works, "`when-all-down` of every pool; it was never used there", &[
        "dns.return_last_healthy",
    ]),
    (Works, "a zone with SOA and NS, outside of which queries are REFUSED; it was never used \
        there", &["dns.zones"]),
    (Taken, "`level` of [log]", &["logging.level"]),
    (Taken, "`format` of [log]", &["logging.format"]),
    (Taken, "`address` of [admin], where `/metrics` is too", &[
        "api.enabled", "api.address", "metrics.enabled", "metrics.address",
    ]),
    (Lost, "requests are let through by `token` of [admin], not by network", &[
        "api.allowed_networks",
    ]),
    (Needless, "no permission depends on the address of an HTTP client", &[
        "api.trust_proxy_headers",
    ]),
    (Taken, "a site", &["regions[].name"]),
    (Taken, "places that a site serves, in [geo]", &[
        "regions[].countries", "regions[].continents",
    ]),
    (Taken, "a member of the pool of its service", &[
        "regions[].servers[].address", "regions[].servers[].service",
        "agent.backends[].address", "agent.backends[].service",
    ]),
    (Taken, "the port of the pool's check", &[
        "regions[].servers[].port", "agent.backends[].port",
    ]),
    (Taken, "`weight` of the member", &[
        "regions[].servers[].weight", "agent.backends[].weight",
    ]),
    (Works, "`host` of the pool's check; requests had no Host there", &[
        "regions[].servers[].host", "regions[].health_check.host",
        "agent.backends[].health_check.host",
    ]),
    (Taken, "the kind of the pool's check", &[
        "regions[].health_check.type", "agent.backends[].health_check.type",
    ]),
    (Works, "the path of the pool's check; there, `/` was asked for", &[
        "regions[].health_check.path",
    ]),
    (Works, "`interval` and `timeout` of the pool's check; there, `validation` decided", &[
        "regions[].health_check.interval", "regions[].health_check.timeout",
    ]),
    (Works, "`rise` and `fall` of the pool's check; there, a single failure decided", &[
        "regions[].health_check.failure_threshold", "regions[].health_check.success_threshold",
    ]),
    (Taken, "the pool's check, made from here and no longer by an agent", &[
        "agent.backends[].health_check.path", "agent.backends[].health_check.interval",
        "agent.backends[].health_check.timeout",
        "agent.backends[].health_check.failure_threshold",
        "agent.backends[].health_check.success_threshold",
    ]),
    (Taken, "a pool, and a steered name", &["domains[].name"]),
    (Taken, "`choose` of the pool", &["domains[].routing_algorithm"]),
    (Taken, "the members of the pool", &["domains[].regions"]),
    (Taken, "`ttl-min` and `ttl-max` of the pool", &["domains[].ttl"]),
    (Lost, "it was never read there; latency is smoothed here by a rule that has no keys", &[
        "domains[].latency_config.smoothing_factor", "domains[].latency_config.max_latency_ms",
        "domains[].latency_config.min_samples",
    ]),
    (Taken, "`database` of [geo]", &["overwatch.geolocation.database_path"]),
    (Works, "`default-site` of [geo]; there, routing did not get it", &[
        "overwatch.geolocation.default_region",
    ]),
    (Works, "the client subnet is read, and echoed with its scope; there, no reply had it", &[
        "overwatch.geolocation.ecs_enabled",
    ]),
    (Taken, "`networks` of [geo]", &[
        "overwatch.geolocation.custom_mappings[].cidr",
        "overwatch.geolocation.custom_mappings[].region",
    ]),
    (Needless, "a remark, which the line of origin leads to", &[
        "overwatch.geolocation.custom_mappings[].comment",
    ]),
    (Needless, "there is one kind of server, which checks and answers", &["mode"]),
    (Taken, "the site of the members", &["agent.identity.region"]),
    (Lost, "there are no agents: members stand in the configuration; the token was never \
        compared there", &["agent.identity.service_token", "overwatch.agent_tokens"]),
    (Lost, "there are no agents; certificates were never compared there", &[
        "agent.identity.cert_path", "agent.identity.key_path",
    ]),
    (Needless, "there are no agents whose messages could be late", &[
        "agent.heartbeat.interval", "agent.heartbeat.missed_threshold",
        "overwatch.stale.threshold", "overwatch.stale.remove_after",
    ]),
    (Lost, "servers do not gossip: each checks the members itself", &[
        "agent.gossip.encryption_key", "agent.gossip.overwatch_nodes",
        "overwatch.gossip.bind_address", "overwatch.gossip.encryption_key",
        "overwatch.gossip.probe_interval", "overwatch.gossip.probe_timeout",
        "overwatch.gossip.gossip_interval",
    ]),
    (Needless, "there is no gossip in which the server would have a name", &[
        "overwatch.identity.node_id", "overwatch.identity.region",
    ]),
    (Needless, "`state` names the directory, and has a default", &["overwatch.data_dir"]),
    (Needless, "the pool's `check` is the only one, and it decides", &[
        "overwatch.validation.enabled", "overwatch.validation.check_interval",
        "overwatch.validation.check_timeout",
    ]),
    (Lost, "answers are not signed, and were not there: no part of it was ever started", &[
        "overwatch.dnssec.enabled", "overwatch.dnssec.algorithm",
        "overwatch.dnssec.key_sync.peers", "overwatch.dnssec.key_sync.poll_interval",
        "overwatch.dnssec.key_sync.timeout",
    ]),
    (Needless, "no sentence is asked for", &["overwatch.dnssec.security_acknowledgment"]),
    (Lost, "there are no agents that could measure it", &[
        "agent.predictive.enabled", "agent.predictive.check_interval",
        "agent.predictive.cpu.threshold", "agent.predictive.memory.threshold",
        "agent.predictive.error_rate.threshold", "agent.predictive.error_rate.window",
        "agent.latency_learning.enabled", "agent.latency_learning.poll_interval",
        "agent.latency_learning.min_connection_age", "agent.latency_learning.ipv4_prefix",
        "agent.latency_learning.ipv6_prefix", "agent.latency_learning.ewma_alpha",
        "agent.latency_learning.max_subnets", "agent.latency_learning.subnet_ttl",
        "agent.latency_learning.min_samples", "agent.latency_learning.report_interval",
    ]),
    (Lost, "there are no agents; it had no effect there", &[
        "agent.predictive.cpu.bleed_duration", "agent.predictive.memory.bleed_duration",
        "agent.predictive.error_rate.bleed_duration",
    ]),
];

/// Keys whose whole value is one setting, whatever it holds.
#[rustfmt::skip] // a list of words, filled like text
const WHOLE: &[&str] = &[
    "includes", "dns.zones", "api.allowed_networks", "regions[].countries",
    "regions[].continents", "domains[].regions", "overwatch.agent_tokens",
    "agent.gossip.overwatch_nodes", "overwatch.dnssec.key_sync.peers",
];

/// Sections that count in included files.
const INCLUDED: &[&str] = &["includes", "regions", "domains", "overwatch"];

/// Returns a line for each key of the files: at its first place, with how often it is there.
pub fn keys(files: &[File]) -> Vec<ReportLine> {
    let mut lines = Lines::default();
    for file in files {
        lines.collect("", &file.root, file.is_included);
    }
    lines.all.into_iter().map(Line::finish).collect()
}

/// Lines under way.
#[derive(Default)]
struct Lines {
    all: Vec<Line>,
    /// Index of the line of a key and reason.
    known: HashMap<(String, &'static str), usize>,
}

/// A line, and how often the key is there.
struct Line {
    path: String,
    place: Place,
    effect: Effect,
    why: &'static str,
    count: usize,
}

impl Lines {
    /// Adds the keys below a path.
    fn collect(&mut self, path: &str, node: &Node, is_included: bool) {
        match &node.content {
            Content::Map(pairs) if !WHOLE.contains(&path) => {
                for (key, place, node) in pairs {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    let is_leaf = WHOLE.contains(&path.as_str())
                        || !matches!(node.content, Content::Map(_) | Content::List(_));
                    if is_included && !counts_in_included(&path) {
                        let why = "in an included file, only regions, domains and agent_tokens \
                            count there";
                        self.add(path, place, Needless, why);
                    } else if is_leaf {
                        let (effect, why) = explain(&path);
                        self.add(path, place, effect, why);
                    } else {
                        self.collect(&path, node, is_included);
                    }
                }
            }
            Content::List(nodes) => {
                let path = format!("{path}[]");
                nodes.iter().for_each(|node| self.collect(&path, node, is_included));
            }
            _ => {}
        }
    }

    /// Adds a key, or counts it.
    fn add(&mut self, path: String, place: &Place, effect: Effect, why: &'static str) {
        let index = *self.known.entry((path.clone(), why)).or_insert_with(|| {
            self.all.push(Line { path, place: place.clone(), effect, why, count: 0 });
            self.all.len() - 1
        });
        self.all[index].count += 1;
    }
}

impl Line {
    /// Returns the line of the report.
    fn finish(self) -> ReportLine {
        let path = self.path.escape_debug().to_string();
        let what = match self.count {
            1 => path,
            count => format!("{path} ({count} times)"),
        };
        ReportLine { place: self.place, effect: self.effect, what, why: self.why.to_owned() }
    }
}

/// Whether a key counts in an included file, or has keys below it that do.
fn counts_in_included(path: &str) -> bool {
    let (top, rest) = path.split_once('.').unwrap_or((path, ""));
    INCLUDED.contains(&top.trim_end_matches("[]"))
        && (top != "overwatch" || rest.is_empty() || rest == "agent_tokens")
}

/// Returns what becomes of a key.
fn explain(path: &str) -> (Effect, &'static str) {
    match GROUPS.iter().find(|(_, _, all)| all.contains(&path)) {
        Some((effect, why, _)) => (*effect, why),
        None => (Needless, "OpenGSLB 1.1.9 does not read such a key"),
    }
}
