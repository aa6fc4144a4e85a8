//! Octets as text in base64 (rfc4648#4).

/// The digits of base64 by their values.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes octets.
#[must_use]
pub fn to_base64(octets: &[u8]) -> String {
    let mut text = String::with_capacity(octets.len().div_ceil(3) * 4);
    for group in octets.chunks(3) {
        let bits = (0..3).fold(0, |bits, place| {
            bits << 8 | usize::from(group.get(place).copied().unwrap_or_default())
        });
        for place in 0..4 {
            let digit = DIGITS[bits >> (18 - 6 * place) & 63]; // 63 is the last
            text.push(if place <= group.len() { digit.into() } else { '=' });
        }
    }
    text
}

/// Decodes a text; spaces and line ends are skipped. `None` if it has other octets.
#[must_use]
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    let value = |octet: u8| match octet {
        b'A'..=b'Z' => Some(octet - b'A'),
        b'a'..=b'z' => Some(octet - b'a' + 26),
        b'0'..=b'9' => Some(octet - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (mut bits, mut count, mut octets) = (0_u32, 0, Vec::new());
    let digits = text.bytes().filter(|octet| !octet.is_ascii_whitespace());
    for octet in digits.take_while(|octet| *octet != b'=') {
        bits = bits << 6 | u32::from(value(octet)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            octets.push((bits >> count) as u8);
        }
    }
    Some(octets)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn base64_is_decoded() {
        assert_eq!(from_base64("aGVsbG8=").unwrap(), b"hello");
        assert_eq!(from_base64("aGVs\nbG8h").unwrap(), b"hello!");
        assert_eq!(from_base64("a*"), None);
    }

    #[test]
    fn what_is_encoded_is_decoded_to_the_same() {
        let octets: Vec<u8> = (0..=255).collect();
        for length in 0..octets.len() {
            assert_eq!(from_base64(&to_base64(&octets[..length])).unwrap(), octets[..length]);
        }
        assert_eq!((to_base64(b"a"), to_base64(b"ab")), ("YQ==".to_owned(), "YWI=".to_owned()));
    }
}
