//! What an absent store leaves in the log. One test: a process has one log.

#![allow(clippy::unwrap_used)]

use std::fmt::Debug;
use std::sync::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};
use zonda::store::{StoreError, Watch};
use zonda::{App, Name, Rcode, RecordSet, Store, Type};

/// The lines that were logged as warnings and errors.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Collects the lines of the log.
struct LogLines;

/// Reads the message of a line and its facts.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &match field.name() {
            "message" => format!("{value:?} "),
            name => format!("{name}={value:?} "),
        };
    }
}

impl Subscriber for LogLines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        LINES.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// A store that cannot be reached.
struct UnreachableStore;

impl UnreachableStore {
    fn fail<T>() -> Result<T, StoreError> {
        Err(StoreError::failed("nobody answers"))
    }
}

impl Store for UnreachableStore {
    fn load(&self, _: &Name) -> Result<Vec<RecordSet>, StoreError> {
        Self::fail()
    }

    fn get(&self, _: &str) -> Result<Vec<RecordSet>, StoreError> {
        Self::fail()
    }

    fn set(&self, _: &RecordSet) -> Result<(), StoreError> {
        Self::fail()
    }

    fn remove(&self, _: &str, _: Type) -> Result<bool, StoreError> {
        Self::fail()
    }

    fn watch(&self, _: &Name) -> Result<Box<dyn Watch>, StoreError> {
        Self::fail()
    }
}

#[test]
fn an_unreachable_store_is_logged_once() {
    tracing::subscriber::set_global_default(LogLines).unwrap();
    let app = App::new().listen_nowhere().store("example.org", UnreachableStore);
    let running = app.start_blocking().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let reply = runtime.block_on(running.query("www.example.org", Type::A)).unwrap();
    assert_eq!(reply.rcode(), Rcode::SERVFAIL);
    running.reload_blocking().unwrap();
    running.stop_blocking().unwrap();
    let lines = LINES.lock().unwrap();
    let about_it: Vec<_> = lines.iter().filter(|line| line.contains("example.org")).collect();
    assert_eq!(about_it.len(), 1, "{lines:?}");
    assert!(about_it[0].starts_with("a store is unavailable, retrying"), "{lines:?}");
    assert!(about_it[0].contains("error=nobody answers"), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("not loaded")), "{lines:?}");
}
