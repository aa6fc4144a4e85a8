//! What a reader must know before believing a run.

use super::figures::{Figure, Group, cpu_secs};
use super::verdict::{LOSS_MAX, list};
use crate::data::{Cell, CpusUsed, Method, Round, Run};
use crate::statistics::median;

/// Above this share of the machine for other processes, a round is not reliable; 0–1.
const FOREIGN_MAX: f64 = 0.05;
/// From this share of its CPUs on, a program is busy; 0–1.
const BUSY_MIN: f64 = 0.9;

/// Sentences, the gravest first; none for a run without blemish.
pub fn caveats(run: &Run, groups: &[Group<'_>]) -> Vec<String> {
    let found = [
        disturbed(run),
        unfinished(run, groups),
        unsteady(groups),
        shared_cpus(run),
        measured_once(run),
        late(run),
        bound_by_load(run, groups),
    ];
    found.into_iter().flatten().collect()
}

/// Rounds in which other processes used the machine.
pub fn disturbed(run: &Run) -> Option<String> {
    let foreign: Vec<f64> =
        run.cells.iter().flat_map(|cell| &cell.rounds).map(|round| round.foreign_cpu).collect();
    let disturbed: Vec<f64> = foreign.iter().copied().filter(|it| *it > FOREIGN_MAX).collect();
    let most = disturbed.iter().copied().reduce(f64::max)?;
    Some(format!(
        "Other processes used more than {:.0} % of the machine in {} of {} rounds, up to {:.0} %: \
         these figures show the form of a report and prove nothing.",
        FOREIGN_MAX * 100.0,
        disturbed.len(),
        foreign.len(),
        most * 100.0,
    ))
}

/// Returns a run that did not reach its end.
fn unfinished(run: &Run, groups: &[Group<'_>]) -> Option<String> {
    let planned = run.unfinished_of?;
    Some(format!(
        "The run was ended early: it has {} of the {planned} tests of the suite.",
        groups.len()
    ))
}

/// Tests in which the machine was not the same in all rounds.
fn unsteady(groups: &[Group<'_>]) -> Option<String> {
    let found: Vec<String> = groups
        .iter()
        .filter_map(|group| Some(format!("“{}” ({})", group.label(), group.unsteady()?)))
        .collect();
    let names: Vec<&str> = found.iter().map(String::as_str).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Nothing is compared in {} of {} tests, as the machine was not the same in all \
             rounds: {}.",
            names.len(),
            groups.len(),
            list(&names),
        )
    })
}

/// Servers and generator that took each other's time.
fn shared_cpus(run: &Run) -> Option<String> {
    let Method { server_cpus, load_cpus, .. } = &run.method;
    let shared: Vec<String> =
        server_cpus.iter().filter(|cpu| load_cpus.contains(cpu)).map(usize::to_string).collect();
    let shared: Vec<&str> = shared.iter().map(String::as_str).collect();
    let cpus = if shared.len() == 1 { "CPU" } else { "CPUs" };
    (!shared.is_empty()).then(|| {
        format!(
            "Servers and generator shared {cpus} {}: a server had the less time, the more the \
             generator took. Only CPU per query is the server's own.",
            list(&shared),
        )
    })
}

/// Cells whose noise is not known.
fn measured_once(run: &Run) -> Option<String> {
    let is_once = run.cells.iter().any(|cell| cell.rounds.len() == 1);
    is_once
        .then(|| "Some servers have one round only in a test: their noise is unknown.".to_owned())
}

/// Latency that is the generator's.
fn late(run: &Run) -> Option<String> {
    let points = || run.cells.iter().flat_map(|cell| &cell.latency_at);
    let late = points().filter(|point| point.is_generator_late).count();
    (late > 0).then(|| {
        format!(
            "The generator was late in {late} of {} measurements of latency below saturation: \
             queries left so late after their scheduled moments that this was half or more of the \
             99.9th percentile. Where a compared server met that, no such latency is shown of \
             any server.",
            points().count(),
        )
    })
}

/// Servers that waited for the generator.
fn bound_by_load(run: &Run, groups: &[Group<'_>]) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for cell in groups.iter().flat_map(|group| &group.cells) {
        if !names.contains(&&*cell.server) && is_bound_by_load(run, cell) {
            names.push(&cell.server);
        }
    }
    (!names.is_empty()).then(|| {
        format!(
            "In some tests the generator was busy and the server was not: queries per second of \
             {} are a lower bound there, marked ≥.",
            list(&names)
        )
    })
}

/// Whether the generator had no CPU left while the server had some. Nothing can be said of rounds
/// in which other processes had it, and of those that lost queries: the generator then also waits.
pub fn is_bound_by_load(run: &Run, cell: &Cell) -> bool {
    let cpus = cell.cpus.unwrap_or_else(|| cpus_of_place(run, cell));
    let busy = |of: usize, used_secs: fn(&Round) -> f64| {
        let shares = cell.rounds.iter().map(|it| used_secs(it) / it.seconds / of as f64);
        median(shares).unwrap_or_default()
    };
    let server = busy(cpus.server, cpu_secs);
    let load = busy(cpus.load, |round| round.load_cpu_secs);
    let quiet = cell.rounds.iter().all(|round| round.foreign_cpu <= FOREIGN_MAX);
    quiet && Figure::Qps.loss(cell) <= LOSS_MAX && load >= BUSY_MIN && server < BUSY_MIN
}

/// Returns the CPUs of a cell of an older format, derived from its axes: a server has one thread
/// unless an axis says how many.
fn cpus_of_place(run: &Run, cell: &Cell) -> CpusUsed {
    let axis = |name: &str| cell.place.get(name)?.parse::<usize>().ok();
    let threads = axis("threads").unwrap_or(1).saturating_mul(axis("processes").unwrap_or(1));
    let load = ["clients", "outstanding"].into_iter().filter_map(axis);
    let load = load.fold(run.method.load_cpus.len(), usize::min);
    let server = run.method.server_cpus.len().min(threads);
    CpusUsed { server: server.max(1), load: load.max(1) }
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
    fn tests_in_which_the_reflector_itself_was_unsteady_are_named_and_compared_by_nothing() {
        let mut run = run();
        let floor = &mut run.cells[0];
        assert_eq!(floor.server, "reflector");
        floor.rounds[2].cpu_system_secs *= 3.0;
        let groups = groups(&run);
        let found = caveats(&run, &groups);
        let begin = "Nothing is compared in 1 of 6 tests, as the machine was not the same in all \
                     rounds: “dino · threads 1” (the reflector's own rounds differ by 2.4";
        assert!(found.len() == 1 && found[0].starts_with(begin), "{found:?}");
        assert_eq!(groups[0].ranked().count(), 0);
        assert!(groups[1].ranked().count() > 0);
    }

    #[test]
    fn shared_cpus_and_an_early_end_are_reported() {
        let mut run = run();
        run.method.server_cpus = vec![0, 1];
        run.method.load_cpus = vec![0, 1];
        run.unfinished_of = Some(29);
        let found = caveats(&run, &groups(&run));
        assert!(found[0].contains("it has 6 of the 29 tests"), "{found:?}");
        assert!(found[1].contains("shared CPUs 0 and 1"), "{found:?}");
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

    #[test]
    fn only_cpus_in_the_measurement_show_foreign_load() {
        let mut run = run();
        run.method.server_cpus = vec![0, 1, 2, 3];
        run.method.load_cpus = vec![4, 5, 6, 7];
        let cpus = |server, load| Some(CpusUsed { server, load });
        // The places of `scale` have no axis of threads.
        let mut cell = run.cells.pop().unwrap();
        for (server_secs, load_secs, used, is_bound) in [
            // One client keeps one CPU of the generator busy, and a server waits for it.
            (0.2, 1.0, cpus(1, 1), true),
            (0.2, 1.0, cpus(1, 4), false),
            // A server of one thread has no CPU left, whatever the machine has.
            (0.98, 4.0, cpus(1, 4), false),
            (0.98, 4.0, cpus(4, 4), true),
            (0.98, 4.0, None, false),
            (0.2, 4.0, None, true),
        ] {
            cell.cpus = used;
            for round in &mut cell.rounds {
                round.load_cpu_secs = load_secs * round.seconds;
                round.cpu_user_secs = server_secs * round.seconds;
                round.cpu_system_secs = 0.0;
            }
            let found = is_bound_by_load(&run, &cell);
            assert_eq!(found, is_bound, "{server_secs} {load_secs} {used:?}");
        }
        cell.cpus = None;
        cell.place.insert("clients".to_owned(), "1".to_owned());
        cell.rounds.iter_mut().for_each(|round| round.load_cpu_secs = round.seconds);
        assert!(is_bound_by_load(&run, &cell));
    }
}
