//! Names as patterns see them: in lower case, with their final dot.

use std::io::Write;
use zonda_wire::name::{self, Presentation};

/// Writes a name in wire form over `text`, in lower case and with its final dot.
pub fn write(wire: &[u8], text: &mut Vec<u8>) {
    text.clear();
    let is_plain = |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
    if wire.len() > 1 && name::labels(wire).all(|label| label.iter().all(is_plain)) {
        for label in name::labels(wire) {
            text.extend_from_slice(label);
            text.push(b'.');
        }
    } else {
        let _ = write!(text, "{}", Presentation(wire)); // never fails
    }
    text.make_ascii_lowercase();
}

/// Writes the name that a text stands for over `wire`; returns whether it is one.
pub fn read(text: &[u8], wire: &mut Vec<u8>) -> bool {
    wire.clear();
    name::parse_into(text, &[0], wire).is_ok() && name::wire_len(wire) == Some(wire.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_in_lower_case_and_read_again() {
        for (wire, expected) in [
            (&b"\x03WWW\x07example\0"[..], "www.example."),
            (b"\x03a.b\x01c\0", "a\\.b.c."),
            (b"\0", "."),
        ] {
            let (mut text, mut again) = (Vec::new(), Vec::new());
            write(wire, &mut text);
            assert_eq!(text, expected.as_bytes());
            assert!(read(&text, &mut again));
            assert!(again.eq_ignore_ascii_case(wire));
        }
    }

    #[test]
    fn a_text_with_an_empty_label_or_too_many_octets_is_no_name() {
        let long = format!("{}.", "a".repeat(63)).repeat(4);
        for text in ["a..b.", ".a", &long, &"a".repeat(64)] {
            assert!(!read(text.as_bytes(), &mut Vec::new()), "{text}");
        }
    }
}
