//! What changed between two runs beyond noise.

use super::figures::{COMPARED, Figure, place};
use super::numbers::change;
use crate::data::{Cell, Run};
use crate::statistics::{Difference, Spread};

/// A figure that differs between the runs by more than its spread.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Server, workload and place.
    pub cell: String,
    /// The figure's name, and both medians with their unit.
    pub figure: String,
    /// The share of the earlier median.
    pub share: f64,
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
    /// What changed.
    pub changes: Vec<Change>,
    /// How many figures were compared.
    pub compared: usize,
    /// Cells that only one of the runs has.
    pub unmatched: Vec<String>,
}

/// Compares an earlier run with a later one.
pub fn compare(earlier: &Run, later: &Run) -> Comparison {
    let mut found = Comparison { warnings: warnings(earlier, later), ..Comparison::default() };
    for cell in &earlier.cells {
        match later.cells.iter().find(|other| same(cell, other)) {
            Some(other) => compare_cells(cell, other, &mut found),
            None => found.unmatched.push(format!("{}: only in the earlier run", name(cell))),
        }
    }
    for cell in &later.cells {
        if !earlier.cells.iter().any(|other| same(cell, other)) {
            found.unmatched.push(format!("{}: only in the later run", name(cell)));
        }
    }
    found
}

/// Whether both stand at the same place.
fn same(a: &Cell, b: &Cell) -> bool {
    (&a.server, &a.workload, &a.place) == (&b.server, &b.workload, &b.place)
}

/// Server, workload and place as text.
fn name(cell: &Cell) -> String {
    [&cell.server, &cell.workload, &place(cell)].map(String::as_str).join(" ").trim_end().to_owned()
}

/// Adds what changed in one cell.
fn compare_cells(earlier: &Cell, later: &Cell, found: &mut Comparison) {
    if earlier.unranked != later.unranked {
        let ranked = |cell: &Cell| cell.unranked.clone().unwrap_or_else(|| "ranked".to_owned());
        let (before, now) = (ranked(earlier), ranked(later));
        found.warnings.push(format!("{}: {before} before, {now} now", name(earlier)));
    }
    for figure in COMPARED {
        let (Some(before), Some(now)) = (figure.of(earlier), figure.of(later)) else { continue };
        found.compared += 1;
        found.changes.extend(changed(name(earlier), figure, &before, &now));
    }
}

/// The change of a figure, if it is beyond noise.
fn changed(cell: String, figure: Figure, before: &Spread, now: &Spread) -> Option<Change> {
    let (share, once) = match figure.against(now, before) {
        Difference::Share(share) => (share, false),
        Difference::Once(share) => (share, true),
        Difference::None => return None,
    };
    let (from, to) = (figure.show(before.median), figure.show(now.median));
    Some(Change {
        cell,
        figure: format!("{} {from} → {to}", figure.name()),
        share,
        worse: (share < 0.0) == figure.more_is_better(),
        once,
    })
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
    warnings
}

impl Comparison {
    /// Whether something became worse beyond a noise that is known.
    pub fn is_worse(&self) -> bool {
        self.changes.iter().any(|change| change.worse && !change.once)
    }

    /// As lines for a terminal: warnings, what became worse, what became better, the rest counted.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for warning in &self.warnings {
            out += &format!("differs: {warning}\n");
        }
        for worse in [true, false] {
            for change in self.changes.iter().filter(|change| change.worse == worse) {
                out += &format!("{}  {}\n", if worse { "worse " } else { "better" }, change.line());
            }
        }
        for cell in &self.unmatched {
            out += &format!("not compared: {cell}\n");
        }
        let (changed, compared) = (self.changes.len(), self.compared);
        out + &format!("{changed} of {compared} figures changed beyond noise\n")
    }
}

impl Change {
    /// As one line.
    fn line(&self) -> String {
        let once = if self.once { ", measured once" } else { "" };
        format!("{}: {} ({}{once})", self.cell, self.figure, change(self.share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::run;

    #[test]
    fn a_run_does_not_differ_from_itself() {
        let found = compare(&run(), &run());
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
        for round in &mut later.cells[1].rounds {
            round.cpu_user_secs *= 1.05;
        }
        assert_eq!(compare(&run(), &later).changes, vec![]);
    }

    #[test]
    fn another_machine_and_missing_cells_are_told() {
        let mut later = run();
        later.environment.cpu = "Other".to_owned();
        later.cells.pop();
        let text = compare(&run(), &later).text();
        assert!(text.contains("differs: CPU: Example CPU @ 2.50 GHz before, Other now"), "{text}");
        assert!(text.contains("not compared: coredns scale zones 1000000: only in the earlier"));
    }
}
