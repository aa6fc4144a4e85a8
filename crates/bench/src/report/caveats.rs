//! What a reader must know before believing a run.

use super::figures::{Figure, Group, common_points, cpu_secs};
use super::verdict::{LOSS_MAX, list};
use crate::data::{Cell, Run};
use crate::statistics::Spread;

/// Above this share of the machine for others, a round does not say what it seems to; 0–1.
const FOREIGN_MAX: f64 = 0.05;
/// From this share of its CPUs on, a program is busy; 0–1.
const BUSY_MIN: f64 = 0.9;

/// Sentences, the gravest first; none for a run without blemish.
pub fn caveats(run: &Run, groups: &[Group<'_>]) -> Vec<String> {
    let mut found = Vec::new();
    let foreign: Vec<f64> =
        run.cells.iter().flat_map(|cell| &cell.rounds).map(|round| round.foreign_cpu).collect();
    let disturbed: Vec<f64> = foreign.iter().copied().filter(|it| *it > FOREIGN_MAX).collect();
    if let Some(most) = disturbed.iter().copied().reduce(f64::max) {
        found.push(format!(
            "Other processes used more than {:.0} % of the machine in {} of {} rounds, up to \
             {:.0} %: these figures show the form of a report and prove nothing.",
            FOREIGN_MAX * 100.0,
            disturbed.len(),
            foreign.len(),
            most * 100.0,
        ));
    }
    if run.cells.iter().any(|cell| cell.rounds.len() == 1) {
        found.push("Some cells have one round only: their noise is unknown.".to_owned());
    }
    let points = || run.cells.iter().flat_map(common_points);
    let late = points().filter(|point| point.is_generator_late).count();
    if late > 0 {
        found.push(format!(
            "The generator was late in {late} of {} measurements of latency at a common rate: \
             queries left so late after their scheduled moments that this was half or more of the \
             99.9th percentile. Where a ranked server met that, nobody has a figure of it.",
            points().count(),
        ));
    }
    let mut names: Vec<&str> = Vec::new();
    for cell in groups.iter().flat_map(|group| &group.cells) {
        if !names.contains(&&*cell.server) && is_bound_by_load(run, cell) {
            names.push(&cell.server);
        }
    }
    if !names.is_empty() {
        found.push(format!(
            "In some places the generator was busy and the server was not: queries per second of \
             {} are a lower bound there, marked ≥.",
            list(&names)
        ));
    }
    found
}

/// Whether the generator had no CPU left while the server had some. Nothing can be said of rounds
/// in which others had it, and of those that lost queries: the generator then also waits.
pub fn is_bound_by_load(run: &Run, cell: &Cell) -> bool {
    let axis = |name| cell.place.get(name).and_then(|value: &String| value.parse::<usize>().ok());
    let workers =
        axis("threads").unwrap_or(usize::MAX).saturating_mul(axis("processes").unwrap_or(1));
    let cpus = run.method.server_cpus.len().min(workers) as f64;
    let load_cpus = run.method.load_cpus.len() as f64;
    let median = |values: Vec<f64>| Spread::of(values).map_or(0.0, |spread| spread.median);
    let rounds = || cell.rounds.iter();
    let server = median(rounds().map(|round| cpu_secs(round) / round.seconds / cpus).collect());
    let load =
        median(rounds().map(|round| round.load_cpu_secs / round.seconds / load_cpus).collect());
    let quiet = rounds().all(|round| round.foreign_cpu <= FOREIGN_MAX);
    quiet && Figure::Qps.loss(cell) <= LOSS_MAX && load >= BUSY_MIN && server < BUSY_MIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figures::groups;
    use crate::report::sample::run;

    #[test]
    fn a_quiet_run_has_no_caveats_and_a_disturbed_one_says_so_first() {
        let mut run = run();
        assert_eq!(caveats(&run, &groups(&run)), Vec::<String>::new());
        run.cells[0].rounds[0].foreign_cpu = 0.5;
        run.cells[0].rounds.truncate(1);
        let found = caveats(&run, &groups(&run));
        assert!(found[0].contains("in 1 of 176 rounds, up to 50 %"), "{found:?}");
        assert!(found[1].contains("one round only"), "{found:?}");
    }

    #[test]
    fn latency_that_is_the_generators_makes_no_figure() {
        let mut run = run();
        for cell in &mut run.cells {
            for point in &mut cell.latency_at {
                point.is_generator_late = cell.server == "zonda";
            }
        }
        let groups = groups(&run);
        let found = caveats(&run, &groups);
        assert!(found[0].starts_with("The generator was late in "), "{found:?}");
        for cell in groups[0].ranked() {
            assert_eq!(groups[0].figure(Figure::Tail, cell), None, "{}", cell.server);
        }
    }

    #[test]
    fn a_server_that_waits_for_a_busy_generator_is_a_lower_bound() {
        let mut run = run();
        for round in &mut run.cells[1].rounds {
            round.load_cpu_secs = round.seconds;
            round.cpu_user_secs = 0.1;
            round.cpu_system_secs = 1.0;
        }
        let found = caveats(&run, &groups(&run));
        assert!(found[0].contains("queries per second of zonda are a lower bound"), "{found:?}");
    }
}
