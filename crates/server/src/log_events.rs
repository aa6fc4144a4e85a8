//! The log as events, for code of a program that reads it.
//!
//! Threads of the server leave events in the queue of each reader; the program's own thread fetches
//! them, so that no thread of the server waits for the program. What is formatted is formatted once
//! for all readers.
//!
//! Deliberately absent: how an event comes into a program's language, and where the log goes
//! without readers.

use std::collections::VecDeque;
use std::fmt::{self, Debug, Write};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber, callsite};

/// Events that wait for a reader at most; further ones are lost and counted. A reload of many
/// broken zones writes thousands.
const EVENTS_MAX: usize = 10_000;

/// The message of the event that tells a reader of lost ones.
const LOST: &str = "events of the log were lost: the program did not read them in time";

/// The readers of this process.
static READERS: Mutex<Vec<Weak<LogReader>>> = Mutex::new(Vec::new());
/// The most detailed level that a reader wants, as [`rank`] numbers it; 0 without a reader.
static RANK: AtomicU8 = AtomicU8::new(0);

/// An event of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEvent {
    /// The level, from `ERROR` to `DEBUG`.
    pub level: Level,
    /// When the event occurred.
    pub time: SystemTime,
    /// The message, which is the same for all events of a kind.
    pub message: String,
    /// The names and values of the fields, in the order in which the server gives them.
    pub fields: Vec<(&'static str, String)>,
    /// The whole line: the message and the fields.
    pub line: String,
}

/// The queue of a reader. Events come as long as it is kept.
pub struct LogReader {
    rank: u8,
    queue: Mutex<Queue>,
    /// Called by a thread of the server for each event that was queued.
    wake: Box<dyn Fn() + Send + Sync>,
}

/// The events that wait.
#[derive(Default)]
struct Queue {
    events: VecDeque<Arc<LogEvent>>,
    /// Events that had no room since the reader last took some.
    lost: u64,
}

impl Debug for LogReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader").field("rank", &self.rank).finish_non_exhaustive()
    }
}

impl LogReader {
    /// Makes a reader of the events from a level on. `wake` is called for each event
    /// that was queued; it must not block, nor log.
    #[must_use]
    pub fn new(level: LevelFilter, wake: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        let rank = level.into_level().as_ref().map_or(0, rank);
        let reader = Arc::new(Self { rank, queue: Mutex::default(), wake: Box::new(wake) });
        lock(&READERS).push(Arc::downgrade(&reader));
        note_readers();
        reader
    }

    /// Takes out the events that wait. If some were lost since, the last one tells how many.
    pub fn take(&self) -> Vec<Arc<LogEvent>> {
        let Queue { events, lost } = std::mem::take(&mut *lock(&self.queue));
        let mut events = Vec::from(events);
        if lost > 0 {
            events.push(Arc::new(LogEvent {
                level: Level::WARN,
                time: SystemTime::now(),
                message: LOST.to_owned(),
                fields: vec![("events", lost.to_string())],
                line: format!("{LOST} events={lost}"),
            }));
        }
        events
    }

    /// Queues an event, or counts it as lost.
    fn put(&self, event: &Arc<LogEvent>) {
        let mut queue = lock(&self.queue);
        if queue.events.len() == EVENTS_MAX {
            queue.lost += 1;
            return;
        }
        queue.events.push_back(Arc::clone(event));
        drop(queue);
        (self.wake)();
    }
}

impl Drop for LogReader {
    fn drop(&mut self) {
        note_readers();
    }
}

/// Notes which level the readers want, and has `tracing` ask again what is enabled.
fn note_readers() {
    let mut readers = lock(&READERS);
    readers.retain(|known| known.strong_count() > 0);
    let ranks: Vec<_> = readers.iter().filter_map(Weak::upgrade).collect();
    RANK.store(ranks.iter().map(|reader| reader.rank).max().unwrap_or(0), Ordering::Relaxed);
    drop(readers);
    drop(ranks); // after the lock: it may be the last of a reader, which comes here again
    callsite::rebuild_interest_cache();
}

/// Numbers a level: the more detailed, the larger.
fn rank(level: &Level) -> u8 {
    match *level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        Level::TRACE => 5,
    }
}

/// Locks a mutex; its data are consistent also if a holder panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A subscriber of `tracing` that gives the events of the server to the readers of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogCollector;

impl LogCollector {
    /// Whether the process has a reader.
    #[must_use]
    pub fn has_readers() -> bool {
        RANK.load(Ordering::Relaxed) > 0
    }
}

impl Subscriber for LogCollector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        rank(metadata.level()) <= RANK.load(Ordering::Relaxed)
            && metadata.target().starts_with("zonda")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(match RANK.load(Ordering::Relaxed) {
            0 => LevelFilter::OFF,
            1 => LevelFilter::ERROR,
            2 => LevelFilter::WARN,
            3 => LevelFilter::INFO,
            4 => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        })
    }

    fn event(&self, event: &Event<'_>) {
        let (level, mut read) = (*event.metadata().level(), Fields::default());
        event.record(&mut read);
        let Fields { line, message, fields } = read;
        let time = SystemTime::now();
        let event = Arc::new(LogEvent { level, time, message, fields, line });
        // The lock is free before a reader is woken, and before the last of one is dropped.
        let readers: Vec<_> = lock(&READERS).iter().filter_map(Weak::upgrade).collect();
        let wanted = |reader: &&Arc<LogReader>| rank(&level) <= reader.rank;
        readers.iter().filter(wanted).for_each(|reader| reader.put(&event));
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
    fields: Vec<(&'static str, String)>,
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
                self.fields.push((name, value));
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Returns what a reader has of this test, whose events have a field `of`.
    fn of(reader: &LogReader, test: &str) -> Vec<Arc<LogEvent>> {
        let is_of = |event: &Arc<LogEvent>| {
            event.message == LOST || event.fields.iter().any(|(_, value)| value == test)
        };
        reader.take().into_iter().filter(is_of).collect()
    }

    #[test]
    fn each_reader_has_the_events_of_its_level_with_their_fields() {
        let (infos, errors) = tracing::subscriber::with_default(LogCollector, || {
            let infos = LogReader::new(LevelFilter::INFO, || {});
            let errors = LogReader::new(LevelFilter::ERROR, || {});
            tracing::info!(of = "levels", zone = %"a.example", "a zone is loaded");
            tracing::debug!(of = "levels", "a detail");
            tracing::error!(of = "levels", tries = 3, "a zone has failed");
            (of(&infos, "levels"), of(&errors, "levels"))
        });
        let texts = |events: &[Arc<LogEvent>]| {
            events.iter().map(|event| event.line.clone()).collect::<Vec<_>>()
        };
        let failed = "a zone has failed of=\"levels\" tries=3";
        assert_eq!(texts(&infos), ["a zone is loaded of=\"levels\" zone=a.example", failed]);
        assert_eq!(texts(&errors), [failed]);
        let fields = [("of", "levels".to_owned()), ("zone", "a.example".to_owned())];
        assert_eq!((infos[0].level, infos[0].message.as_str()), (Level::INFO, "a zone is loaded"));
        assert_eq!(infos[0].fields, fields);
    }

    #[test]
    fn events_without_room_are_lost_and_counted() {
        let woken = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&woken);
        let wake = move || _ = counter.fetch_add(1, Ordering::Relaxed);
        let reader =
            LogReader { rank: rank(&Level::INFO), queue: Mutex::default(), wake: Box::new(wake) };
        let event = Arc::new(LogEvent {
            level: Level::INFO,
            time: SystemTime::UNIX_EPOCH,
            message: "it".to_owned(),
            fields: Vec::new(),
            line: "it".to_owned(),
        });
        (0..EVENTS_MAX + 7).for_each(|_| reader.put(&event));
        let events = reader.take();
        assert_eq!(events.len(), EVENTS_MAX + 1);
        assert_eq!(events[EVENTS_MAX].line, format!("{LOST} events=7"));
        assert_eq!(woken.load(Ordering::Relaxed), EVENTS_MAX);
        assert_eq!(reader.take(), []);
        reader.put(&event);
        assert_eq!(reader.take(), [event]);
    }
}
