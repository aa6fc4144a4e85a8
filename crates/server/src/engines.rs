//! The engines of all threads: how many there are at the start, and what makes them.

use crate::engine_counters::EngineMaker;
use crate::log_budget::LogBudget;
use crate::program::{Logger, LongCallWatch};
use crate::query_log::QueryLog;
use arc_swap::ArcSwap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use zonda_engine::code::panic_message;
use zonda_engine::counters::Counters;
use zonda_engine::{Engine, Event, Snapshot};

/// How many engines there are of each kind, in the order in which they are numbered.
#[derive(Clone, Copy)]
pub struct Engines {
    /// Number of engines of UDP workers, one each.
    pub workers: usize,
    /// Number of engines shared by all TCP connections.
    pub executors: usize,
    /// Number of engines of forwarder threads, one each.
    pub forwarders: usize,
    /// [`HANDLER_ENGINES`], and one for each runtime of the user's code.
    pub handlers: usize,
    /// Most ports to other servers of all forwarder threads together.
    pub ports_max: usize,
}

/// Engines for what a queue has no room for, for messages that change zones, for queries of the
/// process itself, and for what code does not answer in time.
pub const HANDLER_ENGINES: usize = 4;

impl Engines {
    /// Returns the number of all engines.
    pub fn count(self) -> usize {
        self.workers + self.executors + self.forwarders + self.handlers
    }

    /// What belongs to the engines of each kind.
    pub fn split<T>(self, all: &[T]) -> [&[T]; 4] {
        let (workers, others) = all.split_at(self.workers);
        let (executors, others) = others.split_at(self.executors);
        let (forwarders, handlers) = others.split_at(self.forwarders);
        [workers, executors, forwarders, handlers]
    }
}

/// What makes the engines of all threads, and what watches their calls of code.
pub fn engine_maker(
    snapshot: &Arc<ArcSwap<Snapshot>>,
    query_log: QueryLog,
    loggers: Vec<Arc<dyn Logger>>,
) -> (EngineMaker, Arc<LongCallWatch>) {
    let snapshot = Arc::clone(snapshot);
    let watch = Arc::new(LongCallWatch::new(Arc::clone(&snapshot)));
    let long_calls = Arc::clone(&watch);
    let make_engine = move |counters: &Arc<Counters>| {
        let mut engine = Engine::new(Arc::clone(&snapshot), Arc::clone(counters));
        engine.add_observer(query_log.observer());
        for logger in &loggers {
            let logger = Arc::clone(logger);
            engine.add_observer(Box::new(move |event: &Event<'_>| tell_logger(&*logger, event)));
        }
        long_calls.add(&engine);
        engine
    };
    (Arc::new(make_engine), watch)
}

/// Tells a logger of the user's of a query. Its panic costs no query, and no worker.
fn tell_logger(logger: &dyn Logger, event: &Event<'_>) {
    static PANICS: LogBudget = LogBudget::new();
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| logger.log(event))) {
        let panic = panic_message(&*payload);
        PANICS.spend(|left_out| tracing::error!(panic, left_out, "a logger panicked"));
    }
}
