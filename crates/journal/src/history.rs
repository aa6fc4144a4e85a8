//! The entries of a zone, read from the file one by one.

use crate::error::Error;
use crate::index::Place;
use crate::record::Record;
use crate::scan::Source;
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A change of a zone that was read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The serial before the change.
    pub from: u32,
    /// The serial after the change.
    pub to: u32,
    /// The payload as it was appended.
    pub payload: Vec<u8>,
}

/// The changes of a zone from a serial on, oldest first. It reads from the file as it was when the
/// history was taken, on any thread, whatever is appended, dropped or compacted meanwhile.
#[derive(Debug)]
pub struct History {
    file: Arc<File>,
    path: PathBuf,
    id: u64,
    places: VecDeque<Place>,
}

impl History {
    pub(crate) fn new(file: Arc<File>, path: PathBuf, id: u64, places: Vec<Place>) -> Self {
        Self { file, path, id, places: places.into() }
    }

    /// Returns how many changes are left to be read.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether no change is left to be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the octets of the changes that are left, those of their records included.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.places.iter().map(|place| u64::from(place.octets)).sum()
    }
}

impl Iterator for History {
    type Item = Result<Change, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let place = self.places.pop_front()?;
        let mut octets = Vec::new();
        Some(read(&self.file, &self.path, self.id, &place, &mut octets).map(|record| Change {
            from: record.header.from,
            to: record.header.to,
            payload: record.payload.to_vec(),
        }))
    }
}

/// Reads a record into a buffer.
pub fn read<'b>(
    source: &File,
    path: &Path,
    id: u64,
    place: &Place,
    buffer: &'b mut Vec<u8>,
) -> Result<Record<'b>, Error> {
    buffer.resize(place.octets as usize, 0);
    let mut got = 0;
    while got < buffer.len() {
        let count = Source::read_at(source, &mut buffer[got..], place.offset + got as u64);
        match count.map_err(|error| Error::io(path, "read", error))? {
            0 => break,
            count => got += count,
        }
    }
    let what = "a record that was whole has changed";
    let damage = Error::Damaged { path: path.to_owned(), offset: place.offset, what };
    Record::decode(&buffer[..got], id, place.offset).ok_or(damage)
}
