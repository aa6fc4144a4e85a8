//! What must hold of any octets read as a message; shared with the fuzz target.

use zonda_wire::message::Message;
use zonda_wire::{Query, name, rdata};

/// Reads the octets as a message and as a query, and prints what is in them.
///
/// # Panics
/// When something does not hold.
pub fn check(octets: &[u8]) {
    let _ = Query::parse(octets);
    let Ok(message) = Message::parse(octets) else { return };
    let mut all_valid = true;
    for record in &message.records {
        let owner = record.owner.as_wire();
        assert_eq!(name::wire_len(owner), Some(owner.len()));
        let text = rdata::Presentation { rtype: record.rtype, rdata: &record.rdata }.to_string();
        assert!(text.bytes().all(|octet| (b' '..=b'~').contains(&octet)), "{text:?}");
        let valid = rdata::validate(record.rtype, &record.rdata).is_ok();
        all_valid &= valid;
        assert!(valid || text.starts_with("\\# "), "{} {text}", record.rtype);
    }
    if all_valid {
        let again = message.to_wire(); // without compression it may be longer than any message
        assert_eq!(Message::parse(&again), Ok(message));
    }
}
