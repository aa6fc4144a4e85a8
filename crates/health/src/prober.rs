//! Probes on a schedule.
//!
//! A [`Prober`] is told which targets there are, probes each at its interval, keeps their states
//! and calls an observer with every result. Equal targets with the same interval and timeout are
//! probed once, however many of the caller's ids they have; each id has thresholds and a state of
//! its own.
//!
//! One task waits for the probe that is due next; a probe is a task only while it is under way. The
//! task wakes up at multiples of [`TICK`], so that 2,000 probes a second are 100 wake-ups with 20
//! probes each.

mod clock;
mod table;

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::check::{Kind, Target, TlsError};
use crate::outcome::{Fault, Outcome};
use crate::probe::Probe;
use crate::random::Random;
use crate::state::{Health, State, Thresholds};
use clock::Clock;
use table::{Next, ProbeKey, Table};

/// Probes start at multiples of this time: a shorter one costs more wake-ups, a longer one makes
/// probes later than they are due.
const TICK: Duration = Duration::from_millis(10);

/// The caller's name of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetId(pub u64);

/// When a target is probed, and when results change its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// Time between the beginnings of two probes, on average: each is up to a twentieth of it early
    /// or late, so that probes of many targets do not fall together. At least 10 ms.
    pub interval: Duration,
    /// Time after which a probe has failed. While a probe is under way the target is not probed
    /// again.
    pub timeout: Duration,
    /// When results change the state.
    pub thresholds: Thresholds,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(2),
            thresholds: Thresholds::default(),
        }
    }
}

/// A target that a prober is to probe.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The caller's name of the target; no two assignments have the same.
    pub id: TargetId,
    /// What is probed.
    pub target: Target,
    /// When the target is probed, and when results change its state.
    pub timing: Timing,
}

/// Why targets were not taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssignmentError {
    /// The target that cannot be probed.
    pub id: TargetId,
    /// What is wrong with the assignment.
    pub cause: AssignmentCause,
}

/// What is wrong with an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignmentCause {
    /// Another assignment has the same id.
    Duplicate,
    /// The settings of TLS cannot be used for this target.
    Tls(TlsError),
}

impl fmt::Display for AssignmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id.0;
        match self.cause {
            AssignmentCause::Duplicate => write!(f, "two targets have the id {id}"),
            AssignmentCause::Tls(error) => {
                write!(f, "target {id} cannot be probed over TLS: {error}")
            }
        }
    }
}

impl std::error::Error for AssignmentError {}

/// Bounds of a prober.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Probes under way at a time, at least 1; further ones wait. Each has a socket. Targets that
    /// do not answer take theirs for the whole timeout: 10,000 of them at an interval of 5 s and a
    /// timeout of 2 s need 4,000.
    pub concurrent_max: usize,
    /// Programs that run at a time, at least 1; further ones wait, and their timeout begins when
    /// they start.
    pub programs_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { concurrent_max: 4096, programs_max: 16 }
    }
}

/// The result of a probe, and what it makes of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The target that was probed.
    pub id: TargetId,
    /// Time of the result, nanoseconds since 1970 by a clock that is set once and never runs
    /// backwards.
    pub at: u64,
    /// How long the probe took.
    pub took: Duration,
    /// What the probe found.
    pub outcome: Outcome,
    /// State behind the result.
    pub state: State,
    /// State before the result, if that was another.
    pub changed_from: Option<State>,
    /// Whether the target counts as up from now on.
    pub counts_as_up: bool,
    /// Shortest time after which the target can count as other than now; see
    /// [`Health::earliest_change`]. Nothing for pushed values, as one may come at any time.
    pub earliest_change: Duration,
}

/// A target and its health.
#[derive(Clone, Copy, Debug)]
pub struct TargetStatus<'t> {
    /// The caller's name of the target.
    pub id: TargetId,
    /// What is probed.
    pub target: &'t Target,
    /// State, last result and changes of the target.
    pub health: &'t Health,
    /// Shortest time from the last result after which the target can count as other than now.
    pub earliest_change: Duration,
}

/// A value that a program outside gives for the targets of a [`PushCheck`](crate::PushCheck).
#[derive(Clone, Copy, Debug)]
pub struct Push<'p> {
    /// Name of the check.
    pub name: &'p str,
    /// Address of the target; `None` for all targets of the check.
    pub address: Option<IpAddr>,
    /// Whether the target is healthy.
    pub is_up: bool,
    /// The reason in words, of which 200 characters are stored; may be empty.
    pub text: &'p str,
    /// Time after which the target is down unless another value comes.
    pub expires_in: Duration,
}

/// Figures of a prober.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Targets of the caller.
    pub targets: usize,
    /// Different probes of them.
    pub probes: usize,
    /// Probes under way now.
    pub running: usize,
    /// Probes that have begun since the prober exists.
    pub started: u64,
    /// Probes that were left out, as the one before was under way still.
    pub skipped: u64,
    /// Times that due probes had to wait, as [`Limits::concurrent_max`] were under way.
    pub postponed: u64,
}

/// What is called with every result.
type Observer = Box<dyn FnMut(&Observation) + Send>;

/// Probes targets on a schedule. Clones are handles of the same prober; it ends with the last.
///
/// ```
/// use std::sync::{Arc, mpsc};
/// use std::time::Duration;
/// use zonda_health::{Assignment, Check, Kind, Limits, Prober, State, Target, TargetId, Timing};
///
/// # let runtime = tokio::runtime::Builder::new_multi_thread()
/// #     .worker_threads(1).enable_all().build()?;
/// # let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
/// # let port = listener.local_addr()?.port();
/// let (sender, observations) = mpsc::channel();
/// let observer = move |it: &_| drop(sender.send(Clone::clone(it)));
/// let prober = Prober::new(runtime.handle(), Limits::default(), observer);
/// let target = Target {
///     address: "127.0.0.1".parse()?,
///     port,
///     check: Arc::new(Check::from(Kind::Tcp)),
/// };
/// let timing = Timing { interval: Duration::from_secs(1), ..Timing::default() };
/// prober.set_targets(vec![Assignment { id: TargetId(7), target, timing }])?;
/// let first: zonda_health::Observation = observations.recv()?;
/// assert_eq!((first.id, first.state), (TargetId(7), State::Up));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Prober {
    shared: Arc<Shared>,
    /// Wakes the task that waits; that ends when all of these are gone.
    wake: Sender<()>,
}

/// What handles and tasks have in common. The lock of the observer is taken before that of the
/// table, never within it.
struct Shared {
    /// The observer, which is called with its lock held, so that its results are in order.
    observer: Mutex<Observer>,
    table: Mutex<Table>,
    clock: Clock,
    permits: Arc<Semaphore>,
    /// The rights to run a program.
    programs: Semaphore,
    concurrent_max: usize,
    started: AtomicU64,
    postponed: AtomicU64,
}

impl Prober {
    /// Makes a prober whose tasks run on this runtime, which needs I/O and time. One thread is
    /// enough, and cheaper than several.
    ///
    /// The observer is called with each result, in the order of the results of a target, from any
    /// thread of the runtime and from the thread that calls [`Prober::push`]. It must be quick, as
    /// all results wait for it, must not panic, and must call neither `set_targets` nor `push`.
    pub fn new(
        runtime: &Handle,
        limits: Limits,
        observer: impl FnMut(&Observation) + Send + 'static,
    ) -> Self {
        let concurrent_max = limits.concurrent_max.clamp(1, Semaphore::MAX_PERMITS);
        let shared = Arc::new(Shared {
            observer: Mutex::new(Box::new(observer)),
            table: Mutex::new(Table::new(Random::new())),
            clock: Clock::new(),
            permits: Arc::new(Semaphore::new(concurrent_max)),
            programs: Semaphore::new(limits.programs_max.clamp(1, Semaphore::MAX_PERMITS)),
            concurrent_max,
            started: AtomicU64::new(0),
            postponed: AtomicU64::new(0),
        });
        let (wake, woken) = channel(1);
        runtime.spawn(drive(Arc::clone(&shared), woken));
        Self { shared, wake }
    }

    /// Replaces the targets. New ones are probed soon, spread over a millisecond for each of them;
    /// one that stays keeps its state and its place in the schedule, also under another id; one
    /// that is left out is not observed any more once this returns.
    ///
    /// # Errors
    /// When a target cannot be probed; nothing has changed then.
    pub fn set_targets(&self, assignments: Vec<Assignment>) -> Result<(), AssignmentError> {
        let _no_result_meanwhile = self.shared.lock_observer();
        let now = self.shared.clock.now();
        self.shared.lock_table().assign(now, assignments)?;
        let _ = self.wake.try_send(()); // a full channel wakes the task as well
        Ok(())
    }

    /// Returns the health of a target; `None` for one that is not probed.
    #[must_use]
    pub fn health(&self, id: TargetId) -> Option<Health> {
        self.shared.lock_table().health(id).cloned()
    }

    /// Calls a function for every target, in no order. It must call nothing of the prober.
    pub fn each(&self, visit: impl FnMut(TargetStatus<'_>)) {
        self.shared.lock_table().statuses().for_each(visit);
    }

    /// Records a pushed value; returns the number of targets that take it. Each of them is observed
    /// before this returns.
    pub fn push(&self, push: &Push<'_>) -> usize {
        let mut count = 0;
        self.shared.observe(|table, now, observations| count = table.push(now, push, observations));
        let _ = self.wake.try_send(()); // the value may expire before anything else is due
        count
    }

    /// Returns the time of observations and states, nanoseconds since 1970.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.shared.clock.now()
    }

    /// Returns figures for metrics.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let shared = &self.shared;
        let table = shared.lock_table();
        Counts {
            targets: table.target_count(),
            probes: table.probe_count(),
            running: shared.concurrent_max.saturating_sub(shared.permits.available_permits()),
            started: shared.started.load(Relaxed),
            skipped: table.skipped(),
            postponed: shared.postponed.load(Relaxed),
        }
    }
}

impl fmt::Debug for Prober {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prober({:?})", self.counts())
    }
}

impl Shared {
    /// Locks the observer.
    fn lock_observer(&self) -> MutexGuard<'_, Observer> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the table for a moment; no caller waits while holding it.
    fn lock_table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the table make observations, and hands them to the observer.
    fn observe(&self, make: impl FnOnce(&mut Table, u64, &mut Vec<Observation>)) {
        let mut observer = self.lock_observer();
        let mut observations = Vec::new();
        let now = self.clock.now();
        make(&mut self.lock_table(), now, &mut observations);
        observations.iter().for_each(&mut **observer);
    }

    /// Starts all probes that are due; returns what to wait for then.
    fn start_due(self: &Arc<Self>) -> Next {
        let mut next = Next::Nothing;
        let mut starts = Vec::new();
        let permit = || Arc::clone(&self.permits).try_acquire_owned().ok();
        self.observe(|table, now, observations| {
            next = table.start_due(now, permit, &mut starts, observations);
        });
        self.started.fetch_add(starts.len() as u64, Relaxed);
        for start in starts {
            let flight = Flight {
                shared: Arc::clone(self),
                key: start.key,
                begun: self.clock.now(),
                outcome: None,
                _permit: start.permit,
            };
            tokio::spawn(flight.fly(start.probe, start.timeout));
        }
        next
    }
}

/// Starts probes when they are due, until there is no handle any more.
async fn drive(shared: Arc<Shared>, mut woken: Receiver<()>) {
    loop {
        let next = shared.start_due();
        let wait = async {
            match next {
                Next::Nothing => std::future::pending().await,
                Next::At(due) => shared.clock.sleep_until(due, TICK).await,
                Next::Permit => {
                    shared.postponed.fetch_add(1, Relaxed);
                    // Taken and given back at once: the next look at the table takes it again.
                    drop(shared.permits.acquire().await);
                }
            }
        };
        tokio::select! {
            message = woken.recv() => if message.is_none() { return },
            () = wait => {}
        }
    }
}

/// A probe under way. Its end is recorded when it is dropped, so that a target is probed again
/// whatever ends the probe.
struct Flight {
    shared: Arc<Shared>,
    key: ProbeKey,
    /// Time at which the probe began, nanoseconds.
    begun: u64,
    outcome: Option<Outcome>,
    _permit: OwnedSemaphorePermit,
}

impl Flight {
    /// Probes and records the outcome.
    async fn fly(mut self, probe: Arc<Probe>, timeout: Duration) {
        if !matches!(probe.target().check.kind, Kind::Command(_)) {
            self.outcome = Some(probe.run(timeout).await);
            return;
        }
        let shared = Arc::clone(&self.shared);
        let _program = shared.programs.acquire().await;
        self.begun = shared.clock.now();
        self.outcome = Some(Box::pin(probe.run(timeout)).await);
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let outcome = self.outcome.take();
        let outcome =
            outcome.unwrap_or_else(|| Err(Fault::Local("the probe was broken off".into())));
        self.shared.observe(|table, now, observations| {
            let took = Duration::from_nanos(now.saturating_sub(self.begun));
            table.finish(self.key, now, took, &outcome, observations);
        });
    }
}
