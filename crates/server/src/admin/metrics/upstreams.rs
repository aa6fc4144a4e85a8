//! Metrics of upstreams.

use super::page::Page;
use crate::admin::upstreams::{KnownUpstream, STATES, TROUBLES};
use zonda_wire::Rcode;

/// Writes the state and figures of each upstream.
pub fn write(page: &mut Page, all: &[KnownUpstream]) {
    let name = "zonda_upstream_queries_total";
    upstream_counter(page, all, (name, "Queries sent, by what for."), |one| {
        let it = one.counters;
        let needed = it.sent.saturating_sub(it.hedges + it.repeats);
        labelled("for", [("question", needed), ("hedge", it.hedges), ("repeat", it.repeats)])
    });
    let name = "zonda_upstream_results_total";
    upstream_counter(page, all, (name, "Queries that ended, by how."), |one| {
        let it = one.counters;
        let results = [
            ("answered", it.answered),
            ("failed", it.failed),
            ("redirected", it.redirected),
            ("lost", it.lost),
            ("abandoned", it.abandoned),
        ];
        labelled("result", results)
    });
    let name = "zonda_upstream_redirected_total";
    upstream_counter(page, all, (name, "Queries that were redirected, by why."), |one| {
        let it = one.counters;
        let other = it.redirected.saturating_sub(it.truncated + it.edns_failed);
        let why = [("truncated", it.truncated), ("edns_failed", it.edns_failed), ("other", other)];
        labelled("why", why)
    });
    let name = "zonda_upstream_hedges_won_total";
    upstream_counter(page, all, (name, "Hedges whose answer came first."), |one| {
        vec![(None, one.counters.hedges_won)]
    });
    let name = "zonda_upstream_rcodes_total";
    upstream_counter(page, all, (name, "Answers, by response code."), |one| {
        let rcodes = one.rcodes.iter();
        rcodes.map(|(rcode, count)| (Some(("rcode", Rcode(*rcode).to_string())), *count)).collect()
    });
    upstream_connections(page, all);
    upstream_gauges(page, all);
    upstream_times(page, all);
}

/// Writes the counts of connections to each upstream.
fn upstream_connections(page: &mut Page, all: &[KnownUpstream]) {
    let name = "zonda_upstream_connections_total";
    upstream_counter(page, all, (name, "Connections dialed, by what came of it."), |one| {
        let it = &one.connections;
        let new = it.opened.saturating_sub(it.resumed);
        labelled("result", [("new", new), ("resumed", it.resumed), ("failed", it.failed)])
    });
    let name = "zonda_upstream_reused_total";
    upstream_counter(page, all, (name, "Queries over connections that were open."), |one| {
        vec![(None, one.connections.reused)]
    });
    let name = "zonda_upstream_floods_total";
    let help = "Connections closed since the upstream sent much that was not asked for.";
    upstream_counter(page, all, (name, help), |one| vec![(None, one.connections.flooded)]);
    let name = "zonda_upstream_late_answers_total";
    let help = "Answers over TCP and TLS to queries that had been given up.";
    upstream_counter(page, all, (name, help), |one| vec![(None, one.connections.late)]);
    let name = "zonda_upstream_connections";
    page.metric(name, "gauge", "Connections that are open.");
    for one in all {
        let labels = [("zone", &*one.zone), ("upstream", &*one.upstream)];
        page.value(name, &labels, one.connections.open);
    }
}

/// A value, and a label that tells it from the other values of the same upstream.
type Labelled = (Option<(&'static str, String)>, u64);

/// Values that differ in one label.
fn labelled<const N: usize>(label: &'static str, values: [(&str, u64); N]) -> Vec<Labelled> {
    values.into_iter().map(|(text, value)| (Some((label, text.to_owned())), value)).collect()
}

/// Writes a counter of each upstream.
fn upstream_counter(
    page: &mut Page,
    all: &[KnownUpstream],
    (name, help): (&str, &str),
    values: impl Fn(&KnownUpstream) -> Vec<Labelled>,
) {
    page.metric(name, "counter", help);
    for one in all {
        for (label, value) in values(one) {
            let labels = [("zone", &*one.zone), ("upstream", &*one.upstream)];
            let more = label.as_ref().map(|(label, text)| (*label, &**text));
            let labels: Vec<_> = labels.into_iter().chain(more).collect();
            page.value(name, &labels, value);
        }
    }
}

/// How upstreams are now.
fn upstream_gauges(page: &mut Page, all: &[KnownUpstream]) {
    let name = "zonda_upstream_outstanding";
    page.metric(name, "gauge", "Queries that wait for an answer.");
    for one in all {
        page.value(name, &[("zone", &one.zone), ("upstream", &one.upstream)], one.outstanding);
    }
    let name = "zonda_upstream_state";
    page.metric(
        name,
        "gauge",
        "Threads that forward, by the state in which they see the upstream.",
    );
    for one in all {
        for ((_, state), threads) in STATES.iter().zip(one.threads) {
            let labels = [("zone", &*one.zone), ("upstream", &*one.upstream), ("state", *state)];
            page.value(name, &labels, threads);
        }
    }
    let name = "zonda_upstream_trouble";
    page.metric(name, "gauge", "1 for the worst that any thread holds against the upstream.");
    for one in all {
        for reason in TROUBLES {
            let labels = [("zone", &*one.zone), ("upstream", &*one.upstream), ("reason", reason)];
            page.value(name, &labels, u8::from(one.reason() == Some(reason)));
        }
    }
}

/// How long answers took.
fn upstream_times(page: &mut Page, all: &[KnownUpstream]) {
    let name = "zonda_upstream_rtt_seconds";
    page.metric(name, "histogram", "Time from sending a query to its answer.");
    for one in all {
        let labels = [("zone", &*one.zone), ("upstream", &*one.upstream)];
        let mut bucket = |bound: &str, count: u64| {
            let labels = [labels[0], labels[1], ("le", bound)];
            page.value("zonda_upstream_rtt_seconds_bucket", &labels, count);
        };
        for (bound, count) in one.buckets() {
            bucket(&(bound as f64 / 1e9).to_string(), count);
        }
        let count = one.answers_timed();
        bucket("+Inf", count);
        let seconds = one.times_nanos as f64 / 1e9;
        page.value("zonda_upstream_rtt_seconds_sum", &labels, seconds);
        page.value("zonda_upstream_rtt_seconds_count", &labels, count);
    }
}
