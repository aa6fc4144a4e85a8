//! What a process gives back once it answers.

use crate::program::LongCallWatch;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zonda_netio::memory;
use zonda_runtime::{LongCalls, Watchdog};

/// How long after it has begun to answer a process gives back the memory that its start needed.
const SETTLED: Duration = Duration::from_secs(1);

/// The first time after the start of a process, at whose end freed memory and the pages of code
/// that the start has used are given back.
///
/// Asked by a thread that runs anyhow: a task of the runtime would bring its code back into memory,
/// and a thread of its own a stack.
pub(crate) struct StartPhase {
    ends_at: Instant,
}

impl Default for StartPhase {
    fn default() -> Self {
        Self { ends_at: Instant::now() + SETTLED }
    }
}

impl StartPhase {
    /// Whether the time is over; then, memory was given back.
    pub(crate) fn is_over(&mut self) -> bool {
        let is_over = Instant::now() >= self.ends_at;
        if is_over {
            memory::give_back();
            memory::drop_code_pages();
        }
        is_over
    }
}

/// What the thread of deadlines looks at each time: calls of code, and whether the start is over.
pub(crate) fn watch(long_calls: Arc<LongCallWatch>, mut settling: Option<StartPhase>) -> Watchdog {
    let mut seen = LongCalls::default();
    Box::new(move || {
        long_calls.look(&mut seen);
        settling.take_if(StartPhase::is_over);
    })
}
