//! The publisher: one thread that owns the zones and the configuration in force, and the one place
//! where what workers see is swapped.
//!
//! Work reaches it over one bounded queue: reloads, zones of programs, code. It takes what is
//! there, applies all of it, and publishes one snapshot. Metrics and the admin interface read a
//! [`ServerState`], which is swapped as well: nothing waits for the publisher but the sender of
//! work for its result, and the publisher waits for nothing but work. Files are read, and zones
//! built, by the senders. Memory is freed by a thread of its own, the *reaper*.
//!
//! Work that panics is reported as failed, and all other work of its batch is done, published and
//! reported. Then the panic goes on, so that the watchdog counts it and starts the thread again.

mod former;
mod handle;
mod reaper;
mod snapshot;
#[cfg(test)]
mod tests;

use crate::edit::counters::EditCounters;
use crate::edit::journal::InUse;
use crate::edit::{Edit, EditError};
use crate::engine_counters::EngineCounters;
use crate::feed::secondaries::NoticeQueue;
use crate::feed::stores::Stores;
use crate::load::{self, LoadedUnit};
use crate::notify::{Notifier, NotifyCounts};
use crate::program::Code;
use crate::settings::{self, ServedSettings, SettingsBuilder};
use crate::steering::{CheckMessages, Pools};
use crate::texts::Texts;
use crate::unit_states::{Plan, Scope, UnitStates};
use crate::update::processor::OpenUpdates;
use crate::update::request::{UpdateResult, ZoneUpdates};
use crate::watchdog::Watchdog;
use crate::zone_set::fed_zone::NewFedZone;
use crate::zone_set::{Outcome, ZoneSet};
use crate::zone_set_view::{KnownZone, ZoneSetView};
use arc_swap::ArcSwap;
use former::{FormerSnapshots, LOOK};
pub use handle::{PublisherFailed, PublisherHandle, Publishing};
use reaper::Reaper;
use snapshot::snapshot;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use std::{io, iter};
use zonda_config::Config;
use zonda_engine::Snapshot;
use zonda_engine::code::Handlers;
use zonda_journal::Sizes;
use zonda_wire::Name;
use zonda_zone::{Diff, HashSeed};

/// The name of the thread.
const THREAD: &str = "publisher";
/// Work that may wait for the publisher; a sender of more waits until there is room.
const QUEUE_MAX: usize = 64;
/// Octets of edits that are written to the disk together, and one edit more.
const PENDING_OCTETS_MAX: usize = 1 << 20;

/// Work for the publisher.
enum Work {
    /// Changes a zone. All edits in a row are written to the disk together.
    Edit(Edit, SyncSender<EditResult>),
    /// Has the publisher look for messages that change zones, as it does with each batch of work.
    /// They are written to the disk together, and with the edits beside them.
    Updates,
    /// Changes what the publisher owns, and returns what is to be done once that is published.
    Other(Box<dyn FnOnce(&mut Publisher) -> Report + Send>),
}

/// What differs after an edit, or why it was not carried out.
type EditResult = Result<Diff, EditError>;

/// Reports the result of work to its sender.
type Report = Box<dyn FnOnce() + Send>;

/// The server as all that read see it: zones, configuration, what happened so far.
pub struct ServerState {
    /// The zones that are served.
    pub zone_set: ZoneSetView,
    /// The configuration in force.
    pub config: Arc<Config>,
    /// The reloads so far.
    pub history: History,
    /// The seed that new zones must be built with.
    pub seed: HashSeed,
    /// The journal of writable zones.
    pub journal: JournalState,
    /// What has become of NOTIFY messages.
    pub notify: Arc<NotifyCounts>,
    /// The number of times so far that a catalog was to list a zone otherwise.
    pub listings: u64,
}

/// The journal of writable zones as all that read see it.
#[derive(Clone, Debug, Default)]
pub struct JournalState {
    /// Why zones cannot be changed, if that is so.
    pub failure: Option<String>,
    /// How much the journal holds, if it is open.
    pub sizes: Option<Sizes>,
    /// Counters of edits and of the journal.
    pub counters: Arc<EditCounters>,
}

impl ServerState {
    /// The zones.
    pub fn zone_set(&self) -> &ZoneSetView {
        &self.zone_set
    }

    /// The configuration in force.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

/// Counts of the reloads so far.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Reloads that were asked for or that a changed file caused.
    pub reloads: u64,
    /// Reloads in which something could not be loaded.
    pub failed_reloads: u64,
    /// When the last reload ended.
    pub last: Option<SystemTime>,
    /// The error of the configuration that was read last, because of which it is not in force.
    pub config_error: Option<String>,
}

/// Owns the configuration and the zones, and publishes them.
pub struct Publisher {
    config: Arc<Config>,
    zone_set: ZoneSet,
    settings_builder: SettingsBuilder,
    settings: ServedSettings,
    pools: Pools,
    snapshot: Arc<ArcSwap<Snapshot>>,
    state: Arc<ArcSwap<ServerState>>,
    handlers: Option<Arc<Handlers>>,
    seed: HashSeed,
    generation: u64,
    history: History,
    /// Whether anything in the snapshot is to be published.
    is_changed: bool,
    /// Whether names moved between zones, or code or settings changed.
    rules_changed: bool,
    /// Snapshots that were replaced and that a worker may read.
    former: FormerSnapshots,
    /// The update processor, while the server runs.
    updates: Option<OpenUpdates>,
    /// Notifies servers of new versions.
    notifier: Notifier,
    /// What is told that something was published, if anything is.
    watcher: Option<SyncSender<()>>,
    /// Takes snapshots that no worker reads, once the thread that frees them runs.
    reaper: Reaper,
    /// The panic of work of the present batch: the first one.
    panic: Option<Box<dyn Any + Send>>,
    /// What tells handles that the publisher has not ended.
    alive: Arc<()>,
}

/// Changes that are made and not on the disk yet.
#[derive(Default)]
struct PendingChanges(Vec<PendingChange>);

/// A change that is made and not on the disk yet.
struct PendingChange {
    /// The versions of the zones before it that it changed, in the order of the changes.
    formers: Vec<Arc<KnownZone>>,
    /// Tells the sender what came of it, and why the disk did not take it if so.
    report: CommitReport,
}

/// Reports what came of a change, and why the disk did not take it if so.
type CommitReport = Box<dyn FnOnce(Option<&str>) + Send>;

/// The configuration and zones to be loaded when the server starts.
pub struct FirstLoad {
    /// The publisher, not yet a thread.
    publisher: Publisher,
    /// The states of the files that were loaded.
    units: UnitStates,
}

impl FirstLoad {
    /// The queue of zones that primaries say have changed, once there are zones of primaries.
    pub fn notices(&self) -> NoticeQueue {
        self.publisher.settings_builder.notices()
    }

    /// What workers answer from.
    pub fn snapshot(&self) -> &Arc<ArcSwap<Snapshot>> {
        &self.publisher.snapshot
    }

    /// The server as it was published last.
    pub fn state(&self) -> Arc<ServerState> {
        self.publisher.state.load_full()
    }

    /// The states of the members of pools, and the messages for the thread of their checks.
    pub fn take_checks(&mut self) -> Option<CheckMessages> {
        self.publisher.pools.take_messages()
    }

    /// Makes a thread of the publisher, which ends when its handle is gone; returns that, and the
    /// states of the files for the threads that reload.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(self, watchdog: &Arc<Watchdog>) -> io::Result<(PublisherHandle, UnitStates)> {
        let Self { mut publisher, units } = self;
        let (sender, queue) = sync_channel(QUEUE_MAX);
        let state = Arc::clone(&publisher.state);
        let alive = Arc::downgrade(&publisher.alive);
        publisher.reaper = reaper::start(watchdog)?;
        publisher.notifier.allow_thread(watchdog);
        publisher.announce();
        watchdog.spawn(THREAD, move || publisher.run(&queue))?;
        Ok((PublisherHandle { sender, state, alive }, units))
    }
}

/// Adds the zones of a program: those of stores, which await their feeds, and texts.
fn add_zones_of_program(
    zone_set: &mut ZoneSet,
    (texts, stores): (&Texts, &Stores),
    seed: HashSeed,
    outcome: &mut Outcome,
) {
    for (name, _) in stores {
        zone_set.add_fed(NewFedZone::of_store(name.clone()), outcome);
    }
    for (name, text) in texts {
        zone_set.add_fed(NewFedZone::of_text(name.clone()), outcome);
        let update = load::load_text(name, text, (&zone_set.view(), seed));
        let _ = zone_set.update_fed(name, 0, update); // what is wrong is logged
    }
}

impl Publisher {
    /// Loads all zones of `config` and the texts of a program; zones of stores await their feeds.
    /// Workers will count in `engines`.
    ///
    /// # Errors
    /// When another server uses the journal of writable zones.
    pub fn load(
        config: Config,
        (code, texts, stores): (Code, &Texts, &Stores),
        engines: Arc<EngineCounters>,
        threads: usize,
    ) -> Result<FirstLoad, InUse> {
        let seed = HashSeed::random();
        let (config, mut units) = (Arc::new(config), UnitStates::default());
        let mut zone_set = ZoneSet::new(seed, engines, &config);
        zone_set.set_forwards(&config);
        zone_set.journal.open(&config)?;
        zone_set.frozen.open(&config);
        if let Some(directory) = &config.admin.zones {
            let _ = std::fs::create_dir_all(directory); // that it cannot be read is logged below
        }
        let plan = units.plan(&zone_set.view(), (&config, &config), Scope::Changed);
        let loaded = load::load_all(&plan.stale(), &config, (&zone_set.view(), seed), threads);
        let mut outcome = zone_set.apply(&mut units, plan, loaded);
        zone_set.add_stores(&config, &mut outcome);
        add_zones_of_program(&mut zone_set, (texts, stores), seed, &mut outcome);
        zone_set.warn_of_left_out();
        let _ = zone_set.journal.commit(); // it is logged, and edits are refused then
        let mut settings_builder = SettingsBuilder::default();
        let (tables, _) = zone_set.tables(true);
        let settings = zone_set.settings(&mut settings_builder, &config);
        let mut pools = Pools::default();
        pools.configure(&config, seed);
        let handlers = code.handlers(seed);
        let first = snapshot(tables, (&handlers, pools.steering(), &settings), 1);
        let snapshot = Arc::new(ArcSwap::from_pointee(first));
        let history = History::default();
        let (of_state, own) = (Arc::clone(&config), history.clone());
        let (view, journal) = (zone_set.view(), journal_state(&zone_set));
        let notifier = Notifier::default();
        let notify = Arc::clone(notifier.counts());
        let state = ServerState {
            zone_set: view,
            config: of_state,
            history: own,
            seed,
            journal,
            notify,
            listings: zone_set.listings.count(),
        };
        zonda_netio::memory::give_back();
        let publisher = Self {
            config,
            zone_set,
            settings_builder,
            settings,
            pools,
            snapshot,
            state: Arc::new(ArcSwap::from_pointee(state)),
            handlers,
            seed,
            generation: 1,
            history,
            is_changed: false,
            rules_changed: false,
            former: FormerSnapshots::default(),
            updates: None,
            notifier,
            watcher: None,
            reaper: Reaper::default(),
            panic: None,
            alive: Arc::default(),
        };
        Ok(FirstLoad { publisher, units })
    }

    /// Does work as it comes until nothing can send any more, which is due.
    fn run(&mut self, queue: &Receiver<Work>) -> bool {
        // After a panic there may be messages that it was told of, and has not taken.
        self.do_batch(iter::empty());
        loop {
            let first = match self.former.is_empty() {
                true => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => queue.recv_timeout(LOOK),
            };
            match first {
                Ok(first) => {
                    let more = queue.try_iter().take(QUEUE_MAX - 1);
                    self.do_batch([first].into_iter().chain(more));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
            }
            let dropped = self.former.drop_unread(&self.reaper);
            self.zone_set.note_dropped(dropped);
        }
    }

    /// Does work, publishes what came of it, and reports that.
    fn do_batch(&mut self, all: impl Iterator<Item = Work>) {
        let reports = self.work(all);
        self.publish();
        for report in reports {
            self.guard(|_| report()); // one that panics takes no other with it
        }
        if let Some(panic) = self.panic.take() {
            resume_unwind(panic); // the watchdog counts it, and starts the thread again
        }
    }

    /// Does one piece of work; if it panics, notes that and returns nothing.
    fn guard<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> Option<R> {
        match catch_unwind(AssertUnwindSafe(|| work(self))) {
            Ok(result) => Some(result),
            Err(panic) => {
                self.panic.get_or_insert(panic);
                None
            }
        }
    }

    /// Does work, and returns what is to be done once that is published.
    fn work(&mut self, all: impl Iterator<Item = Work>) -> Vec<Report> {
        let (mut reports, mut changes) = (Vec::<Report>::new(), PendingChanges::default());
        let mut has_taken_updates = false;
        for work in all {
            self.commit_many(&mut changes, &mut reports);
            match work {
                Work::Edit(edit, sender) => changes.0.push(self.edit(&edit, sender)),
                Work::Updates => {} // as below
                Work::Other(work) => {
                    // It may end what messages need that came before it.
                    if !std::mem::replace(&mut has_taken_updates, true) {
                        changes.0.extend(self.updates());
                    }
                    self.commit(&mut changes, &mut reports);
                    match self.guard(work) {
                        Some(report) => reports.push(report),
                        // It was dropped, which tells its sender. What it did is published.
                        None => {
                            self.zone_set.note_panic();
                            (self.is_changed, self.rules_changed) = (true, true);
                        }
                    }
                    self.commit_rest();
                }
            }
        }
        // Some may have come while other work was done, and no work follows that tells of them.
        self.commit_many(&mut changes, &mut reports);
        changes.0.extend(self.updates());
        self.commit(&mut changes, &mut reports);
        reports
    }

    /// Has the disk hold the changes made so far if they are large.
    fn commit_many(&mut self, changes: &mut PendingChanges, reports: &mut Vec<Report>) {
        if self.zone_set.journal.pending_octets() > PENDING_OCTETS_MAX {
            self.commit(changes, reports);
        }
    }

    /// Carries out the messages that wait, and change zones.
    fn updates(&mut self) -> Option<PendingChange> {
        let updates = Arc::clone(&self.updates.as_ref()?.0);
        let begin = |_: &mut Self| lock(&updates).begin();
        let mut batch = self.guard(begin).flatten()?;
        let zones = std::mem::take(&mut batch.zones);
        let answer = move |results: Vec<Vec<UpdateResult>>| lock(&updates).finish(batch, &results);
        Some(self.update(&zones, answer))
    }

    /// Changes a zone.
    fn edit(&mut self, edit: &Edit, sender: SyncSender<EditResult>) -> PendingChange {
        // A panic comes before the journal or the zone has the edit.
        let made = self.guard(|publisher| publisher.zone_set.edit(edit));
        let made = made.unwrap_or(Err(EditError::PublisherFailed));
        let former = made.as_ref().ok().and_then(|(_, former)| former.clone());
        let report = move |failed: Option<&str>| {
            let result = made.map(|(diff, _)| diff).and_then(|diff| match failed {
                None => Ok(diff),
                Some(error) => Err(EditError::Journal(error.to_owned())),
            });
            drop(sender.try_send(result)); // its receiver waits
        };
        PendingChange { formers: former.into_iter().collect(), report: Box::new(report) }
    }

    /// Carries out messages that change zones, those for a zone as one version of it; a function
    /// answers them.
    fn update(
        &mut self,
        updates: &[ZoneUpdates],
        answer: impl FnOnce(Vec<Vec<UpdateResult>>) + Send + 'static,
    ) -> PendingChange {
        let (mut results, mut formers) = (Vec::new(), Vec::new());
        for zone in updates {
            // A panic comes before the journal or the zone has the change.
            let updated = self.guard(|publisher| publisher.zone_set.update(zone));
            let (of_zone, former) = updated.unwrap_or_else(|| {
                let failed = UpdateResult::of_error(&EditError::PublisherFailed);
                (vec![failed; zone.requests.len()], None)
            });
            results.push(of_zone);
            formers.extend(former);
        }
        let report = move |failed: Option<&str>| {
            if let Some(error) = failed {
                let failed = UpdateResult::of_error(&EditError::Journal(error.to_owned()));
                // They may rest on changes that are taken back.
                let doubtful = results.iter_mut().flatten().filter(|it| !it.is_sure());
                doubtful.for_each(|result| *result = failed.clone());
            }
            answer(results);
        };
        PendingChange { formers, report: Box::new(report) }
    }

    /// Has the disk hold the changes made so far, or takes them back. One that changes nothing
    /// fails as well, then: it may rest on another one.
    fn commit(&mut self, changes: &mut PendingChanges, reports: &mut Vec<Report>) {
        if changes.0.is_empty() {
            return;
        }
        let failed = self.zone_set.journal.commit().err();
        let changes = std::mem::take(&mut changes.0);
        if failed.is_some() {
            let formers = changes.iter().rev().flat_map(|change| change.formers.iter().rev());
            formers.for_each(|former| self.zone_set.restore(former));
        }
        for PendingChange { formers, report } in changes {
            self.is_changed |= !formers.is_empty();
            let failed = failed.clone();
            reports.push(Box::new(move || report(failed.as_deref())));
        }
    }

    /// Has the disk hold what other work has written to the journal.
    fn commit_rest(&mut self) {
        let _ = self.zone_set.journal.commit(); // it is logged, and edits are refused from now on
    }

    /// Puts into force what was loaded for a plan, with a new configuration if there is one.
    fn apply(
        &mut self,
        units: &mut UnitStates,
        config: Option<Config>,
        plan: Plan,
        loaded: Vec<LoadedUnit>,
    ) -> Outcome {
        if let Some(next) = config {
            let former = Arc::clone(&self.config);
            Arc::make_mut(&mut self.config).take_over(next);
            self.open_journal();
            let forwards_changed = self.zone_set.set_forwards(&self.config);
            if forwards_changed || !settings::are_same(&self.config, &former) {
                self.settings = self.zone_set.settings(&mut self.settings_builder, &self.config);
                (self.is_changed, self.rules_changed) = (true, true);
            }
            if self.pools.configure(&self.config, self.seed) {
                (self.is_changed, self.rules_changed) = (true, true);
            }
        }
        let mut fed = Outcome::default();
        self.zone_set.add_stores(&self.config, &mut fed);
        let mut outcome = self.zone_set.apply(units, plan, loaded);
        self.zone_set.drop_stores(&self.config, &mut fed);
        self.zone_set.warn_of_left_out();
        self.zone_set.warn_of_signed_zones(&mut self.pools);
        outcome.add(fed);
        self.note(&outcome);
        if !outcome.unchanged.is_empty() {
            self.reaper.note_freed(); // what was read and found to be served already
        }
        outcome
    }

    /// Opens the journal if the configuration needs it now.
    fn open_journal(&mut self) {
        if let Err(InUse(error)) = self.zone_set.journal.open(&self.config) {
            tracing::error!(error, "zones cannot be changed");
        }
        self.zone_set.frozen.open(&self.config);
    }

    /// Notes what is to be published.
    fn note(&mut self, outcome: &Outcome) {
        self.is_changed |= outcome.changed;
        self.rules_changed |= outcome.names_changed;
    }

    /// Publishes what has changed.
    fn publish(&mut self) {
        let next = self.is_changed.then(|| {
            let (tables, names_changed) = self.zone_set.tables(self.rules_changed);
            self.generation += u64::from(names_changed);
            let rest = (&self.handlers, self.pools.steering(), &self.settings);
            Arc::new(snapshot(tables, rest, self.generation))
        });
        let (zone_set, config) = (self.zone_set.view(), Arc::clone(&self.config));
        let (history, seed) = (self.history.clone(), self.seed);
        let journal = journal_state(&self.zone_set);
        let notify = Arc::clone(self.notifier.counts());
        let listings = self.zone_set.listings.count();
        let state = ServerState { zone_set, config, history, seed, journal, notify, listings };
        self.state.store(Arc::new(state));
        let Some(next) = next else { return };
        // Not before: what a panic has kept from being published is published later.
        (self.is_changed, self.rules_changed) = (false, false);
        let snapshot = self.snapshot.swap(next);
        self.former.push(snapshot, self.zone_set.retiring());
        self.announce();
    }

    /// Has servers notified of the versions that are published.
    fn announce(&mut self) {
        self.watcher.iter().for_each(|watcher| _ = watcher.try_send(())); // one message is enough
        self.notifier.announce(&mut self.zone_set.announced, &self.snapshot);
    }

    /// Has the receivers of a zone told of its version once more, though they know it.
    fn announce_again(&mut self, zone: Name) {
        self.notifier.announce_again(zone, &self.snapshot);
    }
}

/// Locks the update processor. What a panic has left half done is the reply to a message.
fn lock<T: ?Sized>(updates: &Mutex<T>) -> MutexGuard<'_, T> {
    updates.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of the journal now.
fn journal_state(zone_set: &ZoneSet) -> JournalState {
    let journal = &zone_set.journal;
    let (failure, sizes) = (journal.failure(), journal.sizes());
    JournalState { failure, sizes, counters: Arc::clone(journal.counters()) }
}
