//! Outcomes of queries and questions.
//!
//! Deliberately absent: what follows from it, which [`exchange`](crate::exchange) decides.

use std::fmt;

use zonda_wire::{Ede, Rcode};

use crate::check::{Doubt, Failure};

/// Why there is no answer; the text of the Extended DNS Error (rfc8914#4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// All upstreams are down: 22, No Reachable Authority.
    AllDown,
    /// All that are not down have as many queries outstanding as they may: 0, Other Error.
    Busy,
    /// None answered in time: 22, No Reachable Authority.
    Timeout,
    /// The network could not deliver: 23, Network Error.
    Unreachable,
    /// All that were asked failed, the last like this: 23, Network Error, or 24, Invalid Data.
    Failed(Failure),
}

impl Reason {
    /// Returns the code of the Extended DNS Error.
    #[must_use]
    pub fn ede(self) -> Ede {
        match self {
            Self::Busy => Ede::OTHER,
            Self::AllDown | Self::Timeout | Self::Failed(Failure::Loop) => {
                Ede::NO_REACHABLE_AUTHORITY
            }
            Self::Failed(Failure::Malformed | Failure::Unfit(_)) => Ede::INVALID_DATA,
            Self::Unreachable | Self::Failed(_) => Ede::NETWORK_ERROR,
        }
    }
}

impl fmt::Display for Reason {
    /// Returns the text of the Extended DNS Error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllDown => f.write_str("all upstreams are down"),
            Self::Busy => f.write_str("too many queries wait for the upstreams"),
            Self::Timeout => f.write_str("no upstream answered in time"),
            Self::Unreachable => f.write_str("no upstream can be reached"),
            Self::Failed(failure) => write!(f, "all upstreams failed; of the last, {failure}"),
        }
    }
}

/// The outcome of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The upstream has answered.
    Answered,
    /// The upstream failed, or its answer was unfit.
    Failed(Failure),
    /// The network could not deliver the query.
    Unreachable,
    /// The query's port was closed before an answer came, as newer queries needed it: nothing is
    /// known about the upstream, and an answer would not be received.
    PortClosed,
    /// The upstream must be queried in another form.
    Redirected(Redirect),
}

impl Outcome {
    /// Returns what a doubt comes to when it is believed, of a query with or without EDNS.
    pub(crate) fn of(doubt: Doubt, edns: bool) -> Self {
        match doubt {
            Doubt::Case => Self::Redirected(Redirect::WithoutMixedCase),
            Doubt::NoCookie => Self::Redirected(Redirect::WithoutCookie),
            Doubt::Forged => Self::Redirected(Redirect::FromAnotherPort),
            Doubt::NoQuestion(Rcode::FORMERR | Rcode::NOTIMP) if edns => {
                Self::Redirected(Redirect::WithoutEdns)
            }
            Doubt::NoQuestion(rcode) => Self::Failed(Failure::Rcode(rcode)),
        }
    }
}

/// How far the last query to an upstream has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastQuery {
    /// The upstream has not answered.
    Unanswered,
    /// The query has ended with this outcome.
    Ended(Outcome),
}

impl fmt::Display for LastQuery {
    /// Writes what an Extended DNS Error says about an upstream that gave no answer.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered => f.write_str("timed out"),
            Self::Ended(Outcome::Failed(failure)) => write!(f, "{failure}"),
            Self::Ended(Outcome::Unreachable) => f.write_str("cannot be reached"),
            Self::Ended(Outcome::PortClosed) => f.write_str("the port of the query was closed"),
            Self::Ended(Outcome::Redirected(_)) => f.write_str("needs the query in another form"),
            Self::Ended(Outcome::Answered) => f.write_str("answered"),
        }
    }
}

/// What an upstream could not handle: a [`Repeat`](crate::Repeat) without its octets, or a
/// [`Doubt`] that is accepted. A server cookie is put into the [`Member`](crate::pool::Member)
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// The answer was truncated.
    ToTcp,
    /// Query without an OPT record.
    WithoutEdns,
    /// Query without mixed case.
    WithoutMixedCase,
    /// A server cookie was missing.
    WithCookie,
    /// A server cookie, none of which came back.
    WithoutCookie,
    /// Query from another port: a forger may know the former one.
    FromAnotherPort,
}
