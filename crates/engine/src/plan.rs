//! The order in which a query is processed.

use crate::context::{Context, Flow, Verdict};
use crate::gate::{
    access, class_and_type, cookie, edns_version, identity, middleware, opcode, rate,
};
use crate::reason::Reason;
use crate::source::{chain, code, hot};
use std::ops::ControlFlow::{Break, Continue};
use zonda_wire::{Fault, Opcode, Rcode};

/// Looks at a query, and may end it.
type Step = fn(&mut Context<'_>) -> Flow;

/// The gates that every query passes, in order. The first that ends the query decides.
const GATES: [Step; 7] = [
    access::by_listener, // first: a client that is not served shall cost nothing more
    edns_version::check, // before anything that depends on EDNS options
    cookie::check,       // before all that a proven address may skip; adds to every reply
    cookie::only,        // a question for a cookie has no name that what follows could use
    opcode::check,       // what follows understands questions only
    identity::answer,    // class CH has no zones
    class_and_type::check, // what follows understands class IN and real types only
];

/// The sources of answers, with the gates that depend on them. The first that ends the query decides.
const SOURCES: [Step; 5] = [
    middleware::before, // before all that answers: middleware sees every question
    code::answer,       // code may answer for any name, in a zone or not
    access::by_zone,    // as soon as the zone is known, before its data is read
    hot::answer,        // after all that depends on the client, before all that looks data up
    chain::answer,      // last: always ends or defers the query
];

/// Processes a query.
#[inline]
pub fn run(cx: &mut Context<'_>) -> Verdict {
    for gate in GATES {
        if let Break(verdict) = gate(cx) {
            return rate::limit(cx, verdict); // after all: it counts replies by their kind
        }
    }
    for source in SOURCES {
        if let Break(verdict) = source(cx) {
            let verdict = middleware::after(cx, verdict); // whatever source has made the reply
            return rate::limit(cx, verdict);
        }
    }
    unreachable!("the last source ends every query")
}

/// Processes a message that is no well-formed query. It passes the first gate and is counted like
/// the others; a reply stays unanswered, whatever client sent it.
pub fn refuse(cx: &mut Context<'_>, fault: Fault) -> Verdict {
    if fault == Fault::NotAQuery {
        return Verdict::Drop(Reason::NotAQuery);
    }
    let verdict = match access::by_listener(cx) {
        Break(verdict) => verdict,
        Continue(()) => match (cx.query.opcode(), fault) {
            (Opcode::QUERY | Opcode::NOTIFY | Opcode::UPDATE, Fault::Signed(at)) => signed(cx, at),
            (opcode, fault) => faulty(opcode, fault),
        },
    };
    rate::limit(cx, verdict)
}

/// The reply to a query that is signed: there are no keys here (rfc8945#5.2). The query's TSIG
/// record is read now, as OPT will be written over it.
#[cold]
fn signed(cx: &mut Context<'_>, at: u16) -> Verdict {
    match cx.worker.unknown_key.set(cx.reply.buffer(), usize::from(at)) {
        Some(()) => {
            let _ = cookie::check(cx); // it never ends a query, and the reply is one like others
            Verdict::Reply(Rcode::NOTAUTH, Reason::UnknownKey)
        }
        None => Verdict::Reply(Rcode::FORMERR, Reason::FormatError),
    }
}

/// The reply to a message that is no well-formed query (rfc8906#3).
fn faulty(opcode: Opcode, fault: Fault) -> Verdict {
    match (opcode, fault) {
        (Opcode::QUERY, Fault::NoQuestion(rcode)) => Verdict::Reply(rcode, Reason::FormatError),
        (Opcode::QUERY | Opcode::NOTIFY | Opcode::UPDATE, _) => {
            Verdict::Reply(Rcode::FORMERR, Reason::FormatError)
        }
        _ => Verdict::Reply(Rcode::NOTIMP, Reason::NotImplemented),
    }
}
