//! A run as tables for a terminal.

use super::aims::aims;
use super::caveats::caveats;
use super::figures::{Figure, Group, groups, mebioctets};
use super::numbers::{rate, relation, short};
use super::verdict::{HOME, Ranking, behind, headlines, missing};
use crate::data::{Cell, Run, Start};
use crate::statistics::Spread;

/// Heads of the columns; the first is left-aligned.
const COLUMNS: [&str; 10] = [
    "server",
    "CPU µs/query",
    "range",
    "× reflector",
    "against best",
    "queries/s",
    "lost %",
    "p50 µs",
    "p99 µs",
    "MiB",
];

/// Returns all of it: a table and sentences for each test, what was left out, and at the end, where
/// a terminal stands still, what it all says.
pub fn text(run: &Run) -> String {
    let mut out = format!("{}: {}\n", run.suite, run.title);
    let environment = &run.environment;
    out += &format!("{}, {}, {}\n", environment.cpu, environment.kernel, environment.system);
    let groups = groups(run);
    for group in &groups {
        out += &format!("\n{}\n{}{}", group.label(), table(group), starts(group));
        if let Some(why) = group.unsteady() {
            out += &format!("  nothing is compared here: {why}\n");
        }
        for figure in [Figure::CpuPerQuery, Figure::Qps] {
            if let Some(standing) = Ranking::of(group, figure) {
                out += &format!("  {}: {}\n", figure.name(), standing.sentence());
            }
        }
        for line in behind(group) {
            out += &format!("  {HOME} is behind: {line}\n");
        }
        for line in aims(group) {
            out += &format!("  {HOME} is to reach: {line}\n");
        }
        for line in missing(group) {
            out += &format!("  {HOME} has no figure: {line}\n");
        }
    }
    if !run.skipped.is_empty() {
        out += "\n";
    }
    for skipped in &run.skipped {
        out += &format!("left out: {skipped}\n");
    }
    let (found, caveats) = (headlines(&groups), caveats(run, &groups));
    if !found.is_empty() || !caveats.is_empty() {
        out += "\nIn short\n";
    }
    for caveat in caveats {
        out += &format!("  ! {caveat}\n");
    }
    for (figure, sentence) in found {
        out += &format!("  {}: {sentence}\n", figure.name());
    }
    out
}

/// Returns a row for each server, the floor first, then by CPU per query, those not compared last;
/// these are marked and say why below.
fn table(group: &Group<'_>) -> String {
    let standing = Ranking::of(group, Figure::CpuPerQuery);
    let mut cells = group.cells.clone();
    cells.sort_by(|a, b| {
        let key = |cell: &Cell| (!group.is_floor(cell), !group.is_ranked(cell));
        let cost = |cell| Figure::CpuPerQuery.of(cell).map_or(f64::INFINITY, |cost| cost.median);
        key(a).cmp(&key(b)).then(cost(a).total_cmp(&cost(b)))
    });
    let mut rows = vec![COLUMNS.map(|head| group.in_unit(head))];
    rows.extend(cells.iter().map(|cell| row(group, cell, standing.as_ref())));
    let mut out = aligned(&rows);
    for cell in cells {
        if let Some(reason) = group.reason_unranked(cell) {
            out += &format!("  * {} is not compared: {reason}\n", cell.server);
        }
    }
    out
}

/// Returns a server's figures.
fn row(group: &Group<'_>, cell: &Cell, standing: Option<&Ranking<'_>>) -> [String; 10] {
    let show = |spread: Option<Spread>, show: fn(f64) -> String| {
        spread.map_or_else(|| "–".to_owned(), |spread| show(spread.median))
    };
    let cost = Figure::CpuPerQuery.of(cell);
    let versus = match standing {
        Some(standing) if cost.is_some() && group.is_ranked(cell) => standing
            .against_best(cell)
            .map_or_else(|| "best".to_owned(), |found| relation(Figure::CpuPerQuery, &found)),
        _ => "–".to_owned(),
    };
    let spread = cost
        .map_or_else(|| "–".to_owned(), |cost| format!("{}–{}", short(cost.low), short(cost.high)));
    let mark = if group.reason_unranked(cell).is_some() { " *" } else { "" };
    let lost = match Figure::Qps.loss(cell) {
        _ if cell.rounds.is_empty() => "–".to_owned(),
        0.0 => "0".to_owned(),
        loss => short(loss * 100.0),
    };
    [
        format!("{}{mark}", cell.server),
        show(cost, short),
        spread,
        show(group.times_floor(cell), short),
        versus,
        show(Figure::Qps.of(cell), rate),
        lost,
        show(Figure::Percentile(50_000).of(cell), short),
        show(Figure::Percentile(99_000).of(cell), short),
        show(Figure::Memory.of(cell), short),
    ]
}

/// Returns a line of what starting cost each server; empty where the most memory is not known.
fn starts(group: &Group<'_>) -> String {
    let start = |cell: &&Cell| {
        let Start { ready_secs, memory_octets, memory_peak_octets, .. } = cell.start.as_ref()?;
        let [memory, peak] = [*memory_octets, (*memory_peak_octets)?].map(mebioctets).map(short);
        Some(format!("{} {memory} MiB (at most {peak}) in {ready_secs:.2} s", cell.server))
    };
    let starts: Vec<String> = group.cells.iter().filter_map(start).collect();
    if starts.is_empty() { String::new() } else { format!("  start: {}\n", starts.join(", ")) }
}

/// Columns as wide as their widest text, the first to the left and the rest to the right.
fn aligned(rows: &[[String; 10]]) -> String {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let mut out = String::new();
    for row in rows {
        out += &format!("  {:<1$}", row[0], width(0));
        for (column, text) in row.iter().enumerate().skip(1) {
            out += &format!("  {text:>0$}", width(column));
        }
        out += "\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::run;

    #[test]
    fn the_text_names_the_leading_server_and_where_zonda_is_behind() {
        let text = text(&run());
        assert!(text.contains("  zonda is behind: CPU per query: 1.44 µs, behind knot"), "{text}");
        assert!(text.contains("coredns is not compared: answers 12 % REFUSED"), "{text}");
        assert!(text.contains("left out: dinodns: npm is not installed"), "{text}");
        let end = text.lines().skip_while(|line| *line != "In short").nth(1);
        assert!(end.is_some_and(|line| line.contains("behind in all 6 tests")), "{text}");
    }

    #[test]
    fn all_rows_of_a_table_are_equally_wide() {
        let run = run();
        let table = table(&groups(&run)[0]);
        let mut widths = table.lines().map(|line| line.chars().count());
        let first = widths.next();
        assert!(widths.all(|width| Some(width) == first), "{table}");
    }

    #[test]
    fn a_run_without_cells_is_still_reported() {
        let run = Run { cells: Vec::new(), skipped: Vec::new(), ..run() };
        assert_eq!(text(&run).lines().count(), 2);
    }
}
