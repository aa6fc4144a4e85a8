//! The code map of ARCHITECTURE.md is the tree: each crate with what it uses, each folder.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Finding, Tree, edges};

/// The page that has the map.
const PAGE: &str = "ARCHITECTURE.md";

/// The header of the table of crates.
const CRATES: &str = "| crate | what | uses | look first at |";

/// The header of the table of folders that hold no crate.
const FOLDERS: &str = "| folder | what |";

/// A crate of the workspace.
#[derive(Debug)]
struct Package {
    /// The folder of the crate, from the root of the repository.
    folder: String,
    /// The crates of the workspace that it uses, apart from its tests, as the map names them.
    uses: BTreeSet<String>,
}

/// A row of a table: its line in the page, counted from 1, and its cells.
type Row<'a> = (usize, Vec<&'a str>);

/// Compares the map with the workspace's packages and with the folders of the repository.
pub fn check(tree: &Tree) -> Vec<Finding> {
    match edges::metadata(tree) {
        Ok(metadata) => judge(tree, &packages(&metadata)),
        Err(finding) => vec![finding],
    }
}

/// Reads the workspace's packages out of the output of `cargo metadata --no-deps`.
fn packages(metadata: &Value) -> Vec<Package> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let root = text(&metadata["workspace_root"]) + "/";
    let folder = |path: &Value| {
        let path = text(path);
        let path = path.trim_end_matches("/Cargo.toml");
        path.strip_prefix(&root).unwrap_or(path).to_owned()
    };
    list(&metadata["packages"])
        .iter()
        .map(|package| Package {
            folder: folder(&package["manifest_path"]),
            uses: list(&package["dependencies"])
                .iter()
                .filter(|it| it["kind"] != "dev" && !it["path"].is_null())
                .map(|it| name_of(&folder(&it["path"])).to_owned())
                .collect(),
        })
        .collect()
}

/// Returns the name of a crate in the map: its folder, without `crates/`.
fn name_of(folder: &str) -> &str {
    folder.strip_prefix("crates/").unwrap_or(folder)
}

/// Returns the rows of the table below a header line.
fn rows<'a>(page: &'a str, header: &str) -> Vec<Row<'a>> {
    (1..)
        .zip(page.lines())
        .skip_while(|(_, line)| *line != header)
        .skip(2)
        .take_while(|(_, line)| line.starts_with('|'))
        .map(|(number, line)| (number, line.trim_matches('|').split('|').map(str::trim).collect()))
        .collect()
}

/// Returns the words between backticks of a cell.
fn words(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Returns the findings of both tables.
fn judge(tree: &Tree, packages: &[Package]) -> Vec<Finding> {
    let page = tree.text(PAGE).unwrap_or_default();
    let mut findings = judge_crates(tree, packages, &rows(page, CRATES));
    findings.extend(judge_folders(tree, packages, &rows(page, FOLDERS)));
    findings
}

/// Compares the rows of crates with the packages, and each row with those above it.
fn judge_crates(tree: &Tree, packages: &[Package], rows: &[Row<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut above = BTreeSet::new();
    for (line, cells) in rows {
        let mut say = |what: String| findings.push(Finding::new(PAGE, *line, what));
        let [name, _, uses, files] = cells[..] else {
            say("a row of crates has four cells".to_owned());
            continue;
        };
        let name = words(name).next().unwrap_or_default();
        let Some(package) = packages.iter().find(|it| name_of(&it.folder) == name) else {
            say(format!("the workspace has no crate {name}"));
            continue;
        };
        let uses: BTreeSet<String> = words(uses).map(str::to_owned).collect();
        if uses != package.uses {
            let list: Vec<_> = package.uses.iter().map(String::as_str).collect();
            say(format!("{name} uses {}: write these", list.join(", ")));
        }
        for below in uses.iter().filter(|it| !above.contains(it.as_str())) {
            say(format!("{name} uses {below}, which stands below it: move the row"));
        }
        for file in words(files) {
            let folder = &package.folder;
            let places = [format!("{folder}/src/{file}"), format!("{folder}/{file}")];
            if !places.iter().any(|it| tree.has(it)) {
                say(format!("{name} has no file {file}"));
            }
        }
        above.insert(name);
    }
    for package in packages.iter().filter(|it| !above.contains(name_of(&it.folder))) {
        let what = format!("the code map has no row of the crate {}", name_of(&package.folder));
        findings.push(Finding::new(PAGE, 0, what));
    }
    findings
}

/// Compares the rows of folders with those of the repository that hold no crate.
fn judge_folders(tree: &Tree, packages: &[Package], rows: &[Row<'_>]) -> Vec<Finding> {
    let first = |path: &str| path.split_once('/').map(|(folder, _)| folder.to_owned());
    let of_crates: BTreeSet<_> = packages
        .iter()
        .map(|it| it.folder.split('/').next().unwrap_or_default().to_owned())
        .collect();
    let folders: BTreeSet<_> = tree.all().filter_map(|(path, _)| first(path)).collect();
    let named: BTreeSet<_> =
        rows.iter().flat_map(|(_, cells)| words(cells[0]).map(str::to_owned)).collect();
    let finding = |what: String| Finding::new(PAGE, 0, what);
    let missing = folders.difference(&of_crates).filter(|it| !named.contains(*it));
    let gone = named.iter().filter(|it| !folders.contains(*it) || of_crates.contains(*it));
    missing
        .map(|it| finding(format!("the code map has no row of the folder {it}")))
        .chain(gone.map(|it| finding(format!("{it} is no folder without crates"))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two crates, of which the second uses the first, and a folder.
    const MAP: &str = "\
| crate | what | uses | look first at |
|---|---|---|---|
| `wire` | names | – | `name.rs` |
| `xtask` | chores | `wire` | `main.rs` |

| folder | what |
|---|---|
| `docs` | pages |
";

    /// Returns what is said of a map in a repository of two crates and the folder `docs`.
    fn complaints(map: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", map),
            ("crates/wire/src/name.rs", ""),
            ("xtask/src/main.rs", ""),
            ("docs/a.md", ""),
        ]);
        let package = |folder: &str, uses: &[&str]| Package {
            folder: folder.to_owned(),
            uses: uses.iter().map(|it| (*it).to_owned()).collect(),
        };
        let packages = [package("crates/wire", &[]), package("xtask", &["wire"])];
        judge(&tree, &packages).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_map_that_is_the_tree_is_accepted() {
        assert_eq!(complaints(MAP), [""; 0]);
    }

    #[test]
    fn a_crate_and_a_folder_without_a_row_are_named() {
        let map = MAP.replace("| `wire` | names | – | `name.rs` |\n", "");
        let said = complaints(&map.replace("| `docs` | pages |\n", ""));
        assert!(
            said.contains(&"ARCHITECTURE.md: the code map has no row of the crate wire".into())
        );
        assert!(
            said.contains(&"ARCHITECTURE.md: the code map has no row of the folder docs".into())
        );
    }

    #[test]
    fn rows_of_what_is_not_there_are_named() {
        let map = MAP.replace("`wire` | names", "`wires` | names").replace("docs", "texts");
        let said = complaints(&map);
        assert!(said.contains(&"ARCHITECTURE.md:3: the workspace has no crate wires".into()));
        assert!(said.contains(&"ARCHITECTURE.md: texts is no folder without crates".into()));
        let said = complaints(&MAP.replace("name.rs", "names.rs"));
        assert_eq!(said, ["ARCHITECTURE.md:3: wire has no file names.rs"]);
    }

    #[test]
    fn a_map_of_other_uses_is_refused() {
        let said = complaints(&MAP.replace("| `wire` | `main.rs`", "| – | `main.rs`"));
        assert_eq!(said, ["ARCHITECTURE.md:4: xtask uses wire: write these"]);
    }

    #[test]
    fn a_crate_stands_below_those_that_it_uses() {
        let wire = "| `wire` | names | – | `name.rs` |\n";
        let xtask = "| `xtask` | chores | `wire` | `main.rs` |\n";
        let map = MAP.replace(&format!("{wire}{xtask}"), &format!("{xtask}{wire}"));
        let said = complaints(&map);
        assert_eq!(
            said,
            ["ARCHITECTURE.md:3: xtask uses wire, which stands below it: move the row"]
        );
    }

    #[test]
    fn uses_of_tests_are_not_in_the_map() {
        let metadata = serde_json::json!({
            "workspace_root": "/a",
            "packages": [{
                "manifest_path": "/a/crates/zone/Cargo.toml",
                "dependencies": [
                    {"name": "zonda-wire", "kind": null, "path": "/a/crates/wire"},
                    {"name": "zonda-testkit", "kind": "dev", "path": "/a/crates/testkit"},
                    {"name": "ring", "kind": null},
                ],
            }],
        });
        let packages = packages(&metadata);
        assert_eq!(packages[0].folder, "crates/zone");
        assert_eq!(packages[0].uses, BTreeSet::from(["wire".to_owned()]));
    }
}
