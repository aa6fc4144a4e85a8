//! What the log says of upstreams: that one is not relied on any more, and why, and that it is
//! back.
//!
//! Each thread judges upstreams for itself; here they find out together what is news, so that the
//! log has one line for all of them. An upstream that comes and goes has its say once a minute.
//!
//! Deliberately absent: what becomes of single queries, which metrics count.

use std::sync::{Mutex, PoisonError};

use zonda_upstream::health::State;

/// How long nothing is said of an upstream that is in trouble again, nanoseconds.
const QUIET_NANOS: u64 = 60_000_000_000;

/// The states of a group's upstreams that the log has reported; all threads share it.
pub struct StateLog {
    /// The state of each upstream, by its place. Locked when a state changes and after probes, not
    /// for queries.
    upstreams: Box<[Mutex<Notice>]>,
}

/// The state of an upstream, and what the log has said of it.
#[derive(Debug)]
struct Notice {
    /// Number of threads for which the upstream is suspect.
    suspect: u32,
    /// Number of threads for which the upstream is down.
    down: u32,
    /// The state that the log has reported last.
    told: SeenState,
    /// When the log last said that it was up no more; nanoseconds of the monotonic clock.
    told_at: Option<u64>,
    /// When the log last said that answers of it may be forged; nanoseconds of that clock.
    forgery_told_at: Option<u64>,
}

/// The part of a state that the log reports when it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeenState {
    /// The state of health.
    pub(crate) state: State,
    /// The certificate of the upstream is not trusted.
    pub(crate) is_untrusted: bool,
}

impl SeenState {
    /// How upstreams are at first.
    pub(crate) const UP: Self = Self { state: State::Up, is_untrusted: false };
}

/// A change of state that the log is to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The upstream is in this state now.
    Worse(State),
    /// The upstream is up again.
    Back,
}

impl StateLog {
    /// A log for `upstreams` upstreams, which are up.
    #[must_use]
    pub fn new(upstreams: usize) -> Self {
        let (told_at, forgery_told_at) = (None, None);
        let notice = Notice { suspect: 0, down: 0, told: SeenState::UP, told_at, forgery_told_at };
        let state_log = (0..upstreams).map(|_| Mutex::new(Notice { ..notice }));
        Self { upstreams: state_log.collect() }
    }

    /// A thread that saw the upstream at a place as `from` sees it as `to`; what is news.
    pub(crate) fn note(
        &self,
        place: usize,
        from: SeenState,
        to: SeenState,
        now: u64,
    ) -> Option<News> {
        let mut notice = self.upstreams.get(place)?.lock().unwrap_or_else(PoisonError::into_inner);
        notice.count(from.state, |threads| threads.saturating_sub(1));
        notice.count(to.state, |threads| threads + 1);
        let told = notice.told;
        let state = match *notice {
            Notice { suspect: 0, down: 0, .. } => State::Up,
            Notice { down: 0, .. } => State::Suspect,
            _ => State::Down,
        };
        if state == State::Up {
            notice.told = SeenState::UP;
            return (told != SeenState::UP).then_some(News::Back);
        }
        let is_new = told.state == State::Up;
        let is_worse = is_new || told.state == State::Suspect && state == State::Down;
        let is_quiet = notice.told_at.is_some_and(|at| now.saturating_sub(at) < QUIET_NANOS);
        let is_distrust = to.is_untrusted && !told.is_untrusted;
        // A thread that sees it up knows no reason; the other threads report it after their next
        // probe.
        let knows_why = to.state != State::Up;
        if !(knows_why && (is_worse || is_distrust)) || is_new && is_quiet {
            return None;
        }
        if is_new {
            notice.told_at = Some(now);
        }
        notice.told = SeenState { state, is_untrusted: told.is_untrusted || to.is_untrusted };
        Some(News::Worse(state))
    }

    /// A thread has closed a port to the upstream at a place, since a forger may know it; whether
    /// that is news, which it is once a minute.
    pub(crate) fn note_forgery(&self, place: usize, now: u64) -> bool {
        let Some(notice) = self.upstreams.get(place) else { return false };
        let mut notice = notice.lock().unwrap_or_else(PoisonError::into_inner);
        let told_at = notice.forgery_told_at;
        let is_news = told_at.is_none_or(|at| now.saturating_sub(at) >= QUIET_NANOS);
        if is_news {
            notice.forgery_told_at = Some(now);
        }
        is_news
    }
}

impl Notice {
    /// Changes how many threads see it in a state.
    fn count(&mut self, state: State, change: impl FnOnce(u32) -> u32) {
        match state {
            State::Up => {}
            State::Suspect => self.suspect = change(self.suspect),
            State::Down => self.down = change(self.down),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUSPECT: SeenState = SeenState { state: State::Suspect, is_untrusted: false };
    const DOWN: SeenState = SeenState { state: State::Down, is_untrusted: false };
    const UNTRUSTED: SeenState = SeenState { state: State::Suspect, is_untrusted: true };
    const UP: SeenState = SeenState::UP;

    #[test]
    fn threads_that_see_the_same_are_told_of_once() {
        let state_log = StateLog::new(2);
        assert_eq!(state_log.note(1, UP, SUSPECT, 1), Some(News::Worse(State::Suspect)));
        assert_eq!(state_log.note(1, UP, SUSPECT, 2), None, "another thread");
        assert_eq!(state_log.note(1, SUSPECT, DOWN, 3), Some(News::Worse(State::Down)));
        assert_eq!(state_log.note(1, SUSPECT, DOWN, 4), None);
        assert_eq!(state_log.note(1, DOWN, SUSPECT, 5), None, "better is no news");
        assert_eq!(state_log.note(1, SUSPECT, DOWN, 6), None, "nor is the same once more");
        assert_eq!(state_log.note(1, DOWN, UP, 7), None, "one thread does not see it up yet");
        assert_eq!(state_log.note(1, DOWN, UP, 8), Some(News::Back));
        assert_eq!(state_log.note(0, UP, DOWN, 9), Some(News::Worse(State::Down)), "another");
    }

    #[test]
    fn one_that_comes_and_goes_is_told_of_once_a_minute() {
        let state_log = StateLog::new(1);
        let mut news = Vec::new();
        for second in 0..600 {
            let now = second * 1_000_000_000;
            news.extend(state_log.note(0, UP, SUSPECT, now));
            news.extend(state_log.note(0, SUSPECT, UP, now + 1));
        }
        assert_eq!(news, [News::Worse(State::Suspect), News::Back].repeat(10));
        assert_eq!(state_log.note(0, UP, SUSPECT, QUIET_NANOS * 9 + 5), None);
        let later = state_log.note(0, SUSPECT, SUSPECT, QUIET_NANOS * 11);
        assert_eq!(later, Some(News::Worse(State::Suspect)), "what stays is told of later");
    }

    #[test]
    fn forgery_is_told_of_once_a_minute_for_each_upstream() {
        let state_log = StateLog::new(2);
        assert!(state_log.note_forgery(0, 5) && state_log.note_forgery(1, 6));
        assert!(!state_log.note_forgery(0, 7) && !state_log.note_forgery(0, QUIET_NANOS + 4));
        assert!(state_log.note_forgery(0, QUIET_NANOS + 5));
        assert!(!state_log.note_forgery(2, 5), "there is none");
    }

    #[test]
    fn a_thread_that_sees_it_up_does_not_tell_of_the_trouble_of_another() {
        let state_log = StateLog::new(1);
        assert_eq!(state_log.note(0, UP, SUSPECT, 1), Some(News::Worse(State::Suspect)));
        assert_eq!(state_log.note(0, SUSPECT, UP, 2), Some(News::Back));
        assert_eq!(state_log.note(0, UP, SUSPECT, 3), None, "one thread, too soon");
        assert_eq!(state_log.note(0, UP, SUSPECT, 3), None, "and another");
        assert_eq!(state_log.note(0, SUSPECT, UP, QUIET_NANOS * 2), None, "it knows no reason");
        let later = state_log.note(0, SUSPECT, SUSPECT, QUIET_NANOS * 2);
        assert_eq!(later, Some(News::Worse(State::Suspect)));
    }

    #[test]
    fn a_certificate_that_is_not_trusted_is_news_of_what_is_suspect_already() {
        let state_log = StateLog::new(1);
        assert_eq!(state_log.note(0, UP, SUSPECT, 1), Some(News::Worse(State::Suspect)));
        assert_eq!(state_log.note(0, SUSPECT, UNTRUSTED, 2), Some(News::Worse(State::Suspect)));
        assert_eq!(state_log.note(0, UNTRUSTED, SUSPECT, 3), None);
        assert_eq!(state_log.note(0, SUSPECT, UNTRUSTED, 4), None, "that was told");
    }
}
