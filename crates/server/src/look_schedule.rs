//! When watched files are looked at.
//!
//! Deliberately absent: clocks and timers; callers pass the time.

use std::time::{Duration, Instant};

/// The longest time between looks at the files that the configuration is made of, where changes of
/// them are followed: as long as `watch-interval` is by default.
const CONFIG_INTERVAL_MAX: Duration = Duration::from_secs(2);
/// How many times as long as a look has taken the next one is put off: a million files take seconds
/// to look at.
const PAUSE_FACTOR: u32 = 20;

/// When files are looked at next.
#[derive(Clone, Copy, Debug)]
pub struct LookSchedule {
    /// When all files are due: those of zones, locations and upstreams.
    all: Instant,
    /// When the files are due that the configuration is made of; none if they are not followed.
    config: Option<Instant>,
}

impl LookSchedule {
    /// The first looks, with the interval of the configuration.
    pub fn new(now: Instant, interval: Duration, follows_config: bool) -> Self {
        let config = follows_config.then(|| now + interval.min(CONFIG_INTERVAL_MAX));
        Self { all: now + interval, config }
    }

    /// When the next look is.
    pub fn next(&self) -> Instant {
        self.config.map_or(self.all, |config| config.min(self.all))
    }

    /// Whether a look now is at all files.
    pub fn are_all_due(&self, now: Instant) -> bool {
        self.all <= now
    }

    /// Notes a look, from its start to its end, so that the next one comes after the interval.
    pub fn note(&mut self, start: Instant, end: Instant, interval: Duration) {
        let pause = end.saturating_duration_since(start) * PAUSE_FACTOR;
        if self.are_all_due(start) {
            self.all = end + interval.max(pause);
        }
        if let Some(config) = &mut self.config {
            *config = end + interval.min(CONFIG_INTERVAL_MAX).max(pause);
        }
    }

    /// Notes that the interval may be another one. A look comes sooner for that, but never later:
    /// frequent reloads put none off.
    pub fn note_interval(&mut self, now: Instant, interval: Duration) {
        let next = Self::new(now, interval, self.config.is_some());
        self.all = self.all.min(next.all);
        self.config = self.config.min(next.config);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn files_are_due_once_in_an_interval() {
        let start = Instant::now();
        let mut looks = LookSchedule::new(start, 2 * SECOND, false);
        assert_eq!(looks.next(), start + 2 * SECOND);
        assert!(!looks.are_all_due(start + SECOND) && looks.are_all_due(start + 2 * SECOND));
        looks.note(start + 2 * SECOND, start + 2 * SECOND, 2 * SECOND);
        assert_eq!(looks.next(), start + 4 * SECOND);
    }

    #[test]
    fn a_followed_configuration_is_looked_at_every_two_seconds_beside_files_of_an_hour() {
        let (start, hour) = (Instant::now(), 3600 * SECOND);
        let mut looks = LookSchedule::new(start, hour, true);
        for round in 1..=10 {
            let now = start + round * 2 * SECOND;
            assert_eq!(looks.next(), now);
            assert!(!looks.are_all_due(now));
            looks.note(now, now, hour);
        }
        assert!(looks.are_all_due(start + hour));
        let sooner = LookSchedule::new(start, SECOND / 10, true);
        assert_eq!(sooner.next(), start + SECOND / 10);
    }

    #[test]
    fn a_look_that_takes_long_puts_off_the_next_one() {
        let start = Instant::now();
        for follows_config in [false, true] {
            let mut looks = LookSchedule::new(start, SECOND, follows_config);
            let (begun, ended) = (start + SECOND, start + 3 * SECOND);
            looks.note(begun, ended, SECOND);
            assert_eq!(looks.next(), ended + 40 * SECOND);
        }
    }

    #[test]
    fn another_interval_brings_a_look_forward_and_never_puts_it_off() {
        let (start, hour) = (Instant::now(), 3600 * SECOND);
        let mut looks = LookSchedule::new(start, hour, false);
        looks.note_interval(start + SECOND, SECOND);
        assert_eq!(looks.next(), start + 2 * SECOND);
        looks.note_interval(start + SECOND, hour);
        assert_eq!(looks.next(), start + 2 * SECOND);
    }
}
