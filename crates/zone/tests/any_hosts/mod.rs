//! What must hold of any text read as a hosts file; shared with the fuzz target.

use std::path::Path;
use zonda_wire::{Name, name, rdata};
use zonda_zone::hosts::Terms;
use zonda_zone::{HashSeed, build, hosts};

/// Reads the text and checks what comes of it: valid records, of which a zone can be built.
///
/// # Panics
/// When something does not hold.
pub fn check(text: &[u8]) {
    let whole = hosts::read_text(text, Path::new("hosts"), &Name::root(), Terms::default());
    let apex: Name = "example.org".parse().expect("a name");
    let part = hosts::read_text(text, Path::new("hosts"), &apex, Terms::default());
    assert!(part.0.len() <= whole.0.len());
    assert_eq!(part.1.to_string(), whole.1.to_string());
    for (apex, (records, diagnostics)) in [(Name::root(), whole), (apex, part)] {
        for record in records.iter() {
            assert_eq!(name::wire_len(record.owner), Some(record.owner.len()));
            assert!(name::is_at_or_below(record.owner, apex.as_wire()));
            assert_eq!(rdata::validate(record.rtype, record.rdata), Ok(()));
        }
        build(&apex, &records, HashSeed(1)).expect("addresses and pointers stand side by side");
        for line in diagnostics.to_string().lines() {
            assert!(!line.contains(char::is_control) && line.len() < 1000, "{line:?}");
        }
    }
}
