//! What is wrong with a configuration, and where.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_wire::NameError;

/// Where something stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// File, as it was named.
    pub file: Arc<Path>,
    /// Counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", in_one_line(&self.file), self.line)
    }
}

/// Returns a path, without characters that would break the line.
fn in_one_line(path: &Path) -> String {
    path.to_string_lossy().escape_debug().to_string()
}

/// Why nothing came of a configuration.
#[derive(Debug)]
pub struct ImportError {
    /// Place of the fault; none for the first file itself.
    pub place: Option<Place>,
    /// The problem at that place.
    pub problem: Problem,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}:{}: {}", place.column, self.problem),
            None => self.problem.fmt(f),
        }
    }
}

impl std::error::Error for ImportError {}

/// A problem of the file to import.
#[derive(Debug)]
pub enum Problem {
    /// Something else should stand here.
    Expected {
        /// The element that should stand at the place.
        wanted: String,
        /// The element that stands there instead.
        found: String,
    },
    /// A comment or a string begins here and never ends.
    Open(&'static str),
    /// A file cannot be read.
    Unreadable(PathBuf, io::Error),
    /// A word is not text.
    NotText,
    /// There is no access list of this name.
    UnknownList(String),
    /// A key of this name is not defined.
    UnknownKey(String),
    /// There is no `tls` statement of this name.
    UnknownTls(String),
    /// A second statement where only one may stand.
    Twice(String, Place),
    /// The text is not YAML, in the words of the YAML parser.
    NotYaml(String),
    /// A key that must be there is missing.
    Missing(&'static str),
    /// A file includes itself, perhaps through other files.
    Circle(PathBuf),
    /// There is no region of this name.
    UnknownRegion(String),
    /// A name is not one, with the reason.
    NotAName(String, NameError),
    /// A zone file has no SOA record with a whole name, and no other origin.
    NoOrigin,
    /// Blocks or files within each other, or access lists, beyond any real configuration.
    TooMuch(&'static str, usize),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expected { wanted, found } => write!(f, "expected {wanted}, found {found}"),
            Self::Open(what) => write!(f, "the {what} that begins here does not end"),
            Self::Unreadable(path, error) => write!(f, "{}: {error}", in_one_line(path)),
            Self::NotText => f.write_str("this is not text in UTF-8"),
            Self::UnknownList(name) => write!(f, "there is no acl \"{}\"", name.escape_debug()),
            Self::UnknownKey(name) => write!(f, "there is no key \"{}\"", name.escape_debug()),
            Self::UnknownTls(name) => {
                write!(f, "there is no tls \"{}\"", name.escape_debug())
            }
            Self::Twice(what, first) => write!(f, "{what} is given already, at {first}"),
            Self::NotYaml(why) => write!(f, "this is not YAML: {}", why.escape_debug()),
            Self::Missing(key) => write!(f, "`{key}` is missing"),
            Self::Circle(path) => {
                write!(f, "{} is included already, by this file or around it", in_one_line(path))
            }
            Self::UnknownRegion(name) => {
                write!(f, "there is no region \"{}\"", name.escape_debug())
            }
            Self::NotAName(name, why) => write!(f, "`{}`: {why}", name.escape_debug()),
            Self::NoOrigin => f.write_str(
                "the name of the zone is not known: write $ORIGIN into the file, or give --origin",
            ),
            Self::TooMuch(what, most) => write!(f, "{what}: at most {most} can be read"),
        }
    }
}
