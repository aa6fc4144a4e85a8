//! Character strings (rfc1035#3.3, rfc1035#5.1).

use super::error::Fault;
use super::parse::Token;
use crate::name;

/// Writes a length octet and the string.
pub(super) fn parse_char_string(token: Token<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let length_at = out.len();
    out.push(0);
    parse_text(token, out)?;
    let len = out.len() - length_at - 1;
    out[length_at] = u8::try_from(len).map_err(|_| Fault::StringTooLong)?;
    Ok(())
}

/// Writes a length octet and letters and digits.
pub(super) fn parse_tag(token: Token<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    let valid = !token.text.is_empty() && token.text.iter().all(u8::is_ascii_alphanumeric);
    if valid { parse_char_string(token, out) } else { Err(Fault::Tag) }
}

/// Writes the octets of a string, without a length.
pub(super) fn parse_text(token: Token<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
    unescape_into(token.text, out)
}

/// Appends text, its `\DDD` and `\X` resolved.
///
/// # Errors
/// [`Fault::Escape`].
pub fn unescape_into(text: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&octet| octet == b'\\') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        out.push(name::unescape(&mut rest).map_err(|_| Fault::Escape)?);
    }
    out.extend_from_slice(rest);
    Ok(())
}
