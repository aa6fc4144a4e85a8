//! The feed of all zones of primaries: the threads that read their files and refresh them.
//!
//! ```text
//! NOTIFY ─► queue of the engine ─► thread ─► Schedule ◄─► threads: read, refresh ─► publisher
//! ```
//!
//! Which zone is next, the [`Schedule`] says. However many zones are due, as after a start, there
//! are never more questions than threads.

use super::secondary_refresh::refresh;
use super::secondary_schedule::{Schedule, ScheduleCounts, THREADS};
use super::secondary_state::{SecondaryCounters, SecondaryState, count};
use super::secondary_zone::{SecondaryZone, Surroundings, now_secs, secs_from_now};
use super::store_feed::{NEXT_NUMBER, lock};
use crate::publish::PublisherHandle;
use crate::state_directory;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zonda_config::{Config, SecondaryKeys};
use zonda_engine::notify::Notice;
use zonda_secondary::{Primary, timers};
use zonda_wire::Name;
use zonda_wire::tsig::Key;
use zonda_zone::random_octets;

/// Threads that read files of zones and do nothing else, so that no transfer delays that.
const READERS: usize = 4;
/// How often a thread that waits looks whether it is to end.
const LOOK: Duration = Duration::from_millis(500);
/// How long a thread waits at least for a zone to become due.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
/// How long a zone waits that could not be looked after, as its thread has panicked.
const AFTER_PANIC: Duration = Duration::from_secs(60);

/// The queue of zones that primaries say have changed; taken by the first feed that needs it.
pub type NoticeQueue = Arc<Mutex<Option<Receiver<Notice>>>>;
/// How zones follow their primaries, by their names in lower case.
pub type SecondaryStates = HashMap<Name, Arc<SecondaryState>>;

/// The feed of all zones of primaries.
pub struct SecondaryFeeds {
    /// The queue of zones that primaries say have changed.
    notices: NoticeQueue,
    /// What all zones have done so far.
    counters: Arc<SecondaryCounters>,
    /// The threads, while there are any.
    running: Mutex<Option<Arc<Shared>>>,
    /// How zones follow their primaries, for readers.
    states: ArcSwap<SecondaryStates>,
}

/// What the threads share.
struct Shared {
    /// What all refreshes need.
    around: Surroundings,
    /// The zones, and which is due when.
    followed: Mutex<Followed>,
    /// Is told when a zone is due sooner than any before, or all are to end.
    changed: Condvar,
    /// Is told when there are files to read, or all are to end.
    unread: Condvar,
    /// The beginning of the schedule's time.
    began: Instant,
}

/// The zones that are followed.
#[derive(Default)]
struct Followed {
    /// Which zone is due when.
    schedule: Schedule,
    /// The zones by their apexes in lower case.
    zones: HashMap<Name, Arc<SecondaryZone>>,
}

/// What a thread is to do.
enum Job {
    /// Read the file of a zone.
    Read(Arc<SecondaryZone>),
    /// Refresh a zone; and where it was said that it has changed.
    Refresh(Arc<SecondaryZone>, Option<IpAddr>),
}

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
        // Held until the publisher takes updates of the new feed: none is sent before.
        let mut followed = lock(&shared.followed);
        let mut former = std::mem::take(&mut followed.zones);
        let mut adopted = Vec::new();
        for (zone, secondary) in config.secondaries() {
            let Some(apex) = zone.name.as_ref().map(Name::to_lowercase) else { continue };
            let primaries = primaries(secondary, &keys);
            let kept = former.remove(&apex);
            let is_kept = kept.as_ref().is_some_and(|it| is_same(it, secondary, &primaries));
            let zone = match kept {
                Some(kept) if is_kept => kept,
                kept => {
                    adopted.push(apex.clone());
                    let new =
                        SecondaryZone::new(&apex, number, (secondary, primaries), first.clone());
                    Arc::new(match kept {
                        Some(kept) => kept.replaced_by(new),
                        None => new,
                    })
                }
            };
            followed.zones.insert(apex, zone);
        }
        for (apex, gone) in &former {
            gone.is_gone.store(true, Relaxed);
            followed.schedule.remove(apex);
        }
        let states = followed.zones.iter();
        let states = states.map(|(apex, zone)| (apex.clone(), Arc::clone(&zone.state)));
        self.states.store(Arc::new(states.collect()));
        // Where the publisher fails, so does the first update.
        let _ = publisher.adopt_feed(adopted.clone(), number, true);
        for apex in &adopted {
            let primary = followed.zones.get(apex).and_then(|it| it.primaries.first());
            if let Some(address) = primary.map(|it| it.address) {
                followed.schedule.add(apex, address);
            }
        }
        shared.show(&followed.schedule);
        drop(followed);
        shared.wake_all();
        Ok(())
    }

    /// Starts the threads.
    fn start(&self, publisher: &PublisherHandle, config: &Config) -> io::Result<Arc<Shared>> {
        let around =
            Surroundings::new(publisher.clone(), directory(config), Arc::clone(&self.counters));
        let (followed, changed, unread) = (Mutex::default(), Condvar::new(), Condvar::new());
        let shared = Shared { around, followed, changed, unread, began: Instant::now() };
        let shared = Arc::new(shared);
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
        };
        for number in 0..THREADS + READERS {
            let shared = Arc::clone(&shared);
            spawn("zonda-refresh", Box::new(move || shared.run(number < READERS)))?;
        }
        let (notices, of_thread) = (Arc::clone(&self.notices), Arc::clone(&shared));
        spawn("zonda-notify", Box::new(move || of_thread.take_notices(&notices)))?;
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

    /// Takes zones out of service that were in step with their primaries too long ago, whether a
    /// thread is busy with them or not, and has their primaries asked at once.
    pub fn expire(&self) {
        let Some(shared) = lock(&self.running).clone() else { return };
        let overdue: Vec<_> = {
            let followed = lock(&shared.followed);
            let zones = followed.zones.values();
            zones.filter(|zone| zone.state.lock().is_overdue()).map(Arc::clone).collect()
        };
        for zone in overdue {
            zone.expire_if_overdue(&shared.around);
            lock(&shared.followed).schedule.hasten(&zone.apex, shared.millis());
            shared.changed.notify_one();
        }
    }

    /// Ends the threads. One that waits for a primary ends by itself, soon; none writes a file any
    /// more when this returns.
    pub fn stop(&self) {
        let Some(shared) = lock(&self.running).take() else { return };
        shared.around.stop();
        shared.wake_all();
    }
}

impl Drop for SecondaryFeeds {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// The milliseconds since the beginning of the schedule; never 0, which is at once.
    fn millis(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX) + 1
    }

    /// Wakes all threads.
    fn wake_all(&self) {
        self.changed.notify_all();
        self.unread.notify_all();
    }

    /// Looks after zones as they are due, until all is to end; a reader only reads their files.
    fn run(&self, is_reader: bool) {
        while let Some(job) = self.next(is_reader) {
            let (Job::Read(zone) | Job::Refresh(zone, _)) = &job;
            // The log that the program writes may panic.
            let looked_after = catch_unwind(AssertUnwindSafe(|| self.look_after(&job)));
            let next = looked_after.unwrap_or(AFTER_PANIC);
            zone.end_first();
            zone.state.lock().next_refresh = secs_from_now(next);
            let now = self.millis();
            let due = now + u64::try_from(next.as_millis()).unwrap_or(u64::MAX / 2);
            let mut followed = lock(&self.followed);
            match job {
                Job::Read(_) => followed.schedule.finish_reading(&zone.apex, due),
                Job::Refresh(..) => followed.schedule.finish(&zone.apex, now, due),
            }
            self.show(&followed.schedule);
            drop(followed);
            self.changed.notify_one();
        }
    }

    /// Has metrics show how many zones wait for what.
    fn show(&self, schedule: &Schedule) {
        let ScheduleCounts { unread, notified, waiting, running } = schedule.counts();
        let counters = &self.around.counters;
        let gauges = [&counters.unread, &counters.notified, &counters.waiting, &counters.running];
        for (gauge, count) in gauges.into_iter().zip([unread, notified, waiting, running]) {
            gauge.store(count as u64, Relaxed);
        }
    }

    /// Reads the file of a zone, or refreshes it; returns when it is due next.
    fn look_after(&self, job: &Job) -> Duration {
        let (Job::Read(zone) | Job::Refresh(zone, _)) = job;
        let mut work = zone.work.lock().unwrap_or_else(PoisonError::into_inner);
        if let Job::Refresh(_, from) = job {
            return refresh(zone, &mut work, *from, &self.around);
        }
        if !work.is_loaded {
            zone.load(&mut work, &self.around);
        }
        let Some(timers) = work.zone.as_ref().and_then(|_| zone.timers(&work)) else {
            return Duration::ZERO;
        };
        let age = Duration::from_secs(now_secs().saturating_sub(work.agreed.0));
        let next = timers::spread(timers.refresh, u64::from_be_bytes(random_octets()));
        work.before_expiry(next.saturating_sub(age))
    }

    /// Waits for something to do; none if all is to end.
    fn next(&self, is_reader: bool) -> Option<Job> {
        let mut followed = lock(&self.followed);
        loop {
            if self.around.is_stopped() {
                return None;
            }
            if let Some(job) = followed.take(self.millis(), is_reader) {
                self.show(&followed.schedule);
                return Some(job);
            }
            let next = followed.schedule.next_millis();
            let left = next.map(|due| Duration::from_millis(due.saturating_sub(self.millis())));
            let waited = match is_reader {
                true => self.unread.wait_timeout(followed, LOOK),
                false => {
                    let wait = left.map_or(LOOK, |left| left.clamp(SHORTEST_WAIT, LOOK));
                    self.changed.wait_timeout(followed, wait)
                }
            };
            followed = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes what primaries say over into the schedule, until all is to end.
    fn take_notices(&self, queue: &NoticeQueue) {
        let receiver = loop {
            if self.around.is_stopped() {
                return;
            }
            // A feed that was stopped a moment ago still has it.
            match lock(queue).take() {
                Some(receiver) => break receiver,
                None => std::thread::sleep(LOOK),
            }
        };
        while !self.around.is_stopped() {
            match receiver.recv_timeout(LOOK) {
                Ok(notice) => {
                    count(&self.around.counters.notices, 1);
                    let mut followed = lock(&self.followed);
                    followed.schedule.notify(notice.take(), notice.from);
                    self.show(&followed.schedule);
                    drop(followed);
                    self.changed.notify_one();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        *lock(queue) = Some(receiver); // for a feed that starts later
    }
}

impl Followed {
    /// Takes something to do: files are read first, which no primary can delay.
    fn take(&mut self, now: u64, is_reader: bool) -> Option<Job> {
        if let Some(apex) = self.schedule.take_unread() {
            return self.zones.get(&apex).map(|zone| Job::Read(Arc::clone(zone)));
        }
        if is_reader {
            return None;
        }
        let (apex, from) = self.schedule.take(now)?;
        self.zones.get(&apex).map(|zone| Job::Refresh(Arc::clone(zone), from))
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
