//! Fields of record data, from and to objects of Python.
//!
//! | kind of field | object |
//! |---|---|
//! | numbers | `int`; what has mnemonics takes them, too |
//! | names, addresses | `str`, or what `str()` makes one of, as of `ipaddress` |
//! | character strings, text | `str`, taken as UTF-8, or `bytes` |
//! | several strings, names or types | `list` or `tuple` of them; one by itself |
//! | hexadecimal, base 32 and 64 | `bytes`, or `str` as in zone files |
//! | service parameters | `dict`, or `str` as in zone files |
//! | the rest | `str` as in zone files |

use std::borrow::Cow;
use std::fmt::Write;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList, PyString, PyTuple};
use zonda_wire::name::{self, Presentation};
use zonda_wire::rdata::print::strings;
use zonda_wire::rdata::{
    Fault, Field, FieldText, Kind, Scope, Token, Tokens, Value, bitmap, parse_field, tokens,
};
use zonda_wire::{Type, rdata};

use crate::number::{RecordError, RecordTypeError, shown, with_value};
use crate::query::type_text;

/// Octets of a character string.
const STRING_BYTES_MAX: usize = 255;

/// Why an object is no field's value.
pub enum FieldError {
    /// The value does not fit the field.
    Fault(Fault),
    /// A quote in its text is not closed.
    OpenQuote,
    /// Python says why.
    Python(PyErr),
}

impl From<Fault> for FieldError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<PyErr> for FieldError {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl FieldError {
    /// What is wrong with a quote.
    pub const OPEN_QUOTE: &str = "a quote is not closed";

    /// An exception that names type and field, and has the value.
    pub fn into_error(self, rtype: Type, field: &'static str, value: &Bound<'_, PyAny>) -> PyErr {
        let (py, given) = (value.py(), shown(value));
        let error = match self {
            Self::Fault(fault) => {
                let error = rdata::RdataError { field, fault };
                RecordError::new_err(format!("{rtype} record: {error}; it is {given}"))
            }
            Self::OpenQuote => {
                let what = Self::OPEN_QUOTE;
                RecordError::new_err(format!("{rtype} record: {field}: {what}; it is {given}"))
            }
            Self::Python(error) => {
                RecordTypeError::new_err(format!("{rtype} record: {field}: {}", error.value(py)))
            }
        };
        with_value(error, value)
    }
}

/// Whether a field of a kind takes several values.
pub fn is_list(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::CharStrings
            | Kind::Names(_)
            | Kind::TypeBitmap
            | Kind::FlatTypeBitmap
            | Kind::Prefixes
    )
}

/// Whether a field of a kind may be left out.
pub fn is_optional(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::OptionalCharString
            | Kind::OptionalBase64
            | Kind::Names(_)
            | Kind::TypeBitmap
            | Kind::FlatTypeBitmap
            | Kind::SvcParams
            | Kind::Prefixes
    )
}

/// Appends a field's octets to those of the fields before it.
pub fn encode(
    field: &'static Field,
    value: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
) -> Result<(), FieldError> {
    match field.kind {
        Kind::Name(_) | Kind::Ipv4 | Kind::Ipv6 => {
            let text = text(value)?;
            let token = Token { text: text.as_bytes(), quoted: false, glued: false, at: 0 };
            parse(field, &[token], out)
        }
        Kind::CharString | Kind::OptionalCharString => push_string(&octets(value)?, out),
        Kind::Text => {
            out.extend_from_slice(&octets(value)?);
            Ok(())
        }
        Kind::CharStrings => encode_strings(value, out),
        _ if value.is_instance_of::<PyBytes>() => encode_octets(field.kind, &octets(value)?, out),
        Kind::SvcParams if value.is_instance_of::<PyDict>() => {
            encode_words(field, &svc_params(value.cast().map_err(PyErr::from)?)?, out)
        }
        Kind::Type if value.is_instance_of::<PyInt>() => {
            encode_words(field, &format!("TYPE{value}"), out)
        }
        _ => encode_words(field, &text(value)?, out),
    }
}

/// Appends a field that is given by its text in a zone file.
fn encode_words(field: &'static Field, text: &str, out: &mut Vec<u8>) -> Result<(), FieldError> {
    parse(field, &tokens(text.as_bytes()).ok_or(FieldError::OpenQuote)?, out)
}

/// Appends a field that is given by its words in a zone file.
fn parse(field: &'static Field, all: &[Token<'_>], out: &mut Vec<u8>) -> Result<(), FieldError> {
    let mut words = Tokens::new(all);
    parse_field(field, &mut words, Scope { origin: &[0], start: 0 }, out)?;
    if words.peek().is_some() { Err(Fault::Unexpected.into()) } else { Ok(()) }
}

/// Appends one string or several; one alone is split where it is too long.
fn encode_strings(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Result<(), FieldError> {
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        for string in value.try_iter()? {
            push_string(&octets(&string?)?, out)?;
        }
        return Ok(());
    }
    let octets = octets(value)?;
    if octets.is_empty() {
        return push_string(&[], out);
    }
    octets.chunks(STRING_BYTES_MAX).try_for_each(|string| push_string(string, out))
}

/// Appends octets to which zone files give another form.
fn encode_octets(kind: Kind, octets: &[u8], out: &mut Vec<u8>) -> Result<(), FieldError> {
    match kind {
        Kind::Hex | Kind::Base64 | Kind::OptionalBase64 | Kind::DashBase64 => {
            out.extend_from_slice(octets);
            Ok(())
        }
        Kind::HexByLength | Kind::Base32ByLength => push_string(octets, out),
        _ => Err(PyTypeError::new_err("expected text, as in zone files").into()),
    }
}

/// Appends a length octet and a string.
fn push_string(string: &[u8], out: &mut Vec<u8>) -> Result<(), FieldError> {
    out.push(u8::try_from(string.len()).map_err(|_| Fault::StringTooLong)?);
    out.extend_from_slice(string);
    Ok(())
}

/// The octets of `bytes`, or of a `str`. Lone surrogates stand for octets that are no UTF-8, as
/// [`text_object`] makes them.
fn octets<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(octets) = value.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(octets.as_bytes()));
    }
    let text = value.cast::<PyString>().map_err(|_| {
        PyTypeError::new_err(format!("expected str or bytes, not {}", shown(value)))
    })?;
    match text.to_cow() {
        Ok(text) => Ok(Cow::Owned(text.into_owned().into_bytes())),
        Err(_) => {
            text.call_method1("encode", ("utf-8", "surrogateescape"))?.extract().map(Cow::Owned)
        }
    }
}

/// The text of a value as in zone files: a list's values have blanks between them.
fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_instance_of::<PyBytes>() {
        return Err(PyTypeError::new_err("expected text, as in zone files"));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let words = value.try_iter()?.map(|word| text(&word?));
        return Ok(words.collect::<PyResult<Vec<_>>>()?.join(" "));
    }
    Ok(value.str()?.to_cow()?.into_owned())
}

/// The text of service parameters: `{"alpn": ["h2", "h3"], "port": 443, "no-default-alpn": None}`.
fn svc_params(params: &Bound<'_, PyDict>) -> PyResult<String> {
    let mut text = String::new();
    for (key, value) in params {
        let _ = write!(text, " {key}"); // a String takes everything
        if value.is_none() {
            continue;
        }
        let value = if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            let escaped = |item: Bound<'_, PyAny>| {
                PyResult::Ok(item.str()?.to_cow()?.replace('\\', r"\\").replace(',', r"\,"))
            };
            value.try_iter()?.map(|item| escaped(item?)).collect::<PyResult<Vec<_>>>()?.join(",")
        } else {
            value.str()?.to_cow()?.into_owned()
        };
        let _ = write!(text, "=\"{}\"", value.replace('\\', r"\\").replace('"', "\\\""));
    }
    Ok(text)
}

/// What a field of sound data holds; `None` if it is left out.
pub fn decode<'py>(py: Python<'py>, value: Value<'_>, rdata: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let octets = value.octets;
    Ok(match value.field.kind {
        Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 | Kind::Ttl | Kind::Time => {
            number(octets).into_pyobject(py)?.into_any()
        }
        Kind::Algorithm | Kind::CertType | Kind::DsyncScheme => {
            number(octets).into_pyobject(py)?.into_any()
        }
        Kind::Type => type_text(py, Type(number(octets) as u16)).into_any(), // it has two octets
        Kind::OptionalCharString if octets.is_empty() => py.None().into_bound(py),
        Kind::CharString | Kind::OptionalCharString | Kind::Tag => {
            text_object(py, octets.get(1..).unwrap_or_default())?
        }
        Kind::Text => text_object(py, octets)?,
        Kind::CharStrings => {
            let all = strings(octets).map(|string| text_object(py, string));
            PyTuple::new(py, all.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
        Kind::Names(_) => PyTuple::new(py, names(octets))?.into_any(),
        Kind::Hex | Kind::Base64 | Kind::OptionalBase64 | Kind::DashBase64 => {
            PyBytes::new(py, octets).into_any()
        }
        Kind::HexByLength | Kind::Base32ByLength => {
            PyBytes::new(py, octets.get(1..).unwrap_or_default()).into_any()
        }
        Kind::TypeBitmap => {
            let types = bitmap::windowed_types(octets).map(|rtype| type_text(py, rtype));
            PyTuple::new(py, types.collect::<Vec<_>>())?.into_any()
        }
        _ => PyString::new(py, &FieldText { value, rdata }.to_string()).into_any(),
    })
}

/// A number of at most eight octets.
fn number(octets: &[u8]) -> u64 {
    octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet))
}

/// The names of a field, one behind the other.
fn names(octets: &[u8]) -> Vec<String> {
    let mut rest = octets;
    std::iter::from_fn(|| {
        let (name, tail) = rest.split_at_checked(name::wire_len(rest)?)?;
        rest = tail;
        Some(Presentation(name).to_string())
    })
    .collect()
}

/// A `str` of octets that are mostly UTF-8.
fn text_object<'py>(py: Python<'py>, octets: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    match str::from_utf8(octets) {
        Ok(text) => Ok(PyString::new(py, text).into_any()),
        Err(_) => PyBytes::new(py, octets).call_method1("decode", ("utf-8", "surrogateescape")),
    }
}
