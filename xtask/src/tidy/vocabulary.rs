//! The same thing has the same name in Rust, JavaScript and Python.
//!
//! `docs/vocabulary.md` is the one list of the public names of the types that every program meets.
//! Each row makes one name for each language, in its case; the sources must have these and no
//! other. A row whose names differ, or that a language lacks, gives one of [`REASONS`], and a word
//! of [`CORE`] may have none. Deprecated names are former names, which are not looked at; nor are
//! hidden ones. Not held: names of other types, and what functions take.

use std::collections::BTreeSet;

use super::{Finding, Tree};

/// The page with the tables.
const PAGE: &str = "docs/vocabulary.md";

/// The languages, in the order of the table's columns.
const LANGUAGES: [&str; 3] = ["Rust", "Node.js", "Python"];

/// What the fourth column of a row begins with where names differ or a language has none.
const REASONS: &[&str] = &[
    "keyword",  // the word is one of the language's own
    "custom",   // programmers of this language alone expect it
    "argument", // it is an argument, an option or a return value in the two other languages
    "runtime",  // a program in Rust says which threads run its code
    "worker",   // for code in the worker, which reads no clock and is written in Rust
    "parts",    // the two other languages have it in one value, or in several
];

/// Words of each type that all languages have, whatever the reason.
const CORE: &[(&str, &[&str])] = &[
    ("App", &["handle", "remove_handler", "middleware", "route", "query", "query_message"]),
    ("App", &["on_error", "serve", "start", "stop", "closed", "reuse_port"]),
    ("Query", &["name", "original_name", "params", "state", "client", "transport"]),
    ("Reply", &["answer", "no_data", "nxdomain", "servfail", "refused", "drop", "pass_on"]),
    ("Reply", &["extended_error", "tag", "client_subnet_scope"]),
    ("Router", &["handle", "middleware", "route"]),
];

/// Where the names of one type are declared in each language.
struct Type {
    /// Heading of the type's table.
    title: &'static str,
    /// Rust types that stand for it, each with its files. More than one are kinds of the same
    /// thing: each has all names but those for code in the worker.
    rust: &'static [&'static [(&'static str, &'static str)]],
    /// Classes and interfaces of `index.d.ts`.
    node: &'static [&'static str],
    /// The Python file that has the class.
    python: &'static str,
}

/// The types that every program meets.
const TYPES: &[Type] = &[
    Type {
        title: "App",
        rust: &[&[
            ("crates/app/src/app.rs", "App"),
            ("crates/app/src/start.rs", "App"),
            ("crates/app/src/running.rs", "Running"),
            ("crates/app/src/running_zones.rs", "Running"),
        ]],
        node: &["App", "AppOptions"],
        python: "bindings/python/python/zonda/app.py",
    },
    Type {
        title: "Router",
        rust: &[&[("crates/app/src/router.rs", "Router")]],
        node: &["Router"],
        python: "bindings/python/python/zonda/app.py",
    },
    Type {
        title: "Query",
        rust: &[
            &[
                ("crates/engine/src/code/query.rs", "Query"),
                ("crates/engine/src/code/client.rs", "Query"),
                ("crates/engine/src/code/state.rs", "Query"),
            ],
            &[("crates/app/src/owned.rs", "OwnedQuery")],
        ],
        node: &["Query"],
        python: "bindings/python/python/zonda/_core.pyi",
    },
    Type {
        title: "Reply",
        rust: &[&[("crates/engine/src/code/reply.rs", "Reply")]],
        node: &["Reply"],
        python: "bindings/python/python/zonda/_core.pyi",
    },
];

/// Names of one type in one language.
type Names = BTreeSet<String>;

/// The names that the sources have for one type.
struct Surfaces {
    /// Each Rust type that stands for it, with its names.
    rust: Vec<(String, Names)>,
    /// Names in JavaScript.
    node: Names,
    /// Names in Python.
    python: Names,
}

/// One row of a table.
struct Row<'p> {
    /// Line of the page, from 1.
    line: usize,
    /// Names in each language.
    names: [Vec<&'p str>; 3],
    /// Reason for which they differ, and its explanation; empty where they do not.
    reason: &'p str,
}

/// Compares the page with the sources.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.text(PAGE) else {
        return vec![Finding::new(PAGE, 0, "there is no such page")];
    };
    let types = TYPES.iter().flat_map(|of| compare(page, of.title, &of.surfaces(tree)));
    types.chain(compare_codes(page, &codes(tree))).collect()
}

impl Type {
    /// Returns the names that the sources have.
    fn surfaces(&self, tree: &Tree) -> Surfaces {
        let text = |path: &str| tree.text(path).unwrap_or_default();
        let rust_type = |files: &&[(&str, &str)]| {
            let names = files.iter().flat_map(|(path, name)| rust_names(text(path), name));
            (files[0].1.to_owned(), names.collect())
        };
        let types = text("bindings/node/index.d.ts");
        Surfaces {
            rust: self.rust.iter().map(rust_type).collect(),
            node: self.node.iter().flat_map(|name| node_names(types, name)).collect(),
            python: python_names(text(self.python), self.title),
        }
    }
}

/// Returns the rows of the table below a heading.
fn rows<'p>(page: &'p str, title: &str) -> impl Iterator<Item = Row<'p>> {
    let heading = format!("## {title}");
    let lines = page.lines().enumerate().skip_while(move |(_, line)| *line != heading).skip(1);
    let table = lines.take_while(|(_, line)| !line.starts_with('#'));
    table.filter(|(_, line)| line.starts_with('|')).skip(2).map(|(index, line)| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let names = |column: usize| quoted(cells.get(column).copied().unwrap_or_default());
        let reason = cells.get(3).copied().unwrap_or_default();
        Row { line: index + 1, names: [names(0), names(1), names(2)], reason }
    })
}

impl Row<'_> {
    /// Whether the names are for code in the worker, so that only one Rust type has them.
    fn is_for_the_worker(&self) -> bool {
        self.reason.starts_with("worker")
    }

    /// Returns the different words of the languages that have one, in the case of Rust.
    fn words(&self) -> BTreeSet<Vec<String>> {
        let present = self.names.iter().filter(|names| !names.is_empty());
        present.map(|names| names.iter().map(|name| snake_case(name)).collect()).collect()
    }

    /// Returns what is wrong with the row itself.
    fn complaints(&self) -> Vec<&'static str> {
        let mut complaints = Vec::new();
        if self.reason.is_empty() {
            if self.words().len() > 1 {
                complaints.push("names differ: say why, or rename one");
            }
            if self.names.iter().any(Vec::is_empty) {
                complaints.push("a language has no name for it: say why, or add one");
            }
        } else {
            let (reason, explanation) = self.reason.split_once(": ").unwrap_or_default();
            if !REASONS.contains(&reason) || explanation.is_empty() {
                complaints.push("a reason is `keyword: …` or another one of REASONS, explained");
            }
        }
        complaints
    }
}

/// Compares one table with the names in the sources.
fn compare(page: &str, title: &str, sources: &Surfaces) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut listed: [Names; 3] = Default::default();
    let mut of_the_worker = Names::new();
    for row in rows(page, title) {
        findings.extend(row.complaints().iter().map(|what| Finding::new(PAGE, row.line, *what)));
        let [in_rust, ..] = &row.names;
        if row.is_for_the_worker() {
            of_the_worker.extend(in_rust.iter().map(|name| (*name).to_owned()));
        }
        for (listed, names) in listed.iter_mut().zip(&row.names) {
            listed.extend(names.iter().map(|name| (*name).to_owned()));
        }
    }
    let [rust, node, python] = &listed;
    let mut differ = |language: &str, listed: &Names, source: &Names, may_lack: &Names| {
        let mut complain = |what| findings.push(Finding::new(PAGE, 0, what));
        for name in source.difference(listed) {
            complain(format!("{title}: {language} has `{name}`, the table has not"));
        }
        for name in listed.difference(source).filter(|name| !may_lack.contains(*name)) {
            complain(format!("{title}: the table has `{name}`, {language} has not"));
        }
    };
    let all_of_rust = sources.rust.iter().flat_map(|(_, names)| names).cloned().collect();
    differ(LANGUAGES[0], rust, &all_of_rust, &Names::new());
    let is_alone = sources.rust.len() == 1;
    for (name, one) in sources.rust.iter().filter(|_| !is_alone) {
        differ(name, &all_of_rust, one, &of_the_worker);
    }
    differ(LANGUAGES[1], node, &sources.node, &Names::new());
    differ(LANGUAGES[2], python, &sources.python, &Names::new());
    findings.extend(missing_core(title, &listed));
    findings
}

/// Returns the core words of a type that a language lacks.
fn missing_core(title: &str, listed: &[Names; 3]) -> Vec<Finding> {
    let words = CORE.iter().filter(|(of, _)| *of == title).flat_map(|(_, words)| *words);
    let missing = words.flat_map(|word| {
        let has = |names: &Names| names.iter().any(|name| snake_case(name) == **word);
        let lacking = LANGUAGES.iter().zip(listed).filter(move |(_, names)| !has(names));
        lacking.map(move |(language, _)| format!("{title}: {language} lacks the word `{word}`"))
    });
    missing.map(|what| Finding::new(PAGE, 0, what)).collect()
}

/// Where each language has the codes of its errors.
const CODES: [&[&str]; 3] = [
    &["crates/app/src/error.rs"],
    &["bindings/node/lib/errors.js"],
    &["bindings/python/python/zonda/errors.py"],
];

/// Returns the codes of errors in each language.
fn codes(tree: &Tree) -> [Names; 3] {
    let text = |path: &&str| tree.text(path).unwrap_or_default().to_owned();
    CODES.map(|files| files.iter().map(text).flat_map(|text| codes_in(&text)).collect())
}

/// Returns the codes of errors in a text.
fn codes_in(text: &str) -> Vec<String> {
    let starts = text.match_indices("ZONDA_").map(|(start, _)| &text[start..]);
    starts.map(|rest| word(rest).0.to_owned()).collect()
}

/// Compares the codes that the page lists with those of each language.
fn compare_codes(page: &str, sources: &[Names; 3]) -> Vec<Finding> {
    let section = page.split_once("## Codes of errors").unwrap_or_default().1;
    let listed: Names =
        codes_in(section.split("\n## ").next().unwrap_or_default()).into_iter().collect();
    let mut findings = Vec::new();
    for (language, source) in LANGUAGES.iter().zip(sources) {
        for code in listed.symmetric_difference(source) {
            let what = format!("code {code}: the page and {language} differ: one lacks it");
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
        is_left_out &= !line.trim_start().starts_with("fn ");
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
            // The arguments are in lines of their own, if they are more than a few.
            is_making = line.trim_start().starts_with("def __init__(") && !line.ends_with(':');
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
    fn complaints(rows: &str, [rust, node, python]: [&[&str]; 3]) -> Vec<String> {
        complaints_of("Store", rows, &[rust], node, python)
    }

    /// Returns the findings for a table of a type that several Rust types stand for.
    fn complaints_of(
        title: &str,
        rows: &str,
        rust: &[&[&str]],
        node: &[&str],
        python: &[&str],
    ) -> Vec<String> {
        let page = format!("# A\n## {title}\n\n| Rust |\n|---|\n{rows}\n\n## Z\n| `x` |\n");
        let kinds = ["Store", "OwnedStore"].map(str::to_owned);
        let rust = kinds.into_iter().zip(rust.iter().map(|all| names(all))).collect();
        let sources = Surfaces { rust, node: names(node), python: names(python) };
        compare(&page, title, &sources).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_name_that_only_a_source_or_only_the_table_has_is_found() {
        let rows = "| `set_it` | `setIt` | `set_it` | |\n| `gone` | – | – | custom: why |";
        assert_eq!(
            complaints(rows, [&["set_it"], &["setIt", "more"], &["set_it"]]),
            [
                "docs/vocabulary.md: Store: the table has `gone`, Rust has not",
                "docs/vocabulary.md: Store: Node.js has `more`, the table has not",
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
        assert_eq!(
            complaints("| `drop` | `silence` | `drop` | keyword: of Node |", sources),
            [""; 0]
        );
    }

    #[test]
    fn a_name_that_a_language_lacks_needs_a_reason() {
        let sources = [&["drop"][..], &[][..], &["drop"][..]];
        assert_eq!(
            complaints("| `drop` | – | `drop` | |", sources),
            ["docs/vocabulary.md:6: a language has no name for it: say why, or add one"]
        );
        assert_eq!(complaints("| `drop` | – | `drop` | keyword: of Node |", sources), [""; 0]);
    }

    #[test]
    fn a_reason_is_one_of_the_list_and_explained() {
        let sources = [&["drop"][..], &[][..], &["drop"][..]];
        for row in ["| `drop` | – | `drop` | taste |", "| `drop` | – | `drop` | custom |"] {
            let what = "a reason is `keyword: …` or another one of REASONS, explained";
            assert_eq!(complaints(row, sources), [format!("docs/vocabulary.md:6: {what}")]);
        }
    }

    #[test]
    fn each_rust_type_of_several_has_the_word_unless_it_is_for_the_worker() {
        let row = "| `tag` | `tag` | `tag` | |\n| `now` | – | – | worker: no clock |";
        let lacks = complaints_of("Store", row, &[&["tag", "now"], &[]], &["tag"], &["tag"]);
        let what = "Store: the table has `tag`, OwnedStore has not";
        assert_eq!(lacks, [format!("docs/vocabulary.md: {what}")]);
    }

    #[test]
    fn a_core_word_has_no_excuse() {
        let row = "| `handle`, `middleware`, `route` | `handle`, `middleware` \
                   | `handle`, `middleware`, `route` | custom: so |";
        let all = ["handle", "middleware", "route"];
        let found = complaints_of("Router", row, &[&all], &all[..2], &all);
        assert_eq!(found, ["docs/vocabulary.md: Router: Node.js lacks the word `route`"]);
    }

    #[test]
    fn a_code_that_one_language_lacks_is_found() {
        let page = "## Codes of errors\n\n| `ZONDA_ZONE` | a zone |\n";
        let has = names(&["ZONDA_ZONE"]);
        let found = compare_codes(page, &[has.clone(), has, Names::new()]);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        let what = "code ZONDA_ZONE: the page and Python differ: one lacks it";
        assert_eq!(found, [format!("docs/vocabulary.md: {what}")]);
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
