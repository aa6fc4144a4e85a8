//! The tables of original reports, with what was measured here in columns beside theirs.

use super::escape;
use super::measure::Measure;
use super::tables::table;
use crate::data::{Beside, Cell, Run, Table};
use crate::report::figures::{Group, place};
use crate::report::verdict::HOME;
use std::collections::BTreeSet;

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
    /// What was measured.
    cell: Option<&'a Cell>,
    /// What it is compared with: the first of the report's servers that was measured at its place.
    base: Option<&'a Cell>,
}

/// The report's rows, and behind the last of each place those of other servers.
fn rows<'a>(original: &'a Table, groups: &'a [Group<'a>]) -> Vec<Row<'a>> {
    let group_of = |beside: &&Beside| groups.iter().find(|group| stands_for(group, beside));
    let besides: Vec<Option<&Beside>> =
        (0..original.rows.len()).map(|index| original.beside.get(index)).collect();
    let found: Vec<Option<&Group<'_>>> =
        besides.iter().map(|beside| beside.as_ref().and_then(group_of)).collect();
    let is_at = |index: usize, group: &Group<'_>| {
        found[index].is_some_and(|other| std::ptr::eq(other, group))
    };
    let places = groups.iter().filter(|group| (0..found.len()).any(|index| is_at(index, group)));
    let all_join = places.count() <= PLACES_MAX;
    let mut rows = Vec::new();
    for (index, published) in original.rows.iter().enumerate() {
        let published = Some(&published[..]);
        let Some(group) = found[index] else {
            rows.push(Row { published, cell: None, base: None });
            continue;
        };
        let server = |index: usize| besides[index].and_then(|beside| beside.server.as_deref());
        let here = (0..found.len()).filter(|other| is_at(*other, group));
        let names: Vec<&str> = here.filter_map(server).collect();
        let base = names.iter().find_map(|name| group.cell(name));
        rows.push(Row { published, cell: server(index).and_then(|name| group.cell(name)), base });
        if (index + 1..found.len()).any(|later| is_at(later, group)) {
            continue;
        }
        let others = group.cells.iter().filter(|cell| {
            let is_told = names.contains(&&*cell.server) || group.is_floor(cell);
            !is_told && (all_join || cell.server == HOME)
        });
        rows.extend(others.map(|cell| Row { published: None, cell: Some(cell), base }));
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
        let name = if row.published.is_some() { None } else { row.cell.map(|it| &*it.server) };
        cells.push(match index {
            0 => escape(name.unwrap_or(text)) + mark,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::{Suite, spec::Workload};
    use std::collections::BTreeMap;

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
