//! JSON zones in a program without the feature `json`: each file is an error that says so.

use crate::diagnostic::{Diagnostic, Diagnostics, Errors, Place, Severity};
use crate::json_zone::{JsonFile, JsonZone};
use crate::records::Records;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use zonda_wire::Name;

/// The problem of every JSON file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonProblem;

impl fmt::Display for JsonProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "this program was built without JSON zones: switch on the feature `json`, or write a \
             master file",
        )
    }
}

/// Reads nothing of a file, and reports that.
#[must_use]
pub fn read(path: &Path) -> JsonFile {
    let place = Place { file: path.into(), line: 0, column: 0 };
    let problem = JsonProblem.into();
    let diagnostic = Diagnostic { severity: Severity::Error, place, record: None, problem };
    let (mut errors, mut diagnostics) = (None, Diagnostics::default());
    Errors::add(&mut errors, &diagnostic);
    diagnostics.push(diagnostic);
    JsonFile { zones: Vec::new(), errors, diagnostics }
}

/// Reads nothing of a zone's file, and reports that.
#[must_use]
pub fn read_zone(path: &Path, name: &Name, _root: Option<&Path>) -> (JsonZone, Diagnostics) {
    let JsonFile { errors, diagnostics, .. } = read(path);
    let (name, records) = (name.clone(), Records::default());
    (JsonZone { name, sha: None, records, errors }, diagnostics)
}

/// Writes no zones.
///
/// # Errors
/// Always: the feature is not there.
pub fn write<'z>(
    _zones: impl IntoIterator<Item = &'z JsonZone>,
    _out: &mut impl Write,
) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, JsonProblem.to_string()))
}
