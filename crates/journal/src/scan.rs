//! Reading a journal from its beginning to its end, in memory of fixed size.

use crate::checksum::Checksum;
use crate::record::{
    CHECKSUM_OCTETS, END_OCTETS, HEAD_OCTETS, HEADER_OCTETS, HeadError, Header, Kind, MARK,
    read_head,
};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use zonda_wire::Name;

/// Octets that are read at once.
const BUFFER_OCTETS: usize = 256 << 10;

/// Octets that can be read at any offset: a file, or a copy of one in memory.
pub trait Source {
    /// Reads octets into a buffer; 0 only at the end or for an empty buffer.
    ///
    /// # Errors
    /// Those of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl Source for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match FileExt::read_at(self, buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

impl Source for [u8] {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let count = buffer.len().min(self.len() - start);
        buffer[..count].copy_from_slice(&self[start..start + count]);
        Ok(count)
    }
}

/// A record that was read; its checksums are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'n> {
    /// The name of the record's zone in wire form, in lower case.
    pub zone: &'n [u8],
    /// The kind of the record; never [`Kind::End`].
    pub kind: Kind,
    /// The serial before the change.
    pub from: u32,
    /// The serial after the change.
    pub to: u32,
    /// The offset of the record in the file.
    pub offset: u64,
    /// The octets of the whole record.
    pub octets: u64,
}

/// The end of a file that a crash left: a commit that was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The offset behind the last whole record.
    pub offset: u64,
    /// The octets behind it, which are no whole record, without the zeros at the end.
    pub octets: u64,
}

/// What a whole journal, apart from a torn end, consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The id in the file's head.
    pub id: u64,
    /// Octets of the head and all whole records.
    pub octets: u64,
    /// Whether the last record is an end, so that all records before it are on the disk.
    pub is_ended: bool,
    /// What follows the last whole record, if anything but zeros does.
    pub torn: Option<Torn>,
}

/// Why octets are not a journal that can be used.
#[derive(Debug)]
pub enum Fault {
    /// The octets cannot be read.
    Io(io::Error),
    /// The octets are another kind of file, or a journal of another version.
    OtherFormat,
    /// What was committed at this offset is damaged.
    Damaged {
        /// The offset of the first record that is not whole, or does not follow the one before it.
        offset: u64,
        /// What is wrong at the offset.
        what: &'static str,
    },
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads all records in their order and gives each to `on_record`, which can refuse one by saying
/// why.
///
/// # Errors
/// When octets that were committed are damaged or cannot be read, and when a record was refused.
pub fn read<S: Source + ?Sized>(
    source: &S,
    mut on_record: impl FnMut(&Place<'_>) -> Result<(), &'static str>,
) -> Result<Extent, Fault> {
    let mut reader = Reader::new(source, 0);
    let mut head = [0; HEAD_OCTETS];
    let got = reader.take(&mut head)?;
    let id = read_head(&head[..got]).map_err(|error| match error {
        HeadError::OtherFormat => Fault::OtherFormat,
        HeadError::Damaged => Fault::Damaged { offset: 0, what: "the head of the file" },
    })?;
    let (mut name, mut is_ended) = ([0; 255], false);
    loop {
        let offset = reader.offset();
        match reader.record(id, &mut name)? {
            Candidate::Nothing => return Ok(Extent { id, octets: offset, is_ended, torn: None }),
            Candidate::Broken => {
                let octets = end_of_octets(source, offset)? - offset;
                if octets == 0 {
                    return Ok(Extent { id, octets: offset, is_ended, torn: None });
                }
                if let Some(what) = proof_of_commit(source, id, (offset, is_ended))? {
                    return Err(Fault::Damaged { offset, what });
                }
                let torn = Some(Torn { offset, octets });
                return Ok(Extent { id, octets: offset, is_ended, torn });
            }
            Candidate::Record(header) => {
                is_ended = header.kind == Kind::End;
                if is_ended {
                    continue;
                }
                let place = Place {
                    zone: &name[..header.name_octets.into()],
                    kind: header.kind,
                    from: header.from,
                    to: header.to,
                    offset,
                    octets: header.record_octets(),
                };
                on_record(&place).map_err(|what| Fault::Damaged { offset, what })?;
            }
        }
    }
}

/// Returns the offset behind the last octet from an offset on that is not zero: zeros are room for
/// the next groups.
fn end_of_octets<S: Source + ?Sized>(source: &S, offset: u64) -> io::Result<u64> {
    let (mut reader, mut end) = (Reader::new(source, offset), offset);
    loop {
        let start = reader.offset();
        let octets = reader.next(BUFFER_OCTETS)?;
        if octets.is_empty() {
            return Ok(end);
        }
        if let Some(last) = octets.iter().rposition(|octet| *octet != 0) {
            end = start + last as u64 + 1;
        }
    }
}

/// Looks behind the offset of damage for a record of a later group, which was only written once
/// everything before that group was committed; says what was found. Where the last whole record is
/// no end, the damage may be an end record that a loss of power has kept from the disk: the group
/// right behind it proves nothing, as both are written to the disk in any order.
fn proof_of_commit<S: Source + ?Sized>(
    source: &S,
    id: u64,
    (damage, is_ended): (u64, bool),
) -> io::Result<Option<&'static str>> {
    let uncommitted = if is_ended { damage } else { damage + END_OCTETS };
    let mut buffer = vec![0; BUFFER_OCTETS];
    let (mut start, mut filled) = (damage + 1, 0);
    loop {
        let count = source.read_at(&mut buffer[filled..], start + filled as u64)?;
        filled += count;
        for at in 0..filled.saturating_sub(HEADER_OCTETS - 1) {
            let Some(octets) = buffer[at..].first_chunk::<HEADER_OCTETS>() else { break };
            if !octets.starts_with(&MARK) {
                continue;
            }
            let offset = start + at as u64;
            let Some((header, _)) = Header::decode(octets, id, offset) else { continue };
            let group = offset.checked_sub(header.since_group.into());
            if group.is_some_and(|group| group > uncommitted) {
                return Ok(Some("not a whole record, and records behind it are"));
            }
        }
        if count == 0 {
            return Ok(None);
        }
        let done = filled.saturating_sub(HEADER_OCTETS - 1);
        buffer.copy_within(done..filled, 0);
        (start, filled) = (start + done as u64, filled - done);
    }
}

/// The result of reading at the place of a record.
enum Candidate {
    /// The end of the file.
    Nothing,
    /// A whole record.
    Record(Header),
    /// Octets that are no whole record.
    Broken,
}

/// A source that is read once from an offset on, through a buffer.
struct Reader<'s, S: ?Sized> {
    source: &'s S,
    buffer: Vec<u8>,
    /// The offset of the buffer's first octet in the source.
    start: u64,
    /// How many octets the buffer holds.
    filled: usize,
    /// How many octets of the buffer were taken.
    taken: usize,
}

impl<'s, S: Source + ?Sized> Reader<'s, S> {
    fn new(source: &'s S, start: u64) -> Self {
        Self { source, buffer: vec![0; BUFFER_OCTETS], start, filled: 0, taken: 0 }
    }

    /// Returns the offset of the next octet.
    fn offset(&self) -> u64 {
        self.start + self.taken as u64
    }

    /// Returns up to `max` of the next octets, none at the end.
    fn next(&mut self, max: usize) -> io::Result<&[u8]> {
        if self.taken == self.filled {
            self.start += self.filled as u64;
            (self.filled, self.taken) = (0, 0); // also if reading fails
            self.filled = self.source.read_at(&mut self.buffer, self.start)?;
        }
        let octets = &self.buffer[self.taken..self.filled];
        let octets = &octets[..octets.len().min(max)];
        self.taken += octets.len();
        Ok(octets)
    }

    /// Fills a buffer as far as there are octets; how many.
    fn take(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut got = 0;
        while got < buffer.len() {
            let octets = self.next(buffer.len() - got)?;
            if octets.is_empty() {
                break;
            }
            buffer[got..got + octets.len()].copy_from_slice(octets);
            got += octets.len();
        }
        Ok(got)
    }

    /// Reads a record; `name` receives the name of its zone.
    fn record(&mut self, id: u64, name: &mut [u8; 255]) -> io::Result<Candidate> {
        let (offset, mut octets) = (self.offset(), [0; HEADER_OCTETS]);
        match self.take(&mut octets)? {
            0 => return Ok(Candidate::Nothing),
            HEADER_OCTETS => {}
            _ => return Ok(Candidate::Broken),
        }
        let Some((header, sum)) = Header::decode(&octets, id, offset) else {
            return Ok(Candidate::Broken);
        };
        let mut sum = Checksum::new(sum);
        let name = &mut name[..header.name_octets.into()];
        if self.take(name)? < name.len() {
            return Ok(Candidate::Broken);
        }
        sum.add(name);
        let mut left = header.payload_octets as usize;
        while left > 0 {
            let octets = self.next(left)?;
            if octets.is_empty() {
                return Ok(Candidate::Broken);
            }
            sum.add(octets);
            left -= octets.len();
        }
        let mut checksum = [0; CHECKSUM_OCTETS];
        let is_whole = self.take(&mut checksum)? == checksum.len()
            && u64::from_be_bytes(checksum) == sum.finish()
            && (name.is_empty() || Name::from_wire(name).is_ok());
        Ok(if is_whole { Candidate::Record(header) } else { Candidate::Broken })
    }
}
