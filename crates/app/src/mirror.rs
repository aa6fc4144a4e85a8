//! Threads that keep zones as stores have them.
//!
//! A mirror watches its store, loads it, and then takes what changed, gathered for a moment, until
//! something fails; then it begins anew, after a pause that grows. The zone keeps what it had.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use zonda_config::ProgramContent;
use zonda_server::{Following, Texts, Zones};
use zonda_store::{Changes, Store, StoreError, ZoneRecords, log_outage};
use zonda_wire::Name;
use zonda_zone::Records;

/// How long a start waits for stores; one that is slower begins without data.
const FIRST_LOAD: Duration = Duration::from_secs(3);
/// How long changes are gathered at least: a client that asks for what it has just written waits
/// for it, and a thousand changes at a time make one zone.
const GATHERING_MIN: Duration = Duration::from_millis(20);
/// How long they are gathered at most, however much CPU time it takes to make the zone.
const GATHERING_MAX: Duration = Duration::from_secs(2);
/// How long a watch is waited for before it is looked whether the app stops.
const LOOK: Duration = Duration::from_millis(250);
/// The pause before a store that failed is tried again; doubled each time.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// A store that was followed for so long fails anew; one that fails sooner still does.
const STEADY: Duration = Duration::from_secs(10);
/// How often the log says again that a store fails.
const REMINDER: Duration = Duration::from_secs(60);
/// How long a stop waits for mirrors; one that waits for its database is left to end later.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// All mirrors of an app. [`App`](crate::App) has them; a program that starts a
/// [`Server`](zonda_server::Server) itself, as the packages for other languages do, uses them so.
///
/// They end when [`stop`](Self::stop) says so, or when they are dropped before the server runs.
pub struct Mirrors {
    front: Arc<Front>,
    /// Hears nothing until all mirrors have ended.
    ended: Mutex<Receiver<()>>,
}

impl Mirrors {
    /// Starts a mirror for each zone, whose name is in lower case; `texts` then has what their
    /// stores have, as far as these could be reached soon. Blocks for at most three seconds.
    ///
    /// # Errors
    /// When a thread cannot be had.
    pub fn start(
        stores: Vec<(Name, Arc<dyn Store>)>,
        texts: &Arc<Mutex<Texts>>,
    ) -> io::Result<Self> {
        let front = Arc::new(Front {
            texts: Arc::clone(texts),
            followings: stores.iter().map(|(apex, _)| (apex.clone(), Arc::default())).collect(),
            zones: OnceLock::new(),
            is_stopped: Mutex::new(false),
            stop: Condvar::new(),
        });
        let (end, ended) = sync_channel(0);
        let mirrors = Self { front, ended: Mutex::new(ended) };
        let (first, loaded) = sync_channel(stores.len());
        for (place, (apex, store)) in stores.into_iter().enumerate() {
            lock(texts).insert(apex.clone(), ProgramContent::Awaited); // until loaded
            let mirror = Mirror {
                following: Arc::clone(&mirrors.front.followings[place].1),
                records: ZoneRecords::new(&apex),
                apex,
                store,
                front: Arc::clone(&mirrors.front),
                first: Some(first.clone()),
                outage: None,
                gathering: GATHERING_MIN,
            };
            let end = end.clone();
            std::thread::Builder::new().name("zonda-store".to_owned()).spawn(move || {
                mirror.run();
                drop(end);
            })?;
        }
        drop(first);
        let limit = Instant::now() + FIRST_LOAD;
        while loaded.recv_timeout(limit.saturating_duration_since(Instant::now())).is_ok() {}
        Ok(mirrors)
    }

    /// Whether a zone, whose name is in lower case, follows a store.
    #[must_use]
    pub fn has(&self, apex: &Name) -> bool {
        self.front.followings.iter().any(|(other, _)| other == apex)
    }

    /// From now on changes are put into force, in a server that was started with these texts.
    pub fn serve(&self, zones: Zones) {
        // Set before the versions are read, so that one is either read here or put into force by
        // the mirror that made it.
        for (apex, following) in &self.front.followings {
            zones.show_store(apex, Arc::clone(following));
        }
        if self.front.zones.set(zones).is_ok() {
            self.front.followings.iter().for_each(|(apex, _)| self.front.publish(apex));
        }
    }

    /// Stops all mirrors. The thread of a store that does not return within a second is not
    /// waited for.
    pub fn stop(&self) {
        self.front.stop();
        if lock(&self.ended).recv_timeout(STOP_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("a store did not return; stopping without waiting for its thread");
        }
    }
}

impl Drop for Mirrors {
    /// Ends the mirrors of a server that was never started; other mirrors end with their server.
    fn drop(&mut self) {
        if self.front.zones.get().is_none() {
            self.front.stop();
        }
    }
}

/// Where mirrors bring their zones.
struct Front {
    texts: Arc<Mutex<Texts>>,
    /// The zones that have mirrors, and how they follow their stores.
    followings: Vec<(Name, Arc<Following>)>,
    /// Known once the server runs.
    zones: OnceLock<Zones>,
    is_stopped: Mutex<bool>,
    stop: Condvar,
}

impl Front {
    /// Brings the records of a zone.
    fn put(&self, apex: &Name, records: Arc<Records>) {
        lock(&self.texts).insert(apex.clone(), ProgramContent::Records(records));
        self.publish(apex);
    }

    /// Puts the last version of a zone into force if the server runs.
    fn publish(&self, apex: &Name) {
        let Some(zones) = self.zones.get() else { return };
        // Read when it is this zone's turn, so that no older version comes last.
        let last = || lock(&self.texts).get(apex).cloned().unwrap_or_default();
        if !zones.set(apex, last) {
            self.stop(); // the server has ended by itself
        }
    }

    /// Asks all mirrors to end.
    fn stop(&self) {
        *lock(&self.is_stopped) = true;
        self.stop.notify_all();
    }

    /// Waits; whether mirrors are to end.
    fn pause(&self, duration: Duration) -> bool {
        let is_stopped = lock(&self.is_stopped);
        let waited = self.stop.wait_timeout_while(is_stopped, duration, |stopped| !*stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Returns what a lock protects, for a moment; all that are here are whole after any panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a zone as its store has it.
struct Mirror {
    apex: Name,
    store: Arc<dyn Store>,
    records: ZoneRecords,
    /// How the zone follows the store, for status and metrics.
    following: Arc<Following>,
    front: Arc<Front>,
    /// Channel for the end of the first load.
    first: Option<SyncSender<()>>,
    /// Outage since which the store cannot be followed.
    outage: Option<Outage>,
    /// Time for which changes are gathered.
    gathering: Duration,
}

/// A time in which a store cannot be followed.
struct Outage {
    began: Instant,
    /// Moment of the last line in the log about it.
    told: Instant,
}

impl Mirror {
    /// Runs until mirrors are to end.
    fn run(mut self) {
        let mut pause = PAUSE_MIN;
        loop {
            // The log that the program writes may panic as well as the store.
            let turn = catch_unwind(AssertUnwindSafe(|| self.follow_until_failure(&mut pause)));
            if !turn.unwrap_or(true) || self.front.pause(pause) {
                return;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Follows the store until something fails; whether it is to be tried again after `pause`.
    fn follow_until_failure(&mut self, pause: &mut Duration) -> bool {
        let began = Instant::now();
        let followed = catch_unwind(AssertUnwindSafe(|| self.follow()));
        let error = match followed {
            Ok(Ok(())) => return false,
            Ok(Err(error)) => error,
            Err(panic) => StoreError::failed(format!("it panicked: {}", said(&*panic))),
        };
        if self.front.pause(Duration::ZERO) {
            return false; // what fails while all ends is no outage
        }
        if began.elapsed() > STEADY {
            *pause = PAUSE_MIN;
        }
        self.note_outage(&error);
        true
    }

    /// Follows the store until mirrors are to end.
    fn follow(&mut self) -> Result<(), StoreError> {
        let mut watch = self.store.watch(&self.apex)?; // before it is read: no change is missed
        self.take(&Changes::all())?;
        self.note_success();
        while !self.front.pause(Duration::ZERO) {
            let mut changes = watch.wait(LOOK)?;
            if changes.is_none() {
                self.note_in_step();
            } else {
                self.front.pause(self.gathering);
                changes.merge(watch.wait(Duration::ZERO)?);
                self.take(&changes)?;
            }
        }
        Ok(())
    }

    /// Takes over what changed.
    fn take(&mut self, changes: &Changes) -> Result<(), StoreError> {
        let started = cpu_time();
        match changes.owners() {
            Some(owners) => {
                for owner in owners {
                    if !self.records.concerns(owner) {
                        continue;
                    }
                    let sets = self.store.get(owner)?;
                    self.records.set(owner.clone(), sets);
                    self.following.changes.fetch_add(1, Relaxed);
                }
            }
            None => {
                self.records.set_all(self.store.load(&self.apex)?);
                self.following.loads.fetch_add(1, Relaxed);
            }
        }
        if let Some(records) = self.records.make(unix_secs()) {
            self.front.put(&self.apex, records);
        }
        self.following.left_out.store(self.records.left_out(), Relaxed);
        self.note_in_step();
        // A large zone that changes all the time keeps half of one CPU busy, not all of it. Time in
        // which this thread waited, for a CPU or the database, is no reason to wait once more.
        let used = cpu_time().saturating_sub(started);
        self.gathering = used.clamp(GATHERING_MIN, GATHERING_MAX);
        Ok(())
    }

    /// Notes that the zone has what the store has.
    fn note_in_step(&self) {
        self.following.in_step_at.store(unix_secs().into(), Relaxed);
    }

    /// Notes that the store was read.
    fn note_success(&mut self) {
        self.following.is_reachable.store(true, Relaxed);
        if let Some(outage) = self.outage.take() {
            let secs = outage.began.elapsed().as_secs_f32();
            tracing::info!("store of {}: it is followed again, after {secs:.1} s", self.apex);
        }
        if let Some(first) = self.first.take() {
            let _ = first.try_send(()); // the receiver may have stopped waiting
        }
    }

    /// Notes that the store cannot be followed, and logs it from time to time.
    fn note_outage(&mut self, error: &StoreError) {
        self.following.is_reachable.store(false, Relaxed);
        let now = Instant::now();
        let is_told = self.outage.as_ref().is_some_and(|outage| now - outage.told < REMINDER);
        if is_told {
            tracing::debug!("store of {}: {error}", self.apex);
        } else {
            log_outage(&self.apex, self.first.is_none(), error);
            let began = self.outage.as_ref().map_or(now, |outage| outage.began);
            self.outage = Some(Outage { began, told: now });
        }
    }
}

/// CPU time that this thread has used; zero where the system does not report it.
fn cpu_time() -> Duration {
    zonda_netio::process::thread_cpu_time().unwrap_or_default()
}

/// Returns what a panic said.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no word")
}

/// Seconds since 1970, by which serials rise also across restarts.
fn unix_secs() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}
