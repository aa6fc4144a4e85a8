//! The page that leads to those of several runs: a matrix of suites and servers, and for each suite
//! what it says first.

use super::tables::table;
use super::{escape, surroundings};
use crate::data::Run;
use crate::report::caveats::caveats;
use crate::report::figures::{Group, groups};
use crate::report::numbers::{capital, short};
use crate::report::verdict::{headlines, is_zonda};
use crate::statistics::Spread;

/// Returns all below the head of the page.
pub fn body(runs: &[(String, Run)]) -> String {
    let mut body = String::from("<p class=\"kicker\">zonda bench</p>\n<h1>Benchmarks</h1>\n");
    body += &matrix(runs);
    for (address, run) in runs {
        let groups = groups(run);
        let caveats = match caveats(run, &groups).len() {
            0 => String::new(),
            1 => "<p class=\"caveat\">Its page begins with a caveat.</p>\n".to_owned(),
            count => format!("<p class=\"caveat\">Its page begins with {count} caveats.</p>\n"),
        };
        let said = headlines(&groups).into_iter().next().map(|(figure, said)| {
            let (name, said) = (escape(&capital(&figure.name())), escape(&capital(&said)));
            format!("<ul class=\"short\"><li><b>{name}</b> <span>{said}</span></li></ul>\n")
        });
        body += &format!(
            "<h2><a href=\"{}\">{}</a></h2>\n<p>{}.</p>\n{}{caveats}{}",
            escape(address),
            escape(&surroundings::name_of(run)),
            escape(&run.title),
            surroundings::where_and_when(run),
            said.unwrap_or_else(|| "<p>No server can be compared.</p>\n".to_owned()),
        );
    }
    body
}

/// Returns a row for each server and a column for each suite, with what a query costs.
fn matrix(runs: &[(String, Run)]) -> String {
    let mut servers: Vec<&str> = Vec::new();
    for server in runs.iter().flat_map(|(_, run)| &run.servers).filter(|it| !it.is_floor) {
        if !servers.contains(&&*server.name) {
            servers.push(&server.name);
        }
    }
    let groups: Vec<Vec<Group<'_>>> = runs.iter().map(|(_, run)| groups(run)).collect();
    let mut head = vec!["Server".to_owned()];
    head.extend(runs.iter().zip(&groups).map(|((address, run), groups)| {
        let steady = groups.iter().filter(|group| group.unsteady().is_none()).count();
        let (address, suite) = (escape(address), escape(&run.suite));
        format!("<a href=\"{address}\">{suite}</a><br>{steady} of {} tests", groups.len())
    }));
    let rows = servers.iter().map(|server| {
        let mut row = vec![escape(server)];
        row.extend(groups.iter().map(|groups| cost(groups, server)));
        (is_zonda(server), row)
    });
    let caption =
        "CPU per query as a multiple of the reflector's: median over the tests of a suite";
    let table = table(caption, &head, rows);
    format!(
        "{table}<p class=\"note\">Small: the lowest and the highest test. Only tests in which the \
         reflector was steady, and servers that may be compared there. Servers that take part in \
         different tests of a suite are held against each other on its page, and not here.</p>\n"
    )
}

/// Returns what a query costs a server over the tests of a run.
fn cost(groups: &[Group<'_>], server: &str) -> String {
    let times = groups.iter().filter_map(|group| {
        let cell = group.cell(server).filter(|cell| group.is_ranked(cell))?;
        Some(group.times_floor(cell)?.median)
    });
    let Some(spread) = Spread::of(times) else { return "–".to_owned() };
    let range = match spread.count {
        1 => String::new(),
        _ => format!(" <small>{} – {}</small>", short(spread.low), short(spread.high)),
    };
    format!("{}{range}", short(spread.median))
}
