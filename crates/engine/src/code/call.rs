//! Calling code in the worker, and answering with the reply that it fills in.

use super::HandlerQuery;
use super::dependence::Dependence;
use super::elsewhere::Elsewhere;
use super::handler_cache;
use super::handlers::Handlers;
use super::history::ResumePoint;
use super::keep::{Keep, Vary};
use super::negative_soa::negative_soa;
use super::pattern::Pattern;
use super::query_state::QueryState;
use super::watch::Watch;
use super::{Ending, HandlerReply};
use crate::answer::Answer;
use crate::ask::Ask;
use crate::deferral::{Deferral, To};
use crate::kept_query;
use crate::reason::Reason;
use crate::reuse::{NotReused, Reuse};
use crate::verdict::{Flow, Verdict};
use crate::worker::Worker;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow::{Break, Continue};
use std::panic::{AssertUnwindSafe, catch_unwind};
use zonda_wire::Rcode;
use zonda_wire::query::flag;

/// The bits of the header that code decides on.
pub const FLAGS: u16 = flag::AA | flag::RA | flag::AD | flag::TC;

/// Ends a query with a reply of code.
#[inline]
pub fn reply(rcode: Rcode, reason: Reason) -> Flow {
    Break(Verdict::Reply(rcode, reason, Reuse::No(NotReused::Code)))
}

/// A query as code sees it, whose message is there unless the reply lies in its place, with the
/// values that code has left with it.
pub fn handler_query<'a>(
    ask: &Ask<'a>,
    message: &'a [u8],
    pattern: Option<&'a Pattern>,
    state: QueryState,
) -> HandlerQuery<'a> {
    let Ask { now, peer, query, client_subnet, name, .. } = *ask;
    let (received_nanos, saw_client) = (ask.received_nanos(), Cell::new(false));
    let state = RefCell::new(state);
    #[expect(deprecated, reason = "programs may read these fields for one more version")]
    HandlerQuery {
        now,
        received_nanos,
        peer,
        query,
        name,
        message,
        client_subnet,
        saw_client,
        state,
        pattern,
    }
}

/// Code in the worker that is called for a query.
#[derive(Clone, Copy, Default)]
pub struct Callable<'h> {
    /// The number under which the watch knows the code.
    pub place: usize,
    /// The pattern of the handler's route or of the guard; none for middleware for all names.
    pub pattern: Option<&'h Pattern>,
    /// Whether the code's reply may be kept.
    pub may_keep: bool,
    /// Where the query goes on when code elsewhere, to which this code defers it, passes it on.
    pub then: ResumePoint,
}

/// Calls code in the worker, and answers with the reply that it fills in.
pub fn call(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (handlers, callable): (&Handlers, Callable<'_>),
    code: impl FnOnce(&HandlerQuery<'_>, &mut HandlerReply),
) -> Flow {
    let Callable { place, pattern, may_keep, then } = callable;
    let mut filled = worker.take_handler_reply();
    filled.clear();
    let state = std::mem::take(&mut filled.state);
    let query = handler_query(ask, answer.reply.buffer(), pattern, state);
    let mut is_sound = run(&worker.watch, handlers, place, || code(&query, &mut filled));
    filled.saw_client |= query.saw_client();
    if is_sound && may_keep {
        is_sound = offer_to_users_cache(&worker.watch, handlers, &query, &filled);
    }
    filled.state = query.into_state();
    answer.note_code(filled.scope_of(ask.told_bits()));
    let flow = match filled.ending {
        _ if !is_sound => reply(Rcode::SERVFAIL, Reason::HandlerFailed),
        Ending::Defer(elsewhere) => {
            let flow = defer(ask, worker, elsewhere);
            worker.deferral.history.then = then;
            flow
        }
        _ => answer_with(ask, answer, worker, (handlers, &filled, may_keep), pattern),
    };
    worker.put_handler_reply(filled);
    flow
}

/// Calls code while the watch knows of it; returns whether it has not panicked. A panic is logged.
pub fn run(watch: &Watch, handlers: &Handlers, place: usize, code: impl FnOnce()) -> bool {
    let around = watch.begin(place);
    let ended = catch_unwind(AssertUnwindSafe(code));
    watch.end(around);
    ended.map_err(|payload| handlers.tell_panic(place, &*payload)).is_ok()
}

/// Defers the query to code elsewhere.
pub fn defer(ask: &Ask<'_>, worker: &mut Worker, elsewhere: Elsewhere) -> Flow {
    let (to, name_hash) = (To::Code(elsewhere), ask.name.hash(0));
    worker.deferral = Deferral::new(to, name_hash);
    Break(Verdict::Defer)
}

/// Offers a reply of code to the user's cache, if there is one; returns whether that has not
/// panicked.
pub fn offer_to_users_cache(
    watch: &Watch,
    handlers: &Handlers,
    query: &HandlerQuery<'_>,
    filled: &HandlerReply,
) -> bool {
    match &handlers.users_cache {
        Some(cache) if filled.is_for_all() => {
            run(watch, handlers, handlers.cache_place(), || cache.insert(query, filled))
        }
        _ => true,
    }
}

/// Answers with the reply that code has filled in, unless that passes the query on. A reply for
/// all clients is not kept if its code has read which client asks. `pattern` is that of the code's
/// route.
pub fn answer_with(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (handlers, filled, may_keep): (&Handlers, &HandlerReply, bool),
    pattern: Option<&Pattern>,
) -> Flow {
    match filled.ending {
        Ending::PassOn => return Continue(()),
        Ending::Drop => return Break(Verdict::Drop(Reason::HandlerDropped)),
        Ending::Defer(_) => return reply(Rcode::SERVFAIL, Reason::HandlerFailed), // once is enough
        Ending::Reply => {}
    }
    let is_believed = |vary| may_keep && (!filled.saw_client || vary != Vary::Nothing);
    let wanted = filled.keep.filter(|keep| is_believed(keep.vary));
    if filled.ends_with_alias() {
        kept_query::keep(ask, answer, worker);
    }
    write(ask, answer, worker, (filled, pattern));
    if let Some(Keep { ttl_secs, vary }) = wanted {
        let depends_on = Dependence { vary, scope: filled.scope };
        handler_cache::insert(ask, answer, handlers, (ttl_secs, depends_on), filled.rcode);
    }
    reply(filled.rcode, Reason::Handled)
}

/// Writes the reply that code of a pattern, or for all names, has filled in.
pub fn write(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    (filled, pattern): (&HandlerReply, Option<&Pattern>),
) {
    answer.flags = answer.flags & !FLAGS | filled.flags & FLAGS;
    let soa = filled.ttl_of_denial().map(|ttl_secs| {
        negative_soa(ask.snapshot, ask.name, (pattern, ttl_secs), &mut worker.rdata)
    });
    if filled.write(&mut answer.reply, soa).is_err() {
        answer.flags |= flag::TC;
    }
    if let Some((code, text)) = filled.error() {
        answer.ede = Some(code);
        answer.set_text(&mut worker.body, text.as_bytes());
    }
}
