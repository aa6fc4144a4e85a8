//! The user's code as a source: handlers, found by the name and type of the question.

use crate::answer::Answer;
use crate::answer_below;
use crate::answer_facts::AnswerBelow;
use crate::ask::Ask;
use crate::code::call::{
    Callable, answer_with, call, defer, handler_query, offer_to_users_cache, reply,
};
use crate::code::{
    Elsewhere, Handler, HandlerReply, Handlers, NO_HANDLER, PassedRoute, Pattern, QueryState,
    ResumePoint, Route, handler_cache,
};
use crate::reason::Reason;
use crate::resumption::Entry;
use crate::verdict::{Flow, Verdict};
use crate::worker::Worker;
use std::ops::ControlFlow::{Break, Continue};
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
        Entry::Handlers(None) => call_behind(ask, answer, worker, (handlers, None, Next::Here)),
        Entry::Handlers(passed) => call_behind(ask, answer, worker, (handlers, passed, Next::Any)),
        Entry::HandlersHere => call_behind(ask, answer, worker, (handlers, None, Next::AllHere)),
        Entry::Zones => Continue(()),
        Entry::Answered(below) => answer_as_shown(ask, answer, worker, (handlers, below)),
        Entry::Filled(filled) => answer_as_supplied(ask, answer, worker, (handlers, filled)),
        Entry::Failed(reason) => reply(Rcode::SERVFAIL, reason),
    }
}

/// Answers a query that no handler has seen: from a cache, by calling its handlers, or by deferring
/// it to one elsewhere.
fn answer_new(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    handlers: &Handlers,
) -> Flow {
    let found = handlers.routes.find(ask.name, ask.query.qtype);
    if let Some(runtime) = handlers.runtime_ahead(ask.name, ask.query.qtype) {
        return defer_ahead(ask, worker, (handlers, runtime, found));
    }
    let Some((place, route)) = found else { return Continue(()) };
    if let Some(rcode) = handler_cache::lookup(ask, answer, worker, (handlers, place)) {
        return reply(rcode, Reason::HandlerCached);
    }
    lookup_in_users_cache(ask, answer, worker, (handlers, &route.pattern))?;
    if let Handler::Elsewhere(elsewhere) = route.handler {
        let flow = defer(ask, worker, elsewhere);
        worker.deferral.history.then = handlers.resume_point(elsewhere, place);
        return flow;
    }
    call_here(ask, answer, worker, (handlers, place, true))?;
    let passed = Some(handlers.routes.passed(place));
    call_behind(ask, answer, worker, (handlers, passed, Next::Any))
}

/// Defers a query to a runtime that has middleware or guards for it, and perhaps its handler.
fn defer_ahead(
    ask: &Ask<'_>,
    worker: &mut Worker,
    (handlers, runtime, found): (&Handlers, u16, Option<(usize, &Route<Handler>)>),
) -> Flow {
    let (elsewhere, then) = match found {
        Some((place, Route { handler: Handler::Elsewhere(known), .. }))
            if known.runtime == runtime =>
        {
            (*known, handlers.resume_point(*known, place))
        }
        _ => (Elsewhere { runtime, handler: NO_HANDLER }, ResumePoint::default()),
    };
    let flow = defer(ask, worker, elsewhere);
    worker.deferral.history.then = then;
    worker.deferral.history.is_guarded = handlers.is_guarded(ask.name, ask.query.qtype);
    flow
}

/// Calls the handler of the route at a place, which is in the worker. A reply that the handler
/// wants to be kept is, unless the query has reached it otherwise than a new one would.
fn call_here(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (handlers, place, may_keep): (&Handlers, usize, bool),
) -> Flow {
    let Some(Route { pattern, handler: Handler::Here(code) }) =
        handlers.routes.as_slice().get(place)
    else {
        return Continue(());
    };
    let callable = Callable { place, pattern: Some(pattern), may_keep, ..Callable::default() };
    let flow =
        call(ask, answer, worker, (handlers, callable), |query, filled| code.answer(query, filled));
    if let Break(Verdict::Defer) = flow {
        let passed = handlers.routes.passed(place);
        worker.deferral.history.then = ResumePoint::Handlers(Some(passed));
        worker.deferral.history.has_passed_middleware = true;
    }
    flow
}

/// The handlers that are called for a query which code has passed on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// All of them.
    Any,
    /// All of them, but for those elsewhere that come first, which have seen the query.
    Here,
    /// The handlers in the worker alone.
    AllHere,
}

/// Calls the handlers of the query's routes behind one that has passed it on, until one answers. A
/// reply is not kept: the code that has passed the query on need not do so the next time.
#[cold]
fn call_behind(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (handlers, mut passed, mut next): (&Handlers, Option<PassedRoute>, Next),
) -> Flow {
    let qtype = ask.query.qtype;
    while let Some((place, route)) = handlers.routes.find_behind(ask.name, qtype, passed) {
        let behind = handlers.routes.passed(place);
        passed = Some(behind);
        match route.handler {
            Handler::Here(_) => {
                call_here(ask, answer, worker, (handlers, place, false))?;
                next = if next == Next::Here { Next::Any } else { next };
            }
            Handler::Elsewhere(elsewhere) if next == Next::Any => {
                let flow = defer(ask, worker, elsewhere);
                worker.deferral.history.then = handlers.resume_point(elsewhere, place);
                worker.deferral.history.has_passed_middleware = true;
                return flow;
            }
            Handler::Elsewhere(_) => {}
        }
    }
    Continue(())
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
    let shown = match handlers.has_stages {
        true => None,
        false => answer_below::answer(ask, answer, worker, below),
    };
    let made = (handlers, None, Next::AllHere);
    shown.unwrap_or_else(|| call_behind(ask, answer, worker, made))
}

/// Whether an alias in the reply that code has given may be followed: not where middleware or
/// guards elsewhere have seen the reply, which may have taken out what would be added.
pub fn is_followed(ask: &Ask<'_>) -> bool {
    let (Entry::Filled(_), Some(handlers)) = (ask.progress.entry(), &ask.snapshot.handlers) else {
        return true;
    };
    let of_handler = |code: Elsewhere| code.handler != NO_HANDLER;
    let is_of_handler = ask.progress.history.and_then(|it| it.code).is_some_and(of_handler);
    is_of_handler && handlers.runtime_ahead(ask.name, ask.query.qtype).is_none()
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
        let (buffer, pattern) = (answer.reply.buffer(), Some(&route.pattern));
        let query = handler_query(ask, buffer, pattern, QueryState::default());
        if !offer_to_users_cache(&worker.watch, handlers, &query, filled) {
            return reply(Rcode::SERVFAIL, Reason::HandlerFailed);
        }
    }
    let pattern = filled.ttl_of_denial().and_then(|_| pattern_of_supplied(ask, handlers));
    answer_with(ask, answer, worker, (handlers, filled, route.is_some()), pattern)
}

/// The pattern of the handler elsewhere that was asked; none if middleware alone was, and if the
/// handler was taken away meanwhile.
fn pattern_of_supplied<'h>(ask: &Ask<'_>, handlers: &'h Handlers) -> Option<&'h Pattern> {
    let asked = ask.progress.history?.code?;
    let mut passed = None;
    while let Some((place, route)) = handlers.routes.find_behind(ask.name, ask.query.qtype, passed)
    {
        if matches!(route.handler, Handler::Elsewhere(code) if code == asked) {
            return Some(&route.pattern);
        }
        passed = Some(handlers.routes.passed(place));
    }
    None
}

/// The route whose code elsewhere has filled in a reply that may be kept. There is none if the
/// query passes middleware or guards elsewhere, as the reply may be theirs, and if other code has
/// taken the place of that which was asked.
fn route_of_supplied<'h>(
    ask: &Ask<'_>,
    handlers: &'h Handlers,
    filled: &HandlerReply,
) -> Option<&'h Route<Handler>> {
    let may_keep = filled.keep.is_some() || handlers.users_cache.is_some();
    let (name, qtype) = (ask.name, ask.query.qtype);
    if !may_keep || handlers.runtime_ahead(name, qtype).is_some() {
        return None;
    }
    let (_, route) = handlers.routes.find(name, qtype)?;
    let Handler::Elsewhere(now) = route.handler else { return None };
    (ask.progress.history?.code == Some(now)).then_some(route)
}
