//! The life of one question: which upstreams are queried, when again, and what the client gets
//! meanwhile.
//!
//! | at | what happens |
//! |---|---|
//! | 0 | one upstream is asked; perhaps another one gets a copy, to learn its time |
//! | its p95 | a second one is asked, too (a hedge), if the budget has it |
//! | overdue | the query is repeated, elsewhere if possible, if the budget has it |
//! | 150 ms, or later | it is repeated in any case |
//! | 1.8 s | [`Action::ServeStale`] |
//! | 5 s | [`Action::Fail`]: the client gets SERVFAIL, the fetch goes on |
//! | 10 s | the end |
//!
//! Overdue is what takes longer than the smoothed time and four times its variance, 20 ms at least.
//! These times, and the budget, are the defaults of the pool's [`Settings`](crate::Settings).
//!
//! A failure (SERVFAIL, REFUSED, a lame or malformed answer, an error of the network) makes the
//! exchange ask another upstream at once, as long as there is one that was not asked. When all
//! failed, so has the question, even if an earlier query to one of them was lost; repeats go to
//! those that have not failed, and while one of them may still answer, it is waited for. But what
//! the network could not deliver is repeated like what was lost, as servers restart, and clients
//! get what is stale meanwhile. Where a connection could not be had, that is after 50 ms, then
//! after half as long again each time. So is a query repeated whose port had to be closed for newer
//! ones ([`Outcome::PortClosed`]), elsewhere if possible; it says nothing about the upstream. An
//! upstream that truncates its answers and cannot be reached over TCP twice has failed.
//!
//! What an upstream could not handle (truncation, EDNS, mixed case, a cookie) is changed for the
//! rest of the exchange, and the query repeated there; queries to other upstreams stay as they are.
//! The time until a repeat to the same upstream doubles each time, or each second time while the
//! pool loses much, and there are at most [`ATTEMPTS_MAX`] queries in all. Of upstreams that are
//! alike healthy, the one that was asked least often gets the repeat.
//!
//! A message that may be forged ([`Exchange::on_doubt`]) is not accepted at once: a better one is
//! waited for, and the upstream is queried over TCP. The doubted message is accepted when TCP
//! cannot be had, or brings nothing in time: some old servers lack it. Where the port of a query
//! may be known to a forger, no message to it is accepted: without TCP, the upstream is queried
//! from another port.
//!
//! When a question is answered, answers to queries still under way are taken for another half
//! second: whether an upstream was slow or lost the query decides how it is judged, and what the
//! budget gets back.
//!
//! # Figures
//! What clients see in `tests/simulation.rs`, where an answer takes 5–10 ms and questions come at
//! random, 1,000 a second:
//!
//! | upstreams | p50, p99, slowest | queries beside the questions |
//! |---|---|---|
//! | 1, loses 0.3 % | 7.5, 10, 31 ms | 0.3 % |
//! | 1, loses 10 % | 7.8, 46, 450 ms | 11 % |
//! | 2, one loses 50 % | 7.5, 10, 210 ms | 0.7 % |
//! | 2, both lose 30 % | 8.6, 97, 770 ms | 43 % |
//! | 3, 1.5 % of the names broken, 1 % of the answers ten times as slow | 7.5, 18, 160 ms | 4.5 % |
//! | 2, one black-holed, the 2 seconds after | 7.7, 10, 40 ms | |
//!
//! Deliberately absent: ids, ports and messages. The caller knows each query by the index of its
//! attempt, sends what [`Action::Send`] says, and reports what [`check`](crate::check()) made of
//! the answer.

mod attempt;
mod changes;
#[cfg(test)]
mod tests;

use self::attempt::{Attempt, Kind, learn};
use self::changes::Changes;
use crate::MILLISECOND_NANOS;
use crate::health::State;
pub use crate::outcome::{LastQuery, Outcome, Reason, Redirect};
use crate::pool::{Pool, Set};

/// Most queries for one question: with one upstream that loses half of them, one question in
/// 2,000 stays unanswered for 5 seconds.
pub const ATTEMPTS_MAX: usize = 12;
/// An overdue query is repeated after this even when the budget is empty, nanoseconds.
const CLEARLY_OVERDUE_NANOS: u64 = 150 * MILLISECOND_NANOS;
/// Longest time between two repeats, nanoseconds.
const REPEAT_NANOS_MAX: u64 = 800 * MILLISECOND_NANOS;
/// A query over a stream is not overdue before, nanoseconds: the network repeats what it loses, and
/// there may be a connection to set up.
const STREAM_OVERDUE_NANOS_MIN: u64 = 500 * MILLISECOND_NANOS;
/// An upstream to which there is no connection, or a question whose port was closed, is asked again
/// after this, nanoseconds; half as long again each time. Not at once: where ports are too few, a
/// query that is sent again takes the port of another, which would do the same.
const RECONNECT_NANOS_MIN: u64 = 50 * MILLISECOND_NANOS;
/// Connections of an upstream of UDP that were refused, after which it has none.
const REFUSED_MAX: usize = 2;
/// How long answers to queries under way are taken after the question was answered, nanoseconds.
const LINGER_NANOS: u64 = 500 * MILLISECOND_NANOS;

/// An action that the caller has to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send the question.
    Send {
        /// Index of the attempt, under which its outcome is reported: 0 to [`ATTEMPTS_MAX`] − 1.
        attempt: u8,
        /// Index of the upstream in its pool.
        upstream: u8,
        /// Form of the query: transport, EDNS, case, cookie.
        form: Form,
    },
    /// Serve a stale answer to the clients that wait, if one is held. The fetch goes on.
    ServeStale,
    /// Answer the clients that still wait: with a stale answer, if one is cached, else with
    /// SERVFAIL. The fetch may go on.
    Fail(Reason),
}

/// How a query is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Whether a stream is used although the upstream is one of UDP.
    pub over_tcp: bool,
    /// Whether the query has an OPT record.
    pub edns: bool,
    /// Whether the case of the name is mixed at random; over a stream, which cannot be forged
    /// blindly, only to learn whether the upstream keeps it.
    pub mixed_case: bool,
}

/// The exchange of one question with upstreams.
#[derive(Clone, Debug)]
pub struct Exchange {
    started_at: u64,
    /// Hash of the question's name.
    key: u64,
    attempts: [Attempt; ATTEMPTS_MAX],
    count: u8,
    /// Upstreams that were queried.
    asked: Set,
    /// Upstreams that have failed this question.
    failed: Set,
    /// Changes to the form of queries, by upstream.
    changes: Changes,
    /// Time of the next hedge; `u64::MAX` when none is due.
    hedge_at: u64,
    /// Time at which the last query is overdue.
    overdue_at: u64,
    /// Time of the repeat even if the budget is empty.
    clearly_overdue_at: u64,
    /// Whether an overdue query was counted, though not repeated yet.
    counted: bool,
    /// The reply that the clients have got so far.
    reply_state: ReplyState,
    /// The reason why there is no answer so far.
    reason: Reason,
    /// Time at which answers are no longer taken, once the question has its answer or failed.
    ends_at: Option<u64>,
}

/// What the waiting clients have got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ReplyState {
    /// The clients wait for their first reply.
    Nothing,
    /// The clients got a stale answer, if there is one.
    Stale,
    /// The clients got a failure.
    Failure,
}

impl Exchange {
    /// Begins with a question, whose name hashes to `key`. `random` is used by the policy of that
    /// name only. Actions are appended.
    #[must_use]
    pub fn start(
        pool: &mut Pool,
        now: u64,
        key: u64,
        random: u64,
        actions: &mut Vec<Action>,
    ) -> Self {
        let form = Form { over_tcp: false, edns: true, mixed_case: true };
        let none = Attempt::new(0, 0, (form, Kind::Needed));
        let mut exchange = Self {
            started_at: now,
            key,
            attempts: [Attempt { waits: false, ..none }; ATTEMPTS_MAX],
            count: 0,
            asked: Set::default(),
            failed: Set::default(),
            changes: Changes::default(),
            hedge_at: u64::MAX,
            overdue_at: u64::MAX,
            clearly_overdue_at: u64::MAX,
            counted: false,
            reply_state: ReplyState::Nothing,
            reason: Reason::Timeout,
            ends_at: None,
        };
        let Some(chosen) = pool.choose(now, key, random, Set::default(), true) else {
            let reason = if pool.is_down() { Reason::AllDown } else { Reason::Busy };
            exchange.fail(now, reason, actions);
            return exchange;
        };
        pool.budget.earn();
        exchange.send(pool, now, chosen, Kind::Needed, false, actions);
        if let Some(p95) = pool.members[chosen].rtt.p95().filter(|_| pool.members.len() > 1) {
            exchange.hedge_at = now + p95;
        }
        if let Some(other) = pool.explore(now, chosen) {
            exchange.send(pool, now, other, Kind::Hedge, true, actions);
        }
        exchange
    }

    /// Returns when [`on_timer`](Self::on_timer) must be called next; `None` when the exchange is
    /// over and can be dropped.
    #[must_use]
    pub fn timer(&self, pool: &Pool) -> Option<u64> {
        if let Some(ends_at) = self.ends_at {
            return self.waiting().next().map(|_| ends_at);
        }
        let reply_at = match self.reply_state {
            ReplyState::Nothing => pool.settings.stale_nanos,
            ReplyState::Stale => pool.settings.patience_nanos,
            ReplyState::Failure => pool.settings.fetch_nanos,
        };
        let repeat_at = if self.counted { self.clearly_overdue_at } else { self.overdue_at };
        Some(repeat_at.min(self.hedge_at).min(self.started_at + reply_at))
    }

    /// Does what is due. Answers that have arrived must be reported before, lest they count as
    /// overdue.
    pub fn on_timer(&mut self, pool: &mut Pool, now: u64, random: u64, actions: &mut Vec<Action>) {
        if let Some(ends_at) = self.ends_at {
            if now >= ends_at {
                self.close(pool, now);
            }
            return;
        }
        let (settings, waited) = (pool.settings, now.saturating_sub(self.started_at));
        if waited >= settings.fetch_nanos {
            self.ends_at = Some(now);
            self.close(pool, now);
            return;
        }
        if waited >= settings.stale_nanos {
            self.reply(ReplyState::Stale, actions);
        }
        if waited >= settings.patience_nanos {
            self.reply(ReplyState::Failure, actions);
        }
        if now >= self.overdue_at {
            if !self.believe(pool, now, (None, random), actions) {
                self.repeat(pool, now, random, actions);
            }
        } else if now >= self.hedge_at {
            self.hedge(pool, now, random, actions);
        }
    }

    /// Records the outcome of an attempt; attempts that ended already are passed over. After
    /// [`Outcome::Answered`] the caller has its answer, unless [`is_settled`](Self::is_settled) was
    /// true before.
    pub fn on_outcome(
        &mut self,
        pool: &mut Pool,
        now: u64,
        attempt: u8,
        outcome: Outcome,
        random: u64,
        actions: &mut Vec<Action>,
    ) {
        if let Some(ended) = self.attempts.get_mut(usize::from(attempt)) {
            if outcome == Outcome::PortClosed && ended.doubt.is_some() {
                return; // the doubted message may yet be accepted
            }
            ended.doubt = None; // a better message has come
        }
        self.conclude(pool, now, (attempt, outcome), random, actions);
    }

    /// Ends an attempt and does what follows.
    fn conclude(
        &mut self,
        pool: &mut Pool,
        now: u64,
        (attempt, outcome): (u8, Outcome),
        random: u64,
        actions: &mut Vec<Action>,
    ) {
        let Some(ended) = self.attempts[..usize::from(self.count)].get_mut(usize::from(attempt))
        else {
            return;
        };
        if !std::mem::replace(&mut ended.waits, false) {
            return;
        }
        ended.outcome = Some(outcome);
        let ended = *ended;
        let settled = self.is_settled();
        learn(pool, now, &ended, outcome, settled);
        if settled {
            return;
        }
        match outcome {
            Outcome::Answered => {
                self.learn_changes(pool, now, &ended);
                self.ends_at = Some(now + LINGER_NANOS);
            }
            Outcome::Redirected(redirect) => {
                if !self.redirect(pool, now, &ended, redirect, actions) {
                    self.failed.insert(usize::from(ended.upstream));
                    self.ask_another(pool, now, random, Reason::Timeout, actions);
                }
            }
            Outcome::Failed(failure) => {
                self.failed.insert(usize::from(ended.upstream));
                self.ask_another(pool, now, random, Reason::Failed(failure), actions);
            }
            Outcome::Unreachable => {
                let of = Some(ended.upstream);
                if ended.form.over_tcp && self.believe(pool, now, (of, random), actions) {
                    return;
                }
                let upstream = usize::from(ended.upstream);
                let is_stream = ended.form.over_tcp || pool.members[upstream].stream;
                let refused = self.refused(ended.upstream);
                if ended.form.over_tcp && refused >= REFUSED_MAX {
                    self.failed.insert(upstream);
                }
                self.ask_another(pool, now, random, Reason::Unreachable, actions);
                if is_stream {
                    self.repeat_soon(now, refused);
                }
            }
            Outcome::PortClosed => self.repeat_soon(now, self.closed().count()),
        }
    }

    /// Whether an attempt waits for an answer.
    #[must_use]
    pub fn waits_for(&self, attempt: u8) -> bool {
        self.attempts[..usize::from(self.count)]
            .get(usize::from(attempt))
            .is_some_and(|attempt| attempt.waits)
    }

    /// Returns the attempts that wait for an answer, and the upstreams of each.
    pub fn waiting_attempts(&self) -> impl Iterator<Item = (u8, u8)> {
        let numbered = (0..).zip(&self.attempts[..usize::from(self.count)]);
        let waiting = numbered.filter(|(_, attempt)| attempt.waits);
        waiting.map(|(index, attempt)| (index, attempt.upstream))
    }

    /// Whether the question was answered, or the fetch has ended.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.ends_at.is_some()
    }

    /// Whether an attempt repeats a query to the same upstream that was lost, as far as is known,
    /// or could not be delivered.
    #[must_use]
    pub fn repeats_lost(&self, attempt: u8) -> bool {
        let (before, now) =
            self.attempts[..usize::from(self.count)].split_at(usize::from(attempt.min(self.count)));
        let is_lost = |earlier: &Attempt| {
            matches!(earlier.outcome, None | Some(Outcome::Unreachable)) && earlier.tells_health()
        };
        now.first().is_some_and(|now| {
            let mut same = before.iter().filter(|earlier| earlier.upstream == now.upstream);
            now.kind == Kind::Repeat && same.next_back().is_some_and(is_lost)
        })
    }

    /// Returns the outcome of the last query to an upstream; `None` if none was sent.
    #[must_use]
    pub fn last(&self, upstream: usize) -> Option<LastQuery> {
        let attempts = self.attempts[..usize::from(self.count)].iter().rev();
        let mut attempts = attempts.filter(|attempt| usize::from(attempt.upstream) == upstream);
        let (last, before) = (attempts.next()?, attempts.next());
        Some(match (last.outcome, before.and_then(|before| before.outcome)) {
            (Some(outcome), _) => LastQuery::Ended(outcome),
            // It may wait for a connection still.
            (None, Some(Outcome::Unreachable)) => LastQuery::Ended(Outcome::Unreachable),
            (None, _) => LastQuery::Unanswered,
        })
    }

    /// Ends the exchange before its time, as when it is dropped to make room.
    pub fn abandon(&mut self, pool: &mut Pool) {
        self.ends_at = Some(0);
        for attempt in self.attempts[..usize::from(self.count)].iter_mut().filter(|it| it.waits) {
            attempt.waits = false;
            let member = &mut pool.members[usize::from(attempt.upstream)];
            member.outstanding -= 1;
            member.counters.abandoned += 1;
        }
    }

    /// Returns the attempts that wait.
    fn waiting(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts[..usize::from(self.count)].iter().filter(|attempt| attempt.waits)
    }

    /// Returns the attempts whose ports were closed.
    fn closed(&self) -> impl Iterator<Item = &Attempt> {
        let attempts = self.attempts[..usize::from(self.count)].iter();
        attempts.filter(|attempt| attempt.outcome == Some(Outcome::PortClosed))
    }

    /// Sends the question, if there is an attempt left.
    fn send(
        &mut self,
        pool: &mut Pool,
        now: u64,
        upstream: usize,
        kind: Kind,
        paid: bool,
        actions: &mut Vec<Action>,
    ) {
        let Some(slot) = self.attempts.get_mut(usize::from(self.count)) else { return };
        let member = &mut pool.members[upstream];
        let form = self.changes.form(upstream, member, now);
        let stream = form.over_tcp || member.stream;
        let index = upstream as u8; // a pool has at most 64
        *slot = Attempt { paid, ..Attempt::new(now, index, (form, kind)) };
        actions.push(Action::Send { attempt: self.count, upstream: index, form });
        member.outstanding += 1;
        member.counters.sent += 1;
        member.counters.hedges += u64::from(kind == Kind::Hedge);
        member.counters.repeats += u64::from(kind == Kind::Repeat);
        let overdue_min = if stream { STREAM_OVERDUE_NANOS_MIN } else { 0 };
        let least = pool.settings.repeat_nanos_min;
        let overdue_after = member.rtt.overdue_after(now, least).max(overdue_min);
        let before = self.attempts[..usize::from(self.count)].iter();
        let is_lost = |it: &&Attempt| {
            let tells = it.outcome != Some(Outcome::PortClosed);
            it.upstream == index && it.doubt.is_none() && tells
        };
        let again = before.filter(is_lost).count();
        // Losses indicate load only while they are rare.
        let again = if pool.budget.much_is_lost() { again / 2 } else { again };
        let backoff = (overdue_after << again).min(REPEAT_NANOS_MAX.max(overdue_after));
        self.overdue_at = now + backoff;
        self.clearly_overdue_at = now + backoff.max(CLEARLY_OVERDUE_NANOS);
        self.counted = false;
        self.count += 1;
        self.asked.insert(upstream);
    }

    /// Asks a second upstream because the first is slower than 19 of 20 times, if the second can be
    /// expected to answer before the first would be overdue from now on.
    fn hedge(&mut self, pool: &mut Pool, now: u64, random: u64, actions: &mut Vec<Action>) {
        self.hedge_at = u64::MAX;
        let other = pool.choose(now, self.key, random, self.asked, false);
        let time = |index: usize| pool.members[index].rtt.smoothed(now);
        let patience = self.overdue_at.saturating_sub(self.attempts[0].sent_at);
        if let Some(other) = other.filter(|&other| time(other).is_some_and(|it| it <= patience))
            && pool.budget.pay_hedge()
        {
            self.send(pool, now, other, Kind::Hedge, true, actions);
        }
    }

    /// Repeats an overdue query, or leaves it until it is clearly overdue.
    fn repeat(&mut self, pool: &mut Pool, now: u64, random: u64, actions: &mut Vec<Action>) {
        self.hedge_at = u64::MAX;
        self.counted = true;
        self.count_overdue(pool, now);
        if usize::from(self.count) == ATTEMPTS_MAX {
            (self.overdue_at, self.clearly_overdue_at) = (u64::MAX, u64::MAX);
            return;
        }
        if !pool.budget.pay_repeat() {
            if now < self.clearly_overdue_at {
                return;
            }
            pool.budget.owe();
        }
        let next = match self.failed.is_empty() {
            true => pool.choose(now, self.key, random, self.asked_most(pool), true),
            false => pool.choose(now, self.key, random, self.failed, false),
        };
        match next {
            Some(next) => self.send(pool, now, next, Kind::Repeat, true, actions),
            None if !self.failed.is_empty() && !self.may_be_answered(pool) => {
                self.fail(now, self.reason, actions);
            }
            None => {
                self.clearly_overdue_at = now + REPEAT_NANOS_MAX;
                if pool.is_down() {
                    self.reason = Reason::AllDown;
                    self.reply(ReplyState::Failure, actions);
                }
            }
        }
    }

    /// Returns the upstreams that were asked more often than another one; none if all were asked
    /// equally often.
    fn asked_most(&self, pool: &Pool) -> Set {
        let attempts = &self.attempts[..usize::from(self.count)];
        let times = |index: usize| {
            attempts.iter().filter(|attempt| usize::from(attempt.upstream) == index).count()
        };
        let asked = || (0..pool.members.len()).map(|index| (index, times(index)));
        let least = asked().map(|(_, times)| times).min().unwrap_or_default();
        let mut most = Set::default();
        asked().filter(|(_, times)| *times > least).for_each(|(index, _)| most.insert(index));
        most
    }

    /// Whether a query is under way to an upstream that has not failed and is not down.
    fn may_be_answered(&self, pool: &Pool) -> bool {
        let is_down = |index: usize| pool.members[index].health.state() == State::Down;
        let mut asked = self.waiting().map(|attempt| usize::from(attempt.upstream));
        asked.any(|index| !self.failed.contains(index) && !is_down(index))
    }

    /// Reports to the health of each upstream that an answer of it is overdue, once for each query.
    fn count_overdue(&mut self, pool: &mut Pool, now: u64) {
        let attempts = self.attempts[..usize::from(self.count)].iter_mut();
        let is_silent = |it: &&mut Attempt| it.waits && !it.overdue && it.doubt.is_none();
        for attempt in attempts.filter(is_silent).filter(|it| it.tells_health()) {
            attempt.overdue = true;
            pool.members[usize::from(attempt.upstream)].health.overdue(now, attempt.sent_at);
        }
    }

    /// Queries the same upstream in another form; false when the query had that form already.
    fn redirect(
        &mut self,
        pool: &mut Pool,
        now: u64,
        ended: &Attempt,
        redirect: Redirect,
        actions: &mut Vec<Action>,
    ) -> bool {
        let upstream = usize::from(ended.upstream);
        let is_new = self.changes.take(redirect, ended, pool.members[upstream].stream);
        let possible = is_new && usize::from(self.count) < ATTEMPTS_MAX;
        if possible {
            self.send(pool, now, upstream, Kind::Needed, false, actions);
        }
        possible
    }

    /// Asks an upstream that was not asked yet. When there is none, and no query is under way to
    /// one that has not failed, so has the question, unless the network may recover.
    fn ask_another(
        &mut self,
        pool: &mut Pool,
        now: u64,
        random: u64,
        reason: Reason,
        actions: &mut Vec<Action>,
    ) {
        self.reason = reason;
        let next = pool.choose(now, self.key, random, self.asked, false);
        if let Some(next) = next.filter(|_| usize::from(self.count) < ATTEMPTS_MAX) {
            pool.budget.owe();
            self.send(pool, now, next, Kind::Needed, false, actions);
        } else if self.waiting().any(|it| !self.failed.contains(usize::from(it.upstream))) {
            // An answer may come yet.
        } else if self.closed().any(|it| !self.failed.contains(usize::from(it.upstream))) {
            self.repeat_soon(now, 1);
        } else if reason == Reason::Unreachable && self.asked != self.failed {
            self.reply(ReplyState::Stale, actions); // the query is repeated when it is overdue
        } else {
            self.fail(now, reason, actions);
        }
    }

    /// Returns how many queries to an upstream found no connection.
    fn refused(&self, upstream: u8) -> usize {
        let attempts = self.attempts[..usize::from(self.count)].iter();
        let is_refused =
            |it: &&Attempt| it.upstream == upstream && it.outcome == Some(Outcome::Unreachable);
        attempts.filter(is_refused).count()
    }

    /// Has the question asked again soon if nothing else is waited for: no answer can come, so
    /// often already, since there was no connection, or the port was closed.
    fn repeat_soon(&mut self, now: u64, times: usize) {
        if self.is_settled() || self.waiting().next().is_some() {
            return;
        }
        let pause = (1..times).fold(RECONNECT_NANOS_MIN, |pause, _| pause + pause / 2);
        let at = now + pause.min(REPEAT_NANOS_MAX);
        (self.overdue_at, self.clearly_overdue_at) = (at, at);
        self.counted = false;
    }

    /// Ends the question without an answer.
    fn fail(&mut self, now: u64, reason: Reason, actions: &mut Vec<Action>) {
        self.ends_at = Some(now);
        self.reason = reason;
        self.reply(ReplyState::Failure, actions);
    }

    /// Has the waiting clients answered, once each.
    fn reply(&mut self, state: ReplyState, actions: &mut Vec<Action>) {
        if self.reply_state < state {
            self.reply_state = state;
            actions.push(match state {
                ReplyState::Failure => Action::Fail(self.reason),
                ReplyState::Stale | ReplyState::Nothing => Action::ServeStale,
            });
        }
    }

    /// Counts queries still under way as lost. What was paid in their place was needed.
    fn close(&mut self, pool: &mut Pool, now: u64) {
        self.count_overdue(pool, now);
        let attempts = &mut self.attempts[..usize::from(self.count)];
        let lost = attempts.iter().filter(|it| it.waits && it.doubt.is_none()).count();
        let paid = attempts.iter().filter(|attempt| attempt.paid).count();
        for attempt in attempts.iter_mut().filter(|attempt| attempt.waits) {
            attempt.waits = false;
            let member = &mut pool.members[usize::from(attempt.upstream)];
            member.outstanding -= 1;
            if attempt.doubt.is_some() {
                member.counters.redirected += 1;
                continue;
            }
            member.counters.lost += 1;
            if attempt.tells_health() {
                member.health.lost(now);
                pool.budget.ended(true);
            }
        }
        (0..lost.min(paid)).for_each(|_| pool.budget.give_back());
    }
}
