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

/// An event of the log: Python's number of the level, the whole line, the message, which is the
/// same for all events of a kind, and the names and values of the fields.
pub type Line = (u8, String, String, Vec<(String, String)>);

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
        let mut read = Fields::default();
        event.record(&mut read);
        let level = match *event.metadata().level() {
            Level::ERROR => 40,
            Level::WARN => 30,
            _ => 20,
        };
        let mut lines = lock(&LINES);
        if lines.len() == LINES_MAX {
            return;
        }
        lines.push_back((level, read.line, read.message, read.fields));
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

/// What an event says.
#[derive(Default)]
struct Fields {
    /// The message, and the fields behind it.
    line: String,
    message: String,
    /// Names and values of the fields.
    fields: Vec<(String, String)>,
}

impl Fields {
    /// Takes note of a field, and of how the line has it.
    fn add(&mut self, field: &Field, value: String, in_line: &dyn Debug) {
        let written = match field.name() {
            "message" => {
                self.message = value;
                write!(self.line, "{in_line:?}")
            }
            name => {
                self.fields.push((name.to_owned(), value));
                write!(self.line, " {name}={in_line:?}")
            }
        };
        debug_assert!(written.is_ok(), "a String takes everything");
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.to_owned(), &value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, format!("{value:?}"), value);
    }
}
