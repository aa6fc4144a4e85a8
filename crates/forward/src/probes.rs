//! What a forwarder thread does to find that an upstream is back.

use std::time::Duration;

use zonda_deferral::Responder;
use zonda_engine::Now;
use zonda_netio::is_exhaustion;
use zonda_upstream::Question;
use zonda_upstream::check::{Doubt, Verdict, check};
use zonda_upstream::exchange::Form;
use zonda_upstream::query::sent;
use zonda_wire::name::NAME_BYTES_MAX;
use zonda_wire::{Class, Type};

use crate::group::Manner;
use crate::loops;
use crate::ports::{Cause, Probe, Waiting};
use crate::stream::{Patience, send_over_stream};
use crate::thread::{Forwarder, Timer};

/// A probe that was not answered for so long is lost, nanoseconds.
const PROBE_NANOS: u64 = 1_000_000_000;
/// The same over a connection, which may have to be opened first.
const PROBE_STREAM: Duration = Duration::from_secs(3);

impl<R: Responder, F: FnMut() -> R> Forwarder<R, F> {
    /// Sets a timer for the next probe to an upstream of a group, and tells the log what is new of
    /// them: those that are not up are probed.
    pub(crate) fn await_probes(&mut self, group: u32, now: Now) {
        let Some(known) = self.groups.get_mut(&group) else { return };
        known.tell_changes(now.monotonic_nanos);
        let at = known.pool.probe_at();
        if at != known.probe_at {
            known.probe_at = at;
            if let Some(at) = at {
                self.set_timer(at, Timer::Probes(group));
            }
        }
    }

    /// Sends the probes that are due, if the timer of `at` is the last that was set.
    pub(crate) fn send_probes(&mut self, group: u32, at: u64, now: Now) {
        let Some(known) = self.groups.get_mut(&group) else { return };
        if known.probe_at != Some(at) {
            return;
        }
        known.probe_at = None;
        while let Some(upstream) =
            self.groups.get_mut(&group).and_then(|it| it.pool.take_probe(now.monotonic_nanos))
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
        let Some(known) = self.groups.get(&probe.group) else { return false };
        let apex = (known.group.apex.as_wire(), Type::SOA);
        let (name, qtype) = known.proof(probe.upstream).unwrap_or(apex);
        let name = name.to_vec();
        self.counters.probes.add(1);
        self.send_for(probe, Cause::Probe(probe), question(&name, qtype))
    }

    /// Asks what nobody else asks, to see whether it comes back; whether it can be sent or is ever
    /// answered does not matter.
    fn send_check(&mut self, probe: Probe) {
        let Some(known) = self.groups.get(&probe.group) else { return };
        let name = loops::name(probe, known.group.apex.as_wire());
        if name.len() <= NAME_BYTES_MAX {
            self.send_for(probe, Cause::Check(probe), question(&name, Type::SOA));
        }
    }

    /// Sends a question to the upstream of a probe; false when that is not possible.
    fn send_for(&mut self, probe: Probe, cause: Cause, question: Question<'_>) -> bool {
        let Some(known) = self.groups.get_mut(&probe.group) else { return false };
        let member = &mut known.pool.members[probe.upstream];
        let form = Form {
            over_tcp: false,
            edns: member.edns.is_enabled(probe.sent_at),
            mixed_case: !member.stream && member.mixed_case.is_enabled(probe.sent_at),
        };
        let server = &known.group.servers[probe.upstream];
        let manner @ Manner { udp_bytes, .. } = known.group.manner;
        let (case, mut query) = (self.random.case_bits(question.name.len()), Vec::new());
        let cookies = member.cookies.at(server.address(), probe.sent_at);
        if !server.over_udp {
            question.write((0, form), &case, &cookies, udp_bytes, &mut query);
            let patience = Patience { limit: PROBE_STREAM, waits_for_connection: false };
            send_over_stream(&self.config, server, Waiting { cause, form, query }, patience);
            return true;
        }
        let Some(address) = server.address() else { return false };
        let at = probe.sent_at;
        let chosen = self.ports.choose((address, manner, at), &self.poller, &mut self.random);
        let (port, id) = match chosen {
            Ok(chosen) => chosen,
            Err(error) if is_exhaustion(&error) => {
                self.counters.without_port.add(1);
                return true; // the next probe follows in any case
            }
            Err(_) => {
                server.connections.pass_over(address);
                return false;
            }
        };
        question.write((id, form), &case, &cookies, udp_bytes, &mut query);
        self.ports.send(port, id, Waiting { cause, form, query });
        self.set_timer(probe.sent_at + PROBE_NANOS, Timer::ProbeOverdue(port, id, probe));
        true
    }

    /// Takes a message for a probe; false if it is none.
    pub(crate) fn hear_probe(
        &mut self,
        probe: Probe,
        form: Form,
        query: &[u8],
        message: &[u8],
        now: Now,
    ) -> bool {
        let Some(known) = self.groups.get(&probe.group) else { return true };
        let member = &known.pool.members[probe.upstream];
        // Who is silent is back with any answer, unless it has answered the same before: not all
        // know the apex of what they are asked for.
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
    pub(crate) fn probe_overdue(&mut self, port: usize, id: u16, probe: Probe, now: Now) {
        let waits = self.ports.waiting(port, id).map(|waiting| waiting.cause);
        let address = self.ports.upstream(port);
        if matches!(waits, Some(Cause::Probe(it) | Cause::Check(it)) if it == probe) {
            self.ports.forget(port, id);
        }
        if waits == Some(Cause::Probe(probe)) {
            address.into_iter().for_each(|address| self.pass_over(address));
            self.probe_ended(probe, None, now);
        }
    }

    /// Takes note of what came of a probe: nothing, an answer, or a failure in place of one.
    pub(crate) fn probe_ended(&mut self, probe: Probe, failure: Option<bool>, now: Now) {
        let Some(known) = self.groups.get_mut(&probe.group) else { return };
        known.pool.probe_ended(now.monotonic_nanos, probe.upstream, probe.sent_at, failure);
        known.tell(probe.upstream, now.monotonic_nanos);
        self.await_probes(probe.group, now);
    }

    /// Takes note that the certificate was not trusted with which a probe was to be sent.
    pub(crate) fn probe_untrusted(&mut self, probe: Probe, now: Now) {
        let Some(known) = self.groups.get_mut(&probe.group) else { return };
        known.pool.probe_untrusted(now.monotonic_nanos, probe.upstream);
        known.tell(probe.upstream, now.monotonic_nanos);
        self.await_probes(probe.group, now);
    }
}

/// What an upstream is probed with.
fn question(name: &[u8], qtype: Type) -> Question<'_> {
    Question { name, qtype, qclass: Class::IN, dnssec_ok: false, checking_disabled: false }
}
