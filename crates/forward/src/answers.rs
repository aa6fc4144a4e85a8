//! Answers for the engine: of the answer cache, and failures.

use zonda_cache::{Hit, Kind};
use zonda_engine::{Reason, UpstreamAnswer};
use zonda_wire::query::flag;
use zonda_wire::{Ede, Rcode};

/// The answer to a query for `name` that a cached answer makes, whose octets lie in `body`.
pub fn cached<'b>(hit: &Hit, body: &'b [u8], name: &'b [u8]) -> UpstreamAnswer<'b> {
    let reason = match hit.kind {
        Kind::Failure => Reason::CachedFailure,
        _ if hit.ede == Some(Ede::BLOCKED) => Reason::Blocked,
        _ if hit.is_stale => Reason::Stale,
        _ => Reason::Cached,
    };
    let octets = &body[..hit.body_bytes.min(body.len())];
    let (body, text) =
        if hit.kind == Kind::Failure { (&[][..], octets) } else { (octets, &[][..]) };
    let goes_on = hit.onward.is_some();
    UpstreamAnswer {
        name,
        rcode: Rcode(hit.flags & 0x000f),
        is_authentic: hit.flags & flag::AD != 0 && !hit.is_stale,
        counts: hit.counts,
        body,
        goes_on,
        reason,
        text,
    }
}

/// The failure that a query is answered with where there is no answer.
pub fn failure(reason: Reason, text: &str) -> UpstreamAnswer<'_> {
    let (rcode, text) = (Rcode::SERVFAIL, text.as_bytes());
    UpstreamAnswer {
        name: &[],
        rcode,
        is_authentic: false,
        counts: [0; 3],
        body: &[],
        goes_on: false,
        reason,
        text,
    }
}
