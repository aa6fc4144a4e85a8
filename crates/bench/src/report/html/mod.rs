//! A run as one HTML page that needs nothing else: no network, no script.
//!
//! Charts are inline SVG whose colours are CSS variables, so that one drawing serves light and
//! dark. Servers are named beside their bars and lines; colour only helps.

mod bars;
mod charts;
#[cfg(test)]
mod contrast;
mod index;
mod lines;
mod matrix;
mod measure;
mod published;
#[cfg(test)]
mod screen;
mod surroundings;
mod tables;

use super::aims::aims;
use super::caveats::caveats;
use super::figures::{Group, groups};
use super::numbers::capital;
use super::verdict::{HOME, behind, headlines, missing};
use crate::data::Run;

/// Looks of the page.
const STYLE: &str = include_str!("style.css");
/// A workload with more tests than this has them folded below the table of all of them.
const PLACES_OPEN_MAX: usize = 2;

/// Returns the page of a run.
pub fn html(run: &Run) -> String {
    let groups = groups(run);
    let mut body = surroundings::heading(run);
    body += &in_short(run, &groups);
    let mut names: Vec<&str> = groups.iter().map(|group| group.workload).collect();
    names.dedup();
    for name in names {
        let own: Vec<&Group<'_>> = groups.iter().filter(|group| group.workload == name).collect();
        body += &workload(run, &own);
    }
    body += &published::published(run, &groups);
    body += &surroundings::method(run);
    page(&format!("{} · zonda bench", surroundings::name_of(run)), &body)
}

/// Returns a page that leads to those of several runs, each with the address of its own page.
pub fn index(runs: &[(String, Run)]) -> String {
    page("Benchmarks · zonda bench", &index::body(runs))
}

/// Returns a whole page around its body.
fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         {body}</main>\n</body>\n</html>\n",
        escape(title),
    )
}

/// Returns what the run says, a sentence for each figure, and what to know before believing it.
fn in_short(run: &Run, groups: &[Group<'_>]) -> String {
    let caveats: String = caveats(run, groups)
        .iter()
        .map(|caveat| format!("<p class=\"caveat\">{}</p>\n", escape(caveat)))
        .collect();
    let items: String = headlines(groups)
        .iter()
        .map(|(figure, said)| {
            let (name, said) = (escape(&capital(&figure.name())), escape(&capital(said)));
            format!("<li><b>{name}</b> <span>{said}</span></li>\n")
        })
        .collect();
    match items.is_empty() {
        true => format!("{caveats}<p>No server can be compared.</p>\n"),
        false => format!("{caveats}<ul class=\"short\">\n{items}</ul>\n"),
    }
}

/// Returns all tests of a workload: together, then each.
fn workload(run: &Run, groups: &[&Group<'_>]) -> String {
    let mut text = format!("<h2>{}</h2>\n", escape(groups[0].workload));
    text += &charts::against_size(run, groups);
    text += &matrix::matrix(groups);
    for group in groups {
        let section = section(run, group);
        let name = escape(&group.place);
        text += &match (group.place.is_empty(), groups.len() > PLACES_OPEN_MAX) {
            (true, _) => section,
            (false, false) => format!("<h3>{name}</h3>\n{section}"),
            (false, true) => format!(
                "<details class=\"place\"><summary><b>{name}</b></summary>\n{section}</details>\n"
            ),
        };
    }
    text
}

/// Returns all about one place in the matrix.
fn section(run: &Run, group: &Group<'_>) -> String {
    let mut text = charts::of_group(run, group);
    if let Some(why) = group.unsteady() {
        text += &format!("<p class=\"caveat\">Nothing is compared here: {}.</p>\n", escape(&why));
    }
    for (lines, title) in [(behind(group), "is behind"), (missing(group), "has no figure")] {
        if !lines.is_empty() {
            let item = |line: &String| format!("<li>{}</li>", escape(line));
            let items: String = lines.iter().map(item).collect();
            text += &format!(
                "<div class=\"behind\"><p>Where {HOME} {title}</p><ul>{items}</ul></div>\n"
            );
        }
    }
    let aims: String =
        aims(group).iter().map(|line| format!("<li>{}</li>", escape(line))).collect();
    if !aims.is_empty() {
        text += &format!("<p>What {HOME} is to reach</p><ul>{aims}</ul>\n");
    }
    text + &tables::traffic(group) + &tables::cost(group)
}

/// Text as HTML, in elements and in quoted attributes; numbers keep their units on the line.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    ["%", "µs", "ms", "×"]
        .iter()
        .fold(out, |out, unit| out.replace(&format!(" {unit}"), &format!("\u{a0}{unit}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::run;

    #[test]
    fn the_page_needs_no_network_and_no_script() {
        let page = html(&run());
        for needle in ["http:", "https:", "<script", "@import", "url("] {
            assert!(!page.contains(needle), "{needle}");
        }
    }

    #[test]
    fn text_of_the_run_is_never_markup() {
        let page = html(&run());
        assert!(page.contains("&lt;made up for tests&gt;"));
        assert!(!page.contains("<made up"));
    }

    #[test]
    fn what_was_published_stands_beside_what_was_measured() {
        let page = html(&run());
        let row = page.lines().find(|line| line.contains("<td>CoreDNS</td>")).unwrap_or_default();
        assert!(row.contains("<td>10</td><td><span class=\"here\">57,803"), "{row}");
        assert!(page.contains("<td>zonda</td><td></td><td></td><td><span class=\"here\">"));
        assert!(page.contains("Changes are from coredns."));
        assert!(page.contains("<h3>Left out of the report</h3>"));
    }

    #[test]
    fn the_index_leads_to_each_page() {
        let page = index(&[("a.html".to_owned(), run()), ("b&c.html".to_owned(), run())]);
        assert!(page.contains("<a href=\"a.html\">DinoDNS and CoreDNS</a>"), "{page}");
        assert!(page.contains("<a href=\"b&amp;c.html\">"));
    }

    #[test]
    fn a_run_without_cells_is_still_a_page() {
        let page = html(&Run { cells: Vec::new(), ..run() });
        assert!(page.ends_with("</html>\n"));
    }
}
