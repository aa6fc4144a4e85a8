//! What must hold of any octets that a stream of DNS over QUIC carries; shared with the fuzz
//! target.

use zonda_client::doq::{frame, unframe};

/// Reads the octets as an answer, which is either refused or taken as it is, and sends what was
/// taken on its way again.
///
/// # Panics
/// When something does not hold.
pub fn check(octets: &[u8]) {
    const ID: [u8; 2] = [0x12, 0x34];
    let len = octets.first_chunk().map_or(0, |len| usize::from(u16::from_be_bytes(*len)));
    let is_one = len >= 12 && len + 2 == octets.len() && octets[2..4] == [0, 0];
    let Ok(message) = unframe(octets, ID) else {
        return assert!(!is_one, "a message was refused");
    };
    assert!(is_one, "something else was taken for a message");
    assert_eq!((&message[..2], &message[2..]), (&ID[..], &octets[4..]));
    assert_eq!(frame(&message).ok(), Some((octets.to_vec(), ID)));
}
