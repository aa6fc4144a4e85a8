//! Versions of EDNS that this server does not know (rfc6891#6.1.3).

use crate::context::{Context, Flow, reply};
use crate::reason::Reason;
use std::ops::ControlFlow::Continue;
use zonda_wire::Rcode;

/// Answers a query with an EDNS version other than 0.
#[inline]
pub fn check(cx: &mut Context<'_>) -> Flow {
    match cx.query.edns {
        Some(edns) if edns.version != 0 => reply(Rcode::BADVERS, Reason::BadVersion),
        _ => Continue(()),
    }
}
