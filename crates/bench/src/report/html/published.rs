//! The tables of original reports, with what was measured here in columns beside theirs.

use super::escape;
use super::measure::Measure;
use super::surroundings::left_out;
use super::tables::table;
use crate::data::{Cell, PublishedStandIn, Run, Table};
use crate::report::figures::{Figure, Group, place};
use crate::report::verdict::{HOME, list};
use std::collections::BTreeSet;

/// With more rows than this in a report, only the server at home is shown beside its rows.
const ROWS_MAX: usize = 6;
/// More servers than this have rows of their own instead of columns.
const COLUMNS_MAX: usize = 2;

/// Returns all tables; nothing for a suite that repeats no report.
pub fn published(run: &Run, groups: &[Group<'_>]) -> String {
    if run.published.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "<h2>Beside the original report</h2>\n<p>Each figure as it was published, by other people \
         on other machines, and as it was measured here. The one cannot be held against the other; \
         the order of servers can. Small figures are the change from the first server of the \
         report in the same test; = is level within {}, ? is not told apart in this run.</p>\n",
        escape(&Figure::Qps.margin())
    );
    for original in &run.published {
        let told = told(original, groups);
        let beside = match told.iter().all(|row| row.server.is_none()) {
            true => in_columns(&told).unwrap_or_else(|| in_rows(&told)),
            false => in_rows(&told),
        };
        let found = if beside.is_measured() { with(original, &beside) } else { alone(original) };
        text += &format!(
            "<h3>{}</h3>\n<div class=\"beside\">{found}</div>{}\
             <p class=\"note\">Published: {}.</p>\n",
            escape(&original.title),
            base_note(&beside),
            escape(&original.source)
        );
    }
    let left_out: String =
        left_out(run).iter().map(|what| format!("<li>{}</li>\n", escape(what))).collect();
    if !left_out.is_empty() {
        text += &format!("<h3>Left out of the report</h3>\n<ul>\n{left_out}</ul>\n");
    }
    text
}

/// Returns which servers the changes of a table are from.
fn base_note(measured: &MeasuredTable<'_>) -> String {
    let bases: BTreeSet<&str> =
        measured.rows.iter().filter_map(|row| Some(&*row.base?.server)).collect();
    let bases: Vec<&str> = bases.into_iter().collect();
    match bases.is_empty() {
        true => String::new(),
        false => format!("<p class=\"note\">Changes are from {}.</p>\n", escape(&list(&bases))),
    }
}

/// Returns a table of which nothing was measured.
fn alone(original: &Table) -> String {
    let escaped = |cells: &[String]| cells.iter().map(|cell| escape(cell)).collect();
    let head: Vec<String> = escaped(&original.columns);
    let note = "<p class=\"note\">Nothing of it was measured in this run.</p>\n";
    table("As published", &head, original.rows.iter().map(|row| (false, escaped(row)))) + note
}

/// A row of the report.
struct ReportRow<'a> {
    /// Cells of the row.
    published: &'a [String],
    /// Server of the row, if this bench measures it.
    server: Option<&'a str>,
    /// Group in which the row was measured.
    group: Option<&'a Group<'a>>,
}

/// Returns the rows of a report.
fn told<'a>(original: &'a Table, groups: &'a [Group<'a>]) -> Vec<ReportRow<'a>> {
    let row = |(index, published): (usize, &'a Vec<String>)| {
        let beside = original.beside.get(index);
        let server = beside.and_then(|beside| beside.server.as_deref());
        let group = beside.and_then(|beside| groups.iter().find(|group| stands_for(group, beside)));
        ReportRow { published, server, group }
    };
    original.rows.iter().enumerate().map(row).collect()
}

/// Measured figures that are put beside a published report.
struct MeasuredTable<'a> {
    /// Heads of the columns that follow each column of the report that is measured.
    heads: Vec<&'a str>,
    /// Rows of the report, and of servers that it does not have.
    rows: Vec<Row<'a>>,
}

/// A row of the report, of a server that the report does not have, or both.
struct Row<'a> {
    /// Cells as published; none when the report has no such row.
    published: Option<&'a [String]>,
    /// A row of the report about the same test; what it says of the test, such as the kind
    /// of names, holds for this row, too.
    same_test: Option<&'a [String]>,
    /// Measured cells, as many as there are heads.
    cells: Vec<Option<&'a Cell>>,
    /// Cell for comparison: the first of the report's servers that was measured at its place.
    base: Option<&'a Cell>,
}

impl MeasuredTable<'_> {
    /// Whether any figure was measured.
    fn is_measured(&self) -> bool {
        self.cells().next().is_some()
    }

    /// Returns all that was measured.
    fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.rows.iter().flat_map(|row| row.cells.iter().copied().flatten())
    }
}

/// Returns a column for each server, where the report is about places only; none for too many
/// servers.
fn in_columns<'a>(told: &[ReportRow<'a>]) -> Option<MeasuredTable<'a>> {
    let mut heads: Vec<&str> = Vec::new();
    for group in told.iter().filter_map(|row| row.group) {
        for cell in group.cells.iter().filter(|cell| !group.is_floor(cell)) {
            if !heads.contains(&&*cell.server) {
                heads.push(&cell.server);
            }
        }
    }
    let row = |row: &ReportRow<'a>| Row {
        published: Some(row.published),
        same_test: None,
        cells: heads.iter().map(|server| row.group.and_then(|group| group.cell(server))).collect(),
        base: None,
    };
    let rows = told.iter().map(row).collect();
    (heads.len() <= COLUMNS_MAX).then_some(MeasuredTable { heads, rows })
}

/// Returns one column, with rows for other servers behind the last of the report's at each place.
fn in_rows<'a>(told: &[ReportRow<'a>]) -> MeasuredTable<'a> {
    let mut rows = Vec::new();
    for (index, row) in told.iter().enumerate() {
        let published = Some(row.published);
        let Some(group) = row.group else {
            rows.push(Row { published, same_test: None, cells: vec![None], base: None });
            continue;
        };
        let is_here =
            |other: &&ReportRow<'_>| other.group.is_some_and(|other| std::ptr::eq(other, group));
        let names: Vec<&str> = told.iter().filter(is_here).filter_map(|it| it.server).collect();
        let base = names.iter().find_map(|name| group.cell(name));
        let own = row.server.and_then(|server| group.cell(server));
        rows.push(Row { published, same_test: None, cells: vec![own], base });
        if told[index + 1..].iter().any(|later| is_here(&later)) {
            continue;
        }
        let others = group.cells.iter().filter(|cell| {
            let is_told = names.contains(&&*cell.server) || group.is_floor(cell);
            !is_told && (told.len() <= ROWS_MAX || cell.server == HOME)
        });
        let same_test = Some(row.published);
        let row =
            |cell: &&'a Cell| Row { published: None, same_test, cells: vec![Some(*cell)], base };
        rows.extend(others.map(row));
    }
    MeasuredTable { heads: vec!["here"], rows }
}

/// Whether a group is the one that a row is about.
fn stands_for(group: &Group<'_>, beside: &PublishedStandIn) -> bool {
    let Some(cell) = group.cells.first() else { return false };
    group.workload == beside.workload
        && beside.place.iter().all(|(axis, value)| cell.place.get(axis) == Some(value))
}

/// Returns the table: columns that can be measured are followed by what was.
fn with(original: &Table, measured: &MeasuredTable<'_>) -> String {
    let measures: Vec<Option<Measure>> =
        original.columns.iter().map(|column| Measure::named(column)).collect();
    let mut head = Vec::new();
    for (column, measure) in original.columns.iter().zip(&measures) {
        head.push(escape(column));
        if measure.is_some() {
            head.extend(measured.heads.iter().map(|head| escape(head)));
        }
    }
    let body = measured.rows.iter().map(|row| (is_zonda_row(row), cells(row, &measures)));
    let places: BTreeSet<String> = measured.cells().map(place).collect();
    let mut notes = String::new();
    if let Some(one) = places.first().filter(|place| places.len() == 1 && !place.is_empty()) {
        notes += &format!("<p class=\"note\">Here: {}.</p>\n", escape(one));
    }
    if measured.cells().any(|cell| cell.unranked.is_some()) {
        notes += "<p class=\"note\">* is not compared; its test above says why.</p>\n";
    }
    table("As published, and as measured here in colour", &head, body) + &notes
}

/// Whether the row is that of the server at home.
fn is_zonda_row(row: &Row<'_>) -> bool {
    row.published.is_none() && row.cells.iter().flatten().any(|cell| cell.server == HOME)
}

/// Returns the cells of a row.
fn cells(row: &Row<'_>, measures: &[Option<Measure>]) -> Vec<String> {
    let is_marked = |cell: &Cell| cell.unranked.is_some();
    let mark = if row.cells.iter().flatten().any(|it| is_marked(it)) { " *" } else { "" };
    let texts = row.published.unwrap_or_default();
    let server = row.cells.iter().flatten().map(|cell| &*cell.server).next();
    let name = texts.first().map(String::as_str).or(server).unwrap_or_default();
    let mut cells = Vec::new();
    for (index, measure) in measures.iter().enumerate() {
        cells.push(match index {
            0 => escape(name) + mark,
            _ => {
                let own = texts.get(index).map_or("", String::as_str);
                let shared = row.same_test.and_then(|texts| texts.get(index));
                let is_of_test = measure.is_none() && own.is_empty();
                let text = shared.filter(|text| is_of_test && !is_figure(text));
                published_cell(text.map_or(own, String::as_str), *measure)
            }
        });
        let Some(measure) = measure else { continue };
        cells.extend(row.cells.iter().map(|cell| {
            let text = cell.and_then(|cell| measure.of(cell, row.base, name));
            text.map_or("–".to_owned(), |text| format!("<span class=\"here\">{text}</span>"))
        }));
    }
    cells
}

/// Whether a cell of a report holds a figure, and not a word about the test.
fn is_figure(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit() || "~<>-–".contains(first))
}

/// Returns a cell of the report; what it says in brackets, or of several RCODEs, goes below where
/// columns are many.
fn published_cell(text: &str, measure: Option<Measure>) -> String {
    match (measure, text.split_once(" (")) {
        (Some(Measure::Rcodes), _) => escape(text).replace(", ", "<br>"),
        (Some(_), Some((figure, more))) => {
            format!("{} <small>({}</small>", escape(figure), escape(more))
        }
        _ => escape(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{Suite, spec::Workload};
    use std::collections::BTreeMap;

    /// Whether a workload has what a row is about.
    fn has(suite: &Suite, workload: &Workload, beside: &PublishedStandIn) -> bool {
        let places = workload.places.iter();
        let matches = |place: &BTreeMap<String, String>| {
            beside.place.iter().all(|(axis, value)| place.get(axis) == Some(value))
        };
        let servers = workload.servers.as_ref().unwrap_or(&suite.servers);
        (beside.place.is_empty() || places.into_iter().any(matches))
            && beside.server.as_ref().is_none_or(|server| servers.contains(server))
    }

    #[test]
    fn stand_ins_for_published_rows_are_measured_by_the_shipped_suites() {
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
