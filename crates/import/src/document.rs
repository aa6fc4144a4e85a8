//! A `zonda.toml` under way, and the list of what did not get into it.

use crate::error::Place;
use std::fmt::{self, Write};

/// Sections with their keys, in the order in which they are written.
#[derive(Default)]
pub struct Document {
    /// Lines of the file.
    text: String,
    /// Whether no line says where it comes from.
    is_without_origins: bool,
}

impl Document {
    /// Makes a file that begins with these lines of comment.
    pub fn new(comment: &str) -> Self {
        let mut text = String::new();
        for line in comment.lines() {
            let _ = writeln!(text, "# {}", plain(line)); // never fails
        }
        text.push_str("version = 1\n");
        Self { text, is_without_origins: false }
    }

    /// Makes a part of a file, to compare parts: no line says where it comes from.
    pub fn without_origins() -> Self {
        Self { text: String::new(), is_without_origins: true }
    }

    /// Begins a section, such as `[[zone]]`.
    pub fn section(&mut self, header: &str, origin: Option<&Place>) {
        self.text.push('\n');
        self.line(header, origin);
    }

    /// Writes a key, and the line that it comes from.
    pub fn key(&mut self, name: &str, value: impl Into<Value>, origin: Option<&Place>) {
        self.line(&format!("{name} = {}", value.into().0), origin);
    }

    fn line(&mut self, text: &str, origin: Option<&Place>) {
        self.text.push_str(text);
        if let (Some(place), false) = (origin, self.is_without_origins) {
            let _ = write!(self.text, "  # {}", plain(&place.to_string())); // never fails
        }
        self.text.push('\n');
    }

    /// Returns the text of the file.
    pub fn into_text(self) -> String {
        self.text
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

impl From<Vec<Value>> for Value {
    /// Makes a list in one line.
    fn from(elements: Vec<Value>) -> Self {
        let elements: Vec<String> = elements.into_iter().map(|element| element.0).collect();
        Self(format!("[{}]", elements.join(", ")))
    }
}

impl Value {
    /// Makes a table in one line, of keys as they are written.
    pub fn table<K: AsRef<str>>(pairs: impl IntoIterator<Item = (K, Value)>) -> Self {
        let pair = |(name, value): (K, Value)| format!("{} = {}", key(name.as_ref()), value.0);
        let pairs: Vec<String> = pairs.into_iter().map(pair).collect();
        match pairs.is_empty() {
            true => Self("{}".to_owned()),
            false => Self(format!("{{ {} }}", pairs.join(", "))),
        }
    }

    /// Makes a number with a fraction.
    pub fn number(number: f64) -> Self {
        Self(format!("{number:?}"))
    }

    /// Makes a list with a line for each element, and the line that the element comes from.
    pub fn lines(elements: impl IntoIterator<Item = (Value, Option<Place>)>) -> Self {
        let mut text = "[\n".to_owned();
        for (value, origin) in elements {
            let comment =
                origin.map_or(String::new(), |it| format!("  # {}", plain(&it.to_string())));
            let _ = writeln!(text, "    {},{comment}", value.0); // never fails
        }
        text.push(']');
        Self(text)
    }
}

/// Returns a key as it is written: bare where that is possible.
pub fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => quoted(name),
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

/// What became of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The statement was taken over.
    Taken,
    /// The statement was taken over, and has an effect here that it had not there.
    Works,
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
            Self::Taken => "taken",
            Self::Works => "works",
            Self::Needless => "needless",
            Self::Differs => "differs",
            Self::Lost => "lost",
        })
    }
}

/// What became of a statement, and why.
#[derive(Clone, Debug)]
pub struct ReportLine {
    /// Place of the statement.
    pub place: Place,
    /// What became of the statement.
    pub effect: Effect,
    /// Statement, in the words of the file.
    pub what: String,
    /// Reason, or what takes the setting's place.
    pub why: String,
}

impl fmt::Display for ReportLine {
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
