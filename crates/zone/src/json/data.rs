//! Record data as JSON objects: one member per field of the type's schema, and what differs.
//!
//! | field | JSON |
//! |---|---|
//! | numbers | numbers |
//! | names | strings, with or without the final dot |
//! | character strings, text | strings of those octets; one, or a list where there may be several |
//! | type bitmaps, service parameters | lists of mnemonics; an object |
//! | the rest | strings, as in master files |
//!
//! An RSA key may also be given in the form of dns_erlang, each of its numbers behind its length.
//! Data that JSON cannot say so is written under the type's number, `{"data": "base 64"}`.

use super::problem::JsonFault;
use super::text::{Json, LocatedFault};
use std::borrow::Cow;
use zonda_wire::rdata::schema::{self, Field, Kind};
use zonda_wire::rdata::{self, Fault, Scope, Token, Tokens, loc, svcb};
use zonda_wire::{Type, name};

/// A field that is a number in the schema and several members in JSON.
pub(super) struct Bits {
    /// The type that has the field.
    rtype: Type,
    /// The field in the schema.
    field: &'static str,
    /// The members of the field.
    pub(super) parts: &'static [BitsPart],
}

/// A member that stands for some bits of a field.
pub(super) struct BitsPart {
    pub(super) name: &'static str,
    /// The place of the member's lowest bit.
    pub(super) shift: u32,
    /// Number of bits of the member.
    pub(super) width: u32,
    /// Whether the member is `true` or `false`, not a number.
    pub(super) is_flag: bool,
}

/// A member of several bits, a number.
const fn bits(name: &'static str, shift: u32, width: u32) -> BitsPart {
    BitsPart { name, shift, width, is_flag: false }
}

/// A member of one bit.
const fn flag(name: &'static str, shift: u32) -> BitsPart {
    BitsPart { name, shift, width: 1, is_flag: true }
}

/// All fields that JSON takes apart.
const SPLIT: &[Bits] = &[
    Bits {
        rtype: Type::KEY, // rfc2535#3.1.2
        field: "flags",
        parts: &[
            bits("type", 14, 2),
            bits("xt", 12, 1),
            bits("name_type", 8, 2),
            bits("sig", 0, 4),
        ],
    },
    Bits { rtype: Type::NSEC3, field: "flags", parts: &[flag("opt_out", 0)] }, // rfc5155#3.1.2
    Bits {
        rtype: Type::AMTRELAY, // rfc8777#4.2
        field: "relay_type",
        parts: &[flag("discovery_optional", 7), bits("relay_type", 0, 7)],
    },
];

/// How JSON takes a field apart, if it does.
pub(super) fn split(rtype: Type, field: &Field) -> Option<&'static Bits> {
    SPLIT.iter().find(|bits| bits.rtype == rtype && bits.field == field.name)
}

/// Most members that an object may have, so that looking for one of them stays quick.
const MEMBERS_MAX: usize = 100;

/// The members of an object that were not used yet.
pub(super) struct Members<'t> {
    object: Json<'t>,
    left: Vec<(Cow<'t, str>, Json<'t>)>,
}

impl<'t> Members<'t> {
    /// All members of an object.
    pub(super) fn of(object: Json<'t>) -> Result<Self, LocatedFault<'t>> {
        let mut left: Vec<(Cow<'t, str>, Json<'t>)> = Vec::with_capacity(8);
        object.members(|key, value| {
            if left.len() == MEMBERS_MAX {
                return Err(object.expected("at most 100 members"));
            }
            if left.iter().any(|member| member.0 == key) {
                return Err(value.wrong(JsonFault::Repeated).within(&key));
            }
            left.push((key, value));
            Ok(())
        })?;
        Ok(Self { object, left })
    }

    /// Takes a member out, if it is there and not `null`.
    pub(super) fn take(&mut self, name: &str) -> Option<Json<'t>> {
        let at = self.left.iter().position(|member| member.0 == name)?;
        Some(self.left.swap_remove(at).1).filter(|value| !value.is_null())
    }

    /// Whether a member is there and was not taken out.
    pub(super) fn has(&self, name: &str) -> bool {
        self.left.iter().any(|member| member.0 == name)
    }

    /// Takes a member out.
    pub(super) fn need(&mut self, name: &'static str) -> Result<Json<'t>, LocatedFault<'t>> {
        self.take(name).ok_or_else(|| self.object.wrong(JsonFault::Missing(name)))
    }

    /// Removes fields that follow from other fields: a DNSKEY comes with its key tag.
    pub(super) fn drop_derived(&mut self, rtype: Type) {
        if matches!(rtype, Type::DNSKEY | Type::CDNSKEY) {
            self.take("keytag");
        }
    }

    /// Returns the members that were not taken out.
    pub(super) fn into_left(self) -> impl Iterator<Item = (Cow<'t, str>, Json<'t>)> {
        self.left.into_iter()
    }
}

/// Reads `{"data": "base 64"}`, the form of unknown types, which any type may have.
pub(super) fn read_generic<'t>(
    rtype: Type,
    members: &mut Members<'t>,
    out: &mut Vec<u8>,
) -> Result<(), LocatedFault<'t>> {
    const OCTETS: &Field = &Field { name: "data", kind: Kind::OptionalBase64 };
    let value = members.need("data")?;
    read_words(OCTETS, value, out).map_err(|wrong| wrong.within("data"))?;
    rdata::validate(rtype, out).map_err(|error| value.wrong(JsonFault::Data(error.fault)))
}

/// Reads the members that the schema of a type asks for; `out` is empty before.
pub(super) fn read<'t>(
    schema: &'static schema::Schema,
    members: &mut Members<'t>,
    out: &mut Vec<u8>,
) -> Result<(), LocatedFault<'t>> {
    for field in schema.fields {
        if let Some(bits) = split(schema.rtype, field) {
            read_bits(bits, field, members, out)?;
            continue;
        }
        match field.kind {
            Kind::Loc => read_loc(members, out)?,
            Kind::HipIdentity => read_hip_identity(field, members, out)?,
            Kind::SvcParams | Kind::OptionalBase64 | Kind::OptionalCharString | Kind::Names(_) => {
                if let Some(value) = members.take(field.name) {
                    read_field(field, value, out).map_err(|wrong| wrong.within(field.name))?;
                }
            }
            _ if field.name == "gateway_type" => read_gateway_type(members, out)?,
            _ => {
                let value = members.need(field.name)?;
                read_field(field, value, out).map_err(|wrong| wrong.within(field.name))?;
            }
        }
    }
    if matches!(schema.rtype, Type::DNSKEY | Type::CDNSKEY) {
        join_rsa_key(out);
    }
    rdata::validate(schema.rtype, out).map_err(|error| {
        let wrong = members.object.wrong(JsonFault::Data(error.fault));
        if error.field.is_empty() { wrong } else { wrong.within(error.field) }
    })
}

/// Turns the RSA key of a DNSKEY record as dns_erlang writes it into what goes on the wire
/// (rfc3110#2). A key for the wire cannot be taken for the other form: its exponent would be empty.
///
/// ```text
/// length u32 | exponent | length u32 | modulus     to     length u8 | exponent | modulus
/// ```
fn join_rsa_key(rdata: &mut Vec<u8>) {
    const FIXED: usize = 4; // flags, protocol, algorithm
    const RSA: [u8; 4] = [5, 7, 8, 10]; // with SHA-1, twice, SHA-256 and SHA-512
    let part = |from: &[u8]| {
        let (len, rest) = from.split_first_chunk()?;
        let (part, rest) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        Some((part.to_vec(), rest.to_vec()))
    };
    let Some((fixed, key)) = rdata.split_first_chunk::<FIXED>() else { return };
    let Some((exponent, rest)) = part(key).filter(|_| RSA.contains(&fixed[3])) else { return };
    let Some((modulus, _)) = part(&rest).filter(|(_, rest)| rest.is_empty()) else { return };
    let Ok(len) = u8::try_from(exponent.len()) else { return };
    rdata.truncate(FIXED);
    rdata.push(len);
    rdata.extend(exponent.into_iter().chain(modulus));
}

/// Reads one field from its member.
fn read_field<'t>(
    field: &Field,
    value: Json<'t>,
    out: &mut Vec<u8>,
) -> Result<(), LocatedFault<'t>> {
    match field.kind {
        Kind::Name(_) => read_name(value, out),
        Kind::Names(_) => value.elements(|index, name| {
            read_name(name, out).map_err(|wrong| wrong.within(&format!("[{index}]")))
        }),
        Kind::CharString | Kind::OptionalCharString | Kind::Tag => read_string(value, out),
        Kind::CharStrings => value.elements(|index, string| {
            read_string(string, out).map_err(|wrong| wrong.within(&format!("[{index}]")))
        }),
        Kind::Text => {
            out.extend_from_slice(value.string()?.as_bytes());
            Ok(())
        }
        Kind::TypeBitmap | Kind::FlatTypeBitmap | Kind::Prefixes => read_list(field, value, out),
        Kind::SvcParams => read_svc_params(field, value, out),
        Kind::Eui48 | Kind::Eui64 | Kind::NodeId => read_identifier(field, value, out),
        _ => read_words(field, value, out),
    }
}

/// Reads a string or a number as a master file's words.
fn read_words<'t>(
    field: &Field,
    value: Json<'t>,
    out: &mut Vec<u8>,
) -> Result<(), LocatedFault<'t>> {
    let mut word = value.word()?;
    match field.kind {
        Kind::Type => word = type_word(word),
        Kind::HexByLength | Kind::DashBase64 if word.is_empty() => word = "-".into(),
        Kind::Gateway | Kind::Relay if word.is_empty() => word = ".".into(),
        _ => {}
    }
    let words: Vec<&str> = word.split_ascii_whitespace().collect();
    parse_words(field, &words, out).map_err(|fault| value.wrong(JsonFault::Data(fault)))
}

/// Reads a list of strings or numbers as a master file's words.
fn read_list<'t>(
    field: &Field,
    value: Json<'t>,
    out: &mut Vec<u8>,
) -> Result<(), LocatedFault<'t>> {
    let mut words = Vec::new();
    value.elements(|index, element| {
        let word = element.word().map_err(|wrong| wrong.within(&format!("[{index}]")))?;
        words.push(if field.kind == Kind::Prefixes { word } else { type_word(word) });
        Ok(())
    })?;
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    parse_words(field, &words, out).map_err(|fault| value.wrong(JsonFault::Data(fault)))
}

/// A type that is given by its number becomes `TYPE123`.
fn type_word(word: Cow<'_, str>) -> Cow<'_, str> {
    let is_number = word.bytes().all(|octet| octet.is_ascii_digit());
    if is_number { format!("TYPE{word}").into() } else { word }
}

/// Reads a field as a master file would.
fn parse_words(field: &Field, words: &[&str], out: &mut Vec<u8>) -> Result<(), Fault> {
    let token = |word| Token { text: word, quoted: false, glued: false, at: 0 };
    let tokens: Vec<Token<'_>> = words.iter().map(|word| token(word.as_bytes())).collect();
    let mut tokens = Tokens::new(&tokens);
    rdata::parse_field(field, &mut tokens, Scope { origin: &[0], start: 0 }, out)?;
    if tokens.peek().is_some() { Err(Fault::Unexpected) } else { Ok(()) }
}

/// Reads a name; the root may be `.` or nothing.
pub(super) fn read_name<'t>(value: Json<'t>, out: &mut Vec<u8>) -> Result<(), LocatedFault<'t>> {
    let text = value.string()?;
    let text = if text.is_empty() { "." } else { &text };
    name::parse_into(text.as_bytes(), &[0], out).map_err(|e| value.wrong(JsonFault::Name(e)))
}

/// Reads a string as a length octet and its octets.
fn read_string<'t>(value: Json<'t>, out: &mut Vec<u8>) -> Result<(), LocatedFault<'t>> {
    let text = value.string()?;
    let too_long = |_| value.wrong(JsonFault::Data(Fault::StringTooLong));
    out.push(u8::try_from(text.len()).map_err(too_long)?);
    out.extend_from_slice(text.as_bytes());
    Ok(())
}

/// Reads six or eight octets in plain hexadecimal, or as a master file has them.
fn read_identifier<'t>(
    field: &Field,
    value: Json<'t>,
    out: &mut Vec<u8>,
) -> Result<(), LocatedFault<'t>> {
    const PLAIN: &Field = &Field { name: "", kind: Kind::Hex };
    let octets = if field.kind == Kind::Eui48 { 6 } else { 8 };
    let word = value.word()?;
    let is_plain = word.len() == 2 * octets && word.bytes().all(|o| o.is_ascii_hexdigit());
    read_words(if is_plain { PLAIN } else { field }, value, out)
}

/// Reads a number that JSON takes apart; the number itself will do, too.
fn read_bits<'t>(
    bits: &'static Bits,
    field: &Field,
    members: &mut Members<'t>,
    out: &mut Vec<u8>,
) -> Result<(), LocatedFault<'t>> {
    let max = if field.kind == Kind::U16 { i64::from(u16::MAX) } else { i64::from(u8::MAX) };
    let is_part = bits.parts.iter().any(|part| part.name == field.name);
    let whole = if is_part { None } else { members.take(field.name) };
    let number = match whole {
        Some(whole) => whole.number(0, max).map_err(|wrong| wrong.within(field.name))?,
        None => bits.parts.iter().try_fold(0, |number, part| {
            let value = members.need(part.name)?;
            let value = value.number(0, (1 << part.width) - 1);
            let value = value.map_err(|wrong| wrong.within(part.name))?;
            Ok(number | value << part.shift)
        })?,
    };
    if field.kind == Kind::U16 {
        out.extend_from_slice(&(number as u16).to_be_bytes()); // at most `max`
    } else {
        out.push(number as u8);
    }
    Ok(())
}

/// Reads what the gateway is, or finds it out from the gateway.
fn read_gateway_type<'t>(
    members: &mut Members<'t>,
    out: &mut Vec<u8>,
) -> Result<(), LocatedFault<'t>> {
    if let Some(given) = members.take("gateway_type") {
        let kind = given.number(0, 3).map_err(|wrong| wrong.within("gateway_type"))?;
        out.push(kind as u8);
        return Ok(());
    }
    let gateway = members.left.iter().find(|member| member.0 == "gateway");
    let Some((_, gateway)) = gateway else {
        return Err(members.object.wrong(JsonFault::Missing("gateway")));
    };
    let text = gateway.string().map_err(|wrong| wrong.within("gateway"))?;
    out.push(match text.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(_)) => 1,
        Ok(std::net::IpAddr::V6(_)) => 2,
        Err(_) if text.is_empty() || text == "." => 0,
        Err(_) => 3,
    });
    Ok(())
}

/// Reads a place: sizes in centimetres, angles in thousandths of a second of arc.
fn read_loc<'t>(members: &mut Members<'t>, out: &mut Vec<u8>) -> Result<(), LocatedFault<'t>> {
    let mut number = |name, min, max| {
        let value = members.need(name)?;
        value.number(min, max).map_err(|wrong| wrong.within(name))
    };
    out.push(0);
    for name in ["size", "horiz", "vert"] {
        let centimetres = number(name, 0, loc::SIZE_MAX)?;
        out.push(loc::size_octet(centimetres).unwrap_or_default()); // in range
    }
    for (name, degrees) in [("lat", 90), ("lon", 180)] {
        let max = degrees * i64::from(loc::DEGREE);
        let raised = number(name, -max, max)? + i64::from(loc::EQUATOR);
        out.extend_from_slice(&(raised as u32).to_be_bytes()); // 2³¹ ± 648 000 000
    }
    let lowest = i64::from(loc::ELLIPSOID);
    let raised = number("alt", -lowest, loc::ALTITUDE_MAX)? + lowest;
    out.extend_from_slice(&(raised as u32).to_be_bytes());
    Ok(())
}

/// Reads algorithm, host identity tag and public key.
fn read_hip_identity<'t>(
    field: &Field,
    members: &mut Members<'t>,
    out: &mut Vec<u8>,
) -> Result<(), LocatedFault<'t>> {
    let mut words = Vec::new();
    for name in ["alg", "hit", "public_key"] {
        let value = members.need(name)?;
        words.push(value.word().map_err(|wrong| wrong.within(name))?);
    }
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let parsed = parse_words(field, &words, out);
    parsed.map_err(|fault| members.object.wrong(JsonFault::Data(fault)))
}

/// Reads service parameters: `{"alpn": ["h2"], "port": 443, "no-default-alpn": null}`.
fn read_svc_params<'t>(
    field: &Field,
    value: Json<'t>,
    out: &mut Vec<u8>,
) -> Result<(), LocatedFault<'t>> {
    let mut params = Vec::new();
    value.members(|key, value| {
        let param = svc_param(&key, value).map_err(|wrong| wrong.within(&key))?;
        params.push(param);
        Ok(())
    })?;
    // A value in quotes is a token of its own, behind the key and the equals sign.
    let mut tokens = Vec::new();
    for (key, text) in &params {
        tokens.push(Token { text: key.as_bytes(), quoted: false, glued: false, at: 0 });
        if let Some(text) = text {
            tokens.push(Token { text, quoted: true, glued: true, at: 0 });
        }
    }
    let mut tokens = Tokens::new(&tokens);
    let parsed = rdata::parse_field(field, &mut tokens, Scope { origin: &[0], start: 0 }, out);
    parsed.map_err(|fault| value.wrong(JsonFault::Data(fault)))
}

/// A parameter as the words of a master file: `key=` and the text of the value, or `key` alone.
fn svc_param<'t>(
    key: &str,
    value: Json<'t>,
) -> Result<(String, Option<Vec<u8>>), LocatedFault<'t>> {
    if value.is_null() {
        return Ok((key.to_owned(), None));
    }
    let is_alpn = svcb::key_of(key.as_bytes()) == Some(svcb::ALPN);
    let mut text = Vec::new();
    if value.begins('[') {
        value.elements(|index, item| {
            let item = item.word().map_err(|wrong| wrong.within(&format!("[{index}]")))?;
            if index > 0 {
                text.push(b',');
            }
            push_escaped(item.as_bytes(), if is_alpn { b",\\" } else { b"" }, &mut text);
            Ok(())
        })?;
    } else {
        text.extend_from_slice(value.word()?.as_bytes());
    }
    let mut escaped = Vec::with_capacity(text.len());
    push_escaped(&text, b"\\", &mut escaped);
    Ok((format!("{key}="), Some(escaped)))
}

/// Appends text, with a backslash before each of some octets.
fn push_escaped(text: &[u8], special: &[u8], out: &mut Vec<u8>) {
    for &octet in text {
        if special.contains(&octet) {
            out.push(b'\\');
        }
        out.push(octet);
    }
}
