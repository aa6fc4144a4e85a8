//! The feed of all zones of primaries: the threads that read their files and refresh them.
//!
//! ```text
//! NOTIFY ─► queue of the engine ─► thread ─► Schedule ◄─► threads: read, refresh ─► publisher
//! ```
//!
//! Which zone is next, the [`Schedule`] says. However many zones are due, as after a start, there
//! are never more questions than threads.

use super::secondary_followed::{Followed, Job, TermsOfFeed, next_of, report_channel};
pub use super::secondary_followed::{MemberChange, NewMember, PendingReport, RefreshReport};
use super::secondary_refresh::refresh;
use super::secondary_schedule::{Prompt, Schedule, ScheduleCounts, THREADS};
use super::secondary_state::{SecondaryCounters, SecondaryState, count};
pub use super::secondary_zone::FileFate;
use super::secondary_zone::{SecondaryZone, Surroundings, WaitListener, now_secs, secs_from_now};
use super::secondary_zones::SecondaryZones;
use super::store_feed::lock;
use crate::publish::PublisherHandle;
use crate::state_directory;
use crate::zone_set::fed_zone::FedOwner;
use arc_swap::ArcSwapOption;
use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use zonda_config::Config;
use zonda_engine::notify::{Announcement, Notice};
use zonda_netio::memory;
use zonda_secondary::{Budget, timers};
use zonda_wire::Name;
use zonda_wire::tsig::Key;
use zonda_zone::random_octets;

/// Threads that read files of zones and do nothing else, so that no transfer delays that.
const READERS: usize = 4;
/// How often a thread that waits looks whether it is to end.
const LOOK: Duration = Duration::from_millis(500);
/// How often it is looked whether a reload has made another queue of what primaries say.
const NOTICE_LOOK: Duration = Duration::from_millis(100);
/// How long a thread waits at least for a zone to become due.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);
/// Files of zones that are read before memory is given back: that looks at all of the heap.
const MANY_FILES: usize = 1000;
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
    /// The memory of all transfers together.
    budget: Arc<Budget>,
    /// The threads, while there are any.
    running: Mutex<Option<Arc<Shared>>>,
    /// How zones follow their primaries, for readers; none if the zones have changed since.
    states: ArcSwapOption<SecondaryStates>,
    /// The number of starts that fail, as they would where the system has no thread left.
    #[cfg(test)]
    pub starts_to_fail: AtomicUsize,
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
    /// Number of files that were read since memory was given back.
    files_read: AtomicUsize,
    /// The beginning of the schedule's time.
    began: Instant,
}

impl SecondaryFeeds {
    /// A feed without zones, whose transfers may take so many octets of memory together.
    pub fn new(notices: NoticeQueue, octets_max: u64) -> Self {
        Self {
            notices,
            counters: Arc::default(),
            budget: Arc::new(Budget::new(octets_max)),
            running: Mutex::default(),
            states: ArcSwapOption::default(),
            #[cfg(test)]
            starts_to_fail: AtomicUsize::default(),
        }
    }

    /// Follows the zones of primaries of a configuration from now on, and only those and members
    /// of catalogs; `first` is dropped once their files were read.
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
        let shared = self.shared(&mut running, publisher, config)?;
        let keys = keys(config);
        let mut terms = TermsOfFeed::new(&keys, false);
        let first = Arc::new(first.clone());
        // Held until the publisher takes updates of the new feed: none is sent before.
        let mut followed = lock(&shared.followed);
        let mut former = SecondaryZones::default();
        for zone in followed.zones.take_all() {
            let zones = if zone.terms.is_member { &mut followed.zones } else { &mut former };
            zones.insert(zone);
        }
        let mut adopted = Vec::new();
        for (zone, secondary) in config.secondaries() {
            let Some(apex) = zone.name.as_ref().map(Name::to_lowercase) else { continue };
            let kept = former.remove(&apex).or_else(|| followed.zones.remove(&apex));
            let new = SecondaryZone::new(&apex, terms.of(secondary), &first);
            let (zone, is_new) = next_of(kept, new);
            adopted.extend(is_new.then(|| apex.clone()));
            followed.zones.insert(zone);
        }
        for gone in former.iter() {
            gone.is_gone.store(true, Relaxed);
            followed.schedule.remove(&gone.apex);
            followed.waiters.remove(&gone.apex); // which tells them
        }
        self.states.store(None);
        // Where the publisher fails, so does the first update.
        let _ = publisher.adopt_feed(adopted.clone(), terms.number, FedOwner::Configuration);
        followed.add_due(&adopted, &shared.around.addresses);
        shared.show(&followed.schedule);
        drop(followed);
        shared.wake_all();
        Ok(())
    }

    /// Follows members of catalogs no more, or with other settings; those that are both gone and
    /// new are followed anew. A zone that the configuration names is left to that. Costs what
    /// changes, whatever the number of zones.
    ///
    /// # Errors
    /// When a thread cannot be had, or the publisher fails; then, all members are to be given to
    /// this once more.
    pub fn change_members(
        &self,
        publisher: &PublisherHandle,
        config: &Config,
        change: MemberChange,
        first: &SyncSender<()>,
    ) -> io::Result<()> {
        let mut running = lock(&self.running);
        let shared = self.shared(&mut running, publisher, config)?;
        // Held until the publisher takes updates of the new feeds: none is sent before.
        let mut followed = lock(&shared.followed);
        let (removed, forgotten) = followed.remove_members(change.removed);
        let (added, adopted) = followed.add_members(change.added, &keys(config), first);
        self.states.store(None);
        let changed = publisher.change_members(removed, added);
        shared.around.forget(&forgotten);
        let returned = shared.around.take_back(&change.returned);
        followed.add_due(&adopted, &shared.around.addresses);
        // What their primaries have said meanwhile was not heard.
        returned.iter().for_each(|apex| followed.schedule.prompt(apex, Prompt::Refresh));
        shared.show(&followed.schedule);
        drop(followed);
        shared.wake_all();
        changed.map_err(|error| io::Error::other(error.to_string()))
    }

    /// Removes files of members that were set aside too long ago.
    pub fn sweep(&self) {
        let running = lock(&self.running).clone();
        running.iter().for_each(|shared| shared.around.sweep());
    }

    /// Starts the threads, unless they run; then, zones can be followed.
    ///
    /// # Errors
    /// When a thread cannot be had.
    pub fn start_threads(&self, publisher: &PublisherHandle, config: &Config) -> io::Result<()> {
        self.shared(&mut lock(&self.running), publisher, config).map(drop)
    }

    /// What the threads share that run, and are started if they do not.
    fn shared(
        &self,
        running: &mut Option<Arc<Shared>>,
        publisher: &PublisherHandle,
        config: &Config,
    ) -> io::Result<Arc<Shared>> {
        if let Some(shared) = running {
            return Ok(Arc::clone(shared));
        }
        #[cfg(test)]
        if self.starts_to_fail.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let shared = self.shared_of(publisher, config);
        // Those that run already end.
        self.start(&shared).inspect_err(|_| shared.around.stop())?;
        Ok(Arc::clone(running.insert(shared)))
    }

    /// What threads share that do not run yet.
    fn shared_of(&self, publisher: &PublisherHandle, config: &Config) -> Arc<Shared> {
        let (counters, budget) = (Arc::clone(&self.counters), Arc::clone(&self.budget));
        Arc::new_cyclic(|shared: &Weak<Shared>| {
            let shared = Weak::clone(shared);
            let note_wait: WaitListener = Box::new(move |apex, is_waiting| {
                shared.upgrade().iter().for_each(|shared| shared.note_wait(apex, is_waiting));
            });
            let (directory, waits) = (directory(config), (budget, note_wait));
            let around = Surroundings::new(publisher.clone(), directory, counters, waits);
            let (followed, changed, unread) = (Mutex::default(), Condvar::new(), Condvar::new());
            let (files_read, began) = (AtomicUsize::default(), Instant::now());
            Shared { around, followed, changed, unread, files_read, began }
        })
    }

    /// Starts the threads.
    fn start(&self, shared: &Arc<Shared>) -> io::Result<()> {
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
        };
        for number in 0..THREADS + READERS {
            let shared = Arc::clone(shared);
            spawn("zonda-refresh", Box::new(move || shared.run(number < READERS)))?;
        }
        let (notices, of_thread) = (Arc::clone(&self.notices), Arc::clone(shared));
        spawn("zonda-notify", Box::new(move || of_thread.take_notices(&notices)))
    }

    /// Has a zone, whose name is in lower case, refreshed out of turn; returns what receives the
    /// result, or nothing for a zone that is not followed. The sender is dropped if the zone is
    /// followed no more.
    pub fn refresh(&self, apex: &Name, prompt: Prompt) -> Option<PendingReport> {
        let shared = lock(&self.running).clone()?;
        let mut followed = lock(&shared.followed);
        if !followed.zones.contains(apex) {
            return None;
        }
        let (waiter, report) = report_channel();
        followed.add_waiter(apex, waiter);
        followed.schedule.prompt(apex, prompt);
        shared.show(&followed.schedule);
        drop(followed);
        shared.changed.notify_one();
        Some(report)
    }

    /// How zones follow their primaries, by their names in lower case.
    pub fn states(&self) -> Arc<SecondaryStates> {
        if let Some(states) = self.states.load_full() {
            return states;
        }
        let Some(shared) = lock(&self.running).clone() else { return Arc::default() };
        let followed = lock(&shared.followed);
        let zones = followed.zones.iter();
        let states = zones.map(|zone| (zone.apex.clone(), Arc::clone(&zone.state)));
        let states: Arc<SecondaryStates> = Arc::new(states.collect());
        self.states.store(Some(Arc::clone(&states))); // while the zones cannot change
        states
    }

    /// The memory of all transfers together.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// What all zones of primaries have done so far.
    pub fn counters(&self) -> &SecondaryCounters {
        &self.counters
    }

    /// Takes zones out of service that were in step with their primaries too long ago, whether a
    /// thread is busy with them or not, and has their primaries asked at once. Looks at the zones
    /// only if one may have expired.
    pub fn expire(&self) {
        let Some(shared) = lock(&self.running).clone() else { return };
        if !shared.around.may_have_expired() {
            return;
        }
        let is_overdue = |zone: &&Arc<SecondaryZone>| {
            let status = zone.state.lock();
            let is_overdue = status.is_overdue();
            if let Some(expires_at) = status.expiry().filter(|_| !is_overdue) {
                shared.around.note_expiry(expires_at);
            }
            is_overdue
        };
        let overdue: Vec<_> = {
            let followed = lock(&shared.followed);
            followed.zones.iter().filter(is_overdue).map(Arc::clone).collect()
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
            let (Job::Read(zone) | Job::Refresh(zone, ..)) = &job;
            let (former, versions_before) = {
                let status = zone.state.lock();
                (status.serial, status.versions_taken)
            };
            // The log that the program writes may panic.
            let looked_after = catch_unwind(AssertUnwindSafe(|| self.look_after(&job)));
            let (is_done, next) = (looked_after.is_ok(), looked_after.unwrap_or(AFTER_PANIC));
            zone.end_load_wait();
            let (is_waiting, report) = {
                let mut status = zone.state.lock();
                status.next_refresh = secs_from_now(next).into();
                if let Some(rare) = status.rare_if_any() {
                    rare.intake = None;
                }
                status.settle();
                let report = RefreshReport {
                    former,
                    serial: status.serial,
                    is_transferred: status.versions_taken != versions_before,
                    primary: status.primary.as_ref().map(|primary| primary.to_string()),
                    error: status.error().map(str::to_owned),
                };
                (status.memory_wait().is_some(), report)
            };
            if let (Job::Refresh(_, _, waiters), true) = (&job, is_done && !is_waiting) {
                waiters.iter().for_each(|waiter| waiter.tell(report.clone()));
            }
            let now = self.millis();
            let due = now + u64::try_from(next.as_millis()).unwrap_or(u64::MAX / 2);
            let mut followed = lock(&self.followed);
            match &job {
                Job::Read(_) => followed.schedule.finish_reading(&zone.apex, due),
                Job::Refresh(..) => followed.schedule.finish(&zone.apex, now, due),
            }
            let is_of_file = matches!(job, Job::Read(_));
            if is_waiting {
                followed.keep_asked(job); // also after a panic
            }
            self.show(&followed.schedule);
            let is_last = followed.schedule.counts().unread == 0;
            drop(followed);
            self.changed.notify_one();
            if is_of_file {
                self.note_read(is_last);
            }
        }
    }

    /// Notes that a file was read, perhaps the last one for now; gives back the memory that reading
    /// many files needed.
    fn note_read(&self, is_last: bool) {
        let has_read_many = self.files_read.fetch_add(1, Relaxed) + 1 >= MANY_FILES;
        if is_last && has_read_many && self.files_read.swap(0, Relaxed) >= MANY_FILES {
            memory::give_back();
        }
    }

    /// Notes that the transfer of a zone waits for memory from now on, or does so no more.
    fn note_wait(&self, apex: &Name, is_waiting: bool) {
        let now = self.millis();
        lock(&self.followed).schedule.note_wait(apex, is_waiting, now);
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
        let (Job::Read(zone) | Job::Refresh(zone, ..)) = job;
        let mut work = zone.state.work();
        if let Job::Refresh(_, prompt, _) = job {
            return refresh(zone, &mut work, *prompt, &self.around);
        }
        if !work.is_loaded {
            zone.load(&mut work, &self.around);
        }
        let Some(timers) = work.zone.as_ref().and_then(|_| zone.timers(&work)) else {
            return Duration::ZERO;
        };
        let age = Duration::from_secs(now_secs().saturating_sub(work.agreed.0.secs()));
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
        let mut receiver = loop {
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
            match receiver.recv_timeout(NOTICE_LOOK) {
                Ok(notice) => self.take_notice(notice),
                // A reload may have made a queue of another size; the former one is empty now.
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(next) = lock(queue).take() {
                        receiver.try_iter().for_each(|notice| self.take_notice(notice));
                        receiver = next;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => match lock(queue).take() {
                    Some(next) => receiver = next,
                    None => return, // the publisher has ended
                },
            }
        }
        lock(queue).get_or_insert(receiver); // for a feed that starts later
    }

    /// Has a zone refreshed that a primary says has changed, unless it has the serial that the
    /// primary tells.
    fn take_notice(&self, notice: Notice) {
        count(&self.around.counters.notices, 1);
        let from = notice.from;
        let (apex, Announcement { serial, has_several }) = notice.take();
        let mut followed = lock(&self.followed);
        if let (Some(serial), Some(zone)) = (serial, followed.zones.get(&apex))
            && !has_several
            && zone.state.lock().is_in_step_at(serial)
        {
            return;
        }
        followed.schedule.prompt(&apex, Prompt::Notice(from, serial));
        self.show(&followed.schedule);
        drop(followed);
        self.changed.notify_one();
    }
}

/// The directory of the files of zones, which is made if it is not there.
///
/// # Errors
/// Why it cannot be had, which is logged.
fn directory(config: &Config) -> Result<PathBuf, String> {
    let made = state_directory::path(config).and_then(|path| {
        let path = path.join("secondary");
        state_directory::make(&path)?;
        Ok(path)
    });
    made.inspect_err(|error| {
        tracing::error!(error, "zones of primaries are not kept on the disk");
    })
}

/// The keys of a configuration, by their names in lower case.
#[cfg(not(feature = "whole"))]
pub(super) fn keys(_config: &Config) -> HashMap<Name, Arc<Key>> {
    HashMap::new() // only a file has keys
}

/// The keys of a configuration, by their names in lower case.
#[cfg(feature = "whole")]
pub(super) fn keys(config: &Config) -> HashMap<Name, Arc<Key>> {
    let keys = config.keys.iter();
    let key = |it: &zonda_config::TsigKey| Key::new(&it.name, it.algorithm, it.secret.reveal());
    keys.map(|it| (it.name.to_lowercase(), Arc::new(key(it)))).collect()
}
