//! The body of a request: a JSON object with known keys.

use serde_json::{Map, Value};
use std::time::Duration;

/// A JSON object all of whose keys are known. Errors say what to write.
pub struct JsonBody(Map<String, Value>);

impl JsonBody {
    /// Reads an object with some of these keys.
    ///
    /// # Errors
    /// When the octets are no object, or it has another key.
    pub fn read(octets: &[u8], keys: &[&str]) -> Result<Self, String> {
        let body: Map<String, Value> = serde_json::from_slice(octets)
            .map_err(|error| format!("the body is no JSON object: {error}"))?;
        match body.keys().find(|key| !keys.contains(&key.as_str())) {
            Some(key) => Err(format!("unknown key `{key}`; write some of {}", keys.join(", "))),
            None => Ok(Self(body)),
        }
    }

    /// The value of a key; none if it is not there.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// The text of a key; none if it is not there.
    ///
    /// # Errors
    /// When the value is no text.
    pub fn text(&self, key: &str) -> Result<Option<&str>, String> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("`{key}` is text in quotes")),
        }
    }

    /// The time of a key, above 0; none if it is not there.
    ///
    /// # Errors
    /// When the value is no time.
    pub fn duration(&self, key: &str) -> Result<Option<Duration>, String> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let duration = zonda_config::duration(text).filter(|time| !time.is_zero());
        duration.map(Some).ok_or_else(|| format!("write `{key}` as a time such as \"30s\""))
    }
}
