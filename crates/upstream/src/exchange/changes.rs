//! What upstreams stumbled over, so that they are asked otherwise than at first; and what is done
//! about messages that may be forged.

use super::attempt::{Attempt, Kind};
use super::{ATTEMPTS_MAX, Action, Exchange, Form};
use crate::check::Doubt;
use crate::outcome::{Outcome, Redirect};
use crate::pool::{Member, Pool, Set};

/// Upstreams that are queried in another form than at first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Changes {
    /// Upstreams queried over TCP instead of UDP.
    over_tcp: Set,
    /// Upstreams queried over TCP to check a doubted message.
    confirming: Set,
    /// Upstreams whose doubted message is accepted, as TCP failed.
    believed: Set,
    /// Upstreams queried without an OPT record.
    without_edns: Set,
    /// Upstreams queried with the name in lower case.
    without_mixed_case: Set,
    /// Upstreams queried with a server cookie, which is tried once.
    with_cookie: Set,
}

impl Changes {
    /// Returns the form of the next query to an upstream.
    pub(super) fn form(&self, upstream: usize, member: &Member, now: u64) -> Form {
        let confirms = self.confirming.contains(upstream) && !self.believed.contains(upstream);
        let over_tcp = (confirms || self.over_tcp.contains(upstream)) && !member.stream;
        let has_case =
            member.mixed_case.is_enabled(now) && !self.without_mixed_case.contains(upstream);
        let is_over_udp = !over_tcp && !member.stream;
        Form {
            over_tcp,
            edns: member.edns.is_enabled(now) && !self.without_edns.contains(upstream),
            mixed_case: has_case && (is_over_udp || confirms && over_tcp),
        }
    }

    /// Applies how an upstream, one of streams perhaps, wants to be queried; false if the query had
    /// that form already.
    pub(super) fn take(&mut self, redirect: Redirect, ended: &Attempt, stream: bool) -> bool {
        let (upstream, form) = (usize::from(ended.upstream), ended.form);
        let redirect = match redirect {
            Redirect::WithCookie if self.with_cookie.contains(upstream) => Redirect::ToTcp,
            other => other, // rfc7873#5.3
        };
        let (set, is_new) = match redirect {
            Redirect::ToTcp => (&mut self.over_tcp, !form.over_tcp && !stream),
            Redirect::WithoutEdns => (&mut self.without_edns, form.edns),
            Redirect::WithoutMixedCase => (&mut self.without_mixed_case, form.mixed_case),
            Redirect::WithCookie => (&mut self.with_cookie, true),
            Redirect::WithoutCookie => return true, // it was forgotten
            Redirect::FromAnotherPort => return true, // each query has one
        };
        set.insert(upstream);
        is_new
    }
}

impl Exchange {
    /// Handles a message for an attempt that may be forged: the attempt waits for a better one, and
    /// the upstream is queried over TCP, once.
    pub fn on_doubt(
        &mut self,
        pool: &mut Pool,
        now: u64,
        attempt: u8,
        doubt: Doubt,
        actions: &mut Vec<Action>,
    ) {
        let attempts = &mut self.attempts[..usize::from(self.count)];
        let doubted = attempts.get_mut(usize::from(attempt));
        let Some(doubted) = doubted.filter(|it| it.waits && it.doubt.is_none()) else { return };
        doubted.doubt = Some((now, doubt));
        let upstream = usize::from(doubted.upstream);
        let is_done = self.is_settled() || self.changes.confirming.contains(upstream);
        if !is_done && usize::from(self.count) < ATTEMPTS_MAX {
            self.changes.confirming.insert(upstream);
            self.send(pool, now, upstream, Kind::Needed, false, actions);
        }
    }

    /// Accepts what was doubted of an upstream, or of all, as TCP failed. Returns whether there was
    /// anything.
    pub(super) fn believe(
        &mut self,
        pool: &mut Pool,
        now: u64,
        (upstream, random): (Option<u8>, u64),
        actions: &mut Vec<Action>,
    ) -> bool {
        let mut believes = false;
        for attempt in 0..self.count {
            let Attempt { doubt, form, waits, upstream: of, .. } =
                self.attempts[usize::from(attempt)];
            if let Some((_, doubt)) = doubt.filter(|_| waits && upstream.is_none_or(|it| it == of))
            {
                believes = true;
                self.changes.believed.insert(usize::from(of));
                let outcome = Outcome::of(doubt, form.edns);
                self.conclude(pool, now, (attempt, outcome), random, actions);
            }
        }
        believes
    }

    /// Records that an upstream has answered what was changed for it: it cannot handle that.
    pub(super) fn learn_changes(&self, pool: &mut Pool, now: u64, ended: &Attempt) {
        let upstream = usize::from(ended.upstream);
        let member = &mut pool.members[upstream];
        if self.changes.without_edns.contains(upstream) && !ended.form.edns {
            member.edns.failed(now);
        }
        if self.changes.without_mixed_case.contains(upstream) && !ended.form.mixed_case {
            member.mixed_case.failed(now);
        }
    }
}
