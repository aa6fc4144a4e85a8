//! Answers of other servers: from the cache, or fetched.
//!
//! A query that the cache does not answer is deferred, comes back with what was fetched for it, and
//! passes the plan once more: its client may have lost its rights in between, and the reply is
//! written by the same stages as any.

use crate::code::claim::claim;
use crate::context::{Context, Verdict, Worker};
use crate::deferral::{Deferral, GOES_ON, LEADS_OUT, To, UpstreamAnswer, write_message};
use crate::epilogue::TEXT_BYTES_MAX;
use crate::reason::Reason;
use crate::zones::{Forward, Source};
use std::ops::ControlFlow::{self, Break, Continue};
use zonda_cache::{Ancestor, Hit, Key, Kind};
use zonda_wire::query::flag;
use zonda_wire::response::Response;
use zonda_wire::{Ede, Rcode};

/// Records in the sections of a denial that nothing proves.
const SOA_ALONE: [u16; 3] = [0, 1, 0];

/// Where a flags word has the lower four bits of the response code.
const RCODE: u16 = 0x000f;

/// How an answer of upstreams ends: the query, or, with this reason, the part of a chain that they
/// have answered, which goes on in another source.
type Forwarded = ControlFlow<Verdict, Reason>;

/// Answers the query, or defers it.
#[inline]
pub fn answer(cx: &mut Context<'_>, forward: &Forward) -> Forwarded {
    if let Some(fetched) = cx.resumption.upstream_answer() {
        return pass_on(cx, fetched);
    }
    let wants_recursion = cx.query.flags & flag::RD != 0;
    let key = forward.cache_key(cx.query, cx.name);
    let now_secs = cx.now.monotonic_secs();
    let kept = forward.cache.find(&key, now_secs, &mut cx.worker.body);
    match kept.filter(|hit| hit.flags & GOES_ON == 0 || leads_home(cx, hit)) {
        Some(hit) if hit.flags & LEADS_OUT != 0 && wants_recursion => return defer(cx, forward),
        // An expired one is given while nobody shall be asked for a newer one yet (rfc8767#5); one
        // that is due to be fetched anew is deferred to whoever does that, and gives it at once.
        Some(hit) if !hit.refresh_due || !hit.is_stale && !wants_recursion => {
            return give_again(cx, &hit);
        }
        Some(hit) if !hit.is_stale => return defer(cx, forward),
        _ => {}
    }
    match find_cut(cx, forward, &key, now_secs) {
        Some(hit) => give_again(cx, &hit),
        // It may be told what we have, but nobody is asked for it (rfc1034#4.3.1).
        None if !wants_recursion => ended(Rcode::REFUSED, Reason::NotRecursive),
        None => defer(cx, forward),
    }
}

/// Whether a kept answer that leads to a name that nobody else is asked for still does: zones may
/// have changed since.
#[inline(never)]
fn leads_home(cx: &mut Context<'_>, hit: &Hit) -> bool {
    let Worker { body, message, target, scratch, .. } = &mut *cx.worker;
    let body = &body[..hit.body_bytes.min(body.len())];
    write_message((cx.name.as_wire(), cx.query.qtype), hit.counts, body, message);
    if !Response::parse(message).is_ok_and(|response| response.last_alias(target)) {
        return false;
    }
    let zones = &cx.snapshot.zones;
    scratch.set(target, zones.seed());
    let found = zones.find_answering(scratch, cx.query.qtype);
    found.is_some_and(|zone| !matches!(zones.get(zone.index).source, Source::Forward(_)))
}

/// Has the answer fetched.
fn defer(cx: &mut Context<'_>, forward: &Forward) -> Forwarded {
    let (to, name_hash) = (To::Forward(forward.number), cx.name.hash(0));
    cx.worker.deferral = Deferral::new(to, name_hash);
    Break(Verdict::Defer)
}

/// The kept answer that a name above, within the zone, does not exist (rfc8020#2).
#[inline(never)]
fn find_cut(cx: &mut Context<'_>, forward: &Forward, key: &Key<'_>, now_secs: u32) -> Option<Hit> {
    let apex = cx.zone.filter(|_| forward.nxdomain_cut)?.labels.max(1); // the root exists
    let name = cx.name;
    let above = (usize::from(apex)..name.label_count()).map(|labels| {
        let label = name.label_count() - labels;
        let skip = name.as_wire().len() - name.suffix(label).len();
        Ancestor { labels, skip, hash: name.hash(label) }
    });
    forward.cache.find_cut(key, above, now_secs, &mut cx.worker.body)
}

/// Writes a kept answer. One that does not fit is left out whole: the client comes back over TCP.
#[inline]
fn give_again(cx: &mut Context<'_>, hit: &Hit) -> Forwarded {
    let rcode = Rcode(hit.flags & RCODE);
    if hit.kind == Kind::Failure {
        cx.text_bytes = hit.body_bytes;
        return ended(rcode, Reason::CachedFailure);
    }
    if hit.flags & flag::AD != 0 && !hit.is_stale {
        tell_authentic(cx); // an expired signature proves nothing
    }
    let body = &cx.worker.body[..hit.body_bytes.min(cx.worker.body.len())];
    if cx.reply.append_body([body, &[], &[]], hit.counts).is_err() {
        cx.flags |= flag::TC;
    }
    let reason = match hit.ede {
        Some(Ede::BLOCKED) => Reason::Blocked,
        _ if hit.is_stale => Reason::Stale,
        _ => Reason::Cached,
    };
    match hit.flags & GOES_ON {
        0 => end(cx, rcode, reason),
        _ => Continue(reason),
    }
}

/// Ends the query with what others answered, which was written. A name that code has, or has names
/// below, exists whatever they say; what they give to prove the contrary is left out.
#[inline]
fn end(cx: &mut Context<'_>, rcode: Rcode, reason: Reason) -> Forwarded {
    let is_denied = rcode == Rcode::NXDOMAIN && cx.reply.counts()[0] == 0;
    if !is_denied || !claim(cx.snapshot, cx.name, cx.query.qtype).exists {
        return ended(rcode, reason);
    }
    cx.flags &= !flag::AD;
    if cx.reply.counts() != SOA_ALONE {
        cx.reply.clear();
    }
    ended(Rcode::NOERROR, reason)
}

/// Ends the query with a reply.
fn ended(rcode: Rcode, reason: Reason) -> Forwarded {
    Break(Verdict::Reply(rcode, reason))
}

/// Tells a client that knows AD that what it gets was validated (rfc6840#5.8).
fn tell_authentic(cx: &mut Context<'_>) {
    if cx.query.flags & flag::AD != 0 || cx.query.dnssec_ok() {
        cx.flags |= flag::AD;
    }
}

/// Writes what was fetched, as long as it fits.
fn pass_on(cx: &mut Context<'_>, fetched: &UpstreamAnswer<'_>) -> Forwarded {
    if !fetched.is_for(cx.name.as_wire()) {
        return ended(Rcode::SERVFAIL, Reason::UpstreamFailed); // the zones changed meanwhile
    }
    if fetched.is_authentic {
        tell_authentic(cx);
    }
    if cx.reply.append_body([fetched.body, &[], &[]], fetched.counts).is_err() {
        cx.flags |= flag::TC;
    }
    cx.text_bytes = fetched.text.len().min(TEXT_BYTES_MAX);
    cx.worker.body[..cx.text_bytes].copy_from_slice(&fetched.text[..cx.text_bytes]);
    match fetched.goes_on {
        false => end(cx, fetched.rcode, fetched.reason),
        true => Continue(fetched.reason),
    }
}
