//! A `zonda.toml` under way, and the list of what did not get into it.

use crate::error::Place;
use std::fmt::{self, Write};

/// Sections with their keys, in the order in which they are written.
#[derive(Default)]
pub struct Document(String);

impl Document {
    /// Makes a file that begins with these lines of comment.
    pub fn new(comment: &str) -> Self {
        let mut text = String::new();
        for line in comment.lines() {
            let _ = writeln!(text, "# {}", plain(line)); // never fails
        }
        text.push_str("version = 1\n");
        Self(text)
    }

    /// Begins a section, such as `[[zone]]`.
    pub fn section(&mut self, header: &str, origin: Option<&Place>) {
        self.0.push('\n');
        self.line(header, origin);
    }

    /// Writes a key, and the line that it comes from.
    pub fn key(&mut self, name: &str, value: impl Into<Value>, origin: Option<&Place>) {
        self.line(&format!("{name} = {}", value.into().0), origin);
    }

    fn line(&mut self, text: &str, origin: Option<&Place>) {
        self.0.push_str(text);
        if let Some(place) = origin {
            let _ = write!(self.0, "  # {}", plain(&place.to_string())); // never fails
        }
        self.0.push('\n');
    }

    /// Returns the text of the file.
    pub fn into_text(self) -> String {
        self.0
    }
}

/// Text without characters that a comment may not hold.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A value as it is written.
#[derive(Clone)]
pub struct Value(String);

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self(value.to_string())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self(value.to_string())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self(quoted(text))
    }
}

impl From<&[String]> for Value {
    /// Makes a list; one that is long has a line for each element.
    fn from(elements: &[String]) -> Self {
        /// Columns of a list that stays on its line.
        const SHORT: usize = 80;
        let elements: Vec<String> = elements.iter().map(|element| quoted(element)).collect();
        let short = elements.join(", ");
        if short.len() <= SHORT {
            return Self(format!("[{short}]"));
        }
        Self(format!("[\n    {},\n]", elements.join(",\n    ")))
    }
}

/// Text as a string of TOML.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c)); // never fails
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The effect of a statement that was not carried over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Zonda does the same by default, or has nothing that the setting could apply to.
    Needless,
    /// Zonda differs in this.
    Differs,
    /// Zonda does not have the feature.
    Lost,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Needless => "needless",
            Self::Differs => "differs",
            Self::Lost => "lost",
        })
    }
}

/// Something that was not carried over as it was.
#[derive(Clone, Debug)]
pub struct Omission {
    /// Place of the statement.
    pub place: Place,
    /// Effect of the omission.
    pub effect: Effect,
    /// Statement, in the words of the file.
    pub what: String,
    /// Reason, or what takes the setting's place.
    pub why: String,
}

impl fmt::Display for Omission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}: {}", self.place, self.effect, self.what, self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_so_that_it_is_read_as_it_was() {
        assert_eq!(quoted("a\"b\\c\n\u{7f}ä"), "\"a\\\"b\\\\c\\u000A\\u007Fä\"");
    }

    #[test]
    fn a_long_list_has_a_line_for_each_element() {
        let elements: Vec<String> = (0..9).map(|number| format!("192.0.2.{number}")).collect();
        assert_eq!(Value::from(&elements[..2]).0, r#"["192.0.2.0", "192.0.2.1"]"#);
        assert_eq!(Value::from(&elements[..]).0.lines().count(), 11);
    }
}
