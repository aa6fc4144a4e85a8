//! Entries of the journal: what an edit changed, and the version that it began with.
//!
//! ```text
//! form 3 | digest of the zone before the edit 8 | seconds since 1970 at which it was made 8
//!        | what made it 1 | difference, as `Diff::write_octets` writes it
//! ```
//! Form 2, which former versions of the server wrote, lacks the time and what made it.
//!
//! By the digest a file is recognized whose zone is the one before or behind an edit. Then nothing
//! was edited by hand, and what the file lacks is known without a comparison.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use zonda_engine::{VersionMark, VersionOrigin};
use zonda_journal::History;
use zonda_wire::{Name, Type};
use zonda_zone::{Diff, Digest, Record, Zone};

/// The form of an entry; the first one had no digest, and its first octet was 1.
const FORM: u8 = 3;
/// The form of an entry that former versions of the server wrote, without a mark.
const UNMARKED_FORM: u8 = 2;
/// The octets of the five numbers at the end of an SOA record's data, the serial first.
const SOA_NUMBERS_OCTETS: usize = 20;
/// What the octet of each origin stands for, from 1 on.
const ORIGINS: [VersionOrigin; 4] =
    [VersionOrigin::File, VersionOrigin::Edit, VersionOrigin::Update, VersionOrigin::Rollback];

/// An edit as the journal holds it.
pub struct StoredEdit {
    /// The digest of the zone before the edit.
    pub base: Digest,
    /// When the edit was made, and what made it, if the entry says that.
    pub mark: Option<VersionMark>,
    /// The records that the edit changed.
    pub diff: Diff,
}

impl StoredEdit {
    /// The octets of an edit.
    pub fn octets(base: Digest, mark: VersionMark, diff: &Diff) -> Vec<u8> {
        let place = ORIGINS.iter().position(|origin| *origin == mark.origin);
        let mut octets = vec![FORM];
        octets.extend_from_slice(&base.to_u64().to_be_bytes());
        octets.extend_from_slice(&mark.made_at.to_be_bytes());
        octets.push(place.map_or(0, |place| place as u8 + 1)); // there are four
        diff.write_octets(&mut octets);
        octets
    }

    /// Reads an edit between two serials; `None` if the octets are anything else.
    fn from_octets(from: u32, to: u32, octets: &[u8]) -> Option<Self> {
        let (form, octets) = octets.split_first()?;
        let (base, mut octets) = octets.split_first_chunk()?;
        let base = Digest::from_u64(u64::from_be_bytes(*base));
        let mark = match *form {
            UNMARKED_FORM => None,
            FORM => {
                let (made_at, rest) = octets.split_first_chunk()?;
                let (origin, rest) = rest.split_first()?;
                octets = rest;
                let origin = usize::from(*origin).checked_sub(1).and_then(|at| ORIGINS.get(at));
                let made_at = u64::from_be_bytes(*made_at);
                origin.map(|origin| VersionMark { made_at, origin: *origin })
            }
            _ => return None,
        };
        Some(Self { base, mark, diff: Diff::from_octets(from, to, octets)? })
    }

    /// The digest of the zone after the edit.
    pub fn after(&self) -> Digest {
        self.base.after(&self.diff)
    }

    /// Whether the edit leads from what a file had, which was not served so.
    pub fn leads_from_file(&self) -> bool {
        self.mark.is_some_and(|mark| mark.origin == VersionOrigin::File)
    }

    /// Whether the edit leads from a file to the same records with another serial at most, without
    /// digests of the zone, which another serial makes wrong.
    pub fn only_raises(&self) -> bool {
        let added = self.diff.added.iter().map(without_serial);
        let removed = self.diff.removed.iter().filter(|record| record.rtype != Type::ZONEMD);
        self.leads_from_file() && removed.map(without_serial).eq(added)
    }
}

/// A record, with the serial 0 if it is an SOA record.
fn without_serial(record: Record<'_>) -> (&[u8], Type, u32, Cow<'_, [u8]>) {
    let mut rdata = Cow::Borrowed(record.rdata);
    if record.rtype == Type::SOA
        && let Some(at) = record.rdata.len().checked_sub(SOA_NUMBERS_OCTETS)
    {
        rdata.to_mut()[at..at + 4].fill(0);
    }
    (record.owner, record.rtype, record.ttl, rdata)
}

/// Whether the oldest of the changes that the file of a zone lacks is no edit.
pub fn is_raised(unreleased: Option<(u32, History)>) -> bool {
    let edits = unreleased.and_then(|(_, history)| read(history).ok());
    edits.is_some_and(|edits| edits.first().is_some_and(StoredEdit::only_raises))
}

/// Reads edits from the journal, oldest first.
///
/// # Errors
/// What is wrong with the journal.
pub fn read(history: History) -> Result<Vec<StoredEdit>, String> {
    history
        .map(|change| {
            let change = change.map_err(|error| error.to_string())?;
            let edit = StoredEdit::from_octets(change.from, change.to, &change.payload);
            edit.ok_or_else(|| "the journal has a change of another version of Zonda".to_owned())
        })
        .collect()
}

/// How many of some edits in a row a zone has, the last of them if several answers are right;
/// `None` if the zone is none of the versions between them.
pub fn edits_held(edits: &[StoredEdit], digest: Digest) -> Option<usize> {
    if edits.last()?.after() == digest {
        return Some(edits.len());
    }
    edits.iter().rposition(|edit| edit.base == digest)
}

/// A version of a zone whose digest is known. It keeps no records in memory.
type KnownVersion = (Weak<Zone>, Digest);

/// The digests of the versions in force of zones that can be changed, so that an edit costs what it
/// changes, and not what the zone has.
#[derive(Default)]
pub struct Digests {
    /// The versions by the zones' names in lower case.
    zones: HashMap<Name, KnownVersion>,
    /// The versions of zones before edits that are not committed, in the order of the edits.
    former: Vec<(Name, Option<KnownVersion>)>,
}

impl Digests {
    /// The digest of a version of a zone: read from the zone if it is not known.
    pub fn of(&self, name: &Name, zone: &Arc<Zone>) -> Digest {
        self.known(name, zone).unwrap_or_else(|| zone.digest())
    }

    /// The digest of a version of a zone, if it is known.
    pub fn known(&self, name: &Name, zone: &Arc<Zone>) -> Option<Digest> {
        let (known, digest) = self.zones.get(name)?;
        (Weak::as_ptr(known) == Arc::as_ptr(zone)).then_some(*digest)
    }

    /// Notes the digest of the version in force.
    pub fn set(&mut self, name: &Name, zone: &Arc<Zone>, digest: Digest) {
        self.zones.insert(name.clone(), (Arc::downgrade(zone), digest));
    }

    /// Notes the digest of a version that an edit makes, until the edit is committed.
    pub fn set_pending(&mut self, name: &Name, zone: &Arc<Zone>, digest: Digest) {
        let former = self.zones.insert(name.clone(), (Arc::downgrade(zone), digest));
        self.former.push((name.clone(), former));
    }

    /// Has what was noted since the last commit stay.
    pub fn commit(&mut self) {
        self.former.clear();
    }

    /// Goes back to the versions before the edits that could not be committed.
    pub fn roll_back(&mut self) {
        while let Some((name, former)) = self.former.pop() {
            match former {
                Some(former) => _ = self.zones.insert(name, former),
                None => _ = self.zones.remove(&name),
            }
        }
    }

    /// Drops what is known of a zone that is removed.
    pub fn forget(&mut self, name: &Name) {
        self.zones.remove(name);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use zonda_zone::Records;

    /// A difference with one record.
    fn diff() -> Diff {
        let mut diff = Diff { from: 7, to: 8, ..Diff::default() };
        let one = Record { owner: b"\x01a\0", rtype: Type::A, ttl: 60, rdata: &[192, 0, 2, 1] };
        diff.added.push(one, 0).unwrap();
        diff
    }

    #[test]
    fn an_entry_has_when_and_by_what_it_was_made() {
        for origin in ORIGINS {
            let mark = VersionMark { made_at: 1_790_000_000, origin };
            let octets = StoredEdit::octets(Digest::from_u64(5), mark, &diff());
            let read = StoredEdit::from_octets(7, 8, &octets).unwrap();
            assert_eq!(
                (read.base, read.mark, read.diff),
                (Digest::from_u64(5), Some(mark), diff())
            );
            assert!(StoredEdit::from_octets(7, 8, &octets[..17]).is_none());
        }
    }

    /// Records of an apex: an SOA record with a serial and a refresh time, and records of types.
    fn records(numbers: Option<(u32, u32)>, types: &[Type]) -> Records {
        let mut records = Records::default();
        if let Some((serial, refresh)) = numbers {
            let numbers = [serial, refresh, 3, 4, 5].map(u32::to_be_bytes).concat();
            let rdata = [&[0, 0], &numbers[..]].concat();
            let soa = Record { owner: b"\x01a\0", rtype: Type::SOA, ttl: 60, rdata: &rdata };
            records.push(soa, 0).unwrap();
        }
        for rtype in types {
            let record = Record { owner: b"\x01a\0", rtype: *rtype, ttl: 60, rdata: &[0; 4] };
            records.push(record, 0).unwrap();
        }
        records
    }

    #[test]
    fn an_entry_that_leads_from_a_file_to_another_serial_alone_is_told_from_edits() {
        let (file, edit) = (VersionOrigin::File, VersionOrigin::Edit);
        for (origin, removed, added, expected) in [
            (file, records(Some((7, 1)), &[]), records(Some((8, 1)), &[]), true),
            (file, records(Some((7, 1)), &[Type::ZONEMD]), records(Some((8, 1)), &[]), true),
            (file, records(None, &[]), records(None, &[]), true),
            (edit, records(Some((7, 1)), &[]), records(Some((8, 1)), &[]), false),
            (file, records(Some((7, 1)), &[]), records(Some((8, 2)), &[]), false),
            (file, records(Some((7, 1)), &[]), records(Some((8, 1)), &[Type::A]), false),
            (file, records(Some((7, 1)), &[Type::A]), records(Some((8, 1)), &[]), false),
            (file, records(Some((7, 1)), &[]), records(Some((8, 1)), &[Type::ZONEMD]), false),
        ] {
            let (base, mark) = (Digest::from_u64(5), Some(VersionMark { made_at: 1, origin }));
            let diff = Diff { from: 7, to: 8, removed, added };
            let edit = StoredEdit { base, mark, diff };
            assert_eq!(edit.only_raises(), expected, "{:?}", edit.diff);
        }
    }

    #[test]
    fn an_entry_of_a_former_server_is_read_without_a_mark() {
        let mut octets = vec![UNMARKED_FORM];
        octets.extend_from_slice(&5_u64.to_be_bytes());
        diff().write_octets(&mut octets);
        let read = StoredEdit::from_octets(7, 8, &octets).unwrap();
        assert_eq!((read.base, read.mark, read.diff), (Digest::from_u64(5), None, diff()));
        octets[0] = FORM + 1;
        assert!(StoredEdit::from_octets(7, 8, &octets).is_none());
    }
}
