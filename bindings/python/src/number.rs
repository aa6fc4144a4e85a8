//! Whole numbers that Python gives.
//!
//! What is no number, and a number out of bounds, is told with what was given and what is wanted:
//! PyO3 on its own says what type of Rust it did not fit into.

use std::convert::Infallible;
use std::fmt;

use pyo3::prelude::*;
use pyo3::types::PyInt;
use zonda_wire::Type;

use crate::record::TTL_SECS;

pyo3::import_exception!(zonda.errors, RecordError);
pyo3::import_exception!(zonda.errors, RecordTypeError);

/// The longest TTL, seconds (rfc2181#8).
pub const TTL_SECS_MAX: u32 = i32::MAX as u32;
/// Characters of a wrong value's text in an error.
const VALUE_CHARS_MAX: usize = 80;

/// Why an object is not a number that is wanted.
pub struct NumberError {
    /// What was given and what is wanted.
    text: String,
    /// Whether the object is of another type than a number.
    is_type_error: bool,
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<NumberError> for PyErr {
    /// The exception for a part of a record or of a reply.
    fn from(error: NumberError) -> Self {
        match error.is_type_error {
            true => RecordTypeError::new_err(error.text),
            false => RecordError::new_err(error.text),
        }
    }
}

/// A whole number from 0 to a bound; `what` names it in errors.
pub fn whole(value: &Bound<'_, PyAny>, what: &str, max: u32) -> Result<u32, NumberError> {
    let number = value.extract::<i64>().ok().and_then(|number| u32::try_from(number).ok());
    number.filter(|number| *number <= max).ok_or_else(|| NumberError {
        text: format!("{what} must be a whole number from 0 to {max}, not {}", shown(value)),
        is_type_error: !value.is_instance_of::<PyInt>(),
    })
}

/// A whole number of two octets; `what` names it in errors.
pub fn whole_u16(value: &Bound<'_, PyAny>, what: &str) -> Result<u16, NumberError> {
    whole(value, what, u16::MAX.into()).map(|number| number as u16) // that was the bound
}

/// A value as errors show it.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    match value.repr() {
        Ok(text) => text.to_string_lossy().chars().take(VALUE_CHARS_MAX).collect(),
        Err(_) => "?".to_owned(), // the object's own code raises
    }
}

/// An argument that is a TTL, or that would be one.
pub struct Ttl(Result<u32, NumberError>);

impl Ttl {
    /// The TTL of a record that says nothing else.
    pub const DEFAULT: Self = Self(Ok(TTL_SECS));

    /// The TTL, seconds.
    pub fn secs(self) -> PyResult<u32> {
        self.0.map_err(PyErr::from)
    }

    /// The TTL of a record of a type, seconds.
    pub fn secs_of(self, rtype: Type) -> PyResult<u32> {
        self.0.map_err(|error| {
            let text = format!("{rtype} record: {}", error.text);
            NumberError { text, ..error }.into()
        })
    }
}

impl<'py> FromPyObject<'_, 'py> for Ttl {
    type Error = Infallible;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self, Infallible> {
        Ok(Self(whole(&object, "the ttl", TTL_SECS_MAX)))
    }
}
