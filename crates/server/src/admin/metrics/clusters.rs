//! How zones follow Kubernetes clusters, if any do.

use super::page::Page;
use crate::control::Control;
use crate::feed::cluster_state::{BOUNDS_MILLIS, COUNTED, ClusterState, KindFollowed, Times};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The states of zones, by their names.
type States = [(String, Arc<ClusterState>)];

/// Writes the state and figures of each zone.
pub fn write(page: &mut Page, control: &Control) {
    let states = control.stores.cluster_states();
    let mut all: Vec<_> =
        states.iter().map(|(zone, state)| (zone.to_string(), Arc::clone(state))).collect();
    if all.is_empty() {
        return;
    }
    all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    kinds(page, &all);
    let name = "zonda_cluster_names";
    page.metric(name, "gauge", "Objects that names come from, by what they are.");
    for (zone, state) in &all {
        for (of, count) in COUNTED.iter().zip(&state.counts) {
            page.value(name, &[("zone", zone), ("of", of)], count.load(Relaxed));
        }
    }
    files(page, &all);
    let help = "Time from the receipt of a change to the publication of its names.";
    times(page, "zonda_cluster_publishing_seconds", help, &all, |state| &state.publishing);
    let help = "Time from what triggered a change of endpoints to the publication of their names.";
    times(page, "zonda_cluster_programming_seconds", help, &all, |state| &state.programming);
}

/// Writes how objects of each kind are followed.
fn kinds(page: &mut Page, all: &States) {
    let mut metric = |name, kind, help, one: fn(&KindFollowed) -> u64| {
        page.metric(name, kind, help);
        for (zone, state) in all {
            for followed in &state.kinds {
                let labels = [("zone", &**zone), ("kind", followed.word())];
                page.value(name, &labels, one(followed));
            }
        }
    };
    let help = "Whether changes of objects are received: 1 or 0.";
    metric("zonda_cluster_followed", "gauge", help, |it| it.is_followed.load(Relaxed).into());
    let help = "Times that all objects were listed.";
    metric("zonda_cluster_lists_total", "counter", help, |it| it.lists.load(Relaxed));
    let help = "Objects received, in lists or when they changed.";
    metric("zonda_cluster_changes_total", "counter", help, |it| it.changes.load(Relaxed));
    let help = "Failures of the API server, or of the way to it.";
    metric("zonda_cluster_failures_total", "counter", help, |it| it.failures.load(Relaxed));
    let help = "Objects that could not be decoded: their former versions are kept.";
    metric("zonda_cluster_undecodable_total", "counter", help, |it| it.undecodable.load(Relaxed));
}

/// Writes the state of snapshot files.
fn files(page: &mut Page, all: &States) {
    let mut metric = |name, kind, help, one: fn(&ClusterState) -> &AtomicU64| {
        page.metric(name, kind, help);
        for (zone, state) in all {
            page.value(name, &[("zone", zone)], one(state).load(Relaxed));
        }
    };
    let help = "The moment of the names, if they come from the snapshot file; 0 if they come from \
                the API server.";
    metric("zonda_cluster_stale_timestamp_seconds", "gauge", help, |it| &it.stale_since);
    let help = "When the snapshot file was last written; 0 if it was not.";
    metric("zonda_cluster_snapshot_timestamp_seconds", "gauge", help, |it| &it.written_at);
    let help = "Failed attempts to write the snapshot file.";
    metric("zonda_cluster_snapshot_failures_total", "counter", help, |it| &it.failed_writes);
}

/// Writes a histogram of times for each zone.
fn times(page: &mut Page, name: &str, help: &str, all: &States, of: fn(&ClusterState) -> &Times) {
    page.metric(name, "histogram", help);
    let [bucket, sum, count] = ["bucket", "sum", "count"].map(|part| format!("{name}_{part}"));
    for (zone, state) in all {
        let (times, mut total) = (of(state), 0);
        for (place, one) in times.counts().into_iter().enumerate() {
            total += one;
            let bound = BOUNDS_MILLIS.get(place);
            let bound =
                bound.map_or("+Inf".to_owned(), |millis| (*millis as f64 / 1e3).to_string());
            page.value(&bucket, &[("zone", zone), ("le", &bound)], total);
        }
        page.value(&sum, &[("zone", zone)], times.seconds());
        page.value(&count, &[("zone", zone)], total);
    }
}
