//! Domain names in wire form: a sequence of labels, each behind its length, ended by the root's
//! zero octet (rfc1035#3.1).
//!
//! | form | what it is | where |
//! |---|---|---|
//! | [`Name`] | owned, uncompressed, its case as written | configuration, control |
//! | `&[u8]` | the same octets, borrowed | records, lookup, the answer path |
//!
//! # Invariants
//! - A [`Name`] holds 1–255 octets, labels of 1–63 octets, and ends in the only empty label.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Most octets a name has on the wire, the root's included (rfc1035#2.3.4).
pub const NAME_BYTES_MAX: usize = 255;
/// Most octets in a label (rfc1035#2.3.4).
pub const LABEL_BYTES_MAX: usize = 63;
/// Most labels in a name, the root's not counted.
pub const LABELS_MAX: usize = 127;

/// A domain name of its own, uncompressed, in the case it was written in. Its clones share memory:
/// a server has a zone's name in half a dozen places.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Name(Arc<[u8]>);

/// Why octets or text are not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NameError {
    /// Over 255 octets in wire form.
    TooLong,
    /// A label of over 63 octets.
    LabelTooLong,
    /// Two dots in a row, or a leading one.
    EmptyLabel,
    /// A backslash not followed by a character or by three digits up to 255.
    BadEscape,
    /// Ends before the root label, or holds a compression pointer or another label type.
    Malformed,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the name is longer than 255 octets",
            Self::LabelTooLong => "a label is longer than 63 octets",
            Self::EmptyLabel => "the name has an empty label (two dots in a row, or a leading dot)",
            Self::BadEscape => "a backslash needs a character or three digits (000-255) after it",
            Self::Malformed => "the name is malformed",
        })
    }
}

impl std::error::Error for NameError {}

impl Name {
    /// Makes the root's name.
    #[must_use]
    pub fn root() -> Self {
        Self([0].into())
    }

    /// Takes octets that are exactly one uncompressed name.
    ///
    /// # Errors
    /// When they are not one, or something follows it.
    pub fn from_wire(wire: &[u8]) -> Result<Self, NameError> {
        match wire_len(wire) {
            Some(len) if len == wire.len() => Ok(Self(wire.into())),
            _ => Err(NameError::Malformed),
        }
    }

    /// Reads presentation format; a name without a final dot ends at `origin` (rfc1035#5.1).
    ///
    /// # Errors
    /// When the text is not a name, or the name becomes too long.
    pub fn parse(text: &[u8], origin: &[u8]) -> Result<Self, NameError> {
        let mut wire = Vec::with_capacity(text.len() + 1 + origin.len());
        parse_into(text, origin, &mut wire)?;
        Ok(Self(wire.into()))
    }

    /// Returns the octets on the wire.
    #[must_use]
    pub fn as_wire(&self) -> &[u8] {
        &self.0
    }

    /// Returns the same name in lower case, the form in which names are compared (rfc4343).
    #[must_use]
    pub fn to_lowercase(&self) -> Self {
        match self.0.iter().any(u8::is_ascii_uppercase) {
            true => Self(self.0.to_ascii_lowercase().into()), // length octets are below b'A'
            false => self.clone(),
        }
    }

    /// Returns how many labels it has, the root's not counted.
    #[must_use]
    pub fn label_count(&self) -> usize {
        labels(&self.0).count()
    }

    /// Returns the octets of a label, 0 for the first one; empty from the root's on.
    #[must_use]
    pub fn label(&self, label: usize) -> &[u8] {
        labels(&self.0).nth(label).unwrap_or_default()
    }
}

impl FromStr for Name {
    type Err = NameError;

    /// Reads a name as a person writes it in a configuration: the final dot may be left out.
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::parse(text.as_bytes(), &[0])
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Presentation(&self.0), f)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Prints a wire-form name in presentation format, with its final dot.
pub struct Presentation<'a>(pub &'a [u8]);

impl fmt::Display for Presentation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        if self.0 == [0] {
            return f.write_char('.');
        }
        for label in labels(self.0) {
            for &octet in label {
                match octet {
                    b'.' | b'"' | b'\\' | b';' | b'(' | b')' | b'@' | b'$' => {
                        f.write_char('\\')?;
                        f.write_char(char::from(octet))?;
                    }
                    0x21..=0x7e => f.write_char(char::from(octet))?,
                    _ => write!(f, "\\{octet:03}")?,
                }
            }
            f.write_char('.')?;
        }
        Ok(())
    }
}

/// Appends the wire form of `text` to `wire`; without a final dot, `origin` (wire form) ends it.
///
/// # Errors
/// When the text is not a name; `wire` then holds part of a name behind its old length.
pub fn parse_into(text: &[u8], origin: &[u8], wire: &mut Vec<u8>) -> Result<(), NameError> {
    let start = wire.len();
    if text == b"." {
        wire.push(0);
        return Ok(());
    }
    let mut length_at = wire.len();
    wire.push(0);
    let mut rest = text;
    let mut absolute = false;
    while !rest.is_empty() {
        let plain = rest.iter().position(|octet| matches!(octet, b'.' | b'\\'));
        let (label, tail) = rest.split_at(plain.unwrap_or(rest.len()));
        wire.extend_from_slice(label);
        rest = tail;
        absolute = rest.split_off_first() == Some(&b'.');
        if absolute {
            close_label(wire, length_at)?;
            length_at = wire.len();
            wire.push(0);
        } else if plain.is_some() {
            let octet = unescape(&mut rest)?;
            wire.push(octet);
        }
    }
    if absolute {
        // The last dot opened the root label.
    } else {
        close_label(wire, length_at)?;
        wire.extend_from_slice(origin);
    }
    if wire.len() - start > NAME_BYTES_MAX { Err(NameError::TooLong) } else { Ok(()) }
}

/// Writes the length of the label that was opened at `length_at`.
fn close_label(wire: &mut [u8], length_at: usize) -> Result<(), NameError> {
    match wire.len() - length_at - 1 {
        0 => Err(NameError::EmptyLabel),
        len @ 1..=LABEL_BYTES_MAX => {
            wire[length_at] = len as u8;
            Ok(())
        }
        _ => Err(NameError::LabelTooLong),
    }
}

/// Returns the octet that `\X` or `\DDD` stands for; `rest` begins behind the backslash
/// (rfc1035#5.1).
///
/// # Errors
/// [`NameError::BadEscape`] when nothing, or a number above 255, follows.
pub fn unescape(rest: &mut &[u8]) -> Result<u8, NameError> {
    match **rest {
        [a, b, c, ref tail @ ..] if a.is_ascii_digit() => {
            if !b.is_ascii_digit() || !c.is_ascii_digit() {
                return Err(NameError::BadEscape);
            }
            *rest = tail;
            let value = u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0');
            u8::try_from(value).map_err(|_| NameError::BadEscape)
        }
        [a, ref tail @ ..] if !a.is_ascii_digit() => {
            *rest = tail;
            Ok(a)
        }
        _ => Err(NameError::BadEscape),
    }
}

/// Returns the octets that the uncompressed name at the start of `wire` takes; `None` when there is
/// none.
#[must_use]
pub fn wire_len(wire: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let len = usize::from(*wire.get(at)?);
        at += 1 + len;
        match len {
            0 if at <= NAME_BYTES_MAX => return Some(at),
            1..=LABEL_BYTES_MAX if at < NAME_BYTES_MAX => {}
            _ => return None,
        }
    }
}

/// Returns the labels of a wire-form name from left to right, without their length octets and the
/// root.
///
/// Ends early, never panics, when `wire` is not a name.
pub fn labels(wire: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = wire;
    std::iter::from_fn(move || {
        let (&len, tail) = rest.split_first()?;
        let (label, tail) = tail.split_at_checked(usize::from(len))?;
        rest = tail;
        (len > 0).then_some(label)
    })
}

/// Whether `name` is `ancestor` or lies below it; both in wire form, case ignored.
#[must_use]
pub fn is_at_or_below(name: &[u8], ancestor: &[u8]) -> bool {
    let Some(mut extra) = name.len().checked_sub(ancestor.len()) else { return false };
    if !name[extra..].eq_ignore_ascii_case(ancestor) {
        return false;
    }
    let mut at = 0; // the suffix must begin at a label
    while extra > 0 {
        let step = 1 + usize::from(name[at]);
        if step > extra {
            return false;
        }
        at += step;
        extra -= step;
    }
    true
}

/// Returns the name without its first label; `None` for the root.
#[must_use]
pub fn parent(wire: &[u8]) -> Option<&[u8]> {
    match wire.first() {
        None | Some(0) => None,
        Some(&len) => wire.get(1 + usize::from(len)..),
    }
}

/// Canonical order of two wire-form names: by label from the right, case ignored (rfc4034#6.1).
#[must_use]
pub fn canonical_cmp(a: &[u8], b: &[u8]) -> Ordering {
    let (a_starts, a_count) = label_starts(a);
    let (b_starts, b_count) = label_starts(b);
    for back in 1..=a_count.min(b_count) {
        let left = label_at(a, a_starts[a_count - back]);
        let right = label_at(b, b_starts[b_count - back]);
        let lower = |label: &[u8], i: usize| label[i].to_ascii_lowercase();
        for i in 0..left.len().min(right.len()) {
            match lower(left, i).cmp(&lower(right, i)) {
                Ordering::Equal => {}
                unequal => return unequal,
            }
        }
        match left.len().cmp(&right.len()) {
            Ordering::Equal => {}
            unequal => return unequal,
        }
    }
    a_count.cmp(&b_count)
}

/// Returns where each label of a wire-form name begins, and how many there are.
fn label_starts(wire: &[u8]) -> ([u8; LABELS_MAX + 1], usize) {
    let mut starts = [0; LABELS_MAX + 1];
    let (mut at, mut count) = (0, 0);
    while let Some(&len @ 1..) = wire.get(at) {
        if count == LABELS_MAX {
            break;
        }
        starts[count] = at as u8; // a name has at most 255 octets
        count += 1;
        at += 1 + usize::from(len);
    }
    (starts, count)
}

/// Returns the label whose length octet stands at `start`.
fn label_at(wire: &[u8], start: u8) -> &[u8] {
    let start = usize::from(start);
    let end = start + 1 + usize::from(wire[start]);
    &wire[start + 1..end.min(wire.len())]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn text_becomes_wire_and_comes_back() {
        for (text, printed) in [
            (".", "."),
            ("example.com", "example.com."),
            ("WWW.Example.com.", "WWW.Example.com."),
            (r"a\.b.\032x.c\\d", r"a\.b.\032x.c\\d."),
            (r"*.\255", r"*.\255."),
        ] {
            assert_eq!(name(text).to_string(), printed);
            assert_eq!(name(&name(text).to_string()), name(text));
        }
    }

    #[test]
    fn relative_text_ends_at_the_origin() {
        let origin = name("example.org");
        assert_eq!(Name::parse(b"a", origin.as_wire()).unwrap(), name("a.example.org"));
        assert_eq!(Name::parse(b"a.", origin.as_wire()).unwrap(), name("a"));
    }

    #[test]
    fn text_that_is_no_name_is_refused_with_its_reason() {
        let long = format!("{}.", "a".repeat(64));
        let deep = "abcdefg.".repeat(32);
        for (text, error) in [
            ("a..b", NameError::EmptyLabel),
            (".a", NameError::EmptyLabel),
            ("..", NameError::EmptyLabel),
            ("", NameError::EmptyLabel),
            (r"a\", NameError::BadEscape),
            (r"a\25", NameError::BadEscape),
            (r"a\256", NameError::BadEscape),
            (long.as_str(), NameError::LabelTooLong),
            (deep.as_str(), NameError::TooLong),
        ] {
            assert_eq!(text.parse::<Name>(), Err(error), "{text}");
        }
        assert!("abcdefg.".repeat(31).parse::<Name>().is_ok());
    }

    #[test]
    fn wire_that_is_no_name_is_refused() {
        for wire in [&b""[..], b"\x01", b"\x01a", b"\xc0\x0c", b"\x40", b"\x01a\0\0"] {
            assert_eq!(Name::from_wire(wire), Err(NameError::Malformed));
        }
        assert_eq!(Name::from_wire(&[1; 256]), Err(NameError::Malformed));
    }

    #[test]
    fn a_suffix_counts_only_from_a_label_on() {
        let below = |a: &str, b: &str| is_at_or_below(name(a).as_wire(), name(b).as_wire());
        assert!(below("a.EXAMPLE", "example"));
        assert!(below("example", "example"));
        assert!(below("a", "."));
        assert!(!below("example", "a.example"));
        assert!(!is_at_or_below(b"\x03a\x01b\0", b"\x01b\0"));
    }

    #[test]
    fn canonical_order_is_that_of_rfc4034() {
        let sorted = [
            "example",
            "a.example",
            "yljkjljk.a.example",
            "Z.a.example",
            "zABC.a.EXAMPLE",
            "z.example",
            r"\001.z.example",
            "*.z.example",
            r"\200.z.example",
        ];
        for pair in sorted.windows(2) {
            let order = canonical_cmp(name(pair[0]).as_wire(), name(pair[1]).as_wire());
            assert_eq!(order, Ordering::Less, "{pair:?}");
        }
    }
}
