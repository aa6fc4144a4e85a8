//! Records that code gives one by one, in lists, or from generators.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyIterator, PyString};

use crate::foreign;
use crate::number::RecordError;
use crate::record::Record;

/// Records that are added at once, and lists of them: far more than a message can hold.
const RECORDS_MAX: usize = 65_536;
/// Lists of records that lie in one another.
const DEPTH_MAX: usize = 8;

/// Records that were given for a section.
pub struct Flattened<'py> {
    /// One behind the other.
    pub records: Vec<Bound<'py, PyAny>>,
    /// Whether all that was given is iterators, such as generators, and they have given nothing.
    pub is_nothing: bool,
}

/// Records, and those of everything that can be iterated over.
pub fn flattened<'py>(
    given: impl IntoIterator<Item = PyResult<Bound<'py, PyAny>>>,
) -> PyResult<Flattened<'py>> {
    let mut flattening = Flattening { records: Vec::new(), visited: 0 };
    let (mut count, mut iterators) = (0, 0);
    for value in given {
        count += 1;
        iterators += usize::from(flattening.add(value?, 0)? == ValueKind::Iterator);
    }
    let is_nothing = flattening.records.is_empty() && count > 0 && iterators == count;
    Ok(Flattened { records: flattening.records, is_nothing })
}

/// What a value was.
#[derive(PartialEq, Eq)]
enum ValueKind {
    /// Can be iterated over once: a generator, for one.
    Iterator,
    /// A list, for one, or a record, or neither.
    Other,
}

/// Collects records of what code gives.
struct Flattening<'py> {
    records: Vec<Bound<'py, PyAny>>,
    /// Values so far, also those that hold no record.
    visited: usize,
}

impl<'py> Flattening<'py> {
    /// Appends a record, or those of what can be iterated over. What is neither is appended, too:
    /// the caller that adds it to the reply knows its place there.
    fn add(&mut self, value: Bound<'py, PyAny>, depth: usize) -> PyResult<ValueKind> {
        if self.visited == RECORDS_MAX {
            let text = format!("more than {RECORDS_MAX} records were given for a section");
            return Err(RecordError::new_err(text));
        }
        self.visited += 1;
        let is_record = value.is_instance_of::<Record>() || foreign::is_one(&value)?;
        let may_hold_records = !is_record && depth < DEPTH_MAX && !is_text_or_map(&value);
        if may_hold_records && let Some(mut items) = items(&value)? {
            let given = if items.is(&value) { ValueKind::Iterator } else { ValueKind::Other };
            items.try_for_each(|item| self.add(item?, depth + 1).map(|_| ()))?;
            return Ok(given);
        }
        self.records.push(value);
        Ok(ValueKind::Other)
    }
}

/// The items of what can be iterated over; `None` of what cannot be. What the code that makes the
/// iterator raises is an error.
fn items<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyIterator>>> {
    match value.try_iter() {
        Ok(items) => Ok(Some(items)),
        Err(error) => {
            let py = value.py();
            let method = value.get_type().getattr(intern!(py, "__iter__"));
            let has_method = method.is_ok_and(|method| !method.is_none());
            let is_told = has_method || !error.is_instance_of::<PyTypeError>(py);
            if is_told { Err(error) } else { Ok(None) }
        }
    }
}

/// Whether an object can be iterated over, and what that gives is no record.
fn is_text_or_map(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.is_instance_of::<PyDict>()
}
