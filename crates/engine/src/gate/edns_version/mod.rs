//! Versions of EDNS that this server does not know (rfc6891#6.1.3).

use crate::answer::Answer;
use crate::ask::Ask;
use crate::reason::Reason;
use crate::reuse::NotReused;
use crate::verdict::{Flow, reply};
use std::ops::ControlFlow::Continue;
use zonda_wire::Rcode;

/// Answers a query with an EDNS version other than 0.
#[inline]
pub fn check(ask: &Ask<'_>, _: &mut Answer<'_>) -> Flow {
    match ask.query.edns {
        Some(edns) if edns.version != 0 => {
            reply(Rcode::BADVERS, Reason::BadVersion, NotReused::Gate)
        }
        _ => Continue(()),
    }
}
