//! Records as they were read, before they become a zone that can be asked.
//!
//! One arena holds them all, so that ten million records cost ten million entries, not ten million
//! allocations:
//!
//! ```text
//! bytes    type u16 | TTL u32 | length u16 | owner's length u8
//!          | owner (wire form, case as written) | rdata
//! entries  offset of the owner, line of the file
//! ```
//!
//! Rdata is in wire form without compression. The class is IN throughout.

use crate::release::free_in_steps;
use std::mem;
use std::path::{Path, PathBuf};
use zonda_wire::{Type, name};

/// Records in the order in which they were read.
#[derive(Clone, Default)]
pub struct Records {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// The files read or wanted, each with the number of its first record; an `$INCLUDE` and the
    /// return from it begin a new element.
    files: Vec<(usize, PathBuf)>,
}

/// Octets before a record's owner.
const HEADER: usize = 9;

/// Where a record lies in the arena, and where it stood in its file.
#[derive(Clone, Copy)]
struct Entry {
    offset: u32,
    line: u32,
}

/// One record of a zone; all in wire form, uncompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The owner name, in the case it was written in.
    pub owner: &'a [u8],
    /// The record's type.
    pub rtype: Type,
    /// Time to live, seconds, at most 2³¹ − 1 (rfc2181#8).
    pub ttl: u32,
    /// The record's data, without its length.
    pub rdata: &'a [u8],
}

/// A line of a file; the first is 1, and 0 stands for the file as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position<'a> {
    /// Path of the file.
    pub file: &'a Path,
    /// The line on which the record begins.
    pub line: u32,
}

/// The arena cannot hold more than 4 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyRecords;

/// Appends the octets of a record, in the form that the head of this file shows. Its data are at
/// most 65 535 octets.
#[inline]
pub(crate) fn write_octets(record: Record<'_>, out: &mut Vec<u8>) {
    let mut header = [0; HEADER];
    header[..2].copy_from_slice(&record.rtype.0.to_be_bytes());
    header[2..6].copy_from_slice(&record.ttl.to_be_bytes());
    header[6..8].copy_from_slice(&(record.rdata.len() as u16).to_be_bytes());
    header[8] = record.owner.len() as u8; // a name has at most 255 octets
    out.extend_from_slice(&header);
    out.extend_from_slice(record.owner);
    out.extend_from_slice(record.rdata);
}

/// The octets that a record has in that form, whose owner and data have so many.
pub(crate) fn octets_len(owner: usize, rdata: usize) -> usize {
    HEADER + owner + rdata
}

impl Drop for Records {
    fn drop(&mut self) {
        free_in_steps(mem::take(&mut self.bytes));
        free_in_steps(mem::take(&mut self.entries));
    }
}

impl Records {
    /// No records, and room for about `bytes` octets of them.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self::default().recycled(bytes)
    }

    /// The octets of memory that the records take, without room for more.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<Entry>()
    }

    /// The octets of records that there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// No records, in the memory of these; room for about `bytes` octets of them.
    #[must_use]
    pub fn recycled(mut self, bytes: usize) -> Self {
        self.bytes.clear();
        self.entries.clear();
        self.files.clear();
        self.bytes.reserve(bytes);
        self.entries.reserve(bytes / 40);
        self
    }

    /// Records added from now on stood in `file`.
    pub fn begin_file(&mut self, file: &Path) {
        self.files.push((self.entries.len(), file.to_owned()));
    }

    /// Adds a record that began on `line` of the current file. Its rdata is at most 65 535 octets.
    ///
    /// # Errors
    /// When the arena is full; the record is then not added.
    pub fn push(&mut self, record: Record<'_>, line: u32) -> Result<(), TooManyRecords> {
        let offset = u32::try_from(self.bytes.len()).map_err(|_| TooManyRecords)?;
        u16::try_from(record.rdata.len()).map_err(|_| TooManyRecords)?;
        write_octets(record, &mut self.bytes);
        self.entries.push(Entry { offset, line });
        Ok(())
    }

    /// The octets of all records, in the form that the head of this file shows; another process may
    /// read them.
    #[must_use]
    pub fn as_octets(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads records from octets of that form; `None` if they are anything else. The data are not
    /// looked at.
    #[must_use]
    pub fn from_octets(octets: &[u8]) -> Option<Self> {
        let (mut records, mut rest) = (Self::with_capacity(octets.len()), octets);
        while !rest.is_empty() {
            let (header, behind) = rest.split_first_chunk::<HEADER>()?;
            let [r0, r1, t0, t1, t2, t3, l0, l1, owner_len] = *header;
            let (owner, behind) = behind.split_at_checked(owner_len.into())?;
            name::wire_len(owner).filter(|len| *len == owner.len())?;
            let len = usize::from(u16::from_be_bytes([l0, l1]));
            let (rdata, behind) = behind.split_at_checked(len)?;
            let (rtype, ttl) = (Type(u16::from_be_bytes([r0, r1])), [t0, t1, t2, t3]);
            let ttl = u32::from_be_bytes(ttl);
            records.push(Record { owner, rtype, ttl, rdata }, 0).ok()?;
            rest = behind;
        }
        Some(records)
    }

    /// The files that were read or wanted, some of them several times.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(_, file)| file.as_path())
    }

    /// Whether the first of them are `others`, wherever they stood.
    #[must_use]
    pub fn starts_with(&self, others: &Self) -> bool {
        self.bytes.starts_with(&others.bytes) // each record tells where it ends
    }

    /// Returns the number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Record number `index`.
    ///
    /// # Panics
    /// When `index` is not below [`len`](Self::len).
    #[must_use]
    pub fn get(&self, index: usize) -> Record<'_> {
        let bytes = &self.bytes[self.entries[index].offset as usize..];
        let (header, rest) = bytes.split_at(HEADER);
        let u16_at = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let ttl = u32::from_be_bytes([header[2], header[3], header[4], header[5]]);
        let (owner, rest) = rest.split_at(header[8].into());
        Record { owner, rtype: Type(u16_at(0)), ttl, rdata: &rest[..u16_at(6).into()] }
    }

    /// Where record number `index` stood.
    ///
    /// # Panics
    /// When `index` is not below [`len`](Self::len).
    #[must_use]
    pub fn position(&self, index: usize) -> Position<'_> {
        let behind = self.files.partition_point(|(first, _)| *first <= index);
        let file = behind.checked_sub(1).map_or(Path::new(""), |at| &self.files[at].1);
        Position { file, line: self.entries[index].line }
    }

    /// All records, in the order in which they were read.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Record<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn records_come_back_as_they_went_in_with_their_positions() {
        let mut records = Records::default();
        let one = Record { owner: b"\x01A\0", rtype: Type::A, ttl: 60, rdata: &[192, 0, 2, 1] };
        let two = Record { owner: b"\0", rtype: Type::TXT, ttl: 1, rdata: b"\x02hi" };
        records.begin_file(Path::new("a.zone"));
        records.push(one, 7).unwrap();
        records.begin_file(Path::new("b.zone"));
        records.push(two, 1).unwrap();
        records.begin_file(Path::new("a.zone"));
        records.push(one, 9).unwrap();
        assert!(records.iter().eq([one, two, one]));
        let positions: Vec<_> = (0..3).map(|i| records.position(i)).collect();
        let at = |file, line| Position { file: Path::new(file), line };
        assert_eq!(positions, [at("a.zone", 7), at("b.zone", 1), at("a.zone", 9)]);
    }
}
