//! Members of JSON bodies, read as PowerDNS reads them, with its words where one is missing.

use super::api_error::ApiError;
use hyper::StatusCode;
use serde_json::{Map, Value};

/// Members of a JSON object.
pub type Object = Map<String, Value>;

/// Reads a body, which is an object.
///
/// # Errors
/// When it is no JSON (400), or no object (422).
pub fn object(octets: &[u8]) -> Result<Object, ApiError> {
    let read = serde_json::from_slice(octets).map_err(|error| ApiError {
        status: StatusCode::BAD_REQUEST,
        text: format!("the body is no JSON: {error}"),
    })?;
    match read {
        Value::Object(object) => Ok(object),
        // An empty object lacks the same members.
        Value::Array(list) if list.is_empty() => Ok(Object::new()),
        _ => Err(ApiError::refused("the body is no JSON object")),
    }
}

/// The text of a member that must be there.
///
/// # Errors
/// When it is not there, or no text.
pub fn text<'o>(object: &'o Object, key: &str) -> Result<&'o str, ApiError> {
    let text = object.get(key).and_then(Value::as_str);
    text.ok_or_else(|| ApiError::refused(format!("Key '{key}' not present or not a String")))
}

/// The text of a member, empty where it is not there or null.
///
/// # Errors
/// When it is something else.
pub fn text_or_none<'o>(object: &'o Object, key: &str) -> Result<&'o str, ApiError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(""),
        Some(_) => text(object, key),
    }
}

/// Whether a member is true; `false` where it is not there or null.
///
/// # Errors
/// When it is something else.
pub fn flag(object: &Object, key: &str) -> Result<bool, ApiError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(ApiError::refused(format!("Key '{key}' not present or not a Bool"))),
    }
}

/// The list of a member; none where it is not there or no list.
pub fn list<'o>(object: &'o Object, key: &str) -> Option<&'o [Value]> {
    object.get(key).and_then(Value::as_array).map(Vec::as_slice)
}

/// The texts of a list, none where there is no list.
///
/// # Errors
/// When an element is no text.
pub fn texts<'o>(object: &'o Object, key: &str) -> Result<Vec<&'o str>, ApiError> {
    let wrong = || ApiError::refused(format!("Key '{key}' must be a list of Strings"));
    let list = list(object, key).unwrap_or_default();
    list.iter().map(|value| value.as_str().ok_or_else(wrong)).collect()
}

/// The TTL of an RRset; digits in quotes are taken as well.
///
/// # Errors
/// When it is not there, or no whole number from 0 to 2³¹ − 1.
pub fn ttl(object: &Object) -> Result<u32, ApiError> {
    let number = match object.get("ttl") {
        Some(Value::Number(number)) => number.as_i64(),
        Some(Value::String(text)) => text.parse().ok(),
        _ => None,
    };
    let missing = || ApiError::refused("Key 'ttl' not an Integer or not present");
    let number = number.ok_or_else(missing)?;
    let ttl = u32::try_from(number).ok().filter(|ttl| i32::try_from(*ttl).is_ok());
    ttl.ok_or_else(|| {
        ApiError::refused(format!("Key 'ttl' is {number}: write a number from 0 to 2147483647"))
    })
}
