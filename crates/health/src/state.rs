//! Results of probes → the state of a target.
//!
//! | state | begins | counts as |
//! |---|---|---|
//! | [`State::Unknown`] | before enough results have come | [`Thresholds::start`] |
//! | [`State::Up`] | after `rise` successes in a row | up |
//! | [`State::Down`] | after `fall` failures in a row | down |
//!
//! A first result that agrees with `start` ends the unknown state at once, since no answer depends
//! on it; one that does not needs `rise` or `fall` in a row like any other.
//!
//! A target that has changed between up and down often ([`Damping`]) does not come up after `rise`
//! successes: it is held down until it has not failed once for a while.
//!
//! Times are nanoseconds of one clock that never runs backwards; which one is the caller's choice.
//!
//! # Invariants
//! - While a target is up, fewer than `fall` failures lie behind it in a row; while it is down and
//!   not held, fewer than `rise` successes.
//! - At most [`CHANGES_KEPT`] changes are stored.

use std::collections::VecDeque;
use std::time::Duration;

use crate::outcome::{Fault, Outcome};

/// The most changes of one target that are stored; the oldest goes first. An operator sees with
/// this many what a target did last night, and 10,000 targets that all flap need some 80 MB.
pub const CHANGES_KEPT: usize = 100;

/// Whether a target is healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The target does what its check expects.
    Up,
    /// The target does not do what its check expects, or is held down since it flaps.
    Down,
    /// Not enough results have come yet.
    Unknown,
}

impl State {
    /// Returns the state as a word of configuration, metrics and logs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Unknown => "unknown",
        }
    }
}

/// What an unknown target counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// The target gets clients until it has failed often enough.
    Up,
    /// The target gets no client before it has succeeded often enough.
    Down,
}

/// When results change the state of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thresholds {
    /// Successes in a row that bring a target up; 0 counts as 1.
    pub rise: u32,
    /// Failures in a row that bring a target down; 0 counts as 1.
    pub fall: u32,
    /// What the target counts as until results have decided.
    pub start: Start,
    /// When a target flaps; `None` for never.
    pub damping: Option<Damping>,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { rise: 2, fall: 3, start: Start::Up, damping: Some(Damping::default()) }
    }
}

/// When a target flaps, and how long it is held down then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Damping {
    /// Changes between up and down within `window` that are tolerated: with as many behind it, a
    /// target is held down instead of coming up. 1 to [`CHANGES_KEPT`]; more counts as that.
    pub changes_max: u32,
    /// The time in which changes are counted.
    pub window: Duration,
    /// The time without a failure after which the target comes up nevertheless.
    pub stable: Duration,
}

impl Default for Damping {
    /// Ten changes, five outages, within ten minutes; two minutes without a failure. With a probe
    /// every 5 s, rise 2 and fall 3, a target can change 48 times in ten minutes.
    fn default() -> Self {
        Self { changes_max: 10, window: Duration::from_secs(600), stable: Duration::from_secs(120) }
    }
}

/// The last result of a target's probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastResult {
    /// Time at which the result came, nanoseconds.
    pub at: u64,
    /// How long the probe took.
    pub took: Duration,
    /// What the probe found; its `Display` is the result in words.
    pub outcome: Outcome,
}

/// A change of a target's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Time of the change, nanoseconds.
    pub at: u64,
    /// State before the change.
    pub from: State,
    /// State from the change on.
    pub to: State,
    /// The result that decided.
    pub why: Outcome,
}

/// The health of a target.
#[derive(Clone, Debug)]
pub struct Health {
    thresholds: Thresholds,
    state: State,
    /// Time at which the state began, nanoseconds.
    since: u64,
    /// Successes in a row up to the last result.
    successes: u32,
    /// Failures in a row up to the last result.
    failures: u32,
    /// Time of the first of the successes in a row.
    good_since: u64,
    last: Option<LastResult>,
    changes: VecDeque<Change>,
    /// Number of all changes, also of those that are no longer stored.
    changes_total: u64,
}

impl Health {
    /// Returns the health of a target that has not been probed yet.
    #[must_use]
    pub fn new(now: u64, thresholds: Thresholds) -> Self {
        Self {
            thresholds,
            state: State::Unknown,
            since: now,
            successes: 0,
            failures: 0,
            good_since: now,
            last: None,
            changes: VecDeque::new(),
            changes_total: 0,
        }
    }

    /// Records the result of a probe; returns the change of state that it brought.
    ///
    /// A probe that this machine could not make ([`Fault::Local`]) says nothing about the target:
    /// it is the last result and is not counted.
    pub fn record(&mut self, now: u64, took: Duration, outcome: Outcome) -> Option<&Change> {
        if matches!(outcome, Err(Fault::Local(_))) {
            self.last = Some(LastResult { at: now, took, outcome });
            return None;
        }
        self.count(now, took, outcome);
        let to = self.deserved_state(now)?;
        self.change_to(now, to)
    }

    /// Records a result that decides alone, whatever `rise` and `fall` say: the caller has counted
    /// already, or an operator has spoken. A target that flaps is held down all the same.
    pub fn decide(&mut self, now: u64, outcome: Outcome) -> Option<&Change> {
        let is_success = outcome.is_ok();
        self.count(now, Duration::ZERO, outcome);
        if !is_success {
            self.failures = self.failures.max(self.fall());
            return self.change_to(now, State::Down);
        }
        self.successes = self.successes.max(self.rise());
        let to = self.deserved_state(now)?;
        self.change_to(now, to)
    }

    /// Lets a held target come up if it has been without failure for long enough, although no new
    /// result has come. For targets whose results come seldom.
    pub fn pass_time(&mut self, now: u64) -> Option<&Change> {
        let to = self.deserved_state(now).filter(|to| *to == State::Up)?;
        self.change_to(now, to)
    }

    /// Replaces the thresholds. The state stays until the next result.
    pub fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }

    /// Returns the thresholds in force.
    #[must_use]
    pub fn thresholds(&self) -> &Thresholds {
        &self.thresholds
    }

    /// Returns the present state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns whether the target counts as up: an unknown one as `start` says.
    #[must_use]
    pub fn counts_as_up(&self) -> bool {
        match self.state {
            State::Up => true,
            State::Down => false,
            State::Unknown => self.thresholds.start == Start::Up,
        }
    }

    /// Returns when the state began, nanoseconds.
    #[must_use]
    pub fn since(&self) -> u64 {
        self.since
    }

    /// Returns the last result; `None` before the first.
    #[must_use]
    pub fn last(&self) -> Option<&LastResult> {
        self.last.as_ref()
    }

    /// Returns the number of successes in a row up to the last result.
    #[must_use]
    pub fn successes(&self) -> u32 {
        self.successes
    }

    /// Returns the number of failures in a row up to the last result.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns the last changes, up to [`CHANGES_KEPT`], the oldest first.
    pub fn changes(&self) -> impl DoubleEndedIterator<Item = &Change> + ExactSizeIterator {
        self.changes.iter()
    }

    /// Returns the number of all changes since the target is probed.
    #[must_use]
    pub fn changes_total(&self) -> u64 {
        self.changes_total
    }

    /// Returns until when a target that flaps is held down, if it does not fail meanwhile; `None`
    /// while it is not held.
    #[must_use]
    pub fn held_until(&self, now: u64) -> Option<u64> {
        let has_risen = self.state == State::Down && self.successes >= self.rise();
        let until = self.hold_ends(now, self.good_since)?;
        (has_risen && now < until).then_some(until)
    }

    /// Returns the shortest time, from the last result, after which the target can count as other
    /// than it does now: the remaining probes in a row times the interval. A target that was not
    /// probed yet is probed at once, so that its first probe costs no interval.
    ///
    /// An answer that holds this long cannot be overtaken by a change, apart from the jitter of the
    /// schedule (a twentieth of the interval).
    #[must_use]
    pub fn earliest_change(&self, interval: Duration) -> Duration {
        let remaining = match self.counts_as_up() {
            true => self.fall().saturating_sub(self.failures),
            false => self.rise().saturating_sub(self.successes),
        };
        let remaining = remaining.max(1) - u32::from(self.last.is_none());
        let by_probes = interval.saturating_mul(remaining);
        let Some(at) = self.last.as_ref().map(|last| last.at) else { return by_probes };
        let good_since = if self.successes == 0 { at } else { self.good_since };
        match self.hold_ends(at, good_since) {
            Some(until) if self.state == State::Down => {
                by_probes.max(Duration::from_nanos(until.saturating_sub(at)))
            }
            _ => by_probes,
        }
    }

    /// Counts a result.
    fn count(&mut self, now: u64, took: Duration, outcome: Outcome) {
        if outcome.is_ok() {
            if self.successes == 0 {
                self.good_since = now;
            }
            self.successes = self.successes.saturating_add(1);
            self.failures = 0;
        } else {
            self.failures = self.failures.saturating_add(1);
            self.successes = 0;
        }
        self.last = Some(LastResult { at: now, took, outcome });
    }

    /// Returns the state that the counted results lead to; `None` while they decide nothing.
    fn deserved_state(&self, now: u64) -> Option<State> {
        let agrees_with = |start| self.state == State::Unknown && self.thresholds.start == start;
        if self.failures > 0 {
            let is_enough = self.failures >= self.fall() || agrees_with(Start::Down);
            is_enough.then_some(State::Down)
        } else if self.successes > 0 {
            let is_enough = self.successes >= self.rise() || agrees_with(Start::Up);
            (is_enough && self.held_until(now).is_none()).then_some(State::Up)
        } else {
            None
        }
    }

    /// Changes the state; returns the change unless it is the present state.
    fn change_to(&mut self, now: u64, to: State) -> Option<&Change> {
        let why = self.last.as_ref()?.outcome.clone();
        if to == self.state {
            return None;
        }
        if self.changes.len() >= CHANGES_KEPT {
            self.changes.pop_front();
        }
        self.changes.push_back(Change { at: now, from: self.state, to, why });
        self.changes_total += 1;
        (self.state, self.since) = (to, now);
        self.changes.back()
    }

    /// Returns when a target that has not failed since `good_since` comes up at the earliest, as
    /// far as damping is concerned; `None` if it does not flap.
    fn hold_ends(&self, now: u64, good_since: u64) -> Option<u64> {
        let damping = self.thresholds.damping?;
        let nth = (damping.changes_max.max(1) as usize).min(CHANGES_KEPT) - 1;
        let mut flaps = self.changes.iter().rev().filter(|change| change.from != State::Unknown);
        let forgotten_at = flaps.nth(nth)?.at.saturating_add(nanos(damping.window));
        let stable_at = good_since.saturating_add(nanos(damping.stable));
        (now < forgotten_at).then_some(forgotten_at.min(stable_at))
    }

    /// Returns the successes in a row that bring the target up, at least 1.
    fn rise(&self) -> u32 {
        self.thresholds.rise.max(1)
    }

    /// Returns the failures in a row that bring the target down, at least 1.
    fn fall(&self) -> u32 {
        self.thresholds.fall.max(1)
    }
}

/// Returns a duration in nanoseconds; one of more than 584 years is that.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
