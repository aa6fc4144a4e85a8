//! JSON from a stream, cut into objects before it is decoded, so that memory holds one at a time.
//!
//! # Invariants
//! - What is not cut out is not kept, and no piece has more than [`OBJECT_BYTES_MAX`] octets.

use std::fmt;

/// Octets of the largest object; the API's own limit for one is 1.5 MiB in etcd.
pub const OBJECT_BYTES_MAX: usize = 4 << 20;

/// A piece of a list of objects.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'p> {
    /// The `metadata` of the list.
    Metadata(&'p [u8]),
    /// An element of its `items`.
    Item(&'p [u8]),
}

/// An object has more octets than any can have.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the API sends an object of more than {OBJECT_BYTES_MAX} octets")
    }
}

/// The part of a list that is cut out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Metadata,
    Item,
}

/// Cuts the `metadata` and each of the `items` out of the JSON of a list.
#[derive(Default)]
pub struct ListSplitter {
    /// The number of objects and arrays that are open.
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    /// The string at depth 1 that was read last, or is being read: a key of the list.
    key: Vec<u8>,
    /// Whether a colon has followed the key.
    is_value: bool,
    /// The part that is being read, and the depth at which it ends.
    part: Option<(Part, usize)>,
    /// The octets of the part so far.
    octets: Vec<u8>,
}

/// Octets of a key that are remembered.
const KEY_BYTES_MAX: usize = 16;

impl ListSplitter {
    /// Takes the next octets, and calls a function with each piece that is whole.
    ///
    /// # Errors
    /// Those of the function, and [`TooLarge`].
    pub fn take<E: From<TooLarge>>(
        &mut self,
        octets: &[u8],
        mut call: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for &octet in octets {
            if self.part.is_some() {
                if self.octets.len() >= OBJECT_BYTES_MAX {
                    return Err(TooLarge.into());
                }
                self.octets.push(octet);
            }
            if self.is_in_string {
                self.take_in_string(octet);
                continue;
            }
            match octet {
                b'"' => {
                    self.is_in_string = true;
                    if self.depth == 1 && !self.is_value {
                        self.key.clear();
                    }
                }
                b':' if self.depth == 1 => self.is_value = true,
                b',' if self.depth == 1 => self.is_value = false,
                b'{' | b'[' => self.open(octet),
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if let Some((part, _)) = self.part.filter(|(_, depth)| *depth == self.depth) {
                        let piece = match part {
                            Part::Metadata => Piece::Metadata(&self.octets),
                            Part::Item => Piece::Item(&self.octets),
                        };
                        call(piece)?;
                        self.octets.clear();
                        self.part = None;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the list has ended.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.depth == 0 && !self.is_in_string
    }

    /// Takes an octet of a string.
    fn take_in_string(&mut self, octet: u8) {
        match octet {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => self.is_in_string = false,
            octet if self.depth == 1 && !self.is_value && self.key.len() < KEY_BYTES_MAX => {
                self.key.push(octet);
            }
            _ => {}
        }
    }

    /// Opens an object or an array, which may be a part that is cut out.
    fn open(&mut self, octet: u8) {
        if self.part.is_none() && octet == b'{' {
            let part = match (self.depth, &*self.key) {
                (1, b"metadata") => Some(Part::Metadata),
                (2, b"items") => Some(Part::Item),
                _ => None,
            };
            self.part = part.map(|part| (part, self.depth));
            self.octets.clear();
            self.octets.extend(self.part.map(|_| octet));
        }
        self.depth += 1;
    }
}

/// Octets that are kept for the next line: a watch lasts, and few objects are large.
pub(crate) const KEPT_BYTES_MAX: usize = 64 << 10;

/// Cuts a stream into lines.
#[derive(Default)]
pub struct LineSplitter {
    line: Vec<u8>,
}

impl LineSplitter {
    /// Takes the next octets, and calls a function with each line that is whole.
    ///
    /// # Errors
    /// Those of the function, and [`TooLarge`].
    pub fn take<E: From<TooLarge>>(
        &mut self,
        octets: &[u8],
        mut call: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = octets;
        while let Some(end) = rest.iter().position(|octet| *octet == b'\n') {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            match self.line.is_empty() {
                true if !line.is_empty() => call(line)?,
                true => {}
                false => {
                    self.push(line)?;
                    call(&self.line)?;
                    self.line.clear();
                    self.line.shrink_to(KEPT_BYTES_MAX);
                }
            }
            rest = after;
        }
        self.push(rest)?;
        Ok(())
    }

    /// Keeps the beginning of a line.
    fn push(&mut self, octets: &[u8]) -> Result<(), TooLarge> {
        if self.line.len() + octets.len() > OBJECT_BYTES_MAX {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(octets);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A list with all that could mislead: brackets and quotes in strings, keys in other places.
    const LIST: &str = r#"{"kind":"List","note":"items","metadata":{"items":[{}],"a":"}\""},
        "more":[{"x":1},{"metadata":{}}],"items":[{"a":"]}\\"},{"b":{"c":[{"d":"\"{"}]}}],"z":{}}"#;

    /// Returns the pieces of a text that comes in parts of so many octets.
    fn pieces(text: &str, step: usize) -> Vec<String> {
        let (mut splitter, mut pieces) = (ListSplitter::default(), Vec::new());
        for part in text.as_bytes().chunks(step) {
            let taken = splitter.take(part, |piece| {
                let (kind, octets) = match piece {
                    Piece::Metadata(octets) => ("metadata", octets),
                    Piece::Item(octets) => ("item", octets),
                };
                pieces.push(format!("{kind} {}", std::str::from_utf8(octets).unwrap()));
                Ok::<(), TooLarge>(())
            });
            taken.unwrap();
        }
        assert!(splitter.is_at_end());
        pieces
    }

    #[test]
    fn a_list_is_cut_into_its_items_wherever_its_octets_are_cut() {
        let expected = [
            r#"metadata {"items":[{}],"a":"}\""}"#,
            r#"item {"a":"]}\\"}"#,
            r#"item {"b":{"c":[{"d":"\"{"}]}}"#,
        ];
        for step in 1..LIST.len() {
            assert_eq!(pieces(LIST, step), expected, "in parts of {step} octets");
        }
        assert!(pieces(r#"{"items":null}"#, 100).is_empty());
    }

    #[test]
    fn a_stream_is_cut_into_lines_wherever_its_octets_are_cut() {
        let text = b"one\ntwo\n\nthree\nrest";
        for step in 1..text.len() {
            let (mut splitter, mut lines) = (LineSplitter::default(), Vec::new());
            for part in text.chunks(step) {
                let taken = splitter.take(part, |line| {
                    lines.push(String::from_utf8(line.to_vec()).unwrap());
                    Ok::<(), TooLarge>(())
                });
                taken.unwrap();
            }
            assert_eq!(lines, ["one", "two", "three"]);
        }
    }

    #[test]
    fn an_object_without_end_is_refused() {
        let mut splitter = ListSplitter::default();
        let nothing = |_: Piece<'_>| Ok::<(), TooLarge>(());
        splitter.take(br#"{"items":[{"a":""#, nothing).unwrap();
        let endless = vec![b'x'; OBJECT_BYTES_MAX];
        assert_eq!(splitter.take(&endless, nothing), Err(TooLarge));
        let taken = LineSplitter::default().take(&[b'x'; OBJECT_BYTES_MAX + 1], |_| Ok(()));
        assert_eq!(taken, Err(TooLarge));
    }
}
