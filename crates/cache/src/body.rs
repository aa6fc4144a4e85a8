//! What stands behind the question of a message: records, whose TTLs age in place.
//!
//! Deliberately absent: what the records mean, and OPT, which belongs to one message only.

use zonda_wire::Type;
use zonda_wire::name::{LABEL_BYTES_MAX, NAME_BYTES_MAX};

/// Octets of a TTL.
const TTL_BYTES: usize = 4;

/// The octets are not the records that the counts promise, or OPT is among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotRecords;

/// Writes to `offsets`, emptied before, where in `body` the TTL of each record stands.
///
/// # Errors
/// When the body does not consist of as many whole records.
pub fn ttl_offsets(
    body: &[u8],
    counts: [u16; 3],
    offsets: &mut Vec<u16>,
) -> Result<(), NotRecords> {
    offsets.clear();
    let mut at = 0;
    for _ in 0..counts.into_iter().map(u32::from).sum() {
        let fixed = skip_name(body, at).ok_or(NotRecords)?;
        let fields = body.get(fixed..fixed + 10).ok_or(NotRecords)?;
        let rtype = Type(u16::from_be_bytes([fields[0], fields[1]]));
        if rtype == Type::OPT {
            return Err(NotRecords);
        }
        offsets.push(u16::try_from(fixed + 4).map_err(|_| NotRecords)?);
        at = fixed + 10 + usize::from(u16::from_be_bytes([fields[8], fields[9]]));
    }
    if at == body.len() { Ok(()) } else { Err(NotRecords) }
}

/// Where the name at `at` ends; pointers are not followed.
fn skip_name(body: &[u8], mut at: usize) -> Option<usize> {
    let start = at;
    loop {
        let len = usize::from(*body.get(at)?);
        at += 1 + len;
        match len {
            0 => return Some(at),
            1..=LABEL_BYTES_MAX if at - start < NAME_BYTES_MAX => {}
            0xc0.. => return Some(at - len + 1),
            _ => return None,
        }
    }
}

/// Replaces the TTL at `offset` by what `change` makes of it.
#[inline]
pub fn change_ttl(body: &mut [u8], offset: u16, change: impl FnOnce(u32) -> u32) {
    let field = body.get_mut(usize::from(offset)..).and_then(|rest| rest.first_chunk_mut());
    if let Some(field) = field {
        let octets: &mut [u8; TTL_BYTES] = field;
        *octets = change(u32::from_be_bytes(*octets)).to_be_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record: owner, `A IN 60`, two octets of data.
    fn record(owner: &[u8]) -> Vec<u8> {
        [owner, b"\0\x01\0\x01\0\0\0\x3c\0\x02xy"].concat()
    }

    #[test]
    fn ttls_are_found_behind_names_of_every_form() {
        let body = [record(b"\xc0\x0c"), record(b"\x01a\xc0\x0c"), record(b"\x01b\0")].concat();
        let mut offsets = Vec::new();
        assert_eq!(ttl_offsets(&body, [1, 1, 1], &mut offsets), Ok(()));
        assert_eq!(offsets, [6, 6 + 14 + 2, 6 + 14 + 2 + 15]);
        let mut aged = body.clone();
        offsets.iter().for_each(|&at| change_ttl(&mut aged, at, |ttl| ttl - 59));
        let differing = body.iter().zip(&aged).filter(|(a, b)| a != b).map(|(a, b)| (*a, *b));
        assert_eq!(differing.collect::<Vec<_>>(), [(60, 1); 3]);
    }

    #[test]
    fn what_is_not_exactly_the_records_is_refused() {
        let whole = record(b"\xc0\x0c");
        let mut offsets = Vec::new();
        for end in 0..whole.len() {
            assert_eq!(ttl_offsets(&whole[..end], [1, 0, 0], &mut offsets), Err(NotRecords));
        }
        for (body, counts) in [
            (&whole[..], [2, 0, 0]),
            (&whole[..], [0, 0, 0]),
            (b"\x40\0\x01\0\x01\0\0\0\x3c\0\0", [1, 0, 0]),
            (b"\0\0\x29\0\x01\0\0\0\x3c\0\0", [0, 0, 1]),
        ] {
            assert_eq!(ttl_offsets(body, counts, &mut offsets), Err(NotRecords), "{body:?}");
        }
    }
}
