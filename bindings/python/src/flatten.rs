//! Records that code gives one by one, in lists, or from generators.

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyString, PyTuple};

use crate::foreign;
use crate::number::RecordError;
use crate::record::Record;

/// Records that are added at once: far more than a message can hold.
const RECORDS_MAX: usize = 65_536;
/// Lists of records that lie in one another.
const DEPTH_MAX: usize = 8;

/// Records, and those of everything that can be iterated over, one behind the other.
pub fn flattened<'py>(records: &Bound<'py, PyTuple>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut flat = Vec::new();
    records.iter().try_for_each(|record| flatten(&mut flat, record, 0))?;
    Ok(flat)
}

/// Appends a record, or those of what can be iterated over. What is neither is appended, too: the
/// caller that adds it to the reply knows its place there.
fn flatten<'py>(
    flat: &mut Vec<Bound<'py, PyAny>>,
    value: Bound<'py, PyAny>,
    depth: usize,
) -> PyResult<()> {
    let is_record = value.is_instance_of::<Record>() || foreign::is_one(&value)?;
    if !is_record && depth < DEPTH_MAX && !is_text_or_map(&value) {
        if let Ok(mut items) = value.try_iter() {
            return items.try_for_each(|item| flatten(flat, item?, depth + 1));
        }
    }
    if flat.len() == RECORDS_MAX {
        let text = format!("more than {RECORDS_MAX} records were given for a section");
        return Err(RecordError::new_err(text));
    }
    flat.push(value);
    Ok(())
}

/// Whether an object can be iterated over, and what that gives is no record.
fn is_text_or_map(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.is_instance_of::<PyDict>()
}
