//! Names that a server that forwards answers itself: special-use names, those of hosts files and
//! of the configuration.
//!
//! All of them are zone data, so that they are found and written as any. An *overlay* has single
//! names: what it lacks goes on to the zone behind it.

use crate::context::{Context, Flow, Verdict};
use crate::reason::Reason;
use crate::stage::zone;
use crate::zones::{Local, Overlay};
use std::ops::ControlFlow::Break;
use zonda_wire::query::flag;
use zonda_wire::{Type, name};
use zonda_zone::{Found, LookupName, Zone};

/// Answers the query from an overlay or, if none has the name, from the data.
#[inline(never)] // it would only make the path of zone data longer
pub fn answer<'s>(cx: &mut Context<'s>, local: &'s Local) -> Flow {
    cx.flags |= flag::RA; // as for all names below a zone that is forwarded
    match answer_from_overlay(cx, &local.overlays) {
        Some(flow) => flow,
        None => zone::from_data(cx, &local.zone, labels(&local.zone)),
    }
}

/// Answers the query from the first overlay that has the name, if one has.
#[inline]
pub fn answer_from_overlay<'s>(cx: &mut Context<'s>, overlays: &'s [Overlay]) -> Option<Flow> {
    let overlay = overlays.iter().find(|overlay| has(&overlay.zone, cx.name))?;
    let flow = zone::from_data(cx, &overlay.zone, labels(&overlay.zone));
    Some(match (flow, overlay.reason) {
        (Break(Verdict::Reply(rcode, _)), reason) if reason != Reason::Answered => {
            Break(Verdict::Reply(rcode, reason))
        }
        (flow, _) => flow,
    })
}

/// Whether a zone has records of its own for a name, be it by a wildcard.
fn has(zone: &Zone, name: &LookupName) -> bool {
    match zone.find(name, labels(zone), false) {
        Found::Exact(node) | Found::Wildcard { node, .. } => {
            node.sets().any(|set| set.rtype != Type::SOA)
        }
        Found::Missing { .. } | Found::Referral(_) | Found::Dname(_) => false,
    }
}

/// How many labels the apex of a zone has.
fn labels(zone: &Zone) -> usize {
    name::labels(zone.apex()).count()
}
