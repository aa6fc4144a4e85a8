//! Records of stores as they cross the border: JSON, which JavaScript's half has checked.

use serde_json::{Value, json};
use zonda::RecordSet;
use zonda::store::StoreError;
use zonda_wire::Name;

/// Record sets for JavaScript.
pub fn write(sets: &[RecordSet]) -> Value {
    sets.iter().map(write_set).collect()
}

/// One of them.
fn write_set(RecordSet { owner, rtype, ttl_secs, data, .. }: &RecordSet) -> Value {
    json!({ "owner": owner, "type": rtype, "ttl": ttl_secs, "data": data })
}

/// Record sets of JavaScript; those that it could not make sense of say why.
///
/// # Errors
/// When there is no list of them.
pub fn read(json: &str) -> Result<Vec<RecordSet>, StoreError> {
    match serde_json::from_str(json) {
        Ok(Value::Array(sets)) => Ok(sets.iter().map(read_set).collect()),
        Ok(_) => Err(StoreError::failed("there is no list of records")),
        Err(error) => Err(StoreError::failed(error)),
    }
}

/// One of them.
fn read_set(set: &Value) -> RecordSet {
    let text = |key: &str| set[key].as_str().unwrap_or_default();
    let (owner, rtype) = (text("owner"), text("type"));
    let ttl_secs = set["ttl"].as_u64().and_then(|secs| u32::try_from(secs).ok());
    match (set["wrong"].as_str(), ttl_secs, set["data"].as_array()) {
        (None, Some(ttl_secs), Some(data)) => {
            RecordSet::new(owner, rtype, ttl_secs, data.iter().filter_map(Value::as_str))
        }
        (why, _, _) => RecordSet::unreadable(owner, rtype, why.unwrap_or("it is no record set")),
    }
}

/// An owner in lower case and without its final dot; what is no name stays as it is.
pub fn normal_owner(owner: &str) -> String {
    let normal = |name: Name| plain_name(&name.to_lowercase());
    owner.parse().map_or_else(|_| owner.to_owned(), normal)
}

/// A name as stores write it: without its final dot, but for the root.
pub fn plain_name(name: &Name) -> String {
    let text = name.to_string();
    match text.strip_suffix('.') {
        Some(plain) if !plain.is_empty() => plain.to_owned(),
        _ => text,
    }
}
