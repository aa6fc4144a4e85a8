//! Ctrl-C and SIGTERM while something is measured: the first ends it early, the second at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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
    /// Takes both signals from now on.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub fn watch() -> Result<Self, String> {
        let interrupt = Self { stop: Arc::default(), signal: Arc::default() };
        let watch = |signal: u8| -> io::Result<()> {
            let (number, code) = (i32::from(signal), i32::from(BY_SIGNAL + signal));
            // In this order: only a signal that finds the flag set ends the process.
            flag::register_conditional_shutdown(number, code, Arc::clone(&interrupt.stop))?;
            flag::register(number, Arc::clone(&interrupt.stop))?;
            flag::register_usize(number, Arc::clone(&interrupt.signal), signal.into())?;
            Ok(())
        };
        let watched = [SIGINT, SIGTERM].into_iter().try_for_each(|signal| watch(signal as u8));
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
