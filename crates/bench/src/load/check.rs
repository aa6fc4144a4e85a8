//! Whether a message is the reply to a query.
//!
//! All of it is read, record by record, so that a message that was cut or damaged is found out.
//! What the records say is not judged here, but for the part of the RCODE that OPT carries.

use zonda_wire::query::HEADER_BYTES;
use zonda_wire::{Opcode, Rcode, Type};

/// Octets of a record after its owner name, without its data: type, class, TTL, length.
pub(crate) const RECORD_BYTES: usize = 10;

/// What a sound reply says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The response code, whose upper eight bits an OPT record carries (rfc6891#6.1.3).
    pub rcode: Rcode,
    /// Whether the server left something out for want of room.
    pub is_truncated: bool,
}

/// Returns the ID of a message that has at least a header.
pub fn id_of(message: &[u8]) -> Option<u16> {
    let (id, _) = message.get(..HEADER_BYTES)?.split_first_chunk::<2>()?;
    Some(u16::from_be_bytes(*id))
}

/// Reads a reply; nothing if it is no reply to `query`: not a response, to another operation or
/// question, or not a well-formed message.
pub fn read(reply: &[u8], query: &[u8]) -> Option<Header> {
    let (header, body) = reply.split_first_chunk::<HEADER_BYTES>()?;
    let (asked, question) = query.split_first_chunk::<HEADER_BYTES>()?;
    let is_response = header[2] & 0x80 != 0;
    if !is_response || header[2] & 0x78 != asked[2] & 0x78 {
        return None;
    }
    let count = |at: usize| usize::from(u16::from_be_bytes([header[at], header[at + 1]]));
    let mut rcode = Rcode(u16::from(header[3] & 15));
    let mut rest = match count(4) {
        1 => skip_question(body, question)?,
        // A server that could not read the query need not repeat its question, and of an update
        // nothing needs to be repeated (rfc2136#3.8).
        0 if rcode == Rcode::FORMERR || asked[2] & 0x78 == Opcode::UPDATE.0 << 3 => body,
        _ => return None,
    };
    for _ in 0..count(6) + count(8) + count(10) {
        let (fixed, after) = skip_record(rest)?;
        rest = after;
        if fixed[..2] == Type::OPT.0.to_be_bytes() {
            rcode.0 = u16::from(fixed[4]) << 4 | rcode.0 & 15;
        }
    }
    rest.is_empty().then_some(Header { rcode, is_truncated: header[2] & 2 != 0 })
}

/// Returns what follows the question in `body`, if it is the one at the start of `asked`.
fn skip_question<'r>(body: &'r [u8], asked: &[u8]) -> Option<&'r [u8]> {
    let len = asked.len() - skip_name(asked)?.len() + 4;
    let (asked, (echoed, rest)) = (asked.get(..len)?, body.split_at_checked(len)?);
    asked.eq_ignore_ascii_case(echoed).then_some(rest)
}

/// Returns what stands between a record's owner and its data, and what follows the record.
pub(crate) fn skip_record(octets: &[u8]) -> Option<(&[u8; RECORD_BYTES], &[u8])> {
    let (fixed, rest) = skip_name(octets)?.split_first_chunk::<RECORD_BYTES>()?;
    let rest = rest.get(usize::from(u16::from_be_bytes([fixed[8], fixed[9]]))..)?;
    Some((fixed, rest))
}

/// Returns what follows a name, which a pointer may end.
pub(crate) fn skip_name(mut octets: &[u8]) -> Option<&[u8]> {
    loop {
        let (first, rest) = octets.split_first()?;
        match first {
            0 => return Some(rest),
            1..=63 => octets = rest.get(usize::from(*first)..)?,
            192.. => return rest.get(1..),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query for `a.` A, with an OPT record.
    const QUERY: &[u8] =
        b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01\x01a\0\0\x01\0\x01\0\0\x29\x04\xd0\0\0\0\0\0\0";
    /// The reply to [`QUERY`]: one A record and an OPT record.
    const REPLY: &[u8] = b"\x12\x34\x81\0\0\x01\0\x01\0\0\0\x01\x01a\0\0\x01\0\x01\
        \xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x7f\0\0\x01\0\0\x29\x04\xd0\0\0\0\0\0\0";

    #[test]
    fn a_sound_reply_is_read() {
        assert_eq!(id_of(REPLY), Some(0x1234));
        let expected = Header { rcode: Rcode::NOERROR, is_truncated: false };
        assert_eq!(read(REPLY, QUERY), Some(expected));
        let mut other = REPLY.to_vec();
        (other[2], other[3]) = (0x83, 3);
        other[13] = b'A';
        let expected = Header { rcode: Rcode::NXDOMAIN, is_truncated: true };
        assert_eq!(read(&other, QUERY), Some(expected));
    }

    #[test]
    fn the_upper_bits_of_the_rcode_are_those_of_opt() {
        let mut other = REPLY.to_vec();
        let high_at = other.len() - 6;
        for (low, high, rcode) in [(0, 1, Rcode::BADVERS), (7, 1, Rcode::BADCOOKIE)] {
            (other[3], other[high_at]) = (low, high);
            let expected = Header { rcode, is_truncated: false };
            assert_eq!(read(&other, QUERY), Some(expected));
        }
    }

    #[test]
    fn a_reply_that_was_cut_anywhere_is_not_sound() {
        for len in 0..REPLY.len() {
            assert_eq!(read(&REPLY[..len], QUERY), None, "{len}");
        }
        assert_eq!(read(&[REPLY, b"x"].concat(), QUERY), None);
    }

    #[test]
    fn another_question_or_operation_or_a_query_is_not_a_reply() {
        for (at, octet) in [(2, 0x01), (2, 0x91), (5, 0), (5, 2), (13, b'b'), (16, 2), (18, 3)] {
            let mut other = REPLY.to_vec();
            other[at] = octet;
            assert_eq!(read(&other, QUERY), None, "octet {at}");
        }
    }

    #[test]
    fn a_reply_to_an_update_need_not_repeat_its_zone() {
        let mut update = QUERY.to_vec();
        update[2] = 0x28;
        let reply = |octet: u8| [0x12, 0x34, octet, 0x85, 0, 0, 0, 0, 0, 0, 0, 0];
        let expected = Header { rcode: Rcode::REFUSED, is_truncated: false };
        assert_eq!(read(&reply(0xa8), &update), Some(expected));
        assert_eq!(read(&reply(0x80), QUERY), None);
    }

    #[test]
    fn a_server_that_could_not_read_the_query_need_not_repeat_it() {
        let reply = b"\x12\x34\x80\x01\0\0\0\0\0\0\0\0";
        let expected = Header { rcode: Rcode::FORMERR, is_truncated: false };
        assert_eq!(read(reply, QUERY), Some(expected));
    }
}
