//! Who may ask.

use crate::access::{Access, AccessList};
use crate::context::{Context, Flow, Verdict, reply};
use crate::reason::Reason;
use std::ops::ControlFlow::{Break, Continue};
use zonda_wire::Rcode;

/// Applies the access list of the listener.
#[inline]
pub fn by_listener(cx: &mut Context<'_>) -> Flow {
    let lists = &cx.snapshot.settings.listener_access;
    match lists.get(usize::from(cx.peer.listener)) {
        Some(Some(list)) => apply(list, cx),
        _ => Continue(()),
    }
}

/// Applies the access list of the zone that holds the name.
#[inline]
pub fn by_zone(cx: &mut Context<'_>) -> Flow {
    let Some(found) = cx.zone else { return Continue(()) };
    match &cx.snapshot.zones.get(found.index).access {
        Some(list) => apply(list, cx),
        None => Continue(()),
    }
}

/// Ends the query of a client that is not allowed.
fn apply(list: &AccessList, cx: &Context<'_>) -> Flow {
    match list.check(cx.peer.address.ip()) {
        Access::Allow => Continue(()),
        Access::Refuse => reply(Rcode::REFUSED, Reason::AccessRefused),
        Access::Drop => Break(Verdict::Drop(Reason::AccessDropped)),
    }
}
