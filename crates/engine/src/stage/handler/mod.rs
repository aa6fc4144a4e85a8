//! The user's code, between the query and the zones.

use crate::context::{Context, Flow, Verdict, reply};
use crate::deferral::{Deferral, Supplied, To};
use crate::epilogue::TEXT_BYTES_MAX;
use crate::handlers::{
    Claim, Elsewhere, Ending, Handler, HandlerQuery, HandlerReply, Handlers, NO_HANDLER, Pattern,
    Route, Then, Vary, Watch, give_again, keep, kept_under,
};
use crate::plan;
use crate::reason::Reason;
use crate::snapshot::Snapshot;
use std::ops::ControlFlow::{Break, Continue};
use std::panic::{AssertUnwindSafe, catch_unwind};
use zonda_wire::query::flag;
use zonda_wire::{Rcode, Type};
use zonda_zone::LookupName;

/// The bits of the header that code decides on.
const FLAGS: u16 = flag::AA | flag::RA | flag::AD | flag::TC;

/// Has code answer the query, if there is any for it.
#[inline]
pub fn answer(cx: &mut Context<'_>) -> Flow {
    let snapshot = cx.snapshot;
    match &snapshot.handlers {
        None => Continue(()),
        Some(handlers) => pass(cx, handlers),
    }
}

/// What code says about a name that it did not answer for and that no zone has.
pub fn claim(cx: &Context<'_>, name: &LookupName) -> Claim {
    let handlers = cx.snapshot.handlers.as_ref();
    handlers.map_or(Claim::default(), |it| it.routes.claim(name, cx.query.qtype))
}

/// Whether a route spells a name out, and is for the type: nobody else is asked for that.
pub fn spells_out(snapshot: &Snapshot, name: &LookupName, qtype: Type) -> bool {
    let found = snapshot.handlers.as_ref().and_then(|it| it.routes.find(name, qtype));
    found.is_some_and(|(_, route)| route.pattern.is_exact())
}

/// Has middleware and the route's handler see the query, and middleware the reply.
#[inline(never)] // it would only make the path of zone data longer
fn pass(cx: &mut Context<'_>, handlers: &Handlers) -> Flow {
    recall_tags(cx);
    let ended = match (cx.fetched, cx.supplied) {
        (Some(_), _) => Continue(()), // code has passed it on before
        (None, Some(Supplied::HandlerReply(draft))) if draft.ending == Ending::PassOn => {
            go_on(cx, handlers)
        }
        (None, Some(Supplied::HandlerReply(draft))) => write_supplied(cx, handlers, draft),
        (None, Some(Supplied::Failed(reason))) => reply(Rcode::SERVFAIL, reason),
        (None, None) => begin(cx, handlers, 0),
    };
    if handlers.middleware.is_empty() {
        return ended;
    }
    let verdict = match ended {
        Break(verdict) => verdict,
        Continue(()) => plan::behind_handlers(cx),
    };
    Break(show_reply(cx, handlers, verdict))
}

/// Brings back what was noted about the query before it was deferred, and what code elsewhere has.
fn recall_tags(cx: &mut Context<'_>) {
    if let Some(history) = cx.history {
        cx.worker.draft.tags = history.tags.clone();
    }
    if let Some(Supplied::HandlerReply(draft)) = cx.supplied {
        cx.worker.draft.tags.extend(&draft.tags);
    }
}

/// Goes on with a query that code elsewhere has left as it is.
fn go_on(cx: &mut Context<'_>, handlers: &Handlers) -> Flow {
    match cx.history.map_or(Then::Handler, |history| history.then) {
        Then::Handler => call_here(cx, handlers),
        Then::Middleware(number) => begin(cx, handlers, number),
        Then::Zones => Continue(()),
    }
}

/// Calls, or defers to, what the query must pass first, from the middleware of this number on.
fn begin(cx: &mut Context<'_>, handlers: &Handlers, from: usize) -> Flow {
    for (index, middleware) in handlers.middleware.iter().enumerate().skip(from) {
        let (place, then) = (handlers.middleware_place(index), Then::Middleware(index + 1));
        let called = Called { place, then, ..Called::default() };
        call(cx, handlers, called, |asked, draft| middleware.before(asked, draft))?;
    }
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
        if let Some(rcode) = give_again(cx, handlers, place) {
            return reply(rcode, Reason::HandlerCached);
        }
        look_up(cx, handlers, &route.pattern)?;
    }
    match handler {
        Some(Handler::Elsewhere(elsewhere)) => defer(cx, *elsewhere),
        _ => call_here(cx, handlers),
    }
}

/// Calls the code in the worker that answers the query, if there is any.
fn call_here(cx: &mut Context<'_>, handlers: &Handlers) -> Flow {
    match handlers.routes.find(cx.name, cx.query.qtype) {
        Some((place, Route { pattern, handler: Handler::Here(code) })) => {
            let may_keep = handlers.middleware_runtime.is_none();
            let called = Called { place, pattern: Some(pattern), may_keep, then: Then::Zones };
            call(cx, handlers, called, |asked, draft| code.answer(asked, draft))
        }
        _ => Continue(()),
    }
}

/// Hands the query over to code elsewhere.
fn defer(cx: &mut Context<'_>, elsewhere: Elsewhere) -> Flow {
    let (to, name_hash) = (To::Code(elsewhere), cx.name.hash(0));
    cx.worker.deferral = Deferral::new(to, name_hash);
    Break(Verdict::Defer)
}

/// Code that is called here.
#[derive(Clone, Copy, Default)]
struct Called<'h> {
    /// What the watch knows it by.
    place: usize,
    /// The pattern of its route; none but handlers have one.
    pattern: Option<&'h Pattern>,
    /// Whether what it answers may be kept.
    may_keep: bool,
    /// Where the query goes on if code leaves it as it is that this defers it to.
    then: Then,
}

/// Calls code that runs here, and answers with what it drafts.
fn call(
    cx: &mut Context<'_>,
    handlers: &Handlers,
    Called { place, pattern, may_keep, then }: Called<'_>,
    code: impl FnOnce(&HandlerQuery<'_>, &mut HandlerReply),
) -> Flow {
    let mut draft = std::mem::take(&mut cx.worker.draft);
    draft.clear();
    let asked = HandlerQuery::new(cx, pattern);
    let mut is_sound = run(&cx.worker.watch, handlers, place, || code(&asked, &mut draft));
    draft.saw_client |= asked.saw_client();
    if is_sound && may_keep {
        is_sound = tell_cache(&cx.worker.watch, handlers, &asked, &draft);
    }
    let flow = match draft.ending {
        _ if !is_sound => reply(Rcode::SERVFAIL, Reason::HandlerFailed),
        Ending::Defer(elsewhere) => {
            let flow = defer(cx, elsewhere);
            cx.worker.deferral.history.then = then;
            flow
        }
        _ => write(cx, handlers, &draft, may_keep),
    };
    cx.worker.draft = draft;
    flow
}

/// Calls code while it is watched; whether it did not panic, of which is told.
fn run(watch: &Watch, handlers: &Handlers, place: usize, code: impl FnOnce()) -> bool {
    watch.begin(place);
    let ended = catch_unwind(AssertUnwindSafe(code));
    watch.end();
    ended.map_err(|payload| handlers.tell_panic(place, &*payload)).is_ok()
}

/// Answers with what the user's cache has for a query on a route, if there is such a cache.
fn look_up(cx: &mut Context<'_>, handlers: &Handlers, pattern: &Pattern) -> Flow {
    let Some(cache) = &handlers.users_cache else { return Continue(()) };
    let (place, pattern) = (handlers.cache_place(), Some(pattern));
    let called = Called { place, pattern, ..Called::default() };
    let flow = call(cx, handlers, called, |asked, draft| cache.look_up(asked, draft));
    flow.map_break(|verdict| match verdict {
        Verdict::Reply(rcode, Reason::Handled) => Verdict::Reply(rcode, Reason::HandlerCached),
        other => other,
    })
}

/// Tells the user's cache, if there is one, what code has drafted; whether it did not panic.
fn tell_cache(
    watch: &Watch,
    handlers: &Handlers,
    asked: &HandlerQuery<'_>,
    draft: &HandlerReply,
) -> bool {
    match &handlers.users_cache {
        Some(cache) if draft.is_for_all() => {
            run(watch, handlers, handlers.cache_place(), || cache.keep(asked, draft))
        }
        _ => true,
    }
}

/// Answers with what code elsewhere has drafted.
fn write_supplied(cx: &mut Context<'_>, handlers: &Handlers, draft: &HandlerReply) -> Flow {
    let route = route_of_supplied(cx, handlers, draft);
    if let Some(route) = route {
        let asked = HandlerQuery::new(cx, Some(&route.pattern));
        if !tell_cache(&cx.worker.watch, handlers, &asked, draft) {
            return reply(Rcode::SERVFAIL, Reason::HandlerFailed);
        }
    }
    write(cx, handlers, draft, route.is_some())
}

/// The route whose code elsewhere has drafted what may be kept. There is none if there is
/// middleware, too, as the draft may be its, and if other code has taken the place of that which
/// was asked.
fn route_of_supplied<'h>(
    cx: &Context<'_>,
    handlers: &'h Handlers,
    draft: &HandlerReply,
) -> Option<&'h Route<Handler>> {
    let may_keep = draft.keep.is_some() || handlers.users_cache.is_some();
    if !may_keep || handlers.middleware_runtime.is_some() {
        return None;
    }
    let (_, route) = handlers.routes.find(cx.name, cx.query.qtype)?;
    let Handler::Elsewhere(now) = route.handler else { return None };
    (cx.history?.code == Some(now)).then_some(route)
}

/// Answers with a draft, unless it leaves the query to others. One for everybody is not kept if it
/// was made by who knew the client.
fn write(cx: &mut Context<'_>, handlers: &Handlers, draft: &HandlerReply, may_keep: bool) -> Flow {
    match draft.ending {
        Ending::PassOn => return Continue(()),
        Ending::Drop => return Break(Verdict::Drop(Reason::HandlerDropped)),
        Ending::Defer(_) => return reply(Rcode::SERVFAIL, Reason::HandlerFailed), // once is enough
        Ending::Reply => {}
    }
    let is_believed = |vary| may_keep && (!draft.saw_client || vary != Vary::Nothing);
    let wanted = draft.keep.filter(|keep| is_believed(keep.vary));
    // What depends on the client must be known before the reply lies where the query was.
    let name = wanted.and_then(|wanted| kept_under(cx, wanted.vary));
    write_reply(cx, draft);
    if let (Some(wanted), Some(name)) = (wanted, name) {
        keep(cx, handlers, wanted, &name, draft.rcode);
    }
    reply(draft.rcode, Reason::Handled)
}

/// Writes the reply that a draft is.
fn write_reply(cx: &mut Context<'_>, draft: &HandlerReply) {
    cx.flags = cx.flags & !FLAGS | draft.flags & FLAGS;
    if draft.write(&mut cx.reply).is_err() {
        cx.flags |= flag::TC;
    }
    if let Some((code, text)) = draft.error() {
        cx.ede = Some(code);
        cx.text_bytes = text.len().min(TEXT_BYTES_MAX);
        cx.worker.body[..cx.text_bytes].copy_from_slice(&text.as_bytes()[..cx.text_bytes]);
    }
}

/// Has middleware see the reply, and writes it anew if it was changed.
fn show_reply(cx: &mut Context<'_>, handlers: &Handlers, verdict: Verdict) -> Verdict {
    let Verdict::Reply(rcode, reason) = verdict else { return verdict };
    let mut draft = std::mem::take(&mut cx.worker.draft);
    draft.read(&cx.reply, rcode, cx.flags & FLAGS);
    let asked = HandlerQuery::new(cx, None).without_message(); // the reply lies where the query was
    let mut all_sound = true;
    for (index, middleware) in handlers.middleware.iter().enumerate().rev() {
        let after = || middleware.after(&asked, &mut draft);
        let place = handlers.middleware_place(index);
        all_sound &= run(&cx.worker.watch, handlers, place, after);
    }
    let changed = draft.is_changed();
    if changed || !all_sound {
        cx.keep = false; // it would be changed once more each time it is given
        cx.reply.clear();
    }
    let verdict = match draft.ending {
        _ if !all_sound => {
            cx.flags &= !FLAGS;
            Verdict::Reply(Rcode::SERVFAIL, Reason::HandlerFailed)
        }
        Ending::Drop => Verdict::Drop(Reason::HandlerDropped),
        _ if changed => {
            write_reply(cx, &draft);
            Verdict::Reply(draft.rcode, reason)
        }
        _ => verdict,
    };
    cx.worker.draft = draft;
    verdict
}
