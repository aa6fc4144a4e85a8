//! The source of a zone's answers, and where an answer goes on in another source.
//!
//! The one file that knows all sources: what leads from one to another is decided here.

use super::{data, forward, local};
use crate::code::claim::claim;
use crate::context::{Context, Flow, Verdict, reply};
use crate::reason::Reason;
use crate::zones::{Forward, Local, Overlay, Source};
use std::ops::ControlFlow::{Break, Continue};
use zonda_wire::Rcode;
use zonda_wire::query::flag;

/// Answers the query from the source of the zone that holds the name; always ends or defers it.
pub fn answer(cx: &mut Context<'_>) -> Flow {
    let Some(found) = cx.zone else { return without_zone(cx) };
    match &cx.snapshot.zones.get(found.index).source {
        Source::Data(zone) => Break(data::answer(cx, zone, usize::from(found.labels))),
        Source::Forward(forward) => Break(from_upstreams(cx, forward)),
        Source::Local(local) => Break(from_local(cx, local)),
        Source::Excepted => without_zone(cx),
        Source::Unavailable => reply(Rcode::SERVFAIL, Reason::ZoneUnavailable),
    }
}

/// Refuses a name that no zone holds, unless it is one of code: then there is nothing of the type.
fn without_zone(cx: &mut Context<'_>) -> Flow {
    let claim = claim(cx.snapshot, cx.name, cx.query.qtype);
    if !claim.is_own {
        return reply(Rcode::REFUSED, Reason::NoZone);
    }
    cx.flags |= flag::AA;
    cx.answering_label = claim.label as u8; // a name has at most 127
    reply(Rcode::NOERROR, Reason::NoData)
}

/// Answers from an overlay that has the name, or from upstreams; an answer of theirs that ends with
/// an alias of a name in zone data goes on there.
#[inline(never)] // it would only make the path of zone data longer
fn from_upstreams<'s>(cx: &mut Context<'s>, forward: &'s Forward) -> Verdict {
    cx.flags |= flag::RA;
    if let Some(verdict) = from_overlay(cx, &forward.overlays) {
        return verdict;
    }
    match forward::answer(cx, forward) {
        Break(verdict) => verdict,
        Continue(reason) => data::go_on(cx, reason),
    }
}

/// Answers from an overlay that has the name, or from the data of names answered locally.
#[inline(never)] // it would only make the path of zone data longer
fn from_local<'s>(cx: &mut Context<'s>, local: &'s Local) -> Verdict {
    cx.flags |= flag::RA; // as for all names below a zone that is forwarded
    match from_overlay(cx, &local.overlays) {
        Some(verdict) => verdict,
        None => data::answer(cx, &local.zone, local::apex_labels(&local.zone)),
    }
}

/// Answers from the first overlay that has the name, if one has; the reply has its reason.
#[inline]
fn from_overlay<'s>(cx: &mut Context<'s>, overlays: &'s [Overlay]) -> Option<Verdict> {
    let overlay = local::overlay_of(cx.name, overlays)?;
    let verdict = data::answer(cx, &overlay.zone, local::apex_labels(&overlay.zone));
    Some(match (verdict, overlay.reason) {
        (Verdict::Reply(rcode, _), reason) if reason != Reason::Answered => {
            Verdict::Reply(rcode, reason)
        }
        (verdict, _) => verdict,
    })
}
