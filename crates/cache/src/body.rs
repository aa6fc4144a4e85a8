//! What stands behind the question of a message: records, whose TTLs age in place.
//!
//! Deliberately absent: what the records mean, and OPT, which belongs to one message only.

use zonda_wire::name::{LABEL_BYTES_MAX, NAME_BYTES_MAX};
use zonda_wire::query::flag;
use zonda_wire::{Class, Type};

/// Octets of a record between its owner and its data.
const FIXED_BYTES: usize = 10;
/// Octets of a compression pointer (rfc1035#4.1.4).
const POINTER_BYTES: usize = 2;

/// The octets are not the records that the counts promise, or OPT is among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedRecords;

/// Writes to `offsets`, emptied before, where in `body` the TTL of each record stands.
///
/// # Errors
/// When the body does not consist of as many whole records.
pub fn ttl_offsets(
    body: &[u8],
    counts: [u16; 3],
    offsets: &mut Vec<u16>,
) -> Result<(), MalformedRecords> {
    offsets.clear();
    let mut at = 0;
    for _ in 0..counts.into_iter().map(u32::from).sum() {
        let fixed = skip_name(body, at).ok_or(MalformedRecords)?;
        let fields = body.get(fixed..fixed + FIXED_BYTES).ok_or(MalformedRecords)?;
        let rtype = Type(u16::from_be_bytes([fields[0], fields[1]]));
        if rtype == Type::OPT {
            return Err(MalformedRecords);
        }
        offsets.push(u16::try_from(fixed + 4).map_err(|_| MalformedRecords)?);
        at = fixed + FIXED_BYTES + usize::from(u16::from_be_bytes([fields[8], fields[9]]));
    }
    if at == body.len() { Ok(()) } else { Err(MalformedRecords) }
}

/// Returns where the name at `at` ends; pointers are not followed.
fn skip_name(body: &[u8], at: usize) -> Option<usize> {
    let end = labels_end(body, at)?;
    Some(if *body.get(end)? == 0 { end + 1 } else { end + POINTER_BYTES })
}

/// Returns where the labels of the name at `at` end: at the root's octet or at a pointer.
fn labels_end(body: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        match usize::from(*body.get(at)?) {
            0 | 0xc0.. => return Some(at),
            len @ 1..=LABEL_BYTES_MAX if at + len - start < NAME_BYTES_MAX => at += 1 + len,
            _ => return None,
        }
    }
}

/// Appends the message that a body belongs to; returns where the body begins in it.
pub fn write_message(
    flags: u16,
    (name, qtype, qclass): (&[u8], Type, Class),
    counts: [u16; 3],
    body: &[u8],
    out: &mut Vec<u8>,
) -> usize {
    let [an, ns, ar] = counts;
    out.extend([0, flag::QR | flags, 1, an, ns, ar].iter().flat_map(|word| word.to_be_bytes()));
    out.extend_from_slice(name);
    out.extend([qtype.0, qclass.0].iter().flat_map(|word| word.to_be_bytes()));
    let start = out.len();
    out.extend_from_slice(body);
    start
}

/// Makes a body that was written behind one question fit behind another, whose name is the former's
/// with `by` octets of labels before it. Only the names that Zonda's writer compresses are looked
/// at.
///
/// # Errors
/// When a place is too far for a pointer; the body is then of no use.
pub fn shift_pointers(
    body: &mut [u8],
    counts: [u16; 3],
    by: usize,
) -> Result<(), MalformedRecords> {
    let mut at = 0;
    for _ in 0..counts.into_iter().map(u32::from).sum() {
        at = shift_record(body, at, by).ok_or(MalformedRecords)?;
    }
    Ok(())
}

/// Shifts the pointers of the record at `at`; where the next one begins.
fn shift_record(body: &mut [u8], at: usize, by: usize) -> Option<usize> {
    let fixed = shift_name(body, at, by)?;
    let fields = body.get(fixed..fixed + FIXED_BYTES)?;
    let rtype = Type(u16::from_be_bytes([fields[0], fields[1]]));
    let rdata = fixed + FIXED_BYTES;
    let end = rdata + usize::from(u16::from_be_bytes([fields[8], fields[9]]));
    match rtype {
        Type::NS | Type::CNAME | Type::PTR | Type::MD | Type::MF => shift_name(body, rdata, by)?,
        Type::MB | Type::MG | Type::MR => shift_name(body, rdata, by)?,
        Type::MX => shift_name(body, rdata + 2, by)?,
        Type::SOA | Type::MINFO => {
            let second = shift_name(body, rdata, by)?;
            shift_name(body, second, by)?
        }
        _ => end,
    };
    Some(end)
}

/// Shifts the pointer of the name at `at`, if it has one; where the name ends.
fn shift_name(body: &mut [u8], at: usize, by: usize) -> Option<usize> {
    let end = labels_end(body, at)?;
    if body[end] == 0 {
        return Some(end + 1);
    }
    let pointer: &mut [u8; POINTER_BYTES] = body.get_mut(end..)?.first_chunk_mut()?;
    let target = usize::from(u16::from_be_bytes(*pointer)) + by;
    *pointer = u16::try_from(target).ok()?.to_be_bytes(); // above 0xffff there is no room for it
    Some(end + POINTER_BYTES)
}

/// Replaces the TTL at `offset` by what `change` makes of it.
#[inline]
pub fn change_ttl(body: &mut [u8], offset: u16, change: impl FnOnce(u32) -> u32) {
    let field = body.get_mut(usize::from(offset)..).and_then(|rest| rest.first_chunk_mut());
    if let Some(field) = field {
        let octets: &mut [u8; 4] = field;
        *octets = change(u32::from_be_bytes(*octets)).to_be_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a record: owner, `A IN 60`, two octets of data.
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
    fn pointers_move_with_the_question_wherever_our_writer_puts_them() {
        let soa =
            b"\xc0\x0e\0\x06\0\x01\0\0\0\x3c\0\x1c\x01m\xc0\x0e\x01h\xc0\x20....................";
        let mx = b"\x01a\xc0\x0c\0\x0f\0\x01\0\0\0\x3c\0\x04\0\x05\xc0\x0c";
        let text = b"\0\0\x10\0\x01\0\0\0\x3c\0\x02\xc0\x0c";
        let mut body = [&soa[..], mx, text].concat();
        let before = body.clone();
        assert_eq!(shift_pointers(&mut body, [1, 1, 1], 5), Ok(()));
        let changed = before.iter().zip(&body).enumerate().filter(|(_, (a, b))| a != b);
        let changed: Vec<_> = changed.map(|(at, (a, b))| (at, b - a)).collect();
        let mx_at = soa.len();
        let expected = [1, 15, 19, mx_at + 3, mx_at + 17].map(|at| (at, 5));
        assert_eq!(changed, expected);
        assert_eq!(shift_pointers(&mut body, [1, 1, 1], 0x3fff), Err(MalformedRecords));
    }

    #[test]
    fn what_is_not_exactly_the_records_is_refused() {
        let whole = record(b"\xc0\x0c");
        let mut offsets = Vec::new();
        for end in 0..whole.len() {
            assert_eq!(ttl_offsets(&whole[..end], [1, 0, 0], &mut offsets), Err(MalformedRecords));
        }
        for (body, counts) in [
            (&whole[..], [2, 0, 0]),
            (&whole[..], [0, 0, 0]),
            (b"\x40\0\x01\0\x01\0\0\0\x3c\0\0", [1, 0, 0]),
            (b"\0\0\x29\0\x01\0\0\0\x3c\0\0", [0, 0, 1]),
        ] {
            assert_eq!(ttl_offsets(body, counts, &mut offsets), Err(MalformedRecords), "{body:?}");
        }
    }
}
