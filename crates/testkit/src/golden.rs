//! Files that hold what a program is expected to say.

use std::path::Path;

/// Compares a text with a golden file, or rewrites the file when `UPDATE` is set.
///
/// # Panics
/// When they differ, or the file cannot be read or written.
pub fn check(path: &Path, found: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, found).expect("golden files are writable");
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    let differs_at = found.lines().zip(expected.lines()).position(|(a, b)| a != b);
    let line = differs_at.map_or("in its length".to_owned(), |at| format!("from line {}", at + 1));
    assert!(
        found == expected,
        "{} differs {line}; UPDATE=1 rewrites it. Found:\n{found}",
        path.display()
    );
}
