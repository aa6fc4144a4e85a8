//! The tables of original reports, with what was measured here in columns beside theirs.

use super::escape;
use super::tables::table;
use crate::data::{Beside, Cell, Run, Table, Traffic};
use crate::report::figures::{Figure, Group, cpu_secs, place};
use crate::report::numbers::{difference, grouped};
use crate::report::statistics::Spread;
use crate::report::verdict::HOME;
use std::collections::{BTreeMap, BTreeSet};

/// More places than this in one table, and only the server at home joins those of the report.
const PLACES_MAX: usize = 4;

/// All tables; nothing for a suite that repeats no report.
pub fn published(run: &Run, groups: &[Group<'_>]) -> String {
    if run.published.is_empty() {
        return String::new();
    }
    let mut text = "<h2>Beside the original report</h2>\n<p>Each figure as it was published, by \
                    others on other machines, and as it was measured here. The one cannot be \
                    held against the other; the order of servers can.</p>\n"
        .to_owned();
    for original in &run.published {
        let rows = rows(original, groups);
        text += &format!("<h3>{}</h3>\n", escape(&original.title));
        let found = match rows.iter().any(|row| row.cell.is_some()) {
            true => beside(original, &rows),
            false => alone(original),
        };
        text += &format!("<div class=\"beside\">{found}</div>");
        text += &format!("<p class=\"note\">Published: {}.</p>\n", escape(&original.source));
    }
    text
}

/// A table of which nothing was measured.
fn alone(original: &Table) -> String {
    let escaped = |cells: &[String]| cells.iter().map(|cell| escape(cell)).collect();
    let head: Vec<String> = escaped(&original.columns);
    let note = "<p class=\"note\">Nothing of it was measured in this run.</p>\n";
    table(&head, original.rows.iter().map(|row| (false, escaped(row)))) + note
}

/// A row of the report, of a server that the report does not have, or both.
struct Row<'a> {
    /// Its cells as published; none when the report has no such row.
    published: Option<&'a [String]>,
    /// The name of the row when it was not published.
    name: String,
    /// What was measured.
    cell: Option<&'a Cell>,
    /// What the row is compared with: the first that was measured at its place.
    base: Option<&'a Cell>,
}

/// The report's rows, and behind the last of each place those of other servers.
fn rows<'a>(original: &'a Table, groups: &[Group<'a>]) -> Vec<Row<'a>> {
    let nowhere = Beside::default();
    let besides: Vec<&Beside> = (0..original.rows.len())
        .map(|index| original.beside.get(index).unwrap_or(&nowhere))
        .collect();
    let found: Vec<Option<&Group<'a>>> = besides
        .iter()
        .map(|beside| groups.iter().find(|group| stands_for(group, beside)))
        .collect();
    let mut places: Vec<String> = found.iter().flatten().map(|group| group.label()).collect();
    places.dedup();
    let all_join = places.len() <= PLACES_MAX;
    let mut rows = Vec::new();
    for (index, published) in original.rows.iter().enumerate() {
        let group = found[index];
        let of = |name: &str| {
            group.and_then(|group| group.cells.iter().copied().find(|cell| cell.server == name))
        };
        let cell = besides[index].server.as_deref().and_then(of);
        let same = |other: &usize| found[*other].map(Group::label) == group.map(Group::label);
        let here: Vec<usize> = (0..besides.len()).filter(same).collect();
        let names: Vec<&str> =
            here.iter().filter_map(|index| besides[*index].server.as_deref()).collect();
        let base = names.iter().find_map(|name| of(name));
        rows.push(Row { published: Some(published), name: String::new(), cell, base });
        if here.last() == Some(&index) {
            let others = group
                .into_iter()
                .flat_map(|group| group.cells.iter().copied().filter(|cell| !group.is_floor(cell)));
            rows.extend(
                others
                    .filter(|cell| !names.contains(&&*cell.server))
                    .filter(|cell| all_join || cell.server == HOME)
                    .map(|cell| Row {
                        published: None,
                        name: cell.server.clone(),
                        cell: Some(cell),
                        base,
                    }),
            );
        }
    }
    rows
}

/// Whether a group is the one that a row tells of.
fn stands_for(group: &Group<'_>, beside: &Beside) -> bool {
    let Some(cell) = group.cells.first() else { return false };
    group.workload == beside.workload
        && beside.place.iter().all(|(axis, value)| cell.place.get(axis) == Some(value))
}

/// The table: columns that can be measured are double, as published and as measured.
fn beside(original: &Table, rows: &[Row<'_>]) -> String {
    let measures: Vec<Option<Measure>> =
        original.columns.iter().map(|column| Measure::named(column)).collect();
    let mut head = Vec::new();
    for (column, measure) in original.columns.iter().zip(&measures) {
        head.push(escape(column));
        if measure.is_some() {
            head.push("here".to_owned());
        }
    }
    let body = rows.iter().map(|row| (is_home(row), cells(row, &measures)));
    let measured: BTreeSet<String> = rows.iter().filter_map(|row| Some(place(row.cell?))).collect();
    let mut notes = String::new();
    if let Some(one) = measured.first().filter(|place| measured.len() == 1 && !place.is_empty()) {
        notes += &format!("<p class=\"note\">Here: {}.</p>\n", escape(one));
    }
    if rows.iter().any(|row| row.cell.is_some_and(|cell| cell.unranked.is_some())) {
        notes += "<p class=\"note\">* is not ranked; its place above says why.</p>\n";
    }
    table(&head, body) + &notes
}

/// Whether the row is the server's at home.
fn is_home(row: &Row<'_>) -> bool {
    row.cell.is_some_and(|cell| cell.server == HOME)
}

/// The cells of a row.
fn cells(row: &Row<'_>, measures: &[Option<Measure>]) -> Vec<String> {
    let mark = if row.cell.is_some_and(|cell| cell.unranked.is_some()) { " *" } else { "" };
    let mut cells = Vec::new();
    for (index, measure) in measures.iter().enumerate() {
        let text = row.published.and_then(|texts| texts.get(index)).map_or("", String::as_str);
        cells.push(match (index, row.published) {
            (0, Some(_)) => escape(text) + mark,
            (0, None) => escape(&row.name) + mark,
            _ => published_cell(text, *measure),
        });
        if let Some(measure) = measure {
            let text = row.cell.and_then(|cell| measure.of(cell, row.base));
            cells.push(match text {
                Some(text) => format!("<span class=\"here\">{text}</span>"),
                None => "–".to_owned(),
            });
        }
    }
    cells
}

/// A cell of the report; what it says in brackets goes below where columns are many.
fn published_cell(text: &str, measure: Option<Measure>) -> String {
    match text.split_once(" (").filter(|_| measure.is_some()) {
        Some((figure, more)) => format!("{} <small>({}</small>", escape(figure), escape(more)),
        None => escape(text),
    }
}

/// A column of original reports that is measured here.
#[derive(Clone, Copy)]
enum Measure {
    /// Queries sent in all rounds.
    Sent,
    /// Queries answered.
    Completed,
    /// Queries lost.
    Lost,
    /// Shares of RCODEs.
    Rcodes,
    /// A figure in the unit of the column, which is so many of the figure's.
    Of(Figure, f64),
    /// The standard deviation of latency, in seconds.
    Deviation,
    /// The share of queries that were answered, in percent.
    Success,
    /// The share of queries that were not, in percent.
    Failure,
    /// CPU time of the server, in percent of one CPU.
    CpuShare,
}

impl Measure {
    /// What a column's head names, as the reports write it.
    fn named(column: &str) -> Option<Self> {
        let (seconds, millis) = (1e6, 1e3);
        Some(match column.to_ascii_lowercase().as_str() {
            "queries sent" => Self::Sent,
            "queries completed" => Self::Completed,
            "queries lost" => Self::Lost,
            "response codes" => Self::Rcodes,
            "qps" | "queries per second" | "qps (median)" | "qps (a record)" => {
                Self::Of(Figure::Qps, 1.0)
            }
            "average latency (s)" => Self::Of(Figure::LatencyMean, seconds),
            "avg latency (ms)" => Self::Of(Figure::LatencyMean, millis),
            "latency (p50)" => Self::Of(Figure::Percentile(50_000), millis),
            "latency (p99)" => Self::Of(Figure::Percentile(99_000), millis),
            "latency stddev (s)" => Self::Deviation,
            "success rate (%)" => Self::Success,
            "failure rate (%)" => Self::Failure,
            "cpu usage" => Self::CpuShare,
            "memory (base)" => Self::Of(Figure::Memory, 1.0),
            _ => return None,
        })
    }

    /// Its text for a cell; a rate or latency with what it differs from the base's.
    fn of(self, cell: &Cell, base: Option<&Cell>) -> Option<String> {
        if cell.rounds.is_empty() {
            return None;
        }
        let total = |count: fn(&Traffic) -> u64| -> f64 {
            cell.rounds.iter().map(|round| count(&round.traffic)).sum::<u64>() as f64
        };
        let (sent, completed) = (total(|it| it.sent), total(|it| it.completed));
        Some(match self {
            Self::Sent => grouped(sent),
            Self::Completed => grouped(completed),
            Self::Lost => grouped(total(|it| it.lost)),
            Self::Rcodes => rcodes(cell),
            Self::Of(figure, unit) => {
                let spread = figure.of(cell)?;
                let text = match figure {
                    Figure::Qps => grouped(spread.median),
                    Figure::Memory => format!("{:.0} MiB", spread.median),
                    _ => format!("{:.*}", if unit > 1e4 { 6 } else { 3 }, spread.median / unit),
                };
                let base =
                    base.filter(|base| base.server != cell.server && cell.unranked.is_none());
                base.and_then(|base| figure.of(base)).map_or(text.clone(), |base| {
                    let change = difference(figure.against(&spread, &base));
                    format!("{text} <small>{change}</small>")
                })
            }
            Self::Deviation => {
                let deviations = cell.rounds.iter().map(|round| round.latency.deviation);
                let spread = Spread::of(deviations)?;
                format!("{:.6}", spread.median / 1e6)
            }
            Self::CpuShare => {
                let shares = cell.rounds.iter().map(|round| cpu_secs(round) / round.seconds);
                format!("{:.0}%", Spread::of(shares)?.median * 100.0)
            }
            Self::Success => format!("{:.2}%", completed * 100.0 / sent),
            Self::Failure => format!("{:.2}%", (sent - completed) * 100.0 / sent),
        })
    }
}

/// Shares of RCODEs, the most frequent first.
fn rcodes(cell: &Cell) -> String {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (rcode, count) in cell.rounds.iter().flat_map(|round| &round.traffic.rcodes) {
        *counts.entry(rcode).or_default() += count;
    }
    let total: u64 = counts.values().sum();
    let mut shares: Vec<(&str, u64)> = counts.into_iter().collect();
    shares.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let parts = shares
        .iter()
        .map(|(rcode, count)| format!("{rcode} {:.2}%", *count as f64 * 100.0 / total as f64));
    escape(&parts.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{Suite, spec::Workload};

    /// Whether a workload has what a row tells of.
    fn has(suite: &Suite, workload: &Workload, beside: &Beside) -> bool {
        let places = workload.places.iter();
        let matches = |place: &BTreeMap<String, String>| {
            beside.place.iter().all(|(axis, value)| place.get(axis) == Some(value))
        };
        let servers = workload.servers.as_ref().unwrap_or(&suite.servers);
        (beside.place.is_empty() || places.into_iter().any(matches))
            && beside.server.as_ref().is_none_or(|server| servers.contains(server))
    }

    #[test]
    fn what_shipped_suites_put_beside_a_published_row_is_what_they_measure() {
        for suite in Suite::shipped() {
            for table in &suite.published {
                assert!([0, table.rows.len()].contains(&table.beside.len()), "{}", table.title);
                for beside in table.beside.iter().filter(|beside| !beside.workload.is_empty()) {
                    let mut workloads = suite.workloads.iter();
                    let workload = workloads.find(|it| it.name == beside.workload);
                    assert!(workload.is_some_and(|it| has(&suite, it, beside)), "{beside:?}");
                }
                let heads = table.columns.iter().filter_map(|head| Measure::named(head));
                assert!(table.beside.is_empty() || heads.count() > 0, "{}", table.title);
            }
        }
    }
}
