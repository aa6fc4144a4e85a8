//! A run as one HTML page that needs nothing else: no network, no script.
//!
//! Charts are inline SVG whose colours are CSS variables, so that one drawing serves light and
//! dark. Servers are named beside their bars and lines; colour only helps.

mod bars;
mod charts;
mod lines;
#[cfg(test)]
mod screen;
mod surroundings;
mod tables;

use super::figures::Figure;
use super::figures::{Group, groups};
use super::verdict::{HOME, Standing, behind};
use crate::data::Run;

/// Looks of the page.
const STYLE: &str = include_str!("style.css");

/// The page.
pub fn html(run: &Run) -> String {
    let groups = groups(run);
    let mut body = surroundings::heading(run);
    body += &in_short(&groups);
    let mut workload = "";
    for group in &groups {
        if group.workload != workload {
            workload = group.workload;
            body += &format!("<h2>{}</h2>\n", escape(workload));
            body += &charts::against_size(run, &groups, workload);
        }
        body += &section(run, group);
    }
    body += &tables::published(run);
    body += &surroundings::method(run);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{} · zonda bench</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         {body}</main>\n</body>\n</html>\n",
        escape(&run.suite),
    )
}

/// One sentence for each place.
fn in_short(groups: &[Group<'_>]) -> String {
    let items: String = groups
        .iter()
        .map(|group| {
            format!("<li><b>{}</b>{}</li>\n", escape(&group.label()), escape(&sentence(group)))
        })
        .collect();
    format!("<ul class=\"short\">\n{items}</ul>\n")
}

/// Who is ahead in CPU per query.
fn sentence(group: &Group<'_>) -> String {
    Standing::of(group, Figure::CpuPerQuery)
        .map_or_else(|| "No server can be ranked here.".to_owned(), |standing| standing.sentence())
}

/// All about one place in the matrix.
fn section(run: &Run, group: &Group<'_>) -> String {
    let mut text = String::new();
    if !group.place.is_empty() {
        text += &format!("<h3>{}</h3>\n", escape(&group.place));
    }
    text += &format!("<p class=\"verdict\">{}</p>\n", escape(&sentence(group)));
    text += &charts::of_group(run, group);
    text += &tables::traffic(group);
    text += &tables::cost(group);
    let lines = behind(group);
    if !lines.is_empty() {
        let items: String = lines.iter().map(|line| format!("<li>{}</li>", escape(line))).collect();
        text +=
            &format!("<div class=\"behind\"><p>Where {HOME} is behind</p><ul>{items}</ul></div>\n");
    }
    text
}

/// Text as HTML, in elements and in quoted attributes.
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
    out
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
    fn no_number_of_a_drawing_is_undefined() {
        let page = html(&run());
        assert!(!page.contains("NaN") && !page.contains("inf\""));
    }

    #[test]
    fn a_run_without_cells_is_still_a_page() {
        let page = html(&Run { cells: Vec::new(), ..run() });
        assert!(page.ends_with("</html>\n"));
    }
}
