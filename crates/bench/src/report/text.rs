//! A run as tables for a terminal.

use super::figures::{Figure, Group, groups};
use super::numbers::{difference, grouped, short};
use super::statistics::Spread;
use super::verdict::{HOME, behind, sentence};
use crate::data::{Cell, Run};

/// Heads of the columns; the first is left-aligned.
const COLUMNS: [&str; 8] =
    ["server", "CPU µs/query", "spread", "× floor", "vs best", "QPS", "p99 µs", "MiB"];

/// All of it: what ran, a table and a sentence for each place in the matrix, who was skipped.
pub fn text(run: &Run) -> String {
    let mut out = format!("{}: {}\n", run.suite, run.title);
    let environment = &run.environment;
    out += &format!("{}, {}, {}\n", environment.cpu, environment.kernel, environment.system);
    for group in groups(run) {
        out += &format!("\n{}", group.workload);
        if !group.place.is_empty() {
            out += &format!(" · {}", group.place);
        }
        out += "\n";
        out += &table(&group);
        out += &format!("{}\n", sentence(&group));
        for line in behind(&group) {
            out += &format!("  {HOME} behind: {line}\n");
        }
    }
    for skipped in &run.skipped {
        out += &format!("\nskipped {}: {}", skipped.server, skipped.reason);
    }
    if run.skipped.is_empty() { out } else { out + "\n" }
}

/// A row for each server; who is not ranked says why below.
fn table(group: &Group<'_>) -> String {
    let best = group
        .ranked()
        .filter_map(|cell| Figure::CpuPerQuery.of(cell))
        .min_by(|a, b| a.median.total_cmp(&b.median));
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    rows.extend(group.cells.iter().map(|cell| row(group, cell, best.as_ref())));
    let mut out = aligned(&rows);
    for cell in &group.cells {
        if let Some(reason) = &cell.unranked {
            out += &format!("  {} is not ranked: {reason}\n", cell.server);
        } else if cell.rounds.is_empty() {
            out += &format!("  {} was not measured: every round was disturbed\n", cell.server);
        }
    }
    out
}

/// A server's figures.
fn row(group: &Group<'_>, cell: &Cell, best: Option<&Spread>) -> [String; 8] {
    let show = |spread: Option<Spread>, show: fn(f64) -> String| {
        spread.map_or_else(|| "–".to_owned(), |spread| show(spread.median))
    };
    let cost = Figure::CpuPerQuery.of(cell);
    let ranked = group.ranked().any(|other| std::ptr::eq(other, cell));
    let versus = match (cost, best) {
        (Some(cost), Some(best)) if ranked && cost == *best => "best".to_owned(),
        (Some(cost), Some(best)) if ranked => difference(cost.against(best)),
        _ => "–".to_owned(),
    };
    let spread = cost
        .map_or_else(|| "–".to_owned(), |cost| format!("{}–{}", short(cost.low), short(cost.high)));
    [
        cell.server.clone(),
        show(cost, short),
        spread,
        show(group.times_floor(cell), short),
        versus,
        show(Figure::Qps.of(cell), grouped),
        show(Figure::Percentile(99_000).of(cell), short),
        show(Figure::Memory.of(cell), short),
    ]
}

/// Columns as wide as their widest text, the first to the left and the others to the right.
fn aligned(rows: &[[String; 8]]) -> String {
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
    fn the_text_says_who_is_ahead_and_where_zonda_is_behind() {
        let text = text(&run());
        assert!(text.contains("zonda is behind knot"), "{text}");
        assert!(text.contains("zonda behind: CPU per query: 1.42 µs behind knot"), "{text}");
        assert!(text.contains("coredns is not ranked: answers 12 % REFUSED"), "{text}");
        assert!(text.contains("skipped dinodns: npm is not installed"), "{text}");
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
    fn a_run_without_cells_is_still_told() {
        let run = Run { cells: Vec::new(), skipped: Vec::new(), ..run() };
        assert_eq!(text(&run).lines().count(), 2);
    }
}
