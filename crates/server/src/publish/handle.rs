//! What other threads have of the publisher.

use super::{Publisher, ServerState, Work};
use crate::edit::frozen::FreezeError;
use crate::edit::{Edit, EditError};
use crate::feed::Update;
use crate::load::LoadedUnit;
use crate::program::Code;
use crate::unit_states::{Plan, UnitStates};
use crate::update::processor::{OpenUpdates, SharedUpdates};
use crate::update::queue::UpdateQueue;
use crate::zone_set::fed_zone::{FedOwner, NewFedZone};
use crate::zone_set::listings::ListingChanges;
use crate::zone_set::{Outcome, ZoneAndChanges};
use arc_swap::ArcSwap;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;
use zonda_balance::PoolPlan;
use zonda_config::Config;
use zonda_wire::Name;
use zonda_zone::{ChangeError, Diff};

/// Sends work to the publisher, and reads what it has published.
#[derive(Clone)]
pub struct PublisherHandle {
    pub(super) sender: SyncSender<Work>,
    pub(super) state: Arc<ArcSwap<ServerState>>,
    /// Whether the publisher has not ended.
    pub(super) alive: Weak<()>,
}

/// The publisher panicked over the work, or is down.
#[derive(Clone, Copy, Debug)]
pub struct PublisherFailed;

impl std::fmt::Display for PublisherFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the thread that publishes zones has failed; see the log")
    }
}

impl std::error::Error for PublisherFailed {}

/// A change that the publisher was given, and that is in force once it was waited for.
#[derive(Debug)]
#[must_use = "whether the change is in force is not known before it was waited for"]
pub struct Publishing(Result<Option<Receiver<()>>, PublisherFailed>);

impl Publishing {
    /// Waits until the change is in force.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn wait(self) -> Result<(), PublisherFailed> {
        match self.0? {
            Some(result) => result.recv().map_err(|_| PublisherFailed),
            None => Ok(()),
        }
    }
}

impl From<()> for Publishing {
    /// A change that is in force, or that needs not be.
    fn from((): ()) -> Self {
        Self(Ok(None))
    }
}

impl From<Receiver<()>> for Publishing {
    /// A change that is in force once this receives something, and fails where it is closed.
    fn from(result: Receiver<()>) -> Self {
        Self(Ok(Some(result)))
    }
}

impl PublisherHandle {
    /// Returns the server's state as it was published last.
    pub fn state(&self) -> Arc<ServerState> {
        self.state.load_full()
    }

    /// Fails if the publisher panicked too often, so that nothing it is sent will be done.
    ///
    /// # Errors
    /// When it is down.
    pub fn check(&self) -> Result<(), PublisherFailed> {
        if self.alive.strong_count() > 0 { Ok(()) } else { Err(PublisherFailed) }
    }

    /// Waits until what the publisher was given before is published, also what it panicked over:
    /// the state is known then.
    ///
    /// # Errors
    /// When the publisher is down; it publishes nothing more.
    pub fn wait_for_state(&self) -> Result<(), PublisherFailed> {
        self.call(|_| ())
    }

    /// A handle of a publisher that has ended: all work fails in the thread that asks for it.
    #[cfg(test)]
    pub fn of_ended(first: &super::FirstLoad) -> Self {
        let (sender, state) = (sync_channel(1).0, Arc::clone(&first.publisher.state));
        Self { sender, state, alive: Weak::new() }
    }

    /// Has the publisher do something; returns what came of it once that is published.
    pub(super) fn call<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Publisher) -> R + Send + 'static,
    ) -> Result<R, PublisherFailed> {
        self.begin(work)?.recv().map_err(|_| PublisherFailed)
    }

    /// Gives the publisher something to do, behind what it was given before; returns what receives
    /// the result once that is published, and is closed where the publisher fails.
    fn begin<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Publisher) -> R + Send + 'static,
    ) -> Result<Receiver<R>, PublisherFailed> {
        self.begin_and(work, || ())
    }

    /// As [`Self::begin`]; the publisher calls `published` once the result is published.
    fn begin_and<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Publisher) -> R + Send + 'static,
        published: impl FnOnce() + Send + 'static,
    ) -> Result<Receiver<R>, PublisherFailed> {
        let (sender, result) = sync_channel(1);
        let work = Work::Other(Box::new(move |publisher| {
            let result = work(publisher);
            Box::new(move || {
                published();
                drop(sender.try_send(result)); // its receiver waits
            })
        }));
        self.sender.send(work).map_err(|_| PublisherFailed)?;
        Ok(result)
    }

    /// Puts into force what was loaded for a plan, with a new configuration if there is one.
    ///
    /// # Errors
    /// When the publisher fails; `units` say how far it came, and the next plan does the rest.
    pub fn apply(
        &self,
        units: &mut UnitStates,
        config: Option<Config>,
        plan: Plan,
        loaded: Vec<LoadedUnit>,
    ) -> Result<Outcome, PublisherFailed> {
        let lent = Arc::new(Mutex::new(std::mem::take(units)));
        let own = Arc::clone(&lent);
        let outcome = self.call(move |publisher| {
            let mut lent = lent.lock().unwrap_or_else(PoisonError::into_inner);
            publisher.apply(&mut lent, config, plan, loaded)
        });
        // What a panic left half done, `UnitStates::is_torn` tells.
        *units = std::mem::take(&mut own.lock().unwrap_or_else(PoisonError::into_inner));
        outcome
    }

    /// Has workers choose by other plans of the pools with these numbers, unless the pools are no
    /// longer those of this epoch.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn replace_pools(
        &self,
        epoch: u64,
        plans: Vec<(u32, Arc<PoolPlan>)>,
    ) -> Result<(), PublisherFailed> {
        self.call(move |publisher| {
            publisher.is_changed |= publisher.pools.replace(epoch, plans);
        })
    }

    /// Takes updates of zones, whose names are in lower case, from the feed of a number alone from
    /// now on.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn adopt_feed(
        &self,
        zones: Vec<Name>,
        feed: u64,
        owner: FedOwner,
    ) -> Result<(), PublisherFailed> {
        self.call(move |publisher| publisher.zone_set.adopt_feed(&zones, feed, owner))
    }

    /// Takes zones out of service that catalogs list no more, whose names are in lower case; serves
    /// new members from what feeds of these numbers send from now on.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn change_members(
        &self,
        removed: Vec<Name>,
        added: Vec<(u64, NewFedZone)>,
    ) -> Result<(), PublisherFailed> {
        self.call(move |publisher| {
            let mut outcome = Outcome::default();
            publisher.zone_set.remove_members(&removed, &mut outcome);
            for (feed, zone) in added {
                let name = zone.name.clone();
                publisher.zone_set.add_fed(zone, &mut outcome);
                publisher.zone_set.adopt_feed(&[name], feed, FedOwner::Catalog);
            }
            publisher.note(&outcome);
        })
    }

    /// Takes the zones that catalogs list otherwise than when that was asked last; the state has
    /// all of them.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn take_listings(&self) -> Result<ListingChanges, PublisherFailed> {
        self.call(|publisher| publisher.zone_set.listings.take())
    }

    /// Has a channel with one place be told, as far as there is room, whenever something was
    /// published from now on.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn watch(&self, watcher: SyncSender<()>) -> Result<(), PublisherFailed> {
        self.call(move |publisher| publisher.watcher = Some(watcher))
    }

    /// Puts into force what the feed of a number has for a zone, whose name is in lower case;
    /// returns the serial that the zone has then. Where the zone follows another feed or none by
    /// now, nothing is done.
    ///
    /// # Errors
    /// When the publisher fails; within it, when the zone cannot be changed so, and is as it was.
    pub fn update(
        &self,
        zone: &Name,
        feed: u64,
        update: Update,
    ) -> Result<Result<Option<u32>, ChangeError>, PublisherFailed> {
        let zone = zone.clone();
        self.call(move |publisher| {
            let outcome = publisher.zone_set.update_fed(&zone, feed, update)?;
            publisher.note(&outcome);
            Ok(publisher.zone_set.fed_serial(&zone))
        })
    }

    /// Has what the feed of a number has for several zones, whose names are in lower case, put into
    /// force with one snapshot: clients see all of it or nothing. The publisher calls `published`
    /// then. For updates without a change that can be refused; zones that follow another feed or
    /// none by now stay as they are.
    pub fn update_all(
        &self,
        feed: u64,
        updates: Vec<(Name, Update)>,
        published: impl FnOnce() + Send + 'static,
    ) -> Publishing {
        let work = move |publisher: &mut Publisher| {
            for (zone, update) in updates {
                if let Ok(outcome) = publisher.zone_set.update_fed(&zone, feed, update) {
                    publisher.note(&outcome);
                }
            }
        };
        Publishing(self.begin_and(work, published).map(Some))
    }

    /// Serves a zone, whose name is in lower case, from a text of the program that was loaded.
    ///
    /// # Errors
    /// When the publisher fails; within it, what the zone is served from instead.
    pub fn set_text(
        &self,
        zone: &Name,
        update: Update,
    ) -> Result<Result<(), String>, PublisherFailed> {
        let (zone, new) = (zone.clone(), NewFedZone::of_text(zone.clone()));
        self.call(move |publisher| {
            if let Some(other) = publisher.zone_set.other_source(&new) {
                return Err(other);
            }
            let mut outcome = Outcome::default();
            publisher.zone_set.add_fed(new, &mut outcome);
            let updated = publisher.zone_set.update_fed(&zone, 0, update);
            outcome.add(updated.unwrap_or_default()); // only changes are refused
            publisher.note(&outcome);
            Ok(())
        })
    }

    /// Serves a zone, whose name is in lower case, from what the feed of a store of the program
    /// sends from now on; one that follows a store already keeps its records until then.
    ///
    /// # Errors
    /// When the publisher fails; within it, what the zone is served from instead.
    pub fn add_store(&self, zone: &Name) -> Result<Result<(), String>, PublisherFailed> {
        let new = NewFedZone::of_store(zone.clone());
        self.call(move |publisher| {
            if let Some(other) = publisher.zone_set.other_source(&new) {
                return Err(other);
            }
            let mut outcome = Outcome::default();
            publisher.zone_set.add_fed(new, &mut outcome);
            publisher.note(&outcome);
            Ok(())
        })
    }

    /// Takes a zone, whose name is in lower case, out of service that a program has given; returns
    /// whether there was one.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn remove_of_program(&self, zone: &Name) -> Result<bool, PublisherFailed> {
        let zone = zone.clone();
        self.call(move |publisher| {
            let mut outcome = Outcome::default();
            let was_there = publisher.zone_set.remove_of_program(&zone, &mut outcome);
            publisher.note(&outcome);
            was_there
        })
    }

    /// Changes a zone; returns what differs once that is on the disk and published.
    ///
    /// # Errors
    /// When the zone cannot be changed so; it is as it was then.
    pub fn edit(&self, edit: Edit) -> Result<Diff, EditError> {
        let (sender, result) = sync_channel(1);
        let is_dry_run = edit.is_dry_run;
        let sent = self.sender.send(Work::Edit(edit, sender));
        let result = sent.ok().and_then(|()| result.recv().ok());
        let result = result.unwrap_or(Err(EditError::PublisherFailed));
        if !is_dry_run {
            self.state.load().journal.counters.note_edit(&result);
        }
        result
    }

    /// Has messages that change zones taken from a queue, and read and answered by a processor,
    /// until the queue is closed and [`end_updates`](Self::end_updates) is called.
    ///
    /// # Errors
    /// When the publisher fails; messages are answered SERVFAIL then.
    pub fn begin_updates(
        &self,
        queue: &UpdateQueue,
        updates: SharedUpdates,
    ) -> Result<(), PublisherFailed> {
        let own = OpenUpdates(updates);
        self.call(move |publisher| publisher.updates = Some(own))?;
        let handle = self.clone();
        queue.open(Box::new(move |is_told| {
            // The publisher looks for messages with each batch of work: with a full queue it will.
            let sent = (!is_told).then(|| handle.sender.try_send(Work::Updates));
            handle.check().is_ok() && !matches!(sent, Some(Err(TrySendError::Disconnected(_))))
        }));
        Ok(())
    }

    /// Has no more messages taken from the queue of updates; those that wait are answered SERVFAIL.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn end_updates(&self) -> Result<(), PublisherFailed> {
        self.call(|publisher| publisher.updates = None)
    }

    /// The changes of a zone that its file lacks, oldest first.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn unflushed(
        &self,
        zone: &Name,
    ) -> Result<Option<zonda_journal::History>, PublisherFailed> {
        let zone = zone.to_lowercase();
        self.call(move |publisher| {
            publisher.zone_set.journal.unflushed(&zone).map(|(_, history)| history)
        })
    }

    /// A zone, whose name is in lower case, as it was published last, and what the journal has of
    /// its changes.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn with_kept_changes(
        &self,
        zone: &Name,
    ) -> Result<Option<ZoneAndChanges>, PublisherFailed> {
        let zone = zone.clone();
        self.call(move |publisher| publisher.zone_set.with_kept_changes(&zone))
    }

    /// Has a zone, whose name is in lower case, take no updates and edits, or take them again;
    /// returns whether that is new.
    ///
    /// # Errors
    /// When the publisher fails; within it, why nothing was changed.
    pub fn set_frozen(
        &self,
        zone: &Name,
        is_frozen: bool,
    ) -> Result<Result<bool, FreezeError>, PublisherFailed> {
        let zone = zone.clone();
        self.call(move |publisher| publisher.zone_set.frozen.set(&zone, is_frozen))
    }

    /// Has the receivers of a zone told of its version once more.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn announce_again(&self, zone: &Name) -> Result<(), PublisherFailed> {
        let zone = zone.clone();
        self.call(move |publisher| publisher.announce_again(zone))
    }

    /// Whether the file of a zone lacks edits, and not only the serial with which it is served.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn has_unflushed_edits(&self, zone: &Name) -> Result<bool, PublisherFailed> {
        let zone = zone.to_lowercase();
        self.call(move |publisher| publisher.zone_set.journal.has_unflushed_edits(&zone))
    }

    /// The zones whose files lack edits.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn unflushed_zones(&self) -> Result<Vec<Name>, PublisherFailed> {
        self.call(|publisher| publisher.zone_set.journal.unflushed_zones())
    }

    /// Notes that the file of a zone holds all changes up to a serial.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn release(&self, zone: &Name, serial: u32) -> Result<(), PublisherFailed> {
        let zone = zone.to_lowercase();
        self.call(move |publisher| publisher.zone_set.journal.release(&zone, serial))
    }

    /// Drops the changes of a zone that its file lacks, as the zone is removed, and thaws it.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn forget_edits(&self, zone: &Name) -> Result<(), PublisherFailed> {
        let zone = zone.to_lowercase();
        self.call(move |publisher| {
            publisher.zone_set.journal.forget(&zone);
            // Where the file cannot be written, the next zone of this name is frozen.
            let _ = publisher.zone_set.frozen.set(&zone, false);
        })
    }

    /// Closes the journal for a successor, so that edits are refused, and leaves the file of frozen
    /// zones to it.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn hand_over_journal(&self) -> Result<(), PublisherFailed> {
        self.call(|publisher| {
            publisher.zone_set.journal.hand_over();
            publisher.zone_set.frozen.hand_over();
        })
    }

    /// Opens the journal and the file of frozen zones again, as the successor has gone away.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn take_back_journal(&self) -> Result<(), PublisherFailed> {
        self.call(|publisher| {
            publisher.zone_set.journal.take_back(&publisher.config);
            publisher.zone_set.frozen.take_back(&publisher.config);
        })
    }

    /// Has other code put into force, behind what the publisher was given before; the result is
    /// waited for.
    pub fn publish_code(&self, code: Code) -> Publishing {
        let handlers = code.handlers(self.state.load().seed);
        let begun = self.begin(move |publisher| {
            publisher.handlers = handlers;
            (publisher.is_changed, publisher.rules_changed) = (true, true);
        });
        Publishing(begun.map(Some))
    }

    /// Notes that a reload ended, and if it read the configuration, what was wrong with that.
    ///
    /// # Errors
    /// When the publisher fails.
    pub fn note_reload(
        &self,
        failed: bool,
        config: Option<Result<(), String>>,
    ) -> Result<(), PublisherFailed> {
        self.call(move |publisher| {
            let history = &mut publisher.history;
            history.reloads += 1;
            history.failed_reloads += u64::from(failed);
            history.last = Some(SystemTime::now());
            if let Some(config) = config {
                history.config_error = config.err();
            }
        })
    }
}
