//! The serial of a file that lacks no change: one that was served before with other records is
//! never served again, as secondaries that have it would not follow.

use super::{EditJournal, FileVersion, LastVersion, MergeResult, State, policy};
use crate::edit::entry::{StoredEdit, read};
use crate::edit::zone_digest::with_sound_digest;
use std::sync::Arc;
use zonda_config::SerialRule;
use zonda_wire::Name;
use zonda_zone::{ChangeSet, Diff, Serial, Zone, is_greater};

impl EditJournal {
    /// The version of a zone that was served last, by the journal if none is in force, unless the
    /// file that is to be served has a greater serial.
    pub(super) fn last_version(
        &self,
        name: &Name,
        file: &Arc<Zone>,
        served: Option<(&Arc<Zone>, usize)>,
    ) -> Option<LastVersion> {
        let is_behind = |serial| !is_greater(file.serial(), serial);
        if let Some((data, _)) = served {
            let is_other = !Arc::ptr_eq(data, file) && is_behind(data.serial());
            let digest = || Some(self.digests.of(name, data));
            return is_other.then(|| LastVersion { serial: data.serial(), digest: digest() });
        }
        let State::Open(journal) = &self.state else { return None };
        let serial = journal.serials(name)?.last;
        if !is_behind(serial) {
            return None;
        }
        let edits = read(journal.newest(name)?).inspect_err(|error| {
            tracing::error!(zone = %name, error, "the last change of a zone cannot be read");
        });
        let digest = edits.ok().and_then(|edits| edits.last().map(StoredEdit::after));
        Some(LastVersion { serial, digest })
    }

    /// Gives the version of a file a serial that leads on from the version that was served last,
    /// which has no lower one: the same serial if the records are the same, else the next one.
    ///
    /// # Errors
    /// When the journal does not take the difference between the file and what is to be served.
    pub(super) fn raise(
        &mut self,
        name: &Name,
        file: &FileVersion,
        (last, served): (LastVersion, Option<(&Arc<Zone>, usize)>),
        rule: SerialRule,
    ) -> Result<MergeResult, String> {
        let has_serial = last.serial == file.zone.serial();
        if last.digest == Some(file.digest) || last.digest.is_none() && has_serial {
            return Ok(MergeResult::Same);
        }
        let (mut zone, mut diff) = with_serial(&file.zone, last.serial)?;
        let is_same = last.digest == Some(file.digest.after(&diff));
        if !is_same {
            (zone, diff) = with_serial(&file.zone, policy(rule).next(last.serial))?;
        }
        self.replace(name, file.digest, &diff)?;
        let (file_serial, former, serial) = (file.zone.serial(), last.serial, zone.serial());
        if is_same {
            tracing::warn!(
                zone = %name,
                file_serial,
                serial,
                "the file of a zone has a lower serial than the zone had, and the same records: \
                 they are served with the serial that they had"
            );
        } else {
            tracing::warn!(
                zone = %name,
                file_serial,
                former,
                serial,
                "the file of a zone has other records than the zone had, and no greater serial: \
                 they are served with the next one, so that secondaries follow"
            );
        }
        Ok(match (served, last.digest) {
            (Some((data, records)), Some(digest)) if is_same => {
                MergeResult::Served(Arc::clone(data), records, digest)
            }
            _ => MergeResult::New(Box::new(zone), diff, None),
        })
    }
}

/// A zone with another serial, and what that changes.
fn with_serial(zone: &Zone, serial: u32) -> Result<(Zone, Diff), String> {
    let changes = ChangeSet { sets: Vec::new(), serial: Serial::Exactly(serial) };
    with_sound_digest(zone, &changes, true)
        .map_err(|error| format!("with another serial, the zone would break a rule: {error}"))
}
