//! Queries over connections, and what comes of them: to upstreams that are always asked over TCP,
//! TLS, HTTPS or QUIC, and to upstreams asked over UDP when an answer was truncated.
//!
//! Deliberately absent: the connections, which all threads share.

use std::time::Duration;

use zonda_client::Fault;
use zonda_upstream::check::Failure;
use zonda_upstream::exchange::Outcome;

use crate::ports::WaitingQuery;

/// The answer, or the fault, of a query over a connection.
#[derive(Debug)]
pub struct StreamAnswer {
    /// The query, and its purpose.
    pub waiting: WaitingQuery,
    /// The message that answers it; nothing when none came in time.
    pub message: Option<Result<Vec<u8>, Fault>>,
}

/// How long a query over a connection waits, and for what.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long it waits for its answer at most.
    pub limit: Duration,
    /// While no connection can be had, it waits for one; else that is told at once.
    pub waits_for_connection: bool,
}

/// Returns the outcome of a query for which a connection has no answer. What asking again cannot
/// mend is a failure; the rest is asked again when it is overdue.
pub fn outcome(fault: &Fault) -> Outcome {
    match fault {
        Fault::Certificate(_) => Outcome::Failed(Failure::Untrusted),
        Fault::Http { status, .. } => Outcome::Failed(Failure::Http(*status)),
        Fault::Flood => Outcome::Failed(Failure::Flood),
        Fault::MediaType(_) | Fault::Malformed | Fault::Rules(_) => {
            Outcome::Failed(Failure::Malformed)
        }
        Fault::NoAddress
        | Fault::Refused
        | Fault::Unreachable(_)
        | Fault::Handshake(_)
        | Fault::Closed
        | Fault::Aborted(_)
        | Fault::Late
        | Fault::Busy => Outcome::Unreachable,
    }
}
