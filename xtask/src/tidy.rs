//! Rules of the house that neither rustfmt nor clippy knows.
//!
//! Each rule is a function from the tree to findings, printed as `file:line: what is wrong`. Rules
//! that clippy can keep (length of functions, `unwrap`, a reason beside every `expect`) are in
//! `clippy.toml` and the workspace's lints instead.

mod calls;
mod circles;
mod docs;
mod edges;
mod generated;
mod log_events;
mod manifests;
mod map;
mod size;
mod small;
mod tree;
mod vocabulary;
mod words;

use std::fmt;
use std::process::ExitCode;

pub use tree::Tree;

/// One broken rule and where.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    /// Path from the repository's root.
    file: String,
    /// Counted from 1; 0 when the whole file is meant.
    line: usize,
    /// What is wrong, and what to do.
    what: String,
}

impl Finding {
    fn new(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.what),
            line => write!(f, "{}:{line}: {}", self.file, self.what),
        }
    }
}

/// A rule: a name for the summary and the function that applies it.
type Rule = (&'static str, fn(&Tree) -> Vec<Finding>);

/// All rules, in the order in which they are reported.
const RULES: &[Rule] = &[
    ("edges between crates", edges::check),
    ("code map", map::check),
    ("circles of modules", circles::check),
    ("manifests", manifests::check),
    ("crates of a small program", small::check),
    ("sizes", size::check),
    ("banned calls and paths", calls::check),
    ("links and code blocks", docs::check),
    ("generated pages", generated::check),
    ("log events", log_events::check),
    ("words", words::check),
    ("vocabulary", vocabulary::check),
];

/// Applies every rule to the repository and prints what it finds.
pub fn run() -> ExitCode {
    let tree = Tree::of_repository();
    let mut count = 0;
    for (name, rule) in RULES {
        let mut findings = rule(&tree);
        findings.sort();
        for finding in &findings {
            eprintln!("{finding}");
        }
        println!("tidy: {name}: {}", if findings.is_empty() { "ok" } else { "NOT OK" });
        count += findings.len();
    }
    if count == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
