//! How long a file and a line may be.

use super::{Finding, Tree};

/// Lines of a Rust file without its tests: what one reads in one go.
const FILE_LINES_MAX: usize = 600;
/// Columns of a line; rustfmt keeps code to it, but neither comments nor strings.
const LINE_COLUMNS_MAX: usize = 100;

/// Files that may be longer, and why. An entry that is no longer needed is a finding too.
const LONG_FILES: &[(&str, &str)] = &[];

/// Looks at every Rust file.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending(".rs") {
        for (index, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > LINE_COLUMNS_MAX {
                let what = format!("{columns} columns; at most {LINE_COLUMNS_MAX}");
                findings.push(Finding::new(path, index + 1, what));
            }
        }
        let lines = lines_without_tests(path, text);
        let excused = LONG_FILES.iter().any(|(file, _)| *file == path);
        if lines > FILE_LINES_MAX && !excused {
            let what = format!("{lines} lines without tests; at most {FILE_LINES_MAX}: split it");
            findings.push(Finding::new(path, 0, what));
        } else if lines <= FILE_LINES_MAX && excused {
            findings.push(Finding::new(path, 0, "is short now: take it out of LONG_FILES"));
        }
    }
    findings
}

/// Tests come last in a file, or have a file or a folder to themselves.
fn lines_without_tests(path: &str, text: &str) -> usize {
    if path.contains("/tests/") || path.ends_with("/tests.rs") {
        return 0;
    }
    text.lines().take_while(|line| *line != "#[cfg(test)]").count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count_as_lines() {
        assert_eq!(lines_without_tests("src/a.rs", "fn a() {}\n\n#[cfg(test)]\nmod tests {}\n"), 2);
        assert_eq!(lines_without_tests("src/a/tests.rs", "fn a() {}\n"), 0);
    }

    #[test]
    fn a_long_line_is_found_by_its_characters_not_its_bytes() {
        let fits = format!("// {}\n", "→".repeat(97));
        let long = format!("// {}\n", "x".repeat(98));
        let tree = Tree::of(&[("a.rs", &fits), ("b.rs", &long)]);
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].file.as_str(), found[0].line), ("b.rs", 1));
    }
}
