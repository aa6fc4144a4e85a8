//! Messages that change a zone, as the publisher carries them out.

use super::history;
use super::version::narrow;
use super::{ZoneSet, entry};
use crate::edit::EditError;
use crate::edit::journal::{mark_now, policy};
use crate::load_time::LoadTime;
use crate::update::judge::judge;
use crate::update::request::{UpdateChange, UpdateResult, ZoneUpdates};
use crate::zone_set_view::KnownZone;
use std::sync::Arc;
use zonda_deferral::faults::survives;
use zonda_engine::zones::Source;
use zonda_engine::{Reason, VersionOrigin};
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
        let rule = former.serial_rule()?;
        let data = former.data().ok_or_else(|| EditError::NotLoaded(name.clone()))?;
        self.journal.check(name)?;
        self.frozen.check(name)?;
        let access = former.entry.access.clone();
        let grants = access.as_ref().map_or(&[][..], |access| &access.updates);
        let (mut present, mut diffs) = (Arc::clone(data), Vec::new());
        let mut results = Vec::with_capacity(updates.requests.len());
        // The messages in front of the first that changes something.
        let mut untouched = 0;
        for request in &updates.requests {
            let is_first = Arc::ptr_eq(&present, data);
            let serial = if is_first { Serial::Bump(policy(rule)) } else { Serial::Keep };
            // A panic costs the message at hand alone.
            let mut judged = Err(UpdateResult::of_error(&EditError::PublisherFailed));
            let _ = survives(|| judged = judge(&present, grants, request, serial));
            results.push(match judged {
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
        let mark = mark_now(VersionOrigin::Update);
        let diff = match diffs.len() {
            0 => return Ok((results, None)),
            1 => Ok(diffs.remove(0)),
            _ => whole(&diffs, &present),
        };
        let written = diff.and_then(|diff| {
            self.journal.append(name, (&diff, mark), (data, &present))?;
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
        let history = history::of_edit(&former, (&diff, mark), history::limits(access.as_deref()));
        let (apex, source) = (&former.entry.apex, Source::Data(present));
        let entry = Arc::new(entry(apex, source, access, former.number, history));
        let loaded = Some(LoadTime::now());
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

/// What several messages have changed together. It is made of what each has changed: to compare the
/// versions would read all names of each changed shard, some 200 for each message.
fn whole(diffs: &[Diff], next: &Zone) -> Result<Diff, EditError> {
    Diff::of_all(&diffs.iter().collect::<Vec<_>>()).map_err(|_| {
        let (owner, rtype, rule) = (next.apex_name().clone(), Type::ANY, ChangeRule::TooLarge);
        EditError::Refused(ChangeError { owner, rtype, rule })
    })
}
