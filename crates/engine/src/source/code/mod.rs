//! The user's code as a source: handlers, found by the name and type of the question.

use crate::answer::Answer;
use crate::answer_below;
use crate::answer_facts::AnswerBelow;
use crate::ask::Ask;
use crate::code::call::{
    Callable, answer_with, call, defer, handler_query, offer_to_users_cache, reply,
};
use crate::code::{
    Elsewhere, Handler, HandlerReply, Handlers, NO_HANDLER, Pattern, ResumePoint, Route,
    handler_cache,
};
use crate::reason::Reason;
use crate::resumption::Entry;
use crate::verdict::{Flow, Verdict};
use crate::worker::Worker;
use std::ops::ControlFlow::Continue;
use zonda_wire::Rcode;

/// Has code answer the query, if there is any for it.
#[inline]
pub fn answer(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Flow {
    let snapshot = ask.snapshot;
    match &snapshot.handlers {
        None => Continue(()),
        Some(handlers) => answer_by(ask, answer, worker, handlers),
    }
}

/// Has the handler of the query's route answer, or answers with what it has said before.
#[inline(never)] // it would only make the path of zone data longer
fn answer_by(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    handlers: &Handlers,
) -> Flow {
    match ask.progress.entry() {
        Entry::Middleware(_) => answer_new(ask, answer, worker, handlers),
        Entry::Handler => call_here(ask, answer, worker, handlers),
        Entry::Zones => Continue(()),
        Entry::Answered(below) => answer_as_shown(ask, answer, worker, (handlers, below)),
        Entry::Filled(filled) => answer_as_supplied(ask, answer, worker, (handlers, filled)),
        Entry::Failed(reason) => reply(Rcode::SERVFAIL, reason),
    }
}

/// Answers a query that no handler has seen: from a cache, by calling its handler, or by deferring
/// it to one elsewhere.
fn answer_new(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    handlers: &Handlers,
) -> Flow {
    let found = handlers.routes.find(ask.name, ask.query.qtype);
    let handler = found.map(|(_, route)| &route.handler);
    if let Some(runtime) = handlers.middleware_runtime {
        let elsewhere = match handler {
            Some(Handler::Elsewhere(known)) if known.runtime == runtime => *known,
            _ => Elsewhere { runtime, handler: NO_HANDLER },
        };
        return defer(ask, worker, elsewhere);
    }
    if let Some((place, route)) = found {
        if let Some(rcode) = handler_cache::lookup(ask, answer, worker, (handlers, place)) {
            return reply(rcode, Reason::HandlerCached);
        }
        lookup_in_users_cache(ask, answer, worker, (handlers, &route.pattern))?;
    }
    match handler {
        Some(Handler::Elsewhere(elsewhere)) => defer(ask, worker, *elsewhere),
        _ => call_here(ask, answer, worker, handlers),
    }
}

/// Calls the handler of the query's route, if that is in the worker.
fn call_here(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    handlers: &Handlers,
) -> Flow {
    match handlers.routes.find(ask.name, ask.query.qtype) {
        Some((place, Route { pattern, handler: Handler::Here(code) })) => {
            let may_keep = handlers.middleware_runtime.is_none();
            let callable =
                Callable { place, pattern: Some(pattern), may_keep, then: ResumePoint::Zones };
            call(ask, answer, worker, (handlers, callable), |query, filled| {
                code.answer(query, filled)
            })
        }
        _ => Continue(()),
    }
}

/// Answers with what the user's cache has for a query on a route, if there is such a cache.
fn lookup_in_users_cache(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (handlers, pattern): (&Handlers, &Pattern),
) -> Flow {
    let Some(cache) = &handlers.users_cache else { return Continue(()) };
    let (place, pattern) = (handlers.cache_place(), Some(pattern));
    let callable = Callable { place, pattern, ..Callable::default() };
    let flow = call(ask, answer, worker, (handlers, callable), |query, filled| {
        cache.lookup(query, filled)
    });
    flow.map_break(|verdict| match verdict {
        Verdict::Reply(rcode, Reason::Handled, reuse) => {
            Verdict::Reply(rcode, Reason::HandlerCached, reuse)
        }
        other => other,
    })
}

/// Answers with what code elsewhere was shown, or has the answer made again where this client needs
/// another one. Middleware in the worker would be shown the reply once more: it gets a new one.
fn answer_as_shown(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (handlers, below): (&Handlers, &AnswerBelow),
) -> Flow {
    let shown = match handlers.middleware.is_empty() {
        true => answer_below::answer(ask, answer, worker, below),
        false => None,
    };
    shown.unwrap_or_else(|| call_here(ask, answer, worker, handlers))
}

/// Answers with the reply of code elsewhere.
fn answer_as_supplied(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (handlers, filled): (&Handlers, &HandlerReply),
) -> Flow {
    let route = route_of_supplied(ask, handlers, filled);
    if let Some(route) = route {
        let query = handler_query(ask, answer.reply.buffer(), Some(&route.pattern));
        if !offer_to_users_cache(&worker.watch, handlers, &query, filled) {
            return reply(Rcode::SERVFAIL, Reason::HandlerFailed);
        }
    }
    answer_with(ask, answer, worker, (handlers, filled, route.is_some()))
}

/// The route whose code elsewhere has filled in a reply that may be kept. There is none if there is
/// middleware elsewhere, as the reply may be its, and if other code has taken the place of that
/// which was asked.
fn route_of_supplied<'h>(
    ask: &Ask<'_>,
    handlers: &'h Handlers,
    filled: &HandlerReply,
) -> Option<&'h Route<Handler>> {
    let may_keep = filled.keep.is_some() || handlers.users_cache.is_some();
    if !may_keep || handlers.middleware_runtime.is_some() {
        return None;
    }
    let (_, route) = handlers.routes.find(ask.name, ask.query.qtype)?;
    let Handler::Elsewhere(now) = route.handler else { return None };
    (ask.progress.history?.code == Some(now)).then_some(route)
}
