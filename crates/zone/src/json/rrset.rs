//! RRsets as JSON.

use super::write::Writer;
use std::io;
use zonda_wire::Type;

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

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_wire::rdata::from_text;

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
