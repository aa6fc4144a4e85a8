//! The feed of all zones of primaries: which is due when, and the threads that refresh them.
//!
//! ```text
//! NOTIFY ─► queue of the engine ─► notified ─┐
//! due: a map by time ────────────────────────┼─► thread ─► load, refresh ─► due
//! waiting: by primary, while that is busy ───┘
//! ```
//!
//! Zones that primaries have said to have changed come first. Of the threads, no more than a share
//! ask one primary at a time, so that one that does not answer delays no zone of another. However
//! many zones are due, as after a start, there are never more questions than threads.

use super::secondary_refresh::refresh;
use super::secondary_state::{SecondaryCounters, SecondaryState, count};
use super::secondary_zone::{SecondaryZone, Surroundings, ZoneWork, now_secs, secs_from_now};
use super::store_feed::{NEXT_NUMBER, lock};
use crate::publish::PublisherHandle;
use crate::state_directory;
use arc_swap::ArcSwap;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zonda_config::{Config, SecondaryKeys};
use zonda_engine::notify::Notice;
use zonda_secondary::Primary;
use zonda_wire::Name;
use zonda_wire::tsig::Key;
use zonda_zone::random_octets;

/// Threads that refresh zones.
const THREADS: usize = 16;
/// Threads that ask one primary at a time.
const THREADS_OF_PRIMARY: usize = 8;
/// How often a thread that waits looks whether it is to end.
const LOOK: Duration = Duration::from_millis(500);
/// Time over which the first checks of zones that were kept are spread.
const FIRST_CHECKS: Duration = Duration::from_secs(30);
/// How long a zone waits that could not be looked after, as its thread has panicked.
const AFTER_PANIC: Duration = Duration::from_secs(60);

/// The queue of zones that primaries say have changed; taken by the first feed that needs it.
pub type NoticeQueue = Arc<Mutex<Option<Receiver<Notice>>>>;
/// How zones follow their primaries, by their names in lower case.
pub type SecondaryStates = HashMap<Name, Arc<SecondaryState>>;

/// The feed of all zones of primaries.
pub struct SecondaryFeeds {
    notices: NoticeQueue,
    counters: Arc<SecondaryCounters>,
    /// The threads, while there are any.
    running: Mutex<Option<Arc<Shared>>>,
    /// How zones follow their primaries, for readers.
    states: ArcSwap<SecondaryStates>,
}

/// What the threads share.
struct Shared {
    around: Surroundings,
    schedule: Mutex<Schedule>,
    /// Is told when a zone is due sooner than any before, or all are to end.
    changed: Condvar,
}

/// A zone of the schedule.
struct Scheduled {
    zone: Arc<SecondaryZone>,
    /// The place of the zone among those that are due, if it is there.
    due: Option<(Instant, u64)>,
    /// Whether a thread looks after the zone.
    is_running: bool,
    /// Whether the zone has changed while a thread looked after it, and where that was said.
    again: Option<IpAddr>,
}

/// Which zone is due when.
#[derive(Default)]
struct Schedule {
    zones: HashMap<Name, Scheduled>,
    /// The zones by the moments at which they are due; a number tells apart those of one moment.
    due: BTreeMap<(Instant, u64), Name>,
    /// The zones that have changed, as a primary says.
    notified: VecDeque<(Name, IpAddr)>,
    /// The zones that wait for threads of their first primary.
    waiting: HashMap<SocketAddr, VecDeque<(Name, Option<IpAddr>)>>,
    /// The zones that need wait no longer.
    ready: VecDeque<(Name, Option<IpAddr>)>,
    /// Threads that look after zones, by the first primary of these.
    busy: HashMap<SocketAddr, usize>,
    next_number: u64,
}

/// A zone that a thread is to look after, and where it was said that it has changed.
type Job = (Arc<SecondaryZone>, Option<IpAddr>);

impl SecondaryFeeds {
    /// A feed without zones.
    pub fn new(notices: NoticeQueue) -> Self {
        Self {
            notices,
            counters: Arc::default(),
            running: Mutex::default(),
            states: ArcSwap::default(),
        }
    }

    /// Follows the zones of primaries of a configuration from now on, and only those; `first` is
    /// dropped once their files were read.
    ///
    /// # Errors
    /// When a thread cannot be had.
    pub fn follow(
        &self,
        publisher: &PublisherHandle,
        config: &Config,
        first: &SyncSender<()>,
    ) -> io::Result<()> {
        let mut running = lock(&self.running);
        if config.secondaries().next().is_none() && running.is_none() {
            return Ok(());
        }
        let shared = match &*running {
            Some(shared) => Arc::clone(shared),
            None => self.start(publisher, config)?,
        };
        *running = Some(Arc::clone(&shared));
        let number = NEXT_NUMBER.fetch_add(1, Relaxed);
        let keys = keys(config);
        let mut adopted = Vec::new();
        {
            let mut schedule = lock(&shared.schedule);
            let mut former = std::mem::take(&mut schedule.zones);
            for (zone, secondary) in config.secondaries() {
                let Some(apex) = zone.name.as_ref().map(Name::to_lowercase) else { continue };
                let primaries = primaries(secondary, &keys);
                let kept = former.remove(&apex);
                match kept {
                    Some(kept) if is_same(&kept.zone, secondary, &primaries) => {
                        schedule.zones.insert(apex, kept);
                        continue;
                    }
                    Some(changed) => _ = former.insert(apex.clone(), changed),
                    None => {}
                }
                adopted.push(apex.clone());
                let zone = SecondaryZone {
                    apex: apex.clone(),
                    number,
                    keys: Arc::clone(secondary),
                    primaries,
                    state: Arc::default(),
                    is_gone: AtomicBool::default(),
                    work: Mutex::new(ZoneWork::default()),
                    first: Mutex::new(Some(first.clone())),
                };
                schedule.add(Arc::new(zone));
            }
            for gone in former.values() {
                gone.zone.is_gone.store(true, Relaxed);
                gone.due.iter().for_each(|place| _ = schedule.due.remove(place));
            }
            let states = schedule.zones.values();
            let states = states.map(|it| (it.zone.apex.clone(), Arc::clone(&it.zone.state)));
            self.states.store(Arc::new(states.collect()));
        }
        // Where the publisher fails, so does the first update.
        let _ = publisher.adopt_feed(adopted.clone(), number, true);
        lock(&shared.schedule).start(adopted);
        shared.changed.notify_all();
        Ok(())
    }

    /// Starts the threads.
    fn start(&self, publisher: &PublisherHandle, config: &Config) -> io::Result<Arc<Shared>> {
        let around = Surroundings {
            publisher: publisher.clone(),
            directory: directory(config),
            counters: Arc::clone(&self.counters),
            silent: Mutex::default(),
            without_changes: Mutex::default(),
            is_stopped: AtomicBool::default(),
        };
        let (schedule, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { around, schedule, changed });
        for _ in 0..THREADS {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name("zonda-refresh".to_owned())
                .spawn(move || shared.run())?;
        }
        let (notices, of_thread) = (Arc::clone(&self.notices), Arc::clone(&shared));
        std::thread::Builder::new()
            .name("zonda-notify".to_owned())
            .spawn(move || of_thread.take_notices(&notices))?;
        Ok(shared)
    }

    /// How zones follow their primaries, by their names in lower case.
    pub fn states(&self) -> Arc<SecondaryStates> {
        self.states.load_full()
    }

    /// What all zones of primaries have done so far.
    pub fn counters(&self) -> &SecondaryCounters {
        &self.counters
    }

    /// Takes zones out of service that were in step with their primaries too long ago.
    pub fn expire(&self) {
        let Some(shared) = lock(&self.running).clone() else { return };
        let now = now_secs();
        let is_overdue = |zone: &&Scheduled| {
            let status = zone.zone.state.lock();
            status.serial.is_some() && status.expires_at <= now
        };
        let overdue: Vec<_> = {
            let schedule = lock(&shared.schedule);
            schedule.zones.values().filter(is_overdue).map(|it| Arc::clone(&it.zone)).collect()
        };
        for zone in overdue {
            // One that is being transferred expires when that has failed, if it does.
            if let Ok(mut work) = zone.work.try_lock() {
                zone.expire_if_due(&mut work, &shared.around);
            }
        }
    }

    /// Ends the threads. One that waits for a primary ends by itself, soon.
    pub fn stop(&self) {
        let Some(shared) = lock(&self.running).take() else { return };
        shared.around.is_stopped.store(true, Relaxed);
        shared.changed.notify_all();
    }
}

impl Drop for SecondaryFeeds {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// Looks after zones as they are due, until all is to end.
    fn run(&self) {
        while let Some((zone, from)) = self.next() {
            // The log that the program writes may panic.
            let looked_after = catch_unwind(AssertUnwindSafe(|| self.look_after(&zone, from)));
            let next = looked_after.unwrap_or(AFTER_PANIC);
            zone.end_first();
            zone.state.lock().next_refresh = secs_from_now(next);
            lock(&self.schedule).finish(&zone, next);
            self.changed.notify_one();
        }
    }

    /// Loads a zone for the first time, or refreshes it; returns when it is due next.
    fn look_after(&self, zone: &SecondaryZone, from: Option<IpAddr>) -> Duration {
        let mut work = zone.work.lock().unwrap_or_else(PoisonError::into_inner);
        if work.is_loaded {
            return refresh(zone, &mut work, from, &self.around);
        }
        zone.load(&mut work, &self.around);
        zone.end_first();
        let Some(timers) = zone.timers(&work) else {
            return refresh(zone, &mut work, from, &self.around);
        };
        // Not all that were kept at once, and none later than it was due.
        let age = Duration::from_secs(now_secs().saturating_sub(work.agreed.0));
        let left = timers.refresh.saturating_sub(age);
        let random = u64::from_be_bytes(random_octets()) % 1024;
        left.min(FIRST_CHECKS.min(timers.refresh / 10).mul_f64(random as f64 / 1024.0))
    }

    /// Waits for a zone that is due; none if all is to end.
    fn next(&self) -> Option<Job> {
        let mut schedule = lock(&self.schedule);
        loop {
            if self.around.is_stopped.load(Relaxed) {
                return None;
            }
            let now = Instant::now();
            if let Some(job) = schedule.take(now) {
                return Some(job);
            }
            let next = schedule.due.keys().next().map(|(moment, _)| *moment);
            let wait = next.map_or(LOOK, |moment| moment.saturating_duration_since(now).min(LOOK));
            let waited = self.changed.wait_timeout(schedule, wait);
            schedule = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes what primaries say over into the schedule, until all is to end.
    fn take_notices(&self, queue: &NoticeQueue) {
        let receiver = loop {
            if self.around.is_stopped.load(Relaxed) {
                return;
            }
            // A feed that was stopped a moment ago still has it.
            match lock(queue).take() {
                Some(receiver) => break receiver,
                None => std::thread::sleep(LOOK),
            }
        };
        while !self.around.is_stopped.load(Relaxed) {
            match receiver.recv_timeout(LOOK) {
                Ok(notice) => {
                    count(&self.around.counters.notices, 1);
                    lock(&self.schedule).notify(notice.take(), notice.from);
                    self.changed.notify_one();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        *lock(queue) = Some(receiver); // for a feed that starts later
    }
}

impl Schedule {
    /// Adds a zone, which is due once it is started.
    fn add(&mut self, zone: Arc<SecondaryZone>) {
        let apex = zone.apex.clone();
        self.zones.insert(apex, Scheduled { zone, due: None, is_running: false, again: None });
    }

    /// Makes zones due at once.
    fn start(&mut self, zones: Vec<Name>) {
        zones.into_iter().for_each(|apex| self.put(apex, Instant::now()));
    }

    /// Makes a zone due at a moment, and at no other.
    fn put(&mut self, apex: Name, moment: Instant) {
        self.next_number += 1;
        let Some(zone) = self.zones.get_mut(&apex) else { return };
        let place = (moment, self.next_number);
        if let Some(former) = zone.due.replace(place) {
            self.due.remove(&former);
        }
        self.due.insert(place, apex);
    }

    /// Notes that a zone has changed, as a primary says.
    fn notify(&mut self, apex: &Name, from: IpAddr) {
        match self.zones.get_mut(apex) {
            Some(zone) if zone.is_running => zone.again = Some(from),
            Some(_) => self.notified.push_back((apex.clone(), from)),
            None => {}
        }
    }

    /// Takes a zone that is due now, and whose first primary has a thread free.
    fn take(&mut self, now: Instant) -> Option<Job> {
        loop {
            let (apex, from) = self.pop(now)?;
            let Some(scheduled) = self.zones.get_mut(&apex) else { continue };
            if scheduled.is_running {
                scheduled.again = from.or(scheduled.again);
                continue;
            }
            let primary = scheduled.zone.primaries.first().map(|it| it.address);
            let Some(primary) = primary else { continue };
            let busy = self.busy.entry(primary).or_default();
            if *busy >= THREADS_OF_PRIMARY {
                self.waiting.entry(primary).or_default().push_back((apex, from));
                continue;
            }
            *busy += 1;
            scheduled.is_running = true;
            if let Some(place) = scheduled.due.take() {
                self.due.remove(&place);
            }
            return Some((Arc::clone(&scheduled.zone), from));
        }
    }

    /// Takes the name of a zone that is due.
    fn pop(&mut self, now: Instant) -> Option<(Name, Option<IpAddr>)> {
        if let Some((apex, from)) = self.notified.pop_front() {
            return Some((apex, Some(from)));
        }
        if let Some(ready) = self.ready.pop_front() {
            return Some(ready);
        }
        let ((moment, _), _) = self.due.first_key_value()?;
        if *moment > now {
            return None;
        }
        let (_, apex) = self.due.pop_first()?;
        if let Some(zone) = self.zones.get_mut(&apex) {
            zone.due = None;
        }
        Some((apex, None))
    }

    /// Notes that a thread has looked after a zone, which is due again after a time.
    fn finish(&mut self, zone: &Arc<SecondaryZone>, next: Duration) {
        if let Some(primary) = zone.primaries.first().map(|it| it.address) {
            if let Some(busy) = self.busy.get_mut(&primary) {
                *busy = busy.saturating_sub(1);
                if *busy == 0 {
                    self.busy.remove(&primary);
                }
            }
            if let Some(waiting) = self.waiting.get_mut(&primary) {
                self.ready.extend(waiting.pop_front());
                if waiting.is_empty() {
                    self.waiting.remove(&primary);
                }
            }
        }
        let Some(scheduled) = self.zones.get_mut(&zone.apex) else { return };
        if !Arc::ptr_eq(&scheduled.zone, zone) {
            return; // another configuration has taken its place
        }
        scheduled.is_running = false;
        match scheduled.again.take() {
            Some(from) => {
                self.notified.push_back((zone.apex.clone(), from));
                self.put(zone.apex.clone(), Instant::now() + next);
            }
            None => self.put(zone.apex.clone(), Instant::now() + next),
        }
    }
}

/// The directory of the files of zones, which is made if it is not there; none, which is logged,
/// where it cannot be had.
fn directory(config: &Config) -> Option<PathBuf> {
    let made = state_directory::path(config).and_then(|path| {
        let path = path.join("secondary");
        state_directory::make(&path)?;
        Ok(path)
    });
    made.inspect_err(|error| {
        tracing::error!(error, "zones of primaries are not kept on the disk");
    })
    .ok()
}

/// The keys of a configuration, by their names in lower case.
fn keys(config: &Config) -> HashMap<Name, Arc<Key>> {
    let keys = config.keys.iter();
    let key = |it: &zonda_config::TsigKey| Key::new(&it.name, it.algorithm, it.secret.reveal());
    keys.map(|it| (it.name.to_lowercase(), Arc::new(key(it)))).collect()
}

/// The primaries of a zone, with their keys.
fn primaries(keys: &SecondaryKeys, all: &HashMap<Name, Arc<Key>>) -> Vec<Primary> {
    let primary = |it: &zonda_config::RemoteServer| Primary {
        address: it.address,
        key: it.key.as_ref().and_then(|name| all.get(name)).map(Arc::clone),
    };
    keys.from.iter().map(primary).collect()
}

/// Whether a zone is followed as a configuration says.
fn is_same(zone: &SecondaryZone, keys: &Arc<SecondaryKeys>, primaries: &[Primary]) -> bool {
    let is_equal = |(one, other): (&Primary, &Primary)| match (&one.key, &other.key) {
        (None, None) => true,
        (Some(one), Some(other)) => one.is_same(other),
        _ => false,
    };
    zone.keys == *keys && zone.primaries.iter().zip(primaries).all(is_equal)
}
