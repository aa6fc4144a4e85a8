//! Whole numbers, texts and truth values that Python gives.
//!
//! What is none, and a number out of bounds, is told with what was given and what is wanted: PyO3
//! on its own says what type of Rust it did not fit into.

use std::convert::Infallible;
use std::fmt;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};
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
    /// The object that was given.
    value: Py<PyAny>,
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<NumberError> for PyErr {
    /// The exception for a part of a record or of a reply.
    fn from(error: NumberError) -> Self {
        let exception = match error.is_type_error {
            true => RecordTypeError::new_err(error.text),
            false => RecordError::new_err(error.text),
        };
        Python::attach(|py| with_value(exception, error.value.bind(py)))
    }
}

/// The exception for a part of a record, with what was given for it.
pub fn with_value(error: PyErr, value: &Bound<'_, PyAny>) -> PyErr {
    let py = value.py();
    // An exception takes attributes; if not, its text has the value.
    let _ = error.value(py).setattr(intern!(py, "value"), value);
    error
}

/// A whole number from 0 to a bound; `what` names it in errors.
pub fn whole(value: &Bound<'_, PyAny>, what: &str, max: u32) -> Result<u32, NumberError> {
    let number = value.extract::<i64>().ok().and_then(|number| u32::try_from(number).ok());
    number.filter(|number| *number <= max).ok_or_else(|| NumberError {
        text: format!("{what} must be a whole number from 0 to {max}, not {}", shown(value)),
        is_type_error: !value.is_instance_of::<PyInt>(),
        value: value.clone().unbind(),
    })
}

/// A whole number of two octets; `what` names it in errors.
pub fn whole_u16(value: &Bound<'_, PyAny>, what: &str) -> Result<u16, NumberError> {
    whole(value, what, u16::MAX.into()).map(|number| number as u16) // that was the bound
}

/// A code by its number, up to a bound, or by its name.
pub fn known<C>(
    code: &Bound<'_, PyAny>,
    by_name: fn(&str) -> Option<C>,
    (by_number, max): (fn(u16) -> C, u16),
    (what, example): (&str, &str),
) -> PyResult<C> {
    match code.cast::<PyString>() {
        Ok(name) => by_name(name.to_str()?).ok_or_else(|| {
            let given = shown(name);
            RecordError::new_err(format!("{given} is not the name of {what}, such as {example:?}"))
        }),
        Err(_) => Ok(by_number(whole(code, what, max.into())? as u16)), // that was the bound
    }
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
        self.secs_in(format_args!("{rtype} record"))
    }

    /// The TTL of what errors are to name, seconds.
    pub fn secs_in(self, what: impl fmt::Display) -> PyResult<u32> {
        self.0.map_err(|error| {
            let text = format!("{what}: {}", error.text);
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

/// An argument that is a text, or that would be one.
pub struct Text(Result<String, NoText>);

/// Why an object is not a text that is wanted.
struct NoText {
    /// The object as errors show it.
    given: String,
    /// Whether the object is of another type than a text.
    is_type_error: bool,
}

impl Text {
    /// What is said where nothing is.
    pub const EMPTY: Self = Self(Ok(String::new()));

    /// The text; `what` names it in errors.
    pub fn named(self, what: &str) -> PyResult<String> {
        self.0.map_err(|error| {
            let text = format!("{what} must be a text, not {}", error.given);
            match error.is_type_error {
                true => RecordTypeError::new_err(text),
                false => RecordError::new_err(text),
            }
        })
    }
}

impl<'py> FromPyObject<'_, 'py> for Text {
    type Error = Infallible;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> Result<Self, Infallible> {
        let wrong = |is_type_error| NoText { given: shown(&object), is_type_error };
        let text = object.cast::<PyString>().map_err(|_| wrong(true));
        // Lone surrogates are no text.
        Ok(Self(text.and_then(|text| text.extract().map_err(|_: PyErr| wrong(false)))))
    }
}

/// Whether something is so; `what` names it in errors.
pub fn yes_or_no(value: &Bound<'_, PyAny>, what: &str) -> Result<bool, String> {
    let wrong = |_| format!("{what} must be True or False, not {}", shown(value));
    value.extract::<bool>().map_err(wrong)
}
