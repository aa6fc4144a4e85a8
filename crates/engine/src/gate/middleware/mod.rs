//! The user's middleware, which sees queries before they are answered and replies before they leave.

use crate::code::call::{Callable, FLAGS, call, run, write};
use crate::code::{Ending, HandlerQuery, HandlerReply, Handlers, Then};
use crate::context::{Context, Flow, Verdict};
use crate::reason::Reason;
use crate::resumption::Entry;
use std::ops::ControlFlow::Continue;
use zonda_wire::Rcode;

/// Shows the query to all middleware, which may answer, drop or defer it.
#[inline]
pub fn before(cx: &mut Context<'_>) -> Flow {
    let snapshot = cx.snapshot;
    match &snapshot.handlers {
        Some(handlers) if !handlers.middleware.is_empty() => show_query(cx, handlers),
        _ => Continue(()),
    }
}

/// Shows the reply to all middleware, which may change or drop it.
#[inline]
pub fn after(cx: &mut Context<'_>, verdict: Verdict) -> Verdict {
    let snapshot = cx.snapshot;
    match &snapshot.handlers {
        Some(handlers) if !handlers.middleware.is_empty() => show_reply(cx, handlers, verdict),
        _ => verdict,
    }
}

/// Has the middleware that has not seen the query yet see it.
#[inline(never)] // it would only make the path of zone data longer
fn show_query(cx: &mut Context<'_>, handlers: &Handlers) -> Flow {
    let Entry::Middleware(first) = cx.resumption.entry(cx.history) else {
        return Continue(()); // all of it has seen the query before that was deferred
    };
    for (index, middleware) in handlers.middleware.iter().enumerate().skip(first) {
        let (place, then) = (handlers.middleware_place(index), Then::Middleware(index + 1));
        let callable = Callable { place, then, ..Callable::default() };
        call(cx, handlers, callable, |query, filled| middleware.before(query, filled))?;
    }
    Continue(())
}

/// Has all middleware see the reply, the last one first, and writes it anew if it was changed.
#[inline(never)] // it would only make the path of zone data longer
fn show_reply(cx: &mut Context<'_>, handlers: &Handlers, verdict: Verdict) -> Verdict {
    let Verdict::Reply(rcode, reason) = verdict else { return verdict };
    let mut shown: HandlerReply = std::mem::take(&mut cx.worker.draft);
    shown.read(&cx.reply, rcode, cx.flags & FLAGS);
    let query = HandlerQuery::new(cx, None).without_message(); // the reply lies where the query was
    let mut all_sound = true;
    for (index, middleware) in handlers.middleware.iter().enumerate().rev() {
        let after = || middleware.after(&query, &mut shown);
        let place = handlers.middleware_place(index);
        all_sound &= run(&cx.worker.watch, handlers, place, after);
    }
    let changed = shown.is_changed();
    if changed || !all_sound {
        cx.keep = false; // it would be changed once more each time it is given
        cx.reply.clear();
    }
    let verdict = match shown.ending {
        _ if !all_sound => {
            cx.flags &= !FLAGS;
            Verdict::Reply(Rcode::SERVFAIL, Reason::HandlerFailed)
        }
        Ending::Drop => Verdict::Drop(Reason::HandlerDropped),
        _ if changed => {
            write(cx, &shown);
            Verdict::Reply(shown.rcode, reason)
        }
        _ => verdict,
    };
    cx.worker.draft = shown;
    verdict
}
