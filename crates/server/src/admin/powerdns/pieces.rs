//! The records of a zone as text, made piece by piece while the client takes them.
//!
//! A zone of a million records is a text of a hundred megabytes, which is never held as a whole.

use std::mem;
use std::sync::Arc;
use zonda_zone::{Zone, ZoneRecord};

/// Octets after which a piece ends, with the name at which it is reached.
const PIECE_BYTES: usize = 64 << 10;

/// Where the next piece begins.
enum Place {
    /// The piece begins with the apex.
    Apex,
    /// The piece begins behind this name, in wire form and lower case.
    Behind(Vec<u8>),
    /// There is no further piece.
    End,
}

/// The records of a version of a zone in canonical order as pieces of text.
pub struct ZonePieces<W> {
    zone: Arc<Zone>,
    place: Place,
    /// The text before the first record; empty once it was taken.
    head: Vec<u8>,
    /// The text behind the last record.
    tail: &'static [u8],
    /// Writes the records of one name.
    write: W,
}

impl<W: FnMut(&[ZoneRecord<'_>], &mut Vec<u8>)> ZonePieces<W> {
    /// All records of a zone, between a head and a tail.
    pub fn new(zone: Arc<Zone>, head: Vec<u8>, tail: &'static [u8], write: W) -> Self {
        Self { zone, place: Place::Apex, head, tail, write }
    }

    /// Appends the records of `records` to a piece until that is long enough; returns the last name
    /// if there may be more.
    fn fill<'z>(
        write: &mut W,
        records: impl Iterator<Item = ZoneRecord<'z>>,
        out: &mut Vec<u8>,
    ) -> Option<Vec<u8>> {
        let mut records = records.peekable();
        let mut of_name = Vec::new();
        while let Some(record) = records.next() {
            of_name.push(record);
            let owner = record.owner.as_wire();
            if records.peek().is_some_and(|next| next.owner.as_wire() == owner) {
                continue;
            }
            write(&of_name, out);
            of_name.clear();
            if out.len() >= PIECE_BYTES {
                return records.peek().is_some().then(|| owner.to_vec());
            }
        }
        None
    }
}

impl<W: FnMut(&[ZoneRecord<'_>], &mut Vec<u8>)> Iterator for ZonePieces<W> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut out = mem::take(&mut self.head);
        out.reserve(PIECE_BYTES);
        let place = mem::replace(&mut self.place, Place::End);
        let last = match place {
            Place::End => return None,
            Place::Apex => Self::fill(&mut self.write, self.zone.records(), &mut out),
            Place::Behind(name) => {
                Self::fill(&mut self.write, self.zone.records_behind(&name), &mut out)
            }
        };
        match last {
            Some(name) => self.place = Place::Behind(name),
            None => out.extend_from_slice(self.tail),
        }
        Some(out)
    }
}
