//! The repository as the rules see it: its text files, held in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every text file that git knows or would know, by its path from the root.
pub struct Tree {
    /// Absolute path of the repository.
    pub root: PathBuf,
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the repository that this program was built from.
    pub fn of_repository() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("xtask lies in the root")
            .to_owned();
        let output = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(&root)
            .output()
            .expect("git is needed to list the files");
        let files = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|path| {
                Some((path.to_owned(), std::fs::read_to_string(root.join(path)).ok()?))
            })
            .collect();
        Self { root, files }
    }

    /// Makes a tree for tests.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Self { root: PathBuf::new(), files: files.collect() }
    }

    /// Path and text of every file whose path ends with `suffix`.
    pub fn ending<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.all().filter(move |(path, _)| path.ends_with(suffix))
    }

    /// Path and text of every file.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the text of one file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether `path` is a file or a folder of the tree.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.text(path).is_some()
            || self.files.keys().any(|p| p.starts_with(&folder))
    }
}
