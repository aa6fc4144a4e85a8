//! Record data: where the names in it are, and how it is printed.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::message::{Malformed, Reader, name_text};

/// Types that the kit knows by mnemonic; other types are `TYPEn` (rfc3597#5).
const TYPES: &[(u16, &str)] = &[
    (1, "A"),
    (2, "NS"),
    (5, "CNAME"),
    (6, "SOA"),
    (12, "PTR"),
    (13, "HINFO"),
    (15, "MX"),
    (16, "TXT"),
    (17, "RP"),
    (18, "AFSDB"),
    (28, "AAAA"),
    (29, "LOC"),
    (33, "SRV"),
    (35, "NAPTR"),
    (39, "DNAME"),
    (43, "DS"),
    (44, "SSHFP"),
    (46, "RRSIG"),
    (47, "NSEC"),
    (48, "DNSKEY"),
    (50, "NSEC3"),
    (51, "NSEC3PARAM"),
    (52, "TLSA"),
    (63, "ZONEMD"),
    (64, "SVCB"),
    (65, "HTTPS"),
    (252, "AXFR"),
    (255, "ANY"),
    (256, "URI"),
    (257, "CAA"),
];

/// Returns the mnemonic of a type, or `TYPEn`.
pub fn type_text(number: u16) -> String {
    let known = TYPES.iter().find(|(n, _)| *n == number);
    known.map_or_else(|| format!("TYPE{number}"), |(_, text)| (*text).to_owned())
}

/// Returns the number of a type given as a mnemonic or as `TYPEn`.
///
/// # Panics
/// When there is no such type: the tests write these themselves.
pub fn type_number(text: &str) -> u16 {
    let known = TYPES.iter().find(|(_, t)| *t == text).map(|(n, _)| *n);
    let generic = || text.strip_prefix("TYPE")?.parse().ok();
    known.or_else(generic).unwrap_or_else(|| panic!("the kit knows no type {text}"))
}

/// A piece of record data.
#[derive(Clone, Copy)]
enum Field {
    U8,
    U16,
    U32,
    Ip4,
    Ip6,
    /// A name, which the sender may have compressed.
    Name,
    /// One character-string (rfc1035#3.3).
    Text,
    /// Character-strings to the end.
    Texts,
    /// A byte that counts, then as many bytes.
    Counted,
    /// Number of a type.
    Type,
    /// Bit maps of types to the end (rfc4034#4.1.2).
    Types,
    /// Bytes to the end.
    Bytes,
}

/// Returns the fields of a type; a type without an entry is bytes and holds no compressed name.
fn fields(record_type: u16) -> &'static [Field] {
    use Field::{Bytes, Counted, Ip4, Ip6, Name, Text, Texts, Type, Types, U8, U16, U32};
    match record_type {
        1 => &[Ip4],
        2 | 5 | 12 | 39 => &[Name],
        6 => &[Name, Name, U32, U32, U32, U32, U32],
        13 => &[Text, Text],
        15 | 18 => &[U16, Name],
        16 => &[Texts],
        17 => &[Name, Name],
        28 => &[Ip6],
        33 => &[U16, U16, U16, Name],
        35 => &[U16, U16, Text, Text, Text, Name],
        43 | 48 => &[U16, U8, U8, Bytes],
        44 => &[U8, U8, Bytes],
        46 => &[Type, U8, U8, U32, U32, U32, U16, Name, Bytes],
        47 => &[Name, Types],
        50 => &[U8, U8, U16, Counted, Counted, Types],
        51 => &[U8, U8, U16, Counted],
        52 => &[U8, U8, U8, Bytes],
        64 | 65 => &[U16, Name, Bytes],
        257 => &[U8, Text, Bytes],
        _ => &[Bytes],
    }
}

/// Record data without compression and as text.
#[derive(Clone, Debug)]
pub struct RecordData {
    /// Wire form, names written out and in lower case.
    pub bytes: Vec<u8>,
    /// Presentation form; bytes and unknown types in hexadecimal.
    pub text: String,
}

/// Reads the data of one record; the reader stands at its start and `length` bytes belong to it.
///
/// # Errors
/// When a field ends outside the record.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    record_type: u16,
    length: usize,
) -> Result<RecordData, Malformed> {
    let end = reader.position + length;
    let mut data = RecordData { bytes: Vec::new(), text: String::new() };
    for field in fields(record_type) {
        if !data.text.is_empty() {
            data.text.push(' ');
        }
        read_field(reader, *field, end, &mut data)?;
    }
    if reader.position == end { Ok(data) } else { Err(Malformed("record data of another length")) }
}

/// Reads one field and appends it to both forms.
fn read_field(
    reader: &mut Reader<'_>,
    field: Field,
    end: usize,
    data: &mut RecordData,
) -> Result<(), Malformed> {
    let rest = end.saturating_sub(reader.position);
    let mut take = |count| reader.take(count).map(|bytes| data.bytes.extend_from_slice(bytes));
    let start = |data: &RecordData, count: usize| data.bytes[data.bytes.len() - count..].to_vec();
    match field {
        Field::U8 => take(1)?,
        Field::U16 | Field::Type => take(2)?,
        Field::U32 | Field::Ip4 => take(4)?,
        Field::Ip6 => take(16)?,
        Field::Bytes | Field::Types | Field::Texts => take(rest)?,
        Field::Text | Field::Counted => {
            let count = reader.peek()?;
            let bytes = reader.take(usize::from(count) + 1)?;
            data.bytes.extend_from_slice(bytes);
            let text =
                if matches!(field, Field::Text) { quoted(&bytes[1..]) } else { hex(&bytes[1..]) };
            data.text.push_str(&text);
            return Ok(());
        }
        Field::Name => {
            let name = reader.name()?.to_ascii_lowercase();
            data.text.push_str(&name_text(&name));
            data.bytes.extend_from_slice(&name);
            return Ok(());
        }
    }
    let text = match field {
        Field::U8 => start(data, 1)[0].to_string(),
        Field::U16 => number(&start(data, 2)).to_string(),
        Field::Type => type_text(number(&start(data, 2)) as u16),
        Field::U32 => number(&start(data, 4)).to_string(),
        Field::Ip4 => Ipv4Addr::from(number(&start(data, 4))).to_string(),
        Field::Ip6 => {
            let bytes: [u8; 16] = start(data, 16).try_into().expect("sixteen bytes were taken");
            Ipv6Addr::from(bytes).to_string()
        }
        Field::Texts => texts(&start(data, rest)),
        Field::Types => types(&start(data, rest)),
        _ => format!("\\# {rest} {}", hex(&start(data, rest))),
    };
    data.text.push_str(&text);
    Ok(())
}

/// At most four bytes as a number.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns a character-string in quotes.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => {
                let _ = write!(text, "\\{byte:03}");
            }
        }
    }
    text + "\""
}

/// Character-strings, each in quotes.
fn texts(mut bytes: &[u8]) -> String {
    let mut strings = Vec::new();
    while let Some((count, rest)) = bytes.split_first() {
        let (string, rest) = rest.split_at(usize::from(*count).min(rest.len()));
        strings.push(quoted(string));
        bytes = rest;
    }
    strings.join(" ")
}

/// Returns the types in a bit map.
fn types(mut bytes: &[u8]) -> String {
    let mut found = Vec::new();
    while let [window, count, rest @ ..] = bytes {
        let (map, rest) = rest.split_at(usize::from(*count).min(rest.len()));
        for (index, byte) in map.iter().enumerate() {
            let bits = (0..8).filter(|bit| byte & (0x80 >> bit) != 0);
            found.extend(bits.map(|bit| u16::from(*window) * 256 + (index * 8) as u16 + bit));
        }
        bytes = rest;
    }
    found.into_iter().map(type_text).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_name_in_record_data_is_written_out() {
        // The owner at 0 is `mx.`; the data is preference 10 and a pointer to it.
        let message = b"\x02Mx\x00\x00\x0a\xc0\x00";
        let mut reader = Reader { message, position: 4 };
        let data = read(&mut reader, 15, 4).unwrap();
        assert_eq!(data.text, "10 mx.");
        assert_eq!(data.bytes, b"\x00\x0a\x02mx\x00");
    }

    #[test]
    fn a_bit_map_lists_its_types() {
        assert_eq!(types(b"\x00\x06\x40\x01\x00\x00\x00\x03\x01\x01\x40"), "A MX RRSIG NSEC CAA");
    }

    #[test]
    fn data_that_ends_early_is_malformed() {
        let mut reader = Reader { message: b"\x01\x02\x03", position: 0 };
        assert!(read(&mut reader, 1, 3).is_err());
    }
}
