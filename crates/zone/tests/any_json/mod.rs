//! What must hold of any text read as a JSON zone; shared with the fuzz target.

use std::path::Path;
use zonda_wire::{name, rdata};
use zonda_zone::{JsonFile, JsonZone, json, print};

/// Reads the text and checks what comes of it.
///
/// # Panics
/// When something does not hold.
pub fn check(text: &[u8]) {
    let JsonFile { zones, errors, diagnostics } = json::read_text(text, Path::new("z"));
    let errors = zones.iter().map(|zone| &zone.errors).chain([&errors]).flatten();
    assert_eq!(errors.map(|errors| errors.count).sum::<u64>(), diagnostics.error_count());
    for record in zones.iter().flat_map(|zone| zone.records.iter()) {
        assert_eq!(name::wire_len(record.owner), Some(record.owner.len()));
        assert!(record.ttl <= i32::MAX as u32);
        let judged = rdata::validate(record.rtype, record.rdata);
        assert_eq!(judged, Ok(()), "{} {:02x?}", record.rtype, record.rdata);
    }
    for line in diagnostics.to_string().lines() {
        assert!(!line.contains(char::is_control), "{line:?}");
    }
    check_written(&zones);
}

/// Writes zones and checks that they read the same.
///
/// # Panics
/// When they do not.
pub fn check_written(zones: &[JsonZone]) {
    let mut written = Vec::new();
    json::write(zones, &mut written).expect("memory takes everything");
    let again = json::read_text(&written, Path::new("again"));
    assert_eq!(again.diagnostics.to_string(), "");
    assert_eq!(printed(&again.zones), printed(zones));
}

/// All zones in canonical print.
fn printed(zones: &[JsonZone]) -> String {
    let mut text = Vec::new();
    for zone in zones {
        print::print(&zone.records, &mut text).expect("memory takes everything");
    }
    String::from_utf8(text).expect("names and data are printed in ASCII")
}
