//! What the core logs, on its way to Python's `logging`: one queue for all event loops.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tracing::Level;
use tracing::level_filters::LevelFilter;
use zonda_server::{LogCollector, LogReader};

use crate::wake::Wake;

/// An event of the log: Python's number of the level, the whole line, the message, which is the
/// same for all events of a kind, and the names and values of the fields.
pub type Line = (u8, String, String, Vec<(&'static str, String)>);

/// The queue of this process; from the first app on, the core's log comes here.
static READER: OnceLock<Arc<LogReader>> = OnceLock::new();
/// Event loops that are woken for new lines.
static LISTENERS: Mutex<Vec<Weak<Wake>>> = Mutex::new(Vec::new());

/// Has lines come here, and wakes `listener` when there are some.
pub fn listen(listener: &Arc<Wake>) {
    READER.get_or_init(|| {
        // Fails only in a program that has another native module with a log like this one.
        let _ = tracing::subscriber::set_global_default(LogCollector);
        LogReader::new(LevelFilter::INFO, || {
            lock(&LISTENERS).iter().filter_map(Weak::upgrade).for_each(|listener| listener.wake());
        })
    });
    let mut listeners = lock(&LISTENERS);
    listeners.retain(|known| known.strong_count() > 0);
    listeners.push(Arc::downgrade(listener));
}

/// Takes out the lines that wait.
pub fn take() -> Vec<Line> {
    let events = READER.get().map(|reader| reader.take()).unwrap_or_default();
    let line = |event: Arc<zonda_server::LogEvent>| {
        let level = match event.level {
            Level::ERROR => 40,
            Level::WARN => 30,
            _ => 20,
        };
        (level, event.line.clone(), event.message.clone(), event.fields.clone())
    };
    events.into_iter().map(line).collect()
}

/// Locks a mutex; its data are consistent also if a holder panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
