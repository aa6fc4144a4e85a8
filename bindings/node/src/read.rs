//! Messages and tables as JavaScript reads them: JSON.

use napi::bindgen_prelude::Buffer;
use napi_derive::napi;
use serde_json::{Map, Value, json};
use zonda::Any;
use zonda::Record as _;
use zonda_server::RecordLine;
use zonda_wire::rdata::print::{FieldText, Presentation};
use zonda_wire::rdata::schema::{self, Kind};
use zonda_wire::rdata::{self, wire};
use zonda_wire::{Ede, Message, Name, Rcode, Section, Type};

/// The numbers of types, response codes and extended errors, and the fields of each type's data.
#[napi]
pub fn tables() -> String {
    let fields = |rtype| {
        let schema = schema::of(rtype)?;
        let field = |field: &schema::Field| json!([field.name, kind_name(field.kind)]);
        Some(schema.fields.iter().map(field).collect::<Vec<_>>())
    };
    let of_type = |&(rtype, text): &(Type, &str)| json!([rtype.0, text, fields(rtype)]);
    let types: Vec<Value> = Type::KNOWN.iter().map(of_type).collect();
    let rcodes: Vec<Value> = Rcode::KNOWN.iter().map(|it| json!([it.0.0, it.1])).collect();
    let errors: Vec<Value> = Ede::KNOWN.iter().map(|it| json!([it.0.0, it.1])).collect();
    json!({ "types": types, "rcodes": rcodes, "errors": errors }).to_string()
}

/// Whether the native half is an optimised build, of which the size of the package is held.
#[napi]
pub fn is_optimized() -> bool {
    !cfg!(debug_assertions)
}

/// What JavaScript needs to know of a kind of field to write its text.
fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::U8 | Kind::U16 | Kind::U32 | Kind::Ttl | Kind::Algorithm => "number",
        Kind::Name(_) => "name",
        Kind::Names(_) => "names",
        Kind::CharString | Kind::OptionalCharString | Kind::Text => "string",
        Kind::CharStrings => "strings",
        Kind::Hex | Kind::HexByLength => "hex",
        Kind::Base64 | Kind::OptionalBase64 | Kind::DashBase64 => "base64",
        Kind::Base32ByLength => "base32",
        Kind::Time => "time",
        Kind::TypeBitmap | Kind::FlatTypeBitmap | Kind::SvcParams | Kind::Prefixes => "words",
        _ => "word",
    }
}

/// A message in JSON; nothing if it is malformed.
#[napi]
pub fn read_message(octets: &[u8]) -> Option<String> {
    let message = Message::parse(octets).ok()?;
    let question = |question: &zonda_wire::message::Question| {
        json!({
            "name": name_text(question.name.as_wire()),
            "type": question.qtype.to_string(),
            "class": question.qclass.to_string(),
        })
    };
    let records = |section| message.section(section).map(record).collect::<Vec<_>>();
    let opt = message.opt.as_ref().map(|opt| {
        let option = |(code, data): &(u16, Vec<u8>)| json!([code, hex(data)]);
        json!({
            "udpSize": opt.udp_bytes,
            "dnssecOk": opt.dnssec_ok(),
            "options": opt.options.iter().map(option).collect::<Vec<_>>(),
        })
    });
    let json = json!({
        "id": message.id,
        "flags": message.flags,
        "rcode": message.rcode().to_string(),
        "questions": message.questions.iter().map(question).collect::<Vec<_>>(),
        "answers": records(Section::Answer),
        "authorities": records(Section::Authority),
        "additionals": records(Section::Additional),
        "edns": opt,
    });
    Some(json.to_string())
}

/// A record: its data as programs give them, and the octets that they are.
fn record(record: &zonda_wire::message::Record) -> Value {
    json!({
        "name": name_text(record.owner.as_wire()),
        "type": record.rtype.to_string(),
        "class": record.class.to_string(),
        "ttl": record.ttl,
        "data": data(record.rtype, &record.rdata),
        "wire": hex(&record.rdata),
    })
}

/// The data of a record that a program has made, as text or octets, in JSON: as they are read, and
/// as octets.
///
/// # Errors
/// What is wrong with them.
#[napi]
pub fn read_data(rtype: u32, is_text: bool, given: &[u8]) -> napi::Result<String> {
    let (rtype, rdata) = checked_data(rtype, is_text, given)?;
    Ok(json!({ "data": data(rtype, &rdata), "wire": hex(&rdata) }).to_string())
}

/// A record of a line of a zone file, in JSON; names without a final dot end at the origin, or at
/// the root.
///
/// # Errors
/// What is wrong with the line or the origin.
#[napi]
pub fn read_record(line: String, origin: Option<String>, ttl: u32) -> napi::Result<String> {
    let wrong = |error: zonda_wire::NameError| crate::core::error(format!("origin: {error}"));
    let origin = origin.map(|name| name.parse::<Name>().map_err(wrong)).transpose()?;
    let read = RecordLine::read(&line, origin.as_ref(), ttl).map_err(crate::core::error)?;
    let RecordLine { owner, rtype, ttl_secs, rdata } = read;
    let owner = owner.ok_or_else(|| crate::core::error("`@` needs an origin"))?;
    let json = json!({
        "name": name_text(owner.as_wire()),
        "type": rtype.to_string(),
        "class": "IN",
        "ttl": ttl_secs,
        "data": data(rtype, &rdata),
        "wire": hex(&rdata),
    });
    Ok(json.to_string())
}

/// The line of a zone file for a record, whose data are text or octets; without a name, its owner
/// is `@`.
///
/// # Errors
/// What is wrong with the data or the name.
#[napi]
pub fn record_line(
    name: Option<String>,
    rtype: u32,
    ttl: u32,
    is_text: bool,
    given: &[u8],
) -> napi::Result<String> {
    let wrong = |error: zonda_wire::NameError| crate::core::error(format!("name: {error}"));
    let name = name.map(|name| name.parse::<Name>().map_err(wrong)).transpose()?;
    let owner = name.map_or_else(|| "@".to_owned(), |name| name.to_string());
    let (rtype, rdata) = checked_data(rtype, is_text, given)?;
    Ok(format!("{owner} {ttl} IN {rtype} {}", Presentation { rtype, rdata: &rdata }))
}

/// The type and the data of a record that a program has made, as text or octets.
fn checked_data(rtype: u32, is_text: bool, given: &[u8]) -> napi::Result<(Type, Vec<u8>)> {
    let rtype = Type(rtype as u16); // JavaScript knows only such types
    let mut rdata = Vec::new();
    if is_text {
        let text = std::str::from_utf8(given).map_err(crate::core::error)?;
        Any::new(rtype, text).map_err(crate::core::error)?.write_rdata(&mut rdata);
    } else {
        rdata.extend_from_slice(given);
    }
    let wrong = |error| crate::core::error(format!("{rtype} record: {error}"));
    rdata::validate(rtype, &rdata).map_err(wrong)?;
    Ok((rtype, rdata))
}

/// Data by their fields; what has none is text as of an unknown type (rfc3597#5).
fn data(rtype: Type, rdata: &[u8]) -> Value {
    let fields = schema::of(rtype).and_then(|schema| {
        let values = wire::values(schema, rdata).map(|value| {
            let value = value.ok()?;
            Some((value.field.name, field(value, rdata)))
        });
        values.collect::<Option<Vec<_>>>()
    });
    match fields {
        None => Presentation { rtype, rdata }.to_string().into(),
        Some(mut fields) if fields.len() == 1 => fields.remove(0).1,
        Some(fields) => {
            let entries = fields.into_iter().map(|(name, value)| (name.to_owned(), value));
            entries.collect::<Map<_, _>>().into()
        }
    }
}

/// A field: a number, a text, or a list of texts.
fn field(value: wire::Value<'_>, rdata: &[u8]) -> Value {
    let text = FieldText { value, rdata }.to_string();
    let words = || text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>();
    match kind_name(value.field.kind) {
        "number" => text.parse::<u32>().map_or(Value::from(text.as_str()), |number| number.into()),
        "name" => name_text(value.octets).into(),
        "names" | "words" => words().into(),
        "strings" => strings(value.octets).into(),
        "string" => match value.field.kind {
            Kind::Text => String::from_utf8_lossy(value.octets).into(),
            _ => strings(value.octets).pop().unwrap_or_default().into(),
        },
        _ => text.into(),
    }
}

/// Character strings, each behind its length, as text.
fn strings(mut octets: &[u8]) -> Vec<String> {
    let mut strings = Vec::new();
    while let Some((&len, rest)) = octets.split_first() {
        let Some((string, rest)) = rest.split_at_checked(usize::from(len)) else { break };
        strings.push(String::from_utf8_lossy(string).into_owned());
        octets = rest;
    }
    strings
}

/// A name's text, with its final dot.
pub fn name_text(wire: &[u8]) -> String {
    zonda_wire::name::Presentation(wire).to_string()
}

/// Octets in hexadecimal digits.
fn hex(octets: &[u8]) -> String {
    rdata::print::Hex(octets).to_string()
}

/// A query in wire form that asks for recursion, with an EDNS record.
///
/// # Errors
/// When the text is no name.
#[napi]
pub fn make_query(name: String, qtype: u32, is_dnssec_ok: bool) -> napi::Result<Buffer> {
    let name: Name = name.parse().map_err(|error: zonda_wire::NameError| {
        napi::Error::from_reason(format!("{name}: {error}"))
    })?;
    let mut octets = b"\0\0\x01\0\0\x01\0\0\0\0\0\x01".to_vec();
    octets.extend_from_slice(name.as_wire());
    octets.extend_from_slice(&(qtype as u16).to_be_bytes()); // JavaScript knows only such types
    octets.extend_from_slice(b"\0\x01\0\0\x29\x04\xd0\0\0");
    octets.extend_from_slice(&[u8::from(is_dnssec_ok) << 7, 0, 0, 0]);
    Ok(octets.into())
}

/// The one text of all patterns that mean the same as this one.
///
/// # Errors
/// When it is none.
#[napi]
pub fn check_pattern(pattern: String) -> napi::Result<String> {
    let checked = crate::server::pattern(&pattern).map(|pattern| pattern.canonical());
    checked.map_err(napi::Error::from_reason)
}

/// Throws what is wrong with a suffix that patterns leave out.
///
/// # Errors
/// When no pattern can stand in front of it.
#[napi]
pub fn check_suffix(suffix: String) -> napi::Result<()> {
    let wrong = |error| crate::core::error(format!("router `{suffix}`: {error}"));
    zonda_engine::code::Pattern::check_suffix(&suffix).map_err(wrong)
}
