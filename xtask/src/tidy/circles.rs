//! Modules that import one another in a circle.
//!
//! A module is a file. It imports another one by a `use`, or by a path that begins with `crate`,
//! `super` or one of its own modules. A `pub use` is no import: a name that a module hands on is
//! taken from where it is declared, so that a `mod.rs` may list what its folder offers. Tests may
//! import what they like.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Finding, Tree};

/// Crates whose modules import one another in one direction only.
const APPLIED: &[&str] = &["crates/engine", "crates/forward", "crates/server"];

/// A module's place in its crate: the names of the modules around it, and its own.
type Module = Vec<String>;

/// Looks at the modules of every crate that the rule applies to.
pub fn check(tree: &Tree) -> Vec<Finding> {
    APPLIED.iter().flat_map(|folder| circles(tree, folder)).collect()
}

/// A finding for each circle in the crate of a folder.
fn circles(tree: &Tree, folder: &str) -> Vec<Finding> {
    let krate = Crate::read(tree, folder);
    let edges: BTreeMap<&Module, BTreeSet<&Module>> =
        krate.files.keys().map(|module| (module, krate.imports(module))).collect();
    let mut seen: BTreeSet<&Module> = BTreeSet::new();
    let mut findings = Vec::new();
    for module in krate.files.keys() {
        if seen.contains(module) {
            continue;
        }
        let Some(circle) = shortest_circle(module, &edges) else { continue };
        let names: Vec<String> = circle.iter().map(|module| name(module)).collect();
        let what = format!("imports in a circle: {} → {}", names.join(" → "), names[0]);
        findings.push(Finding::new(&krate.files[module].path, 0, what));
        seen.extend(circle);
    }
    findings
}

/// The shortest way from a module back to it, without its end.
fn shortest_circle<'m>(
    start: &'m Module,
    edges: &BTreeMap<&'m Module, BTreeSet<&'m Module>>,
) -> Option<Vec<&'m Module>> {
    let mut before: BTreeMap<&Module, &Module> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(module) = queue.pop_front() {
        for next in edges.get(module).into_iter().flatten() {
            if *next == start {
                let mut way = vec![module];
                while let Some(earlier) = before.get(way[way.len() - 1]) {
                    way.push(earlier);
                }
                way.reverse();
                return Some(way);
            }
            if !before.contains_key(next) {
                before.insert(next, module);
                queue.push_back(next);
            }
        }
    }
    None
}

/// A module as paths have it.
fn name(module: &Module) -> String {
    if module.is_empty() { "the crate's root".to_owned() } else { module.join("::") }
}

/// A module's file.
struct File {
    /// Path from the repository's root.
    path: String,
    /// The code without comments and tests.
    code: String,
    /// Paths that it hands on, by the name that it gives them; `*` for all names of one.
    exports: Vec<(String, Module)>,
}

/// The modules of a crate.
struct Crate {
    files: BTreeMap<Module, File>,
}

impl Crate {
    /// Reads the modules below `folder`.
    fn read(tree: &Tree, folder: &str) -> Self {
        let root = format!("{folder}/src/");
        let mut files = BTreeMap::new();
        for (path, text) in tree.ending(".rs").filter(|(path, _)| path.starts_with(&root)) {
            let code = without_comments_and_tests(text);
            let relative = path[root.len()..].trim_end_matches(".rs");
            let mut module: Module = relative.split('/').map(str::to_owned).collect();
            if module.last().is_some_and(|last| last == "mod" || module == ["lib"]) {
                module.pop();
            }
            let exports = uses(&code).filter(|it| it.is_export).flat_map(|it| it.names).collect();
            files.insert(module, File { path: path.to_owned(), code, exports });
        }
        Self { files }
    }

    /// The modules that a module imports.
    fn imports(&self, module: &Module) -> BTreeSet<&Module> {
        let file = &self.files[module];
        let used = uses(&file.code).filter(|it| !it.is_export).flat_map(|it| it.names);
        let used = used.map(|(_, path)| path);
        let code = strip_uses(&file.code);
        let targets = used.chain(paths(&code));
        let targets = targets.filter_map(|path| self.resolve(module, &path, 0));
        targets.filter(|target| *target != module).collect()
    }

    /// The module that declares what a path in a module means; none for what lies in other crates.
    fn resolve(&self, module: &Module, path: &[String], depth: usize) -> Option<&Module> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.clone(),
            "super" => module[..module.len().checked_sub(1)?].to_vec(),
            child => {
                let child = [&module[..], &[child.to_owned()]].concat();
                self.files.contains_key(&child).then_some(child)?
            }
        };
        while let Some((next, behind)) = rest.split_first() {
            let inner = [&at[..], std::slice::from_ref(next)].concat();
            if next == "super" {
                at.pop()?;
            } else if self.files.contains_key(&inner) {
                at = inner;
            } else {
                break;
            }
            rest = behind;
        }
        let handed_on = rest.first().and_then(|name| self.exported(&at, name, depth));
        handed_on.or_else(|| self.files.get_key_value(&at).map(|(module, _)| module))
    }

    /// The module that declares a name which a module hands on.
    fn exported(&self, module: &Module, name: &str, depth: usize) -> Option<&Module> {
        const DEPTH_MAX: usize = 8; // modules that hand on names handed on to them
        let exports = &self.files.get(module)?.exports;
        let (_, path) = exports.iter().find(|(known, _)| known == name)?;
        if depth == DEPTH_MAX { None } else { self.resolve(module, path, depth + 1) }
    }
}

/// The code of a file: tests come last in it.
fn without_comments_and_tests(text: &str) -> String {
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    lines.map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// A `use`.
struct Use {
    /// Whether the module hands its names on.
    is_export: bool,
    /// The names, each with the path that it stands for.
    names: Vec<(String, Module)>,
}

/// All `use` statements of a file's code.
fn uses(code: &str) -> impl Iterator<Item = Use> {
    statements(code).into_iter().map(|(_, is_export, tree)| {
        let mut names = Vec::new();
        expand(&[], &tree, &mut names);
        Use { is_export, names }
    })
}

/// Where each `use` statement begins and ends, whether it hands its names on, and its tree of names
/// without spaces.
fn statements(code: &str) -> Vec<((usize, usize), bool, String)> {
    let mut found = Vec::new();
    let mut start = 0;
    for line in code.split_inclusive('\n') {
        let trimmed = line.trim_start();
        let words: Vec<&str> = trimmed.splitn(3, ' ').collect();
        let is_export = words.first().is_some_and(|word| word.starts_with("pub"))
            && words.get(1) == Some(&"use");
        if is_export || words.first() == Some(&"use") {
            let end = start + code[start..].find(';').unwrap_or(line.len());
            let statement = &code[start..end];
            let tree = statement.split_once("use ").map_or("", |(_, tree)| tree);
            let tree: String = tree.replace(" as ", "@").split_whitespace().collect();
            found.push(((start, end), is_export, tree));
        }
        start += line.len();
    }
    found
}

/// The code without its `use` statements.
fn strip_uses(code: &str) -> String {
    let (mut rest, mut at) = (String::new(), 0);
    for ((start, end), _, _) in statements(code) {
        rest.push_str(&code[at.min(start)..start]);
        at = end;
    }
    rest + &code[at..]
}

/// Adds the names of a tree behind a prefix, with their paths.
fn expand(prefix: &[String], tree: &str, names: &mut Vec<(String, Module)>) {
    if let Some((head, group)) = tree.split_once('{') {
        let mut prefix = prefix.to_vec();
        prefix.extend(head.split("::").filter(|part| !part.is_empty()).map(str::to_owned));
        let group = group.strip_suffix('}').unwrap_or(group);
        for part in parts(group) {
            expand(&prefix, part, names);
        }
        return;
    }
    let (path, alias) =
        tree.split_once('@').map_or((tree, None), |(path, alias)| (path, Some(alias)));
    let mut module = prefix.to_vec();
    module.extend(path.split("::").filter(|part| !matches!(*part, "" | "self")).map(str::to_owned));
    if let Some(last) = module.last() {
        let name = alias.map_or_else(|| last.clone(), str::to_owned);
        names.push((name, module));
    }
}

/// What commas separate outside of inner braces.
fn parts(group: &str) -> Vec<&str> {
    let (mut found, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&group[start..]);
    found.retain(|part| !part.is_empty());
    found
}

/// All paths of two parts and more in a file's code.
fn paths(code: &str) -> impl Iterator<Item = Module> {
    let is_part = |character: char| character.is_alphanumeric() || matches!(character, '_' | ':');
    let words = code.split(move |character| !is_part(character));
    words
        .filter(|word| word.contains("::") && !word.starts_with("::"))
        .map(|word| word.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circles in a crate of these files.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let paths: Vec<String> = files.iter().map(|(path, _)| format!("k/src/{path}")).collect();
        let files: Vec<(&str, &str)> =
            paths.iter().zip(files).map(|(path, (_, text))| (path.as_str(), *text)).collect();
        circles(&Tree::of(&files), "k").iter().map(Finding::to_string).collect()
    }

    #[test]
    fn two_modules_that_import_each_other_are_a_circle_which_is_told_once() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "use crate::{\n    b::{B, C as D},\n};\n"),
            ("b.rs", "fn f() -> super::a::A {}\n"),
        ];
        assert_eq!(found(&files), ["k/src/a.rs: imports in a circle: a → b → a"]);
    }

    #[test]
    fn a_circle_of_three_is_found_through_a_name_that_a_module_hands_on() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
            ("a.rs", "use crate::b::Inner;\n"),
            ("b/mod.rs", "mod inner;\npub use inner::Inner;\n"),
            ("b/inner.rs", "use crate::c;\n"),
            ("c.rs", "fn f() { crate::a::g() }\n"),
        ];
        let circle = "k/src/a.rs: imports in a circle: a → b::inner → c → a";
        assert_eq!(found(&files), [circle]);
    }

    #[test]
    fn a_module_and_its_own_child_are_a_circle_if_both_take_from_the_other() {
        let parent = "mod child;\nfn f() { child::g() }\npub struct P;\n";
        let files = [("a/mod.rs", parent), ("a/child.rs", "use super::P;\n")];
        assert_eq!(found(&files).len(), 1);
        let list = "mod child;\nmod p;\npub use child::g;\npub use p::P;\n";
        let files =
            [("a/mod.rs", list), ("a/child.rs", "use super::P;\n"), ("a/p.rs", "pub struct P;\n")];
        assert_eq!(found(&files), [""; 0], "a list of names is no import");
    }

    #[test]
    fn comments_tests_and_other_crates_are_no_imports() {
        let files = [
            ("a.rs", "use crate::b::B;\n"),
            (
                "b.rs",
                "use a_crate::a::A; // use crate::a::A;\n/// [`A`](crate::a::A)\nstruct B;\n\
                 #[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
            ),
        ];
        assert_eq!(found(&files), [""; 0]);
    }
}
