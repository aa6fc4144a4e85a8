//! Which clients may ask.

use crate::access::{Access, AccessList};
use crate::answer::Answer;
use crate::ask::Ask;
use crate::message::Peer;
use crate::reason::Reason;
use crate::reuse::NotReused;
use crate::snapshot::Snapshot;
use crate::verdict::{Flow, Verdict, reply};
use crate::worker::Worker;
use std::ops::ControlFlow::{Break, Continue};
use zonda_wire::tsig::QuerySignature;
use zonda_wire::{Opcode, Rcode, Type};

/// Applies the access list of the listener.
#[inline]
pub fn by_listener(ask: &Ask<'_>, _: &mut Answer<'_>) -> Flow {
    match list_of(ask.snapshot, ask.peer) {
        Some(list) => apply(list, ask),
        None => Continue(()),
    }
}

/// Whether the access list of the listener lets a client ask whose message has this signature, if
/// any; looked at before rules are tried.
pub fn is_served(snapshot: &Snapshot, peer: &Peer, signature: Option<&QuerySignature>) -> bool {
    let list = list_of(snapshot, peer);
    list.is_none_or(|list| list.check(peer.address.ip(), signature, None) == Access::Allow)
}

/// Whether the signature of a client's message is to be checked: for a client that the access list
/// of the listener refuses whatever the signature is, it would be work for nothing.
pub fn depends_on_signature(snapshot: &Snapshot, peer: &Peer) -> bool {
    list_of(snapshot, peer).is_none_or(|list| list.depends_on_signature(peer.address.ip()))
}

/// Whether the access list of the listener lets a client ask whose signature is sound.
pub fn may_be_served(snapshot: &Snapshot, peer: &Peer) -> bool {
    list_of(snapshot, peer).is_none_or(|list| list.may_allow(peer.address.ip()))
}

/// The access list of the listener that a message has come to, if it has one.
#[inline]
fn list_of<'s>(snapshot: &'s Snapshot, peer: &Peer) -> Option<&'s AccessList> {
    snapshot.settings.listener_access.get(usize::from(peer.listener))?.as_ref()
}

/// Applies the access list of the zone that holds the name. It stands among the sources, and has a
/// source's arguments.
#[inline]
pub fn by_zone(ask: &Ask<'_>, _: &mut Answer<'_>, _: &mut Worker) -> Flow {
    match ask.zone.and_then(|zone| zone.access.as_ref()) {
        Some(list) => apply(list, ask),
        None => Continue(()),
    }
}

/// Ends the query of a client that is not allowed.
fn apply(list: &AccessList, ask: &Ask<'_>) -> Flow {
    match list.check(ask.peer.address.ip(), ask.signature, ask.question_type()) {
        Access::Allow => Continue(()),
        Access::Refuse => reply(Rcode::REFUSED, Reason::AccessRefused, NotReused::Gate),
        Access::Filter if is_question(ask) => {
            reply(Rcode::NOERROR, Reason::AccessFiltered, NotReused::Gate)
        }
        // NOERROR would say that the message was carried out, or that it was sound.
        Access::Filter => reply(Rcode::REFUSED, Reason::AccessRefused, NotReused::Gate),
        Access::Drop => Break(Verdict::Drop(Reason::AccessDropped)),
    }
}

/// Whether a message asks for records: NOTIFY, UPDATE and transfers do not.
fn is_question(ask: &Ask<'_>) -> bool {
    let is_transfer = matches!(ask.query.qtype, Type::AXFR | Type::IXFR);
    ask.query.opcode() == Opcode::QUERY && !is_transfer
}
