//! What must hold of any text read as a master file; shared with the fuzz target.

use std::fmt::Write;
use std::path::Path;
use zonda_wire::{Name, Type, name, rdata};
use zonda_zone::file::{self, Options};
use zonda_zone::{Diagnostics, Records};

/// Reads the text and checks what comes of it: valid records, which printed mean the same again.
///
/// # Panics
/// When something does not hold.
pub fn check(text: &[u8]) {
    let (records, diagnostics) = read(text);
    let mut printed = String::new();
    for record in records.iter() {
        let owner = name::Presentation(record.owner);
        let data = rdata::Presentation { rtype: record.rtype, rdata: record.rdata };
        writeln!(printed, "{owner} {} IN {} {data}", record.ttl, record.rtype).expect("a string");
        assert_eq!(name::wire_len(record.owner), Some(record.owner.len()));
        assert!(record.ttl <= i32::MAX as u32);
        assert!(!record.rtype.is_meta() && record.rtype != Type(0));
        let judged = rdata::validate(record.rtype, record.rdata);
        assert_eq!(judged, Ok(()), "{} {:02x?}", record.rtype, record.rdata);
        let names = rdata::names(record.rtype, record.rdata);
        assert!(names.map(|name| name.offset + name.len).all(|end| end <= record.rdata.len()));
    }
    let (again, complaints) = read(printed.as_bytes());
    assert_eq!(complaints.to_string(), "", "{printed}");
    assert!(records.iter().eq(again.iter()), "{printed}");
    for index in 0..records.len() {
        assert!(records.position(index).line > 0);
    }
    for line in diagnostics.to_string().lines() {
        assert!(!line.contains(char::is_control) && line.len() < 1000, "{line:?}");
    }
}

/// Reads a text.
fn read(text: &[u8]) -> (Records, Diagnostics) {
    let origin = Name::from_wire(b"\x07example\x03org\0").expect("a name");
    let options = Options { generate_max: 1000, ..Options::default() };
    file::read_text(text, Path::new("z"), &origin, &options)
}
