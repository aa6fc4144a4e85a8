//! Entries of the journal: what an edit changed, and the version that it began with.
//!
//! ```text
//! form 2 | digest of the zone before the edit 8 | difference, as `Diff::write_octets` writes it
//! ```
//!
//! By the digest a file is recognized whose zone is the one before or behind an edit. Then nothing
//! was edited by hand, and what the file lacks is known without a comparison.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use zonda_journal::History;
use zonda_wire::Name;
use zonda_zone::{Diff, Digest, Zone};

/// The form of an entry; the first one had no digest, and its first octet was 1.
const FORM: u8 = 2;

/// An edit as the journal holds it.
pub struct StoredEdit {
    /// The digest of the zone before the edit.
    pub base: Digest,
    /// The records that the edit changed.
    pub diff: Diff,
}

impl StoredEdit {
    /// The octets of an edit.
    pub fn octets(base: Digest, diff: &Diff) -> Vec<u8> {
        let mut octets = vec![FORM];
        octets.extend_from_slice(&base.to_u64().to_be_bytes());
        diff.write_octets(&mut octets);
        octets
    }

    /// Reads an edit between two serials; `None` if the octets are anything else.
    fn from_octets(from: u32, to: u32, octets: &[u8]) -> Option<Self> {
        let ([FORM], octets) = octets.split_first_chunk()? else { return None };
        let (base, octets) = octets.split_first_chunk()?;
        let base = Digest::from_u64(u64::from_be_bytes(*base));
        Some(Self { base, diff: Diff::from_octets(from, to, octets)? })
    }

    /// The digest of the zone after the edit.
    fn after(&self) -> Digest {
        self.base.after(&self.diff)
    }
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
        match self.zones.get(name) {
            Some((known, digest)) if Weak::as_ptr(known) == Arc::as_ptr(zone) => *digest,
            _ => zone.digest(),
        }
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
