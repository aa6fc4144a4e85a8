//! The threads and tasks that live as long as the server, and which of them panicked or ended.
//!
//! One that panics is started again. One that panics too often, or ends while the server runs, is
//! *down*: `/ready` names it, metrics show it, and the process's exit code tells it at the end.
//! Workers and forwarders are not here: without one of them the process ends at once.
//!
//! Deliberately absent: threads that are alive and wait forever.

use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use zonda_deferral::faults::FaultBudget;

/// How long a thread that panicked is left alone before it is started again: a cause that lasts
/// does not keep a CPU busy.
const PAUSE: Duration = Duration::from_millis(100);

/// The states of all threads that are watched, by name.
#[derive(Debug, Default)]
pub struct Watchdog(Mutex<BTreeMap<String, ThreadState>>);

/// The state of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadState {
    /// Panics that ended its work; it was started again after each, unless it is down.
    pub panics: u64,
    /// Whether the thread's work is not done any more.
    pub is_down: bool,
}

/// How a thread's work ended.
enum End {
    /// The work returned, and whether it was to.
    Returned(bool),
    /// The work panicked.
    Panicked,
}

impl End {
    /// Whether the work has ended as it should.
    fn is_due(&self) -> bool {
        matches!(self, Self::Returned(true))
    }
}

impl Watchdog {
    /// Starts a thread that does `work`, and does it again after a panic. Work that ends otherwise
    /// returns whether it was to: at the end of the server, but not before it.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn spawn(
        self: &Arc<Self>,
        name: &str,
        mut work: impl FnMut() -> bool + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let watchdog = Arc::clone(self);
        watchdog.know(name);
        let watched = name.to_owned();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut budget = FaultBudget::new();
            loop {
                // What a panic leaves half done is that of one line, file or hand-over.
                let end =
                    catch_unwind(AssertUnwindSafe(&mut work)).map_or(End::Panicked, End::Returned);
                if end.is_due() || !watchdog.note(&watched, &end, &mut budget) {
                    return;
                }
                thread::sleep(PAUSE);
            }
        })
    }

    /// Does the work of a task, and again after a panic. Work that ends otherwise returns whether
    /// it was to: at a stop, but not because of an error.
    pub async fn keep<F: Future<Output = bool>>(
        self: Arc<Self>,
        name: String,
        work: impl Fn() -> F,
    ) {
        self.know(&name);
        let mut budget = FaultBudget::new();
        loop {
            let end = end_of(work()).await;
            if end.is_due() || !self.note(&name, &end, &mut budget) {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Has a thread shown before anything is noted of it.
    pub fn know(&self, name: &str) {
        drop(self.state(name));
    }

    /// Shows a thread no more, which was to end.
    pub fn forget(&self, name: &str) {
        self.lock().remove(name);
    }

    /// Notes whether work that is begun again and again, such as a look at watched files, was done.
    pub fn note_round(&self, name: &str, is_done: bool) {
        let mut state = self.state(name);
        let state = state.get_mut(name).expect("the state is made when it is asked for");
        state.panics += u64::from(!is_done);
        state.is_down = !is_done;
    }

    /// The state of each thread, by name.
    pub fn states(&self) -> Vec<(String, ThreadState)> {
        self.lock().iter().map(|(name, state)| (name.clone(), *state)).collect()
    }

    /// Returns the names of the threads that are down.
    pub fn down(&self) -> Vec<String> {
        let down = self.states().into_iter().filter(|(_, state)| state.is_down);
        down.map(|(name, _)| name).collect()
    }

    /// Notes that work has ended; whether it is to be begun again.
    fn note(&self, name: &str, end: &End, budget: &mut FaultBudget) -> bool {
        let is_panic = matches!(end, End::Panicked);
        let is_down = !is_panic || budget.is_spent();
        let mut states = self.state(name);
        let state = states.get_mut(name).expect("the state is made when it is asked for");
        state.panics += u64::from(is_panic);
        state.is_down = is_down;
        drop(states);
        // The log may be what panics: it is written by a subscriber of the program's.
        let _ = catch_unwind(|| match (is_panic, is_down) {
            (true, false) => tracing::error!(thread = name, "a thread panicked and goes on"),
            (true, true) => {
                tracing::error!(thread = name, "a thread panicked too often: it is down")
            }
            (false, _) => tracing::error!(thread = name, "a thread has ended: it is down"),
        });
        !is_down
    }

    /// Returns all states, among them one for this name.
    fn state(&self, name: &str) -> MutexGuard<'_, BTreeMap<String, ThreadState>> {
        let mut states = self.lock();
        if !states.contains_key(name) {
            states.insert(name.to_owned(), ThreadState::default());
        }
        states
    }

    /// All states, for a moment.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, ThreadState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner) // numbers are whole after any panic
    }
}

/// Waits for the end of a task's work.
async fn end_of(work: impl Future<Output = bool>) -> End {
    let mut work = Box::pin(work);
    std::future::poll_fn(move |context| {
        match catch_unwind(AssertUnwindSafe(|| Pin::as_mut(&mut work).poll(context))) {
            Ok(Poll::Ready(is_due)) => Poll::Ready(End::Returned(is_due)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(_) => Poll::Ready(End::Panicked),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use zonda_deferral::faults::FAULTS_PER_MINUTE_MAX;

    fn state(watchdog: &Watchdog) -> ThreadState {
        watchdog.states()[0].1
    }

    #[test]
    fn a_thread_that_panics_goes_on_and_one_that_returns_when_it_is_to_is_done() {
        let (watchdog, calls) = (Arc::<Watchdog>::default(), Arc::<AtomicU32>::default());
        let counted = Arc::clone(&calls);
        let work = move || {
            assert!(counted.fetch_add(1, Relaxed) == 2, "not yet");
            true
        };
        watchdog.spawn("writer", work).unwrap().join().unwrap();
        assert_eq!(calls.load(Relaxed), 3);
        assert_eq!(state(&watchdog), ThreadState { panics: 2, is_down: false });
        assert!(watchdog.down().is_empty());
    }

    #[test]
    fn a_thread_that_returns_before_it_is_to_is_down() {
        let (watchdog, calls) = (Arc::<Watchdog>::default(), Arc::<AtomicU32>::default());
        let counted = Arc::clone(&calls);
        let work = move || counted.fetch_add(1, Relaxed) > 0;
        watchdog.spawn("writer", work).unwrap().join().unwrap();
        assert_eq!(calls.load(Relaxed), 1);
        assert_eq!(state(&watchdog), ThreadState { panics: 0, is_down: true });
        assert_eq!(watchdog.down(), ["writer"]);
    }

    #[test]
    fn a_thread_that_panics_all_the_time_is_down() {
        let watchdog = Arc::<Watchdog>::default();
        watchdog.spawn("writer", || panic!("again")).unwrap().join().unwrap();
        let panics = u64::from(FAULTS_PER_MINUTE_MAX) + 1;
        assert_eq!(state(&watchdog), ThreadState { panics, is_down: true });
        assert_eq!(watchdog.down(), ["writer"]);
    }

    #[test]
    fn a_task_that_ends_is_down_and_rounds_are_down_until_one_is_done() {
        let watchdog = Arc::<Watchdog>::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let calls = AtomicU32::new(0);
        let work = || async {
            assert!(calls.fetch_add(1, Relaxed) > 0, "the first one");
            false
        };
        runtime.block_on(Arc::clone(&watchdog).keep("admin".to_owned(), work));
        assert_eq!(state(&watchdog), ThreadState { panics: 1, is_down: true });
        let watchdog = Watchdog::default();
        watchdog.note_round("watch", false);
        assert_eq!(watchdog.down(), ["watch"]);
        watchdog.note_round("watch", true);
        assert_eq!(state(&watchdog), ThreadState { panics: 1, is_down: false });
    }
}
