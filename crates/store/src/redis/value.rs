//! Values of hash fields: Zonda's own form, and that of DinoDNS.
//!
//! Zonda's is an object with the time to live and data in presentation format. DinoDNS's is a list
//! without times to live, of texts or, for types with several fields, of objects as the npm package
//! `dns-packet` has them.

use crate::RecordSet;
use serde_json::{Map, Value, json};

/// The time to live of what DinoDNS wrote, seconds.
const TTL_SECS: u32 = 300;
/// Octets of a string in a TXT record.
const STRING_BYTES_MAX: usize = 255;

/// A part of a record's data.
#[derive(Clone, Copy)]
enum Part {
    /// A number or a name.
    Word(&'static str),
    /// A quoted string of JSON.
    Quoted(&'static str),
    /// Octets in hexadecimal digits.
    Hex(&'static str),
}
use Part::{Hex, Quoted, Word};

/// The objects of DinoDNS by type: their keys in the order of presentation format.
const OBJECTS: &[(&str, &[Part])] = &[
    ("MX", &[Word("preference"), Word("exchange")]),
    ("SRV", &[Word("priority"), Word("weight"), Word("port"), Word("target")]),
    (
        "SOA",
        &[
            Word("mname"),
            Word("rname"),
            Word("serial"),
            Word("refresh"),
            Word("retry"),
            Word("expire"),
            Word("minimum"),
        ],
    ),
    ("CAA", &[Word("flags"), Word("tag"), Quoted("value")]),
    ("HINFO", &[Quoted("cpu"), Quoted("os")]),
    ("RP", &[Word("mbox"), Word("txt")]),
    (
        "NAPTR",
        &[
            Word("order"),
            Word("preference"),
            Quoted("flags"),
            Quoted("services"),
            Quoted("regexp"),
            Word("replacement"),
        ],
    ),
    ("SSHFP", &[Word("algorithm"), Word("hash"), Word("fingerprint")]),
    ("DS", &[Word("keyTag"), Word("algorithm"), Word("digestType"), Hex("digest")]),
    ("TLSA", &[Word("usage"), Word("selector"), Word("matchingType"), Hex("certificate")]),
];

/// Keys that may be missing, which then are 0.
const OPTIONAL: [&str; 11] = [
    "preference",
    "priority",
    "weight",
    "flags",
    "serial",
    "refresh",
    "retry",
    "expire",
    "minimum",
    "order",
    "issuerCritical",
];

/// The value of records.
pub(super) fn of(records: &RecordSet) -> String {
    json!({"ttl": records.ttl_secs, "data": records.data}).to_string()
}

/// The records of a field.
pub(super) fn records(owner: &str, field: &str, value: &str) -> RecordSet {
    let read = match serde_json::from_str(value) {
        Ok(Value::Object(own)) => read_own(&own),
        Ok(Value::Array(items)) => {
            let data = items.iter().map(|item| presentation(field, item)).collect();
            Ok((TTL_SECS, data))
        }
        Ok(_) => Err("neither an object nor a list".to_owned()),
        Err(error) => Err(format!("no JSON: {error}")),
    };
    match read {
        Ok((ttl_secs, data)) => RecordSet::new(owner, field, ttl_secs, data),
        Err(why) => RecordSet::unreadable(owner, field, why),
    }
}

/// Reads the time to live and the data of Zonda's own form.
fn read_own(object: &Map<String, Value>) -> Result<(u32, Vec<String>), String> {
    let ttl_secs = object.get("ttl").map_or(Some(TTL_SECS.into()), Value::as_u64);
    let ttl_secs = ttl_secs.and_then(|secs| u32::try_from(secs).ok()).ok_or("a wrong `ttl`")?;
    let items = object.get("data").and_then(Value::as_array).ok_or("no list `data`")?;
    let data = items.iter().map(|item| item.as_str().map(str::to_owned));
    let data = data.collect::<Option<_>>().ok_or("`data` are no texts")?;
    Ok((ttl_secs, data))
}

/// An item of DinoDNS in presentation format. What is not understood stays JSON, which is refused
/// with its owner's name when it is read as data.
fn presentation(rtype: &str, item: &Value) -> String {
    let known = match (rtype, item) {
        ("TXT" | "SPF", item) => strings(item),
        (_, Value::String(text)) => Some(text.clone()),
        (rtype, Value::Object(object)) => {
            let object_of_type = OBJECTS.iter().find(|(name, _)| *name == rtype);
            object_of_type.and_then(|(_, parts)| words(parts, object))
        }
        _ => None,
    };
    // A quote that is not closed is data of no type.
    known.unwrap_or_else(|| format!("\"not understood: {}", item.to_string().replace('"', "'")))
}

/// The parts of an object.
fn words(parts: &[Part], object: &Map<String, Value>) -> Option<String> {
    let words = parts.iter().map(|part| match *part {
        Word("flags") if object.get("issuerCritical") == Some(&Value::Bool(true)) => {
            Some("128".to_owned())
        }
        Word(key) => match object.get(key) {
            None | Some(Value::Null) => OPTIONAL.contains(&key).then(|| "0".to_owned()),
            Some(Value::String(root)) if root.is_empty() => Some(".".to_owned()),
            Some(Value::String(text)) => Some(text.clone()),
            Some(number) => number.as_u64().map(|number| number.to_string()),
        },
        Quoted(key) => Some(quoted(object.get(key).map_or(Some(Vec::new()), octets)?.as_slice())),
        Hex(key) => {
            let octets = octets(object.get(key)?)?;
            Some(octets.iter().map(|octet| format!("{octet:02X}")).collect())
        }
    });
    words.collect::<Option<Vec<_>>>().map(|words| words.join(" "))
}

/// The strings of a text record: one, or several in a list.
fn strings(item: &Value) -> Option<String> {
    let strings: Vec<Vec<u8>> = match item {
        Value::Array(several) => several.iter().map(octets).collect::<Option<_>>()?,
        one => vec![octets(one)?],
    };
    let pieces = strings.iter().flat_map(|string| match string.is_empty() {
        true => vec![quoted(b"")],
        false => string.chunks(STRING_BYTES_MAX).map(quoted).collect(),
    });
    Some(pieces.collect::<Vec<_>>().join(" "))
}

/// The octets of a text, or of a `Buffer` of Node.js.
fn octets(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Object(buffer) if buffer.get("type")? == "Buffer" => {
            let octet = |number: &Value| u8::try_from(number.as_u64()?).ok();
            buffer.get("data")?.as_array()?.iter().map(octet).collect()
        }
        _ => None,
    }
}

/// A string in quotes.
fn quoted(octets: &[u8]) -> String {
    let mut text = String::from("\"");
    for &octet in octets {
        match octet {
            b'"' | b'\\' => text.extend(['\\', char::from(octet)]),
            b' '..=b'~' => text.push(char::from(octet)),
            _ => text.push_str(&format!("\\{octet:03}")),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_wire::rdata::Presentation;

    /// What is served of a field, and what is wrong with it.
    fn read(field: &str, value: &str) -> (Vec<String>, String) {
        match records("a.example", field, value).read() {
            Ok((set, wrong)) => {
                let rtype = set.rtype;
                let text = |rdata: &Vec<u8>| Presentation { rtype, rdata }.to_string();
                let wrong: Vec<_> = wrong.iter().map(ToString::to_string).collect();
                (set.data.iter().map(text).collect(), wrong.join("\n"))
            }
            Err(error) => (Vec::new(), error.to_string()),
        }
    }

    fn check(field: &str, value: &str, data: &[&str]) {
        let (read, wrong) = read(field, value);
        assert_eq!(read, data, "{field} {value}: {wrong}");
        assert!(wrong.is_empty(), "{wrong}");
    }

    #[test]
    fn our_own_values_come_back() {
        let set = RecordSet::new("a.example", "TXT", 60, ["\"one two\" three"]);
        assert_eq!(records("a.example", "TXT", &of(&set)), set);
    }

    #[test]
    fn values_of_dinodns_are_read() {
        check("A", r#"["192.0.2.1","192.0.2.2"]"#, &["192.0.2.1", "192.0.2.2"]);
        check("CNAME", r#"["www.example.org"]"#, &["www.example.org."]);
        check("TXT", r#"["two words","a\"b\\"]"#, &[r#""two words""#, r#""a\"b\\""#]);
        check("TXT", r#"[["one","two"]]"#, &[r#""one" "two""#]);
        check("TXT", r#"[{"type":"Buffer","data":[104,105]}]"#, &[r#""hi""#]);
        check("MX", r#"[{"preference":10,"exchange":"mx.example"}]"#, &["10 mx.example."]);
        check("MX", r#"[{"exchange":"mx.example"}]"#, &["0 mx.example."]);
        check("SRV", r#"[{"port":5060,"target":"sip.example"}]"#, &["0 0 5060 sip.example."]);
        check(
            "CAA",
            r#"[{"tag":"issue","value":"ca.example","issuerCritical":true}]"#,
            &[r#"128 issue "ca.example""#],
        );
        check(
            "SOA",
            concat!(
                r#"[{"mname":"ns.example","rname":"me.example","serial":1,"refresh":2,"#,
                r#""retry":3,"expire":4,"minimum":5}]"#
            ),
            &["ns.example. me.example. 1 2 3 4 5"],
        );
        check(
            "NAPTR",
            concat!(
                r#"[{"order":1,"preference":2,"flags":"s","services":"SIP","regexp":"","#,
                r#""replacement":"a.example"}]"#
            ),
            &[r#"1 2 "s" "SIP" "" a.example."#],
        );
        let octets = "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,255]";
        let digest = format!(r#"{{"type":"Buffer","data":{octets}}}"#);
        check(
            "DS",
            &format!(r#"[{{"keyTag":1,"algorithm":8,"digestType":1,"digest":{digest}}}]"#),
            &["1 8 1 000102030405060708090A0B0C0D0E0F101112FF"],
        );
    }

    #[test]
    fn what_is_not_understood_is_named_and_never_served() {
        for (field, value) in [
            ("A", "192.0.2.1"),
            ("A", "7"),
            ("A", r#"{"ttl":-1,"data":["192.0.2.1"]}"#),
            ("A", r#"{"ttl":60}"#),
            ("A", r#"{"ttl":60,"data":[1]}"#),
            ("TXT", "[7]"),
            ("MX", r#"[{"preference":10}]"#),
            ("LOC", r#"[{"lat":1}]"#),
            ("a field of theirs", r#"["x"]"#),
        ] {
            let (data, wrong) = read(field, value);
            assert!(data.is_empty(), "{field} {value}: {data:?}");
            assert!(wrong.starts_with("a.example "), "{wrong}");
        }
    }

    #[test]
    fn a_wrong_item_leaves_valid_items_in_place() {
        let (data, wrong) = read("A", r#"["192.0.2.1",{"address":"192.0.2.2"}]"#);
        assert_eq!(data, ["192.0.2.1"]);
        assert!(wrong.contains("not understood: {'address':'192.0.2.2'}"), "{wrong}");
    }
}
