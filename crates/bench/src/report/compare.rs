//! What changed between two runs.
//!
//! The machine may have changed, too. So what depends on its speed is compared as a multiple of the
//! reflector's in the round of the same number, and the reflector itself is judged by nothing.

use super::caveats;
use super::figures::{COMPARED, Figure, Group, common_points, groups, place};
use super::numbers::{change_of, interval, short};
use crate::data::{Cell, Run};
use crate::paired::{Interval, Relation, Series};

/// A figure that differs between the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Server, workload and place.
    pub cell: String,
    /// The figure's name, and both medians with their unit.
    pub figure: String,
    /// Size of the change, as text.
    pub change: String,
    /// Whether the later run is worse.
    pub worse: bool,
    /// Whether a side was measured once, so that the noise is unknown.
    pub once: bool,
}

/// Two runs side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Reasons why the runs may differ that are no change of a server.
    pub warnings: Vec<String>,
    /// Figures that were measured or compared before and are missing now, which no noise explains.
    pub broken: Vec<String>,
    /// Figures that changed beyond noise.
    pub changes: Vec<Change>,
    /// Figures whose change these runs cannot decide, though they may have become worse by more
    /// than the margin, a line each.
    pub unclear: Vec<String>,
    /// Number of cells that both runs have.
    pub matched: usize,
    /// Number of figures that were compared.
    pub compared: usize,
    /// Number of figures that are level.
    pub level: usize,
    /// Cells and figures that cannot be compared, and why.
    pub unmatched: Vec<String>,
}

/// Tails are compared at rates that differ by no more than this share of the earlier: latency rises
/// with the rate.
const RATE_DIFFERENCE_MAX: f64 = 0.01;

/// A possible change for the worse of this size is reported, even where the runs do not prove it.
const UNCLEAR_MIN: f64 = 0.05;

/// A cell and those beside which it was measured.
type Seat<'a> = (&'a Group<'a>, &'a Cell);

/// Returns why a run proves nothing, if other processes disturbed it.
#[must_use]
pub fn disturbance(run: &Run) -> Option<String> {
    caveats::disturbed(run)
}

/// Compares an earlier run with a later one.
#[must_use]
pub fn compare(earlier: &Run, later: &Run) -> Comparison {
    let mut found = Comparison { warnings: warnings(earlier, later), ..Comparison::default() };
    let (before, now) = (groups(earlier), groups(later));
    for (group, cell) in seats(&before) {
        match find(&now, cell) {
            Some(other) if group.is_floor(cell) => machine((group, cell), other, &mut found),
            Some(other) => compare_cells((group, cell), other, &mut found),
            None if group.reason_unranked(cell).is_some() => {
                found.unmatched.push(format!("{}: only in the earlier run", name(cell)));
            }
            None => found.broken.push(format!("{}: is not in the later run", name(cell))),
        }
    }
    for (_, cell) in seats(&now).filter(|(_, cell)| find(&before, cell).is_none()) {
        found.unmatched.push(format!("{}: only in the later run", name(cell)));
    }
    found
}

/// Lists all cells.
fn seats<'a>(groups: &'a [Group<'a>]) -> impl Iterator<Item = Seat<'a>> {
    groups.iter().flat_map(|group| group.cells.iter().map(move |cell| (group, *cell)))
}

/// Returns the cell of the same server at the same place.
fn find<'a>(groups: &'a [Group<'a>], cell: &Cell) -> Option<Seat<'a>> {
    let key = |cell: &Cell| (cell.server.clone(), cell.workload.clone(), cell.place.clone());
    seats(groups).find(|(_, other)| key(other) == key(cell))
}

/// Server, workload and place as text.
fn name(cell: &Cell) -> String {
    [&cell.server, &cell.workload, &place(cell)].map(String::as_str).join(" ").trim_end().to_owned()
}

/// Warns where the reflector's cost has changed, which says how far the machine has.
fn machine(earlier: Seat<'_>, later: Seat<'_>, found: &mut Comparison) {
    let figure = Figure::CpuPerQuery;
    let of = |(_, cell): Seat<'_>| figure.series(cell);
    let Some((before, now)) = of(earlier).zip(of(later)) else { return };
    if let Relation::Differs(by) = now.against_earlier(&before, figure.scale()) {
        found.warnings.push(format!(
            "{}: {} before, {} now ({}): the machine itself has changed",
            name(later.1),
            figure.show(before.spread().median),
            figure.show(now.spread().median),
            change_of(figure, by.change),
        ));
    }
}

/// Adds what changed in one cell.
fn compare_cells(earlier: Seat<'_>, later: Seat<'_>, found: &mut Comparison) {
    found.matched += 1;
    let reason = |(group, cell): Seat<'_>| group.reason_unranked(cell).map(str::to_owned);
    match (reason(earlier), reason(later)) {
        (None, Some(now)) => found.broken.push(format!("{}: not compared: {now}", name(later.1))),
        (before, now) if before != now => {
            let [before, now] = [before, now].map(|it| it.unwrap_or_else(|| "compared".to_owned()));
            found.warnings.push(format!("{}: {before} before, {now} now", name(later.1)));
        }
        _ => {}
    }
    for (when, (group, _)) in [("earlier", earlier), ("later", later)] {
        if let Some(why) = group.unsteady() {
            found.unmatched.push(format!("{}: in the {when} run, {why}", name(later.1)));
            return;
        }
    }
    // Without rounds there is nothing, which was just reported.
    if !later.1.rounds.is_empty() {
        COMPARED.into_iter().for_each(|figure| compare_figures(figure, earlier, later, found));
    }
}

/// Adds what changed of one figure.
fn compare_figures(figure: Figure, earlier: Seat<'_>, later: Seat<'_>, found: &mut Comparison) {
    let name = || format!("{}: {}", name(later.1), figure.name());
    let of = |(group, cell): Seat<'_>| group.series(figure, cell);
    match (of(earlier), of(later)) {
        (Some(_), Some(_)) => match rates_that_differ(figure, earlier.1, later.1) {
            Some(rates) => found.unmatched.push(format!("{}: {rates}", name())),
            None => judge(figure, earlier, later, found),
        },
        (Some(_), None) if figure == Figure::Tail && !later.0.late().is_empty() => {
            found.unmatched.push(format!("{}: the generator was late in the later run", name()));
        }
        (Some(_), None) => found.broken.push(format!("{}: is not in the later run", name())),
        (None, Some(_)) => found.unmatched.push(format!("{}: not in the earlier run", name())),
        (None, None) => {}
    }
}

/// Returns the common rates of both, if the figure was measured at one and they are not the same.
fn rates_that_differ(figure: Figure, earlier: &Cell, later: &Cell) -> Option<String> {
    if !matches!(figure, Figure::Tail | Figure::TailLoss) {
        return None;
    }
    let rate = |cell| common_points(cell).next().map(|point| point.rate);
    let (before, now) = (rate(earlier)?, rate(later)?);
    let show = |rate| Figure::Qps.show(rate);
    ((now / before - 1.0).abs() > RATE_DIFFERENCE_MAX)
        .then(|| format!("measured at {} before and {} now", show(before), show(now)))
}

/// Returns a figure as a multiple of the reflector's in the same rounds; none where one has no
/// reflector.
fn over_floor(figure: Figure, (group, cell): Seat<'_>) -> Option<Series> {
    let floor = figure.series(group.floor?)?;
    figure.series(cell)?.over(&floor)
}

/// Adds what is known of the change of a figure that both runs have.
fn judge(figure: Figure, earlier: Seat<'_>, later: Seat<'_>, found: &mut Comparison) {
    let of = |(group, cell): Seat<'_>| group.series(figure, cell);
    let Some((before, now)) = of(earlier).zip(of(later)) else { return };
    let relative = over_floor(figure, earlier).zip(over_floor(figure, later));
    let relative = relative.filter(|_| figure.follows_machine());
    let (base, value) = relative.as_ref().map_or((&before, &now), |(base, value)| (base, value));
    let relation = value.against_earlier(base, figure.scale());
    found.compared += 1;
    let (from, to) = (before.spread().median, now.spread().median);
    let mut text = format!("{} {} → {}", figure.name(), figure.show(from), figure.show(to));
    if relative.is_some() {
        let (from, to) = (base.spread().median, value.spread().median);
        text += &format!(", {} → {} × reflector", short(from), short(to));
    }
    let cell = name(later.1);
    let change = |change: f64, once: bool| Change {
        cell: cell.clone(),
        figure: text.clone(),
        change: change_of(figure, change),
        worse: !figure.is_better(change),
        once,
    };
    match relation {
        Relation::Differs(by) => found.changes.push(change(by.change, false)),
        Relation::Once(by) => found.changes.push(change(by, true)),
        Relation::Level(_) => found.level += 1,
        Relation::Undecided(Some(by)) if may_be_worse(figure, &by) => {
            found.unclear.push(format!("{cell}: {text} ({})", interval(figure, &by)));
        }
        Relation::Undecided(_) => {}
    }
}

/// Whether a change that is not proved is for the worse and large.
fn may_be_worse(figure: Figure, by: &Interval) -> bool {
    !figure.is_better(by.change) && by.change.abs() >= UNCLEAR_MIN
}

/// Differences of the surroundings.
fn warnings(earlier: &Run, later: &Run) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut note = |what: &str, before: &str, now: &str| {
        if before != now {
            warnings.push(format!("{what}: {before} before, {now} now"));
        }
    };
    note("suite", &earlier.suite, &later.suite);
    let (before, now) = (&earlier.environment, &later.environment);
    note("CPU", &before.cpu, &now.cpu);
    note("kernel", &before.kernel, &now.kernel);
    let (before, now) = (&earlier.method, &later.method);
    note("pace", &before.pace, &now.pace);
    note("seconds of a round", &before.seconds.to_string(), &now.seconds.to_string());
    for server in &earlier.servers {
        if let Some(other) = later.servers.iter().find(|other| other.name == server.name) {
            note(&server.name, &server.version, &other.version);
        }
    }
    for (when, run) in [("earlier", earlier), ("later", later)] {
        warnings.extend(disturbance(run).map(|said| format!("{when} run: {said}")));
    }
    warnings
}

impl Comparison {
    /// Whether something broke, or became worse beyond a noise that is known.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        let is_worse = |change: &Change| change.worse && !change.once;
        !self.broken.is_empty() || self.changes.iter().any(is_worse)
    }

    /// Returns the comparison as lines for a terminal: warnings, what broke, what became worse,
    /// what became better, what is undecided, the rest counted.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        for warning in &self.warnings {
            out += &format!("differs: {warning}\n");
        }
        for broken in &self.broken {
            out += &format!("worse   {broken}\n");
        }
        for worse in [true, false] {
            for change in self.changes.iter().filter(|change| change.worse == worse) {
                out += &format!("{}  {}\n", if worse { "worse " } else { "better" }, change.line());
            }
        }
        for unclear in &self.unclear {
            out += &format!("unclear {unclear}\n");
        }
        for cell in &self.unmatched {
            out += &format!("not compared: {cell}\n");
        }
        let (changed, compared, level) = (self.changes.len(), self.compared, self.level);
        out + &format!(
            "of {compared} figures, {changed} changed, {level} are level, and {} are not told \
             apart in these runs\n",
            compared - changed - level
        )
    }
}

impl Change {
    /// Returns the change as one line.
    fn line(&self) -> String {
        let once = if self.once { ", measured once" } else { "" };
        format!("{}: {} ({}{once})", self.cell, self.figure, self.change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Round;
    use crate::report::sample::run;

    #[test]
    fn a_run_does_not_differ_from_itself() {
        let found = compare(&run(), &run());
        assert!(!found.is_worse(), "{:?}", found.broken);
        assert_eq!((found.changes, found.warnings, found.unmatched), (vec![], vec![], vec![]));
        assert!(found.compared > 0);
    }

    #[test]
    fn more_cpu_than_the_spread_is_worse_and_more_queries_are_better() {
        let mut later = run();
        for round in &mut later.cells[1].rounds {
            round.cpu_user_secs *= 2.0;
            round.seconds /= 1.5;
        }
        let found = compare(&run(), &later);
        let text = found.text();
        assert_eq!(found.changes.len(), 2, "{text}");
        assert!(text.starts_with("worse   zonda dino threads 1: CPU per query 1.44 µs"), "{text}");
        assert!(text.contains("better  zonda dino threads 1: queries per second"), "{text}");
        assert!(found.is_worse() && !compare(&later, &later).is_worse());
    }

    #[test]
    fn a_change_within_the_spread_is_none() {
        let mut later = run();
        for (round, times) in later.cells[1].rounds.iter_mut().zip([1.1, 0.9, 1.05, 0.98, 1.0]) {
            round.cpu_user_secs *= times;
        }
        let found = compare(&run(), &later);
        let same = compare(&run(), &run());
        assert_eq!((&found.changes, found.level), (&vec![], same.level));
    }

    #[test]
    fn one_bad_round_is_unclear_and_not_the_same_as_before() {
        let mut later = run();
        for round in &mut later.cells[1].rounds[2..] {
            round.cpu_user_secs *= 2.0;
            round.cpu_system_secs *= 2.0;
        }
        let found = compare(&run(), &later);
        let text = found.text();
        assert_eq!((found.changes.len(), found.is_worse()), (0, false), "{text}");
        let begin = "unclear zonda dino threads 1: CPU per query 1.44 µs → 2.8";
        assert!(text.lines().any(|line| line.starts_with(begin)), "{text}");
        assert!(text.lines().any(|line| line.starts_with("of 270 figures, 0 changed")), "{text}");
    }

    #[test]
    fn a_slower_machine_is_reported_and_blamed_on_no_server() {
        let mut later = run();
        for round in later.cells.iter_mut().flat_map(|cell| &mut cell.rounds) {
            round.cpu_user_secs *= 1.4;
            round.cpu_system_secs *= 1.4;
            round.traffic.completed = (round.traffic.completed as f64 / 1.4) as u64;
        }
        let found = compare(&run(), &later);
        assert!(!found.is_worse(), "{}", found.text());
        assert!(found.warnings[0].ends_with(": the machine itself has changed"));
    }

    #[test]
    fn a_test_in_which_the_reflector_was_unsteady_is_not_compared() {
        let mut later = run();
        later.cells[0].rounds[0].cpu_system_secs *= 4.0;
        for round in &mut later.cells[1].rounds {
            round.cpu_system_secs *= 4.0;
        }
        let found = compare(&run(), &later);
        assert!(!found.is_worse(), "{}", found.text());
        assert!(found.unmatched[0].contains("in the later run, the reflector's own rounds"));
    }

    #[test]
    fn another_machine_and_missing_cells_are_reported() {
        let mut later = run();
        later.environment.cpu = "Other".to_owned();
        later.cells.pop();
        let text = compare(&run(), &later).text();
        assert!(text.contains("differs: CPU: Example CPU @ 2.50 GHz before, Other now"), "{text}");
        assert!(text.contains("not compared: coredns scale zones 1,000,000: only in the earlier"));
    }

    /// Returns a run in which Zonda's first cell was changed.
    fn with_zonda(change: impl Fn(&mut Cell)) -> Run {
        let mut run = run();
        run.cells.iter_mut().filter(|cell| cell.server == "zonda").take(1).for_each(change);
        run
    }

    #[test]
    fn a_server_that_breaks_is_worse() {
        let lose = |cell: &mut Cell| {
            for Round { traffic, .. } in &mut cell.rounds {
                traffic.lost = traffic.sent / 50;
            }
        };
        let mut without_zonda = run();
        without_zonda.cells.retain(|cell| cell.server != "zonda" || place(cell) != "threads 1");
        for (later, said) in [
            (
                with_zonda(|cell| cell.unranked = Some("answers nothing".to_owned())),
                "not compared: ",
            ),
            (with_zonda(|cell| cell.rounds.clear()), "not compared: other processes"),
            (with_zonda(|cell| cell.latency_at.clear()), "p99.9 latency at one rate for all: is"),
            (with_zonda(|cell| cell.start = None), "start to first answer: is not in"),
            (without_zonda, "is not in the later run"),
            (with_zonda(lose), "queries lost at full load under 0.001 % → 2.00 %"),
        ] {
            let found = compare(&run(), &later);
            let text = found.text();
            assert!(found.is_worse(), "{said}: {text}");
            assert!(text.contains(&format!("worse   zonda dino threads 1: {said}")), "{text}");
            assert!(!compare(&later, &run()).is_worse(), "{said}");
        }
    }

    #[test]
    fn latencies_at_unequal_rates_are_not_compared() {
        let faster = |times: f64| {
            with_zonda(|cell| {
                for point in &mut cell.latency_at {
                    point.rate *= times;
                    point.latency.percentiles.iter_mut().for_each(|it| it.1 *= 3.0);
                }
            })
        };
        let (earlier, alike, other) = (run(), faster(1.005), faster(1.2));
        let tails = |later| {
            let found = compare(&earlier, later);
            let tails = found.changes.iter().filter(|it| it.figure.starts_with("p99.9 latency"));
            (tails.count(), found.unmatched)
        };
        assert_eq!(tails(&alike), (1, vec![]));
        let said = |name| {
            format!("zonda dino threads 1: {name}: measured at 270,000/s before and 324,000/s now")
        };
        let both = [Figure::Tail, Figure::TailLoss].map(|figure| said(figure.name()));
        assert_eq!(tails(&other), (0, both.to_vec()));
    }

    #[test]
    fn a_tail_spoiled_by_the_generator_is_reported_and_blamed_on_no_server() {
        let later = with_zonda(|cell| {
            cell.latency_at.iter_mut().for_each(|point| point.is_generator_late = true);
        });
        let found = compare(&run(), &later);
        // Of all servers there but the reflector.
        assert_eq!((found.unmatched.len(), found.is_worse()), (5, false), "{}", found.text());
        assert!(found.unmatched[0].ends_with("the generator was late in the later run"));
    }
}
