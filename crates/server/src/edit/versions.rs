//! The versions of a zone that are held, and the way back to one of them.
//!
//! What told each version from the one before is in memory where the zone is transferred to other
//! servers, and in the journal where it is writable; the longer of both is taken.

use super::{Edit, EditError};
use crate::control::Control;
use crate::zone_set_view::KnownZone;
use std::sync::Arc;
use zonda_engine::{VersionMark, VersionOrigin};
use zonda_wire::{Name, Type};
use zonda_zone::{ChangeError, ChangeRule, ChangeSet, Diff, Serial, SetChange, Zone};

/// How often a zone that changes meanwhile is looked at again before a rollback gives up.
const ATTEMPTS_MAX: usize = 5;

/// A version of a zone that is in force, or that the zone can be brought back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldVersion {
    /// The serial of the version.
    pub serial: u32,
    /// When the version was made, and what made it, if that is known.
    pub mark: Option<VersionMark>,
    /// How many records the version has removed and added, if the one before is held.
    pub changes: Option<[usize; 2]>,
}

/// A difference that has led to a version, and the mark of that.
type Change = (Arc<Diff>, Option<VersionMark>);

/// The version of a zone in force, and the changes that have led to it, oldest first.
struct HeldChanges {
    zone: Arc<KnownZone>,
    data: Arc<Zone>,
    changes: Vec<Change>,
}

impl Control {
    /// The versions of a zone that are held, the one in force first. Blocks.
    ///
    /// # Errors
    /// When there is no such zone, or it has no data.
    pub fn versions(&self, name: &Name) -> Result<Vec<HeldVersion>, EditError> {
        let HeldChanges { zone, data, changes } = self.held_changes(name)?;
        let made = |(diff, mark): &Change| HeldVersion {
            serial: diff.to,
            mark: *mark,
            changes: Some([diff.removed.len(), diff.added.len()]),
        };
        let mut versions: Vec<HeldVersion> = changes.iter().rev().map(made).collect();
        let oldest = match changes.first() {
            Some((first, _)) => HeldVersion { serial: first.from, mark: None, changes: None },
            None => {
                let origin = zone.unit.origin();
                let made_at = zone.loaded.map(|loaded| loaded.since_epoch().as_secs());
                let mark = made_at.map(|made_at| VersionMark { made_at, origin });
                HeldVersion { serial: data.serial(), mark, changes: None }
            }
        };
        versions.push(oldest);
        Ok(versions)
    }

    /// Gives a zone the records that its version with a serial had, as an edit with a greater
    /// serial; returns what differs. Blocks.
    ///
    /// # Errors
    /// When the version is not held, or the zone cannot be changed; it is as it was then.
    pub fn rollback(&self, name: &Name, serial: u32, is_dry_run: bool) -> Result<Diff, EditError> {
        for _ in 0..ATTEMPTS_MAX {
            let HeldChanges { zone, data, changes } = self.held_changes(name)?;
            let name = zone.entry.apex.to_lowercase();
            zone.serial_rule()?;
            if serial == data.serial() {
                return Err(EditError::IsInForce(serial));
            }
            let first = changes.iter().rposition(|(diff, _)| diff.from == serial);
            let first = first.ok_or_else(|| EditError::NoSuchVersion(name.clone(), serial))?;
            let diffs: Vec<&Diff> = changes[first..].iter().map(|(diff, _)| &**diff).collect();
            let sets = way_back(&data, &diffs).map_err(EditError::Refused)?.sets;
            let (if_serial, origin) = (Some(data.serial()), VersionOrigin::Rollback);
            let edit = Edit { zone: name, sets, if_serial, if_life: None, is_dry_run, origin };
            match self.edit(edit) {
                Err(EditError::SerialIs(_)) => {} // it was changed meanwhile
                result => return result,
            }
        }
        let now = self.state().zone_set.zone(name).and_then(|zone| Some(zone.data()?.serial()));
        Err(EditError::SerialIs(now.unwrap_or_default()))
    }

    /// The version of a zone in force, and the changes that have led to it.
    fn held_changes(&self, name: &Name) -> Result<HeldChanges, EditError> {
        let name = name.to_lowercase();
        let held = self.publisher().with_kept_changes(&name);
        let held = held.map_err(|_| EditError::PublisherFailed)?;
        let (zone, kept) = held.ok_or_else(|| EditError::NoSuchZone(name.clone()))?;
        let data = zone.data().cloned().ok_or(EditError::NotLoaded(name))?;
        let history = zone.entry.history.as_ref();
        let history = history.filter(|history| history.serial() == Some(data.serial()));
        let changes = history.iter().flat_map(|history| history.changes());
        let mut changes: Vec<Change> =
            changes.map(|(diff, mark)| (Arc::clone(diff), mark)).collect();
        let edits = kept.map(|kept| kept.read(&data)).unwrap_or_default();
        if edits.len() > changes.len() {
            changes = edits.into_iter().map(|edit| (Arc::new(edit.diff), edit.mark)).collect();
        }
        Ok(HeldChanges { zone, data, changes })
    }
}

/// The changes that undo some differences, which have led to a version. The serial of the SOA
/// record stays that of the version, so that it rises as with any edit.
fn way_back(data: &Zone, diffs: &[&Diff]) -> Result<ChangeSet, ChangeError> {
    let back = Diff::of_all(diffs).map_err(|_| {
        let (owner, rtype, rule) = (data.apex_name().clone(), Type::ANY, ChangeRule::TooLarge);
        ChangeError { owner, rtype, rule }
    })?;
    let mut changes = data.changes_of(&back.reversed())?;
    changes.serial = Serial::Keep;
    for set in &mut changes.sets {
        if let SetChange::Put { rtype: Type::SOA, data: soa, .. } = set {
            for octets in soa.iter_mut() {
                let at = octets.len().saturating_sub(20);
                if let Some(serial) = octets[at..].first_chunk_mut() {
                    *serial = data.serial().to_be_bytes();
                }
            }
        }
    }
    Ok(changes)
}
