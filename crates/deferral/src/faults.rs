//! What happens when the engine panics, or panics too often.
//!
//! A panic costs the messages at hand an answer better than SERVFAIL, and the worker a new engine.
//! Many within a minute mean that the process is not sound: the worker ends and says so.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Faults within a minute that a worker survives.
pub const FAULTS_PER_MINUTE_MAX: u32 = 10;

/// A worker or an executor has given up: the process should end, so that its supervisor restarts
/// it.
#[derive(Debug)]
pub struct Failure {
    /// The thread or executor, by name.
    pub worker: String,
    /// The last fault.
    pub fault: Fault,
}

/// A failure to be reported in the log.
#[derive(Debug)]
pub enum Fault {
    /// The engine panicked.
    Panic,
    /// The socket could not be read.
    Receive(io::Error),
}

/// Where failures are reported; each worker sends at most one.
pub type FailureSender = tokio::sync::mpsc::Sender<Failure>;

/// Runs `work`; whether it ended without a panic. The panic's message went to the panic hook.
pub fn survives(work: impl FnOnce()) -> bool {
    // What `work` leaves half done is the engine, which is replaced, and buffers, which hold bytes.
    catch_unwind(AssertUnwindSafe(work)).is_ok()
}

/// Counts the faults of a thread by the minute.
#[derive(Debug)]
pub struct FaultBudget {
    /// When the minute began.
    since: Instant,
    /// Number of faults counted.
    count: u32,
}

impl FaultBudget {
    /// A minute without faults.
    #[must_use]
    pub fn new() -> Self {
        Self { since: Instant::now(), count: 0 }
    }

    /// Counts a fault; whether it is one too many.
    pub fn is_spent(&mut self) -> bool {
        const MINUTE: Duration = Duration::from_secs(60);
        if self.since.elapsed() > MINUTE {
            *self = Self::new();
        }
        self.count += 1;
        self.count > FAULTS_PER_MINUTE_MAX
    }
}

impl Default for FaultBudget {
    fn default() -> Self {
        Self::new()
    }
}
