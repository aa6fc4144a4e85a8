//! The feeds of all stores: one for each store, so that one that does not answer delays no other.
//! Those of Kubernetes clusters, of primaries and of catalogs start and end with them.

use super::Update;
use super::catalogs::CatalogFeeds;
use super::clusters::ClusterFeeds;
#[cfg(feature = "whole")]
use super::clusters::ClusterStates;
use super::secondaries::{NoticeQueue, SecondaryFeeds};
use super::store_feed::{Feed, RunningFeed, StoreSource, Subject, SubjectZone, lock};
use super::store_state::StoreState;
use crate::load_error::LoadError;
use crate::publish::PublisherHandle;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use zonda_config::Config;
use zonda_store::Store;
use zonda_wire::Name;

/// How long a start waits for stores; one that is slower begins without data.
const FIRST_LOAD: Duration = Duration::from_secs(3);
/// How long a stop waits for a feed; one that waits for its database is left to end later.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Zones, by their names in lower case, and the stores of a program that they follow.
pub type Stores = Vec<(Name, Arc<dyn Store>)>;

/// The feeds of all stores.
pub struct StoreFeeds {
    publisher: PublisherHandle,
    /// The stores of the program; none once the server ends, as a store may wait for its release.
    /// Locked behind `running`, if both are.
    of_program: Mutex<Stores>,
    /// The feeds that run; held while some are started or ended.
    running: Mutex<Vec<RunningFeed>>,
    /// Whether no store is followed whatever the configuration says; changed under `running`.
    is_stopped: AtomicBool,
    /// Whether any zone of the feeds that run may expire.
    may_expire: AtomicBool,
    /// How zones follow their stores, for readers, which wait for no feed.
    states: ArcSwap<States>,
    /// The feeds of Kubernetes clusters.
    clusters: ClusterFeeds,
    /// The feed of zones of primaries.
    pub secondaries: Arc<SecondaryFeeds>,
    /// The feed of catalogs, whose members are zones of primaries.
    pub catalogs: CatalogFeeds,
}

/// How zones follow their stores, by their names in lower case.
type States = HashMap<Name, Arc<StoreState>>;

impl StoreFeeds {
    /// Starts the feeds of the stores of a configuration and of a program, and waits until these
    /// are loaded, at most three seconds.
    ///
    /// # Errors
    /// When a thread cannot be had.
    pub fn start(
        publisher: PublisherHandle,
        config: &Config,
        (of_program, notices): (Stores, NoticeQueue),
    ) -> io::Result<Self> {
        let (running, states) = (Mutex::default(), ArcSwap::default());
        let of_program = Mutex::new(of_program);
        let (is_stopped, may_expire) = (AtomicBool::default(), AtomicBool::default());
        let clusters = ClusterFeeds::default();
        let memory_max = config.transfers.memory_max.0.into();
        let secondaries = Arc::new(SecondaryFeeds::new(notices, memory_max));
        let catalogs = CatalogFeeds::new(publisher.clone(), Arc::clone(&secondaries));
        let feeds = Self {
            publisher,
            of_program,
            running,
            is_stopped,
            may_expire,
            states,
            clusters,
            secondaries,
            catalogs,
        };
        let loaded = feeds.follow_in(&mut lock(&feeds.running), config)?;
        wait_for_first_load(&loaded);
        Ok(feeds)
    }

    /// Follows the stores of the configuration in force from now on, those of the program as well,
    /// and stops following all other stores; follows none after [`stop`](Self::stop). Returns a
    /// channel that is closed once the stores that are new have been loaded.
    ///
    /// # Errors
    /// When a thread cannot be had.
    pub fn follow(&self) -> io::Result<Receiver<()>> {
        self.follow_now(&mut lock(&self.running))
    }

    /// Follows stores as [`follow`](Self::follow) does. The configuration is read under the lock,
    /// so that of two calls the later one has the newer configuration.
    fn follow_now(&self, running: &mut Vec<RunningFeed>) -> io::Result<Receiver<()>> {
        if self.is_stopped.load(Relaxed) {
            return Ok(sync_channel(0).1);
        }
        self.follow_in(running, &self.publisher.state().config)
    }

    /// Follows the stores of a configuration and of the program, and no other stores.
    fn follow_in(
        &self,
        running: &mut Vec<RunningFeed>,
        config: &Config,
    ) -> io::Result<Receiver<()>> {
        let wanted = subjects(config, &lock(&self.of_program));
        let (kept, gone) =
            std::mem::take(running).into_iter().partition(|it| wanted.contains(&it.subject));
        *running = kept;
        end(gone); // a file of redb has one user at a time
        let (first, loaded) = sync_channel(wanted.len());
        // Before anything that may fail, and before any transfer that is due to a change.
        self.secondaries.budget().set(config.transfers.memory_max.0.into());
        self.clusters.follow(&self.publisher, config, &first)?;
        self.secondaries.follow(&self.publisher, config, &first)?;
        self.catalogs.follow(config, &first)?;
        for subject in wanted {
            if !running.iter().any(|feed| feed.subject == subject) {
                let (publisher, first) = (self.publisher.clone(), first.clone());
                running.push(Feed::start(subject, publisher, first, &self.states.load())?);
            }
        }
        let mut zones = running.iter().flat_map(|feed| &feed.subject.zones);
        let has_primaries = config.secondaries().next().is_some() || !config.catalogs.is_empty();
        let may_expire = has_primaries || zones.any(|zone| zone.expire.is_some());
        self.may_expire.store(may_expire, Relaxed);
        let states = running.iter().flat_map(|feed| feed.states.iter().cloned());
        self.states.store(Arc::new(states.collect()));
        Ok(loaded)
    }

    /// Follows a store of the program for a zone from now on, in place of a former one; returns
    /// what [`wait_for_first_load`] waits for.
    ///
    /// # Errors
    /// When the feeds have ended, and when a thread cannot be had: the zone follows no store of the
    /// program then.
    pub fn add(&self, zone: &Name, store: Arc<dyn Store>) -> io::Result<Receiver<()>> {
        let mut running = lock(&self.running);
        let mut of_program = self.without(zone);
        if self.is_stopped.load(Relaxed) {
            return Err(io::Error::other("the server follows no store any more, as it ends"));
        }
        of_program.push((zone.clone(), store));
        drop(of_program);
        self.follow_now(&mut running).inspect_err(|_| drop(self.without(zone)))
    }

    /// The stores of the program, without that of a zone.
    fn without(&self, zone: &Name) -> MutexGuard<'_, Stores> {
        let mut of_program = lock(&self.of_program);
        of_program.retain(|(other, _)| other != zone);
        of_program
    }

    /// Follows the store of the program for a zone no longer; returns whether there was one.
    ///
    /// # Errors
    /// When a thread cannot be had.
    pub fn remove(&self, zone: &Name) -> io::Result<bool> {
        let mut running = lock(&self.running);
        let before = lock(&self.of_program).len();
        let was_there = self.without(zone).len() < before; // changed under the lock of `running`
        if was_there {
            self.follow_now(&mut running)?;
        }
        Ok(was_there)
    }

    /// How zones follow their stores, by their names in lower case.
    pub fn states(&self) -> Arc<States> {
        self.states.load_full()
    }

    /// How zones follow their clusters, by their names in lower case.
    #[cfg(feature = "whole")]
    pub fn cluster_states(&self) -> Arc<ClusterStates> {
        self.clusters.states()
    }

    /// How a zone, whose name is in lower case, follows its store, if it follows one.
    pub fn state(&self, zone: &Name) -> Option<Arc<StoreState>> {
        self.states.load().get(zone).cloned()
    }

    /// Whether any zone may expire. Waits for no feed.
    pub fn may_expire(&self) -> bool {
        self.may_expire.load(Relaxed)
    }

    /// Takes zones out of service that have not been in step with their stores for too long. This
    /// is no task of the feeds, which may wait for a database just then.
    pub fn expire(&self) {
        self.secondaries.expire();
        let overdue: Vec<_> = lock(&self.running).iter().flat_map(overdue).collect();
        for (apex, feed, state, reason) in overdue {
            let served = self.publisher.state().zone_set.zone(&apex).cloned();
            let is_served = served.is_some_and(|it| it.unit.is_of_feed() && it.data().is_some());
            if !is_served || state.has_expired.swap(true, Relaxed) {
                continue;
            }
            tracing::error!(zone = %apex, "a zone has expired: it is SERVFAIL");
            // Where the publisher fails, the server says so by itself.
            let _ = self.publisher.update(&apex, feed, Update::Expired(reason));
        }
    }

    /// Ends all feeds for good, and releases the stores of the program.
    pub fn end(&self) {
        self.stop();
        lock(&self.of_program).clear(); // later ones are refused
    }

    /// Ends all feeds. The thread of a store that does not return within a second is left behind.
    pub fn stop(&self) {
        let mut running = lock(&self.running);
        self.is_stopped.store(true, Relaxed);
        self.clusters.stop();
        self.catalogs.stop(); // first, as it has members followed
        self.secondaries.stop();
        end(std::mem::take(&mut *running));
    }

    /// Ends the feeds of stores, which a successor follows from now on, and leaves snapshot files
    /// of clusters to it. Clusters are followed on, for a successor may take long to start.
    pub fn hand_over(&self) {
        let mut running = lock(&self.running);
        self.is_stopped.store(true, Relaxed);
        self.clusters.leave_files(true);
        self.catalogs.stop(); // first, as it has members followed
        self.secondaries.stop();
        end(std::mem::take(&mut *running));
    }

    /// Follows stores again after [`hand_over`](Self::hand_over).
    ///
    /// # Errors
    /// When a thread cannot be had.
    pub fn resume(&self) -> io::Result<()> {
        let mut running = lock(&self.running);
        self.is_stopped.store(false, Relaxed);
        self.clusters.leave_files(false);
        self.follow_now(&mut running).map(drop)
    }
}

impl Drop for StoreFeeds {
    fn drop(&mut self) {
        lock(&self.running).iter().for_each(|feed| feed.stop.stop());
    }
}

/// The zones of a feed that have not been in step with their store for too long, with the number
/// of the feed and the reason.
fn overdue(feed: &RunningFeed) -> Vec<(Name, u64, Arc<StoreState>, LoadError)> {
    let zones = feed.subject.zones.iter().zip(&feed.states);
    let overdue = zones.filter_map(|(zone, (_, state))| {
        let limit = zone.expire.filter(|limit| state.age() >= *limit)?;
        let store = feed.subject.source.text();
        let first = format!("{store}: the zone has not been in step with it for {limit:?}");
        Some((zone.apex.clone(), feed.number, Arc::clone(state), LoadError { first, count: 0 }))
    });
    overdue.collect()
}

/// Waits until the stores that are new have been loaded, for at most three seconds.
pub fn wait_for_first_load(loaded: &Receiver<()>) {
    let limit = Instant::now() + FIRST_LOAD;
    while loaded.recv_timeout(limit.saturating_duration_since(Instant::now())).is_ok() {}
}

/// Ends feeds.
fn end(feeds: Vec<RunningFeed>) {
    feeds.iter().for_each(|feed| feed.stop.stop());
    let limit = Instant::now() + STOP_TIMEOUT;
    for feed in feeds {
        let left = limit.saturating_duration_since(Instant::now());
        if feed.ended.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
            let store = feed.subject.source.text();
            tracing::warn!(store, "a store does not answer; its thread is left to end later");
        }
    }
}

/// What feeds there are to be.
fn subjects(config: &Config, of_program: &Stores) -> Vec<Subject> {
    let configured = config.stores().filter_map(|(zone, keys)| {
        let zone = SubjectZone { apex: zone.name.as_ref()?.to_lowercase(), expire: keys.expire };
        Some((StoreSource::Configured(Arc::clone(keys)), zone))
    });
    let of_program = of_program.iter().map(|(apex, store)| {
        let zone = SubjectZone { apex: apex.clone(), expire: None };
        (StoreSource::Program(Arc::clone(store)), zone)
    });
    let mut subjects = Vec::<Subject>::new();
    for (source, zone) in configured.chain(of_program) {
        match subjects.iter_mut().find(|subject| subject.source == source) {
            Some(subject) => subject.zones.push(zone),
            None => subjects.push(Subject { source, zones: vec![zone] }),
        }
    }
    subjects
}
