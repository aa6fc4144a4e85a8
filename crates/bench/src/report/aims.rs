//! Figures that Zonda is to reach: whether it does.

use super::figures::{Figure, Group};
use super::numbers::{short, time};
use super::verdict::HOME;
use crate::data::{Aim, AimFigure, Cell, Round};
use crate::statistics::Spread;

/// Returns a line for each aim of a test: what is to be reached, what was, and whether that is
/// enough. The median over rounds decides.
pub fn aims(group: &Group<'_>) -> Vec<String> {
    let Some(cell) = group.cell(HOME) else { return Vec::new() };
    cell.aims.iter().map(|aim| line(aim, cell)).collect()
}

/// Returns an aim as text.
fn line(aim: &Aim, cell: &Cell) -> String {
    let show = |value| show(aim.figure, value);
    let bounds = [("at most", aim.most), ("at least", aim.least)];
    let bounds: Vec<String> = bounds
        .iter()
        .filter_map(|(word, bound)| Some(format!("{word} {}", show((*bound)?))))
        .collect();
    let unit = cell.unit.as_deref().unwrap_or("query");
    let wanted = format!("{}, {}", name(aim.figure, unit), bounds.join(" and "));
    let rounds = cell.rounds.iter().filter_map(|round| value(aim.figure, round));
    let Some(found) = Spread::of(rounds) else { return format!("{wanted}: not measured") };
    let (median, low, high) = (found.median, found.low, found.high);
    let is_reached =
        aim.most.is_none_or(|most| median <= most) && aim.least.is_none_or(|least| median >= least);
    let word = if is_reached { "reached" } else { "missed" };
    format!("{wanted}: {word}, {} ({} to {})", show(median), show(low), show(high))
}

/// Returns the name of a figure.
fn name(figure: AimFigure, unit: &str) -> String {
    match figure {
        AimFigure::CpuMicros => format!("CPU time for each {unit}"),
        AimFigure::OctetsEach => format!("memory for each {unit}"),
        AimFigure::Rate => "rate".to_owned(),
        AimFigure::P50Micros => "median time".to_owned(),
        AimFigure::P99Micros => "p99 time".to_owned(),
        AimFigure::Seconds => "length".to_owned(),
        AimFigure::Loss => "loss".to_owned(),
    }
}

/// Returns a value with its unit.
fn show(figure: AimFigure, value: f64) -> String {
    match figure {
        AimFigure::Rate => format!("{}/s", short(value)),
        AimFigure::CpuMicros | AimFigure::P50Micros | AimFigure::P99Micros => time(value),
        AimFigure::Seconds => format!("{} s", short(value)),
        AimFigure::OctetsEach => format!("{} octets", short(value)),
        AimFigure::Loss => Figure::Loss.show(value),
    }
}

/// Returns the value of a round; nothing where nothing was measured.
fn value(figure: AimFigure, round: &Round) -> Option<f64> {
    let completed = round.traffic.completed as f64;
    let cpu = round.cpu_user_secs + round.cpu_system_secs;
    match figure {
        AimFigure::Loss => round.traffic.loss(),
        _ if completed == 0.0 || round.seconds <= 0.0 => None,
        AimFigure::CpuMicros => Some(cpu * 1e6 / completed),
        AimFigure::Rate => Some(completed / round.seconds),
        AimFigure::P50Micros => round.latency.percentile(50.0),
        AimFigure::P99Micros => round.latency.percentile(99.0),
        AimFigure::Seconds => Some(round.seconds),
        AimFigure::OctetsEach => Some(round.memory_octets as f64 / completed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figures::groups;
    use crate::report::sample::run;

    #[test]
    fn an_aim_is_judged_by_the_median_and_told_with_what_was_found() {
        let mut run = run();
        let aim = |figure, most, least| Aim { figure, most, least };
        for cell in &mut run.cells {
            cell.unit = Some("update".to_owned());
            cell.aims = vec![
                aim(AimFigure::CpuMicros, Some(2.0), None),
                aim(AimFigure::CpuMicros, Some(1.0), None),
                aim(AimFigure::Rate, None, Some(1e9)),
            ];
        }
        let lines = aims(&groups(&run)[0]);
        let begin = "CPU time for each update, at most 2.00 µs: reached, 1.44 µs (1.4";
        assert!(lines[0].starts_with(begin), "{lines:?}");
        assert!(lines[1].contains(", at most 1.00 µs: missed, "), "{lines:?}");
        assert!(lines[2].starts_with("rate, at least 1,000,000,000/s: missed, "), "{lines:?}");
        run.cells.iter_mut().for_each(|cell| cell.rounds.clear());
        assert!(aims(&groups(&run)[0])[0].ends_with(": not measured"));
    }
}
