//! The source of a zone's answers, and where an answer goes on in another source.
//!
//! The one file that knows all sources: what leads from one to another is decided here.

use super::{code, data, forward, local, template};
use crate::answer::Answer;
use crate::ask::Ask;
use crate::code::claim::claim;
use crate::kept_query;
use crate::reason::Reason;
use crate::reuse::{NotReused, Reuse};
use crate::verdict::{Flow, Verdict, reply};
use crate::worker::Worker;
use crate::zones::{ClusterZone, Forward, Local, Overlay, Source, ZoneEntry};
use std::ops::ControlFlow::{Break, Continue};
use zonda_wire::query::flag;
use zonda_wire::{Rcode, Type};

/// Answers the query from the source of the zone that holds the name; always ends or defers it.
#[inline]
pub fn answer(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Flow {
    let Some(zone) = ask.zone else { return without_zone(ask, answer) };
    match &zone.source {
        Source::Data(zone) => Break(data::answer(ask, answer, worker, zone)),
        Source::Forward(forward) => Break(from_upstreams(ask, answer, worker, forward)),
        Source::Local(local) => Break(from_local(ask, answer, worker, local)),
        Source::Cluster(cluster) => Break(from_cluster(ask, answer, worker, cluster)),
        Source::Excepted => without_zone(ask, answer),
        Source::Unavailable(reason) => Break(without_data(ask, answer, worker, (zone, *reason))),
    }
}

/// Has code answer the query, if there is any for it; an alias that ends its answer is followed to
/// other code, and into data of this server.
#[inline]
pub fn from_code(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Flow {
    match ask.snapshot.handlers {
        None => Continue(()),
        Some(_) => from_handlers(ask, answer, worker),
    }
}

/// Answers as [`from_code`] does where there are handlers.
#[inline(never)] // it would only make the path of zone data longer
fn from_handlers(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Flow {
    match code::answer(ask, answer, worker) {
        Break(Verdict::Reply(Rcode::NOERROR, reason, Reuse::No(NotReused::Code)))
            if ends_with_alias(ask, answer) && code::is_followed(ask) =>
        {
            Break(data::follow_of_code(ask, answer, worker, reason))
        }
        flow => flow,
    }
}

/// Whether the answer that was written ends with an alias that is to be followed: that of a
/// question for addresses, with nothing behind it and no address before it.
fn ends_with_alias(ask: &Ask<'_>, answer: &Answer<'_>) -> bool {
    if !matches!(ask.query.qtype, Type::A | Type::AAAA)
        || answer.flags & flag::TC != 0
        || answer.reply.counts()[1..] != [0, 0]
        || !kept_query::may_end_with_alias(ask.query.qtype, answer.reply.body())
    {
        return false;
    }
    let mut ends = false;
    for record in answer.reply.records() {
        if record.rtype == ask.query.qtype {
            return false;
        }
        ends = record.rtype == Type::CNAME;
    }
    ends
}

/// Answers by a template, if one is for the question; an alias that ends its answer is followed.
#[inline]
pub fn from_templates(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Flow {
    match ask.snapshot.settings.templates {
        None => Continue(()),
        Some(_) => from_any_template(ask, answer, worker),
    }
}

/// Answers as [`from_templates`] does where there are templates.
#[inline(never)] // it would only make the path of zone data longer
fn from_any_template(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Flow {
    match template::answer(ask, answer, worker, data::must_fetch_written) {
        Break(Verdict::Reply(Rcode::NOERROR, reason, _)) if ends_with_alias(ask, answer) => {
            Break(data::follow_written(ask, answer, worker, reason))
        }
        flow => flow,
    }
}

/// Refuses a name that no zone holds, unless it is one of code: then there is nothing of the type.
fn without_zone(ask: &Ask<'_>, answer: &mut Answer<'_>) -> Flow {
    let claim = claim(ask.snapshot, ask.name, ask.query.qtype);
    if !claim.is_own {
        return reply(Rcode::REFUSED, Reason::NoZone, NotReused::NoSource);
    }
    answer.flags |= flag::AA;
    answer.answering_label = claim.label as u8; // a name has at most 127
    reply(Rcode::NOERROR, Reason::NoData, NotReused::NoSource)
}

/// Answers from an overlay that has the name, or from upstreams; an answer of theirs that ends with
/// an alias of a name in zone data goes on there.
#[inline(never)] // it would only make the path of zone data longer
fn from_upstreams<'s>(
    ask: &Ask<'s>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    forward: &'s Forward,
) -> Verdict {
    answer.flags |= flag::RA;
    match from_overlay(ask, answer, worker, &forward.overlays) {
        Some(verdict) => verdict,
        None => behind_overlays(ask, answer, worker, forward),
    }
}

/// Answers from upstreams for a name that no overlay has.
#[inline]
fn behind_overlays(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    forward: &Forward,
) -> Verdict {
    match forward::answer(ask, answer, worker, (forward, data::must_fetch_behind)) {
        Break(verdict) => verdict,
        Continue(reason) => match data::continue_chain(ask, answer, worker, reason) {
            // The query that code would be asked was written over before.
            Verdict::GoesOn(reason) => {
                Verdict::Reply(Rcode::NOERROR, reason, Reuse::No(NotReused::Forwarded))
            }
            verdict => verdict,
        },
    }
}

/// Answers with what upstreams have said a query that no overlay has answered before; nothing if
/// its zone is not forwarded.
pub fn resume(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Option<Verdict> {
    let Source::Forward(forward) = &ask.zone?.source else { return None };
    answer.flags |= flag::RA;
    Some(behind_overlays(ask, answer, worker, forward))
}

/// Answers from an overlay that has the name, or from the data of names answered locally.
#[inline(never)] // it would only make the path of zone data longer
fn from_local<'s>(
    ask: &Ask<'s>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    local: &'s Local,
) -> Verdict {
    answer.flags |= flag::RA; // as for all names below a zone that is forwarded
    match from_overlay(ask, answer, worker, &local.overlays) {
        Some(verdict) => verdict,
        None => data::answer(ask, answer, worker, &local.zone),
    }
}

/// Answers from a cluster or, for a name that it lacks, from the zone around it if that is wanted.
#[inline(never)] // it would only make the path of zone data longer
fn from_cluster<'s>(
    ask: &Ask<'s>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    zone: &'s ClusterZone,
) -> Verdict {
    if zone.hosts_first
        && let Some(verdict) = from_hosts_around(ask, answer, worker)
    {
        return verdict;
    }
    if zone.falls_through
        && !data::is_of_cluster(zone, ask.name)
        && let Some(around) = zone_around(ask)
    {
        return from_zone_around(ask, answer, worker, around);
    }
    data::answer_from_cluster(ask, answer, worker, zone)
}

/// The first zone around the one that holds the name that has another source than a cluster that
/// lacks the name.
fn zone_around<'s>(ask: &Ask<'s>) -> Option<&'s ZoneEntry> {
    let zones = &ask.snapshot.zones;
    let mut labels = ask.zone?.apex.label_count();
    while labels > 0 {
        let found = zones.find(ask.name, labels - 1)?;
        let entry = zones.get(found.index);
        match &entry.source {
            Source::Cluster(it) if it.falls_through && !data::is_of_cluster(it, ask.name) => {
                labels = found.labels.into();
            }
            _ => return Some(entry),
        }
    }
    None
}

/// Answers for a zone that has no data for a reason: from names that are in front of it, if they
/// have the name, or else with a failure.
#[inline(never)] // it would only make the path of zone data longer
fn without_data(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (zone, reason): (&ZoneEntry, Reason),
) -> Verdict {
    let hosts = zone.hosts_first.then(|| from_hosts_around(ask, answer, worker)).flatten();
    hosts.unwrap_or(Verdict::Reply(Rcode::SERVFAIL, reason, Reuse::No(NotReused::NoSource)))
}

/// Answers from the names in front of the forwarded zone around a cluster's, if they have the name.
/// No hot entry has the answer, as it would be the cluster's.
fn from_hosts_around(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
) -> Option<Verdict> {
    let Source::Forward(around) = &zone_around(ask)?.source else { return None };
    let verdict = from_overlay(ask, answer, worker, &around.overlays)?;
    answer.flags |= flag::RA;
    Some(never_hot(verdict))
}

/// Returns a verdict whose answer does not become a hot entry of the cluster's zone.
fn never_hot(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Reply(rcode, reason, Reuse::Hot(_)) => {
            Verdict::Reply(rcode, reason, Reuse::No(NotReused::OtherZone))
        }
        verdict => verdict,
    }
}

/// Answers from the zone around a cluster's, as far as the client may query it. No hot entry has
/// the answer, as it would be the cluster's.
fn from_zone_around<'s>(
    ask: &Ask<'s>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    entry: &'s ZoneEntry,
) -> Verdict {
    const REUSE: Reuse = Reuse::No(NotReused::OtherZone);
    if !entry.allows(ask.peer.address.ip(), ask.signature, ask.question_type()) {
        return Verdict::Reply(Rcode::REFUSED, Reason::AccessRefused, REUSE);
    }
    let verdict = match &entry.source {
        Source::Data(zone) => data::answer(ask, answer, worker, zone),
        Source::Forward(forward) => from_upstreams(ask, answer, worker, forward),
        Source::Local(local) => from_local(ask, answer, worker, local),
        Source::Cluster(zone) => data::answer_from_cluster(ask, answer, worker, zone),
        Source::Excepted => Verdict::Reply(Rcode::REFUSED, Reason::NoZone, REUSE),
        Source::Unavailable(reason) => Verdict::Reply(Rcode::SERVFAIL, *reason, REUSE),
    };
    never_hot(verdict)
}

/// Answers from the first overlay that has the name, if one has; the reply has its reason.
#[inline]
fn from_overlay<'s>(
    ask: &Ask<'s>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    overlays: &'s [Overlay],
) -> Option<Verdict> {
    let overlay = local::overlay_of(ask.name, overlays)?;
    let verdict = data::answer(ask, answer, worker, &overlay.zone);
    Some(match (verdict, overlay.reason) {
        (Verdict::Reply(rcode, _, reuse), reason) if reason != Reason::Answered => {
            Verdict::Reply(rcode, reason, reuse)
        }
        (verdict, _) => verdict,
    })
}
