//! How a query ends.

use crate::reason::Reason;
use crate::reuse::{NotReused, Reuse};
use std::ops::ControlFlow;
use zonda_wire::Rcode;

/// How a query ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The reply is sent with this response code, and may be reused or not.
    Reply(Rcode, Reason, Reuse),
    /// No reply is sent.
    Drop(Reason),
    /// The answer that was written for this reason ends with an alias of a name that code may have:
    /// its answer comes behind that, and the plan asks for it. No query ends so.
    GoesOn(Reason),
    /// The reply is a zone, in as many messages as it takes: [`Worker::transfer`] has it.
    ///
    /// [`Worker::transfer`]: crate::worker::Worker::transfer
    Transfer,
    /// What [`Worker::deferral`](crate::worker::Worker::deferral) says must be fetched. Nothing was
    /// written yet.
    Defer,
}

/// The decision of a gate or a source: to end the query, or to leave it to the next one.
pub type Flow = ControlFlow<Verdict>;

/// Ends a query with a reply that is not put into the hot table.
#[inline]
pub fn reply(rcode: Rcode, reason: Reason, not_reused: NotReused) -> Flow {
    ControlFlow::Break(Verdict::Reply(rcode, reason, Reuse::No(not_reused)))
}

/// A verdict, and whether there is one, are returned in a register.
const _: () = assert!(size_of::<Flow>() <= size_of::<u64>());
