//! Names and the ids of zones, as PowerDNS writes them.
//!
//! An id is the zone's name with its final dot, in which an octet that is no letter, digit, dot,
//! hyphen or underscore is `=` and its two hexadecimal digits: `0=2F25.2.0.192.in-addr.arpa.`

use super::api_error::ApiError;
use hyper::StatusCode;
use std::fmt::Write as _;
use zonda_wire::Name;

/// The id of a zone.
pub fn id_of(apex: &Name) -> String {
    let name = apex.to_lowercase().to_string();
    let mut id = String::with_capacity(name.len());
    for octet in name.bytes() {
        match octet.is_ascii_alphanumeric() || b"-_.".contains(&octet) {
            true => id.push(char::from(octet)),
            false => _ = write!(id, "={octet:02X}"), // a string takes everything
        }
    }
    id
}

/// The zone with an id, in lower case; the final dot may be left out.
///
/// # Errors
/// When the text is no id, or what it stands for is no name.
pub fn zone_of(id: &str) -> Result<Name, ApiError> {
    let malformed = || ApiError {
        status: StatusCode::BAD_REQUEST,
        text: format!("{id} is no id of a zone: `=` and two hexadecimal digits are an octet"),
    };
    let name = decoded(id).ok_or_else(malformed)?;
    Name::parse(&name, &[0])
        .map(|name| name.to_lowercase())
        .map_err(|error| ApiError::refused(format!("Unable to parse DNS Name '{id}': {error}")))
}

/// The octets that an id stands for.
fn decoded(id: &str) -> Option<Vec<u8>> {
    let mut pieces = id.split('=');
    let mut octets = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        octets.push(u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?);
        octets.extend_from_slice(rest.as_bytes());
    }
    Some(octets)
}

/// A name of a body or a query string, in lower case, which must have its final dot.
///
/// # Errors
/// When it has none, or is no name.
pub fn canonical(text: &str) -> Result<Name, ApiError> {
    if !text.ends_with('.') {
        return Err(ApiError::refused(format!("DNS Name '{text}' is not canonical")));
    }
    text.parse::<Name>()
        .map(|name| name.to_lowercase())
        .map_err(|error| ApiError::refused(format!("Unable to parse DNS Name '{text}': {error}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_id_leads_back_to_its_zone() {
        for (name, id) in [
            ("example.org.", "example.org."),
            ("Example.ORG", "example.org."),
            ("0/25.2.0.192.in-addr.arpa", "0=2F25.2.0.192.in-addr.arpa."),
            ("a=b.test", "a=3Db.test."),
            ("_x-y.test", "_x-y.test."),
            ("\\195\\164.test", "=5C195=5C164.test."),
            (".", "."),
        ] {
            let name: Name = name.parse().unwrap();
            assert_eq!(id_of(&name), id);
            assert_eq!(zone_of(id).unwrap(), name.to_lowercase(), "{id}");
        }
    }

    #[test]
    fn an_id_may_lack_its_final_dot_and_be_in_any_case() {
        assert_eq!(zone_of("EXAMPLE=2eorg").unwrap(), "example.org".parse().unwrap());
        assert_eq!(zone_of("0/25.test").unwrap(), "0/25.test".parse().unwrap());
    }

    #[test]
    fn what_is_no_id_is_a_bad_request_and_what_is_no_name_is_refused() {
        for (id, status) in
            [("a=2", 400), ("a=zz", 400), ("a=+1b", 400), ("a=é1", 400), ("..bad", 422), ("", 422)]
        {
            assert_eq!(zone_of(id).unwrap_err().status.as_u16(), status, "{id}");
        }
    }

    #[test]
    fn a_name_without_its_final_dot_is_not_canonical() {
        assert_eq!(canonical("WWW.example.org.").unwrap().to_string(), "www.example.org.");
        let error = canonical("example.org").unwrap_err();
        assert_eq!(error.text, "DNS Name 'example.org' is not canonical");
        assert_eq!(canonical("x..org.").unwrap_err().status.as_u16(), 422);
    }
}
