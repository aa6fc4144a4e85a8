//! One query of an exchange, and what its end says about the upstream.

use super::Form;
use crate::check::{Doubt, Failure};
use crate::outcome::{Outcome, Redirect};
use crate::pool::Pool;

/// A query that was sent for the question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    /// Moment at which the query was sent, nanoseconds.
    pub(super) sent_at: u64,
    /// Index in the pool of the queried upstream.
    pub(super) upstream: u8,
    /// Form of the query that was sent.
    pub(super) form: Form,
    /// Reason why the query was sent.
    pub(super) kind: Kind,
    /// Outcome of the query, once known.
    pub(super) outcome: Option<Outcome>,
    /// A message for the query that may be forged, and when it came.
    pub(super) doubt: Option<(u64, Doubt)>,
    /// Whether an answer is still waited for.
    pub(super) waits: bool,
    /// Whether the budget paid for the query.
    pub(super) paid: bool,
    /// Whether the query was counted as overdue.
    pub(super) overdue: bool,
}

impl Attempt {
    /// Makes an attempt that waits for its answer.
    pub(super) fn new(sent_at: u64, upstream: u8, (form, kind): (Form, Kind)) -> Self {
        let (outcome, doubt) = (None, None);
        let (waits, paid, overdue) = (true, false, false);
        Self { sent_at, upstream, form, kind, outcome, doubt, waits, paid, overdue }
    }

    /// Whether silence counts against the upstream. Over TCP, instead of UDP, it may be a
    /// firewall's.
    pub(super) fn tells_health(&self) -> bool {
        !self.form.over_tcp
    }
}

/// Why a query was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The question came, an upstream failed, or needed another form of the query.
    Needed,
    /// Another upstream was slow, or the round-trip time of this one was to be learnt.
    Hedge,
    /// The query before was overdue.
    Repeat,
}

/// Records what an outcome says about its upstream.
pub(super) fn learn(pool: &mut Pool, now: u64, ended: &Attempt, outcome: Outcome, settled: bool) {
    let member = &mut pool.members[usize::from(ended.upstream)];
    member.outstanding -= 1;
    if outcome == Outcome::PortClosed {
        member.counters.abandoned += 1;
        return; // it may have been answered in a moment
    }
    if outcome != Outcome::Unreachable {
        pool.budget.ended(false);
    }
    if outcome == Outcome::Unreachable {
        member.counters.failed += 1;
        if ended.tells_health() {
            member.health.unreachable(now, ended.sent_at);
        }
        return;
    }
    if outcome == Outcome::Redirected(Redirect::FromAnotherPort) {
        member.counters.redirected += 1;
        return; // no answer came from the upstream
    }
    let was_asked = !matches!(outcome, Outcome::Failed(Failure::Untrusted | Failure::Loop));
    if ended.tells_health() && was_asked {
        let heard_at = ended.doubt.map_or(now, |(heard_at, _)| heard_at);
        member.rtt.sample(now, heard_at.saturating_sub(ended.sent_at));
    }
    match outcome {
        Outcome::Failed(Failure::Untrusted) => member.health.untrusted(now),
        Outcome::Failed(_) => member.health.heard(now, true),
        _ => member.health.heard(now, false),
    }
    let counters = &mut member.counters;
    match outcome {
        Outcome::Answered => {
            counters.answered += 1;
            counters.hedges_won += u64::from(!settled && ended.kind == Kind::Hedge);
            if ended.form.edns {
                member.edns.succeeded();
            }
            if ended.form.mixed_case && !ended.form.over_tcp {
                member.mixed_case.succeeded(); // over TCP, the caller sees whether it was kept
            }
        }
        Outcome::Redirected(redirect) => {
            counters.redirected += 1;
            match redirect {
                Redirect::ToTcp => counters.truncated += 1,
                Redirect::WithoutEdns => counters.edns_failed += 1,
                Redirect::WithoutCookie => member.cookies.missed_anywhere(now),
                Redirect::WithoutMixedCase | Redirect::WithCookie | Redirect::FromAnotherPort => {}
            }
        }
        Outcome::Failed(_) | Outcome::Unreachable | Outcome::PortClosed => counters.failed += 1,
    }
}
