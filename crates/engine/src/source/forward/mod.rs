//! Answers of other servers: from the cache, or fetched.
//!
//! A query that the cache does not answer is deferred, comes back with what was fetched for it, and
//! passes the plan once more: its client may have lost its rights in between, and the reply is
//! written by the same stages as any.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::checkpoint::Checkpoint;
use crate::code::claim::claim;
use crate::deferral::{Deferral, To, UpstreamAnswer, write_message};
use crate::reason::Reason;
use crate::reuse::{NotReused, Reuse};
use crate::verdict::Verdict;
use crate::worker::Worker;
use crate::zones::{Forward, Source};
use std::ops::ControlFlow::{self, Break, Continue};
use zonda_cache::{Ancestor, Hit, Inserts, Key, Kind, Onward};
use zonda_wire::query::flag;
use zonda_wire::response::Response;
use zonda_wire::{Ede, Rcode};

/// Records in the sections of a denial that nothing proves.
const SOA_ALONE: [u16; 3] = [0, 1, 0];

/// Where a flags word has the lower four bits of the response code.
const RCODE: u16 = 0x000f;

/// How an answer of upstreams ends: the query, or, with this reason, the part of a chain that they
/// have answered, which goes on in another source.
type ForwardFlow = ControlFlow<Verdict, Reason>;

/// A check whether an answer that leads to the worker's target, a name of this server, cannot be
/// written before something else is fetched, of which it then takes note.
type WaitCheck = fn(&Ask<'_>, &mut Answer<'_>, &mut Worker) -> bool;

/// Answers the query, or defers it.
#[inline]
pub fn answer(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (forward, must_wait): (&Forward, WaitCheck),
) -> ForwardFlow {
    if let Some(fetched) = ask.progress.upstream_answer() {
        return match fetched.goes_on || is_behind_chain(ask) {
            true => resume_chain(ask, answer, worker, (forward, must_wait), fetched),
            false => pass_on(ask, answer, worker, fetched),
        };
    }
    let wants_recursion = ask.query.flags & flag::RD != 0;
    let facts = ask.facts_for(forward);
    let key = forward.cache_key(ask.query, ask.name, &facts);
    let now_secs = ask.now.monotonic_secs();
    let found = forward.cache.find_or_moment(&key, now_secs, &mut worker.body);
    match found
        .ok()
        .filter(|hit| hit.onward != Some(Onward::Here) || is_target_local(ask, worker, hit))
    {
        Some(hit) if hit.onward == Some(Onward::Others) && wants_recursion => {
            return defer(ask, worker, forward, None);
        }
        // An expired one is given while no upstream shall be asked for a newer one yet (rfc8767#5);
        // one that is due to be fetched anew is deferred to the forwarder, which gives it at once.
        Some(hit) if !hit.refresh_due || !hit.is_stale && !wants_recursion => {
            if hit.onward != Some(Onward::Here) {
                return write_cached(ask, answer, worker, &hit);
            }
            return write_chain(ask, answer, worker, (forward, must_wait));
        }
        Some(hit) if !hit.is_stale => return defer(ask, worker, forward, None),
        _ => {}
    }
    match find_cut(ask, worker, forward, &key, now_secs) {
        Some(hit) => write_cached(ask, answer, worker, &hit),
        // The client may be told what is cached, but no upstream is asked for it (rfc1034#4.3.1).
        None if !wants_recursion => ended(Rcode::REFUSED, Reason::NotRecursive),
        None => defer(ask, worker, forward, found.err()),
    }
}

/// Whether a cached answer that leads to a name which this server answers still does: zones may
/// have changed since.
#[inline(never)]
fn is_target_local(ask: &Ask<'_>, worker: &mut Worker, hit: &Hit) -> bool {
    let Worker { body, message, target, scratch, .. } = worker;
    let body = &body[..hit.body_bytes.min(body.len())];
    write_message((ask.name.as_wire(), ask.query.qtype), hit.counts, body, message);
    if !Response::parse(message).is_ok_and(|response| response.last_alias(target)) {
        return false;
    }
    let zones = &ask.snapshot.zones;
    scratch.set(target, zones.seed());
    let found = zones.find_answering(scratch, ask.query.qtype);
    found.is_some_and(|zone| !matches!(zones.get(zone.index).source, Source::Forward(_)))
}

/// Whether the query has waited for the target of an ALIAS record, to which a kept answer leads.
fn is_behind_chain(ask: &Ask<'_>) -> bool {
    let checkpoint = ask.progress.history.and_then(|history| history.checkpoint.as_ref());
    checkpoint.is_some_and(Checkpoint::is_of_alias_record)
}

/// Goes on with a query for which something was fetched: an answer that leads to a name of this
/// server, or what had to be known behind it.
#[inline(never)] // it would only make the path of other answers longer
fn resume_chain(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (forward, must_wait): (&Forward, WaitCheck),
    fetched: &UpstreamAnswer<'_>,
) -> ForwardFlow {
    if is_behind_chain(ask) {
        return match find_chain(ask, worker, forward) {
            Some(_) => write_chain(ask, answer, worker, (forward, must_wait)),
            None => ended(Rcode::SERVFAIL, Reason::UpstreamFailed), // the zones changed meanwhile
        };
    }
    // One that is not kept would be lost if the query waited once more.
    if find_chain(ask, worker, forward).is_some() && must_wait(ask, answer, worker) {
        return Break(Verdict::Defer);
    }
    pass_on(ask, answer, worker, fetched)
}

/// Writes a kept answer that leads to the worker's target, a name of this server, unless something
/// has to be fetched before.
#[inline(never)] // it would only make the path of other answers longer
fn write_chain(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (forward, must_wait): (&Forward, WaitCheck),
) -> ForwardFlow {
    if must_wait(ask, answer, worker) {
        return Break(Verdict::Defer);
    }
    // The worker's body may have had another answer meanwhile.
    match find_chain(ask, worker, forward) {
        Some(hit) => write_cached(ask, answer, worker, &hit),
        None => ended(Rcode::SERVFAIL, Reason::UpstreamFailed), // it has just expired
    }
}

/// The kept answer, if that leads to a name of this server, which is the worker's target then.
fn find_chain(ask: &Ask<'_>, worker: &mut Worker, forward: &Forward) -> Option<Hit> {
    let facts = ask.facts_for(forward);
    let key = forward.cache_key(ask.query, ask.name, &facts);
    let hit = forward.cache.find(&key, ask.now.monotonic_secs(), &mut worker.body)?;
    let leads_here = hit.onward == Some(Onward::Here) && is_target_local(ask, worker, &hit);
    leads_here.then_some(hit)
}

/// Has the answer fetched, which the cache did not hold at a moment if that is given.
fn defer(
    ask: &Ask<'_>,
    worker: &mut Worker,
    forward: &Forward,
    missed_at: Option<Inserts>,
) -> ForwardFlow {
    let (to, name_hash) = (To::Forward(forward.number), ask.name.hash(0));
    worker.deferral = Deferral { missed_at, ..Deferral::new(to, name_hash) };
    Break(Verdict::Defer)
}

/// The kept answer that a name above, within the zone, does not exist (rfc8020#2).
#[inline(never)]
fn find_cut(
    ask: &Ask<'_>,
    worker: &mut Worker,
    forward: &Forward,
    key: &Key<'_>,
    now_secs: u32,
) -> Option<Hit> {
    if !forward.nxdomain_cut {
        return None;
    }
    let name = ask.name;
    let apex = (name.label_count() - ask.labels_below_apex()).max(1); // the root exists
    let above = (apex..name.label_count()).map(|labels| {
        let label = name.label_count() - labels;
        let skip = name.as_wire().len() - name.suffix(label).len();
        Ancestor { labels, skip, hash: name.hash(label) }
    });
    forward.cache.find_cut(key, above, now_secs, &mut worker.body)
}

/// Writes a kept answer. One that does not fit is left out whole: the client comes back over TCP.
#[inline]
fn write_cached(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    hit: &Hit,
) -> ForwardFlow {
    let rcode = Rcode(hit.flags & RCODE);
    if hit.kind == Kind::Failure {
        answer.text_bytes = hit.body_bytes;
        return ended(rcode, Reason::CachedFailure);
    }
    if hit.flags & flag::AD != 0 && !hit.is_stale {
        tell_authentic(ask, answer); // an expired signature proves nothing
    }
    let body = &worker.body[..hit.body_bytes.min(worker.body.len())];
    if answer.reply.append_body([body], hit.counts).is_err() {
        answer.flags |= flag::TC;
    }
    let reason = match hit.ede {
        Some(Ede::BLOCKED) => Reason::Blocked,
        _ if hit.is_stale => Reason::Stale,
        _ => Reason::Cached,
    };
    match hit.onward {
        Some(Onward::Here) => Continue(reason),
        Some(Onward::Others) | None => end(ask, answer, rcode, reason),
    }
}

/// Ends the query with an answer of upstreams, which was written. A name that code has, or has
/// names below, exists whatever upstreams say; what they give to prove the contrary is left out.
#[inline]
fn end(ask: &Ask<'_>, answer: &mut Answer<'_>, rcode: Rcode, reason: Reason) -> ForwardFlow {
    let is_denied = rcode == Rcode::NXDOMAIN && answer.reply.counts()[0] == 0;
    if !is_denied || !claim(ask.snapshot, ask.name, ask.query.qtype).exists {
        return ended(rcode, reason);
    }
    answer.flags &= !flag::AD;
    if answer.reply.counts() != SOA_ALONE {
        answer.reply.clear();
    }
    ended(Rcode::NOERROR, reason)
}

/// Ends the query with a reply.
fn ended(rcode: Rcode, reason: Reason) -> ForwardFlow {
    Break(Verdict::Reply(rcode, reason, Reuse::No(NotReused::Forwarded)))
}

/// Tells a client that knows AD that what it gets was validated (rfc6840#5.8).
fn tell_authentic(ask: &Ask<'_>, answer: &mut Answer<'_>) {
    if ask.query.flags & flag::AD != 0 || ask.query.dnssec_ok() {
        answer.flags |= flag::AD;
    }
}

/// Writes what was fetched, as long as it fits.
fn pass_on(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    fetched: &UpstreamAnswer<'_>,
) -> ForwardFlow {
    if !fetched.is_for(ask.name.as_wire()) {
        return ended(Rcode::SERVFAIL, Reason::UpstreamFailed); // the zones changed meanwhile
    }
    if fetched.is_authentic {
        tell_authentic(ask, answer);
    }
    if answer.reply.append_body([fetched.body], fetched.counts).is_err() {
        answer.flags |= flag::TC;
    }
    answer.set_text(&mut worker.body, fetched.text);
    match fetched.goes_on {
        false => end(ask, answer, fetched.rcode, fetched.reason),
        true => Continue(fetched.reason),
    }
}
