//! What is said of rounds while a suite runs.

use crate::data::{Cell, LoadPoint, Round};
use crate::report::short;

/// Returns a server's latency in one line.
pub fn point_line(server: &str, point: &LoadPoint, is_disturbed: bool) -> String {
    let value = |percent| point.latency.percentile(percent).unwrap_or_default();
    let late = if point.is_generator_late { " (the generator was late)" } else { "" };
    format!(
        "{server}: {}, {:.0} queries/s: p50 {:.0} µs, p99 {:.0} µs, p99.9 {:.0} µs{late}, {} \
         lost{}",
        point.share,
        point.rate,
        value(50.0),
        value(99.0),
        value(99.9),
        point.traffic.lost,
        verdict(is_disturbed),
    )
}

/// Returns a round in one line.
pub fn round_line(cell: &Cell, place: &str, round: &Round, is_disturbed: bool) -> String {
    let cpu = (round.cpu_user_secs + round.cpu_system_secs) / round.traffic.completed as f64 * 1e6;
    let rate = round.traffic.completed as f64 / round.seconds;
    let unit = cell.unit.as_deref().unwrap_or("query");
    let plural = cell.unit.as_ref().map_or_else(|| "queries".to_owned(), |unit| format!("{unit}s"));
    let rate = short(rate);
    let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
    format!(
        "{}{place}, round {}: {} {cpu:.2} CPU µs/{unit}, {rate} {plural}/s, {:.0} µs, \
         {} lost, {:.1} % foreign{}",
        cell.workload,
        round.number + 1,
        cell.server,
        round.latency.mean,
        round.traffic.lost,
        round.foreign_cpu * 100.0,
        verdict(is_disturbed),
    )
}

/// Returns what becomes of a figure.
fn verdict(is_disturbed: bool) -> &'static str {
    if is_disturbed { ", discarded: other processes used the machine" } else { "" }
}
