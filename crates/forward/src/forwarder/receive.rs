//! What a forwarder thread makes of messages from upstreams.
//!
//! What the network says of queries (ICMP) is counted and has no effect: an attacker can forge it
//! that guesses a port, and would learn that the guess was right if it changed when a query is
//! repeated or answered, let alone whether. An upstream that does not listen is found as one that
//! is silent.
//!
//! Deliberately absent: which upstream to ask next, which [`Exchange`](zonda_upstream::Exchange)
//! decides.

use std::io;

use zonda_cache::{DENIES_BELOW, Flushes, Lifetime};
use zonda_client::Fault;
use zonda_deferral::Responder;
use zonda_engine::{Now, Reason, UpstreamAnswer};
use zonda_netio::is_icmp;
use zonda_upstream::Member;
use zonda_upstream::check::{self, Doubt, Failure, Repeat, Verdict, check};
use zonda_upstream::exchange::{Form, Outcome, Redirect};
use zonda_upstream::query::sent;
use zonda_wire::query::flag;
use zonda_wire::{Ede, Response};

use super::Forwarder;
use crate::body::Body;
use crate::cause::{Attempt, Cause, FetchId};
use crate::fetch_key::FetchKey;
use crate::group::Group;

use crate::ports::WaitingQuery;
use crate::stream::{StreamAnswer, outcome};

/// Calls by which a port is read before other ports have their turn: some 250 messages.
const RECEIVE_CALLS_MAX: usize = 8;

impl<R: Responder> Forwarder<R> {
    /// Reads what a port has received, but not all at once if it is more than an honest upstream
    /// sends: the other ports wait. The kernel reports a port with messages left again.
    pub(super) fn receive(&mut self, number: usize, now: Now) {
        let serial = self.outbound.wires.ports().serial(number);
        let (mut has_more, mut calls) = (true, 0);
        // Once the last answer has come, the port is another's.
        while has_more
            && calls < RECEIVE_CALLS_MAX
            && self.outbound.wires.ports().serial(number) == serial
        {
            calls += 1;
            has_more = match self.outbound.wires.ports().receive(number) {
                Ok(has_more) => has_more,
                Err(error) if is_icmp(&error) => {
                    self.counters.icmp_errors.add(1);
                    true
                }
                Err(error) => return self.leave_broken(number, &error),
            };
            let mut message = std::mem::take(&mut self.outbound.message);
            for place in 0.. {
                let ports = self.outbound.wires.ports();
                let is_same = ports.serial(number) == serial;
                let Some(received) = ports.received(place).filter(|_| is_same) else { break };
                message.clear();
                message.extend_from_slice(received);
                self.read(number, &mut message, now);
            }
            self.outbound.message = message;
        }
    }

    /// Closes a port on which the system receives nothing, which says nothing of the upstream: what
    /// waits there is repeated.
    #[cold]
    fn leave_broken(&mut self, number: usize, error: &io::Error) {
        self.counters.receive_errors.add(1);
        if !self.outbound.receive_faults.is_spent() {
            let upstream =
                self.outbound.wires.ports().upstream(number).map(tracing::field::display);
            tracing::error!(upstream, %error, "cannot receive from an upstream; port closed");
        }
        self.outbound.wires.ports().close_broken(number);
    }

    /// Takes a message that came to a port.
    fn read(&mut self, number: usize, message: &mut [u8], now: Now) {
        let serial = self.outbound.wires.ports().serial(number);
        let id = message.first_chunk().map(|id| u16::from_be_bytes(*id));
        let lent = id.and_then(|id| Some((id, self.outbound.wires.ports().lend(number, id)?)));
        if let Some((id, lent)) = lent {
            let (form, query) = (lent.form, &lent.query);
            let is_believed = match lent.cause {
                Cause::Fetch(attempt) => self.receive_answer(attempt, form, query, message, now),
                Cause::Probe(probe) => self.receive_probe(probe, form, query, message, now),
                Cause::Check(probe) => self.receive_check(probe, form, query, message),
            };
            if is_believed {
                return self.outbound.wires.ports().settle(number, id, lent);
            }
            self.outbound.wires.ports().wait_on(number, id, lent); // the right one may still come
        }
        self.counters.ignored.add(1);
        if serial.is_some_and(|serial| self.outbound.wires.ports().miss(number, serial)) {
            self.leave_port(number, now);
        }
    }

    /// Closes a port that a forger may know, and asks over TCP what waits there. Probes are sent
    /// again in any case.
    fn leave_port(&mut self, number: usize, now: Now) {
        self.counters.forgery_suspected.add(1);
        for cause in self.outbound.wires.ports().give_up(number) {
            let upstream = match cause {
                Cause::Fetch(attempt) => {
                    let fetch = self.queries.fetches.get(attempt.fetch);
                    fetch.map(|fetch| (fetch.key.group, usize::from(attempt.upstream)))
                }
                Cause::Probe(probe) | Cause::Check(probe) => Some((probe.group, probe.upstream)),
            };
            if let Some((group, place)) = upstream
                && let Some(known) = self.outbound.upstreams.get(group)
            {
                known.log_forgery(place, now.monotonic_nanos);
            }
            if let Cause::Fetch(attempt) = cause {
                self.doubt(attempt, Doubt::Forged, now);
            }
        }
    }

    /// Has queries repeated whose ports were closed although nothing came for them. Probes are sent
    /// again in any case.
    pub(super) fn repeat_closed(&mut self, now: Now) {
        for cause in self.outbound.wires.ports().take_closed() {
            if let Cause::Fetch(attempt) = cause {
                self.conclude(attempt, Outcome::PortClosed, now);
            }
        }
    }

    /// Takes what came over a connection. What has not come in time is lost.
    pub(super) fn receive_stream(&mut self, answer: StreamAnswer, now: Now) {
        let StreamAnswer { waiting: WaitingQuery { cause, form, query }, message } = answer;
        match cause {
            Cause::Fetch(attempt) => {
                let outcome = match message {
                    Some(Ok(mut message)) => {
                        if self.receive_answer(attempt, form, &query, &mut message, now) {
                            return;
                        }
                        Outcome::Failed(Failure::Malformed) // the connection gives one answer only
                    }
                    Some(Err(fault)) => outcome(&fault),
                    None => return,
                };
                self.conclude(attempt, outcome, now);
            }
            Cause::Probe(probe) => {
                if let Some(Err(Fault::Certificate(_))) = message {
                    return self.probe_untrusted(probe, now);
                }
                let is_answered = matches!(message, Some(Ok(message))
                    if self.receive_probe(probe, form, &query, &message, now));
                if !is_answered {
                    self.probe_ended(probe, None, now);
                }
            }
            Cause::Check(probe) => {
                if let Some(Ok(message)) = message {
                    self.receive_check(probe, form, &query, &message);
                }
            }
        }
    }

    /// Ends a query without an answer, and does what follows.
    pub(super) fn conclude(&mut self, attempt: Attempt, outcome: Outcome, now: Now) {
        let mut actions = Vec::new();
        self.on_outcome(attempt, outcome, now, &mut actions);
        self.perform(attempt.fetch, actions, now);
    }

    /// Takes a message for a query of a fetch; false if it is none, or not believed.
    pub(super) fn receive_answer(
        &mut self,
        attempt: Attempt,
        form: Form,
        query: &[u8],
        message: &mut [u8],
        now: Now,
    ) -> bool {
        let Some(fetch) = self.queries.fetches.get(attempt.fetch) else { return true };
        let Some(known) = self.outbound.upstreams.get_mut(fetch.key.group) else { return true };
        if !fetch.exchange.waits_for(attempt.index) {
            return true; // it was given up before
        }
        let place = usize::from(attempt.upstream);
        let member = &mut known.pool.members[place];
        let sent = sent(query, form, form.over_tcp || member.stream);
        let mut body = None;
        let outcome = match check(&sent, message) {
            Verdict::Ignore(_) => return false,
            Verdict::Doubt(doubt) => {
                self.doubt(attempt, doubt, now);
                return false;
            }
            Verdict::Repeat(repeat) => Outcome::Redirected(match repeat {
                Repeat::OverTcp => Redirect::ToTcp,
                Repeat::WithoutEdns => Redirect::WithoutEdns,
                Repeat::WithCookie(cookie) => {
                    member.cookies.insist(sent.cookie, cookie);
                    Redirect::WithCookie
                }
            }),
            Verdict::Failed(failure) => Outcome::Failed(failure),
            Verdict::Accept(response) => {
                learn(member, &sent, form, &response, message, now);
                let is_confirmed = check::is_confirmed(&sent, &response);
                let snapshot = self.config.snapshot.load();
                let zones = &snapshot.at(known.group.listener).zones;
                match self.outbound.reader.read(&fetch.key, &known.group, zones, message) {
                    Ok(mut read) => {
                        read.is_authentic &= known.group.servers[place].is_trusted;
                        read.is_confirmed = is_confirmed;
                        if fetch.key.dnssec_ok && !form.edns {
                            read.term = None; // signatures may be there, but were not asked for
                        }
                        body = Some(read);
                        Outcome::Answered
                    }
                    Err(unfit) => Outcome::Failed(Failure::Unfit(unfit)),
                }
            }
        };
        match (&body, outcome) {
            (Some(body), _) => {
                known.count_rcode(place, body.rcode);
                let FetchKey { name, qtype, .. } = &fetch.key;
                known.answered(place, name, *qtype, now.monotonic_nanos);
            }
            (None, Outcome::Failed(Failure::Rcode(rcode))) => known.count_rcode(place, rcode),
            (None, _) => {}
        }
        let late = fetch.exchange.is_settled();
        let mut actions = std::mem::take(&mut self.outbound.actions);
        self.on_outcome(attempt, outcome, now, &mut actions);
        if let Some(body) = body {
            if !late {
                self.accept(attempt.fetch, &body, now);
            }
            self.outbound.reader.take_back(body.octets);
        }
        self.perform(attempt.fetch, actions, now);
        true
    }

    /// Goes on waiting for a better message to a query, and asks over TCP.
    fn doubt(&mut self, attempt: Attempt, doubt: Doubt, now: Now) {
        let Some(fetch) = self.queries.fetches.get(attempt.fetch) else { return };
        let Some(known) = self.outbound.upstreams.get_mut(fetch.key.group) else { return };
        let (at, mut actions) = (now.monotonic_nanos, Vec::new());
        fetch.exchange.on_doubt(&mut known.pool, at, attempt.index, doubt, &mut actions);
        self.perform(attempt.fetch, actions, now);
    }

    /// Caches an answer and gives it to all queries that wait.
    fn accept(&mut self, id: FetchId, body: &Body, now: Now) {
        let Some(fetch) = self.queries.fetches.get(id) else { return };
        if let Some(known) = self.outbound.upstreams.get(fetch.key.group) {
            let key = fetch.key.cache_key(fetch.name_hash);
            keep(&known.group, fetch.asked, &key, body, now);
        }
        self.counters.answered.add(1);
        let name = std::mem::take(&mut fetch.key.name); // lent
        let waiters = self.queries.fetches.settle(id);
        let fetched = UpstreamAnswer {
            name: &name,
            rcode: body.rcode,
            is_authentic: body.is_authentic,
            counts: body.counts,
            body: &body.octets,
            goes_on: body.onward.is_some(),
            reason: if body.is_blocked { Reason::Blocked } else { Reason::Forwarded },
            text: b"",
        };
        self.answer(waiters, &fetched, now);
        if let Some(fetch) = self.queries.fetches.get(id) {
            fetch.key.name = name;
        }
    }
}

/// Remembers what an answer tells of its upstream beside what was asked for.
fn learn(
    member: &mut Member,
    sent: &check::SentQuery<'_>,
    form: Form,
    response: &Response<'_>,
    message: &[u8],
    now: Now,
) {
    let at = now.monotonic_nanos;
    match check::server_cookie(response) {
        Some(cookie) => member.cookies.remember(sent.cookie, cookie, at),
        None if sent.expects_cookie => member.cookies.missed(sent.cookie, at),
        None => {}
    }
    if form.over_tcp && form.mixed_case {
        match check::keeps_case(sent, message) {
            true => member.mixed_case.succeeded(),
            false => member.mixed_case.failed(at),
        }
    }
}

/// Keeps an answer for as long as the policy says.
fn keep(group: &Group, asked: Flushes, key: &zonda_cache::Key<'_>, body: &Body, now: Now) {
    let Some(term) = body.term else { return };
    let answer = zonda_cache::Answer {
        kind: body.kind,
        flags: flags(body),
        onward: body.onward,
        ede: body.is_blocked.then_some(Ede::BLOCKED),
        counts: body.counts,
        body: &body.octets,
    };
    let lifetime = Lifetime {
        now_secs: now.monotonic_secs_nearest(),
        ttl_secs: term.ttl_secs,
        stale_secs: group.policy.stale_secs,
    };
    // What is too large for the cache is fetched each time; what may be older than a flush, too.
    let _ = group.cache.insert_since(asked, key, &answer, lifetime);
}

/// The bits with which an answer is kept.
fn flags(body: &Body) -> u16 {
    let authentic = if body.is_authentic { flag::AD } else { 0 };
    let below = if body.is_confirmed { DENIES_BELOW } else { 0 };
    body.rcode.0 | authentic | below
}
