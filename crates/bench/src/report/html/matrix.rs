//! All places of a workload in one table, a row for each and a column for each server.

use super::escape;
use super::tables::table;
use crate::paired::Relation;
use crate::report::figures::{Figure, Group};
use crate::report::numbers::{grouped, short};
use crate::report::verdict::{Ranking, is_zonda};

/// Tables of cost, rate and latency; nothing for a workload of one place.
pub fn matrix(groups: &[&Group<'_>]) -> String {
    if groups.len() < 2 {
        return String::new();
    }
    let mut servers: Vec<&str> = Vec::new();
    for cell in groups.iter().flat_map(|group| &group.cells) {
        if !servers.contains(&&*cell.server) {
            servers.push(&cell.server);
        }
    }
    let told = [
        (Figure::CpuPerQuery, "CPU time for each query, µs"),
        (Figure::Qps, "Queries answered per second"),
        (Figure::Percentile(99_000), "p99 latency at full load, µs"),
    ];
    let tables = told.iter().map(|(figure, title)| {
        let mut head = vec![String::new()];
        head.extend(servers.iter().map(|server| escape(server)));
        let rows = groups.iter().map(|group| (false, row(group, &servers, *figure)));
        format!("<div>{}</div>\n", table(title, &head, rows))
    });
    let tables: String = tables.collect();
    format!(
        "<div class=\"tables\">\n{tables}</div>\n<p class=\"note\">Medians. Bold: the best \
         median, and all that are level with it within {} ; ? is not told apart from it in this \
         run; of latencies, only of servers that answer 99.9 % of their queries. * is not \
         compared; the test below says why.</p>\n",
        escape(&Figure::CpuPerQuery.margin()),
    )
    .replace(" ; ?", "; ?")
}

/// Medians at a place.
fn row(group: &Group<'_>, servers: &[&str], figure: Figure) -> Vec<String> {
    let standing = Ranking::of(group, figure);
    let mut row = vec![escape(&group.place)];
    row.extend(servers.iter().map(|server| {
        let cell = group.cells.iter().find(|cell| cell.server == *server);
        let Some((cell, spread)) = cell.and_then(|cell| Some((cell, figure.of(cell)?))) else {
            return "–".to_owned();
        };
        let text = match figure {
            Figure::Qps => grouped(spread.median),
            _ => short(spread.median),
        };
        let standing = standing.as_ref().filter(|it| it.compares(cell));
        let against = standing.and_then(|standing| standing.against_best(cell));
        let is_best = standing.is_some() && against.is_none();
        let mark = match against {
            _ if group.reason_unranked(cell).is_some() => " *",
            Some(Relation::Undecided(_)) => " ?",
            _ => "",
        };
        let home = if is_zonda(server) { " class=\"own\"" } else { "" };
        match is_best || matches!(against, Some(Relation::Level(_))) {
            true => format!("<b{home}>{text}</b>"),
            false => format!("<span{home}>{text}</span>{mark}"),
        }
    }));
    row
}
