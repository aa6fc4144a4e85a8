//! The user's code, between the query and the zones.

use crate::context::{Context, Flow, Verdict, reply};
use crate::deferral::{Deferral, Supplied, To};
use crate::epilogue::TEXT_BYTES_MAX;
use crate::handlers::{
    Asked, Draft, Elsewhere, Ending, Handler, Handlers, NO_HANDLER, Pattern, Route, Vary,
    give_again, keep, kept_under,
};
use crate::plan;
use crate::reason::Reason;
use std::ops::ControlFlow::{Break, Continue};
use std::panic::{AssertUnwindSafe, catch_unwind};
use zonda_wire::Rcode;
use zonda_wire::query::flag;

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

/// Has middleware and the route's handler see the query, and middleware the reply.
#[inline(never)] // it would only make the path of zone data longer
fn pass(cx: &mut Context<'_>, handlers: &Handlers) -> Flow {
    recall_tags(cx);
    let ended = match (cx.fetched, cx.supplied) {
        (Some(_), _) => Continue(()), // code has passed it on before
        (None, Some(Supplied::Draft(draft))) if draft.ending == Ending::PassOn => {
            call_here(cx, handlers) // which middleware elsewhere came before
        }
        (None, Some(Supplied::Draft(draft))) => write(cx, handlers, draft),
        (None, Some(Supplied::Failed(reason))) => reply(Rcode::SERVFAIL, reason),
        (None, None) => begin(cx, handlers),
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
    if let Some(Supplied::Draft(draft)) = cx.supplied {
        cx.worker.draft.tags.extend(&draft.tags);
    }
}

/// Calls, or defers to, what the query must pass first.
fn begin(cx: &mut Context<'_>, handlers: &Handlers) -> Flow {
    for (place, middleware) in handlers.middleware.iter().enumerate() {
        let place = handlers.routes.len() + place;
        call(cx, handlers, place, None, |asked, draft| middleware.before(asked, draft))?;
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
    let kept = found.and_then(|(place, _)| give_again(cx, handlers, place));
    if let Some(rcode) = kept {
        return reply(rcode, Reason::HandlerCached);
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
            call(cx, handlers, place, Some(pattern), |asked, draft| code.answer(asked, draft))
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

/// Calls code that runs here, and answers with what it drafts.
fn call(
    cx: &mut Context<'_>,
    handlers: &Handlers,
    place: usize,
    pattern: Option<&Pattern>,
    code: impl FnOnce(&Asked<'_>, &mut Draft),
) -> Flow {
    let mut draft = std::mem::take(&mut cx.worker.draft);
    draft.clear();
    let asked = Asked::new(cx, pattern);
    cx.worker.watch.begin(place);
    let ended = catch_unwind(AssertUnwindSafe(|| code(&asked, &mut draft)));
    cx.worker.watch.end();
    draft.saw_client = asked.saw_client();
    let flow = match ended {
        Ok(()) => write(cx, handlers, &draft),
        Err(_) => reply(Rcode::SERVFAIL, Reason::HandlerFailed),
    };
    cx.worker.draft = draft;
    flow
}

/// Answers with a draft, unless it leaves the query to others. One for everybody is not kept if it
/// was made by who knew the client.
fn write(cx: &mut Context<'_>, handlers: &Handlers, draft: &Draft) -> Flow {
    match draft.ending {
        Ending::PassOn => return Continue(()),
        Ending::Drop => return Break(Verdict::Drop(Reason::HandlerDropped)),
        Ending::Reply => {}
    }
    let wanted = draft.keep.filter(|keep| !draft.saw_client || keep.vary != Vary::Nothing);
    // What depends on the client must be known before the reply lies where the query was.
    let name = wanted.and_then(|wanted| kept_under(cx, wanted.vary));
    write_reply(cx, draft);
    if let (Some(wanted), Some(name)) = (wanted, name) {
        keep(cx, handlers, wanted, &name, draft.rcode);
    }
    reply(draft.rcode, Reason::Handled)
}

/// Writes the reply that a draft is.
fn write_reply(cx: &mut Context<'_>, draft: &Draft) {
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
    let asked = Asked::new(cx, None).without_message(); // the reply lies where the query was
    let mut is_sound = true;
    for (place, middleware) in handlers.middleware.iter().enumerate().rev() {
        cx.worker.watch.begin(handlers.routes.len() + place);
        let after = || middleware.after(&asked, &mut draft);
        is_sound &= catch_unwind(AssertUnwindSafe(after)).is_ok();
        cx.worker.watch.end();
    }
    let changed = draft.is_changed();
    if changed || !is_sound {
        cx.keep = false; // it would be changed once more each time it is given
        cx.reply.clear();
    }
    let verdict = match draft.ending {
        _ if !is_sound => {
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
