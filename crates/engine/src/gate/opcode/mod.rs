//! Operations other than a query.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::reason::Reason;
use crate::reuse::NotReused;
use crate::verdict::{Flow, Verdict, reply};
use std::ops::ControlFlow::{Break, Continue};
use zonda_wire::query::flag;
use zonda_wire::stream::notify_serial;
use zonda_wire::tsig::QuerySignature;
use zonda_wire::{Class, Opcode, Rcode, Type};

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
    match ask.query.qclass {
        Class::IN => {}
        Class::ANY | Class::NONE | Class(0) => {
            return reply(Rcode::FORMERR, Reason::FormatError, GATE);
        }
        _ => return reply(Rcode::NOTAUTH, Reason::NotServed, GATE), // of another zone's
    }
    let Some(zone) = ask.snapshot.zones.with_apex(ask.name) else {
        return reply(Rcode::NOTAUTH, Reason::NotServed, GATE); // rfc1996#3.10
    };
    let access = zone.access.as_deref().filter(|access| access.has_primaries());
    let queue = ask.snapshot.settings.notify.as_ref();
    let Some((access, queue)) = access.zip(queue).filter(|_| ask.query.qtype == Type::SOA) else {
        return reply(Rcode::REFUSED, Reason::NotServed, GATE);
    };
    let key = ask.signature.and_then(QuerySignature::proven_key);
    let from = ask.peer.address.ip();
    if !access.allows_notify(from, key) {
        return reply(Rcode::REFUSED, Reason::NotifyRefused, GATE);
    }
    let serial = notify_serial(ask.query, answer.reply.buffer());
    if !queue.push(zone, from.to_canonical(), serial) {
        return reply(Rcode::SERVFAIL, Reason::NotifyRefused, GATE);
    }
    answer.flags |= flag::AA;
    reply(Rcode::NOERROR, Reason::Notified, GATE)
}
