//! Messages of the gRPC health service: `HealthCheckRequest { string service = 1; }` and
//! `HealthCheckResponse { ServingStatus status = 1; }`, each behind a flag of one octet and a
//! length of four.

/// Octets in front of a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// Returns the request for a service, with its prefix.
#[must_use]
pub fn health_request(service: &str) -> Vec<u8> {
    let mut message = Vec::with_capacity(service.len() + 8);
    if !service.is_empty() {
        message.push(0x0a); // field 1, of a length
        let mut len = service.len();
        while len > 0x7f {
            message.push((len & 0x7f) as u8 | 0x80);
            len >>= 7;
        }
        message.push(len as u8);
        message.extend_from_slice(service.as_bytes());
    }
    let len = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0][..], &len.to_be_bytes(), &message].concat()
}

/// Returns the serving status in a response with its prefix, 1 for SERVING; `None` where it is no
/// such message, or is compressed.
#[must_use]
pub fn health_response(octets: &[u8]) -> Option<u8> {
    let (&[is_compressed, a, b, c, d], message) = octets.split_first_chunk::<PREFIX_BYTES>()?;
    let len = u32::from_be_bytes([a, b, c, d]);
    if is_compressed != 0 || usize::try_from(len) != Ok(message.len()) {
        return None;
    }
    let mut rest = message;
    let mut status = 0; // what a message without the field says
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        let value = match key & 7 {
            0 => varint(&mut rest)?,
            1 => skip(&mut rest, 8)?,
            2 => {
                let len = usize::try_from(varint(&mut rest)?).ok()?;
                skip(&mut rest, len)?
            }
            5 => skip(&mut rest, 4)?,
            _ => return None,
        };
        if key == 1 << 3 {
            status = u8::try_from(value).unwrap_or(u8::MAX);
        }
    }
    Some(status)
}

/// Takes a number off the front, seven bits an octet, the lowest first.
fn varint(octets: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&octet, rest) = octets.split_first()?;
        *octets = rest;
        number |= u64::from(octet & 0x7f) << shift;
        if octet < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Takes octets off the front that are of no interest.
fn skip(octets: &mut &[u8], len: usize) -> Option<u64> {
    *octets = octets.get(len..)?;
    Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_service() {
        assert_eq!(health_request(""), [0, 0, 0, 0, 0]);
        assert_eq!(health_request("a.B"), b"\0\0\0\0\x05\x0a\x03a.B");
        let long = "x".repeat(200);
        assert_eq!(health_request(&long)[..8], [0, 0, 0, 0, 203, 0x0a, 0xc8, 1]);
    }

    #[test]
    fn a_response_tells_its_status_behind_fields_that_are_not_known() {
        for (message, status) in [
            (&b"\0\0\0\0\0"[..], Some(0)),
            (b"\0\0\0\0\x02\x08\x01", Some(1)),
            (b"\0\0\0\0\x02\x08\x02", Some(2)),
            (b"\0\0\0\0\x06\x12\x02ab\x08\x01", Some(1)),
            (b"\0\0\0\0\x03\x08\xac\x02", Some(255)),
            (b"\x01\0\0\0\x02\x08\x01", None), // compressed
            (b"\0\0\0\0\x03\x08\x01", None),   // shorter than it says
            (b"\0\0\0\0\x01\x08", None),
            (b"\0\0\0\0\x02\x12\x7f", None),
            (b"\0\0\0\0\x02\x0b\x00", None),
            (b"\0\0\0\0\x0c\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", None),
            (b"\0\0", None),
        ] {
            assert_eq!(health_response(message), status, "{message:?}");
        }
    }
}
