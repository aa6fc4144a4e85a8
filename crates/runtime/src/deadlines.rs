//! The thread that answers what the user's code does not answer in time.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use zonda_deferral::{Deferred, Peak, Responder};
use zonda_engine::code::Call;
use zonda_engine::{HandlerOutcome, Reason};

use crate::answerer::Answerer;
use crate::runtime::Runtime;
use zonda_deferral::faults::{Failure, FailureSender, Fault, FaultBudget, survives};

/// How often it looks. Deadlines are seconds, and a client waits as long as that.
const INTERVAL: Duration = Duration::from_millis(50);

/// After so many of these looks memory is given back that a peak of waiting queries has used.
const PEAK_ENDS_LOOKS: u32 = 40;
/// The thread's name.
const NAME: &str = "deadlines";

/// The running thread.
pub struct Deadlines {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

/// Looks, each time the thread does, at what else may take too long.
pub type Watchdog = Box<dyn FnMut() + Send>;

impl Deadlines {
    /// Starts the thread. `watchdog` is called as often as it looks for late queries. Panics too
    /// many end the thread, which `failures` is told.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start<R: Responder>(
        runtimes: Arc<[Arc<Runtime>]>,
        mut answerer: Answerer<R>,
        mut watchdog: Watchdog,
        failures: FailureSender,
    ) -> io::Result<Self> {
        let (stop, stopped): (_, Receiver<()>) = channel();
        let thread = thread::Builder::new().name(NAME.to_owned()).spawn(move || {
            let mut fail = |take: fn(&Runtime) -> Option<Deferred>| {
                for query in runtimes.iter().flat_map(|it| std::iter::from_fn(|| take(it))) {
                    answerer.supply(query, HandlerOutcome::Failed(Reason::HandlerTimeout));
                }
                answerer.send();
            };
            let mut faults = FaultBudget::new();
            let (mut peak, mut looks_left) = (Peak::default(), 0);
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let is_sound = survives(|| {
                    fail(Runtime::take_late);
                    watchdog();
                    let waiting = runtimes.iter().map(|it| it.waiting_count()).sum();
                    if peak.note(waiting) {
                        looks_left = PEAK_ENDS_LOOKS;
                    } else if looks_left > 0 {
                        looks_left -= 1;
                        if looks_left == 0 && peak.is_over(waiting) {
                            zonda_netio::memory::give_back();
                            peak.gave_back(waiting);
                        }
                    }
                });
                if !is_sound && faults.is_spent() {
                    tracing::error!(thread = NAME, "giving up: too many panics");
                    let _ = survives(|| fail(Runtime::take_any));
                    let (worker, fault) = (NAME.to_owned(), Fault::Panic);
                    // A full channel holds failures enough to end the process.
                    let _ = failures.try_send(Failure { worker, fault });
                    return;
                }
            }
            fail(Runtime::take_any);
        })?;
        Ok(Self { stop, thread })
    }

    /// Answers all that still waits, SERVFAIL, and ends the thread.
    pub fn stop(self) {
        drop(self.stop);
        let _ = self.thread.join(); // it only panics where a reply cannot be written
    }
}

/// Tells calls of code in workers that take too long, each once.
#[derive(Default)]
pub struct LongCalls {
    /// The calls that were there at the last look, by worker, and how many looks they have lasted.
    seen: Vec<(Option<Call>, u32)>,
}

impl LongCalls {
    /// Looks at the calls of all workers; returns the places of the routes of those that have now
    /// lasted for `looks` looks.
    pub fn look(&mut self, calls: impl Iterator<Item = Option<Call>>, looks: u32) -> Vec<usize> {
        let mut long = Vec::new();
        for (worker, call) in calls.enumerate() {
            if self.seen.len() <= worker {
                self.seen.push((None, 0));
            }
            let (seen, lasted) = &mut self.seen[worker];
            *lasted = if call.is_some() && *seen == call { *lasted + 1 } else { 0 };
            *seen = call;
            if let Some(call) = call.filter(|_| *lasted == looks) {
                long.push(call.route);
            }
        }
        long
    }
}
