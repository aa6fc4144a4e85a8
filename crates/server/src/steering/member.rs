//! What is known about a member of a pool, and what it counts as.

use super::overrides::ForcedState;
use std::time::Duration;
use zonda_balance::MemberState;
use zonda_config::{MemberConfig, PoolConfig};
use zonda_health::Start;

/// Steps in which the weight of a member rises that has come back.
const SLOW_START_STEPS: u32 = 16;

/// What is known about a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRecord {
    /// Whether its probes, or the states that its own depends on, say that it is up.
    pub is_healthy: bool,
    /// What an operator has said about it.
    pub forced: Option<ForcedState>,
    /// The shortest time after which probes can change whether it is healthy; none if there are
    /// none.
    pub earliest_change: Option<Duration>,
    /// How long its checks take.
    pub latency: SmoothedLatency,
    /// Whether it counts as up.
    is_up: bool,
    /// Whether it has counted as up before.
    has_been_up: bool,
    /// Whether it was up when any member of the pool last was.
    was_up: bool,
    /// Until when it waits after it has come back, nanoseconds of the monotonic clock.
    held_until: Option<u64>,
    /// Since when its weight rises, nanoseconds of the monotonic clock.
    rising_since: Option<u64>,
    /// The part of its weight that it has, as [`MemberState`] has it.
    part: u32,
    /// The load in percent, and until when that holds, nanoseconds of the monotonic clock.
    load: Option<(u32, u64)>,
}

/// What the passing of time has done to a member.
pub struct TimeStep {
    /// Whether its state is another one.
    pub has_changed: bool,
    /// How long until the next such step; none if no time changes it.
    pub next: Option<Duration>,
}

impl MemberRecord {
    /// A member of a pool before any probe.
    pub fn new(pool: &PoolConfig, member: &MemberConfig) -> Self {
        let check = pool.check.as_ref().filter(|_| member.address.is_some());
        let is_up = check.is_none_or(|check| check.thresholds.start == Start::Up);
        Self {
            is_healthy: is_up,
            forced: None,
            earliest_change: check.map(|_| Duration::ZERO), // the first probe may decide
            latency: SmoothedLatency::default(),
            is_up,
            has_been_up: false, // until all states that it depends on are known
            was_up: is_up,
            held_until: None,
            rising_since: None,
            part: MemberState::WHOLE,
            load: None,
        }
    }

    /// The state, as far as a choice depends on it.
    pub fn state(&self) -> MemberState {
        MemberState {
            is_up: self.is_up,
            was_up: self.was_up,
            part: self.part,
            latency: self.latency.published,
            is_held: self.held_until.is_some() || self.forced == Some(ForcedState::Held),
            load: self.load.map(|(load, _)| load),
        }
    }

    /// Whether the member counts as up.
    pub fn is_up(&self) -> bool {
        self.is_up
    }

    /// Whether the passing of time will change the state.
    pub fn is_timed(&self) -> bool {
        self.held_until.is_some() || self.rising_since.is_some() || self.load.is_some()
    }

    /// Notes that a member of the pool is up.
    pub fn note_was_up(&mut self) {
        self.was_up = self.is_up;
    }

    /// Notes that the state is known: a member that is up has not just come back.
    pub fn note_known(&mut self) {
        self.has_been_up |= self.is_up;
    }

    /// Notes the load, until a time in nanoseconds of the monotonic clock; whether it is another
    /// one.
    pub fn set_load(&mut self, load: u32, until: u64) -> bool {
        self.load.replace((load, until)).map(|(load, _)| load) != Some(load)
    }

    /// Decides what the member counts as, at a time in nanoseconds of the monotonic clock.
    pub fn refresh(&mut self, config: &PoolConfig, now: u64) {
        let is_up = self.forced.map_or(self.is_healthy, |it| it.counts_as_up(self.is_healthy));
        if std::mem::replace(&mut self.is_up, is_up) == is_up {
            return;
        }
        (self.held_until, self.rising_since, self.part) = (None, None, MemberState::WHOLE);
        if is_up && std::mem::replace(&mut self.has_been_up, true) && !config.hold_down.is_zero() {
            self.held_until = Some(now.saturating_add(nanos(config.hold_down)));
        } else if is_up {
            self.rise(config, now);
        }
    }

    /// Has the weight rise from now on.
    fn rise(&mut self, config: &PoolConfig, now: u64) {
        if !config.slow_start.is_zero() {
            (self.rising_since, self.part) = (Some(now), part(0, config.slow_start));
        }
    }

    /// Does what is due at a time in nanoseconds of the monotonic clock.
    pub fn pass_time(&mut self, config: &PoolConfig, now: u64) -> TimeStep {
        let before = self.state();
        if self.held_until.is_some_and(|until| until <= now) {
            self.held_until = None;
            self.rise(config, now);
        }
        if let Some(since) = self.rising_since {
            self.part = part(now.saturating_sub(since), config.slow_start);
            self.rising_since = (self.part < MemberState::WHOLE).then_some(since);
        }
        self.load = self.load.filter(|(_, until)| now < *until);
        let until = |time: u64| Duration::from_nanos(time.saturating_sub(now));
        let step = self.rising_since.map(|_| config.slow_start / SLOW_START_STEPS);
        let next = self.held_until.map(until).into_iter().chain(step);
        let next = next.chain(self.load.map(|(_, time)| until(time))).min();
        TimeStep { has_changed: self.state() != before, next }
    }
}

/// A latency whose value changes only when it has changed by much: plans are not made anew for each
/// probe, nor do members take turns at being the fastest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmoothedLatency {
    /// The moving average, nanoseconds; none before the first probe that succeeded.
    average: Option<u64>,
    /// The value that counts, microseconds.
    published: Option<u32>,
}

impl SmoothedLatency {
    /// Takes the time of a probe into the average; whether another value counts now.
    pub fn take(&mut self, took: Duration) -> bool {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX / 16);
        let average = self.average.map_or(nanos, |average| average / 10 * 7 + nanos / 10 * 3);
        self.average = Some(average);
        let micros = u32::try_from(average / 1000).unwrap_or(u32::MAX);
        let is_other = |published: u32| micros.abs_diff(published) > published / 5 + 500;
        let has_changed = self.published.is_none_or(is_other);
        if has_changed {
            self.published = Some(micros);
        }
        has_changed
    }
}

/// The part of its weight that a member has so many nanoseconds after it has come back.
fn part(nanos: u64, slow_start: Duration) -> u32 {
    let whole = u64::from(MemberState::WHOLE);
    let steps = u64::from(SLOW_START_STEPS);
    let total = u64::try_from(slow_start.as_nanos()).unwrap_or(u64::MAX).max(1);
    let step = (u128::from(nanos) * u128::from(steps) / u128::from(total)) as u64 + 1;
    (whole * step.min(steps) / steps) as u32 // at most the whole
}

/// A duration in nanoseconds.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
