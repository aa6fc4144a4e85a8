//! Echo messages of ICMP and ICMPv6, as a socket for echo messages alone takes and gives them: the
//! system writes checksum and identifier, and matches replies by the identifier.

/// Octets in front of the payload: type, code, checksum, identifier, sequence number.
const HEADER_BYTES: usize = 8;

/// The version of ICMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// ICMP over IPv4.
    V4,
    /// ICMPv6 over IPv6.
    V6,
}

/// Returns an echo request with a payload by which its reply is known.
#[must_use]
pub fn echo_request(family: Family, payload: [u8; 16]) -> [u8; HEADER_BYTES + 16] {
    let mut message = [0; HEADER_BYTES + 16];
    message[0] = match family {
        Family::V4 => 8,
        Family::V6 => 128,
    };
    message[7] = 1; // the first of a sequence
    message[HEADER_BYTES..].copy_from_slice(&payload);
    message
}

/// Returns whether a message is the echo reply with this payload.
#[must_use]
pub fn echo_reply(family: Family, payload: [u8; 16], message: &[u8]) -> bool {
    let kind = match family {
        Family::V4 => 0,
        Family::V6 => 129,
    };
    message.first() == Some(&kind) && message.get(HEADER_BYTES..) == Some(&payload[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_reply_to_this_request_is_one() {
        for (family, kind) in [(Family::V4, 0), (Family::V6, 129)] {
            let request = echo_request(family, [7; 16]);
            assert!(!echo_reply(family, [7; 16], &request));
            let mut reply = request;
            reply[0] = kind;
            assert!(echo_reply(family, [7; 16], &reply));
            assert!(!echo_reply(family, [8; 16], &reply));
            assert!(!echo_reply(family, [7; 16], &reply[..23]));
            assert!(!echo_reply(family, [7; 16], &[]));
        }
    }
}
