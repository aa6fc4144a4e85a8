//! The order in which a query is processed.

use crate::context::{Context, Flow, Verdict, reply};
use crate::hot;
use crate::reason::Reason;
use crate::stage::{access, cookie, handler, identity, rate, zone};
use std::ops::ControlFlow::{Break, Continue};
use zonda_wire::query::HEADER_BYTES;
use zonda_wire::{Class, Fault, Opcode, Rcode, Type};

/// Looks at a query, and may end it.
type Stage = fn(&mut Context<'_>) -> Flow;

/// The stages in front of the zones, in order. The first that ends the query decides.
const FRONT: [Stage; 8] = [
    access::by_listener, // first: whom we do not serve shall cost us nothing more
    edns_version,        // before anything that depends on EDNS options
    cookie::check,       // before all that a proven address may skip; adds to every reply
    cookie_only,         // a question for a cookie has no name that later stages could use
    opcode,              // what follows understands questions only
    identity::answer,    // class CH has no zones
    class_and_type,      // what follows understands class IN and real types only
    handler::answer,     // code may answer for any name, in a zone or not
];

/// The stages that follow.
const ZONES: [Stage; 3] = [
    access::by_zone, // as soon as the zone is known, before its data is read
    hot::answer,     // after all that depends on the client, before all that looks data up
    zone::answer,    // last: always ends or defers the query
];

/// Processes a query.
#[inline]
pub fn run(cx: &mut Context<'_>) -> Verdict {
    for stage in FRONT {
        if let Break(verdict) = stage(cx) {
            return rate::limit(cx, verdict); // after all: it counts replies by their kind
        }
    }
    let verdict = behind_handlers(cx);
    rate::limit(cx, verdict)
}

/// What becomes of a query that no code answers.
#[inline]
pub fn behind_handlers(cx: &mut Context<'_>) -> Verdict {
    for stage in ZONES {
        if let Break(verdict) = stage(cx) {
            return verdict;
        }
    }
    unreachable!("the last stage ends every query")
}

/// Processes a message that is no well-formed query. It passes the first stage and is counted like
/// the others; a reply stays unanswered, whoever sent it.
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

/// Answers versions of EDNS that we do not know (rfc6891#6.1.3).
fn edns_version(cx: &mut Context<'_>) -> Flow {
    match cx.query.edns {
        Some(edns) if edns.version != 0 => reply(Rcode::BADVERS, Reason::BadVersion),
        _ => Continue(()),
    }
}

/// Answers a query without a question, which may ask for a cookie (rfc7873#5.4).
fn cookie_only(cx: &mut Context<'_>) -> Flow {
    if cx.query.question_end() > HEADER_BYTES || cx.query.opcode() != Opcode::QUERY {
        return Continue(());
    }
    match cx.cookie {
        Some(_) => reply(Rcode::NOERROR, Reason::CookieOnly),
        None => reply(Rcode::FORMERR, Reason::FormatError),
    }
}

/// Answers operations other than a query: those that exist are refused, others are not implemented.
fn opcode(cx: &mut Context<'_>) -> Flow {
    match cx.query.opcode() {
        Opcode::QUERY => Continue(()),
        Opcode::NOTIFY | Opcode::UPDATE => reply(Rcode::REFUSED, Reason::NotServed),
        _ => reply(Rcode::NOTIMP, Reason::NotImplemented),
    }
}

/// Answers classes and types that zones do not hold.
fn class_and_type(cx: &mut Context<'_>) -> Flow {
    match (cx.query.qclass, cx.query.qtype) {
        (Class::IN, Type::AXFR | Type::IXFR) => reply(Rcode::REFUSED, Reason::TransferRefused),
        // They are never a question's type. 0 is none at all (rfc6895#3.1).
        (Class::IN, Type(0) | Type::OPT | Type::TKEY | Type::TSIG) => {
            reply(Rcode::FORMERR, Reason::FormatError)
        }
        (Class::IN, Type::MAILA | Type::MAILB) => reply(Rcode::NOTIMP, Reason::NotServed),
        (Class::IN, _) => Continue(()),
        _ => reply(Rcode::REFUSED, Reason::NotServed),
    }
}
