//! Links in Markdown lead somewhere, and its TOML and JSON can be read.
//!
//! Checked: relative links and images (the file or folder exists; from a page of `docs/`, which is
//! published as a book, it lies there), their `#anchors` (a heading of the Markdown file has it),
//! and every block marked `toml` or `json` parses. Not checked: links to other sites. Shell blocks
//! that say so are run by `bin/zonda/tests/docs.rs`.

use toml::de::DeTable;

use super::{Finding, Tree};

/// Looks at every Markdown file.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending(".md") {
        let parts = Markdown::parse(text);
        for link in &parts.links {
            if let Err(what) = resolve(tree, path, &link.text) {
                findings.push(Finding::new(path, link.line, what));
            }
        }
        for block in &parts.blocks {
            if let Err(what) = block.parses() {
                findings.push(Finding::new(path, block.line, what));
            }
        }
    }
    findings
}

/// A piece of a Markdown file and the line on which it begins.
struct Piece {
    line: usize,
    text: String,
}

/// A fenced block of code.
struct Block {
    line: usize,
    language: String,
    text: String,
}

impl Block {
    /// Whether the block can be read in the language that it names.
    fn parses(&self) -> Result<(), String> {
        match self.language.as_str() {
            "toml" => DeTable::parse(&self.text).map(drop).map_err(|e| e.to_string()),
            "json" => serde_json::from_str::<serde_json::Value>(&self.text)
                .map(drop)
                .map_err(|e| e.to_string()),
            _ => Ok(()),
        }
    }
}

/// What the rules need of a Markdown file.
#[derive(Default)]
struct Markdown {
    /// Targets of links, as written.
    links: Vec<Piece>,
    /// Anchors that its headings give.
    anchors: Vec<String>,
    blocks: Vec<Block>,
}

impl Markdown {
    fn parse(text: &str) -> Self {
        let mut parts = Self::default();
        let mut lines = text.lines().enumerate();
        while let Some((index, line)) = lines.next() {
            if let Some(language) = line.trim_start().strip_prefix("```") {
                let body = lines
                    .by_ref()
                    .map(|(_, line)| line)
                    .take_while(|line| !line.trim_start().starts_with("```"));
                parts.blocks.push(Block {
                    line: index + 1,
                    language: language.split([' ', ',']).next().unwrap_or_default().to_owned(),
                    text: body.collect::<Vec<_>>().join("\n"),
                });
                continue;
            }
            if line.starts_with('#') {
                parts.anchors.push(anchor(line.trim_start_matches('#').trim()));
            }
            for target in link_targets(line) {
                parts.links.push(Piece { line: index + 1, text: target.to_owned() });
            }
        }
        parts
    }
}

/// Returns the targets of `[text](target)` in a line, not those inside `code`.
fn link_targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    for (at, _) in line.match_indices("](") {
        let inside_code = line[..at].matches('`').count() % 2 == 1;
        let target = line[at + 2..].split([')', ' ']).next().unwrap_or_default();
        if !inside_code {
            targets.push(target);
        }
    }
    targets
}

/// Returns the anchor of a heading: lower case, words joined by hyphens, other punctuation dropped.
fn anchor(heading: &str) -> String {
    heading
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            _ if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}

/// Whether a link in the file `from` leads to something.
fn resolve(tree: &Tree, from: &str, link: &str) -> Result<(), String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(());
    }
    let (path, wanted) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { from.to_owned() } else { join(from, path) };
    let is_in_book = target == "docs" || target.starts_with("docs/");
    if from.starts_with("docs/") && !is_in_book {
        return Err(format!("links to {link}, which no book of docs/ has: write `{target}`"));
    }
    if !tree.has(&target) {
        return Err(format!("links to {link}, but there is no {target}"));
    }
    let has_anchor = |text: &str| Markdown::parse(text).anchors.iter().any(|a| a == wanted);
    match tree.text(&target) {
        Some(text) if !wanted.is_empty() && target.ends_with(".md") && !has_anchor(text) => {
            Err(format!("links to #{wanted}, but {target} has no such heading"))
        }
        _ => Ok(()),
    }
}

/// Returns a link's path, taken from the folder of the file that holds it.
fn join(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        let other = "# Two words, `code` & more\n";
        let tree = Tree::of(&[("docs/a.md", text), ("docs/b.md", other), ("README.md", "")]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_link_that_leads_somewhere_is_fine() {
        assert_eq!(complaints("[b](b.md) [web](https://example.org)"), [""; 0]);
        assert_eq!(complaints("[b](b.md#two-words-code--more) `[x](none.md)`"), [""; 0]);
        assert_eq!(complaints("# Here\n[h](#here) [folder](../docs)"), [""; 0]);
    }

    #[test]
    fn a_link_out_of_the_book_is_found() {
        assert_eq!(
            complaints("[up](../README.md)"),
            ["docs/a.md:1: links to ../README.md, which no book of docs/ has: write `README.md`"]
        );
    }

    #[test]
    fn a_dead_link_and_a_dead_anchor_are_found() {
        assert_eq!(
            complaints("\n[c](c.md)"),
            ["docs/a.md:2: links to c.md, but there is no docs/c.md"]
        );
        assert_eq!(complaints("[b](b.md#three)").len(), 1);
    }

    #[test]
    fn a_block_that_does_not_parse_is_found() {
        assert_eq!(complaints("```toml\na = 1\n```\n```json\n[]\n```\n```sh\n(\n```"), [""; 0]);
        assert_eq!(complaints("```toml\na = = 1\n```\n```json\n{\n```").len(), 2);
    }
}
