//! Octets that are written as `%xx` in URLs.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Returns the octets of text that may have some of them as `%xx`; nothing where a `%` stands
/// before anything else than two hexadecimal digits.
pub(crate) fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut octets = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        octets.push(u8::from_str_radix(digits, 16).ok()?);
        octets.extend_from_slice(rest.as_bytes());
    }
    Some(octets)
}

/// Returns the path of a file from text of that form.
pub(crate) fn unescaped_path(text: &str) -> Option<PathBuf> {
    Some(OsString::from_vec(unescaped(text)?).into())
}
