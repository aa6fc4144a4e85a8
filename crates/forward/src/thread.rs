//! The thread that asks upstreams.
//!
//! It waits for its inbox, its sockets and its timers at once, and for nothing else. Answers that
//! have arrived are taken before timers, so that a busy thread calls nothing overdue that is there.
//!
//! While it sleeps, the thread that brings queries does its work with them: that spares a change of
//! threads for each. Its state is behind a lock for that, which it holds while it works; a thread
//! that brings queries never waits for it, but leaves them in the inbox then. What a turn sends, to
//! upstreams and to clients, leaves after the state is unlocked.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use zonda_deferral::Responder;
use zonda_deferral::faults::{Failure, FailureSender, Fault, survives};

use crate::counters::ForwarderCounters;
use crate::forwarder::{Forwarder, ForwarderConfig};
use crate::inbox::{AdmitNow, Inbox, Queries};
use crate::output::Output;

/// How long a stopped thread goes on fetching what clients wait for.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// A running thread. Dropping it leaves the thread running; see [`stop_forwarders`].
pub struct ForwarderThread {
    /// Tells the thread to stop.
    stop: Arc<AtomicBool>,
    /// Wakes the thread.
    inbox: Arc<Inbox>,
    /// Thread that ends when the forwarder has stopped or failed.
    thread: JoinHandle<()>,
    /// Counters of the thread.
    counters: Arc<ForwarderCounters>,
}

impl ForwarderThread {
    /// Starts a thread that writes replies with what `make` makes, now and again after each panic.
    ///
    /// # Errors
    /// When the system has no thread or descriptor left.
    pub fn spawn<R: Responder>(
        config: ForwarderConfig,
        make: impl FnMut() -> R + Send + 'static,
        failures: FailureSender,
    ) -> io::Result<Self> {
        let stop = Arc::<AtomicBool>::default();
        let counters = Arc::<ForwarderCounters>::default();
        let inbox = Arc::clone(&config.inbox);
        let name = config.name.clone();
        let is_stopped = Arc::clone(&stop);
        let forwarder = Mutex::new(Forwarder::new(config, make, Arc::clone(&counters))?);
        let shared = Arc::new(Shared { forwarder, spare: Mutex::default() });
        let work: Weak<Shared<_>> = Arc::downgrade(&shared);
        inbox.set_work(work);
        let thread = thread::Builder::new().name(name.clone()).spawn(move || {
            // Stands if the thread panics outside of what it survives.
            let mut outcome = Err(Fault::Panic);
            survives(|| outcome = run(&shared, &is_stopped));
            if let Err(fault) = outcome {
                let told = format!("{fault:?}");
                // A full channel holds failures enough to end the process. Told first: a log that
                // a program writes may panic.
                let _ = failures.try_send(Failure { worker: name.clone(), fault });
                tracing::error!(thread = name, fault = told, "giving up");
            }
        })?;
        Ok(Self { stop, inbox, thread, counters })
    }

    /// Returns the counters of the forwarder thread.
    pub fn counters(&self) -> &Arc<ForwarderCounters> {
        &self.counters
    }
}

/// Stops threads once no query waits for what they fetch, which takes at most five seconds. Those
/// that hand queries over must have stopped before.
///
/// Returns whether all have ended before `deadline`.
pub fn stop_forwarders(threads: Vec<ForwarderThread>, deadline: Instant) -> bool {
    for thread in &threads {
        thread.stop.store(true, Ordering::Release);
        thread.inbox.wake().wake();
    }
    while Instant::now() < deadline && threads.iter().any(|it| !it.thread.is_finished()) {
        thread::sleep(Duration::from_millis(1));
    }
    threads.iter().all(|thread| thread.thread.is_finished())
}

/// Works until told to stop; an error is one fault too many.
fn run<R: Responder>(shared: &Shared<R>, stop: &AtomicBool) -> Result<(), Fault> {
    let (mut poller, inbox) = {
        let forwarder = shared.lock();
        (forwarder.poller(), Arc::clone(forwarder.inbox()))
    };
    let (mut ready, mut output) = (Vec::new(), Output::default());
    let (mut drain_until, mut is_over, mut alarm) = (None, false, Ok(()));
    while !is_over {
        ready.clear();
        let waited = alarm.and_then(|()| poller.wait(None).map(|numbers| ready.extend(numbers)));
        let mut forwarder = shared.lock();
        inbox.works_here();
        let fault = match waited {
            Ok(()) => {
                forwarder.work(|it| it.turn(&ready));
                forwarder.is_spent().then_some(Fault::Panic)
            }
            Err(error) => forwarder.is_spent_by_fault().then_some(Fault::Receive(error)),
        };
        if fault.is_some() {
            forwarder.give_up_all();
        }
        if stop.load(Ordering::Acquire) {
            let until = *drain_until.get_or_insert_with(|| Instant::now() + DRAIN_MAX);
            is_over = forwarder.is_drained() || Instant::now() >= until;
            if is_over {
                forwarder.give_up_all();
            }
        }
        alarm = forwarder.set_alarm();
        forwarder.swap_output(&mut output);
        drop(forwarder);
        output.send(&inbox);
        if let Some(fault) = fault {
            return Err(fault); // the queries that waited have been answered
        }
    }
    Ok(())
}

/// A forwarder's state, and memory for what is sent without it.
struct Shared<R> {
    /// The state of the thread.
    forwarder: Mutex<Forwarder<R>>,
    /// Empty outputs, of the threads that bring queries.
    spare: Mutex<Vec<Output>>,
}

impl<R> Shared<R> {
    /// The state, which a thread that brings queries may have for a moment.
    fn lock(&self) -> MutexGuard<'_, Forwarder<R>> {
        self.forwarder.lock().unwrap_or_else(PoisonError::into_inner) // panics are caught within
    }

    /// The empty outputs.
    fn spare(&self) -> MutexGuard<'_, Vec<Output>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Responder> AdmitNow for Shared<R> {
    fn admit_now(&self, queries: &mut Queries<'_>) {
        let Ok(mut forwarder) = self.forwarder.try_lock() else { return };
        let inbox = Arc::clone(forwarder.inbox());
        inbox.stir();
        forwarder.work(|it| it.admit_all(queries));
        if forwarder.set_alarm().is_err() || forwarder.is_spent() {
            inbox.wake().wake(); // the thread sees to it
        }
        let mut output = self.spare().pop().unwrap_or_default();
        forwarder.swap_output(&mut output);
        drop(forwarder);
        output.send(&inbox);
        self.spare().push(output);
    }
}
