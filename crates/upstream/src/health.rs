//! Whether an upstream can be relied on.
//!
//! | state | means | is asked |
//! |---|---|---|
//! | [`State::Up`] | it answers | as the policy says |
//! | [`State::Suspect`] | it is silent, loses, fails, or is not trusted | if none is up; probed |
//! | [`State::Down`] | it has been silent for seconds | by probes only |
//!
//! An upstream is suspect as soon as some queries, three by default, are overdue and nothing at all
//! was heard from it since the first: at 1,000 questions a second, some 25 ms after it died. Good
//! answers in a row bring it back, once what it lost and failed before has little weight.
//!
//! Deliberately absent: which upstream is asked instead ([`pool`](crate::pool)).

use crate::{MILLISECOND_NANOS, SECOND_NANOS};
use std::fmt;

/// Overdue queries that make an upstream down, if it has been silent for long, too.
const SILENT_DOWN: u32 = 8;
/// Good answers in a row that bring a suspect back.
const GOOD_MIN: u32 = 5;
/// Outcomes before a share can be judged.
const OUTCOMES_MIN: u32 = 16;
/// Shares are in parts of this.
const WHOLE: u32 = 1 << 16;
/// Lost share above which an upstream is suspect.
const LOST_MAX: u32 = WHOLE * 3 / 10;
/// Failed share above which an upstream is suspect. Broken names fail everywhere: 1.5 % is normal.
const FAILED_MAX: u32 = WHOLE / 2;
/// Share of either below which a suspect can come back.
const SHARE_BACK: u32 = WHOLE / 10;
/// Time between probes of a suspect that answers, nanoseconds: it is back within 4 seconds.
const PROBE_NANOS_GOOD: u64 = 100 * MILLISECOND_NANOS;

/// When an upstream is no longer relied on, and how often it is looked at then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// Overdue queries, with nothing heard since, that make it suspect; at least 1. At 10 % loss,
    /// three in a row happen by chance once in a thousand questions at low rates, never at high
    /// ones.
    pub silent_max: u32,
    /// Silence after which an upstream is down, nanoseconds.
    pub down_after_nanos: u64,
    /// Time between the first probes of a suspect that does not answer, or of a dead upstream,
    /// nanoseconds.
    pub probe_nanos_min: u64,
    /// Longest time between probes, nanoseconds; not below `probe_nanos_min`.
    pub probe_nanos_max: u64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            silent_max: 3,
            down_after_nanos: 3 * SECOND_NANOS,
            probe_nanos_min: 500 * MILLISECOND_NANOS,
            probe_nanos_max: 16 * SECOND_NANOS,
        }
    }
}

/// Whether an upstream can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The upstream answers queries.
    Up,
    /// The upstream is queried only when no other is up.
    Suspect,
    /// The upstream gets probes only.
    Down,
}

/// Why an upstream is not up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The upstream has sent nothing.
    Silent,
    /// The network reports the address as unreachable, or no connection could be made.
    Unreachable,
    /// The upstream loses this share of the queries, percent.
    Lossy(u8),
    /// The upstream answers this share of the queries with a failure, percent.
    Failing(u8),
    /// The upstream's certificate is not trusted, so that no query is sent.
    Untrusted,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent => f.write_str("it does not answer"),
            Self::Unreachable => f.write_str("it cannot be reached"),
            Self::Lossy(percent) => write!(f, "{percent} % of the queries got no answer"),
            Self::Failing(percent) => write!(f, "{percent} % of the answers were failures"),
            Self::Untrusted => f.write_str("its certificate is not trusted"),
        }
    }
}

/// The health of an upstream.
#[derive(Clone, Debug)]
pub struct Health {
    /// Thresholds of the pool.
    pub(crate) thresholds: Thresholds,
    state: State,
    /// The reason why the upstream is not up.
    trouble: Option<Trouble>,
    /// Time at which anything was last received.
    heard_at: u64,
    /// Overdue queries sent after that.
    silent: u32,
    /// Time at which the first of the overdue queries was sent.
    silent_since: u64,
    /// Good answers in a row.
    good: u32,
    /// Share of the queries that got no answer.
    lost: Share,
    /// Share of the answers that were failures.
    failed: Share,
    /// Time of the next probe; only while the upstream is not up.
    probe_at: u64,
    /// Interval between the next probe and the one after.
    probe_interval: u64,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            thresholds: Thresholds::default(),
            state: State::Up,
            trouble: None,
            heard_at: 0,
            silent: 0,
            silent_since: 0,
            good: 0,
            lost: Share::default(),
            failed: Share::default(),
            probe_at: 0,
            probe_interval: 0, // set with the state
        }
    }
}

impl Health {
    /// Returns the present state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns why the upstream is not up; `None` when it is.
    #[must_use]
    pub fn trouble(&self) -> Option<Trouble> {
        self.trouble
    }

    /// Returns the share of queries without an answer, in parts of 65,536.
    #[must_use]
    pub fn lost_share(&self) -> u32 {
        self.lost.part
    }

    /// Records an answer, or a `failure` in place of one.
    pub fn heard(&mut self, now: u64, failure: bool) {
        self.heard_at = now;
        self.silent = 0;
        self.lost.add(false);
        self.failed.add(failure);
        self.good = if failure { 0 } else { self.good + 1 };
        if !failure {
            self.probe_interval = self.thresholds.probe_nanos_min;
        }
        if self.state == State::Down {
            self.suspect(now, self.trouble.unwrap_or(Trouble::Silent));
        }
        let has_little = |share: &Share| share.part <= SHARE_BACK;
        if self.good >= GOOD_MIN && has_little(&self.lost) && has_little(&self.failed) {
            (self.state, self.trouble) = (State::Up, None);
        } else if self.failed.exceeds(FAILED_MAX) {
            self.suspect(now, Trouble::Failing(self.failed.percent()));
        }
    }

    /// Records that the answer to a query that was sent at `sent_at` is overdue.
    pub fn overdue(&mut self, now: u64, sent_at: u64) {
        if self.heard_at < sent_at {
            self.missed(now, sent_at, Trouble::Silent);
        }
    }

    /// Records that a query could not be sent, or came back as undeliverable.
    pub fn unreachable(&mut self, now: u64, sent_at: u64) {
        self.lost.add(true);
        self.missed(now, sent_at, Trouble::Unreachable);
    }

    /// Records that no answer to a query ever came.
    pub fn lost(&mut self, now: u64) {
        self.lost.add(true);
        self.good = 0;
        if self.state == State::Up && self.lost.exceeds(LOST_MAX) {
            self.suspect(now, Trouble::Lossy(self.lost.percent()));
        }
    }

    /// Records that the upstream's certificate is not trusted: until that changes the upstream is
    /// of no use. It is neither silent nor did it fail to answer.
    pub fn untrusted(&mut self, now: u64) {
        self.heard_at = now;
        (self.silent, self.good) = (0, 0);
        self.suspect(now, Trouble::Untrusted);
    }

    /// Whether the upstream answers with failures, so that another failure is no sign that it is
    /// back.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        matches!(self.trouble, Some(Trouble::Failing(_)))
    }

    /// Returns when the next probe is due; `None` while the upstream is up.
    #[must_use]
    pub fn probe_at(&self) -> Option<u64> {
        (self.state != State::Up).then_some(self.probe_at)
    }

    /// Records that a probe is sent; the next one is due later each time, after `interval_max` at
    /// the latest.
    pub fn probed(&mut self, now: u64, interval_max: u64) {
        let interval = if self.good > 0 { PROBE_NANOS_GOOD } else { self.probe_interval };
        self.probe_at = now + interval.min(interval_max);
        self.probe_interval = (2 * self.probe_interval).min(self.thresholds.probe_nanos_max);
    }

    /// Records one more query without a sign of life since it was sent.
    fn missed(&mut self, now: u64, sent_at: u64, trouble: Trouble) {
        if self.silent == 0 {
            self.silent_since = sent_at;
        }
        self.silent += 1;
        self.good = 0;
        let silent_nanos = now.saturating_sub(self.silent_since);
        let for_long = silent_nanos >= self.thresholds.down_after_nanos;
        match self.state {
            State::Up if self.silent >= self.thresholds.silent_max => self.suspect(now, trouble),
            State::Suspect if self.silent >= SILENT_DOWN && for_long => {
                self.state = State::Down;
                self.trouble = Some(trouble);
            }
            _ => {}
        }
    }

    /// Makes the upstream suspect; the first probe follows soon.
    fn suspect(&mut self, now: u64, trouble: Trouble) {
        if self.state != State::Suspect {
            self.probe_at = now + self.thresholds.probe_nanos_min / 2;
            self.probe_interval = self.thresholds.probe_nanos_min;
        }
        self.state = State::Suspect;
        self.trouble = Some(trouble);
    }
}

/// A share of outcomes, each of which weighs a sixteenth when it comes and less later.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// Average of the outcomes, in parts of [`WHOLE`].
    part: u32,
    /// How many outcomes there were, counted up to [`OUTCOMES_MIN`].
    outcomes: u32,
}

impl Share {
    /// Adds one more outcome.
    fn add(&mut self, counts: bool) {
        self.part = self.part - self.part / 16 + if counts { WHOLE / 16 } else { 0 };
        self.outcomes = (self.outcomes + 1).min(OUTCOMES_MIN);
    }

    /// Whether the share of failures is known to be above a limit.
    fn exceeds(&self, limit: u32) -> bool {
        self.outcomes == OUTCOMES_MIN && self.part > limit
    }

    /// Returns the average as percent.
    fn percent(&self) -> u8 {
        (self.part.min(WHOLE) * 100 / WHOLE) as u8 // at most 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_overdue_queries_without_a_sign_of_life_make_a_suspect() {
        let mut health = Health::default();
        health.heard(10, false);
        for sent_at in [9, 10, 11, 12] {
            health.overdue(30, sent_at); // the first two were sent before something was heard
        }
        assert_eq!(health.state(), State::Up);
        health.overdue(31, 13);
        assert_eq!((health.state(), health.trouble()), (State::Suspect, Some(Trouble::Silent)));
        for _ in 0..4 {
            health.heard(40, false);
        }
        assert_eq!(health.state(), State::Suspect);
        health.heard(40, false);
        assert_eq!((health.state(), health.trouble()), (State::Up, None));
    }

    #[test]
    fn long_silence_means_down_and_probes_that_become_rare() {
        let mut health = Health::default();
        for at in 1..=40 {
            health.overdue(at * SECOND_NANOS / 10, at * SECOND_NANOS / 10 - 1);
        }
        assert_eq!(health.state(), State::Down);
        let mut intervals = Vec::new();
        for _ in 0..8 {
            let now = health.probe_at().unwrap_or_default();
            health.probed(now, 16 * SECOND_NANOS);
            let next = health.probe_at().unwrap_or_default();
            intervals.push((next - now) / MILLISECOND_NANOS);
        }
        assert_eq!(intervals, [500, 1000, 2000, 4000, 8000, 16_000, 16_000, 16_000]);
        health.heard(50 * SECOND_NANOS, false);
        assert_eq!(health.state(), State::Suspect);
    }

    #[test]
    fn thresholds_say_when_an_upstream_is_suspect_or_down_and_how_often_it_is_probed() {
        let thresholds = Thresholds {
            silent_max: 1,
            down_after_nanos: SECOND_NANOS,
            probe_nanos_min: 200 * MILLISECOND_NANOS,
            probe_nanos_max: SECOND_NANOS,
        };
        let mut health = Health { thresholds, ..Health::default() };
        health.overdue(SECOND_NANOS, 1);
        assert_eq!(health.state(), State::Suspect);
        assert_eq!(health.probe_at(), Some(SECOND_NANOS + 100 * MILLISECOND_NANOS));
        (0..7).for_each(|_| health.overdue(SECOND_NANOS + 1, 2));
        assert_eq!(health.state(), State::Down);
        let mut intervals = Vec::new();
        for _ in 0..4 {
            let now = health.probe_at().unwrap_or_default();
            health.probed(now, u64::MAX);
            let next = health.probe_at().unwrap_or_default();
            intervals.push((next - now) / MILLISECOND_NANOS);
        }
        assert_eq!(intervals, [200, 400, 800, 1000]);
    }

    #[test]
    fn a_suspect_that_goes_on_failing_is_probed_at_growing_intervals_until_it_answers() {
        let mut health = Health::default();
        (0..100).for_each(|at| health.heard(at, true));
        let mut interval = |failure: bool| {
            let now = health.probe_at().unwrap_or_default();
            health.heard(now, failure);
            health.probed(now, health.thresholds.probe_nanos_max);
            (health.probe_at().unwrap_or_default() - now) / MILLISECOND_NANOS
        };
        assert_eq!([true; 7].map(&mut interval), [500, 1000, 2000, 4000, 8000, 16_000, 16_000]);
        assert_eq!([false, true, true].map(interval), [100, 1000, 2000]);
        assert_eq!(health.state(), State::Suspect);
        assert!(health.is_failing());
    }

    #[test]
    fn a_certificate_that_is_not_trusted_makes_a_suspect_at_once_until_it_answers_well() {
        let mut health = Health::default();
        health.untrusted(1);
        assert_eq!((health.state(), health.trouble()), (State::Suspect, Some(Trouble::Untrusted)));
        for at in 1..100 {
            health.untrusted(at * SECOND_NANOS);
        }
        assert_eq!(health.state(), State::Suspect, "it was not silent");
        (0..5).for_each(|_| health.heard(200 * SECOND_NANOS, false));
        assert_eq!((health.state(), health.trouble()), (State::Up, None));
    }

    #[test]
    fn an_upstream_that_fails_or_loses_much_is_suspect_and_says_so() {
        let mut failing = Health::default();
        let mut lossy = Health::default();
        for step in 0..100 {
            failing.heard(step, step % 4 != 0);
            if step % 2 == 0 { lossy.heard(step, false) } else { lossy.lost(step) }
        }
        assert_eq!((failing.state(), lossy.state()), (State::Suspect, State::Suspect));
        let said = failing.trouble().map(|trouble| trouble.to_string()).unwrap_or_default();
        assert!(said.ends_with("% of the answers were failures"), "{said}");
        assert!(matches!(lossy.trouble(), Some(Trouble::Lossy(30..))), "{:?}", lossy.trouble());
    }
}
