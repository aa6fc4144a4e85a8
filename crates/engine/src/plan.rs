//! The order in which a query is processed.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::gate::{
    access, class_and_type, cookie, edns_version, identity, middleware, opcode, rate,
};
use crate::reason::Reason;
use crate::reuse::{NotReused, Reuse};
use crate::source::{chain, code_target, hot};
use crate::transfer;
use crate::update;
use crate::verdict::{Flow, Verdict};
use crate::worker::Worker;
use std::ops::ControlFlow::{Break, Continue};
use zonda_wire::{Fault, Opcode, Rcode};

/// Looks at a query, and may end it.
type Gate = fn(&Ask<'_>, &mut Answer<'_>) -> Flow;

/// Answers a query, or leaves it to the next source.
type Source = fn(&Ask<'_>, &mut Answer<'_>, &mut Worker) -> Flow;

/// The gates that every query passes, in order. The first that ends the query decides.
const GATES: [Gate; 7] = [
    access::by_listener, // first: a client that is not served shall cost nothing more
    edns_version::check, // before anything that depends on EDNS options
    cookie::check,       // before all that a proven address may skip; adds to every reply
    cookie::only,        // a question for a cookie has no name that what follows could use
    opcode::check,       // what follows understands questions only
    identity::answer,    // class CH has no zones
    class_and_type::check, // what follows understands class IN and real types only
];

/// The sources of answers, with the gates that depend on them. The first that ends the query
/// decides.
const SOURCES: [Source; 6] = [
    middleware::before,    // before all that answers: middleware sees every question
    chain::from_code,      // code may answer for any name, in a zone or not
    access::by_zone,       // as soon as the zone is known, before its data is read
    chain::from_templates, // before all data: they answer for the names that they are for
    hot::answer,           // after all that depends on the client, before all that looks data up
    chain::answer,         // last: always ends or defers the query
];

/// The reply to a message that is no query depends on the client.
const REUSE: Reuse = Reuse::No(NotReused::Gate);

/// Processes a query.
#[inline(always)] // a call for each query would cost as much as a gate
pub fn run(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Verdict {
    for gate in GATES {
        if let Break(verdict) = gate(ask, answer) {
            let verdict = match verdict {
                Verdict::Transfer => transfer::answer(ask, answer, worker),
                // Of the gates, that of operations alone defers: updates.
                Verdict::Defer => update::answer(ask, answer, worker),
                verdict => verdict,
            };
            // After all: it counts replies by their kind.
            return rate::limit(ask, answer, worker, verdict);
        }
    }
    for source in SOURCES {
        if let Break(verdict) = source(ask, answer, worker) {
            let verdict = behind_sources(ask, answer, worker, verdict);
            return rate::limit(ask, answer, worker, verdict);
        }
    }
    unreachable!("the last source ends every query")
}

/// Has code go on behind an answer whose alias leads to it, and shows the reply to middleware,
/// whatever source has made it.
#[inline]
fn behind_sources(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    verdict: Verdict,
) -> Verdict {
    match ask.snapshot.handlers {
        None => verdict,
        Some(_) => behind_code(ask, answer, worker, verdict),
    }
}

/// Goes on as [`behind_sources`] does where there is code.
#[inline(never)] // it would only make the path of zone data longer
fn behind_code(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    mut verdict: Verdict,
) -> Verdict {
    if let Verdict::GoesOn(reason) = verdict {
        verdict = code_target::follow(ask, answer, worker, reason);
    }
    middleware::after(ask, answer, worker, verdict)
}

/// Processes a query that was deferred for what is answered to the target of its aliases: all of
/// what is in front of that was passed before, or written.
#[cold]
pub fn resume_target(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Verdict {
    let Some(prelude) = ask.progress.history.and_then(|history| history.prelude.as_deref()) else {
        return run(ask, answer, worker);
    };
    let ended = GATES.iter().find_map(|gate| gate(ask, answer).break_value());
    let verdict = ended.unwrap_or_else(|| {
        let verdict = code_target::resume(ask, answer, worker, prelude);
        middleware::after(ask, answer, worker, verdict)
    });
    rate::limit(ask, answer, worker, verdict)
}

/// Processes a query that has passed all gates and overlays before, and would pass them again:
/// upstreams have answered it, and its [`Checkpoint`](crate::Checkpoint) is in force. What remains
/// is what the reply depends on.
pub fn resume(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Verdict {
    let _ = cookie::check(ask, answer); // never ends a query
    let Some(verdict) = chain::resume(ask, answer, worker) else {
        return run(ask, answer, worker);
    };
    let verdict = behind_sources(ask, answer, worker, verdict);
    rate::limit(ask, answer, worker, verdict)
}

/// Processes a message that is no well-formed query. It passes the first gate and is counted as any
/// query is; a reply stays unanswered, whatever client sent it.
pub fn refuse(
    ask: &Ask<'_>,
    answer: &mut Answer<'_>,
    worker: &mut Worker,
    fault: Fault,
) -> Verdict {
    if fault == Fault::NotAQuery {
        return Verdict::Drop(Reason::NotAQuery);
    }
    let is_signed = matches!(fault, Fault::Signed(_));
    let verdict = match access::by_listener(ask, answer) {
        // A key may open the listener: its client is told what is wrong with the signature.
        Break(Verdict::Reply(..)) if is_signed && access::may_be_served(ask.snapshot, ask.peer) => {
            of_fault(ask, answer, worker, fault)
        }
        Break(Verdict::Reply(Rcode::NOERROR, ..)) => {
            Verdict::Reply(Rcode::REFUSED, Reason::AccessRefused, REUSE) // not even a question
        }
        Break(verdict) => verdict,
        Continue(()) => match update::relay_unknown(ask, worker).filter(|_| is_signed) {
            Some(verdict) => verdict,
            None => of_fault(ask, answer, worker, fault),
        },
    };
    rate::limit(ask, answer, worker, verdict)
}

/// The reply to a message with a fault, of which the client is told.
fn of_fault(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker, fault: Fault) -> Verdict {
    match (ask.query.opcode(), fault) {
        (Opcode::QUERY | Opcode::NOTIFY | Opcode::UPDATE, Fault::Signed(at)) => {
            signed(ask, answer, worker, at)
        }
        (opcode, fault) => faulty(opcode, fault),
    }
}

/// Processes a query of whose name a rewrite rule has made no name. It passes the gates that the
/// form of the reply depends on.
pub fn fail_rewrite(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker) -> Verdict {
    let gates: [Gate; 3] = [access::by_listener, edns_version::check, cookie::check];
    let ended = gates.iter().find_map(|gate| gate(ask, answer).break_value());
    let failure = Verdict::Reply(Rcode::SERVFAIL, Reason::RewriteFailed, REUSE);
    rate::limit(ask, answer, worker, ended.unwrap_or(failure))
}

/// The reply to a query whose signature is not sound (rfc8945#5.2). The query's TSIG record is read
/// now, as OPT will be written over it.
#[cold]
fn signed(ask: &Ask<'_>, answer: &mut Answer<'_>, worker: &mut Worker, at: u16) -> Verdict {
    let error = ask.signature.and_then(|signature| {
        let error = signature.check.error()?;
        let record = &mut worker.signature_record;
        record.reject(answer.reply.buffer(), usize::from(at), error)?;
        Some(error)
    });
    let reason = match error {
        Some(Rcode::BADKEY) => Reason::UnknownKey,
        Some(Rcode::BADTIME) => Reason::BadTime,
        Some(_) => Reason::BadSignature,
        None => return Verdict::Reply(Rcode::FORMERR, Reason::FormatError, REUSE),
    };
    let _ = cookie::check(ask, answer); // never ends a query; the reply has its usual form
    Verdict::Reply(Rcode::NOTAUTH, reason, REUSE)
}

/// The reply to a message that is no well-formed query (rfc8906#3).
fn faulty(opcode: Opcode, fault: Fault) -> Verdict {
    match (opcode, fault) {
        (Opcode::QUERY, Fault::NoQuestion(rcode)) => {
            Verdict::Reply(rcode, Reason::FormatError, REUSE)
        }
        (Opcode::QUERY | Opcode::NOTIFY | Opcode::UPDATE, _) => {
            Verdict::Reply(Rcode::FORMERR, Reason::FormatError, REUSE)
        }
        _ => Verdict::Reply(Rcode::NOTIMP, Reason::NotImplemented, REUSE),
    }
}
