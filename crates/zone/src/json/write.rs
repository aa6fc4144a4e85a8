//! Zones as JSON text: one record a line, in canonical order, without duplicates.

use super::JsonZone;
use super::data::{self, BitsPart};
use crate::order;
use crate::records::{Record, Records};
use std::fmt::{Display, Write as _};
use std::io::{self, Write};
use zonda_wire::Name;
use zonda_wire::name::Presentation;
use zonda_wire::rdata::schema::{self, Kind, Schema};
use zonda_wire::rdata::{self, FieldText, Value, bitmap, gateway, loc, print, svcb};

/// Writes a list of zones.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write<'z>(
    zones: impl IntoIterator<Item = &'z JsonZone>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut writer = Writer::new(out);
    writer.out.write_all(b"[")?;
    for (index, zone) in zones.into_iter().enumerate() {
        writer.out.write_all(if index == 0 { b"\n" } else { b",\n" })?;
        writer.zone(&zone.name, zone.sha.as_deref(), &zone.records)?;
    }
    writer.out.write_all(b"\n]\n")
}

/// The state of writing: members go into the text of a record, records into the output.
pub(super) struct Writer<W> {
    text: String,
    out: W,
}

impl<W: Write> Writer<W> {
    /// A writer that has written nothing yet.
    pub(super) fn new(out: W) -> Self {
        Self { text: String::new(), out }
    }

    /// The text that was written, but not given to the output.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// An RRset. A record that has no JSON form by its fields is a string in the form of RFC 3597.
    pub(super) fn set<'r>(
        &mut self,
        owner: &[u8],
        rtype: zonda_wire::Type,
        ttl: u32,
        rdatas: impl Iterator<Item = &'r [u8]>,
    ) {
        self.text.push_str("{\"name\": ");
        self.name(owner);
        self.show(format_args!(", \"type\": \"{rtype}\", \"ttl\": {ttl}, \"records\": "));
        self.list(rdatas, |writer, rdata| {
            match schema::of(rtype).filter(|schema| has_json_form(schema, rdata)) {
                Some(schema) => {
                    writer.text.push('{');
                    writer.data(schema, rdata);
                    writer.text.push('}');
                }
                None => writer.string(&rdata::Presentation { rtype, rdata }.to_string()),
            }
        });
        self.text.push('}');
    }

    /// A zone.
    fn zone(&mut self, name: &Name, sha: Option<&str>, records: &Records) -> io::Result<()> {
        self.text.clear();
        self.text.push_str("{\"name\": ");
        self.name(name.as_wire());
        if let Some(sha) = sha {
            self.text.push_str(", \"sha\": ");
            self.string(sha);
        }
        self.text.push_str(", \"records\": [\n");
        self.out.write_all(self.text.as_bytes())?;
        for (at, index) in order::canonical_without_duplicates(records).into_iter().enumerate() {
            self.text.clear();
            self.text.push_str(if at > 0 { ",\n  " } else { "  " });
            self.record(&records.get(index as usize));
            self.out.write_all(self.text.as_bytes())?;
        }
        self.out.write_all(b"\n]}")
    }

    /// A record.
    fn record(&mut self, record: &Record<'_>) {
        self.text.push_str("{\"name\": ");
        self.name(record.owner);
        match schema::of(record.rtype).filter(|schema| has_json_form(schema, record.rdata)) {
            Some(schema) => {
                self.show(format_args!(", \"type\": \"{}\"", record.rtype));
                self.show(format_args!(", \"ttl\": {}, \"data\": {{", record.ttl));
                self.data(schema, record.rdata);
            }
            None => {
                self.show(format_args!(", \"type\": \"{}\"", record.rtype.0));
                self.show(format_args!(", \"ttl\": {}, \"data\": {{\"data\": ", record.ttl));
                self.show(format_args!("\"{}\"", print::Base64(record.rdata)));
            }
        }
        self.text.push_str("}}");
    }

    /// The members of `data`.
    fn data(&mut self, schema: &'static Schema, rdata: &[u8]) {
        let start = self.text.len();
        for value in rdata::values(schema, rdata).map_while(Result::ok) {
            if let Some(bits) = data::split(schema.rtype, value.field) {
                bits.parts.iter().for_each(|part| self.bits(part, number_of(value.octets)));
                continue;
            }
            match value.field.kind {
                Kind::Loc => self.loc(value.octets),
                Kind::HipIdentity => self.hip_identity(value.octets),
                Kind::OptionalCharString if value.octets.is_empty() => {}
                _ => {
                    self.member(value.field.name);
                    self.value(value, rdata);
                }
            }
        }
        if self.text[start..].starts_with(", ") {
            self.text.replace_range(start..start + 2, "");
        }
    }

    /// The name of a member.
    fn member(&mut self, name: impl Display) {
        self.show(format_args!(", \"{name}\": "));
    }

    /// The value of a field.
    fn value(&mut self, value: Value<'_>, rdata: &[u8]) {
        let octets = value.octets;
        let field = FieldText { value, rdata };
        match value.field.kind {
            Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 | Kind::Ttl | Kind::Algorithm => {
                self.show(field);
            }
            Kind::Time | Kind::CertType | Kind::DsyncScheme => self.show(number_of(octets)),
            Kind::Name(_) => self.name(octets),
            Kind::Names(_) => self.list(names(octets), Self::name),
            Kind::CharString | Kind::Tag | Kind::OptionalCharString => {
                self.octets(octets.get(1..).unwrap_or_default());
            }
            Kind::CharStrings => self.list(print::strings(octets), Self::octets),
            Kind::Text => self.octets(octets),
            Kind::TypeBitmap => self.list(bitmap::windowed_types(octets), Self::quoted),
            Kind::FlatTypeBitmap => self.list(bitmap::flat_types(octets), Self::quoted),
            Kind::Prefixes => {
                let text = field.to_string();
                self.list(text.split_ascii_whitespace(), Self::quoted);
            }
            Kind::SvcParams => self.svc_params(octets),
            Kind::Eui48 | Kind::Eui64 | Kind::NodeId => self.quoted(print::Hex(octets)),
            _ => self.quoted(field),
        }
    }

    /// Some bits of a number.
    fn bits(&mut self, part: &BitsPart, number: u64) {
        let value = number >> part.shift & ((1 << part.width) - 1);
        self.member(part.name);
        if part.is_flag { self.show(value != 0) } else { self.show(value) }
    }

    /// A place: sizes in centimetres, angles in thousandths of a second of arc.
    fn loc(&mut self, octets: &[u8]) {
        let Some(parts) = loc::parts(octets) else { return };
        for (name, size) in ["size", "horiz", "vert"].into_iter().zip(parts.sizes) {
            self.member(name);
            self.show(loc::centimetres_of(size));
        }
        let equator = i64::from(loc::EQUATOR);
        for (name, raised, zero) in [
            ("lat", parts.latitude, equator),
            ("lon", parts.longitude, equator),
            ("alt", parts.altitude, i64::from(loc::ELLIPSOID)),
        ] {
            self.member(name);
            self.show(i64::from(raised) - zero);
        }
    }

    /// Algorithm, host identity tag and public key.
    fn hip_identity(&mut self, octets: &[u8]) {
        let Some((algorithm, tag, key)) = gateway::hip_parts(octets) else { return };
        self.member("alg");
        self.show(algorithm);
        self.member("hit");
        self.quoted(print::Hex(tag));
        self.member("public_key");
        self.quoted(print::Base64(key));
    }

    /// Service parameters.
    fn svc_params(&mut self, octets: &[u8]) {
        self.text.push('{');
        for (at, (key, value)) in svcb::params(octets).map_while(Result::ok).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            self.show(format_args!("{comma}\"{}\": ", svcb::KeyName(key)));
            match key {
                _ if value.is_empty() => self.text.push_str("null"),
                svcb::MANDATORY => self.list(value.chunks(2), |writer, key| {
                    writer.quoted(svcb::KeyName(number_of(key) as u16)); // two octets
                }),
                svcb::ALPN => self.list(print::strings(value), Self::octets),
                svcb::PORT => self.show(number_of(value)),
                svcb::IPV4HINT => self.list(value.chunks(4), Self::address),
                svcb::IPV6HINT => self.list(value.chunks(16), Self::address),
                svcb::TLS_SUPPORTED_GROUPS => self.list(value.chunks(2), |writer, group| {
                    writer.show(number_of(group));
                }),
                svcb::ECH => self.quoted(print::Base64(value)),
                _ => self.octets(value),
            }
        }
        self.text.push('}');
    }

    /// A list.
    fn list<T>(&mut self, items: impl Iterator<Item = T>, mut item: impl FnMut(&mut Self, T)) {
        self.text.push('[');
        for (at, value) in items.enumerate() {
            if at > 0 {
                self.text.push_str(", ");
            }
            item(self, value);
        }
        self.text.push(']');
    }

    /// An address of four or sixteen octets.
    fn address(&mut self, octets: &[u8]) {
        self.quoted(print::Address(octets));
    }

    /// A name without its final dot.
    fn name(&mut self, wire: &[u8]) {
        let text = Presentation(wire).to_string();
        self.string(text.strip_suffix('.').filter(|rest| !rest.is_empty()).unwrap_or(&text));
    }

    /// A string of octets that are UTF-8.
    fn octets(&mut self, octets: &[u8]) {
        self.string(&String::from_utf8_lossy(octets));
    }

    /// A string with whatever must be escaped in it.
    fn string(&mut self, text: &str) {
        // Writing to a string cannot fail, nor can a string have no JSON form.
        self.text.push_str(&serde_json::to_string(text).unwrap_or_default());
    }

    /// A string of characters that need no escapes.
    fn quoted(&mut self, text: impl Display) {
        self.show(format_args!("\"{text}\""));
    }

    /// Characters as they are.
    fn show(&mut self, text: impl Display) {
        let _ = write!(self.text, "{text}"); // a string takes everything
    }
}

/// Whether JSON can say the data field by field: text can, and all strings are UTF-8.
fn has_json_form(schema: &'static Schema, rdata: &[u8]) -> bool {
    print::is_expressible(schema.rtype, rdata)
        && rdata::values(schema, rdata).map_while(Result::ok).all(|value| {
            let octets = value.octets;
            let is_text = |octets: &[u8]| str::from_utf8(octets).is_ok();
            match value.field.kind {
                Kind::CharString | Kind::OptionalCharString | Kind::CharStrings => {
                    print::strings(octets).all(is_text)
                }
                Kind::Text => is_text(octets),
                Kind::SvcParams => {
                    svcb::params(octets).map_while(Result::ok).all(|(key, value)| match key {
                        svcb::ALPN => print::strings(value).all(is_text),
                        svcb::DOHPATH | 10.. => is_text(value),
                        _ => true,
                    })
                }
                _ => data::split(schema.rtype, value.field).is_none_or(|bits| {
                    let said = bits.parts.iter().map(|part| ((1 << part.width) - 1) << part.shift);
                    number_of(octets) & !said.sum::<u64>() == 0
                }),
            }
        })
}

/// The number that at most eight octets are.
fn number_of(octets: &[u8]) -> u64 {
    octets.iter().fold(0, |number, &octet| number << 8 | u64::from(octet))
}

/// Names, one behind the other.
fn names(octets: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = octets;
    std::iter::from_fn(move || {
        let (name, tail) = rest.split_at_checked(zonda_wire::name::wire_len(rest)?)?;
        rest = tail;
        Some(name)
    })
}
