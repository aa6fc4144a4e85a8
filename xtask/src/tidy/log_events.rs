//! Events of the log: a constant text, and the facts as fields, so that logs in JSON can be
//! searched by them.

use super::{Finding, Tree};

/// The macros that log an event.
const MACROS: &[&str] = &["trace!(", "debug!(", "info!(", "warn!(", "error!("];

/// Finds events whose text holds values.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending(".rs").filter(|(path, _)| !path.contains("/tests")) {
        let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
        let starts = MACROS
            .iter()
            .flat_map(|name| code.match_indices(name).map(move |(at, _)| (at, at + name.len())));
        for (at, start) in starts.filter(|(at, _)| is_event(code, *at)) {
            if holds_values(&code[start..]) {
                let line = code[..at].matches('\n').count() + 1;
                let what =
                    "the text of a log event holds values; make them fields (`zone = %name`)";
                findings.push(Finding::new(path, line, what));
            }
        }
    }
    findings
}

/// Whether a macro of this name is called here, by itself or as one of `tracing`, in code.
fn is_event(code: &str, at: usize) -> bool {
    let line = code[..at].rsplit('\n').next().unwrap_or_default();
    let before = line.strip_suffix("tracing::").unwrap_or(line);
    let is_part = before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
    !is_part && !line.contains("//") && line.matches('"').count().is_multiple_of(2)
}

/// Whether a text among the arguments of a macro, up to its end, is a format with values. Texts of
/// calls within the arguments, and values of fields, may be.
fn holds_values(arguments: &str) -> bool {
    let (mut depth, mut is_value, mut characters) = (0, false, arguments.chars().peekable());
    while let Some(character) = characters.next() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return false,
            ')' | ']' | '}' => depth -= 1,
            '=' if depth == 0 => is_value = true,
            ',' if depth == 0 => is_value = false,
            '"' => {
                let mut has_values = false;
                while let Some(character) = characters.next() {
                    match character {
                        '\\' => _ = characters.next(),
                        '"' => break,
                        '{' if characters.next_if_eq(&'{').is_none() => has_values = true,
                        _ => {}
                    }
                }
                if has_values && depth == 0 && !is_value {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a file in which events are found.
    fn lines(text: &str) -> Vec<usize> {
        let tree = Tree::of(&[("crates/server/src/a.rs", text)]);
        check(&tree).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn values_in_the_text_of_an_event_are_found() {
        assert_eq!(lines("fn a() {\n    tracing::warn!(\"zone {name} is gone\");\n}\n"), [2]);
        assert_eq!(
            lines("tracing::info!(\n    zone = %name,\n    \"{} records\",\n    1\n);\n"),
            [1]
        );
        assert_eq!(lines("|more| error!(route, \"it failed{more}\")"), [1]);
    }

    #[test]
    fn values_of_fields_and_other_macros_are_not() {
        for text in [
            "tracing::warn!(zone = %name, \"a zone is gone\");",
            "tracing::info!(url = format!(\"http://{address}\"), \"metrics\");",
            "tracing::info!(\"braces {{}} are text\");",
            "println!(\"{name}\"); my_warn!(\"{name}\"); log::debug!(\"{name}\");",
            "// tracing::warn!(\"{name}\")",
            "#[cfg(test)]\nmod tests {\n    tracing::warn!(\"{name}\");\n}\n",
            "tracing::warn!(error = \"{}\", \"text\");",
        ] {
            assert_eq!(lines(&format!("\n{text}")), [0; 0], "{text}");
        }
    }
}
