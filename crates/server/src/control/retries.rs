//! When a configuration is tried again that could be read, but not put into force: an address is
//! taken, say, and will be free.

use crate::program::LastReading;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time before the first trial.
const PAUSE_MIN: Duration = Duration::from_secs(2);
/// The longest time between two trials, each of which is logged. Each time is twice as long as the
/// time before it.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// What became of the configuration that was read last, and when it is tried again.
#[derive(Debug, Default)]
pub struct Retries(Mutex<Option<RefusedConfig>>);

/// A configuration that could be read, and not be put into force.
#[derive(Debug)]
struct RefusedConfig {
    /// When it is tried again; none where a later one could not be read.
    due: Option<Instant>,
    /// The time from the last refusal to that trial.
    pause: Duration,
}

impl Retries {
    /// Notes that a configuration was put into force with all its listeners, or could not be.
    pub fn note(&self, is_in_force: bool, now: Instant) {
        let mut refused = self.lock();
        let pause = refused.as_ref().map_or(PAUSE_MIN, |it| (it.pause * 2).min(PAUSE_MAX));
        *refused = (!is_in_force).then(|| RefusedConfig { due: Some(now + pause), pause });
    }

    /// Notes that the configuration could not be read: it is once its files have changed.
    pub fn note_unreadable(&self) {
        if let Some(refused) = &mut *self.lock() {
            refused.due = None;
        }
    }

    /// What became of the configuration that was read last.
    pub fn last_reading(&self, now: Instant) -> LastReading {
        match &*self.lock() {
            None => LastReading::InForce,
            Some(RefusedConfig { due: Some(due), .. }) if *due <= now => LastReading::Due,
            Some(_) => LastReading::Refused,
        }
    }

    /// The state, for a moment.
    fn lock(&self) -> MutexGuard<'_, Option<RefusedConfig>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner) // it is written whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_configuration_is_due_after_pauses_that_grow_until_it_is_in_force() {
        let (retries, start) = (Retries::default(), Instant::now());
        assert_eq!(retries.last_reading(start), LastReading::InForce);
        let mut now = start;
        for secs in [2, 4, 8, 16, 32, 60, 60] {
            retries.note(false, now);
            let due = now + Duration::from_secs(secs);
            let before = due.checked_sub(Duration::from_millis(1));
            assert_eq!(before.map(|it| retries.last_reading(it)), Some(LastReading::Refused));
            assert_eq!(retries.last_reading(due), LastReading::Due);
            now = due;
        }
        retries.note_unreadable();
        assert_eq!(retries.last_reading(now + PAUSE_MAX), LastReading::Refused);
        retries.note(true, now);
        assert_eq!(retries.last_reading(now + PAUSE_MAX), LastReading::InForce);
    }
}
