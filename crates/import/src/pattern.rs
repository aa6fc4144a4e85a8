//! Patterns of file names, as shells have them: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a
//! character that is meant as it is. Where it is asked for, a component `**` stands for any number
//! of folders within each other.
//!
//! Deliberately absent: classes such as `[[:digit:]]`.

use crate::Files;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Returns the paths of files that a pattern below a folder stands for, sorted; itself if it is
/// none. Never more than `most` and one.
///
/// # Errors
/// When there is no such file, or a folder cannot be read.
pub fn expand(
    base: &Path,
    pattern: &str,
    files: &mut dyn Files,
    most: usize,
) -> io::Result<Vec<PathBuf>> {
    expand_components(base, pattern, files, most, false)
}

/// Does the same, and takes a component `**` for any folders, also none.
///
/// # Errors
/// When there is no such file, or a folder cannot be read.
pub fn expand_deep(
    base: &Path,
    pattern: &str,
    files: &mut dyn Files,
    most: usize,
) -> io::Result<Vec<PathBuf>> {
    expand_components(base, pattern, files, most, true)
}

fn expand_components(
    base: &Path,
    pattern: &str,
    files: &mut dyn Files,
    most: usize,
    is_deep: bool,
) -> io::Result<Vec<PathBuf>> {
    if !is_pattern(pattern) {
        return Ok(vec![base.join(pattern)]);
    }
    let (mut found, mut trouble) = (vec![base.to_owned()], None);
    let mut is_known = true; // whether the caller knows the folders found
    for component in Path::new(pattern).components() {
        let part = match (component, component.as_os_str().to_str()) {
            (Component::Normal(_), Some(part)) if is_pattern(part) || !is_known => part,
            _ => {
                found.iter_mut().for_each(|path| path.push(component));
                continue;
            }
        };
        is_known = false;
        if is_deep && part == "**" {
            found = folders_below(found, files, most);
            continue;
        }
        let mut deeper = Vec::new();
        for folder in found {
            let names = files.list(&folder).unwrap_or_else(|error| {
                trouble.get_or_insert(error);
                Vec::new()
            });
            let mut names: Vec<String> =
                names.into_iter().filter(|name| matches(part, name)).collect();
            names.sort();
            deeper.extend(names.into_iter().map(|name| folder.join(name)));
            if deeper.len() > most {
                break;
            }
        }
        found = deeper;
    }
    found.truncate(most + 1);
    match found.is_empty() {
        true => Err(trouble.unwrap_or_else(|| io::ErrorKind::NotFound.into())),
        false => Ok(found),
    }
}

/// Returns folders, and those that lie in them at any depth; at most `most` and one.
fn folders_below(tops: Vec<PathBuf>, files: &mut dyn Files, most: usize) -> Vec<PathBuf> {
    /// Folders within each other, which a link that leads upwards would make endless.
    const DEPTH_MAX: usize = 32;
    let mut all = Vec::new();
    let mut level = tops;
    for _ in 0..DEPTH_MAX {
        let mut deeper = Vec::new();
        for folder in level {
            let Ok(mut names) = files.list(&folder) else { continue }; // a file
            if all.len() > most {
                return all;
            }
            names.sort();
            names.retain(|name| !name.starts_with('.'));
            deeper.extend(names.into_iter().map(|name| folder.join(name)));
            all.push(folder);
        }
        level = deeper;
    }
    all
}

/// Whether a text is a pattern.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Whether a pattern stands for a name. One that begins with a dot must be named with it.
fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (mut pattern, mut name) = (pattern, name);
    let mut star: Option<(&str, &str)> = None; // behind it, and what it has not taken
    loop {
        if let Some(behind) = pattern.strip_prefix('*') {
            star = Some((behind, name));
            pattern = behind;
            continue;
        }
        let mut rest = name.chars();
        let passed = rest.next().and_then(|c| one(pattern, c));
        match (passed, star) {
            (Some(behind), _) => (pattern, name) = (behind, rest.as_str()),
            (None, _) if pattern.is_empty() && name.is_empty() => return true,
            (None, Some((behind, taken))) => {
                let mut taken = taken.chars();
                if taken.next().is_none() {
                    return false;
                }
                star = Some((behind, taken.as_str()));
                (pattern, name) = (behind, taken.as_str());
            }
            (None, None) => return false,
        }
    }
}

/// Returns what is left of a pattern whose first part, which is no `*`, stands for a character.
fn one(pattern: &str, c: char) -> Option<&str> {
    let mut rest = pattern.chars();
    let stands_for = match rest.next()? {
        '?' => true,
        '\\' => rest.next()? == c,
        '[' => match set(rest.as_str(), c) {
            Some((has, behind)) => return has.then_some(behind),
            None => c == '[',
        },
        first => first == c,
    };
    stands_for.then_some(rest.as_str())
}

/// Whether a set has a character, and what follows the set; none if it does not end.
fn set(text: &str, c: char) -> Option<(bool, &str)> {
    let inner = text.strip_prefix(['!', '^']);
    let mut rest = inner.unwrap_or(text).chars();
    let (mut has, mut is_first) = (false, true);
    loop {
        let low = match rest.next()? {
            ']' if !is_first => return Some((has != inner.is_some(), rest.as_str())),
            '\\' => rest.next()?,
            low => low,
        };
        is_first = false;
        let mut ahead = rest.clone();
        let high = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(high)) if high != ']' => {
                rest = ahead;
                high
            }
            _ => low,
        };
        has |= (low..=high).contains(&c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_the_names_that_shells_find() {
        for (pattern, name, expected) in [
            ("*.conf", "a.conf", true),
            ("*.conf", ".conf", false),
            (".*", ".conf", true),
            ("*.conf", "a.conf.old", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?", "ä", true),
            ("?", "", false),
            ("[a-c]x", "bx", true),
            ("[a-c]x", "dx", false),
            ("[!a-c]x", "dx", true),
            ("[^a-c]x", "bx", false),
            ("[]a]", "]", true),
            ("[a-]", "-", true),
            ("[a", "[a", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("**", "x", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_is_compared_with_a_long_name_quickly() {
        assert!(!matches(&"a*".repeat(2000), &"a".repeat(1999)));
        assert!(!matches(&format!("{}b", "*a".repeat(500)), &"a".repeat(2000)));
    }
}
