//! RRsets of zones as PowerDNS shows them.

use super::content::to_text;
use serde_json::json;
use std::io::Write as _;
use zonda_zone::ZoneRecord;

/// Writes the RRsets of names, with commas between those of one call and the next.
#[derive(Default)]
pub struct RrsetWriter {
    /// Whether an RRset was written.
    has_written: bool,
}

impl RrsetWriter {
    /// Writes the RRsets that records of one name make up; those of a set stand together.
    pub fn write(&mut self, records: &[ZoneRecord<'_>], out: &mut Vec<u8>) {
        for set in records.chunk_by(|a, b| a.rtype == b.rtype) {
            if std::mem::replace(&mut self.has_written, true) {
                out.push(b',');
            }
            write_set(set, out);
        }
    }
}

/// Writes the RRset of some records.
fn write_set(set: &[ZoneRecord<'_>], out: &mut Vec<u8>) {
    let Some(first) = set.first() else { return };
    let name = zonda_wire::name::Presentation(first.owner.as_wire()).to_string();
    let rtype = first.rtype.to_string();
    // Members stand in the order of PowerDNS, as shell scripts take them for text. A buffer takes
    // everything.
    let _ = write!(out, "{{\"comments\":[],\"name\":{},\"records\":[", json!(name));
    for (place, record) in set.iter().enumerate() {
        let content = json!(to_text(record.rtype, record.rdata));
        let comma = if place > 0 { "," } else { "" };
        let _ = write!(out, "{comma}{{\"content\":{content},\"disabled\":false}}"); // likewise
    }
    let _ = write!(out, "],\"ttl\":{},\"type\":{}}}", first.ttl, json!(rtype)); // likewise
}
