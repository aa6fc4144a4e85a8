//! Why a zone was not loaded.

use std::fmt;
use zonda_zone::Errors;

/// Why a zone was not loaded: the first error, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// `file:line:column: …` of the first.
    pub first: String,
    /// All errors; none while the data are awaited.
    pub count: u64,
}

impl LoadError {
    /// The error of a zone that has no data yet.
    pub fn awaited() -> Self {
        Self { first: "its data are awaited".to_owned(), count: 0 }
    }

    /// Whether the zone has no data yet, and nothing is wrong with them: the log tells why
    /// elsewhere.
    pub fn is_awaited(&self) -> bool {
        self.count == 0
    }
}

impl From<Errors> for LoadError {
    fn from(errors: Errors) -> Self {
        Self { first: errors.first.to_string(), count: errors.count }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            0 | 1 => f.write_str(&self.first),
            count => write!(f, "{} (and {} more errors)", self.first, count - 1),
        }
    }
}
