//! Messages that change a zone, as the publisher carries them out.

use super::history;
use super::version::narrow;
use super::{ZoneSet, entry};
use crate::edit::EditError;
use crate::edit::journal::policy;
use crate::update::judge::judge;
use crate::update::request::{UpdateChange, UpdateResult, ZoneUpdates};
use crate::zone_set_view::KnownZone;
use std::sync::Arc;
use std::time::SystemTime;
use zonda_engine::zones::Source;
use zonda_wire::Type;
use zonda_zone::{ChangeError, ChangeRule, Diff, Serial, Zone};

/// What became of messages, and the former version of the zone unless nothing has changed.
type Updated = (Vec<UpdateResult>, Option<Arc<KnownZone>>);

impl ZoneSet {
    /// Carries out messages for a zone one after the other, and has it their result as one version,
    /// whose serial has risen once unless they say otherwise. The change is in the journal, but not
    /// committed.
    pub fn update(&mut self, updates: &ZoneUpdates) -> Updated {
        self.try_update(updates).unwrap_or_else(|error| {
            let results = updates.requests.iter().map(|_| UpdateResult::of_error(&error));
            (results.collect(), None)
        })
    }

    /// Carries out messages for a zone.
    ///
    /// # Errors
    /// When the zone cannot be changed; it is as it was then.
    fn try_update(&mut self, updates: &ZoneUpdates) -> Result<Updated, EditError> {
        let name = &updates.zone;
        let former = self.zone(name).ok_or_else(|| EditError::NoSuchZone(name.clone()))?.clone();
        let rule = former.writable.ok_or_else(|| EditError::NotWritable(name.clone()))?;
        let data = former.data().ok_or_else(|| EditError::NotLoaded(name.clone()))?;
        self.journal.check(name)?;
        let access = former.entry.access.clone();
        let grants = access.as_ref().map_or(&[][..], |access| &access.updates);
        let (mut present, mut diffs) = (Arc::clone(data), Vec::new());
        let mut results = Vec::with_capacity(updates.requests.len());
        for request in &updates.requests {
            let is_first = Arc::ptr_eq(&present, data);
            let serial = if is_first { Serial::Bump(policy(rule)) } else { Serial::Keep };
            results.push(match judge(&present, grants, request, serial) {
                Err(result) => result,
                Ok((_, diff)) if diff.is_empty() => UpdateResult::done(None),
                Ok((zone, diff)) => {
                    let (removed, added) = (diff.removed.len(), diff.added.len());
                    let (from, to) = (diff.from, zone.serial());
                    present = Arc::new(zone);
                    diffs.push(diff);
                    UpdateResult::done(Some(UpdateChange { from, to, removed, added }))
                }
            });
        }
        let diff = match diffs.pop() {
            None => return Ok((results, None)),
            Some(only) if diffs.is_empty() => only,
            Some(_) => whole(data, &present)?,
        };
        self.journal.append(name, &diff, (data, &present))?;
        let records = narrow(former.records as usize + diff.added.len() - diff.removed.len());
        let history = history::of_edit(&former, &diff, history::limits(access.as_deref()));
        let (apex, source) = (&former.entry.apex, Source::Data(present));
        let entry = entry(apex, source, access, former.number, history);
        let loaded = Some(SystemTime::now());
        self.put_zone(KnownZone { entry, records, loaded, ..KnownZone::clone(&former) });
        Ok((results, Some(former)))
    }
}

/// What several messages have changed together.
fn whole(former: &Zone, next: &Zone) -> Result<Diff, EditError> {
    former.diff(next).map_err(|_| {
        let (owner, rtype, rule) = (next.apex_name().clone(), Type::ANY, ChangeRule::TooLarge);
        EditError::Refused(ChangeError { owner, rtype, rule })
    })
}
