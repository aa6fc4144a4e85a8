//! Queries that come to the engine once more, and what has become known of them meanwhile.

use crate::code::{Ending, HandlerReply, History, Then};
use crate::deferral::UpstreamAnswer;
use crate::message::Peer;
use crate::reason::Reason;

/// A query that was deferred before, and the place for its reply.
pub struct DeferredQuery<'a> {
    /// The client that the reply goes to.
    pub peer: &'a Peer,
    /// The facts about the query from before it was deferred.
    pub history: &'a History,
    /// The query's octets, and behind them room for the reply, which is written over them.
    pub buffer: &'a mut [u8],
    /// The number of octets that the query has.
    pub len: usize,
}

/// How far a query has come, and what it was deferred for.
#[derive(Clone, Copy, Debug)]
pub enum Resumption<'a> {
    /// The query is new: nothing has been asked for it.
    New,
    /// Upstreams have answered, or failed to.
    Upstream(&'a UpstreamAnswer<'a>),
    /// The user's code has answered, or failed to.
    Code(HandlerOutcome<'a>),
    /// The query has passed the code that runs elsewhere, which asks what becomes of it below.
    Below,
}

/// What became of a query that was deferred to the user's code.
#[derive(Clone, Copy, Debug)]
pub enum HandlerOutcome<'a> {
    /// The code has filled in a reply, or passed the query on.
    Reply(&'a HandlerReply),
    /// There is no reply of the code, for this reason.
    Failed(Reason),
}

/// Where a query enters the user's code.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Entry<'a> {
    /// At the middleware of this number.
    Middleware(usize),
    /// At its handler, if that runs in the worker.
    Handler,
    /// Behind all code: it has passed the query on.
    Zones,
    /// Nowhere: this is what became of it.
    Ended(HandlerOutcome<'a>),
}

impl<'a> Resumption<'a> {
    /// Where a query with such a history enters the user's code.
    pub(crate) fn entry(self, history: Option<&History>) -> Entry<'a> {
        match self {
            Self::New => Entry::Middleware(0),
            Self::Upstream(_) => Entry::Zones,
            Self::Below => Entry::Handler,
            Self::Code(HandlerOutcome::Reply(reply)) if reply.ending == Ending::PassOn => {
                match history.map_or(Then::Handler, |history| history.then) {
                    Then::Handler => Entry::Handler,
                    Then::Middleware(number) => Entry::Middleware(number),
                    Then::Zones => Entry::Zones,
                }
            }
            Self::Code(outcome) => Entry::Ended(outcome),
        }
    }

    /// The answer of upstreams, if the query was deferred to them.
    #[inline]
    pub(crate) fn upstream_answer(self) -> Option<&'a UpstreamAnswer<'a>> {
        match self {
            Self::Upstream(answer) => Some(answer),
            Self::New | Self::Code(_) | Self::Below => None,
        }
    }
}
