//! The level from which events are logged, which a reload may change.
//!
//! A layer of `tracing_subscriber`, whose own filter for that takes a lock with each event.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber, callsite};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use zonda_config::LogLevel;

/// The least important level of events that are logged; clones share it.
#[derive(Clone)]
pub struct EventLevel(Arc<AtomicU8>);

impl EventLevel {
    /// A level to begin with.
    pub fn new(level: LogLevel) -> Self {
        Self(Arc::new(AtomicU8::new(level as u8)))
    }

    /// Sets another level, for all threads.
    pub fn set(&self, level: LogLevel) {
        self.0.store(level as u8, Relaxed);
        callsite::rebuild_interest_cache(); // each place that logs has noted whether it is to
    }

    /// The level as `tracing` has it.
    fn filter(&self) -> LevelFilter {
        let level = self.0.load(Relaxed);
        let all = [
            (LogLevel::Error, LevelFilter::ERROR),
            (LogLevel::Warn, LevelFilter::WARN),
            (LogLevel::Info, LevelFilter::INFO),
            (LogLevel::Debug, LevelFilter::DEBUG),
        ];
        let found = all.into_iter().find(|(its, _)| *its as u8 == level);
        found.map_or(LevelFilter::TRACE, |(_, filter)| filter)
    }
}

impl<S: Subscriber> Layer<S> for EventLevel {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if *metadata.level() <= self.filter() { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        *metadata.level() <= self.filter()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.filter())
    }
}
