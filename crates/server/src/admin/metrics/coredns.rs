//! The same counters under CoreDNS's names, for its dashboards and alerts.
//!
//! Only what is counted is written. A label of CoreDNS's that nothing is counted by is empty, and a
//! histogram without counted bounds has its sum, its count and the bucket of all; a table in
//! `docs/coming-from-coredns.md` says which.

mod plugins;
mod queries;

use super::page::{Label, Page};
use crate::admin::sums::sum;
use crate::admin::upstreams::{KnownUpstream, survey};
use crate::control::Control;
use crate::feed::cluster_state::BOUNDS_MILLIS;
use zonda_engine::counters::LATENCY_BOUNDS;
use zonda_engine::{Reason, Transport};
use zonda_wire::Rcode;

/// Writes all of them.
pub fn write(page: &mut Page, control: &Control) {
    let server = queries::only_server(control);
    let labels = [("server", &*server), ("zone", ""), ("view", "")];
    page.metric("coredns_build_info", "gauge", "The version of Zonda, as a label.");
    let version = [("version", crate::VERSION), ("revision", ""), ("goversion", "")];
    page.value("coredns_build_info", &version, 1);
    let panics = control.listeners.udp_counts().panics + control.tcp.counters().panics.get();
    page.single("coredns_panics_total", "counter", "Panics of an engine.", panics);
    let failed = control.state().history.failed_reloads;
    page.single("coredns_reload_failed_total", "counter", "Reloads that failed.", failed);
    queries::write(page, control);
    plugins::write(page, control);
    programming(page, control);
    durations(page, control, labels);
    sizes(page, control, labels);
    refusals(page, control, labels);
    cache(page, control, &server);
    forwarding(page, control);
}

/// Writes how long replies took, over all transports.
fn durations(page: &mut Page, control: &Control, labels: [Label<'_>; 3]) {
    let name = "coredns_dns_request_duration_seconds";
    page.metric(name, "histogram", "Time from receiving queries to sending their replies.");
    let labels = [&labels[..], &[("type", "")]].concat();
    let over_all = |one: &dyn Fn(usize) -> u64| (0..Transport::ALL.len()).map(one).sum::<u64>();
    let mut count = 0;
    for bucket in 0..=LATENCY_BOUNDS.len() {
        count += over_all(&|it| sum(&control.counters.all(), |one| &one.latency[it][bucket]));
        let bound = LATENCY_BOUNDS.get(bucket);
        let bound = bound.map_or("+Inf".to_owned(), |nanos| (*nanos as f64 / 1e9).to_string());
        let labels = [&labels[..], &[("le", &*bound)]].concat();
        page.value("coredns_dns_request_duration_seconds_bucket", &labels, count);
    }
    let nanos = over_all(&|it| sum(&control.counters.all(), |one| &one.latency_nanos[it]));
    page.value("coredns_dns_request_duration_seconds_sum", &labels, nanos as f64 / 1e9);
    page.value("coredns_dns_request_duration_seconds_count", &labels, count);
}

/// Writes the time from changes of endpoints until their names are answered, over all
/// clusters and kinds of services.
fn programming(page: &mut Page, control: &Control) {
    let states = control.stores.cluster_states();
    if states.is_empty() {
        return;
    }
    let name = "coredns_kubernetes_dns_programming_duration_seconds";
    let help = "Time from what triggered a change of endpoints to the publication of their names.";
    page.metric(name, "histogram", help);
    let mut total = 0;
    for place in 0..=BOUNDS_MILLIS.len() {
        let counts = states.values().filter_map(|it| it.programming.counts().get(place).copied());
        total += counts.sum::<u64>();
        let bound = BOUNDS_MILLIS.get(place);
        let bound = bound.map_or("+Inf".to_owned(), |millis| (*millis as f64 / 1e3).to_string());
        let labels = [("service_kind", ""), ("le", &*bound)];
        page.value(&format!("{name}_bucket"), &labels, total);
    }
    let labels = [("service_kind", "")];
    let seconds: f64 = states.values().map(|it| it.programming.seconds()).sum();
    page.value(&format!("{name}_sum"), &labels, seconds);
    page.value(&format!("{name}_count"), &labels, total);
}

/// Writes the octets of queries and replies, whose sums and numbers are counted.
fn sizes(page: &mut Page, control: &Control, labels: [Label<'_>; 3]) {
    let engines = &control.counters.all();
    let reasons = 0..Reason::ALL.len();
    let received: u64 = reasons.map(|it| sum(engines, |one| &one.reasons[it])).sum();
    let silent =
        [Reason::NotAQuery, Reason::AccessDropped, Reason::RateDropped, Reason::HandlerDropped];
    let silent: u64 = silent.map(|it| sum(engines, |one| &one.reasons[it as usize])).iter().sum();
    let labels = [&labels[..], &[("proto", "")]].concat();
    let of_all = [&labels[..], &[("le", "+Inf")]].concat();
    for (name, octets, count) in [
        ("coredns_dns_request_size_bytes", sum(engines, |one| &one.query_bytes), received),
        (
            "coredns_dns_response_size_bytes",
            sum(engines, |one| &one.reply_bytes),
            received.saturating_sub(silent),
        ),
    ] {
        page.metric(name, "histogram", "Octets of messages: their sum and number.");
        page.value(&format!("{name}_bucket"), &of_all, count);
        page.value(&format!("{name}_sum"), &labels, octets);
        page.value(&format!("{name}_count"), &labels, count);
    }
}

/// Writes the queries that access lists have kept from an answer.
fn refusals(page: &mut Page, control: &Control, labels: [Label<'_>; 3]) {
    for (name, reason) in [
        ("coredns_acl_blocked_requests_total", Reason::AccessRefused),
        ("coredns_acl_filtered_requests_total", Reason::AccessFiltered),
        ("coredns_acl_dropped_requests_total", Reason::AccessDropped),
    ] {
        let count = sum(&control.counters.all(), |counters| &counters.reasons[reason as usize]);
        page.metric(name, "counter", "Queries that an access list has kept from an answer.");
        page.value(name, &labels, count);
    }
}

/// Writes what the answer cache has, and what it was asked for.
fn cache(page: &mut Page, control: &Control, server: &str) {
    let reason =
        |it: Reason| sum(&control.counters.all(), |counters| &counters.reasons[it as usize]);
    let sum = |one: fn(&zonda_forward::ForwarderCounters) -> u64| -> u64 {
        control.forwarders.iter().map(|counters| one(counters)).sum()
    };
    let hits = reason(Reason::Cached) + reason(Reason::Stale) + reason(Reason::CachedFailure);
    let misses = sum(|it| it.fetched.get() + it.coalesced.get() + it.turned_away.get());
    let stats = control.state().zone_set().forwards().cache().stats();
    let labels = [("server", server), ("zones", ""), ("view", "")];
    let with_type = [("server", server), ("type", ""), ("zones", ""), ("view", "")];
    let mut write = |name, kind, help, labels: &[Label<'_>], count: u64| {
        page.metric(name, kind, help);
        page.value(name, labels, count);
    };
    let help = "Answers in the cache.";
    write("coredns_cache_entries", "gauge", help, &with_type, stats.entries);
    let help = "Queries for forwarded names.";
    write("coredns_cache_requests_total", "counter", help, &labels, hits + misses);
    let help = "Queries answered from the cache.";
    write("coredns_cache_hits_total", "counter", help, &with_type, hits);
    let help = "Queries for which the cache had nothing.";
    write("coredns_cache_misses_total", "counter", help, &labels, misses);
    let help = "Fetches that replace an answer before it expires.";
    let prefetched = sum(|it| it.prefetched.get());
    write("coredns_cache_prefetch_total", "counter", help, &labels, prefetched);
    let help = "Queries that got an expired answer.";
    write("coredns_cache_served_stale_total", "counter", help, &labels, reason(Reason::Stale));
    let help = "Answers dropped from the cache to make room.";
    write("coredns_cache_evictions_total", "counter", help, &with_type, stats.evictions);
}

/// Writes what upstreams were asked, and how long they took.
fn forwarding(page: &mut Page, control: &Control) {
    let all = by_address(survey(control));
    let name = "coredns_forward_max_concurrent_rejects_total";
    let busy = sum(&control.counters.all(), |it| &it.reasons[Reason::UpstreamBusy as usize]);
    page.single(name, "counter", "Queries that found no room to wait for an upstream.", busy);
    let name = "coredns_forward_requests_total";
    page.metric(name, "counter", "Queries sent to an upstream.");
    for one in &all {
        page.value(name, &[("to", &one.upstream)], one.counters.sent);
    }
    let name = "coredns_forward_responses_total";
    page.metric(name, "counter", "Answers of an upstream, by response code.");
    for one in &all {
        for (rcode, count) in &one.rcodes {
            let rcode = Rcode(*rcode).to_string();
            page.value(name, &[("to", &one.upstream), ("rcode", &rcode)], count);
        }
    }
    let name = "coredns_proxy_request_duration_seconds";
    page.metric(name, "histogram", "Time from sending a query to an upstream to its answer.");
    all.iter().for_each(|one| times(page, one));
    let name = "coredns_proxy_conn_cache_hits_total";
    page.metric(name, "counter", "Queries over connections to an upstream that were open.");
    for one in &all {
        let labels = [("proxy_name", "forward"), ("to", &*one.upstream), ("proto", "tcp")];
        page.value(name, &labels, one.connections.reused);
    }
    let name = "coredns_proxy_conn_cache_misses_total";
    page.metric(name, "counter", "Connections to an upstream that were opened.");
    for one in &all {
        let labels = [("proxy_name", "forward"), ("to", &*one.upstream), ("proto", "tcp")];
        page.value(name, &labels, one.connections.opened);
    }
}

/// Adds up what is known of an upstream that several zones have: CoreDNS tells it by its address.
fn by_address(all: Vec<KnownUpstream>) -> Vec<KnownUpstream> {
    let mut sums: Vec<KnownUpstream> = Vec::with_capacity(all.len());
    for one in all {
        let Some(sum) = sums.iter_mut().find(|sum| sum.upstream == one.upstream) else {
            sums.push(one);
            continue;
        };
        sum.counters.sent += one.counters.sent;
        sum.connections.reused += one.connections.reused;
        sum.connections.opened += one.connections.opened;
        sum.times_nanos += one.times_nanos;
        for (rcode, count) in one.rcodes {
            *sum.rcodes.entry(rcode).or_default() += count;
        }
        for (bound, count) in one.times {
            *sum.times.entry(bound).or_default() += count;
        }
    }
    sums
}

/// Writes how long the answers of an upstream took.
fn times(page: &mut Page, one: &KnownUpstream) {
    let labels = [("proxy_name", "forward"), ("to", &*one.upstream), ("rcode", "")];
    let mut bucket = |bound: &str, count: u64| {
        let labels = [&labels[..], &[("le", bound)]].concat();
        page.value("coredns_proxy_request_duration_seconds_bucket", &labels, count);
    };
    for (bound, count) in one.buckets() {
        bucket(&(bound as f64 / 1e9).to_string(), count);
    }
    let count = one.answers_timed();
    bucket("+Inf", count);
    let seconds = one.times_nanos as f64 / 1e9;
    page.value("coredns_proxy_request_duration_seconds_sum", &labels, seconds);
    page.value("coredns_proxy_request_duration_seconds_count", &labels, count);
}
