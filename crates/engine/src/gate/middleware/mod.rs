//! The user's middleware, which sees queries before they are answered, and replies before they
//! leave: that for all names, and behind it guards, which are for the names of patterns.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::code::call::{Callable, FLAGS, call, handler_query, run, write};
use crate::code::{Ending, Handlers, ResumePoint, Route};
use crate::reason::Reason;
use crate::resumption::Entry;
use crate::reuse::{NotReused, Reuse};
use crate::verdict::{Flow, Verdict};
use crate::worker::Worker;
use std::ops::ControlFlow::Continue;
use zonda_wire::Rcode;

/// A reply that middleware has changed would be changed once more each time it is given.
const REUSE: Reuse = Reuse::No(NotReused::Middleware);

/// Shows the query to all middleware, which may answer, drop or defer it.
#[inline]
pub fn before(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Flow {
    let snapshot = ask.snapshot;
    match &snapshot.handlers {
        Some(handlers) if handlers.has_stages => show_query(ask, answer, worker, handlers),
        _ => Continue(()),
    }
}

/// Shows the reply to all middleware, which may change or drop it.
#[inline]
pub fn after(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    verdict: Verdict,
) -> Verdict {
    let snapshot = ask.snapshot;
    match (&snapshot.handlers, verdict) {
        (Some(handlers), Verdict::Reply(rcode, reason, _)) if handlers.has_stages => {
            let changed = show_reply(ask, answer, worker, handlers, (rcode, reason));
            changed.unwrap_or(verdict)
        }
        _ => verdict,
    }
}

/// Has middleware and guards that have not seen the query yet see it.
#[inline(never)] // it would only make the path of zone data longer
fn show_query(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    handlers: &Handlers,
) -> Flow {
    let Entry::Middleware(first) = ask.progress.entry() else {
        return Continue(()); // all of it has seen the query before that was deferred
    };
    for (index, middleware) in handlers.middleware.iter().enumerate().skip(first) {
        let (place, then) = (handlers.middleware_place(index), ResumePoint::Middleware(index + 1));
        let callable = Callable { place, then, ..Callable::default() };
        call(ask, answer, worker, (handlers, callable), |query, filled| {
            middleware.before(query, filled)
        })?;
    }
    let first_guard = first.saturating_sub(handlers.middleware.len());
    let mut guards = guards_of(ask, worker, handlers);
    let flow = (first_guard..guards.len()).try_for_each(|index| {
        let Route { pattern, handler } = &handlers.guards.here.as_slice()[guards[index]];
        let (place, number) =
            (handlers.guard_place(guards[index]), handlers.middleware.len() + index);
        let then = ResumePoint::Middleware(number + 1);
        let callable = Callable { place, pattern: Some(pattern), then, may_keep: false };
        call(ask, answer, worker, (handlers, callable), |query, filled| {
            handler.before(query, filled)
        })
    });
    guards.clear();
    worker.guards = guards;
    flow
}

/// Takes the worker's list, and puts the places of the guards in it that a query passes, in this
/// order.
fn guards_of(ask: &Ask<'_>, worker: &mut Worker, handlers: &Handlers) -> Vec<usize> {
    let mut guards = std::mem::take(&mut worker.guards);
    if handlers.guards.here.as_slice().is_empty() {
        return guards;
    }
    handlers.guards.here.find_all(ask.name, ask.query.qtype, &mut guards);
    guards
}

/// Has guards and middleware see the reply, the last one first, and writes it anew if it was
/// changed; how the query ends then.
#[inline(never)] // it would only make the path of zone data longer
fn show_reply(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    handlers: &Handlers,
    (rcode, reason): (Rcode, Reason),
) -> Option<Verdict> {
    let mut shown = worker.take_handler_reply();
    shown.read(&answer.reply, ask.query.qtype, (rcode, answer.flags & FLAGS));
    let mut all_sound = true;
    let mut guards = guards_of(ask, worker, handlers);
    for &guard in guards.iter().rev() {
        let Route { pattern, handler } = &handlers.guards.here.as_slice()[guard];
        let state = std::mem::take(&mut shown.state);
        // The reply lies where the query was.
        let query = handler_query(ask, &[], Some(pattern), state);
        let after = || handler.after(&query, &mut shown);
        all_sound &= run(&worker.watch, handlers, handlers.guard_place(guard), after);
        shown.saw_client |= query.saw_client();
        shown.state = query.into_state();
    }
    guards.clear();
    worker.guards = guards;
    let query = handler_query(ask, &[], None, std::mem::take(&mut shown.state));
    for (index, middleware) in handlers.middleware.iter().enumerate().rev() {
        let after = || middleware.after(&query, &mut shown);
        let place = handlers.middleware_place(index);
        all_sound &= run(&worker.watch, handlers, place, after);
    }
    shown.saw_client |= query.saw_client();
    shown.state = query.into_state();
    answer.note_code(shown.scope_of(ask.told_bits()));
    let is_changed = shown.is_changed();
    if is_changed || !all_sound {
        answer.reply.clear();
    }
    let verdict = match shown.ending {
        _ if !all_sound => {
            answer.flags &= !FLAGS;
            Some(Verdict::Reply(Rcode::SERVFAIL, Reason::HandlerFailed, REUSE))
        }
        Ending::Drop => Some(Verdict::Drop(Reason::HandlerDropped)),
        _ if is_changed => {
            write(ask, answer, worker, (&shown, None));
            Some(Verdict::Reply(shown.rcode, reason, REUSE))
        }
        _ => None,
    };
    worker.put_handler_reply(shown);
    verdict
}
