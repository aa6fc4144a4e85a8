//! The serial of a file beside that of the version of its zone that was served last: secondaries
//! that have that version follow to a greater serial alone (rfc1982), so that a writable zone never
//! goes back to a serial that it had.
//!
//! The version served last is the one in force; at a start, the one that the newest entry of the
//! journal leads to. Versions are told apart by their digests, whatever the times of files say. A
//! file with other records and no greater serial is served with the next serial: an entry leads
//! from the file to what is served, so that the next start serves the same. Of a file that is
//! served as it stands, an entry without records has the serial and the digest.
//!
//! Deliberately absent: zones of which the journal has no entry. At a start, their files are served
//! as they stand.

use super::{EditJournal, FileVersion, MergeResult, State, policy};
use crate::edit::entry::{StoredEdit, read};
use crate::edit::zone_digest::with_sound_digest;
use std::sync::Arc;
use zonda_config::SerialRule;
use zonda_wire::{Name, Type};
use zonda_zone::snapshot::is_greater;
use zonda_zone::{ChangeSet, Diff, Digest, Serial, Zone};

/// The version of a zone that was served last.
struct LastVersion {
    /// The serial of the version.
    serial: u32,
    /// The digest of the version; none if it is not known.
    digest: Option<Digest>,
}

impl EditJournal {
    /// Finds what to serve of a file that lacks no edit: the file as it stands, or with another
    /// serial if it has none that is greater than that of the version served last.
    ///
    /// # Errors
    /// When the zone cannot have another serial.
    pub(super) fn follow_last(
        &mut self,
        name: &Name,
        file: &FileVersion,
        served: Option<(&Arc<Zone>, usize)>,
        rule: Option<SerialRule>,
    ) -> Result<MergeResult, String> {
        let Some(rule) = rule else {
            self.forget(name); // an operator has the zone not writable any more
            return Ok(MergeResult::Same);
        };
        let Some(last) = self.last_version(name, file, served) else {
            return Ok(MergeResult::Same);
        };
        let (serial, former) = (file.zone.serial(), last.serial);
        let is_unknown = last.digest.is_none() && serial == former;
        if last.digest == Some(file.digest) || is_unknown {
            return Ok(MergeResult::Same);
        }
        if is_greater(serial, former) {
            self.note(name, file);
            return Ok(MergeResult::Same);
        }
        if is_signed(&file.zone) {
            tracing::warn!(
                zone = %name,
                file_serial = serial,
                former,
                "the file of a signed zone has other records than the zone had, and no greater \
                 serial: it is served as it stands, as its signatures hold for this serial alone, \
                 and secondaries do not follow; sign the zone with a serial greater than the \
                 former one"
            );
            self.note(name, file);
            return Ok(MergeResult::Same);
        }
        self.raise(name, file, (&last, served), rule)
    }

    /// Finds the version of a zone that was served last: the one in force, else the last one that
    /// the journal knows.
    fn last_version(
        &self,
        name: &Name,
        file: &FileVersion,
        served: Option<(&Arc<Zone>, usize)>,
    ) -> Option<LastVersion> {
        if let Some((data, _)) = served {
            let is_file = Arc::ptr_eq(data, &file.zone); // no record differs
            let digest = if is_file { file.digest } else { self.digests.of(name, data) };
            return Some(LastVersion { serial: data.serial(), digest: Some(digest) });
        }
        let State::Open(journal) = &self.state else { return None };
        let serial = journal.serials(name)?.last;
        if is_greater(file.zone.serial(), serial) {
            return Some(LastVersion { serial, digest: None }); // whatever records it had
        }
        let edits = read(journal.newest(name)?).inspect_err(|error| {
            tracing::error!(zone = %name, error, "the last change of a zone cannot be read");
        });
        let digest = edits.ok().and_then(|edits| edits.last().map(StoredEdit::after));
        Some(LastVersion { serial, digest })
    }

    /// Gives the zone of a file the serial of the version served last if it has the same records,
    /// else the next one.
    ///
    /// # Errors
    /// When the zone cannot have another serial.
    fn raise(
        &mut self,
        name: &Name,
        file: &FileVersion,
        (last, served): (&LastVersion, Option<(&Arc<Zone>, usize)>),
        rule: SerialRule,
    ) -> Result<MergeResult, String> {
        let (file_serial, former) = (file.zone.serial(), last.serial);
        let (_, diff) = with_serial(&file.zone, former, false)?;
        let is_same = last.digest == Some(file.digest.after(&diff));
        let serial = if is_same { former } else { policy(rule).next(former) };
        let (zone, diff) = with_serial(&file.zone, serial, true)?;
        self.hold(name, file, &diff);
        if is_same {
            tracing::warn!(
                zone = %name,
                file_serial,
                former,
                serial,
                "the file of a zone has the records that the zone had, and a lower serial: it is \
                 served with the serial that the zone had"
            );
        } else {
            tracing::warn!(
                zone = %name,
                file_serial,
                former,
                serial,
                "the file of a zone has other records than the zone had, and no greater serial: it \
                 is served with the next serial of the zone, so that secondaries follow"
            );
        }
        Ok(match (served, last.digest) {
            (Some((data, records)), Some(digest)) if is_same => {
                MergeResult::Served(Arc::clone(data), records, digest)
            }
            _ => MergeResult::New(Box::new(zone), diff, None),
        })
    }

    /// Has the journal know that a file is served as it stands, in place of all that it knew of the
    /// zone; nothing if it knew nothing.
    fn note(&mut self, name: &Name, file: &FileVersion) {
        let State::Open(journal) = &self.state else { return };
        if journal.serials(name).is_none() {
            return;
        }
        let serial = file.zone.serial();
        self.hold(name, file, &Diff { from: serial, to: serial, ..Diff::default() });
    }

    /// Has the journal hold what leads from a file to what is served of it, in place of all that it
    /// had of the zone. If it does not take that, the file is served all the same, and the log says
    /// so: a start may serve another serial.
    fn hold(&mut self, name: &Name, file: &FileVersion, diff: &Diff) {
        match self.replace(name, file.digest, diff) {
            Ok(()) => _ = self.raised.insert(name.clone()),
            Err(error) => tracing::error!(
                zone = %name,
                error,
                "the journal does not take the serial with which a file is served"
            ),
        }
    }
}

/// Whether another serial would break signatures of a zone: it has keys, or signatures at its apex.
fn is_signed(zone: &Zone) -> bool {
    zone.apex_node().sets().any(|set| matches!(set.rtype, Type::DNSKEY | Type::RRSIG))
}

/// A zone with another serial, and what that changes; if a digest of the zone is removed, the log
/// says so if `is_logged`.
fn with_serial(zone: &Zone, serial: u32, is_logged: bool) -> Result<(Zone, Diff), String> {
    let changes = ChangeSet { sets: Vec::new(), serial: Serial::Exactly(serial) };
    with_sound_digest(zone, &changes, is_logged)
        .map_err(|error| format!("with another serial, the zone would break a rule: {error}"))
}
