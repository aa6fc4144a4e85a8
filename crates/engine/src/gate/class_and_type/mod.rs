//! Classes and types that no zone holds.

use crate::context::{Context, Flow, reply};
use crate::reason::Reason;
use std::ops::ControlFlow::Continue;
use zonda_wire::{Class, Rcode, Type};

/// Answers a question for a class or type that zones do not hold.
#[inline]
pub fn check(cx: &mut Context<'_>) -> Flow {
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
