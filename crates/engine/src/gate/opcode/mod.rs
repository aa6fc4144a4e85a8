//! Operations other than a query.

use crate::answer::Answer;
use crate::ask::Ask;
use crate::notify;
use crate::reason::Reason;
use crate::reuse::NotReused;
use crate::verdict::{Flow, reply};
use std::ops::ControlFlow::Continue;
use zonda_wire::{Opcode, Rcode};

/// Answers operations other than a query: NOTIFY is taken, UPDATE gets REFUSED, any other NOTIMP.
#[inline]
pub fn check(ask: &Ask<'_>, answer: &mut Answer<'_>) -> Flow {
    if ask.query.opcode() == Opcode::QUERY {
        return Continue(()); // first, as almost all messages are
    }
    match ask.query.opcode() {
        Opcode::NOTIFY => notify::answer(ask, answer),
        Opcode::UPDATE => reply(Rcode::REFUSED, Reason::NotServed, NotReused::Gate),
        _ => reply(Rcode::NOTIMP, Reason::NotImplemented, NotReused::Gate),
    }
}
