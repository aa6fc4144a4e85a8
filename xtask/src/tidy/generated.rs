//! Pages that are made from code are as the code would make them now.

use super::{Finding, Tree};
use crate::{pages, peers, rfcs};

/// Compares the generated pages with their sources.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, module) in rfcs::unlisted(tree) {
        let what = format!("has no line for RFC {number}, which {module} cites");
        findings.push(Finding::new("xtask/src/rfcs.txt", 0, what));
    }
    if tree.text(rfcs::PAGE) != Some(&rfcs::page()) {
        findings.push(Finding::new(rfcs::PAGE, 0, "is stale: run `cargo xtask generate`"));
    }
    match peers::page(tree) {
        Some(Ok(page)) if tree.text(peers::PAGE) != Some(&page) => {
            let what = "its table of costs is not that of the kept run: run `cargo xtask generate`";
            findings.push(Finding::new(peers::PAGE, 0, what));
        }
        Some(Err(error)) => findings.push(Finding::new(peers::PAGE, 0, error)),
        Some(Ok(_)) | None => {}
    }
    for page in pages::stale(tree) {
        findings.push(Finding::new(&page, 0, "is stale: run `cargo xtask generate`"));
    }
    for (page, line) in pages::hidden_lines(tree) {
        let what = "shows a line that rustdoc hides: keep the page in crates/app/pages";
        findings.push(Finding::new(page, line, what));
    }
    findings
}
