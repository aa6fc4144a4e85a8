//! The page of RFCs that are followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::tidy::Tree;

/// Where the page is.
pub const PAGE: &str = "docs/rfcs.md";

/// What a person keeps by hand.
const LIST: &str = include_str!("rfcs.txt");

const HEAD: &str = "\
# RFCs

<!-- Made by `cargo xtask generate` from xtask/src/rfcs.txt. -->

How far Zonda follows the RFCs of DNS. A citation in the code looks like `rfc2308#5`, so a search
for `rfc2308` finds the code for it. The cases of RFC 1034 §4.3.2 and related RFCs are
in `crates/engine/tests/scenarios`.

| RFC | title | followed | remark |
|---|---|---|---|
";

/// A line of the list.
struct Rfc<'t> {
    number: u16,
    title: &'t str,
    followed: &'t str,
    remark: &'t str,
}

/// Returns the list, in the order of the numbers.
fn list() -> impl Iterator<Item = Rfc<'static>> {
    LIST.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let mut fields = line.split('|').map(str::trim);
        let mut field = || fields.next().expect("a line of rfcs.txt has four fields");
        let number = field().parse().expect("a line of rfcs.txt begins with a number");
        Rfc { number, title: field(), followed: field(), remark: field() }
    })
}

/// Returns the text of the page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    for Rfc { number, title, followed, remark } in list() {
        let _ = writeln!(
            page,
            "| [{number}](https://www.rfc-editor.org/rfc/rfc{number}) | {title} | {followed} \
             | {remark} |"
        ); // never fails
    }
    page
}

/// RFCs that the code cites as DNS's own and that the list lacks, with a module that does.
pub fn unlisted(tree: &Tree) -> Vec<(u16, String)> {
    /// What is cited for its numbers or addresses, not as a part of DNS.
    const OTHERS: [u16; 7] = [1010, 1918, 3927, 4193, 4291, 4648, 6298];
    let listed: BTreeSet<u16> = list().map(|rfc| rfc.number).chain(OTHERS).collect();
    let mut cited = citations(tree);
    cited.retain(|number, _| !listed.contains(number));
    cited
        .into_iter()
        .filter_map(|(number, modules)| Some((number, modules.first()?.clone())))
        .collect()
}

/// Returns which modules cite each RFC; tests do not count.
fn citations(tree: &Tree) -> BTreeMap<u16, BTreeSet<String>> {
    let mut all = BTreeMap::<u16, BTreeSet<String>>::new();
    for (path, text) in tree.ending(".rs") {
        let Some((krate, file)) =
            path.strip_prefix("crates/").and_then(|it| it.split_once("/src/"))
        else {
            continue;
        };
        if krate == "testkit" {
            continue;
        }
        let module = file.trim_end_matches(".rs").trim_end_matches("/mod");
        for number in cited(text) {
            all.entry(number).or_default().insert(format!("{krate}/{module}"));
        }
    }
    all
}

/// Returns the numbers of `rfcNNNN` in a text.
fn cited(text: &str) -> impl Iterator<Item = u16> {
    text.split("rfc").skip(1).filter_map(|behind| {
        let end = behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
        behind[..end].parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_and_says_yes_partly_or_no() {
        assert!(list().map(|rfc| rfc.number).is_sorted_by(|a, b| a < b));
        assert!(list().all(|rfc| ["yes", "partly", "no"].contains(&rfc.followed)));
    }

    #[test]
    fn citations_are_found_by_module() {
        let tree = Tree::of(&[
            ("crates/wire/src/name.rs", "// rfc1035#3.1, rfc4343"),
            ("crates/wire/src/rdata/mod.rs", "//! As rfc1035 says.\nfn rfc() {}"),
            ("crates/wire/tests/name.rs", "// rfc2308"),
        ]);
        let all = citations(&tree);
        assert_eq!(all.keys().copied().collect::<Vec<_>>(), [1035, 4343]);
        assert_eq!(all[&1035].iter().collect::<Vec<_>>(), ["wire/name", "wire/rdata"]);
    }
}
