//! All places of a workload in one table, a row for each and a column for each server.

use super::escape;
use super::tables::table;
use crate::report::figures::{Figure, Group};
use crate::report::numbers::{grouped, short};
use crate::report::verdict::{HOME, Standing};
use crate::statistics::Difference;

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
        (Figure::Percentile(99_000), "p99 latency under the load of the rounds, µs"),
    ];
    let tables = told.iter().map(|(figure, title)| {
        let mut head = vec![String::new()];
        head.extend(servers.iter().map(|server| escape(server)));
        let rows = groups.iter().map(|group| (false, row(group, &servers, *figure)));
        format!("<div><h4>{title}</h4>\n{}</div>\n", table(&head, rows))
    });
    let tables: String = tables.collect();
    format!(
        "<div class=\"tables\">\n{tables}</div>\n<p class=\"note\">Bold: the best, and all that do \
         not differ from it beyond noise; of latencies, only of servers that answer 99.9 % of \
         their queries. * is not ranked; the place below says why.</p>\n"
    )
}

/// Medians at a place.
fn row(group: &Group<'_>, servers: &[&str], figure: Figure) -> Vec<String> {
    let standing = Standing::of(group, figure);
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
        let best = standing.as_ref().filter(|_| group.is_ranked(cell)).map(Standing::best);
        let is_best = best.is_some_and(|best| figure.against(&spread, best) == Difference::None);
        let mark = if group.reason_unranked(cell).is_some() { " *" } else { "" };
        let home = if *server == HOME { " class=\"own\"" } else { "" };
        if is_best {
            format!("<b{home}>{text}</b>")
        } else {
            format!("<span{home}>{text}</span>{mark}")
        }
    }));
    row
}
