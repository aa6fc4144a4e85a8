//! Metrics of zones that can be changed: edits, the journal, and what files lack.

use super::page::Page;
use crate::edit::counters::EditCounters;
use crate::publish::{JournalState, ServerState};
use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;
use zonda_wire::Name;

/// Writes what is known of edits and of the journal; nothing if no zone was ever writable.
pub fn write(page: &mut Page, state: &ServerState) {
    let JournalState { failure, sizes, counters } = &state.journal;
    if sizes.is_none() && failure.is_none() {
        return;
    }
    edits(page, counters);
    let help = "Whether edits can be written to the journal: 1 or 0.";
    page.single("zonda_journal_writable", "gauge", help, u8::from(failure.is_none()));
    if let Some(sizes) = sizes {
        let help = "Octets of the journal's file.";
        page.single("zonda_journal_bytes", "gauge", help, sizes.file_octets);
        let help = "Changes in the journal: those that files lack, and the latest others.";
        page.single("zonda_journal_entries", "gauge", help, sizes.entries);
    }
    commits(page, counters);
    flushes(page, counters);
    unflushed(page, state);
}

/// Writes the number of edits by their results.
fn edits(page: &mut Page, counters: &EditCounters) {
    let name = "zonda_edits_total";
    page.metric(name, "counter", "Requests to change a zone, by what became of them.");
    page.value(name, &[("result", "accepted")], counters.accepted.load(Relaxed));
    page.value(name, &[("result", "refused")], counters.refused.load(Relaxed));
    page.value(name, &[("result", "failed")], counters.failed.load(Relaxed));
}

/// Writing to the journal.
fn commits(page: &mut Page, counters: &EditCounters) {
    let name = "zonda_journal_commits_total";
    page.metric(name, "counter", "Groups of edits written to the journal, by how that ended.");
    page.value(name, &[("result", "written")], counters.commits.load(Relaxed));
    page.value(name, &[("result", "failed")], counters.failed_commits.load(Relaxed));
    let seconds = counters.commit_nanos.load(Relaxed) as f64 / 1e9;
    let help = "Time until groups of edits were on the disk.";
    page.single("zonda_journal_commit_seconds_total", "counter", help, seconds);
}

/// Writing to the files of zones.
fn flushes(page: &mut Page, counters: &EditCounters) {
    let name = "zonda_flushes_total";
    page.metric(name, "counter", "Files of zones that edits were written to, by how that ended.");
    page.value(name, &[("result", "written")], counters.flushes.load(Relaxed));
    page.value(name, &[("result", "failed")], counters.failed_flushes.load(Relaxed));
    let (name, at) = ("zonda_last_flush_timestamp_seconds", counters.flushed_at.load(Relaxed));
    if at > 0 {
        page.single(name, "gauge", "When edits were last written to the file of a zone.", at);
    }
}

/// Writes the number of changes that files lack, by writable zone: each of the zones listed, else
/// of those that lack most, and the sum of the rest.
fn unflushed(page: &mut Page, state: &ServerState) {
    let name = "zonda_zone_unflushed_changes";
    let help =
        "Changes that the file of a writable zone lacks; zones not counted one by one are other.";
    page.metric(name, "gauge", help);
    let config = &state.config().metrics;
    let listed: HashSet<Name> = config.zones.iter().map(Name::to_lowercase).collect();
    let changes = state.journal.counters.unflushed_changes();
    let all: usize = changes.values().sum();
    let writable = state.zone_set().zones().filter(|zone| zone.writable.is_some());
    let mut counts: Vec<(usize, &Name)> = writable
        .map(|zone| (changes.get(&zone.entry.apex).copied().unwrap_or(0), &zone.entry.apex))
        .filter(|(_, apex)| listed.is_empty() || listed.contains(apex))
        .collect();
    let busiest = config.busiest as usize;
    if listed.is_empty() && busiest < counts.len() {
        counts.select_nth_unstable_by(busiest, |(a, _), (b, _)| b.cmp(a));
        counts.truncate(busiest);
    }
    counts.sort_unstable_by(|a, b| a.1.as_wire().cmp(b.1.as_wire()));
    for (count, apex) in &counts {
        page.value(name, &[("zone", &apex.to_string())], count);
    }
    let told: usize = counts.iter().map(|(count, _)| count).sum();
    page.value(name, &[("zone", "other")], all - told);
}
