//! Answers from other servers.
//!
//! A query is deferred, comes back with what was fetched for it, and passes the plan once more: its
//! client may have lost its rights in between, and the reply is written by the same stages as any.

use crate::context::{Context, Flow, Verdict, reply};
use crate::deferral::Fetched;
use crate::reason::Reason;
use crate::zones::Forward;
use std::ops::ControlFlow::Break;
use zonda_wire::Rcode;
use zonda_wire::query::flag;

/// Answers the query, or defers it.
#[inline(never)] // it would only make the path of zone data longer
pub fn answer(cx: &mut Context<'_>, forward: &Forward) -> Flow {
    cx.flags |= flag::RA;
    match cx.fetched {
        Some(fetched) => pass_on(cx, fetched),
        // It may be told what we have, but nobody is asked for it (rfc1034#4.3.1).
        None if cx.query.flags & flag::RD == 0 => reply(Rcode::REFUSED, Reason::NotRecursive),
        None => Break(Verdict::Defer(forward.number)),
    }
}

/// Writes what was fetched. An answer that does not fit is left out whole: the client comes back
/// over TCP.
fn pass_on(cx: &mut Context<'_>, fetched: &Fetched<'_>) -> Flow {
    cx.flags |= fetched.flags;
    if cx.reply.append_body([fetched.body, &[], &[]], fetched.counts).is_err() {
        cx.flags |= flag::TC;
    }
    reply(fetched.rcode, fetched.reason)
}
