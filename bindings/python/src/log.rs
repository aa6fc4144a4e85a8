//! What the core logs, on its way to Python's `logging`.
//!
//! Threads of the core leave lines here; the event loop fetches them, so that no thread waits for
//! the interpreter.

use std::collections::VecDeque;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::wake::Wake;

/// Lines that wait at most; further ones are lost. A reload of many broken zones writes thousands.
const LINES_MAX: usize = 10_000;

/// A line of the log: Python's number of the level, and the text.
pub type Line = (u8, String);

/// What waits to be fetched.
static LINES: Mutex<VecDeque<Line>> = Mutex::new(VecDeque::new());
/// Readers that are woken for new lines.
static LISTENERS: Mutex<Vec<Weak<Wake>>> = Mutex::new(Vec::new());
/// Whether the core's log comes here.
static INSTALLED: Once = Once::new();

/// Has lines come here, and wakes `listener` when there are some.
pub fn listen(listener: &Arc<Wake>) {
    INSTALLED.call_once(|| {
        // Fails only in a program that has another native module with a log like this one.
        let _ = tracing::subscriber::set_global_default(ToPython);
    });
    let mut listeners = lock(&LISTENERS);
    listeners.retain(|known| known.strong_count() > 0);
    listeners.push(Arc::downgrade(listener));
}

/// Takes out the lines that wait.
pub fn take() -> Vec<Line> {
    lock(&LINES).drain(..).collect()
}

/// Locks a mutex; its data are consistent also if a holder panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps lines for Python.
struct ToPython;

impl Subscriber for ToPython {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("zonda")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let level = match *event.metadata().level() {
            Level::ERROR => 40,
            Level::WARN => 30,
            _ => 20,
        };
        let mut lines = lock(&LINES);
        if lines.len() == LINES_MAX {
            return;
        }
        lines.push_back((level, text.0));
        drop(lines);
        lock(&LISTENERS).iter().filter_map(Weak::upgrade).for_each(|listener| listener.wake());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1) // spans are not distinguished
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A line under way.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        }; // a String takes everything
    }
}
