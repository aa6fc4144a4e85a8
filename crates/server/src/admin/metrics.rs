//! What is counted, in the text format of Prometheus.
//!
//! Every worker counts for itself; the sums are made here, for each request. How the counters add
//! up is told in `docs/metrics.md` and tested.

mod catalogs;
mod clusters;
mod coredns;
mod edits;
mod node;
mod page;
mod pools;
mod secondaries;
mod transfers;
mod updates;
mod upstreams;

use super::sums::sum;
use super::upstreams::survey;
use crate::control::Control;
use crate::feed::store_state::StoreState;
use crate::zone_set_view::ZoneSetView;
use page::Page;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::UNIX_EPOCH;
use zonda_config::Config;
use zonda_deferral::SharedCounter;
use zonda_engine::counters::{LATENCY_BOUNDS, RCODES, TYPES};
use zonda_engine::{Reason, Transport};
use zonda_forward::ForwarderCounters;
use zonda_wire::Name;

/// The page that Prometheus reads.
pub fn page(control: &Control) -> String {
    let mut page = Page(String::with_capacity(64 << 10));
    queries(&mut page, control);
    latency(&mut page, control);
    traffic(&mut page, control);
    tcp(&mut page, control);
    admin(&mut page, control);
    zones(&mut page, control);
    edits::write(&mut page, &control.state());
    transfers::write(&mut page, control);
    updates::write(&mut page, control);
    node::write(&mut page, control);
    stores(&mut page, control);
    secondaries::write(&mut page, control);
    catalogs::write(&mut page, control);
    clusters::write(&mut page, control);
    pools::write(&mut page, control);
    forwarding(&mut page, control);
    handlers(&mut page, control);
    cache(&mut page, control);
    process(&mut page, control);
    if control.state().config().metrics.coredns_names {
        coredns::write(&mut page, control);
    }
    page.0
}

fn queries(page: &mut Page, control: &Control) {
    let engines = &control.counters.all();
    let name = "zonda_queries_total";
    page.metric(name, "counter", "Messages received, by what became of them.");
    for (place, reason) in Reason::ALL.iter().enumerate() {
        let count = sum(engines, |counters| &counters.reasons[place]);
        page.value(name, &[("reason", reason.name())], count);
    }
    let name = "zonda_replies_total";
    page.metric(name, "counter", "Replies, by transport, type asked for and response code.");
    for (transport, place) in Transport::ALL.iter().zip(0..) {
        for qtype in 0..=TYPES.len() {
            let text = TYPES.get(qtype).map_or("other".to_owned(), ToString::to_string);
            for (code, rcode) in RCODES.iter().enumerate() {
                let count = sum(engines, |counters| &counters.replies[place][qtype][code]);
                if count > 0 {
                    let rcode = rcode.to_string();
                    let labels =
                        [("transport", transport.name()), ("type", &text), ("rcode", &rcode)];
                    page.value(name, &labels, count);
                }
            }
        }
    }
    let truncated = sum(engines, |counters| &counters.truncated);
    page.single("zonda_truncated_replies_total", "counter", "Replies with TC set.", truncated);
}

fn latency(page: &mut Page, control: &Control) {
    let name = "zonda_query_duration_seconds";
    page.metric(
        name,
        "histogram",
        "Time from receiving a batch of queries to sending its replies.",
    );
    for (transport, place) in Transport::ALL.iter().zip(0..) {
        let mut count = 0;
        for bucket in 0..=LATENCY_BOUNDS.len() {
            count += sum(&control.counters.all(), |counters| &counters.latency[place][bucket]);
            let bound = LATENCY_BOUNDS.get(bucket);
            let bound = bound.map_or("+Inf".to_owned(), |nanos| (*nanos as f64 / 1e9).to_string());
            let labels = [("transport", transport.name()), ("le", &bound)];
            page.value("zonda_query_duration_seconds_bucket", &labels, count);
        }
        let nanos = sum(&control.counters.all(), |counters| &counters.latency_nanos[place]);
        let labels = [("transport", transport.name())];
        page.value("zonda_query_duration_seconds_sum", &labels, nanos as f64 / 1e9);
        page.value("zonda_query_duration_seconds_count", &labels, count);
    }
}

fn traffic(page: &mut Page, control: &Control) {
    let engines = &control.counters.all();
    let bytes = sum(engines, |counters| &counters.query_bytes);
    page.single("zonda_received_bytes_total", "counter", "Octets of messages received.", bytes);
    let bytes = sum(engines, |counters| &counters.reply_bytes);
    page.single("zonda_sent_bytes_total", "counter", "Octets of replies.", bytes);
    let udp = control.listeners.udp_counts();
    let batches = udp.batches;
    page.single(
        "zonda_udp_batches_total",
        "counter",
        "Receive calls that returned datagrams.",
        batches,
    );
    let refused = udp.refused;
    page.single(
        "zonda_udp_unsent_total",
        "counter",
        "Replies that the kernel did not take.",
        refused,
    );
    let errors = udp.receive_errors;
    page.single("zonda_udp_receive_errors_total", "counter", "Receive calls that failed.", errors);
    let dropped = udp.dropped;
    let help = "Datagrams that the kernel dropped for want of room in a receive buffer.";
    page.single("zonda_udp_buffer_drops_total", "counter", help, dropped);
    let panics = udp.panics + control.tcp.counters().panics.get();
    page.single("zonda_panics_total", "counter", "Panics of an engine, each survived.", panics);
    if control.query_log.is_on() {
        let (help, dropped) =
            ("Lines of the query log that were dropped.", control.query_log.dropped());
        page.single("zonda_query_log_drops_total", "counter", help, dropped);
    }
}

fn tcp(page: &mut Page, control: &Control) {
    let tcp = control.tcp.counters();
    let open = control.tcp.open_connections();
    page.single("zonda_tcp_connections", "gauge", "Open TCP connections.", open);
    page.single(
        "zonda_tcp_accepted_total",
        "counter",
        "TCP connections accepted.",
        tcp.accepted.get(),
    );
    let name = "zonda_tcp_limits_total";
    page.metric(name, "counter", "TCP connections closed or refused, by the limit that bit.");
    for (limit, count) in [
        ("connections_max", tcp.admission.refused_total.get()),
        ("connections_per_client", tcp.admission.refused_client.get()),
        ("evicted", tcp.admission.evicted.get()),
        ("idle_timeout", tcp.idle_timeouts.get()),
        ("message_timeout", tcp.read_timeouts.get()),
        ("write_timeout", tcp.write_timeouts.get()),
        ("queries_per_connection", tcp.query_limits.get()),
        ("error", tcp.errors.get()),
    ] {
        page.value(name, &[("limit", limit)], count);
    }
}

/// Connections to this interface.
fn admin(page: &mut Page, control: &Control) {
    let name = "zonda_admin_limits_total";
    let help = "Connections to the admin interface closed, and requests refused, by the limit.";
    page.metric(name, "counter", help);
    let admin = &control.admin;
    for (limit, count) in [
        ("connections_max", admin.admission.refused_total.get()),
        ("connections_per_client", admin.admission.refused_client.get()),
        ("evicted", admin.admission.evicted.get()),
        ("write_timeout", admin.write_timeouts.load(Relaxed)),
        ("lifetime", admin.expired.load(Relaxed)),
        ("waits", admin.waits_refused.load(Relaxed)),
    ] {
        page.value(name, &[("limit", limit)], count);
    }
}

fn zones(page: &mut Page, control: &Control) {
    let state = control.state();
    let zone_set = state.zone_set();
    let served = zone_set.zones().filter(|zone| zone.data().is_some()).count();
    let stale =
        zone_set.zones().filter(|zone| zone.data().is_some() && zone.error.is_some()).count();
    page.metric("zonda_zones", "gauge", "Zones by state.");
    page.value("zonda_zones", &[("state", "current")], served - stale);
    page.value("zonda_zones", &[("state", "stale")], stale);
    page.value("zonda_zones", &[("state", "unavailable")], zone_set.zone_count() - served);
    let help = "Zones that take no updates and edits until they are thawed.";
    page.single("zonda_frozen_zones", "gauge", help, zone_set.frozen.len() as u64);
    let history = &state.history;
    page.single("zonda_reloads_total", "counter", "Reloads.", history.reloads);
    let (name, failed) = ("zonda_failed_reloads_total", history.failed_reloads);
    page.single(name, "counter", "Reloads in which something failed.", failed);
    if let Some(last) = history.last.and_then(|last| last.duration_since(UNIX_EPOCH).ok()) {
        let name = "zonda_last_reload_timestamp_seconds";
        page.single(name, "gauge", "When the last reload ended.", last.as_secs());
    }
    zone_queries(page, zone_set, state.config());
}

/// Writes the queries by zone: each of the zones listed, else of the busiest, and the sum of the
/// rest.
fn zone_queries(page: &mut Page, zone_set: &ZoneSetView, config: &Config) {
    let name = "zonda_zone_queries_total";
    page.metric(
        name,
        "counter",
        "Queries by zone; zones that are not counted one by one are other.",
    );
    let listed: HashSet<Name> = config.metrics.zones.iter().map(Name::to_lowercase).collect();
    let mut counts: Vec<(u64, &Name)> = zone_set.queries();
    let all: u64 = counts.iter().map(|(count, _)| count).sum();
    if listed.is_empty() {
        let busiest = config.metrics.busiest as usize;
        let by_count = |(a, _): &(u64, &Name), (b, _): &(u64, &Name)| b.cmp(a);
        if busiest < counts.len() {
            counts.select_nth_unstable_by(busiest, by_count);
            counts.truncate(busiest);
        }
    } else {
        counts.retain(|(_, apex)| listed.contains(apex));
    }
    counts.sort_unstable_by(|a, b| a.1.as_wire().cmp(b.1.as_wire()));
    for (count, apex) in &counts {
        page.value(name, &[("zone", &apex.to_string())], count);
    }
    let told: u64 = counts.iter().map(|(count, _)| count).sum();
    page.value(name, &[("zone", "other")], all - told + zone_set.queries_gone());
}

/// How zones follow stores, if any do.
fn stores(page: &mut Page, control: &Control) {
    let stores = control.stores.states();
    if stores.is_empty() {
        return;
    }
    let mut all: Vec<_> = stores.iter().map(|(zone, it)| (zone.to_string(), it)).collect();
    all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let mut metric = |name, kind, help, one: fn(&StoreState) -> u64| {
        page.metric(name, kind, help);
        for (zone, store) in &all {
            page.value(name, &[("zone", zone)], one(store));
        }
    };
    let help = "Whether the store of a zone can be reached: 1 or 0.";
    metric("zonda_store_reachable", "gauge", help, |it| it.is_reachable.load(Relaxed).into());
    let help = "When a zone last had the records of its store; 0 before it first had them.";
    let name = "zonda_store_in_step_timestamp_seconds";
    metric(name, "gauge", help, |it| it.in_step_at.load(Relaxed));
    let help = "Owners in stores whose changes were taken over.";
    metric("zonda_store_changes_total", "counter", help, |it| it.changes.load(Relaxed));
    let help = "Times that all of a store was read.";
    metric("zonda_store_loads_total", "counter", help, |it| it.loads.load(Relaxed));
    let help = "Records of stores that are left out of their zones, as they are wrong.";
    metric("zonda_store_left_out_records", "gauge", help, |it| it.left_out.load(Relaxed));
}

/// What forwarder threads have done.
fn forwarding(page: &mut Page, control: &Control) {
    let sum = |one: fn(&ForwarderCounters) -> &SharedCounter| -> u64 {
        control.forwarders.iter().map(|counters| one(counters).get()).sum()
    };
    let name = "zonda_forward_queries_total";
    page.metric(name, "counter", "Queries that no worker answered itself, by what they led to.");
    page.value(name, &[("led_to", "fetch")], sum(|it| &it.fetched));
    page.value(name, &[("led_to", "coalesced")], sum(|it| &it.coalesced));
    page.value(name, &[("led_to", "cache")], sum(|it| &it.kept));
    page.value(name, &[("led_to", "busy")], sum(|it| &it.turned_away));
    let help = "Fetches for which no query waits, to have an answer before it is asked for.";
    page.single("zonda_forward_prefetches_total", "counter", help, sum(|it| &it.prefetched));
    let name = "zonda_forward_dropped_total";
    page.metric(name, "counter", "Queries that lost their place to a newer one, by whose that is.");
    page.value(name, &[("newer_of", "same_client")], sum(|it| &it.dropped_own));
    page.value(name, &[("newer_of", "other_client")], sum(|it| &it.dropped_other));
    let name = "zonda_forward_failures_total";
    page.metric(name, "counter", "Fetches without an answer, by what was in the way.");
    page.value(name, &[("why", "timeout")], sum(|it| &it.timed_out));
    page.value(name, &[("why", "failed")], sum(|it| &it.failed));
    let help = "Messages from upstreams that answer no query of ours.";
    page.single("zonda_forward_ignored_total", "counter", help, sum(|it| &it.ignored));
    let help = "ICMP errors that the network reported for queries; they end no query.";
    page.single("zonda_forward_icmp_errors_total", "counter", help, sum(|it| &it.icmp_errors));
    let (name, help) = ("zonda_forward_receive_errors_total", "Receive calls that failed.");
    page.single(name, "counter", help, sum(|it| &it.receive_errors));
    let (name, help) = ("zonda_forward_forgery_suspected_total", "Ports that a forger may know.");
    page.single(name, "counter", help, sum(|it| &it.forgery_suspected));
    let help = "Ports from which upstreams are asked, now.";
    page.single("zonda_forward_ports", "gauge", help, sum(|it| &it.ports));
    let name = "zonda_forward_ports_closed_early_total";
    let help = "Ports closed while queries waited there, to make room.";
    page.single(name, "counter", help, sum(|it| &it.ports_closed_early));
    let (name, help) = ("zonda_forward_without_port_total", "Queries that found no port.");
    page.single(name, "counter", help, sum(|it| &it.without_port));
    let help = "Probes sent to upstreams that are not up.";
    page.single("zonda_forward_probes_total", "counter", help, sum(|it| &it.probes));
    let help = "Queries that wait for other servers, now.";
    page.single("zonda_forward_waiting", "gauge", help, sum(|it| &it.waiting));
    let help = "Fetches that are under way, now.";
    page.single("zonda_forward_fetches", "gauge", help, sum(|it| &it.fetching));
    upstreams::write(page, &survey(control));
}

/// What the user's code has to do that does not run in the workers, and how long it takes there.
fn handlers(page: &mut Page, control: &Control) {
    let runtimes = &control.runtimes;
    let name = "zonda_handler_queries_total";
    page.metric(name, "counter", "Queries for code that runs elsewhere, by what came of it.");
    for (number, runtime) in runtimes.iter().enumerate() {
        let (number, it) = (number.to_string(), &runtime.counters);
        let results = [
            ("handed_over", &it.queries),
            ("refused", &it.refused),
            ("late", &it.late),
            ("answered_in_vain", &it.in_vain),
        ];
        for (result, counter) in results {
            page.value(name, &[("runtime", &number), ("result", result)], counter.get());
        }
    }
    let help = "Calls of code that have kept a worker for a second.";
    let long_calls = control.long_calls.long_calls.load(Relaxed);
    page.single("zonda_handler_long_calls_total", "counter", help, long_calls);
    let (name, help) = ("zonda_deferred_unroutable_total", "Queries deferred to no queue.");
    page.single(name, "counter", help, control.deferrals.unroutable());
}

/// Writes the contents of the cache, and counts of what was done with it.
fn cache(page: &mut Page, control: &Control) {
    let reason =
        |it: Reason| sum(&control.counters.all(), |counters| &counters.reasons[it as usize]);
    let missed =
        |it: &Arc<ForwarderCounters>| it.fetched.get() + it.coalesced.get() + it.turned_away.get();
    let name = "zonda_cache_queries_total";
    page.metric(
        name,
        "counter",
        "Queries for names in forwarded zones, by what the cache had for them.",
    );
    page.value(name, &[("found", "answer")], reason(Reason::Cached));
    page.value(name, &[("found", "stale")], reason(Reason::Stale));
    page.value(name, &[("found", "failure")], reason(Reason::CachedFailure));
    page.value(name, &[("found", "nothing")], control.forwarders.iter().map(missed).sum::<u64>());
    let cache = Arc::clone(control.state().zone_set().forwards().cache());
    let stats = cache.stats();
    page.single("zonda_cache_entries", "gauge", "Answers in the cache.", stats.entries);
    page.single("zonda_cache_bytes", "gauge", "Octets of the answers in the cache.", stats.bytes);
    let help = "Most octets that the cache may take.";
    page.single("zonda_cache_bytes_max", "gauge", help, cache.bytes_max());
    let help = "Answers put into the cache.";
    page.single("zonda_cache_inserts_total", "counter", help, stats.inserts);
    let help = "Answers dropped from the cache to make room.";
    page.single("zonda_cache_evictions_total", "counter", help, stats.evictions);
    let help = "Answers that were of no use any more when their room was wanted.";
    page.single("zonda_cache_expired_total", "counter", help, stats.expired);
    let name = "zonda_cache_refused_total";
    page.metric(name, "counter", "Answers that were not put into the cache, by reason.");
    page.value(name, &[("reason", "too-large")], stats.too_large);
    page.value(name, &[("reason", "no-memory")], stats.no_memory);
    cache_file(page, control);
}

/// Writes how often the file of the cache was written, if there is one.
fn cache_file(page: &mut Page, control: &Control) {
    let Some(file) = &control.cache_file else { return };
    let counters = &file.counters;
    let name = "zonda_cache_file_writes_total";
    page.metric(name, "counter", "Attempts to write the file of the cache, by how they ended.");
    page.value(name, &[("result", "written")], counters.written.load(Relaxed));
    page.value(name, &[("result", "failed")], counters.failed.load(Relaxed));
    let (name, at) = ("zonda_cache_file_timestamp_seconds", counters.written_at.load(Relaxed));
    if at > 0 {
        page.single(name, "gauge", "When the file of the cache was last written.", at);
    }
}

fn process(page: &mut Page, control: &Control) {
    page.metric("zonda_build_info", "gauge", "The version, as a label.");
    page.value("zonda_build_info", &[("version", crate::VERSION)], 1);
    let uptime = control.started.elapsed().as_secs();
    page.single("zonda_uptime_seconds", "gauge", "Seconds since the start.", uptime);
    let (name, help) = ("zonda_log_lines_lost_total", "Lines of the server's log not written.");
    page.single(name, "counter", help, crate::log::lines_lost());
    threads(page, control);
    if let Some((cpu_seconds, resident_bytes)) = usage() {
        let help = "CPU time, user and system.";
        page.single("process_cpu_seconds_total", "counter", help, cpu_seconds);
        page.single("process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        let open = open.count().saturating_sub(1); // not the one that reads the list
        page.single("process_open_fds", "gauge", "Open descriptors.", open);
    }
}

/// The threads that live as long as the server.
fn threads(page: &mut Page, control: &Control) {
    let states = control.watchdog.states();
    let name = "zonda_thread_panics_total";
    page.metric(name, "counter", "Panics that ended a thread's work, which began again.");
    for (thread, state) in &states {
        page.value(name, &[("thread", thread)], state.panics);
    }
    let name = "zonda_thread_down";
    page.metric(name, "gauge", "Whether a thread does its work no more: 1 or 0.");
    for (thread, state) in &states {
        page.value(name, &[("thread", thread)], u8::from(state.is_down));
    }
}

/// CPU time in seconds and resident memory in octets, as the kernel counts them.
pub fn usage() -> Option<(f64, u64)> {
    /// proc(5): times are in units of 1/100 s and memory in pages of 4 KiB on Linux's common
    /// platforms.
    const TICKS_PER_SECOND: f64 = 100.0;
    const PAGE_BYTES: u64 = 4096;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let cpu = (field(11)? + field(12)?) as f64 / TICKS_PER_SECOND;
    Some((cpu, field(21)? * PAGE_BYTES))
}

/// The most important sums, for people.
pub fn summary(control: &Control) -> Value {
    let engines = &control.counters.all();
    let reasons = Reason::ALL.iter().enumerate().map(|(place, reason)| {
        let count = sum(engines, |counters| &counters.reasons[place]);
        (reason.name().to_owned(), Value::from(count))
    });
    let all: u64 = (0..Reason::ALL.len()).map(|it| sum(engines, |c| &c.reasons[it])).sum();
    json!({
        "queries": all,
        "by_reason": Value::Object(reasons.filter(|(_, count)| *count != 0).collect()),
        "received_bytes": sum(engines, |counters| &counters.query_bytes),
        "sent_bytes": sum(engines, |counters| &counters.reply_bytes),
        "truncated": sum(engines, |counters| &counters.truncated),
        "tcp_connections": control.tcp.open_connections(),
        "uptime_seconds": control.started.elapsed().as_secs(),
    })
}
