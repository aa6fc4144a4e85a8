//! One element of `rrsets` in a body: which RRset changes, and how.

use super::api_error::ApiError;
use super::body::{self, Object};
use super::content::{comparable, from_text, to_text};
use super::names::canonical;
use serde_json::Value;
use zonda_wire::name::is_at_or_below;
use zonda_wire::{Name, Type};
use zonda_zone::snapshot::Rdatas;

/// A change of an RRset that a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct RrsetChange {
    /// The name of the records, in lower case.
    pub owner: Name,
    /// The type of the records; ANY, where all records of the name are removed.
    pub rtype: Type,
    /// What becomes of the records.
    pub action: Action,
}

/// What becomes of the records of an RRset.
#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// The RRset has these records, with this TTL.
    Replace(u32, Rdatas),
    /// The RRset is removed.
    Delete,
    /// The record is added, with this TTL, unless the RRset has it.
    Extend(u32, Box<[u8]>),
    /// The record is removed, if the RRset has it.
    Prune(Box<[u8]>),
    /// Nothing becomes of them: the element is about comments, and has none.
    Keep,
}

impl RrsetChange {
    /// Reads an element; `default` is the change type of one that has none, if that is allowed.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn read(element: &Value, zone: &Name, default: Option<&str>) -> Result<Self, ApiError> {
        let (none, object) = (Object::new(), element.as_object());
        let object = object.unwrap_or(&none);
        let changetype = match (object.get("changetype"), default) {
            (None, Some(default)) => default.to_owned(),
            _ => body::text(object, "changetype")?.to_ascii_uppercase(),
        };
        let owner = canonical(body::text(object, "name")?)?;
        let given = body::text(object, "type")?;
        let unknown =
            |_| ApiError::refused(format!("RRset {owner} IN {given}: unknown type given"));
        let rtype: Type = given.parse().map_err(unknown)?;
        if !is_at_or_below(owner.as_wire(), zone.as_wire()) {
            let text = format!("RRset {owner} IN {rtype}: Name is out of zone");
            return Err(ApiError::refused(text));
        }
        let action = match &*changetype {
            "REPLACE" => replacement(object, &owner, rtype)?,
            "DELETE" => Action::Delete,
            "EXTEND" => Action::Extend(body::ttl(object)?, single(object, &owner, rtype)?),
            "PRUNE" => Action::Prune(single(object, &owner, rtype)?),
            _ => return Err(ApiError::refused("Changetype not understood")),
        };
        Ok(Self { owner, rtype, action })
    }

    /// Whether one record is added or removed, and the rest stays.
    pub fn is_of_one_record(&self) -> bool {
        matches!(self.action, Action::Extend(..) | Action::Prune(_))
    }

    /// The change type of which a list may have one for each RRset.
    pub fn unique_changetype(&self) -> Option<&'static str> {
        match self.action {
            Action::Replace(..) | Action::Keep => Some("REPLACE"),
            Action::Delete => Some("DELETE"),
            Action::Extend(..) | Action::Prune(_) => None,
        }
    }
}

/// The new content of an RRset.
fn replacement(object: &Object, owner: &Name, rtype: Type) -> Result<Action, ApiError> {
    let Some(records) = body::list(object, "records") else {
        return match body::list(object, "comments") {
            Some([]) => Ok(Action::Keep),
            Some(_) => Err(ApiError::refused(format!(
                "RRset {owner} IN {rtype}: comments are not kept, and nothing else would change"
            ))),
            None => Err(ApiError::refused(format!("No change for RRset {owner} IN {rtype}"))),
        };
    };
    let ttl = body::ttl(object)?;
    let mut data = Rdatas::with_capacity(records.len());
    for record in records {
        data.push(rdata(record, owner, rtype)?);
    }
    let mut sorted: Vec<_> = data.iter().map(|rdata| comparable(rtype, rdata)).collect();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find_map(|pair| match pair {
        [a, b] if a == b => Some(a),
        _ => None,
    });
    if let Some(twice) = twice {
        return Err(ApiError::refused(format!(
            "Duplicate record in RRset {owner} IN {rtype} with content \"{}\"",
            to_text(rtype, twice)
        )));
    }
    Ok(if data.is_empty() { Action::Delete } else { Action::Replace(ttl, data) })
}

/// The one record of an element.
fn single(object: &Object, owner: &Name, rtype: Type) -> Result<Box<[u8]>, ApiError> {
    match body::list(object, "records") {
        Some([record]) => rdata(record, owner, rtype),
        _ => Err(ApiError::refused(format!(
            "RRset {owner} IN {rtype}: EXTEND and PRUNE need exactly one record"
        ))),
    }
}

/// The data of a record.
fn rdata(record: &Value, owner: &Name, rtype: Type) -> Result<Box<[u8]>, ApiError> {
    let (none, object) = (Object::new(), record.as_object());
    let object = object.unwrap_or(&none);
    let content = body::text(object, "content")?;
    if body::flag(object, "disabled")? {
        return Err(ApiError::refused(format!(
            "Record {owner}/{rtype} '{content}': a record cannot be disabled: leave it out"
        )));
    }
    Ok(from_text(owner, rtype, content)?.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    /// What is read from an element for the zone `example.org`; the text of the error otherwise.
    fn read(element: &Value) -> Result<RrsetChange, String> {
        let zone = "example.org".parse().unwrap();
        RrsetChange::read(element, &zone, None).map_err(|error| error.text)
    }

    /// An element about `www.example.org A`, with further members.
    fn element(members: &Value) -> Value {
        let mut element = json!({ "name": "www.example.org.", "type": "A" });
        let members = members.as_object().unwrap().clone();
        element.as_object_mut().unwrap().extend(members);
        element
    }

    #[test]
    fn the_change_types_are_read_in_any_case() {
        let records = json!([{ "content": "192.0.2.1", "disabled": false }]);
        let data: Box<[u8]> = [192, 0, 2, 1].into();
        for (changetype, expected) in [
            ("REPLACE", Action::Replace(60, vec![data.clone()])),
            ("replace", Action::Replace(60, vec![data.clone()])),
            ("Delete", Action::Delete),
            ("EXTEND", Action::Extend(60, data.clone())),
            ("prune", Action::Prune(data)),
        ] {
            let members = json!({ "changetype": changetype, "ttl": 60, "records": records });
            assert_eq!(read(&element(&members)).unwrap().action, expected, "{changetype}");
        }
    }

    #[test]
    fn a_set_without_records_is_removed_and_one_is_deleted_without_ttl() {
        let members = json!({ "changetype": "REPLACE", "ttl": "60", "records": [] });
        assert_eq!(read(&element(&members)).unwrap().action, Action::Delete);
        let members = json!({ "changetype": "DELETE" });
        assert_eq!(read(&element(&members)).unwrap().action, Action::Delete);
    }

    #[test]
    fn comments_are_dropped_beside_records_and_refused_by_themselves() {
        let comments = json!([{ "content": "x", "account": "y" }]);
        let records = json!([{ "content": "192.0.2.1" }]);
        let members =
            json!({ "changetype": "REPLACE", "ttl": 1, "records": records, "comments": comments });
        assert!(matches!(read(&element(&members)).unwrap().action, Action::Replace(1, _)));
        let members = json!({ "changetype": "REPLACE", "comments": [] });
        assert_eq!(read(&element(&members)).unwrap().action, Action::Keep);
        let members = json!({ "changetype": "REPLACE", "comments": comments });
        assert!(read(&element(&members)).unwrap_err().contains("comments are not kept"));
    }

    #[test]
    fn what_is_wrong_with_an_element_is_said_in_the_words_of_powerdns() {
        let record = json!([{ "content": "192.0.2.1" }]);
        for (element, expected) in [
            (json!("x"), "Key 'changetype' not present or not a String"),
            (json!({ "changetype": "DELETE" }), "Key 'name' not present or not a String"),
            (
                json!({ "changetype": "DELETE", "name": "a.example.org." }),
                "Key 'type' not present or not a String",
            ),
            (
                json!({ "changetype": "DELETE", "name": "a.example.org", "type": "A" }),
                "DNS Name 'a.example.org' is not canonical",
            ),
            (
                json!({ "changetype": "DELETE", "name": "a.example.org.", "type": "NOPE" }),
                "RRset a.example.org. IN NOPE: unknown type given",
            ),
            (
                json!({ "changetype": "DELETE", "name": "a.example.com.", "type": "A" }),
                "RRset a.example.com. IN A: Name is out of zone",
            ),
            (element(&json!({ "changetype": "ADD" })), "Changetype not understood"),
            (
                element(&json!({ "changetype": "REPLACE" })),
                "No change for RRset www.example.org. IN A",
            ),
            (
                element(&json!({ "changetype": "REPLACE", "records": record })),
                "Key 'ttl' not an Integer or not present",
            ),
            (
                element(&json!({ "changetype": "REPLACE", "ttl": -1, "records": record })),
                "Key 'ttl' is -1: write a number from 0 to 2147483647",
            ),
            (
                element(&json!({ "changetype": "REPLACE", "ttl": 1, "records": ["192.0.2.1"] })),
                "Key 'content' not present or not a String",
            ),
            (
                element(&json!({ "changetype": "REPLACE", "ttl": 1, "records":
                    [{ "content": "192.0.2.1", "disabled": "no" }] })),
                "Key 'disabled' not present or not a Bool",
            ),
            (
                element(&json!({ "changetype": "REPLACE", "ttl": 1, "records":
                    [{ "content": "192.0.2.1", "disabled": true }] })),
                "Record www.example.org./A '192.0.2.1': a record cannot be disabled: leave it out",
            ),
            (
                element(&json!({ "changetype": "REPLACE", "ttl": 1, "records":
                    [{ "content": "192.0.2.1" }, { "content": "192.0.2.1" }] })),
                "Duplicate record in RRset www.example.org. IN A with content \"192.0.2.1\"",
            ),
            (
                json!({ "changetype": "REPLACE", "name": "example.org.", "type": "NS", "ttl": 1,
                    "records": [{ "content": "NS.example.org." }, { "content": "ns.example.org." }]
                }),
                "Duplicate record in RRset example.org. IN NS with content \"ns.example.org.\"",
            ),
            (
                element(&json!({ "changetype": "EXTEND", "ttl": 1, "records": [] })),
                "RRset www.example.org. IN A: EXTEND and PRUNE need exactly one record",
            ),
        ] {
            assert_eq!(read(&element), Err(expected.to_owned()), "{element}");
        }
    }
}
