//! Questions that find whether an upstream is back, and whether what it is asked comes back here.

use std::time::Duration;

use zonda_deferral::Responder;
use zonda_engine::{ClientFacts, Now};
use zonda_upstream::Question;
use zonda_upstream::check::{Doubt, Failure, Verdict, check};
use zonda_upstream::exchange::{Form, Outcome};
use zonda_upstream::query::sent;
use zonda_wire::name::NAME_BYTES_MAX;
use zonda_wire::{Class, Type};

use super::Forwarder;
use crate::cause::{Attempt, Cause, Probe};
use crate::fetch_key::FetchKey;
use crate::loops;
use crate::stream::Patience;
use crate::timers::Timer;
use crate::wires::{Departure, Outgoing};

/// A probe that was not answered for so long is lost, nanoseconds.
const PROBE_NANOS: u64 = 1_000_000_000;
/// Time for a probe over a connection, which may have to be opened first.
const PROBE_STREAM: Duration = Duration::from_secs(3);

impl<R: Responder> Forwarder<R> {
    /// Sets a timer for the next probe to an upstream of a group, and tells the log what is new of
    /// them: those that are not up are probed.
    pub(super) fn await_probes(&mut self, group: u32, now: Now) {
        let Some(known) = self.outbound.upstreams.get_mut(group) else { return };
        known.log_changes(now.monotonic_nanos);
        let at = known.pool.probe_at();
        if at != known.probe_at {
            known.probe_at = at;
            if let Some(at) = at {
                self.timers.set(at, Timer::Probes(group));
            }
        }
    }

    /// Sends the probes that are due, if the timer of `at` is the last that was set.
    pub(super) fn send_probes(&mut self, group: u32, at: u64, now: Now) {
        let Some(known) = self.outbound.upstreams.get_mut(group) else { return };
        if known.probe_at != Some(at) {
            return;
        }
        known.probe_at = None;
        while let Some(upstream) = self
            .outbound
            .upstreams
            .get_mut(group)
            .and_then(|it| it.pool.take_probe(now.monotonic_nanos))
        {
            let probe = Probe { group, upstream, sent_at: now.monotonic_nanos };
            if !self.send_probe(probe) {
                self.probe_ended(probe, None, now);
            }
            self.send_check(probe);
        }
        self.await_probes(group, now);
    }

    /// Sends a probe; false when that is not possible.
    fn send_probe(&mut self, probe: Probe) -> bool {
        let Some(known) = self.outbound.upstreams.get(probe.group) else { return false };
        let apex = (known.group.apex.as_wire(), Type::SOA);
        let (name, qtype) = known.proof(probe.upstream).unwrap_or(apex);
        let name = name.to_vec();
        self.counters.probes.add(1);
        self.send_for(probe, Cause::Probe(probe), question(&name, qtype))
    }

    /// Asks what no client asks, to see whether it comes back; whether it can be sent or is ever
    /// answered does not matter.
    fn send_check(&mut self, probe: Probe) {
        let Some(known) = self.outbound.upstreams.get(probe.group) else { return };
        let name = self.config.forwarders.loop_questions().name(probe, known.group.apex.as_wire());
        if name.len() <= NAME_BYTES_MAX {
            self.send_for(probe, Cause::Check(probe), question(&name, Type::SOA));
        }
    }

    /// Sends a question to the upstream of a probe; false when that is not possible.
    fn send_for(&mut self, probe: Probe, cause: Cause, question: Question<'_>) -> bool {
        let Some(known) = self.outbound.upstreams.get_mut(probe.group) else { return false };
        let member = &mut known.pool.members[probe.upstream];
        let form = Form {
            over_tcp: false,
            edns: member.edns.is_enabled(probe.sent_at),
            mixed_case: !member.stream && member.mixed_case.is_enabled(probe.sent_at),
        };
        let departure = self.outbound.wires.send(Outgoing {
            server: &known.group.servers[probe.upstream],
            manner: known.group.manner,
            options: &known.group.options,
            facts: ClientFacts::NONE,
            question,
            form,
            cookies: &mut member.cookies,
            cause,
            patience: Patience { limit: PROBE_STREAM, waits_for_connection: false },
            now: probe.sent_at,
        });
        match departure {
            Departure::OverConnection => {}
            Departure::FromPort(port, id, _) => {
                let timer = Timer::ProbeOverdue(port, id, probe);
                self.timers.set(probe.sent_at + PROBE_NANOS, timer);
            }
            // The next probe follows in any case.
            Departure::WithoutPort => self.counters.without_port.add(1),
            Departure::Unreachable => return false,
        }
        true
    }

    /// Takes a message for a probe; false if it is none.
    pub(super) fn receive_probe(
        &mut self,
        probe: Probe,
        form: Form,
        query: &[u8],
        message: &[u8],
        now: Now,
    ) -> bool {
        let Some(known) = self.outbound.upstreams.get(probe.group) else { return true };
        let member = &known.pool.members[probe.upstream];
        // A silent upstream is back with any answer, unless it has answered the same before: not
        // all know the apex of what they are asked for.
        let proves = member.health.is_failing() || known.proof(probe.upstream).is_some();
        let is_failure = match check(&sent(query, form, member.stream), message) {
            Verdict::Ignore(_) => return false,
            Verdict::Failed(_) | Verdict::Doubt(Doubt::NoQuestion(_)) => proves,
            Verdict::Accept(_) | Verdict::Repeat(_) | Verdict::Doubt(_) => false,
        };
        self.probe_ended(probe, Some(is_failure), now);
        true
    }

    /// Waits no longer for the answer to a probe.
    pub(super) fn probe_overdue(&mut self, port: usize, id: u16, probe: Probe, now: Now) {
        let waits = self.outbound.wires.ports().waiting(port, id).map(|waiting| waiting.cause);
        let address = self.outbound.wires.ports().upstream(port);
        if matches!(waits, Some(Cause::Probe(it) | Cause::Check(it)) if it == probe) {
            self.outbound.wires.ports().forget(port, id);
        }
        if waits == Some(Cause::Probe(probe)) {
            address.into_iter().for_each(|address| self.outbound.upstreams.pass_over(address));
            self.probe_ended(probe, None, now);
        }
    }

    /// Takes note of what came of a probe: nothing, an answer, or a failure in place of one.
    pub(super) fn probe_ended(&mut self, probe: Probe, failure: Option<bool>, now: Now) {
        let Some(known) = self.outbound.upstreams.get_mut(probe.group) else { return };
        known.pool.probe_ended(now.monotonic_nanos, probe.upstream, probe.sent_at, failure);
        known.log_state(probe.upstream, now.monotonic_nanos);
        self.await_probes(probe.group, now);
    }

    /// Takes note that the certificate was not trusted with which a probe was to be sent.
    pub(super) fn probe_untrusted(&mut self, probe: Probe, now: Now) {
        let Some(known) = self.outbound.upstreams.get_mut(probe.group) else { return };
        known.pool.probe_untrusted(now.monotonic_nanos, probe.upstream);
        known.log_state(probe.upstream, now.monotonic_nanos);
        self.await_probes(probe.group, now);
    }

    /// Whether a query is a question of this server that has come back; then takes note of it. One
    /// that comes from another view of this server has not come back yet: it goes on to the
    /// upstreams of this view.
    pub(super) fn has_come_back(&mut self, key: &FetchKey, now: Now) -> bool {
        let questions = self.config.forwarders.loop_questions();
        let Some(probe) = questions.read(&key.name, now.monotonic_nanos) else { return false };
        let Some(known) = self.outbound.upstreams.get(probe.group) else { return false };
        let at = self.outbound.upstreams.get(key.group).map(|at| &at.group.view);
        if known.group.view.is_some() && at.is_some_and(|view| *view != known.group.view) {
            return false;
        }
        let Some(server) = known.group.servers.get(probe.upstream) else { return false };
        if known.group.loops.note(probe.upstream, now.monotonic_nanos) {
            let address = server.address().map(tracing::field::display);
            tracing::error!(
                zone = %known.group.label(),
                upstream = %server.name,
                address,
                "loop: questions that are forwarded to an upstream come back to this server; it is \
                 not asked until they do not"
            );
            questions.count();
        }
        true
    }

    /// Whether a query would come back, so that it must not be sent.
    pub(super) fn would_come_back(&mut self, attempt: Attempt, now: Now) -> bool {
        let Some(fetch) = self.queries.fetches.get(attempt.fetch) else { return false };
        let Some(known) = self.outbound.upstreams.get(fetch.key.group) else { return false };
        let place = usize::from(attempt.upstream);
        known.group.loops.holds(place, now.monotonic_nanos) && !loops::is_check(&fetch.key.name)
    }

    /// Takes a message for a question that no client asks; false if it is none.
    pub(super) fn receive_check(
        &mut self,
        probe: Probe,
        form: Form,
        query: &[u8],
        message: &[u8],
    ) -> bool {
        let Some(known) = self.outbound.upstreams.get(probe.group) else { return true };
        let member = &known.pool.members[probe.upstream];
        match check(&sent(query, form, member.stream), message) {
            Verdict::Ignore(_) => return false,
            Verdict::Accept(_) => known.group.loops.clear(probe.upstream, probe.sent_at),
            // A loop that another server noticed ends in the same way.
            Verdict::Failed(_) | Verdict::Repeat(_) | Verdict::Doubt(_) => {}
        }
        true
    }

    /// Ends the attempts at upstreams with which a loop was found, by whatever thread.
    pub(super) fn abort_looping_attempts(&mut self, now: Now) {
        let found = self.config.forwarders.loop_questions().found();
        if std::mem::replace(&mut self.outbound.loops_seen, found) == found {
            return;
        }
        let is_looping = |group: u32, place: u8| {
            let known = self.outbound.upstreams.get(group);
            known.is_some_and(|it| it.group.loops.holds(place.into(), now.monotonic_nanos))
        };
        let waiting = self.queries.fetches.waiting();
        let looping = waiting.filter(|(group, attempt)| is_looping(*group, attempt.upstream));
        let looping: Vec<Attempt> = looping.map(|(_, attempt)| attempt).collect();
        for attempt in looping {
            self.conclude(attempt, Outcome::Failed(Failure::Loop), now);
        }
    }
}

/// Returns the question with which an upstream is probed.
fn question(name: &[u8], qtype: Type) -> Question<'_> {
    Question { name, qtype, qclass: Class::IN, dnssec_ok: false, checking_disabled: false }
}
