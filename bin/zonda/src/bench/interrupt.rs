//! Ctrl-C and SIGTERM while something is measured: the first ends it early, the second at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::exit;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time after the first signal in which further ones are the same: `timeout` sends its signal to
/// the process and to its group, and a terminal sends Ctrl-C to both.
const TOGETHER: Duration = Duration::from_millis(300);

/// What shells add to a signal's number for the exit code of a process that it has ended.
const BY_SIGNAL: u8 = 128;

/// Whether a signal has come.
pub struct Interrupt {
    /// Set by either signal.
    pub stop: Arc<AtomicBool>,
    /// The signal's number; 0 before one has come.
    pub signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Takes both signals from now on, in a thread of their own.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn watch() -> Result<Self, String> {
        let interrupt = Self { stop: Arc::default(), signal: Arc::default() };
        let (stop, number) = (Arc::clone(&interrupt.stop), Arc::clone(&interrupt.signal));
        let watch = |mut signals: Signals| -> io::Result<()> {
            let wait = move || {
                let mut first = None;
                for signal in signals.forever() {
                    let since = *first.get_or_insert_with(Instant::now);
                    if !stop.load(Ordering::Relaxed) {
                        number.store(signal as usize, Ordering::Relaxed); // 2 or 15
                        stop.store(true, Ordering::Relaxed);
                    } else if since.elapsed() > TOGETHER {
                        exit(i32::from(BY_SIGNAL) + signal);
                    }
                }
            };
            thread::Builder::new().name("interrupt".to_owned()).spawn(wait).map(drop)
        };
        let watched = Signals::new([SIGINT, SIGTERM]).and_then(watch);
        watched.map(|()| interrupt).map_err(|error| format!("signals: {error}"))
    }

    /// The exit code of what ended by itself or by a signal: 0, 130 or 143.
    pub fn exit_code(&self) -> ExitCode {
        match self.signal.load(Ordering::Relaxed) {
            0 => ExitCode::SUCCESS,
            signal => ExitCode::from(BY_SIGNAL + signal as u8),
        }
    }
}
