//! A difference between two versions of a zone as octets, for journals.
//!
//! ```text
//! version 1 | octets of the removed records 4 | removed records | added records
//! record    type 2 | TTL 4 | octets of the data 2 | octets of the owner 1 | owner | data
//! ```
//! Numbers are big-endian, names uncompressed. The serials are not among the octets: a journal has
//! them beside each entry.

use super::diff::Diff;
use crate::records::Records;

/// The version of the form.
const VERSION: u8 = 1;
/// Octets before the records.
const HEAD_OCTETS: usize = 5;

impl Diff {
    /// Appends the records of the difference to a buffer.
    pub fn write_octets(&self, out: &mut Vec<u8>) {
        let (removed, added) = (self.removed.as_octets(), self.added.as_octets());
        out.reserve(HEAD_OCTETS + removed.len() + added.len());
        out.push(VERSION);
        let len = removed.len() as u32; // an arena has at most 4 GiB
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(removed);
        out.extend_from_slice(added);
    }

    /// Reads a difference from the octets that [`write_octets`](Self::write_octets) has written;
    /// `None` if they are anything else. The data of records are not looked at.
    #[must_use]
    pub fn from_octets(from: u32, to: u32, octets: &[u8]) -> Option<Self> {
        let (head, records) = octets.split_first_chunk::<HEAD_OCTETS>()?;
        let [VERSION, len @ ..] = head else { return None };
        let (removed, added) = records.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        let (removed, added) = (Records::from_octets(removed)?, Records::from_octets(added)?);
        Some(Self { from, to, removed, added })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::records::Record;
    use zonda_wire::Type;

    /// A difference with two records.
    fn diff() -> Diff {
        let mut diff = Diff { from: 1, to: 2, ..Diff::default() };
        let one = Record { owner: b"\x01A\0", rtype: Type::A, ttl: 60, rdata: &[192, 0, 2, 1] };
        let two = Record { owner: b"\0", rtype: Type::TXT, ttl: 1, rdata: b"\x02hi" };
        diff.removed.push(one, 0).unwrap();
        diff.added.push(two, 0).unwrap();
        diff.added.push(one, 0).unwrap();
        diff
    }

    #[test]
    fn a_difference_is_read_as_it_was_written() {
        let mut octets = Vec::new();
        diff().write_octets(&mut octets);
        assert_eq!(Diff::from_octets(1, 2, &octets), Some(diff()));
    }

    #[test]
    fn no_part_of_the_octets_and_no_other_version_is_a_difference() {
        let mut octets = Vec::new();
        diff().write_octets(&mut octets);
        let whole_records = [HEAD_OCTETS + 16, HEAD_OCTETS + 16 + 13, octets.len()];
        for len in 0..octets.len() {
            let read = Diff::from_octets(1, 2, &octets[..len]);
            assert_eq!(read.is_some(), whole_records.contains(&len), "{len} octets");
        }
        octets[0] = 2;
        assert_eq!(Diff::from_octets(1, 2, &octets), None);
    }
}
