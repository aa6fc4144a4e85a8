//! The reply to a query on which the engine has failed.
//!
//! Made from the bytes alone, with none of the code that may just have panicked.

/// Octets of a header.
const HEADER_BYTES: usize = 12;

/// Writes SERVFAIL over the query in the first `len` octets; returns the reply's length, 0 for what
/// must not be answered: less than a header, or a response.
pub fn write(buffer: &mut [u8], len: usize) -> usize {
    /// QR; in octet 2.
    const RESPONSE: u8 = 0x80;
    /// Opcode and RD, kept from the query; in octet 2.
    const KEPT: u8 = 0x79;
    /// CD, kept from the query; in octet 3.
    const CHECKING_DISABLED: u8 = 0x10;
    /// rfc1035#4.1.1
    const SERVFAIL: u8 = 2;

    let Some(message) = buffer.get_mut(..len).filter(|message| message.len() >= HEADER_BYTES)
    else {
        return 0;
    };
    if message[2] & RESPONSE != 0 {
        return 0;
    }
    let question_end = question_end(message);
    message[2] = message[2] & KEPT | RESPONSE;
    message[3] = message[3] & CHECKING_DISABLED | SERVFAIL;
    message[4..HEADER_BYTES].fill(0);
    message[5] = u8::from(question_end.is_some());
    question_end.unwrap_or(HEADER_BYTES)
}

/// Where the only question ends; none if there is not exactly one, whole and uncompressed.
fn question_end(message: &[u8]) -> Option<usize> {
    /// Octets of a label at most; more is a compression pointer.
    const LABEL_MAX: u8 = 63;
    /// Octets of QTYPE and QCLASS.
    const FIXED: usize = 4;

    if message[4..6] != [0, 1] {
        return None;
    }
    let mut at = HEADER_BYTES;
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1 + FIXED).filter(|&end| end <= message.len()),
            label if label <= LABEL_MAX => at += 1 + usize::from(label),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query for `a. A` with RD, then `rest`.
    fn query(rest: &[u8]) -> Vec<u8> {
        [b"\xab\xcd\x01\x10\0\x01\0\0\0\0\0\x01\x01a\0\0\x01\0\x01".as_slice(), rest].concat()
    }

    #[test]
    fn the_question_and_rd_and_cd_are_kept_and_all_else_is_cut() {
        let mut buffer = query(b"some OPT");
        let len = buffer.len();
        assert_eq!(write(&mut buffer, len), 19);
        assert_eq!(buffer[..19], *b"\xab\xcd\x81\x12\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01");
    }

    #[test]
    fn a_question_that_is_not_whole_is_left_out() {
        for cut in 12..19 {
            assert_eq!(write(&mut query(b""), cut), 12);
        }
        let mut pointer = query(b"");
        pointer[12] = 0xc0;
        assert_eq!(write(&mut pointer, 19), 12);
        assert_eq!(pointer[4..12], [0; 8]);
    }

    #[test]
    fn responses_and_fragments_are_met_with_silence() {
        let mut response = query(b"");
        response[2] |= 0x80;
        assert_eq!(write(&mut response, 19), 0);
        assert_eq!(write(&mut query(b""), 11), 0);
        assert_eq!(write(&mut query(b""), 0), 0);
    }
}
