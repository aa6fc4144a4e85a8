//! Whose answers differ from its peers'.
//!
//! A server that answers something else does other work, so its cost says nothing beside theirs.

use std::collections::BTreeMap;

use crate::data::{Cell, Traffic};
use crate::statistics::median;

/// Shares of an RCODE that differ by no more are the same: losses fall where they fall.
const DIFFERENCE_MAX: f64 = 0.01;

/// Marks the cells of one place whose mix of RCODEs is not that of the other servers; those that
/// are `alike` count as one. The floor looks at no name, so it is neither asked nor judged.
pub fn mark(cells: &mut [&mut Cell], is_floor: impl Fn(&str) -> bool, alike: &[String]) {
    let mix = |cell: &Cell| if is_floor(&cell.server) { None } else { mix(cell, alike) };
    let mixes: Vec<Option<Mix>> = cells.iter().map(|cell| mix(cell)).collect();
    let known: Vec<&Mix> = mixes.iter().flatten().collect();
    let usual = usual(&known);
    for (cell, mix) in cells.iter_mut().zip(&mixes) {
        let Some(mix) = mix else { continue };
        let rcodes = mix.keys().chain(usual.keys());
        let differs = rcodes
            .into_iter()
            .any(|rcode| (share(mix, rcode) - share(&usual, rcode)).abs() > DIFFERENCE_MAX);
        if differs && cell.unranked.is_none() {
            cell.unranked = Some(format!("answers {}; usual is {}", text(mix), text(&usual)));
        }
    }
}

/// Share of the answers by RCODE; 0–1.
type Mix = BTreeMap<String, f64>;

/// Returns the mix over all rounds of a cell; none without answers.
fn mix(cell: &Cell, alike: &[String]) -> Option<Mix> {
    let one = alike.join(" or ");
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for Traffic { rcodes, .. } in cell.rounds.iter().map(|round| &round.traffic) {
        for (rcode, count) in rcodes {
            let rcode = if alike.contains(rcode) { &one } else { rcode };
            *counts.entry(rcode).or_default() += count;
        }
    }
    let total: u64 = counts.values().sum();
    let share = |(rcode, count): (&str, u64)| (rcode.to_owned(), count as f64 / total as f64);
    (total > 0).then(|| counts.into_iter().map(share).collect())
}

/// Returns the median share of each RCODE.
fn usual(mixes: &[&Mix]) -> Mix {
    let rcodes = mixes.iter().flat_map(|mix| mix.keys());
    let usual = |rcode: &String| {
        let median = median(mixes.iter().map(|mix| share(mix, rcode)))?;
        Some((rcode.clone(), median))
    };
    rcodes.filter_map(usual).collect()
}

/// Returns the share of an RCODE in a mix.
fn share(mix: &Mix, rcode: &str) -> f64 {
    mix.get(rcode).copied().unwrap_or_default()
}

/// Returns a mix as people read it.
fn text(mix: &Mix) -> String {
    let parts: Vec<String> =
        mix.iter().map(|(rcode, share)| format!("{rcode} {:.1} %", share * 100.0)).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::data::{Latency, Round};

    fn cell(server: &str, noerror: u64, refused: u64) -> Cell {
        let counts = [("NOERROR".to_owned(), noerror), ("REFUSED".to_owned(), refused)];
        let rcodes = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        let round = Round {
            number: 0,
            seconds: 1.0,
            traffic: Traffic { completed: noerror + refused, rcodes, ..Traffic::default() },
            latency: Latency::default(),
            cpu_user_secs: 0.0,
            cpu_system_secs: 0.0,
            load_cpu_secs: 0.0,
            context_switches: 0,
            memory_octets: 0,
            memory_peak_octets: None,
            foreign_cpu: 0.0,
        };
        Cell {
            server: server.to_owned(),
            workload: String::new(),
            place: BTreeMap::new(),
            unit: None,
            aims: vec![],
            cpus: None,
            rounds: vec![round],
            discarded: 0,
            unranked: None,
            latency_at: vec![],
            start: None,
        }
    }

    fn marked(mut cells: Vec<Cell>) -> Vec<String> {
        mark(&mut cells.iter_mut().collect::<Vec<_>>(), |name| name == "floor", &[]);
        let odd = cells.into_iter().filter(|cell| cell.unranked.is_some());
        odd.map(|cell| cell.server).collect()
    }

    #[test]
    fn the_one_that_answers_otherwise_is_marked_and_the_floor_is_not() {
        let cells = vec![
            cell("floor", 100, 0),
            cell("a", 500, 500),
            cell("b", 505, 495),
            cell("c", 1000, 0),
        ];
        assert_eq!(marked(cells), ["c"]);
    }

    #[test]
    fn rcodes_that_are_alike_make_no_difference() {
        let mut cells = [cell("a", 10, 0), cell("b", 0, 10), cell("c", 5, 5)];
        let alike = ["NOERROR", "REFUSED"].map(str::to_owned);
        mark(&mut cells.iter_mut().collect::<Vec<_>>(), |_| false, &alike);
        assert!(cells.iter().all(|cell| cell.unranked.is_none()));
    }

    #[test]
    fn two_that_disagree_are_both_marked() {
        assert_eq!(marked(vec![cell("a", 10, 0), cell("b", 0, 10)]), ["a", "b"]);
        assert!(marked(vec![cell("a", 10, 0)]).is_empty());
    }

    #[test]
    fn a_server_without_answers_is_no_peer() {
        assert!(marked(vec![cell("a", 10, 0), cell("b", 0, 0)]).is_empty());
    }
}
