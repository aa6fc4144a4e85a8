//! Pages with programs in Rust, without the lines that make them whole.
//!
//! A page is kept in `crates/app/pages`, as `rustdoc` tests it: lines of a program that begin with
//! `# ` start the server and look at its replies. `rustdoc` and mdBook hide them, but a code host
//! shows them, so that `docs` has the page without.

use crate::tidy::Tree;

/// The folder in which pages are kept.
const SOURCES: &str = "crates/app/pages/";
/// The end of a kept page's name, behind that of the page.
const SUFFIX: &str = ".in";

/// Returns the pages in `docs`, each with its path.
pub fn pages(tree: &Tree) -> Vec<(String, String)> {
    let kept = tree.ending(SUFFIX).filter_map(|(path, text)| {
        let name = path.strip_prefix(SOURCES)?.strip_suffix(SUFFIX)?;
        Some((format!("docs/{name}"), with_notice(&shown(text), path)))
    });
    kept.collect()
}

/// Returns the paths of pages that are not as they are kept.
pub fn stale(tree: &Tree) -> Vec<String> {
    let pages = pages(tree).into_iter();
    pages.filter(|(path, page)| tree.text(path) != Some(page)).map(|(path, _)| path).collect()
}

/// Returns the lines of pages that `rustdoc` would hide, each as a path and a number from 1.
pub fn hidden_lines(tree: &Tree) -> Vec<(&str, usize)> {
    let mut lines = Vec::new();
    for (path, text) in tree.ending(".md") {
        let mut is_rust = None;
        for (index, line) in text.lines().enumerate() {
            is_rust = fence(line, is_rust);
            if is_rust == Some(true) && is_hidden(line) {
                lines.push((path, index + 1));
            }
        }
    }
    lines
}

/// Returns a page with the note of where it is kept, below its title.
fn with_notice(page: &str, source: &str) -> String {
    let note = format!("\n\n<!-- Made by `cargo xtask generate` from {source}. -->\n");
    page.replacen('\n', &note, 1)
}

/// Returns a page without the hidden lines of its programs, and without the empty lines that these
/// leave at the ends of a block and beside empty lines that stay.
fn shown(text: &str) -> String {
    let (mut page, mut is_rust, mut is_behind_blank) = (String::new(), None, false);
    for line in text.lines() {
        let was_rust = is_rust == Some(true);
        is_rust = fence(line, is_rust);
        let is_code = was_rust && is_rust == Some(true);
        if is_code && (is_hidden(line) || (line.is_empty() && is_behind_blank)) {
            continue;
        }
        if was_rust && !is_code && page.ends_with("\n\n") {
            page.pop();
        }
        page.push_str(line);
        page.push('\n');
        // The line that opens a block counts as an empty one.
        is_behind_blank = line.is_empty() || (!was_rust && is_rust == Some(true));
    }
    page
}

/// Returns whether the block that is open behind a line is of Rust; none if no block is open.
fn fence(line: &str, is_rust: Option<bool>) -> Option<bool> {
    match (line.strip_prefix("```"), is_rust) {
        (None, _) => is_rust,
        (Some(_), Some(_)) => None,
        (Some(language), None) => Some(language.split(',').next() == Some("rust")),
    }
}

/// Whether `rustdoc` hides a line of a program.
fn is_hidden(line: &str) -> bool {
    let line = line.trim_start();
    line == "#" || line.starts_with("# ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: &str = "\
# Page

```rust,no_run
# fn main() {
#
let app = 1;

# let more = app;

#[derive(Debug)]
struct Own;

# }
```

```sh
# a comment
```
";
    const SHOWN: &str = "\
# Page

<!-- Made by `cargo xtask generate` from crates/app/pages/page.md.in. -->

```rust,no_run
let app = 1;

#[derive(Debug)]
struct Own;
```

```sh
# a comment
```
";

    #[test]
    fn a_page_has_no_hidden_lines_and_no_gaps_where_they_were() {
        let tree = Tree::of(&[("crates/app/pages/page.md.in", KEPT)]);
        assert_eq!(pages(&tree), [("docs/page.md".to_owned(), SHOWN.to_owned())]);
    }

    #[test]
    fn a_page_that_differs_from_the_kept_one_is_stale() {
        let kept = ("crates/app/pages/page.md.in", KEPT);
        assert_eq!(stale(&Tree::of(&[kept, ("docs/page.md", SHOWN)])), [""; 0]);
        let other = SHOWN.replace("Own", "Other");
        assert_eq!(stale(&Tree::of(&[kept, ("docs/page.md", &other)])), ["docs/page.md"]);
    }

    #[test]
    fn a_hidden_line_in_any_page_is_found() {
        let page = "```rust\n# fn main() {}\n```\n```sh\n# not this\n```\n";
        assert_eq!(hidden_lines(&Tree::of(&[("README.md", page)])), [("README.md", 2)]);
    }
}
