//! What stands in the Cargo.toml files, in Dockerfiles and beside the code.

use super::{Finding, Tree};

/// The crates that may hold unsafe code: one by hand, the other what macros write.
const UNSAFE_CRATES: &[&str] = &["crates/netio/Cargo.toml", "bindings/node/Cargo.toml"];

/// Checks that every dependency has its reason, every crate forbids unsafe code, every gate and
/// source has its README.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = unexplained_dependencies(tree.text("Cargo.toml").unwrap_or_default());
    findings.extend(crates_without_lints(tree));
    findings.extend(gates_and_sources_without_readme(tree));
    for (path, text) in tree.ending("Dockerfile") {
        findings.extend(images_without_digest(path, text));
    }
    findings
}

/// Finds images without a digest: a tag may name another image tomorrow, a digest never does.
fn images_without_digest(path: &str, text: &str) -> Vec<Finding> {
    let what = "name the image by its digest, too: IMAGE:TAG@sha256:…";
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| line.starts_with("FROM ") && !line.contains("@sha256:"))
        .map(|(number, _)| Finding::new(path, number, what))
        .collect()
}

/// Finds dependencies from outside without a comment on their own line or on the line above.
fn unexplained_dependencies(manifest: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut inside = false;
    let mut line_before = "";
    for (index, line) in manifest.lines().enumerate() {
        if line.starts_with('[') {
            inside = line == "[workspace.dependencies]";
        } else if inside && line.contains('=') && !line.starts_with(['#', ' ']) {
            let ours = line.contains("path =");
            if !ours && !line.contains('#') && !line_before.starts_with('#') {
                let what = "say beside the dependency what it is for, why it, and who keeps it";
                findings.push(Finding::new("Cargo.toml", index + 1, what));
            }
        }
        line_before = line;
    }
    findings
}

/// Finds crates that do not inherit the workspace's lints, which forbid unsafe code. A crate that
/// is a workspace of its own forbids it itself.
fn crates_without_lints(tree: &Tree) -> Vec<Finding> {
    let holds = |text: &str, section: &str, line: &str| {
        let mut lines = text.lines().skip_while(|l| *l != section).skip(1);
        lines.by_ref().take_while(|l| !l.starts_with('[')).any(|l| l == line)
    };
    let root = tree.text("Cargo.toml").unwrap_or_default();
    let mut findings = Vec::new();
    if !holds(root, "[workspace.lints.rust]", "unsafe_code = \"forbid\"") {
        findings.push(Finding::new("Cargo.toml", 0, "the workspace must forbid unsafe_code"));
    }
    for (path, text) in tree.ending("/Cargo.toml") {
        let exempt = UNSAFE_CRATES.contains(&path) || path.starts_with("fuzz/");
        let is_apart = text.lines().any(|line| line == "[workspace]")
            && holds(text, "[lints.rust]", "unsafe_code = \"forbid\"");
        if !exempt && !is_apart && !holds(text, "[lints]", "workspace = true") {
            findings.push(Finding::new(path, 0, "write `[lints] workspace = true`"));
        }
    }
    findings
}

/// The folders of the engine whose folders are each one gate or one source.
const EXPLAINED: [&str; 2] = ["crates/engine/src/gate/", "crates/engine/src/source/"];

/// Finds gates and sources of the engine without a README.
fn gates_and_sources_without_readme(tree: &Tree) -> Vec<Finding> {
    let folder = |path: &str| {
        let parent = EXPLAINED.iter().find(|parent| path.starts_with(**parent))?;
        let (folder, _) = path[parent.len()..].split_once('/')?;
        Some(format!("{parent}{folder}/README.md"))
    };
    let mut readmes: Vec<String> = tree.all().filter_map(|(path, _)| folder(path)).collect();
    readmes.dedup();
    readmes.retain(|readme| tree.text(readme).is_none());
    let what = "is missing: every gate and every source has a README";
    readmes.iter().map(|readme| Finding::new(readme, 0, what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_without_a_reason_is_found() {
        let manifest = "[workspace.dependencies]\n\
            zonda-wire = { path = \"crates/wire\" }\n\
            # Files of configuration; toml-rs.\n\
            toml = \"1\"\n\
            libc = \"0.2\" # System calls; the Rust project.\n\
            rand = \"0.9\"\n\
            [profile.dev]\n\
            debug = 1\n";
        let lines: Vec<usize> = unexplained_dependencies(manifest).iter().map(|f| f.line).collect();
        assert_eq!(lines, [6]);
    }

    #[test]
    fn an_image_that_is_named_by_its_tag_alone_is_found() {
        let text = "FROM rust:1@sha256:00 AS build\nRUN cargo build\nFROM debian:12\n";
        let lines: Vec<usize> =
            images_without_digest("Dockerfile", text).iter().map(|f| f.line).collect();
        assert_eq!(lines, [3]);
    }

    #[test]
    fn a_gate_or_source_without_a_readme_is_found() {
        let tree = Tree::of(&[
            ("crates/engine/src/gate/acl/mod.rs", ""),
            ("crates/engine/src/gate/acl/README.md", ""),
            ("crates/engine/src/gate/rate/mod.rs", ""),
            ("crates/engine/src/source/chain.rs", ""),
            ("crates/engine/src/source/data/mod.rs", ""),
        ]);
        let found = gates_and_sources_without_readme(&tree);
        let files: Vec<&str> = found.iter().map(|finding| finding.file.as_str()).collect();
        let missing =
            ["crates/engine/src/gate/rate/README.md", "crates/engine/src/source/data/README.md"];
        assert_eq!(files, missing);
    }
}
