//! How many crates a program of handlers compiles: the library without its features.

use super::{Finding, Tree};
use std::collections::BTreeSet;
use std::process::Command;

/// Most crates, with those of this workspace and the program itself.
const CRATES_MAX: usize = 45;

/// The crates from outside, each with what has it. One that is not here came in with a change.
const KNOWN: &[&str] = &[
    // Snapshots, and the tables of caches.
    "arc-swap",
    "rustversion",
    "bytemuck",
    "siphasher",
    // Sockets and system calls.
    "libc",
    "socket2",
    // The I/O runtime, with signals and macros.
    "bytes",
    "errno",
    "mio",
    "pin-project-lite",
    "proc-macro2",
    "quote",
    "signal-hook-registry",
    "syn",
    "tokio",
    "tokio-macros",
    "unicode-ident",
    // The log.
    "once_cell",
    "tracing",
    "tracing-core",
];

/// Resolves the library without features, offline, and judges what it needs.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let arguments = "tree --package zonda --no-default-features --edges normal,build \
                     --prefix none --format {p} --locked --offline";
    let output = Command::new(env!("CARGO"))
        .args(arguments.split_ascii_whitespace())
        .current_dir(&tree.root)
        .output()
        .expect("cargo ran this program, so it is there");
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return vec![Finding::new("Cargo.toml", 0, format!("cargo tree: {told}"))];
    }
    judge(&String::from_utf8_lossy(&output.stdout))
}

/// Returns the findings in what `cargo tree` prints, a crate and its version a line.
fn judge(printed: &str) -> Vec<Finding> {
    let line = |line: &str| -> Option<(String, String)> {
        let mut words = line.split_ascii_whitespace();
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    };
    let crates: BTreeSet<_> = printed.lines().filter_map(line).collect();
    let finding = |what: String| Finding::new("crates/app/Cargo.toml", 0, what);
    let is_new =
        |name: &str| name != "zonda" && !name.starts_with("zonda-") && !KNOWN.contains(&name);
    let mut findings: Vec<Finding> = crates
        .iter()
        .filter(|(name, _)| is_new(name))
        .map(|(name, version)| {
            finding(format!(
                "a program of handlers alone now compiles {name} {version}: put it behind a \
                 feature, or into xtask/src/tidy/small.rs (`cargo tree -p zonda \
                 --no-default-features -i {name}` shows what has it)"
            ))
        })
        .collect();
    let count = crates.len() + 1; // the program
    if count > CRATES_MAX {
        findings.push(finding(format!(
            "a program of handlers alone compiles {count} crates, and may compile {CRATES_MAX}"
        )));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_came_in_is_named_and_known_ones_are_not() {
        let printed = "zonda v0.1.0 (/x)\nzonda-wire v0.1.0 (/x)\nlibc v0.2.1\nring v0.17.14\n\
                       ring v0.17.14 (*)\n";
        let said: Vec<_> = judge(printed).iter().map(ToString::to_string).collect();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("compiles ring v0.17.14"), "{said:?}");
    }

    #[test]
    fn more_crates_than_may_be_are_counted_with_the_program() {
        let printed = |count: usize| -> String {
            (0..count).map(|number| format!("zonda-{number} v0.1.0\n")).collect()
        };
        assert!(judge(&printed(CRATES_MAX - 1)).is_empty());
        let said = judge(&printed(CRATES_MAX));
        assert!(said.iter().any(|it| it.to_string().contains("46 crates")), "{said:?}");
    }
}
