//! What the server logs: to standard error, or to JavaScript while that reads it.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use napi_derive::napi;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use zonda_server::{LogCollector, LogEvent, LogReader, StandardError};

use super::options::parsed;
use super::{Core, lock};

/// The level of the log unless an app says another one.
const LEVEL: &str = "warn";

/// An event of the log, of which JavaScript makes a record.
#[napi(object)]
pub struct LogRecord {
    /// The level: `error`, `warn`, `info` or `debug`.
    pub level: String,
    /// The message, which is the same for all events of a kind.
    pub event: String,
    /// The message and the fields.
    pub message: String,
    /// Pairs of the name and the value of a field.
    pub fields: Vec<Vec<String>>,
    /// Milliseconds since 1970.
    pub time: f64,
}

impl From<&LogEvent> for LogRecord {
    fn from(event: &LogEvent) -> Self {
        let pair = |(name, value): &(&str, String)| vec![(*name).to_owned(), value.clone()];
        let since = event.time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            level: event.level.as_str().to_ascii_lowercase(),
            event: event.message.clone(),
            message: event.line.clone(),
            fields: event.fields.iter().map(pair).collect(),
            time: since.as_secs_f64() * 1000.0,
        }
    }
}

#[napi]
impl Core {
    /// Has events of the log wait for JavaScript, from the app's level on, in place of standard
    /// error; `wake` is called when there are some.
    ///
    /// # Errors
    /// When the option `log` is no level.
    #[napi]
    pub fn read_log(&self) -> napi::Result<()> {
        let level = level(self.options.log.as_deref())?;
        // A former reader may have left it set.
        self.shared.is_log_due.store(false, Ordering::Release);
        let shared = Arc::downgrade(&self.shared);
        let reader = LogReader::new(level, move || {
            let Some(shared) = shared.upgrade() else { return };
            if !shared.is_log_due.swap(true, Ordering::AcqRel) {
                shared.wake();
            }
        });
        *lock(&self.shared.log) = Some(reader);
        Ok(())
    }

    /// Has the log go where it went before.
    #[napi]
    pub fn end_log(&self) {
        let reader = lock(&self.shared.log).take();
        drop(reader); // the lock is free meanwhile
    }

    /// The events of the log that wait.
    #[napi]
    pub fn log_records(&self) -> Vec<LogRecord> {
        self.shared.is_log_due.store(false, Ordering::Release);
        let reader = lock(&self.shared.log).clone();
        let events = reader.map(|reader| reader.take()).unwrap_or_default();
        events.iter().map(|event| LogRecord::from(&**event)).collect()
    }
}

/// The level that an option says.
fn level(option: Option<&str>) -> napi::Result<LevelFilter> {
    parsed(option.unwrap_or(LEVEL), "level of the log: error, warn, info, debug, or off")
}

/// Has the server log to standard error where no app reads the log, once for all apps of the
/// process.
pub(super) fn install(option: Option<&str>) -> napi::Result<()> {
    let level = level(option)?;
    let is_terminal = std::io::stderr().is_terminal();
    let stderr = tracing_subscriber::fmt().with_max_level(level).with_ansi(is_terminal);
    let stderr = stderr.with_writer(|| StandardError).log_internal_errors(false).finish();
    // The first app's level holds; a program in Rust may have its own.
    let _ = tracing::subscriber::set_global_default(Log { stderr });
    Ok(())
}

/// Gives events to the apps that read the log, or else to standard error.
struct Log<S> {
    stderr: S,
}

impl<S: Subscriber> Subscriber for Log<S> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        match LogCollector::has_readers() {
            true => LogCollector.enabled(metadata),
            false => self.stderr.enabled(metadata),
        }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        match LogCollector::has_readers() {
            true => LogCollector.max_level_hint(),
            false => self.stderr.max_level_hint(),
        }
    }

    fn event(&self, event: &Event<'_>) {
        if LogCollector::has_readers() {
            LogCollector.event(event);
        } else if self.stderr.enabled(event.metadata()) {
            self.stderr.event(event); // it was enabled for a reader that has gone, if it is not
        }
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        self.stderr.new_span(attributes)
    }

    fn record(&self, span: &Id, record: &Record<'_>) {
        self.stderr.record(span, record);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.stderr.record_follows_from(span, follows);
    }

    fn enter(&self, span: &Id) {
        self.stderr.enter(span);
    }

    fn exit(&self, span: &Id) {
        self.stderr.exit(span);
    }

    fn clone_span(&self, span: &Id) -> Id {
        self.stderr.clone_span(span)
    }

    fn try_close(&self, span: Id) -> bool {
        self.stderr.try_close(span)
    }
}
