//! Operations other than a query.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::reason::Reason;
use crate::reuse::NotReused;
use crate::verdict::{Flow, Verdict, reply};
use std::ops::ControlFlow::{Break, Continue};
use zonda_wire::query::flag;
use zonda_wire::tsig::SignatureCheck;
use zonda_wire::{Opcode, Rcode, Type};

/// Answers operations other than a query: NOTIFY is taken, UPDATE is left to what changes zones,
/// any other gets NOTIMP.
#[inline]
pub fn check(ask: &Ask<'_>, answer: &mut Answer<'_>) -> Flow {
    if ask.query.opcode() == Opcode::QUERY {
        return Continue(()); // first, as almost all messages are
    }
    match ask.query.opcode() {
        Opcode::NOTIFY => notified(ask, answer),
        Opcode::UPDATE => Break(Verdict::Defer),
        _ => reply(Rcode::NOTIMP, Reason::NotImplemented, NotReused::Gate),
    }
}

/// Answers a NOTIFY message.
#[cold]
fn notified(ask: &Ask<'_>, answer: &mut Answer<'_>) -> Flow {
    const GATE: NotReused = NotReused::Gate;
    let settings = &ask.snapshot.settings;
    let zone = settings
        .notify
        .as_ref()
        .and_then(|table| table.zone(ask.name.as_wire()).map(|zone| (table, zone)));
    let Some((table, zone)) = zone.filter(|_| ask.query.qtype == Type::SOA) else {
        let is_apex = ask.zone.is_some_and(|zone| zone.apex.as_wire() == ask.name.as_wire());
        return match is_apex {
            true => reply(Rcode::REFUSED, Reason::NotServed, GATE),
            false => reply(Rcode::NOTAUTH, Reason::NotServed, GATE), // rfc1996#3.10
        };
    };
    let signature = ask.signature.filter(|it| it.check == SignatureCheck::Sound);
    let key = signature.and_then(|signature| signature.key);
    let from = ask.peer.address.ip();
    if !zone.allows(from, key) {
        return reply(Rcode::REFUSED, Reason::NotifyRefused, GATE);
    }
    if !table.queue(zone, from.to_canonical()) {
        return reply(Rcode::SERVFAIL, Reason::NotifyRefused, GATE);
    }
    answer.flags |= flag::AA;
    reply(Rcode::NOERROR, Reason::Notified, GATE)
}
