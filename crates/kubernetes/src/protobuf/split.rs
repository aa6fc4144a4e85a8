//! Messages from a stream, cut into objects before they are decoded, so that memory holds one at a
//! time.
//!
//! # Invariants
//! - What is not cut out is not kept, and no piece has more than [`OBJECT_BYTES_MAX`] octets.

use super::MAGIC;
use super::decode::Malformed;
use super::fields::varint;
use crate::split::{KEPT_BYTES_MAX, OBJECT_BYTES_MAX, Piece, TooLarge};

/// What is read next of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    /// The octets that stand before each list.
    #[default]
    Magic,
    /// The number and the length of a field of the envelope.
    Envelope,
    /// The number and the length of a field of the list.
    Field,
    /// A part of the list, of so many octets: its metadata, or an item.
    Part(bool, usize),
    /// Octets of no use here; whether they stand in the list.
    Skipped(bool, u64),
}

/// Cuts the metadata and each of the items out of a list.
#[derive(Debug, Default)]
pub struct ListSplitter {
    next: Next,
    /// Octets of the list itself that have not come.
    left: u64,
    /// Whether the list itself has begun.
    has_begun: bool,
    /// The octets that have come of what is read next.
    octets: Vec<u8>,
}

impl ListSplitter {
    /// Takes the next octets, and calls a function with each piece that is whole.
    ///
    /// # Errors
    /// Those of the function, [`TooLarge`] and [`Malformed`].
    pub fn take<E: From<TooLarge> + From<Malformed>>(
        &mut self,
        octets: &[u8],
        mut call: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = octets;
        while !rest.is_empty() {
            rest = match self.next {
                Next::Magic => self.take_magic(rest)?,
                Next::Envelope | Next::Field => self.take_head::<E>(rest)?,
                Next::Skipped(is_in_list, len) => {
                    let taken = len.min(rest.len() as u64);
                    self.next = match (len - taken, is_in_list) {
                        (0, true) => self.after_field(),
                        (0, false) => Next::Envelope,
                        (left, _) => Next::Skipped(is_in_list, left),
                    };
                    &rest[taken as usize..] // at most as many as there are
                }
                Next::Part(is_item, len) => {
                    let missing = len - self.octets.len();
                    let (part, after) = rest.split_at(missing.min(rest.len()));
                    let is_whole = part.len() == missing;
                    if is_whole && self.octets.is_empty() {
                        call(piece(is_item, part))?; // as it came, without a copy
                    } else {
                        self.octets.extend_from_slice(part);
                    }
                    if is_whole {
                        if !self.octets.is_empty() {
                            call(piece(is_item, &self.octets))?;
                        }
                        self.octets.clear();
                        self.octets.shrink_to(KEPT_BYTES_MAX);
                        self.next = self.after_field();
                    }
                    after
                }
            };
        }
        Ok(())
    }

    /// What follows a field of the list.
    fn after_field(&self) -> Next {
        if self.left == 0 { Next::Envelope } else { Next::Field }
    }

    /// Takes octets of what stands before the list.
    fn take_magic<'o>(&mut self, octets: &'o [u8]) -> Result<&'o [u8], Malformed> {
        let [first, rest @ ..] = octets else { return Ok(octets) };
        if MAGIC.get(self.octets.len()) != Some(first) {
            return Err(Malformed);
        }
        self.octets.push(*first);
        if self.octets.len() == MAGIC.len() {
            self.octets.clear();
            self.next = Next::Envelope;
        }
        Ok(rest)
    }

    /// Takes an octet of the number and the length of a field.
    fn take_head<'o, E: From<TooLarge> + From<Malformed>>(
        &mut self,
        octets: &'o [u8],
    ) -> Result<&'o [u8], E> {
        let [first, rest @ ..] = octets else { return Ok(octets) };
        let is_in_list = self.next == Next::Field;
        self.octets.push(*first);
        if is_in_list {
            self.left -= 1; // a field begins only where octets are left
        }
        let head = head(&self.octets)?;
        if head.is_none() && is_in_list && self.left == 0 {
            return Err(Malformed.into());
        }
        let Some((number, len)) = head else { return Ok(rest) };
        self.octets.clear();
        if is_in_list {
            self.left = self.left.checked_sub(len).ok_or(Malformed)?;
        }
        self.next = match (is_in_list, number) {
            (false, 2) if !self.has_begun => {
                (self.left, self.has_begun) = (len, true);
                self.after_field()
            }
            (true, 1 | 2) if len > OBJECT_BYTES_MAX as u64 => return Err(TooLarge.into()),
            (true, 1 | 2) if len > 0 => Next::Part(number == 2, len as usize),
            (true, _) if len == 0 => self.after_field(),
            (false, _) if len == 0 => Next::Envelope,
            _ => Next::Skipped(is_in_list, len),
        };
        Ok(rest)
    }

    /// Whether the list has ended.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.has_begun && self.next == Next::Envelope && self.octets.is_empty()
    }
}

/// Returns the piece that octets are.
fn piece(is_item: bool, octets: &[u8]) -> Piece<'_> {
    if is_item { Piece::Item(octets) } else { Piece::Metadata(octets) }
}

/// Reads the number of a field, and how many octets follow what has been read; none if that is not
/// whole. A field of the envelope or of a list that is a number has none that follow.
fn head(octets: &[u8]) -> Result<Option<(u64, u64)>, Malformed> {
    let Some((key, len)) = varint(octets)? else { return Ok(None) };
    let value = match key & 7 {
        0 => varint(&octets[len..])?.map(|_| 0),
        1 => Some(8),
        2 => varint(&octets[len..])?.map(|(len, _)| len),
        5 => Some(4),
        _ => return Err(Malformed),
    };
    match (key >> 3, value) {
        (2, _) if key & 7 != 2 => Err(Malformed),
        (number, value) => Ok(value.map(|value| (number, value))),
    }
}

/// Cuts a watch into its events.
#[derive(Debug, Default)]
pub struct EventSplitter {
    octets: Vec<u8>,
}

/// Octets of the length in front of an event.
const LENGTH_BYTES: usize = 4;

impl EventSplitter {
    /// Takes the next octets, and calls a function with each event that is whole.
    ///
    /// # Errors
    /// Those of the function, and [`TooLarge`].
    pub fn take<E: From<TooLarge>>(
        &mut self,
        octets: &[u8],
        mut call: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = octets;
        while !rest.is_empty() {
            if self.octets.is_empty()
                && let Some((event, after)) = whole(rest)?
            {
                call(event)?; // as it came, without a copy
                rest = after;
                continue;
            }
            let needed = match self.octets.first_chunk() {
                Some(length) => LENGTH_BYTES + length_of(*length)?,
                None => LENGTH_BYTES,
            };
            let (part, after) = rest.split_at(rest.len().min(needed - self.octets.len()));
            self.octets.extend_from_slice(part);
            rest = after;
            if let Some((event, _)) = whole(&self.octets)? {
                call(event)?;
                self.octets.clear();
                self.octets.shrink_to(KEPT_BYTES_MAX);
            }
        }
        Ok(())
    }
}

/// Returns the octets of an event with this length.
fn length_of(length: [u8; LENGTH_BYTES]) -> Result<usize, TooLarge> {
    let length = u32::from_be_bytes(length) as usize;
    if length > OBJECT_BYTES_MAX { Err(TooLarge) } else { Ok(length) }
}

/// The octets of an event, and those that follow it.
type Cut<'o> = (&'o [u8], &'o [u8]);

/// Returns the event at the beginning of octets and what follows it, if it is whole.
fn whole(octets: &[u8]) -> Result<Option<Cut<'_>>, TooLarge> {
    let Some((length, rest)) = octets.split_first_chunk() else { return Ok(None) };
    Ok(rest.split_at_checked(length_of(*length)?))
}
