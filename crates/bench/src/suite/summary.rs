//! A run in a few lines of text, for whoever waits for it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::data::{Cell, Round, Run};

/// A block for each place: servers by what a query costs them, cheapest first.
pub fn text(run: &Run) -> String {
    let mut places: BTreeMap<usize, Vec<&Cell>> = BTreeMap::new();
    let same = |a: &Cell, b: &Cell| a.workload == b.workload && a.place == b.place;
    for cell in &run.cells {
        let first = run.cells.iter().position(|other| same(cell, other)).unwrap_or_default();
        places.entry(first).or_default().push(cell);
    }
    let floors: Vec<&str> =
        run.servers.iter().filter(|server| server.is_floor).map(|server| &*server.name).collect();
    let mut text = String::new();
    for cells in places.into_values() {
        block(&mut text, &cells, |cell| floors.contains(&&*cell.server));
    }
    text
}

/// The servers of one place.
fn block(text: &mut String, cells: &[&Cell], is_floor: impl Fn(&Cell) -> bool) {
    let Some(first) = cells.first() else { return };
    let place: String =
        first.place.iter().map(|(axis, value)| format!(", {axis} {value}")).collect();
    let _ = writeln!(text, "== {}{place}", first.workload);
    let mut measured: Vec<(&Cell, Spread)> = cells
        .iter()
        .filter_map(|cell| Some((*cell, Spread::of(cell.rounds.iter().map(cpu_micros))?)))
        .collect();
    measured.sort_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
    let floor = measured.iter().find(|(cell, _)| is_floor(cell)).map(|(_, cost)| cost.median);
    let best = measured.iter().find(|(cell, _)| !is_floor(cell) && cell.unranked.is_none());
    for (cell, cost) in &measured {
        let note = match (&cell.unranked, best) {
            (Some(reason), _) => format!("  NOT RANKED: {reason}"),
            (None, Some((first, least))) if first.server != cell.server && !is_floor(cell) => {
                if cost.overlaps(least) {
                    format!("  no difference from {}", first.server)
                } else {
                    String::new()
                }
            }
            _ => String::new(),
        };
        row(text, cell, cost, floor, &note);
    }
    for cell in cells.iter().filter(|cell| cell.rounds.is_empty()) {
        let reason = cell.unranked.as_deref().unwrap_or("others used the machine in every round");
        let _ = writeln!(text, "{:10} not measured: {reason}", cell.server);
    }
}

/// One server.
fn row(text: &mut String, cell: &Cell, cost: &Spread, floor: Option<f64>, note: &str) {
    let median = |value: fn(&Round) -> f64| {
        Spread::of(cell.rounds.iter().map(value)).map_or(0.0, |spread| spread.median)
    };
    let ratio = floor.map_or_else(String::new, |floor| format!("{:6.2} ×", cost.median / floor));
    let _ = writeln!(
        text,
        "{:10} {:7.2} ±{:5.2} CPU µs/query {ratio} {:8.0} q/s {:8.0} µs {:6.0} MB  \
         lost {:.0}{note}",
        cell.server,
        cost.median,
        cost.half_range,
        median(|round| round.traffic.completed as f64 / round.seconds),
        median(|round| round.latency.mean),
        median(|round| round.memory_octets as f64 / 1e6),
        median(|round| round.traffic.lost as f64),
    );
}

/// The server's CPU time for each answered query.
fn cpu_micros(round: &Round) -> f64 {
    let seconds = round.cpu_user_secs + round.cpu_system_secs;
    seconds * 1e6 / round.traffic.completed.max(1) as f64
}

/// The middle of several values, and how far they go.
struct Spread {
    /// The median.
    median: f64,
    /// Half of the distance from the least to the greatest.
    half_range: f64,
}

impl Spread {
    /// Of at least one value.
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (least, greatest) = (*values.first()?, *values.last()?);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self { median: f64::midpoint(low, high), half_range: (greatest - least) / 2.0 })
    }

    /// Whether the difference of the medians is smaller than the larger spread.
    fn overlaps(&self, other: &Self) -> bool {
        (self.median - other.median).abs() < self.half_range.max(other.half_range)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn spread(values: &[f64]) -> Spread {
        Spread::of(values.iter().copied()).unwrap()
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(spread(&[4.0, 1.0, 3.0, 2.0]).median, 2.5);
        assert_eq!(spread(&[9.0, 1.0, 3.0]).median, 3.0);
        assert!(Spread::of(std::iter::empty()).is_none());
    }

    #[test]
    fn a_difference_smaller_than_the_spread_is_none() {
        assert!(spread(&[1.0, 2.0, 3.0]).overlaps(&spread(&[2.5, 2.5, 2.5])));
        assert!(!spread(&[1.0, 1.1, 1.2]).overlaps(&spread(&[2.0, 2.1, 2.2])));
    }
}
