//! RRsets as JSON: those that a zone has, and changes of them.
//!
//! ```text
//! {"changes": [
//!   {"name": "www.example.com", "type": "A", "ttl": 300,
//!    "records": [{"ip": "192.0.2.1"}, "192.0.2.2"]},
//!   {"name": "old.example.com", "type": "A", "records": []}]}
//! ```
//! A record is the object that JSON zones have under `data`, or a string in the form of master
//! files, in which names are complete. A set without records is removed. Unlike a zone's file, a
//! change with anything unknown in it is refused, as a misspelt member would be lost.

use super::data::{self, Members};
use super::problem::{JsonFault, JsonProblem};
use super::text::{self, Json, LocatedFault};
use super::write::Writer;
use super::{printable, read_name, read_type};
use crate::snapshot::{Rdatas, SetChange};
use std::io;
use zonda_wire::rdata::schema;
use zonda_wire::rdata::{self, Fault};
use zonda_wire::{Name, Type};

/// Reads the changes of a list, `{"changes": [set, …]}`.
///
/// # Errors
/// The first value that is wrong, and the way to it.
pub fn read_changes(octets: &[u8]) -> Result<Vec<SetChange>, JsonProblem> {
    read(octets, |json| {
        let mut members = Members::of(json)?;
        let list = members.need("changes")?;
        refuse_left(members, "\"changes\"")?;
        read_sets(list, "changes")
    })
}

/// Reads the sets of a list, which is a member of this name.
fn read_sets<'t>(list: Json<'t>, member: &str) -> Result<Vec<SetChange>, LocatedFault<'t>> {
    let mut sets = Vec::new();
    list.elements(|index, set| {
        let read = read_named_set(set).map_err(|wrong| wrong.within(&format!("[{index}]")));
        sets.push(read?);
        Ok(())
    })
    .map_err(|wrong| wrong.within(member))?;
    Ok(sets)
}

/// Reads a zone that is to be created, `{"name": …, "rrsets": [set, …]}`; the sets may be left out.
///
/// # Errors
/// The first value that is wrong, and the way to it.
pub fn read_new_zone(octets: &[u8]) -> Result<(Name, Vec<SetChange>), JsonProblem> {
    read(octets, |json| {
        let mut members = Members::of(json)?;
        let name = read_name(members.need("name")?).map_err(|wrong| wrong.within("name"))?;
        let list = members.take("rrsets");
        refuse_left(members, "\"name\", \"rrsets\"")?;
        let sets = list.map_or(Ok(Vec::new()), |list| read_sets(list, "rrsets"))?;
        Ok((name, sets))
    })
}

/// Reads the new content of a set whose name and type are known, `{"ttl": …, "records": […]}`.
///
/// # Errors
/// The first value that is wrong, and the way to it.
pub fn read_set(octets: &[u8], owner: &Name, rtype: Type) -> Result<SetChange, JsonProblem> {
    read(octets, |json| {
        let mut members = Members::of(json)?;
        if let Some(given) = members.take("name") {
            let is_same = read_name(given).map_err(|wrong| wrong.within("name"))?.to_lowercase()
                == owner.to_lowercase();
            if !is_same {
                return Err(given.expected("the name that the path has").within("name"));
            }
        }
        if let Some(given) = members.take("type")
            && read_type(given)?.0 != rtype
        {
            return Err(given.expected("the type that the path has").within("type"));
        }
        read_content(members, owner.clone(), rtype)
    })
}

/// Writes a set as JSON, `{"name": …, "type": …, "ttl": …, "records": […]}`: a record is the
/// object that JSON zones have under `data`, or a string in the form of RFC 3597 where its data has
/// no such object.
#[must_use]
pub fn set_to_text<'r>(
    owner: &[u8],
    rtype: Type,
    ttl: u32,
    rdatas: impl Iterator<Item = &'r [u8]>,
) -> String {
    let mut writer = Writer::new(io::sink());
    writer.set(owner, rtype, ttl, rdatas);
    writer.into_text()
}

/// Reads a text with a function.
fn read<T>(
    octets: &[u8],
    read: impl for<'t> FnOnce(Json<'t>) -> Result<T, LocatedFault<'t>>,
) -> Result<T, JsonProblem> {
    let text = str::from_utf8(octets)
        .map_err(|_| JsonProblem { path: "".into(), fault: JsonFault::Encoding })?;
    text::parse(text)
        .and_then(read)
        .map_err(|wrong| JsonProblem { path: printable(&wrong.path), fault: wrong.fault })
}

/// Reads a set that says its name and type.
fn read_named_set(json: Json<'_>) -> Result<SetChange, LocatedFault<'_>> {
    let mut members = Members::of(json)?;
    let owner = read_name(members.need("name")?).map_err(|wrong| wrong.within("name"))?;
    let given = members.need("type")?;
    let (rtype, _) = read_type(given).map_err(|wrong| match wrong.fault {
        JsonFault::Type => given.wrong(JsonFault::NoType).within("type"),
        _ => wrong,
    })?;
    read_content(members, owner, rtype)
}

/// Reads the time to live and the records of a set.
fn read_content<'t>(
    mut members: Members<'t>,
    owner: Name,
    rtype: Type,
) -> Result<SetChange, LocatedFault<'t>> {
    let list = members.need("records")?;
    let mut data = Rdatas::new();
    list.elements(|index, record| {
        let read = read_record(record, rtype).map_err(|wrong| wrong.within(&format!("[{index}]")));
        data.push(read?.into());
        Ok(())
    })
    .map_err(|wrong| wrong.within("records"))?;
    let ttl = match (members.take("ttl"), data.is_empty()) {
        (None, true) => 0,
        (None, false) => members.need("ttl")?.number(0, 0)? as u32,
        (Some(ttl), _) => {
            ttl.number(0, i64::from(i32::MAX)).map_err(|wrong| wrong.within("ttl"))? as u32
        }
    };
    refuse_left(members, "\"name\", \"type\", \"ttl\", \"records\"")?;
    Ok(match data.is_empty() {
        true => SetChange::Remove { owner, rtype },
        false => SetChange::Put { owner, rtype, ttl, data },
    })
}

/// Reads the data of a record: an object by the fields of its type, or text.
fn read_record(json: Json<'_>, rtype: Type) -> Result<Vec<u8>, LocatedFault<'_>> {
    if json.begins('"') {
        let text = json.string()?;
        return rdata::from_text(rtype, &text).map_err(|error| {
            let wrong = json.wrong(JsonFault::Data(error.fault));
            if error.field.is_empty() { wrong } else { wrong.within(error.field) }
        });
    }
    let mut members = Members::of(json)?;
    let mut octets = Vec::new();
    let schema = schema::of(rtype).filter(|_| !members.has("data"));
    match schema {
        Some(schema) => data::read(schema, &mut members, &mut octets)?,
        None => data::read_generic(rtype, &mut members, &mut octets)?,
    }
    members.drop_derived(rtype);
    refuse_left(members, "the fields of the type")?;
    if octets.len() > usize::from(u16::MAX) {
        return Err(json.wrong(JsonFault::Data(Fault::TooLong)));
    }
    Ok(octets)
}

/// Refuses members that were not read; `known` names those that may be there.
fn refuse_left<'t>(members: Members<'t>, known: &'static str) -> Result<(), LocatedFault<'t>> {
    match members.into_left().next() {
        Some((key, value)) => Err(value.wrong(JsonFault::Unwanted(known)).within(&key)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use zonda_wire::rdata::from_text;

    /// What a text changes: each set as JSON, or its name and type where it is removed.
    fn changes(text: &str) -> Vec<String> {
        let shown = |change: &SetChange| match change {
            SetChange::Put { owner, rtype, ttl, data } => {
                set_to_text(owner.as_wire(), *rtype, *ttl, data.iter().map(|data| &**data))
            }
            _ => format!("{} {} removed", change.owner(), change.rtype()),
        };
        read_changes(text.as_bytes()).unwrap().iter().map(shown).collect()
    }

    /// Returns the fault of a text.
    fn error(text: &str) -> String {
        read_changes(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn records_are_objects_by_their_fields_or_text_of_master_files() {
        let text = r#"{"changes": [
            {"name": "www.example.com", "type": "A", "ttl": 300,
             "records": [{"ip": "192.0.2.1"}, "192.0.2.2"]},
            {"name": "example.com.", "type": "MX", "ttl": 60,
             "records": ["10 mail.example.com", {"preference": 20, "exchange": "b.example.com."}]},
            {"name": "x.example.com", "type": "65280", "ttl": 0, "records": ["\\# 2 abcd"]},
            {"name": "old.example.com", "type": "TXT", "records": []}]}"#;
        assert_eq!(
            changes(text),
            [
                "{\"name\": \"www.example.com\", \"type\": \"A\", \"ttl\": 300, \
                 \"records\": [{\"ip\": \"192.0.2.1\"}, {\"ip\": \"192.0.2.2\"}]}",
                "{\"name\": \"example.com\", \"type\": \"MX\", \"ttl\": 60, \"records\": \
                 [{\"preference\": 10, \"exchange\": \"mail.example.com\"}, \
                 {\"preference\": 20, \"exchange\": \"b.example.com\"}]}",
                "{\"name\": \"x.example.com\", \"type\": \"TYPE65280\", \"ttl\": 0, \
                 \"records\": [\"\\\\# 2 ABCD\"]}",
                "old.example.com. TXT removed",
            ]
        );
    }

    #[test]
    fn a_set_that_was_written_is_read_as_it_was() {
        let text = "{\"name\": \"a.test\", \"type\": \"TXT\", \"ttl\": 5, \
                    \"records\": [{\"txts\": [\"one \\\"\", \"é\"]}]}";
        let owner: Name = "a.test".parse().unwrap();
        let read = read_set(text.as_bytes(), &owner, Type::TXT).unwrap();
        let SetChange::Put { owner, rtype, ttl, data } = read else { panic!("{read:?}") };
        let written = set_to_text(owner.as_wire(), rtype, ttl, data.iter().map(|data| &**data));
        assert_eq!(written, text);
    }

    #[test]
    fn an_error_says_which_value_is_wrong_and_how() {
        let set = |rest: &str| format!(r#"{{"changes": [{{"name": "a.test", {rest}}}]}}"#);
        for (text, expected) in [
            ("".to_owned(), "not JSON: EOF while parsing a value"),
            ("[]".to_owned(), "expected an object"),
            (r#"{"change": []}"#.to_owned(), r#"expected a member "changes" in this object"#),
            (set(r#""type": "A""#), r#"changes[0]: expected a member "records" in this object"#),
            (
                set(r#""type": "POOL", "records": []"#),
                "changes[0].type: unknown type: expected one such as \"AAAA\", or its number",
            ),
            (
                set(r#""type": "ANY", "records": []"#),
                "changes[0].type: records of type ANY cannot stand in a zone",
            ),
            (
                set(r#""type": "A", "records": ["192.0.2.1"]"#),
                r#"changes[0]: expected a member "ttl" in this object"#,
            ),
            (
                set(r#""type": "A", "ttl": -1, "records": ["192.0.2.1"]"#),
                "changes[0].ttl: expected a whole number from 0 to 2147483647",
            ),
            (
                set(r#""type": "A", "ttl": 1, "records": ["192.0.2"]"#),
                "changes[0].records[0].ip: expected an IPv4 address such as 192.0.2.1",
            ),
            (
                set(r#""type": "A", "ttl": 1, "records": [{"ip": "1", "x": 1}]"#),
                "changes[0].records[0].ip: expected an IPv4 address such as 192.0.2.1",
            ),
            (
                set(r#""type": "A", "ttl": 1, "records": [{"ip": "192.0.2.1", "x": 1}]"#),
                "changes[0].records[0].x: unknown here; what may be here: the fields of the type",
            ),
            (
                set(r#""type": "A", "tll": 1, "ttl": 1, "records": ["192.0.2.1"]"#),
                "changes[0].tll: unknown here; what may be here: \"name\", \"type\", \"ttl\", \
                 \"records\"",
            ),
        ] {
            assert_eq!(error(&text), expected, "{text}");
        }
    }

    #[test]
    fn a_set_whose_name_and_type_are_known_may_repeat_them_and_not_contradict_them() {
        let owner: Name = "a.test".parse().unwrap();
        let read = |text: &str| read_set(text.as_bytes(), &owner, Type::A);
        assert!(
            read(r#"{"name": "A.test.", "type": "A", "ttl": 1, "records": ["192.0.2.1"]}"#).is_ok()
        );
        let error = read(r#"{"name": "b.test", "ttl": 1, "records": ["192.0.2.1"]}"#).unwrap_err();
        assert_eq!(error.to_string(), "name: expected the name that the path has");
        let error = read(r#"{"type": "AAAA", "ttl": 1, "records": ["::1"]}"#).unwrap_err();
        assert_eq!(error.to_string(), "type: expected the type that the path has");
    }

    #[test]
    fn records_are_objects_by_their_fields_or_text_where_there_is_no_such_object() {
        for (rtype, texts, expected) in [
            (
                Type::A,
                &["192.0.2.1", "192.0.2.2"][..],
                r#"[{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}]"#,
            ),
            (
                Type::MX,
                &["10 mail.example.com"],
                r#"[{"preference": 10, "exchange": "mail.example.com"}]"#,
            ),
            (Type::TXT, &["\"a \\\" b\""], r#"[{"txts": ["a \" b"]}]"#),
            (Type(65280), &["\\# 2 abcd"], r#"["\\# 2 ABCD"]"#),
        ] {
            let data: Vec<_> = texts.iter().map(|text| from_text(rtype, text).unwrap()).collect();
            let rdatas = data.iter().map(Vec::as_slice);
            let expected = format!(
                r#"{{"name": "a.test", "type": "{rtype}", "ttl": 5, "records": {expected}}}"#
            );
            assert_eq!(set_to_text(b"\x01a\x04test\0", rtype, 5, rdatas), expected);
        }
    }
}
