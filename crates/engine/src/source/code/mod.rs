//! The user's code as a source: handlers, found by the name and type of the question.

use crate::code::call::{Callable, answer_with, call, defer, offer_to_users_cache};
use crate::code::{
    Elsewhere, Handler, HandlerQuery, HandlerReply, Handlers, NO_HANDLER, Pattern, Route, Then,
    handler_cache,
};
use crate::context::{Context, Flow, Verdict, reply};
use crate::reason::Reason;
use crate::resumption::{Entry, HandlerOutcome};
use std::ops::ControlFlow::Continue;
use zonda_wire::Rcode;

/// Has code answer the query, if there is any for it.
#[inline]
pub fn answer(cx: &mut Context<'_>) -> Flow {
    let snapshot = cx.snapshot;
    match &snapshot.handlers {
        None => Continue(()),
        Some(handlers) => answer_by(cx, handlers),
    }
}

/// Has the handler of the query's route answer, or answers with what it has said before.
#[inline(never)] // it would only make the path of zone data longer
fn answer_by(cx: &mut Context<'_>, handlers: &Handlers) -> Flow {
    match cx.resumption.entry(cx.history) {
        Entry::Middleware(_) => answer_new(cx, handlers), // which has seen it by now
        Entry::Handler => call_here(cx, handlers),
        Entry::Zones => Continue(()),
        Entry::Ended(HandlerOutcome::Reply(filled)) => answer_as_supplied(cx, handlers, filled),
        Entry::Ended(HandlerOutcome::Failed(reason)) => reply(Rcode::SERVFAIL, reason),
    }
}

/// Answers a query that no handler has seen: from a cache, by calling its handler, or by deferring
/// it to one elsewhere.
fn answer_new(cx: &mut Context<'_>, handlers: &Handlers) -> Flow {
    let found = handlers.routes.find(cx.name, cx.query.qtype);
    let handler = found.map(|(_, route)| &route.handler);
    if let Some(runtime) = handlers.middleware_runtime {
        let elsewhere = match handler {
            Some(Handler::Elsewhere(known)) if known.runtime == runtime => *known,
            _ => Elsewhere { runtime, handler: NO_HANDLER },
        };
        return defer(cx, elsewhere);
    }
    if let Some((place, route)) = found {
        if let Some(rcode) = handler_cache::lookup(cx, handlers, place) {
            return reply(rcode, Reason::HandlerCached);
        }
        look_up_in_users_cache(cx, handlers, &route.pattern)?;
    }
    match handler {
        Some(Handler::Elsewhere(elsewhere)) => defer(cx, *elsewhere),
        _ => call_here(cx, handlers),
    }
}

/// Calls the handler of the query's route, if that is in the worker.
fn call_here(cx: &mut Context<'_>, handlers: &Handlers) -> Flow {
    match handlers.routes.find(cx.name, cx.query.qtype) {
        Some((place, Route { pattern, handler: Handler::Here(code) })) => {
            let may_keep = handlers.middleware_runtime.is_none();
            let callable = Callable { place, pattern: Some(pattern), may_keep, then: Then::Zones };
            call(cx, handlers, callable, |query, filled| code.answer(query, filled))
        }
        _ => Continue(()),
    }
}

/// Answers with what the user's cache has for a query on a route, if there is such a cache.
fn look_up_in_users_cache(cx: &mut Context<'_>, handlers: &Handlers, pattern: &Pattern) -> Flow {
    let Some(cache) = &handlers.users_cache else { return Continue(()) };
    let (place, pattern) = (handlers.cache_place(), Some(pattern));
    let callable = Callable { place, pattern, ..Callable::default() };
    let flow = call(cx, handlers, callable, |query, filled| cache.look_up(query, filled));
    flow.map_break(|verdict| match verdict {
        Verdict::Reply(rcode, Reason::Handled) => Verdict::Reply(rcode, Reason::HandlerCached),
        other => other,
    })
}

/// Answers with the reply of code elsewhere.
fn answer_as_supplied(cx: &mut Context<'_>, handlers: &Handlers, filled: &HandlerReply) -> Flow {
    let route = route_of_supplied(cx, handlers, filled);
    if let Some(route) = route {
        let query = HandlerQuery::new(cx, Some(&route.pattern));
        if !offer_to_users_cache(&cx.worker.watch, handlers, &query, filled) {
            return reply(Rcode::SERVFAIL, Reason::HandlerFailed);
        }
    }
    answer_with(cx, handlers, filled, route.is_some())
}

/// The route whose code elsewhere has filled in a reply that may be kept. There is none if there is
/// middleware elsewhere, as the reply may be its, and if other code has taken the place of that
/// which was asked.
fn route_of_supplied<'h>(
    cx: &Context<'_>,
    handlers: &'h Handlers,
    filled: &HandlerReply,
) -> Option<&'h Route<Handler>> {
    let may_keep = filled.keep.is_some() || handlers.users_cache.is_some();
    if !may_keep || handlers.middleware_runtime.is_some() {
        return None;
    }
    let (_, route) = handlers.routes.find(cx.name, cx.query.qtype)?;
    let Handler::Elsewhere(now) = route.handler else { return None };
    (cx.history?.code == Some(now)).then_some(route)
}
