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
use zonda_wire::Rcode;

/// Applies the access list of the listener.
#[inline]
pub fn by_listener(ask: &Ask<'_>, _: &mut Answer<'_>) -> Flow {
    let lists = &ask.snapshot.settings.listener_access;
    match lists.get(usize::from(ask.peer.listener)) {
        Some(Some(list)) => apply(list, ask),
        _ => Continue(()),
    }
}

/// Whether the access list of the listener lets a client ask, which is looked at before rules are
/// tried.
pub fn is_served(snapshot: &Snapshot, peer: &Peer) -> bool {
    match snapshot.settings.listener_access.get(usize::from(peer.listener)) {
        Some(Some(list)) => list.check(peer.address.ip()) == Access::Allow,
        _ => true,
    }
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
    match list.check(ask.peer.address.ip()) {
        Access::Allow => Continue(()),
        Access::Refuse => reply(Rcode::REFUSED, Reason::AccessRefused, NotReused::Gate),
        Access::Drop => Break(Verdict::Drop(Reason::AccessDropped)),
    }
}
