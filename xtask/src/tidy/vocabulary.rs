//! The same thing has the same name in Rust, JavaScript and Python.
//!
//! `docs/vocabulary.md` lists every public name of an app, a query and a reply. Held here: each
//! name in a source stands in the table and each name in the table stands in the source; names in
//! one row are the same but for the case, and each language has one, unless the row says why not.
//! Deprecated names are former names, which are not looked at; nor are hidden ones. Not held: names
//! of other types.

use std::collections::BTreeSet;

use super::{Finding, Tree};

/// The page with the tables.
const PAGE: &str = "docs/vocabulary.md";

/// The languages, in the order of the table's columns.
const LANGUAGES: [&str; 3] = ["Rust", "Node.js", "Python"];

/// Where the names of one type are declared in each language.
struct Type {
    /// Heading of the type's table.
    title: &'static str,
    /// Rust files, and the type whose `impl` or fields are meant in each.
    rust: &'static [(&'static str, &'static str)],
    /// Classes and interfaces of `index.d.ts`.
    node: &'static [&'static str],
    /// The Python file that has the class.
    python: &'static str,
}

/// The types that every program meets.
const TYPES: &[Type] = &[
    Type {
        title: "App",
        rust: &[
            ("crates/app/src/app.rs", "App"),
            ("crates/app/src/start.rs", "App"),
            ("crates/app/src/running.rs", "Running"),
            ("crates/app/src/running_zones.rs", "Running"),
        ],
        node: &["App", "AppOptions"],
        python: "bindings/python/python/zonda/app.py",
    },
    Type {
        title: "Query",
        rust: &[
            ("crates/engine/src/code/query.rs", "Query"),
            ("crates/app/src/owned.rs", "OwnedQuery"),
        ],
        node: &["Query"],
        python: "bindings/python/python/zonda/_core.pyi",
    },
    Type {
        title: "Reply",
        rust: &[("crates/engine/src/code/reply.rs", "Reply")],
        node: &["Reply"],
        python: "bindings/python/python/zonda/_core.pyi",
    },
];

/// Names of one type in one language.
type Names = BTreeSet<String>;

/// Compares the page with the sources.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.text(PAGE) else {
        return vec![Finding::new(PAGE, 0, "there is no such page")];
    };
    TYPES.iter().flat_map(|of| compare(page, of.title, &of.names(tree))).collect()
}

impl Type {
    /// Returns the names that the sources have, for each language.
    fn names(&self, tree: &Tree) -> [Names; 3] {
        let text = |path: &str| tree.text(path).unwrap_or_default();
        let rust = self.rust.iter().flat_map(|(path, name)| rust_names(text(path), name));
        let types = text("bindings/node/index.d.ts");
        let node = self.node.iter().flat_map(|name| node_names(types, name));
        let python = python_names(text(self.python), self.title);
        [rust.collect(), node.collect(), python]
    }
}

/// Compares one table with the names in the sources.
fn compare(page: &str, title: &str, sources: &[Names; 3]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut listed: [Names; 3] = Default::default();
    let heading = format!("## {title}");
    let lines = page.lines().enumerate().skip_while(|(_, line)| *line != heading).skip(1);
    let table = lines.take_while(|(_, line)| !line.starts_with('#'));
    for (index, line) in table.filter(|(_, line)| line.starts_with('|')).skip(2) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let names: Vec<Vec<&str>> = cells.iter().take(3).map(|cell| quoted(cell)).collect();
        let terms: BTreeSet<Vec<String>> = names
            .iter()
            .filter(|names| !names.is_empty())
            .map(|names| names.iter().map(|name| snake_case(name)).collect())
            .collect();
        if cells.get(3).is_none_or(|reason| reason.is_empty()) {
            let mut complain = |what| findings.push(Finding::new(PAGE, index + 1, what));
            if terms.len() > 1 {
                complain("names differ: say why, or rename one");
            }
            if names.iter().any(Vec::is_empty) {
                complain("a language has no name for it: say why, or add one");
            }
        }
        for (listed, names) in listed.iter_mut().zip(names) {
            listed.extend(names.into_iter().map(str::to_owned));
        }
    }
    for ((language, listed), source) in LANGUAGES.iter().zip(&listed).zip(sources) {
        for name in source.difference(listed) {
            let what = format!("{title}: {language} has `{name}`, the table has not");
            findings.push(Finding::new(PAGE, 0, what));
        }
        for name in listed.difference(source) {
            let what = format!("{title}: the table has `{name}`, {language} has not");
            findings.push(Finding::new(PAGE, 0, what));
        }
    }
    findings
}

/// Returns what stands between backquotes.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Returns a name in the case of Rust and Python.
fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

/// Returns the word at the beginning of a text, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    text.split_at(end)
}

/// Takes prefixes off a text, as long as there are any.
fn without<'a>(mut text: &'a str, prefixes: &[&str]) -> &'a str {
    while let Some(rest) = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest;
    }
    text
}

/// Returns the public functions and fields of a Rust type that are neither deprecated nor hidden.
fn rust_names(text: &str, name: &str) -> Names {
    let mut names = Names::new();
    let mut is_inside = false;
    let mut is_left_out = false;
    for line in text.lines() {
        if !line.starts_with(' ') && line.ends_with('{') {
            let is_block = line.starts_with("impl") || line.starts_with("pub struct");
            is_inside = is_block && !line.contains(" for ") && has_word(line, name);
        }
        let attributes = ["#[deprecated", "#[doc(hidden)]"];
        is_left_out |= attributes.iter().any(|it| line.trim_start().starts_with(it));
        let Some(item) = line.strip_prefix("    pub ") else { continue };
        let (found, _) = word(without(item, &["const ", "async ", "fn "]));
        if is_inside && !is_left_out {
            names.insert(found.to_owned());
        }
        is_left_out = false;
    }
    names
}

/// Whether a line has a word.
fn has_word(line: &str, name: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

/// Returns the members of a class or interface in TypeScript that are not deprecated.
fn node_names(text: &str, name: &str) -> Names {
    let mut names = Names::new();
    let mut is_inside = false;
    let mut is_deprecated = false;
    for line in text.lines() {
        if !line.starts_with(' ') {
            let (_, rest) = line.split_once(' ').unwrap_or_default();
            let rest = without(rest, &["declare ", "abstract ", "class ", "interface "]);
            is_inside = line.ends_with('{') && word(rest).0 == name;
        }
        is_deprecated |= line.contains("@deprecated");
        let Some(member) = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')) else {
            continue;
        };
        let (found, rest) = word(without(member, &["readonly ", "get ", "set "]));
        if found.is_empty() || !rest.trim_start_matches('?').starts_with(['(', ':', '<']) {
            continue;
        }
        if is_inside && !is_deprecated && found != "constructor" {
            names.insert(found.to_owned());
        }
        is_deprecated = false;
    }
    names
}

/// Returns the public members of a Python class, and the arguments that it is made with.
fn python_names(text: &str, name: &str) -> Names {
    let mut names = Names::new();
    let mut is_inside = false;
    let mut is_making = false;
    for line in text.lines() {
        if line.starts_with(|c: char| c.is_alphabetic() || c == '@') {
            is_inside = line.starts_with("class ") && word(&line["class ".len()..]).0 == name;
        }
        if line.starts_with("    ") && !line.starts_with("     ") {
            is_making = line.trim_start().starts_with("def __init__(");
        }
        let indent = if is_making { "        " } else { "    " };
        let Some(member) = line.strip_prefix(indent).filter(|rest| !rest.starts_with(' ')) else {
            continue;
        };
        let (found, rest) = word(without(member, &["async ", "def "]));
        let is_public = found.starts_with(|c: char| c.is_ascii_lowercase());
        let is_member = is_making || rest.starts_with('(') || rest.starts_with(": ");
        if is_inside && is_public && is_member && rest.starts_with(['(', ':']) {
            names.insert(found.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a set of names.
    fn names(all: &[&str]) -> Names {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Returns the findings for a table of one type with these rows.
    fn complaints(rows: &str, sources: [&[&str]; 3]) -> Vec<String> {
        let page = format!("# A\n## App\n\n| Rust |\n|---|\n{rows}\n\n## Query\n| `x` |\n");
        compare(&page, "App", &sources.map(names)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_name_that_only_a_source_or_only_the_table_has_is_found() {
        let rows = "| `set_it` | `setIt` | `set_it` | |\n| `gone` | – | – | why |";
        assert_eq!(
            complaints(rows, [&["set_it"], &["setIt", "more"], &["set_it"]]),
            [
                "docs/vocabulary.md: App: the table has `gone`, Rust has not",
                "docs/vocabulary.md: App: Node.js has `more`, the table has not",
            ]
        );
    }

    #[test]
    fn names_that_differ_need_a_reason() {
        let sources = [&["drop"][..], &["silence"][..], &["drop"][..]];
        assert_eq!(
            complaints("| `drop` | `silence` | `drop` | |", sources),
            ["docs/vocabulary.md:6: names differ: say why, or rename one"]
        );
        assert_eq!(complaints("| `drop` | `silence` | `drop` | a keyword |", sources), [""; 0]);
    }

    #[test]
    fn a_name_that_a_language_lacks_needs_a_reason() {
        let sources = [&["drop"][..], &[][..], &["drop"][..]];
        assert_eq!(
            complaints("| `drop` | – | `drop` | |", sources),
            ["docs/vocabulary.md:6: a language has no name for it: say why, or add one"]
        );
        assert_eq!(complaints("| `drop` | – | `drop` | a keyword |", sources), [""; 0]);
    }

    #[test]
    fn public_names_of_each_language_are_read_without_deprecated_ones() {
        let rust = "pub struct App {\n    /// It.\n    pub at: u8,\n    pub(crate) no: u8,\n}\n\
                    impl App {\n    pub async fn run(&self) {\n        let a = 1;\n    }\n    \
                    #[deprecated]\n    pub fn old() {}\n    #[doc(hidden)]\n    \
                    pub fn hidden() {}\n    fn inner() {}\n}\n\
                    impl Other {\n    pub fn other() {}\n}\n";
        assert_eq!(rust_names(rust, "App"), names(&["at", "run"]));
        let node = "export declare class App {\n  constructor();\n  /** One. */\n  readonly a: \
                    string;\n  of<T>(type: T): T;\n  /** @deprecated It is `a`. */\n  \
                    b?: string;\n  run(): void;\n}\n\
                    export interface Apps {\n  c: string;\n}\n";
        assert_eq!(node_names(node, "App"), names(&["a", "of", "run"]));
        let python = "class App:\n    \"\"\"An app: it.\"\"\"\n\n    def __init__(\n        self,\n\
                      \x20       at: int,\n\
                      \x20   ) -> None:\n        it: int = 1\n\n    aa: bool\n    def \
                      run(self) -> None:\n    def _no(self) -> None:\n\nclass Next:\n    b: int\n";
        assert_eq!(python_names(python, "App"), names(&["at", "aa", "run"]));
    }
}
