//! What the journal keeps of the former versions of zones beside the changes that files lack.

use crate::edit::entry::{StoredEdit, edits_held, read};
use zonda_config::Config;
use zonda_engine::VersionOrigin;
use zonda_journal::{History, HistoryLimit};
use zonda_zone::{Digest, Zone};

/// The history that is kept of each zone beside the changes that its file lacks, unless a zone has
/// a greater one: each change has 16 octets of memory, so that the history of a thousand zones has
/// 1.6 MB, and a zone whose changes are large costs the disk about as much as a zone of a million
/// records.
pub(super) const HISTORY: HistoryLimit = HistoryLimit { versions: 100, octets: 64 << 20 };

/// The history that is kept of each zone: as much as that with the greatest one has.
pub(super) fn bound(config: &Config) -> HistoryLimit {
    let writable = config.zones.iter().filter(|zone| zone.terms.writable.is_some());
    let histories = writable.filter_map(|zone| Some(zone.access.as_ref()?.transfers.history));
    histories.fold(HISTORY, |bound, history| HistoryLimit {
        versions: bound.versions.max(history.versions),
        octets: bound.octets.max(history.bytes as u64),
    })
}

/// Changes of a zone that the journal has, up to the version in force.
pub struct KeptChanges {
    /// The entries of the journal.
    history: History,
    /// The digest of the version in force, if it is known.
    digest: Option<Digest>,
}

impl KeptChanges {
    /// The changes of entries, and the digest of the version in force.
    pub(super) fn new(history: History, digest: Option<Digest>) -> Self {
        Self { history, digest }
    }

    /// Reads the changes between versions that were served from the disk, oldest first; none if
    /// they have not led to this version, or cannot be read.
    pub fn read(self, data: &Zone) -> Vec<StoredEdit> {
        let mut edits = read(self.history).unwrap_or_default();
        let digest = self.digest.unwrap_or_else(|| data.digest());
        if edits_held(&edits, digest) != Some(edits.len()) {
            return Vec::new();
        }
        // Such an entry leads from a file, which was served with another serial than its own.
        let is_of_file = |edit: &StoredEdit| {
            edit.mark.as_ref().is_some_and(|mark| mark.origin == VersionOrigin::File)
        };
        let served = edits.iter().rposition(is_of_file).map_or(0, |at| at + 1);
        edits.split_off(served)
    }
}
