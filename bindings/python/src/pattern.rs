//! Patterns of names and types, as Python's code checks them.

use pyo3::prelude::*;
use zonda_engine::code::Pattern;

pyo3::import_exception!(zonda.errors, PatternError);

/// A pattern of names and types.
pub fn check_pattern_text(text: &str) -> PyResult<Pattern> {
    text.parse().map_err(|error| PatternError::new_err(format!("route {text:?}: {error}")))
}

/// The one text of all patterns that mean the same as this one; an exception says why it is none.
#[pyfunction]
pub fn canonical_pattern(text: &str) -> PyResult<String> {
    check_pattern_text(text).map(|pattern| pattern.canonical())
}

/// Raises an exception for a suffix that no pattern can stand in front of.
#[pyfunction]
pub fn check_suffix(text: &str) -> PyResult<()> {
    let wrong = |error| PatternError::new_err(format!("router {text:?}: {error}"));
    Pattern::check_suffix(text).map_err(wrong)
}
