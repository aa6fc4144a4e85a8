//! Operations other than a query.

use crate::context::{Context, Flow, reply};
use crate::reason::Reason;
use std::ops::ControlFlow::Continue;
use zonda_wire::{Opcode, Rcode};

/// Answers operations other than a query: those that exist are refused, others are not implemented.
#[inline]
pub fn check(cx: &mut Context<'_>) -> Flow {
    match cx.query.opcode() {
        Opcode::QUERY => Continue(()),
        Opcode::NOTIFY | Opcode::UPDATE => reply(Rcode::REFUSED, Reason::NotServed),
        _ => reply(Rcode::NOTIMP, Reason::NotImplemented),
    }
}
