//! How much of a suite is done, and how long the rest will take.

use std::fmt;
use std::time::{Duration, Instant};

/// Counts expected seconds, and learns from those that are done how long the rest takes.
#[derive(Debug)]
pub struct Progress {
    /// Moment at which the first attempt began.
    began: Instant,
    /// Expected of all.
    expected_secs: f64,
    /// Expected seconds of finished attempts.
    done_secs: f64,
    /// Attempts that did not count, since the last one that did.
    discarded: u64,
}

impl Progress {
    /// The progress of a run that has not begun.
    pub fn new(expected_secs: f64) -> Self {
        Self { began: Instant::now(), expected_secs, done_secs: 0.0, discarded: 0 }
    }

    /// Something is done that was expected to take so long.
    pub fn done(&mut self, expected_secs: f64) {
        self.done_secs += expected_secs;
        self.discarded = 0;
    }

    /// Counts an attempt that was discarded.
    pub fn discarded(&mut self) {
        self.discarded += 1;
    }

    /// Something will not be done that was expected to take so long.
    pub fn spared(&mut self, expected_secs: f64) {
        self.expected_secs -= expected_secs;
    }

    /// Returns how long the rest will take after `elapsed` for what is done.
    fn left_after(&self, elapsed: Duration) -> Duration {
        let pace = if self.done_secs > 0.0 { elapsed.as_secs_f64() / self.done_secs } else { 1.0 };
        Duration::from_secs_f64(((self.expected_secs - self.done_secs) * pace).max(0.0))
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = 100.0 * self.done_secs / self.expected_secs.max(f64::MIN_POSITIVE);
        write!(f, "{:.0} %, ", share.min(100.0))?;
        match self.discarded {
            0 => write!(f, "{} left", duration(self.left_after(self.began.elapsed()))),
            1 => f.write_str("time left unknown, as the last attempt did not count"),
            more => write!(f, "time left unknown, as the last {more} attempts did not count"),
        }
    }
}

/// Returns a time as people say it: `40 s`, `12 min`, `2 h 5 min`.
pub fn duration(time: Duration) -> String {
    let minutes = (time.as_secs() + 30) / 60;
    match (time.as_secs(), minutes) {
        (seconds @ 0..90, _) => format!("{seconds} s"),
        (_, minutes @ 0..90) => format!("{minutes} min"),
        (_, minutes) => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_measured_by_what_is_done() {
        let mut progress = Progress::new(100.0);
        assert_eq!(progress.left_after(Duration::ZERO).as_secs(), 100);
        progress.done(10.0);
        assert_eq!(progress.left_after(Duration::from_secs(20)).as_secs(), 180);
        progress.spared(40.0);
        assert_eq!(progress.left_after(Duration::from_secs(20)).as_secs(), 100);
    }

    #[test]
    fn no_time_is_promised_while_attempts_do_not_count() {
        let mut progress = Progress::new(100.0);
        progress.done(10.0);
        (0..3).for_each(|_| progress.discarded());
        let said = "10 %, time left unknown, as the last 3 attempts did not count";
        assert_eq!(progress.to_string(), said);
        progress.done(10.0);
        assert!(progress.to_string().ends_with(" left"), "{progress}");
    }

    #[test]
    fn times_are_said_in_the_unit_that_suits_them() {
        let said = |secs| duration(Duration::from_secs(secs));
        assert_eq!(
            (said(40), said(95), said(750)),
            ("40 s".into(), "2 min".into(), "13 min".into())
        );
        assert_eq!(said(7500), "2 h 5 min");
    }
}
