//! The feed of one store, in a thread of its own, whatever the number of its zones.
//!
//! A feed watches its store, loads it, and then takes what changed, gathered for a moment, until
//! something fails; then it begins anew, after a pause that grows. The zones keep what they had,
//! until they expire if the configuration says when.

use super::Update;
use super::open::open_store;
use super::store_state::StoreState;
use crate::load::{self, unix_secs};
use crate::load_error::LoadError;
use crate::publish::{PublisherFailed, PublisherHandle};
use crate::zone_set::fed_zone::FedOwner;
use std::any::Any;
use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zonda_config::{StoreKeys, StoreUrl};
use zonda_netio::{memory, process};
use zonda_store::{Changes, RecordSet, Store, StoreError, ZoneContent};
use zonda_wire::{Name, name};
use zonda_zone::{ChangeError, ChangeSet, Serial, SerialPolicy, Zone};

/// The number of the next feed; 0 is that of texts of the program.
pub static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

/// How long changes are gathered at least: a client that asks for what it has just written waits
/// for it, and a thousand changes at a time make one version of a zone.
const GATHERING_MIN: Duration = Duration::from_millis(20);
/// How long changes are gathered at most, however much CPU time it takes to make the zones.
const GATHERING_MAX: Duration = Duration::from_secs(2);
/// How long a feed waits for changes before it sees whether it is to end.
const WAIT_MAX: Duration = Duration::from_millis(250);
/// The pause before a store that failed is tried again; doubled each time.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// A store that was followed for so long fails anew; one that fails sooner still does.
const STABLE_MIN: Duration = Duration::from_secs(10);
/// How often the log repeats that a store fails.
const LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Record sets from which on the memory of a load is given back to the system at once.
const LARGE_LOAD: usize = 10_000;

/// What a feed follows, and for which zones. Feeds that are equal in this are one.
#[derive(Clone, PartialEq)]
pub struct Subject {
    /// The store that is followed.
    pub source: StoreSource,
    /// The zones that follow it.
    pub zones: Vec<SubjectZone>,
}

/// A zone of a feed.
#[derive(Clone, PartialEq, Eq)]
pub struct SubjectZone {
    /// The zone's apex, in lower case.
    pub apex: Name,
    /// How long it is served after it was in step with its store.
    pub expire: Option<Duration>,
}

/// Where a store comes from.
#[derive(Clone)]
pub enum StoreSource {
    /// The configuration names it.
    Configured(Arc<StoreKeys>),
    /// The program has it.
    Program(Arc<dyn Store>),
}

impl PartialEq for StoreSource {
    /// Whether the stores are one, so that their zones share a feed.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Configured(one), Self::Configured(other)) => {
                let options =
                    |it: &StoreKeys| (it.prefix.clone(), it.compare_interval, it.read_max);
                let is_file = matches!(one.url, StoreUrl::Redb(_)); // it is opened once
                one.url == other.url && (is_file || options(one) == options(other))
            }
            (Self::Program(one), Self::Program(other)) => {
                Arc::ptr_eq(one, other)
                    || one.identity().is_some_and(|it| other.identity() == Some(it))
            }
            _ => false,
        }
    }
}

impl StoreSource {
    /// What messages call the store.
    pub fn text(&self) -> String {
        match self {
            Self::Configured(keys) => keys.url.to_string(),
            Self::Program(_) => "store of the program".to_owned(),
        }
    }
}

/// A feed that runs in a thread.
pub struct RunningFeed {
    /// What it follows.
    pub subject: Subject,
    /// How each zone follows the store, by its name in lower case.
    pub states: Vec<(Name, Arc<StoreState>)>,
    /// The number by which the publisher knows the feed.
    pub number: u64,
    /// Asks the thread to end.
    pub stop: Arc<StopRequest>,
    /// Is closed when the thread has ended.
    pub ended: Receiver<()>,
}

/// Asks a feed to end.
#[derive(Default)]
pub struct StopRequest {
    is_stopped: Mutex<bool>,
    changed: Condvar,
}

impl StopRequest {
    /// Asks the feed to end.
    pub fn stop(&self) {
        *lock(&self.is_stopped) = true;
        self.changed.notify_all();
    }

    /// Whether the feed is to end.
    pub fn is_requested(&self) -> bool {
        *lock(&self.is_stopped)
    }

    /// Waits; returns whether the feed is to end.
    pub fn pause(&self, duration: Duration) -> bool {
        let is_stopped = lock(&self.is_stopped);
        let waited = self.changed.wait_timeout_while(is_stopped, duration, |stopped| !*stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Returns what a lock protects, for a moment; all that are here are whole after any panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps zones as their store has them.
pub struct Feed {
    source: StoreSource,
    /// The store, once it could be opened.
    store: Option<Arc<dyn Store>>,
    zones: Vec<FollowedZone>,
    /// The places of the zones among all, by their names in lower case and wire form.
    places: HashMap<Box<[u8]>, usize>,
    publisher: PublisherHandle,
    /// The number by which the publisher knows the feed.
    number: u64,
    stop: Arc<StopRequest>,
    /// Is sent to when the first load has ended.
    first: Option<SyncSender<()>>,
    /// The time since which the store cannot be followed.
    outage: Option<Outage>,
    /// Time for which changes are gathered.
    gathering: Duration,
}

/// A zone that follows a store.
struct FollowedZone {
    content: ZoneContent,
    state: Arc<StoreState>,
    /// Whether the server has all that the store had, so that changes suffice.
    is_loaded: bool,
    /// The serial of the version that the server has.
    serial: u32,
}

/// A time in which a store cannot be followed.
struct Outage {
    began: Instant,
    /// Moment of the last line in the log about it.
    logged: Instant,
}

/// Why a feed cannot go on.
enum FeedError {
    /// The store fails.
    Store(StoreError),
    /// The publisher has failed, or the server has ended.
    Publisher(PublisherFailed),
}

impl From<StoreError> for FeedError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<PublisherFailed> for FeedError {
    fn from(error: PublisherFailed) -> Self {
        Self::Publisher(error)
    }
}

impl FollowedZone {
    /// Whether all records are to be read again: an administrator asks for that, or the zone has
    /// expired although its store can be read.
    fn is_load_due(&self) -> bool {
        let state = &self.state;
        let is_requested = state.loads_requested.load(Relaxed) > state.loads_answered.load(Relaxed);
        is_requested || state.has_expired.load(Relaxed)
    }
}

impl Feed {
    /// Starts a feed in a thread of its own; `first` is sent to when the store was loaded once.
    /// Zones that followed a store before have former states.
    ///
    /// # Errors
    /// When a thread cannot be had.
    pub fn start(
        subject: Subject,
        publisher: PublisherHandle,
        first: SyncSender<()>,
        former: &HashMap<Name, Arc<StoreState>>,
    ) -> io::Result<RunningFeed> {
        let stop = Arc::<StopRequest>::default();
        let zone = |zone: &SubjectZone| FollowedZone {
            content: ZoneContent::new(&zone.apex),
            state: Arc::new(StoreState::new(former.get(&zone.apex).map(|state| &**state))),
            is_loaded: false,
            serial: 0,
        };
        let zones: Vec<_> = subject.zones.iter().map(zone).collect();
        let place = |(place, zone): (usize, &SubjectZone)| (zone.apex.as_wire().into(), place);
        let places = subject.zones.iter().enumerate().map(place).collect();
        let states =
            zones.iter().map(|zone| (zone.content.apex().clone(), Arc::clone(&zone.state)));
        let states = states.collect();
        let number = NEXT_NUMBER.fetch_add(1, Relaxed);
        let names = subject.zones.iter().map(|zone| zone.apex.clone()).collect();
        let owner = match subject.source {
            StoreSource::Configured(_) => FedOwner::Configuration,
            StoreSource::Program(_) => FedOwner::Program,
        };
        // Where the publisher fails, so does the first update.
        let _ = publisher.adopt_feed(names, number, owner);
        let feed = Self {
            source: subject.source.clone(),
            store: None,
            zones,
            places,
            publisher,
            number,
            stop: Arc::clone(&stop),
            first: Some(first),
            outage: None,
            gathering: GATHERING_MIN,
        };
        let (end, ended) = sync_channel::<()>(0);
        std::thread::Builder::new().name("zonda-store".to_owned()).spawn(move || {
            feed.run();
            drop(end);
        })?;
        Ok(RunningFeed { subject, states, number, stop, ended })
    }

    /// Runs until the feed is to end.
    fn run(mut self) {
        let mut pause = PAUSE_MIN;
        loop {
            // The log that the program writes may panic as well as the store.
            let turn = catch_unwind(AssertUnwindSafe(|| self.follow_until_failure(&mut pause)));
            if !turn.unwrap_or(true) || self.stop.pause(pause) {
                return;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Follows the store until something fails; returns whether it is to be tried again after
    /// `pause`.
    fn follow_until_failure(&mut self, pause: &mut Duration) -> bool {
        let began = Instant::now();
        let followed = catch_unwind(AssertUnwindSafe(|| self.follow()));
        let error = match followed {
            Ok(Ok(())) => return false,
            Ok(Err(FeedError::Publisher(_))) if self.publisher.check().is_err() => return false,
            Ok(Err(FeedError::Publisher(error))) => StoreError::failed(error.to_string()),
            Ok(Err(FeedError::Store(error))) => error,
            Err(panic) => StoreError::failed(format!("it panicked: {}", panic_text(&*panic))),
        };
        if self.stop.pause(Duration::ZERO) {
            return false; // what fails while all ends is no outage
        }
        if began.elapsed() > STABLE_MIN {
            *pause = PAUSE_MIN;
        }
        self.note_outage(&error);
        true
    }

    /// Follows the store until the feed is to end.
    fn follow(&mut self) -> Result<(), FeedError> {
        let store = self.open()?;
        let apexes: Vec<Name> = self.zones.iter().map(|it| it.content.apex().clone()).collect();
        let mut watch = store.watch_all(&apexes)?; // before it is read: no change is missed
        self.take(&*store, &Changes::all())?;
        self.note_success();
        while !self.stop.pause(Duration::ZERO) {
            let mut changes = watch.wait(WAIT_MAX)?;
            if self.zones.iter().any(|zone| zone.is_load_due()) {
                changes.merge(Changes::all());
            }
            if changes.is_none() {
                self.note_in_step();
            } else {
                self.stop.pause(self.gathering);
                changes.merge(watch.wait(Duration::ZERO)?);
                self.take(&*store, &changes)?;
            }
        }
        Ok(())
    }

    /// The store, opened if it is not.
    fn open(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        let store = match (&self.store, &self.source) {
            (Some(store), _) | (None, StoreSource::Program(store)) => Arc::clone(store),
            (None, StoreSource::Configured(keys)) => open_store(keys)?,
        };
        self.store = Some(Arc::clone(&store));
        Ok(store)
    }

    /// Takes over what changed.
    fn take(&mut self, store: &dyn Store, changes: &Changes) -> Result<(), FeedError> {
        let started = process::thread_cpu_time().unwrap_or_default();
        match changes.owners() {
            Some(owners) => {
                self.change(store, owners.iter().map(String::as_str))?;
                for place in 0..self.zones.len() {
                    if !self.zones[place].is_loaded {
                        let sets = store.load(self.zones[place].content.apex())?;
                        self.replace(place, sets)?;
                    }
                }
            }
            None => self.load(store)?,
        }
        for zone in &self.zones {
            zone.state.left_out.store(zone.content.left_out(), Relaxed);
        }
        self.note_in_step();
        // A load of much that is asked for all the time keeps half of one CPU busy, not all of it.
        // Time in which this thread waited, for a CPU or the database, is no reason to wait more.
        let used = process::thread_cpu_time().unwrap_or_default().saturating_sub(started);
        self.gathering = used.clamp(GATHERING_MIN, GATHERING_MAX);
        Ok(())
    }

    /// Reads all that the store has for the zones.
    fn load(&mut self, store: &dyn Store) -> Result<(), FeedError> {
        let requested = |zone: &FollowedZone| zone.state.loads_requested.load(Relaxed);
        let requested: Vec<u64> = self.zones.iter().map(requested).collect();
        self.read_all(store)?;
        for (zone, requested) in self.zones.iter().zip(requested) {
            zone.state.loads_answered.store(requested, Relaxed);
        }
        Ok(())
    }

    /// Reads all that the store has for the zones, and has the server serve it.
    fn read_all(&mut self, store: &dyn Store) -> Result<(), FeedError> {
        if let [zone] = &self.zones[..] {
            let sets = store.load(zone.content.apex())?;
            return self.replace(0, sets);
        }
        let apexes: Vec<Name> = self.zones.iter().map(|it| it.content.apex().clone()).collect();
        let all = store.load_all(&apexes)?;
        let mut of_zones: Vec<Vec<RecordSet>> = self.zones.iter().map(|_| Vec::new()).collect();
        for set in all {
            // Nearly always one zone has an owner.
            if let [first, others @ ..] = &self.places_of(&set.owner)[..] {
                others.iter().for_each(|place| of_zones[*place].push(set.clone()));
                of_zones[*first].push(set);
            }
        }
        for (place, sets) in of_zones.into_iter().enumerate() {
            self.replace(place, sets)?;
        }
        Ok(())
    }

    /// The places of the zones that an owner may be in.
    fn places_of(&self, owner: &str) -> Vec<usize> {
        let Ok(owner_name) = owner.parse::<Name>() else {
            let zones = self.zones.iter().enumerate();
            return zones.filter(|(_, it)| it.content.concerns(owner)).map(|it| it.0).collect();
        };
        let owner_name = owner_name.to_lowercase();
        let mut rest = owner_name.as_wire();
        let mut places = Vec::with_capacity(1);
        loop {
            places.extend(self.places.get(rest));
            match name::parent(rest) {
                Some(parent) => rest = parent,
                None => return places,
            }
        }
    }

    /// Has the server serve a zone from all that the store has for it.
    fn replace(&mut self, place: usize, sets: Vec<RecordSet>) -> Result<(), FeedError> {
        let zone = &mut self.zones[place];
        let (is_large, state) = (sets.len() > LARGE_LOAD, self.publisher.state());
        let apex = zone.content.apex().clone();
        let known = state.zone_set.zone(&apex).filter(|known| known.unit.is_of_feed());
        let served = known.and_then(|known| known.data());
        let serial = match (served, zone.serial) {
            (Some(served), _) => served.serial(),
            (None, 0) => unix_secs(),
            (None, former) => SerialPolicy::UnixTime(unix_secs()).next(former), // it had expired
        };
        let records = zone.content.read_all(sets, serial);
        let update = match load::make(&apex, &records, false, (&state.zone_set, state.seed)) {
            Ok(mut loaded) => {
                loaded = loaded.packed();
                let is_new = served.is_some_and(|served| !Arc::ptr_eq(served, &loaded.zone));
                if is_new && zone.content.makes_soa() {
                    loaded.zone = with_next_serial(&loaded.zone, serial)?;
                }
                (zone.serial, zone.is_loaded) = (loaded.zone.serial(), true);
                Update::Replace(loaded)
            }
            Err(error) => {
                zone.is_loaded = false;
                Update::Unavailable(error)
            }
        };
        zone.state.has_expired.store(false, Relaxed);
        drop((records, state));
        let updated = self.publisher.update(&apex, self.number, update)?.map(drop);
        zone.state.loads.fetch_add(1, Relaxed);
        if is_large {
            memory::give_back();
        }
        updated.map_err(|error| StoreError::failed(error).into())
    }

    /// Has the server change zones by what the store has of some owners.
    fn change<'o>(
        &mut self,
        store: &dyn Store,
        owners: impl Iterator<Item = &'o str>,
    ) -> Result<(), FeedError> {
        let mut changes = vec![Vec::new(); self.zones.len()];
        for owner in owners {
            for place in self.places_of(owner) {
                let zone = &mut self.zones[place];
                let read = zone.content.read_name(owner, zone.serial, |it| store.get(it));
                changes[place].extend(read?);
                zone.state.changes.fetch_add(1, Relaxed);
            }
        }
        for (zone, sets) in self.zones.iter_mut().zip(changes) {
            if sets.is_empty() || !zone.is_loaded {
                continue;
            }
            let serial = match zone.content.makes_soa() {
                true => Serial::Bump(SerialPolicy::UnixTime(unix_secs())),
                false => Serial::Keep,
            };
            let apex = zone.content.apex();
            let update = Update::Change(ChangeSet { sets, serial });
            match self.publisher.update(apex, self.number, update)? {
                Ok(serial) => zone.serial = serial.unwrap_or(zone.serial),
                Err(error) => {
                    tracing::error!(zone = %apex, %error, "a change is refused; all is read anew");
                    zone.is_loaded = false;
                }
            }
        }
        Ok(())
    }

    /// Notes that the zones which could be loaded have what the store has.
    fn note_in_step(&self) {
        let now = unix_secs().into();
        let loaded = self.zones.iter().filter(|zone| zone.is_loaded);
        loaded.for_each(|zone| zone.state.note_in_step(now));
    }

    /// Notes that the store was read.
    fn note_success(&mut self) {
        self.zones.iter().for_each(|zone| zone.state.is_reachable.store(true, Relaxed));
        if let Some(outage) = self.outage.take() {
            let (store, zones) = (self.source.text(), self.names());
            let outage = outage.began.elapsed();
            tracing::info!(store, zones, ?outage, "a store is followed again");
        }
        if let Some(first) = self.first.take() {
            let _ = first.try_send(()); // the receiver may have stopped waiting
        }
    }

    /// Notes that the store cannot be followed, and logs it from time to time.
    fn note_outage(&mut self, error: &StoreError) {
        let now = Instant::now();
        let is_logged =
            self.outage.as_ref().is_some_and(|outage| now - outage.logged < LOG_INTERVAL);
        let (store, zones) = (self.source.text(), self.names());
        let state = self.publisher.state();
        let has_data = |it: &FollowedZone| {
            state.zone_set.zone(it.content.apex()).is_some_and(|zone| zone.data().is_some())
        };
        match (is_logged, self.zones.iter().any(has_data)) {
            (true, _) => tracing::debug!(store, zones, %error, "a store is still unavailable"),
            (false, false) => tracing::error!(
                store, zones, %error,
                "a store is unavailable, retrying; its zones are SERVFAIL meanwhile"
            ),
            (false, true) => tracing::error!(
                store, zones, %error,
                "a store is unavailable, retrying; its zones are served as they were"
            ),
        }
        let began = self.outage.as_ref().map_or(now, |outage| outage.began);
        if !is_logged {
            self.outage = Some(Outage { began, logged: now });
        }
        let reason = LoadError { first: format!("{store}: {error}"), count: 0 }; // it was logged
        for zone in &mut self.zones {
            let was_reachable = zone.state.is_reachable.swap(false, Relaxed);
            if !was_reachable && (self.first.is_none() || is_logged) {
                continue;
            }
            let update = Update::Unavailable(reason.clone());
            // The next turn sees why it fails, if it does.
            let _ = self.publisher.update(zone.content.apex(), self.number, update);
        }
    }

    /// The names of the zones, for the log.
    fn names(&self) -> String {
        /// Names that are listed one by one.
        const LISTED_MAX: usize = 3;
        let listed = self.zones.iter().take(LISTED_MAX).map(|it| it.content.apex().to_string());
        let listed = listed.collect::<Vec<_>>().join(", ");
        match self.zones.len().saturating_sub(LISTED_MAX) {
            0 => listed,
            more => format!("{listed} and {more} more"),
        }
    }
}

/// A zone with a serial greater than another one.
fn with_next_serial(zone: &Arc<Zone>, than: u32) -> Result<Arc<Zone>, StoreError> {
    let serial = Serial::Exactly(SerialPolicy::UnixTime(unix_secs()).next(than));
    let changed = zone.with(&ChangeSet { sets: Vec::new(), serial });
    changed.map(|(zone, _)| Arc::new(zone)).map_err(|error: ChangeError| StoreError::failed(error))
}

/// Returns what a panic said.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no word")
}
