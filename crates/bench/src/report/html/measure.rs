//! Columns of original reports, and their text for what was measured here.

use super::escape;
use crate::data::{Cell, Traffic};
use crate::report::figures::{Figure, cpu_secs};
use crate::report::numbers::{grouped, relation};
use crate::statistics::Spread;
use std::collections::BTreeMap;

/// The share of a test's rate from which on the server has held it.
const RATE_HELD: f64 = 0.95;

/// A column of original reports that is measured here; not the numbers of queries sent and
/// completed, which rounds of other lengths cannot repeat.
#[derive(Clone, Copy)]
pub enum Measure {
    /// Number of queries lost.
    Lost,
    /// Shares of RCODEs.
    Rcodes,
    /// A figure in the unit of the column, which is so many of the figure's.
    Of(Figure, f64),
    /// The percentile of latency that the row is named after, in milliseconds.
    Percentile,
    /// The standard deviation of latency, in seconds.
    Deviation,
    /// The share of queries that were answered, in percent.
    Success,
    /// The share of queries that were not, in percent.
    Failure,
    /// CPU time of the server, in percent of one CPU.
    CpuShare,
}

impl Measure {
    /// Returns what a column's head names, as the reports write it.
    pub fn named(column: &str) -> Option<Self> {
        let (seconds, millis) = (1e6, 1e3);
        Some(match column.to_ascii_lowercase().as_str() {
            "queries lost" => Self::Lost,
            "response codes" => Self::Rcodes,
            "qps" | "queries per second" | "qps (median)" | "qps (a record)"
            | "updates a second" => Self::Of(Figure::Qps, 1.0),
            "average latency (s)" => Self::Of(Figure::LatencyMean, seconds),
            "avg latency (ms)" => Self::Of(Figure::LatencyMean, millis),
            "latency (p50)" => Self::Of(Figure::Percentile(50_000), millis),
            "latency (p99)" => Self::Of(Figure::Percentile(99_000), millis),
            "no dnssec" => Self::Percentile,
            "latency stddev (s)" => Self::Deviation,
            "success rate (%)" => Self::Success,
            "failure rate (%)" => Self::Failure,
            "cpu usage" => Self::CpuShare,
            "memory (base)" | "memory (mb)" => Self::Of(Figure::Memory, 1.0),
            _ => return None,
        })
    }

    /// Returns the measure's text for a cell in a row of this name; a rate or latency with what it
    /// differs from the base's.
    pub fn of(self, cell: &Cell, base: Option<&Cell>, row: &str) -> Option<String> {
        let total = |count: fn(&Traffic) -> u64| -> f64 {
            cell.rounds.iter().map(|round| count(&round.traffic)).sum::<u64>() as f64
        };
        let (sent, completed) = (total(|it| it.sent), total(|it| it.completed));
        if sent == 0.0 {
            return None;
        }
        Some(match self {
            Self::Lost => grouped(total(|it| it.lost)),
            Self::Rcodes => rcodes(cell),
            Self::Of(figure, unit) => {
                let spread = figure.of(cell)?;
                let text = match figure {
                    Figure::Qps => grouped(spread.median),
                    Figure::Memory => format!("{:.0} MiB", spread.median),
                    _ => format!("{:.*}", if unit > 1e4 { 6 } else { 3 }, spread.median / unit),
                };
                let base =
                    base.filter(|base| base.server != cell.server && cell.unranked.is_none());
                let found = base.and_then(|base| {
                    Some(figure.series(cell)?.against(&figure.series(base)?, figure.scale()))
                });
                found.map_or(text.clone(), |found| {
                    format!("{text} <small>{}</small>", relation(figure, &found))
                })
            }
            Self::Percentile => {
                let percentile: f64 = row.strip_prefix('p')?.parse().ok()?;
                let figure = Figure::Percentile((percentile * 1000.0).round() as u32);
                Self::Of(figure, 1e3).of(cell, base, row)?
            }
            Self::Deviation => {
                let deviations = cell.rounds.iter().map(|round| round.latency.deviation);
                let spread = Spread::of(deviations)?;
                format!("{:.6}", spread.median / 1e6)
            }
            Self::CpuShare => {
                if let Some(rate) = rate_not_reached(cell) {
                    return Some(format!("– <small>at {}/s only</small>", grouped(rate)));
                }
                let shares = cell.rounds.iter().map(|round| cpu_secs(round) / round.seconds);
                format!("{:.0}%", Spread::of(shares)?.median * 100.0)
            }
            Self::Success => format!("{:.2}%", completed * 100.0 / sent),
            Self::Failure => format!("{:.2}%", (sent - completed) * 100.0 / sent),
        })
    }
}

/// Returns the rate at which queries were answered, where the test has a rate that was not reached.
fn rate_not_reached(cell: &Cell) -> Option<f64> {
    let rate: f64 =
        cell.place.get("rate").map_or_else(|| rate_in(&cell.workload), |it| it.parse().ok())?;
    let answered = Figure::Qps.of(cell)?.median;
    (answered < rate * RATE_HELD).then_some(answered)
}

/// Returns the rate that the name of a workload says: `10,000 queries a second`.
fn rate_in(workload: &str) -> Option<f64> {
    workload.strip_suffix(" queries a second")?.replace(',', "").parse().ok()
}

/// Shares of RCODEs, the most frequent first, a line each.
fn rcodes(cell: &Cell) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (rcode, count) in cell.rounds.iter().flat_map(|round| &round.traffic.rcodes) {
        *counts.entry(rcode).or_default() += count;
    }
    let total: u64 = counts.values().sum();
    let mut shares: Vec<(&str, u64)> = counts.into_iter().collect();
    shares.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let parts = shares
        .iter()
        .map(|(rcode, count)| format!("{rcode} {:.2}%", *count as f64 * 100.0 / total as f64));
    escape(&parts.collect::<Vec<_>>().join("\n")).replace('\n', "<br>")
}
