//! Files that hold a run.

use std::fs::File;
use std::path::Path;
use zonda_bench::{data::Run, report::json};

/// Reads the file of a run.
///
/// # Errors
/// A line with the file's name.
pub fn read(path: &Path) -> Result<Run, String> {
    let name = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| name(&error))?;
    json::read(file).map_err(|error| name(&error))
}
