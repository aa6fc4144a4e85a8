//! A text in a reply that comes in parts.

/// The search for a text in the first octets of a reply.
#[derive(Debug)]
pub struct Text<'t> {
    text: &'t [u8],
    /// Octets of the reply that are looked at; at least as many as the text has.
    bytes_max: usize,
    /// Octets that have come, up to `bytes_max`.
    octets: Vec<u8>,
}

impl<'t> Text<'t> {
    /// Begins the search for a text.
    pub fn new(text: &'t [u8], bytes_max: usize) -> Self {
        Self { text, bytes_max, octets: Vec::new() }
    }

    /// Reads the next part of the reply; returns whether the text is there, once that is known.
    pub fn read(&mut self, part: &[u8]) -> Option<bool> {
        let room = self.bytes_max - self.octets.len();
        // A text that spans two parts begins at most this far in front of the second.
        let from = self.octets.len().saturating_sub(self.text.len().saturating_sub(1));
        self.octets.extend_from_slice(&part[..part.len().min(room)]);
        let is_here = self.text.is_empty() && !part.is_empty()
            || !self.text.is_empty()
                && self.octets[from..].windows(self.text.len()).any(|it| it == self.text);
        match is_here {
            true => Some(true),
            false if self.octets.len() == self.bytes_max => Some(false),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_across_parts_and_only_in_the_first_octets() {
        let mut text = Text::new(b"ready", 12);
        assert_eq!(text.read(b"not re"), None);
        assert_eq!(text.read(b""), None);
        assert_eq!(text.read(b"ady now"), Some(true));
        let mut text = Text::new(b"ready", 12);
        assert_eq!(text.read(b"12345678read"), Some(false));
        let mut text = Text::new(b"ready", 12);
        assert_eq!(text.read(b"1234567"), None);
        assert_eq!(text.read(b"ready"), Some(true), "the last octets that count");
        let mut text = Text::new(b"ready", 12);
        assert_eq!(text.read(b"12345678ready"), Some(false));
    }

    #[test]
    fn any_octet_is_a_reply_where_no_text_is_expected() {
        let mut text = Text::new(b"", 12);
        assert_eq!(text.read(b""), None);
        assert_eq!(text.read(b"x"), Some(true));
    }
}
