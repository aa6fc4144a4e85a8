//! The octets of the file's head and of records.

use crate::checksum::Checksum;
use std::hash::{BuildHasher, Hasher, RandomState};
use zonda_wire::Name;

/// What a journal begins with; the last octet is the version of the format.
const MAGIC: [u8; 8] = *b"zondajr1";
/// Octets of the file's head.
pub const HEAD_OCTETS: usize = 24;
/// What each record begins with, so that one can be looked for behind damage.
pub const MARK: [u8; 4] = *b"\xe5ZJ\n";
/// Octets of a record before its name.
pub const HEADER_OCTETS: usize = 30;
/// Octets of the checksum behind a payload.
pub const CHECKSUM_OCTETS: usize = 8;
/// Octets of an end record.
pub const END_OCTETS: u64 = (HEADER_OCTETS + CHECKSUM_OCTETS) as u64;

/// Returns a number for a new file that octets of other files do not have.
pub fn new_id() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Returns the head of a file.
pub fn head(id: u64) -> [u8; HEAD_OCTETS] {
    let mut head = [0; HEAD_OCTETS];
    head[..8].copy_from_slice(&MAGIC);
    head[8..16].copy_from_slice(&id.to_be_bytes());
    let mut sum = Checksum::new(0);
    sum.add(&head[..16]);
    head[16..].copy_from_slice(&sum.finish().to_be_bytes());
    head
}

/// Why the beginning of a file is not the head of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadError {
    /// The file is of another kind, or a journal of another version.
    OtherFormat,
    /// The head is too short, or its checksum is wrong.
    Damaged,
}

/// Reads the id of a file from its head.
pub fn read_head(octets: &[u8]) -> Result<u64, HeadError> {
    if !octets.starts_with(&MAGIC) {
        let is_cut = octets.len() < MAGIC.len() && MAGIC.starts_with(octets);
        return Err(if is_cut { HeadError::Damaged } else { HeadError::OtherFormat });
    }
    let id = octets.get(8..16).and_then(|id| id.try_into().ok()).map(u64::from_be_bytes);
    let id = id.ok_or(HeadError::Damaged)?;
    if octets.get(..HEAD_OCTETS) == Some(&head(id)) { Ok(id) } else { Err(HeadError::Damaged) }
}

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A zone's change.
    Entry = 0,
    /// The entries of the zone before this record are void.
    Forget = 1,
    /// The records before this one are on the disk.
    End = 2,
    /// The file of the zone holds its changes up to a serial.
    Release = 3,
}

/// The fixed part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The record's kind.
    pub kind: Kind,
    /// Octets of the zone's name: 0 of an end, else 1 to 255.
    pub name_octets: u8,
    /// Octets between the start of the record's group and the record.
    pub since_group: u32,
    /// The serial before the change.
    pub from: u32,
    /// The serial after the change.
    pub to: u32,
    /// Octets of the payload.
    pub payload_octets: u32,
}

impl Header {
    /// Octets of the whole record.
    pub fn record_octets(&self) -> u64 {
        let fixed = (HEADER_OCTETS + CHECKSUM_OCTETS) as u64;
        fixed + u64::from(self.name_octets) + u64::from(self.payload_octets)
    }

    /// Returns the header's octets for a record at an offset of a file, and their checksum.
    fn encode(&self, id: u64, offset: u64) -> ([u8; HEADER_OCTETS], u64) {
        let mut octets = [0; HEADER_OCTETS];
        octets[..4].copy_from_slice(&MARK);
        octets[4] = self.kind as u8;
        octets[5] = self.name_octets;
        let numbers = [self.since_group, self.from, self.to, self.payload_octets];
        for (place, number) in octets[6..22].chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        let sum = header_checksum(&octets[..22], id, offset);
        octets[22..].copy_from_slice(&sum.to_be_bytes());
        (octets, sum)
    }

    /// Reads the header of the record at an offset of a file, and its checksum; `None` if it is
    /// none.
    pub fn decode(octets: &[u8; HEADER_OCTETS], id: u64, offset: u64) -> Option<(Self, u64)> {
        let sum = header_checksum(&octets[..22], id, offset);
        if !octets.starts_with(&MARK) || octets[22..] != sum.to_be_bytes() {
            return None;
        }
        let number =
            |at: usize| octets[at..].first_chunk().map_or(0, |number| u32::from_be_bytes(*number));
        let kind = match octets[4] {
            0 => Kind::Entry,
            1 => Kind::Forget,
            2 => Kind::End,
            3 => Kind::Release,
            _ => return None,
        };
        let [since_group, from, to, payload_octets] = [6, 10, 14, 18].map(number);
        let name_octets = octets[5];
        let header = Self { kind, name_octets, since_group, from, to, payload_octets };
        ((kind == Kind::End) == (name_octets == 0)).then_some((header, sum))
    }
}

/// Computes the checksum of a header, which holds at one offset of one file only.
fn header_checksum(octets: &[u8], id: u64, offset: u64) -> u64 {
    let mut sum = Checksum::new(id);
    sum.add(&offset.to_be_bytes());
    sum.add(octets);
    sum.finish()
}

/// Appends a record that will lie at an offset of a file. The header must give the octets of `name`
/// and `payload`.
pub fn push(
    out: &mut Vec<u8>,
    (id, offset): (u64, u64),
    header: &Header,
    name: &[u8],
    payload: &[u8],
) {
    debug_assert_eq!(usize::from(header.name_octets), name.len());
    debug_assert_eq!(header.payload_octets as usize, payload.len());
    let (octets, sum) = header.encode(id, offset);
    let mut sum = Checksum::new(sum);
    sum.add(name);
    sum.add(payload);
    out.extend_from_slice(&octets);
    out.extend_from_slice(name);
    out.extend_from_slice(payload);
    out.extend_from_slice(&sum.finish().to_be_bytes());
}

/// A whole record in memory.
pub struct Record<'b> {
    /// The record's fixed part.
    pub header: Header,
    /// The zone's name in wire form; empty of an end.
    pub name: &'b [u8],
    /// The payload as it was appended.
    pub payload: &'b [u8],
}

impl<'b> Record<'b> {
    /// Reads a record from all its octets; `None` if anything in it is wrong.
    pub fn decode(octets: &'b [u8], id: u64, offset: u64) -> Option<Self> {
        let (header, rest) = octets.split_first_chunk()?;
        let (header, sum) = Header::decode(header, id, offset)?;
        let (content, checksum) = rest.split_last_chunk()?;
        let mut found = Checksum::new(sum);
        found.add(content);
        let (name, payload) = content.split_at_checked(header.name_octets.into())?;
        let is_whole = payload.len() == header.payload_octets as usize
            && found.finish() == u64::from_be_bytes(*checksum)
            && (name.is_empty() || Name::from_wire(name).is_ok());
        is_whole.then_some(Self { header, name, payload })
    }
}
