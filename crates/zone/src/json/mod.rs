//! JSON zones in the format of erldns.
//!
//! ```text
//! [{"name": "example.com", "sha": "v1", "records": [
//!   {"name": "example.com", "type": "A", "ttl": 3600, "data": {"ip": "192.0.2.1"}}]}]
//! ```
//! A file is a list of zones, or one zone. Reading goes on behind a wrong record, so that one run
//! shows them all; text that is not JSON is not read at all. `sha` is kept; `keys` and `context`
//! are not used, which a warning says.

mod data;
mod problem;
mod rrset;
mod text;
mod write;

pub use problem::{JsonFault, JsonProblem};
pub use rrset::{read_changes, read_new_zone, read_set, set_to_text};
pub use write::write;

pub use crate::json_zone::{JsonFile, JsonZone};

use crate::diagnostic::{Diagnostic, Diagnostics, Errors, Place, RecordName, Severity};
use crate::disk::{Unreadable, open, open_confined};
use crate::records::{Record, Records};
use data::Members;
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::mem;
use std::path::Path;
use std::sync::Arc;
use text::{Json, LocatedFault};
use zonda_wire::rdata::Fault;
use zonda_wire::rdata::schema::{self, Schema};
use zonda_wire::{Name, Type};

/// Reads a file.
#[must_use]
pub fn read(path: &Path) -> JsonFile {
    read_opened(open(path), path)
}

/// Reads a file that was opened, or tells why it was not.
fn read_opened(opened: Result<(File, u64), Unreadable>, path: &Path) -> JsonFile {
    match opened.and_then(text_of) {
        Ok(text) => read_text(&text, path),
        Err(why) => {
            let mut reader = Reader::new("", path);
            reader.report_file(JsonFault::Unreadable(why));
            reader.into_file(Vec::new())
        }
    }
}

/// Reads one zone of a file. Faults of the file's other zones are reported, but do not make this
/// zone incomplete. With a `root`, the file must lie in its directory, symbolic links followed, or
/// below that root.
#[must_use]
pub fn read_zone(path: &Path, name: &Name, root: Option<&Path>) -> (JsonZone, Diagnostics) {
    let opened = match root {
        Some(root) => open_confined(path, Some(root)),
        None => open(path),
    };
    let file = read_opened(opened, path);
    let is_wanted = |zone: &JsonZone| zone.name.to_lowercase() == name.to_lowercase();
    if let Some(zone) = file.zones.into_iter().find(is_wanted) {
        return (zone, file.diagnostics);
    }
    let (mut diagnostics, mut errors) = (file.diagnostics, file.errors);
    if errors.is_none() {
        let mut reader = Reader::new("", path);
        reader.report_file(JsonFault::NoZone(name.clone()));
        errors = reader.errors;
        diagnostics.append(reader.diagnostics);
    }
    let (name, records) = (name.clone(), Records::default());
    (JsonZone { name, sha: None, records, errors }, diagnostics)
}

/// The octets of a file.
fn text_of((mut file, len): (File, u64)) -> Result<Vec<u8>, Unreadable> {
    let mut text = Vec::with_capacity(usize::try_from(len).unwrap_or_default());
    file.read_to_end(&mut text)?;
    Ok(text)
}

/// Reads the text of a file that messages call `name`.
#[must_use]
pub fn read_text(octets: &[u8], name: &Path) -> JsonFile {
    let (text, is_whole) = match str::from_utf8(octets) {
        Ok(text) => (text, true),
        Err(error) => (str::from_utf8(&octets[..error.valid_up_to()]).unwrap_or_default(), false),
    };
    let mut reader = Reader::new(text, name);
    let mut zones = Vec::new();
    let read = if is_whole {
        text::parse(text).and_then(|json| reader.read_zones(json, &mut zones))
    } else {
        Err(LocatedFault {
            at: &text[text.len()..],
            path: String::new(),
            fault: JsonFault::Encoding,
        })
    };
    if let Err(wrong) = read {
        reader.report(wrong, None);
    }
    reader.into_file(zones)
}

/// The state of reading a JSON file.
struct Reader<'t> {
    text: &'t str,
    file: Arc<Path>,
    diagnostics: Diagnostics,
    /// Errors of the zone that is being read; between zones, those that belong to none.
    errors: Option<Errors>,
    /// The place up to which lines were counted: its octet, its line and where that begins.
    counted: (usize, u32, usize),
    /// Whether the first context of the zone was met.
    saw_context: bool,
    /// The data of the current record.
    rdata: Vec<u8>,
}

impl<'t> Reader<'t> {
    /// A reader that has read nothing yet.
    fn new(text: &'t str, file: &Path) -> Self {
        Self {
            text,
            file: file.into(),
            diagnostics: Diagnostics::default(),
            errors: None,
            counted: (0, 1, 0),
            saw_context: false,
            rdata: Vec::new(),
        }
    }

    /// What came of reading.
    fn into_file(self, zones: Vec<JsonZone>) -> JsonFile {
        JsonFile { zones, errors: self.errors, diagnostics: self.diagnostics }
    }

    /// Reads a list of zones, or one.
    fn read_zones(
        &mut self,
        json: Json<'t>,
        zones: &mut Vec<JsonZone>,
    ) -> Result<(), LocatedFault<'t>> {
        if json.begins('{') {
            zones.push(self.read_zone(json, "")?);
            return Ok(());
        }
        if !json.begins('[') {
            return Err(json.expected("a list of zones, or a zone"));
        }
        json.elements(|index, zone| {
            let path = format!("[{index}]");
            match self.read_zone(zone, &path) {
                Ok(zone) => zones.push(zone),
                Err(wrong) => self.report(wrong.within(&path), None),
            }
            Ok(())
        })
    }

    /// Reads a zone; an error is one that leaves it without a name.
    fn read_zone(&mut self, json: Json<'t>, path: &str) -> Result<JsonZone, LocatedFault<'t>> {
        let mut members = Members::of(json)?;
        let name = members.need("name")?;
        let name = read_name(name).map_err(|wrong| wrong.within("name"))?;
        let of_file = self.errors.take();
        let mut zone = JsonZone { name, sha: None, records: Records::default(), errors: None };
        if let Err(wrong) = self.read_members(members, path, &mut zone) {
            self.report(wrong.within(path), None);
        }
        zone.errors = mem::replace(&mut self.errors, of_file);
        Ok(zone)
    }

    /// Reads all of a zone but its name.
    fn read_members(
        &mut self,
        mut members: Members<'t>,
        path: &str,
        zone: &mut JsonZone,
    ) -> Result<(), LocatedFault<'t>> {
        let sha = members.take("sha").map(Json::word).transpose();
        zone.sha = sha.map_err(|wrong| wrong.within("sha"))?.map(Cow::into_owned);
        if let Some(keys) = members.take("keys").filter(|keys| keys.text() != "[]") {
            self.report(keys.wrong(JsonFault::Keys).within("keys").within(path), None);
        }
        zone.records = self.read_records(members.need("records")?, path)?;
        self.report_left(members, path, None);
        Ok(())
    }

    /// Reads the records of a zone.
    fn read_records(&mut self, json: Json<'t>, path: &str) -> Result<Records, LocatedFault<'t>> {
        let mut records = Records::with_capacity(json.text().len() / 3);
        records.begin_file(&self.file);
        self.saw_context = false;
        let read = json.elements(|index, record| {
            let path = within(path, &format!("records[{index}]"));
            let mut named = None;
            if let Err(wrong) = self.read_record(record, &path, &mut records, &mut named) {
                self.report(wrong.within(&path), named);
            }
            Ok(())
        });
        read.map(|()| records).map_err(|wrong| wrong.within("records"))
    }

    /// Reads a record; `named` becomes what messages call it.
    fn read_record(
        &mut self,
        json: Json<'t>,
        path: &str,
        records: &mut Records,
        named: &mut Option<RecordName>,
    ) -> Result<(), LocatedFault<'t>> {
        let line = self.place_of(json.text()).line;
        let mut members = Members::of(json)?;
        let owner = members.need("name")?;
        let owner = read_name(owner).map_err(|wrong| wrong.within("name"))?;
        let record_name = named.insert(RecordName { owner, rtype: None });
        let (rtype, schema) = read_type(members.need("type")?)?;
        record_name.rtype = Some(rtype);
        let ttl = members.need("ttl")?.number(0, i64::from(i32::MAX));
        let ttl = ttl.map_err(|wrong| wrong.within("ttl"))? as u32; // rfc2181#8
        if let Some(class) = members.take("class") {
            read_class(class).map_err(|wrong| wrong.within("class"))?;
        }
        if let Some(context) = members.take("context").filter(|_| !self.saw_context) {
            self.saw_context = context.text() != "[]";
            if self.saw_context {
                let wrong = context.wrong(JsonFault::Context).within("context").within(path);
                self.report(wrong, named.clone());
            }
        }
        let data = members.take("data").ok_or_else(|| json.wrong(JsonFault::NoData))?;
        self.read_data(data, path, rtype, schema, named)?;
        self.report_left(members, path, named.as_ref());

        let owner = named.as_ref().map_or(&[0][..], |named| named.owner.as_wire());
        let record = Record { owner, rtype, ttl, rdata: &self.rdata };
        records.push(record, line).map_err(|_| json.wrong(JsonFault::TooManyRecords))
    }

    /// Reads the data of a record into [`rdata`](Self::rdata).
    fn read_data(
        &mut self,
        json: Json<'t>,
        path: &str,
        rtype: Type,
        schema: Option<&'static Schema>,
        named: &Option<RecordName>,
    ) -> Result<(), LocatedFault<'t>> {
        let in_data = |wrong: LocatedFault<'t>| wrong.within("data");
        let mut members = Members::of(json).map_err(in_data)?;
        self.rdata.clear();
        match schema {
            Some(schema) => data::read(schema, &mut members, &mut self.rdata),
            None => data::read_generic(rtype, &mut members, &mut self.rdata),
        }
        .map_err(in_data)?;
        if self.rdata.len() > usize::from(u16::MAX) {
            return Err(in_data(json.wrong(JsonFault::Data(Fault::TooLong))));
        }
        members.drop_derived(rtype);
        self.report_left(members, &within(path, "data"), named.as_ref());
        Ok(())
    }

    /// Warns about members that were not read.
    fn report_left(&mut self, members: Members<'t>, path: &str, named: Option<&RecordName>) {
        for (key, value) in members.into_left() {
            self.report(value.wrong(JsonFault::Unknown).within(&key).within(path), named.cloned());
        }
    }

    /// Adds a diagnostic.
    fn report(&mut self, wrong: LocatedFault<'t>, record: Option<RecordName>) {
        let place = self.place_of(wrong.at);
        self.push(place, record, JsonProblem { path: printable(&wrong.path), fault: wrong.fault });
    }

    /// Adds a diagnostic for the file as a whole.
    fn report_file(&mut self, fault: JsonFault) {
        let place = Place { file: self.file.clone(), line: 0, column: 0 };
        self.push(place, None, JsonProblem { path: "".into(), fault });
    }

    /// Adds a diagnostic for a place.
    fn push(&mut self, place: Place, record: Option<RecordName>, problem: JsonProblem) {
        let is_warning = problem.fault.is_warning();
        let severity = if is_warning { Severity::Warning } else { Severity::Error };
        let diagnostic = Diagnostic { severity, place, record, problem: problem.into() };
        if severity == Severity::Error {
            Errors::add(&mut self.errors, &diagnostic);
        }
        self.diagnostics.push(diagnostic);
    }

    /// The line and column at which a part of the text begins. Only the text between this part and
    /// the one asked for before is looked at.
    fn place_of(&mut self, part: &str) -> Place {
        let text = self.text.as_bytes();
        let offset = part.as_ptr() as usize - text.as_ptr() as usize;
        let (from, mut line, mut line_start) = self.counted;
        let between = &text[offset.min(from)..offset.max(from)];
        let lines = between.iter().filter(|&&octet| octet == b'\n').count() as u32; // below 2³²
        if lines > 0 {
            line = if offset < from { line - lines } else { line + lines };
            let last = text[..offset].iter().rposition(|&octet| octet == b'\n');
            line_start = last.map_or(0, |at| at + 1);
        }
        self.counted = (offset, line, line_start);
        let column = (offset - line_start) as u32 + 1;
        Place { file: self.file.clone(), line, column }
    }
}

/// The beginning of a path, which may hold any text as the name of a member, fit to be shown.
fn printable(path: &str) -> Box<str> {
    const SHOWN_MAX: usize = 200;
    let shown = path.chars().take(SHOWN_MAX);
    let shown: String = shown.map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    shown.into()
}

/// The way to a value, one step longer.
fn within(path: &str, step: &str) -> String {
    if path.is_empty() { step.to_owned() } else { format!("{path}.{step}") }
}

/// Reads a name.
fn read_name(json: Json<'_>) -> Result<Name, LocatedFault<'_>> {
    let mut wire = Vec::new();
    data::read_name(json, &mut wire)?;
    Name::from_wire(&wire).map_err(|error| json.wrong(JsonFault::Name(error)))
}

/// Reads a mnemonic or a number; the data that goes with a number is always octets.
fn read_type(json: Json<'_>) -> Result<(Type, Option<&'static Schema>), LocatedFault<'_>> {
    let word = json.word().map_err(|wrong| wrong.within("type"))?;
    let by_number = word.parse().ok().map(|number| (Type(number), None));
    let by_name = || Type::from_text(word.as_bytes()).map(|rtype| (rtype, schema::of(rtype)));
    match by_number.or_else(by_name) {
        Some((rtype, _)) if rtype.is_meta() || rtype == Type(0) => {
            Err(json.wrong(JsonFault::MetaType(rtype)).within("type"))
        }
        Some(read) => Ok(read),
        None => Err(json.wrong(JsonFault::Type).within("type")),
    }
}

/// Reads the class, of which there is one.
fn read_class(json: Json<'_>) -> Result<(), LocatedFault<'_>> {
    let is_in = json.string()?.eq_ignore_ascii_case("in");
    if is_in { Ok(()) } else { Err(json.wrong(JsonFault::Class)) }
}
