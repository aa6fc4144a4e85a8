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
use zonda_engine::Reason;
use zonda_engine::zones::Source;
use zonda_wire::{Rcode, Type};
use zonda_zone::{ChangeError, ChangeRule, Diff, Serial, Zone, is_greater};

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
        // The messages in front of the first that changes something.
        let mut untouched = 0;
        for request in &updates.requests {
            let is_first = Arc::ptr_eq(&present, data);
            let serial = if is_first { Serial::Bump(policy(rule)) } else { Serial::Keep };
            results.push(match judge(&present, grants, request, serial) {
                Err(result) => result,
                Ok((_, diff)) if diff.is_empty() => UpdateResult::done(None),
                Ok((zone, _)) if !is_greater(zone.serial(), data.serial()) => goes_back(),
                Ok((zone, diff)) => {
                    if is_first {
                        untouched = results.len();
                    }
                    let (removed, added) = (diff.removed.len(), diff.added.len());
                    let (from, to) = (data.serial(), zone.serial());
                    present = Arc::new(zone);
                    diffs.push(diff);
                    UpdateResult::done(Some(UpdateChange { from, to, removed, added }))
                }
            });
        }
        let diff = match diffs.pop() {
            None => return Ok((results, None)),
            Some(only) if diffs.is_empty() => Ok(only),
            Some(_) => whole(data, &present),
        };
        let written = diff.and_then(|diff| {
            self.journal.append(name, &diff, (data, &present))?;
            Ok(diff)
        });
        let diff = match written {
            Ok(diff) => diff,
            Err(error) => {
                fail_touched(&mut results, untouched, &error);
                return Ok((results, None));
            }
        };
        let records = narrow(former.records as usize + diff.added.len() - diff.removed.len());
        let history = history::of_edit(&former, &diff, history::limits(access.as_deref()));
        let (apex, source) = (&former.entry.apex, Source::Data(present));
        let entry = entry(apex, source, access, former.number, history);
        let loaded = Some(SystemTime::now());
        self.put_zone(KnownZone { entry, records, loaded, ..KnownZone::clone(&former) });
        Ok((results, Some(former)))
    }
}

/// The result of a message after which the serial would be no greater than that of the version in
/// force, although it is than that of the messages in front, of which there will be no version.
fn goes_back() -> UpdateResult {
    let text = "the serial would go back, as the message came together with others: send it again";
    UpdateResult::refused(Rcode::SERVFAIL, Reason::UpdateFailed, text.to_owned())
}

/// Replaces the results of the first message that has changed the zone, and of those behind it,
/// whose changes are not made.
fn fail_touched(results: &mut [UpdateResult], untouched: usize, error: &EditError) {
    let doubtful = results.iter_mut().skip(untouched).filter(|result| !result.is_sure());
    doubtful.for_each(|result| *result = UpdateResult::of_error(error));
}

/// What several messages have changed together.
fn whole(former: &Zone, next: &Zone) -> Result<Diff, EditError> {
    former.diff(next).map_err(|_| {
        let (owner, rtype, rule) = (next.apex_name().clone(), Type::ANY, ChangeRule::TooLarge);
        EditError::Refused(ChangeError { owner, rtype, rule })
    })
}
