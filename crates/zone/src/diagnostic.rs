//! What is wrong with zone data, and where.

use crate::check::CheckProblem;
use crate::file::FileProblem;
use crate::hosts::HostsProblem;
use crate::json::JsonProblem;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use zonda_wire::{Name, Type};

/// Most diagnostics that are kept; the rest are counted only.
pub const LISTED_MAX: usize = 1000;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The zone can be served.
    Warning,
    /// The zone cannot be read in whole, or other servers refuse it.
    Error,
}

/// A finding: something that is wrong in a zone's text or records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity of the finding.
    pub severity: Severity,
    /// The place of the finding.
    pub place: Place,
    /// The record it is about, as far as it is known.
    pub record: Option<RecordName>,
    /// What is wrong, and what to write instead.
    pub problem: Problem,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was named.
    pub file: Arc<Path>,
    /// The line of the file, from 1 on; 0 stands for the file as a whole.
    pub line: u32,
    /// The octet of the line, from 1 on; 0 stands for the line as a whole.
    pub column: u32,
}

/// What a record is called in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordName {
    /// Owner of the record.
    pub owner: Name,
    /// Type of the record, if the text got that far.
    pub rtype: Option<Type>,
}

/// A problem of a zone, by the part of the crate that finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The text of a master file.
    File(FileProblem),
    /// A JSON zone.
    Json(JsonProblem),
    /// A hosts file.
    Hosts(HostsProblem),
    /// How records fit together.
    Check(CheckProblem),
}

/// The errors of a zone, of which the first is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors {
    /// The first error found.
    pub first: Diagnostic,
    /// Number of errors found.
    pub count: u64,
}

impl Errors {
    /// Counts an error.
    pub(crate) fn add(errors: &mut Option<Self>, error: &Diagnostic) {
        match errors {
            Some(errors) => errors.count += 1,
            None => *errors = Some(Self { first: error.clone(), count: 1 }),
        }
    }
}

/// Diagnostics in the order in which they were found, at most [`LISTED_MAX`] of them.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    listed: Vec<Diagnostic>,
    errors: Option<Errors>,
    warnings: u64,
}

impl Diagnostics {
    /// Adds one, or counts it when the list is full.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        match diagnostic.severity {
            Severity::Error => Errors::add(&mut self.errors, &diagnostic),
            Severity::Warning => self.warnings += 1,
        }
        if self.listed.len() < LISTED_MAX {
            self.listed.push(diagnostic);
        }
    }

    /// Adds the findings of another run.
    pub fn append(&mut self, other: Self) {
        match (&mut self.errors, other.errors) {
            (Some(errors), Some(more)) => errors.count += more.count,
            (Some(_), None) => {}
            (none, errors) => *none = errors,
        }
        self.warnings += other.warnings;
        let room = LISTED_MAX - self.listed.len();
        self.listed.extend(other.listed.into_iter().take(room));
    }

    /// Returns the number of errors, listed or not.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.errors.as_ref().map_or(0, |errors| errors.count)
    }

    /// The errors, listed or not.
    #[must_use]
    pub fn errors(&self) -> Option<&Errors> {
        self.errors.as_ref()
    }

    /// Returns the number of warnings, listed or not.
    #[must_use]
    pub fn warning_count(&self) -> u64 {
        self.warnings
    }

    /// Whether there is an error, so that the zone cannot be served.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.errors.is_some()
    }

    /// Returns the findings that are listed.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.listed.iter()
    }

    /// Returns how many findings are counted but not listed.
    #[must_use]
    pub fn unlisted_count(&self) -> u64 {
        self.error_count() + self.warnings - self.listed.len() as u64
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Writes one line for each finding.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for diagnostic in self {
            writeln!(f, "{diagnostic}")?;
        }
        match self.unlisted_count() {
            0 => Ok(()),
            more => writeln!(f, "and {more} more"),
        }
    }
}

/// `file:line:column: error: what is wrong (owner type)`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.place, self.severity, self.problem)?;
        match &self.record {
            Some(record) => write!(f, " ({record})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.display().fmt(f)?;
        match (self.line, self.column) {
            (0, _) => Ok(()),
            (line, 0) => write!(f, ":{line}"),
            (line, column) => write!(f, ":{line}:{column}"),
        }
    }
}

impl fmt::Display for RecordName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rtype {
            Some(rtype) => write!(f, "{} {rtype}", self.owner),
            None => self.owner.fmt(f),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(problem) => problem.fmt(f),
            Self::Json(problem) => problem.fmt(f),
            Self::Hosts(problem) => problem.fmt(f),
            Self::Check(problem) => problem.fmt(f),
        }
    }
}

impl From<FileProblem> for Problem {
    fn from(problem: FileProblem) -> Self {
        Self::File(problem)
    }
}

impl From<JsonProblem> for Problem {
    fn from(problem: JsonProblem) -> Self {
        Self::Json(problem)
    }
}

impl From<HostsProblem> for Problem {
    fn from(problem: HostsProblem) -> Self {
        Self::Hosts(problem)
    }
}

impl From<CheckProblem> for Problem {
    fn from(problem: CheckProblem) -> Self {
        Self::Check(problem)
    }
}
