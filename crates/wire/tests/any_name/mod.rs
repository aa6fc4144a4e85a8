//! What must hold for any octets that are read as a name, in wire form and as text.

use zonda_wire::Name;
use zonda_wire::name::{canonical_cmp, is_at_or_below, labels, parent, wire_len};

/// Reads octets both ways.
pub fn check(octets: &[u8]) {
    if let Some(len) = wire_len(octets) {
        let name = Name::from_wire(&octets[..len]).expect("its length was found");
        let text = name.to_string();
        let again: Name = text.parse().expect("what was printed can be read");
        assert_eq!(again, name, "{text}");
        assert_eq!(labels(name.as_wire()).count(), name.label_count());
        if let Some(parent) = parent(name.as_wire()) {
            assert!(is_at_or_below(name.as_wire(), parent));
            assert!(canonical_cmp(parent, name.as_wire()).is_lt());
        }
        let lower = name.to_lowercase();
        assert!(canonical_cmp(name.as_wire(), lower.as_wire()).is_eq());
    }
    if let Ok(name) = Name::parse(octets, b"\x07example\0") {
        assert_eq!(wire_len(name.as_wire()), Some(name.as_wire().len()));
        assert_eq!(name.to_string().parse::<Name>().as_ref(), Ok(&name));
    }
}
