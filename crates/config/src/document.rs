//! The configuration file: its TOML, and where in the file each piece of it stands.

use crate::error::{ConfigError, Origin, Problem};
use crate::section::Shape;
use crate::toml::Spanned;
use crate::toml::de::{DeTable, DeValue};
use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A file's text and the places of its lines.
pub(crate) struct Source {
    path: Arc<Path>,
    text: String,
    /// Offset of the first octet of each line.
    lines: Vec<usize>,
}

impl Source {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Self::new(path, text)),
            Err(error) => Err(ConfigError {
                origin: Origin::Flag("--config"),
                problem: Problem::Unreadable(path.to_owned(), error),
            }),
        }
    }

    /// Makes a file of this text.
    pub fn new(path: &Path, text: String) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, octet)| *octet == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { path: path.into(), text, lines }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory that its relative paths start from.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Reads the file's TOML. Lines that are not TOML are reported to `errors` and left out.
    pub fn parse(&self, errors: &mut Vec<ConfigError>) -> DeTable<'_> {
        let (table, faults) = DeTable::parse_recoverable(&self.text);
        errors.extend(faults.into_iter().map(|fault| ConfigError {
            origin: self.origin(fault.span().map_or(0, |span| span.start)),
            problem: Problem::Syntax(fault.message().to_owned()),
        }));
        table.into_inner()
    }

    /// Whether the file seems to be a zone file, given in place of a configuration.
    pub fn looks_like_a_zone(&self) -> bool {
        looks_like_a_zone(&self.text)
    }

    /// Returns the error that it is a zone file.
    pub fn zone_file(&self) -> ConfigError {
        let problem = Problem::ZoneFile(self.path.to_path_buf());
        ConfigError { origin: self.origin(0), problem }
    }

    /// Returns the place of the octet at `offset`.
    pub fn origin(&self, offset: usize) -> Origin {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines[line - 1]; // the first line starts at 0, so `line` is 1 or more
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count()) + 1;
        Origin::File { path: self.path.clone(), line, column }
    }

    /// Returns what stands at `span`.
    pub fn excerpt(&self, span: Range<usize>) -> &str {
        self.text.get(span).unwrap_or_default()
    }

    /// Returns the text form of a value, and the shape it is written in.
    pub fn text_form<'a>(&'a self, value: &'a Spanned<DeValue<'_>>) -> (Cow<'a, str>, Shape) {
        match value.get_ref() {
            DeValue::String(text) => (text.as_ref().into(), Shape::Text),
            DeValue::Boolean(true) => ("true".into(), Shape::Boolean),
            DeValue::Boolean(false) => ("false".into(), Shape::Boolean),
            DeValue::Integer(number) if number.radix() == 10 => {
                (number.as_str().into(), Shape::Integer)
            }
            DeValue::Float(number) => (number.as_str().into(), Shape::Number),
            _ => (self.excerpt(value.span()).into(), Shape::Other),
        }
    }
}

/// Whether a text is a zone file: a line begins with one of its directives, or holds a SOA record.
#[must_use]
pub fn looks_like_a_zone(text: &str) -> bool {
    const DIRECTIVES: [&str; 4] = ["$ORIGIN", "$TTL", "$INCLUDE", "$GENERATE"];
    text.lines().any(|line| {
        let line = line.split(';').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let first = if line.starts_with([' ', '\t']) { None } else { words.next() };
        let is_directive =
            first.is_some_and(|word| DIRECTIVES.iter().any(|it| word.eq_ignore_ascii_case(it)));
        // Behind the owner stand a TTL and a class, or none of them.
        is_directive || words.take(3).any(|word| word.eq_ignore_ascii_case("SOA"))
    })
}
