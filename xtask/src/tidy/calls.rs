//! Calls that the plan keeps out of some places, and paths of one machine.

use super::{Finding, Tree};

/// A piece of text that must not appear in some files.
struct Ban {
    text: &'static str,
    /// Whether the ban holds for this path.
    applies: fn(&str) -> bool,
    why: &'static str,
}

/// Time is an argument; libraries say things through logs and results.
const BANS: &[Ban] = &[
    Ban { text: "Instant::now", applies: without_clock, why: "time is an argument here" },
    Ban { text: "SystemTime::now", applies: without_clock, why: "time is an argument here" },
    Ban { text: "thread_rng", applies: without_clock, why: "randomness is an argument here" },
    Ban { text: "println!", applies: library, why: "a library returns or logs what it says" },
    Ban { text: "process::exit", applies: library, why: "only main ends the process" },
];

/// Crates whose results may depend on nothing but their arguments.
fn without_clock(path: &str) -> bool {
    ["wire", "zone", "upstream", "cache", "engine", "config"]
        .iter()
        .any(|name| path.starts_with(&format!("crates/{name}/src/")))
}

/// Crates that are linked into other people's programs.
fn library(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/") && !path.starts_with("crates/testkit/")
}

/// Beginnings of paths that exist on one machine only, in two halves so that this file is clean.
const MACHINE_PATHS: &[(&str, &str)] =
    &[("/wo", "rk/"), ("/fa", "rm/"), ("/home", "/"), ("/ro", "ot/"), ("/Us", "ers/")];

/// Searches the code without its tests for banned calls, and every file for machine paths.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending(".rs").filter(|(path, _)| !path.contains("/tests")) {
        for (index, line) in text.lines().take_while(|line| *line != "#[cfg(test)]").enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for ban in BANS.iter().filter(|ban| code.contains(ban.text) && (ban.applies)(path)) {
                findings.push(Finding::new(path, index + 1, format!("{}: {}", ban.text, ban.why)));
            }
        }
    }
    for (path, text) in tree.all() {
        for (index, line) in text.lines().enumerate() {
            if MACHINE_PATHS.iter().any(|(a, b)| names_path(line, &format!("{a}{b}"))) {
                findings.push(Finding::new(path, index + 1, "a path of one machine"));
            }
        }
    }
    findings
}

/// Whether an absolute path with this beginning stands in the line; `a/b/work/` is not one.
fn names_path(line: &str, beginning: &str) -> bool {
    line.match_indices(beginning).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"-_.}/$~".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_in_the_engine_is_found_but_not_in_its_tests() {
        let text = "fn a() { Instant::now(); }\n// Instant::now\n#[cfg(test)]\nInstant::now\n";
        let tree = Tree::of(&[
            ("crates/engine/src/a.rs", text),
            ("crates/engine/src/a/tests.rs", text),
            ("crates/server/src/a.rs", text),
        ]);
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].file.as_str(), found[0].line), ("crates/engine/src/a.rs", 1));
    }

    #[test]
    fn only_an_absolute_path_is_a_path_of_a_machine() {
        let beginning = format!("{}/", "/home");
        assert!(names_path(&format!("see {beginning}me"), &beginning));
        assert!(!names_path(&format!("docs{beginning}me"), &beginning));
    }
}
