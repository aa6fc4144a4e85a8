//! Classes and types that no zone holds.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::reason::Reason;
use crate::reuse::NotReused;
use crate::verdict::{Flow, Verdict, reply};
use std::ops::ControlFlow::{Break, Continue};
use zonda_wire::{Class, Rcode, Type};

/// Answers a question for a class or type that zones do not hold. Transfers are decided about by
/// the plan's [`transfer`](crate::transfer).
#[inline]
pub fn check(ask: &Ask<'_>, _: &mut Answer<'_>) -> Flow {
    match (ask.query.qclass, ask.query.qtype) {
        (Class::IN, Type(1..=40)) => Continue(()), // first: data types, which almost all ask for
        (Class::IN, Type::AXFR | Type::IXFR) => Break(Verdict::Transfer),
        // They are never a question's type. 0 is none at all (rfc6895#3.1).
        (Class::IN, Type(0) | Type::OPT | Type::TKEY | Type::TSIG) => {
            reply(Rcode::FORMERR, Reason::FormatError, NotReused::Gate)
        }
        (Class::IN, Type::MAILA | Type::MAILB) => {
            reply(Rcode::NOTIMP, Reason::NotServed, NotReused::Gate)
        }
        (Class::IN, _) => Continue(()),
        _ => reply(Rcode::REFUSED, Reason::NotServed, NotReused::Gate),
    }
}
