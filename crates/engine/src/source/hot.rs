//! The worker's hot table as a source.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::hot::Meta;
use crate::reason::Reason;
use crate::reuse::{NotReused, rotated_record_bytes};
use crate::verdict::{Flow, reply};
use crate::worker::Worker;
use crate::zones::ZoneEntry;
use std::ops::ControlFlow::Continue;

/// Answers with the hot entry of the question, if there is one and it fits.
#[inline(always)] // on the shortest path
pub fn answer(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Flow {
    let Some(hot) = ask.hit.and_then(|hit| worker.hot.get(hit)) else { return Continue(()) };
    let (meta, body) = hot;
    if ask.zone.map(ZoneEntry::version) != Some(meta.version) && !is_of_service(ask, meta) {
        return Continue(()); // the zone has changed since
    }
    let written = if meta.rotating > 1 {
        let first = worker.turn.next(meta.rotating);
        let bytes = rotated_record_bytes(ask.query.qtype);
        let (set, rest) = body.split_at(bytes * usize::from(meta.rotating));
        let (before, from) = set.split_at(first * bytes);
        answer.reply.append_body([from, before, rest], meta.counts)
    } else {
        answer.reply.append_body([body], meta.counts)
    };
    if written.is_err() {
        return Continue(());
    }
    answer.flags |= meta.flags;
    answer.answering_label = meta.answering_label;
    reply(meta.rcode, meta.reason, NotReused::HotAlready)
}

/// Whether an entry is from a service of a cluster that has not changed since.
#[inline(never)] // it would only make the path of zone data longer
fn is_of_service(ask: &Ask<'_>, meta: &Meta) -> bool {
    let is_denial = meta.reason != Reason::Answered;
    ask.zone.and_then(|zone| zone.version_of(ask.name, is_denial)) == Some(meta.version)
}
