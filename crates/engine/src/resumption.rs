//! Queries that come to the engine once more, and what has become known of them meanwhile.

use crate::answer_facts::AnswerBelow;
use crate::code::{Ending, HandlerReply, History, PassedRoute, ResumePoint};
use crate::deferral::{UpdateOutcome, UpstreamAnswer};
use crate::message::Peer;
use crate::option_codes::OptionCodes;
use crate::prepared::RewrittenQuery;
use crate::reason::Reason;
use crate::snapshot::Settings;
use zonda_rewrite::Change;
use zonda_wire::Query;

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
    /// The query as it was read from these octets before it was deferred, if it was read.
    pub query: Option<&'a Query>,
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
    /// The update has been carried out, or refused.
    Update(&'a UpdateOutcome),
    /// The query has passed the code that runs elsewhere, which asks what becomes of it below.
    Below,
}

/// The outcome of a query that was deferred to the user's code.
#[derive(Clone, Copy, Debug)]
pub enum HandlerOutcome<'a> {
    /// The code has filled in a reply, or passed the query on.
    Reply(&'a HandlerReply),
    /// The code was shown this answer to the query, and has left it unchanged.
    AsAnswered(&'a AnswerBelow),
    /// There is no reply of the code, for this reason.
    Failed(Reason),
}

/// How far a query has come.
#[derive(Clone, Copy)]
pub struct Progress<'a> {
    /// What the query was deferred for before.
    pub resumption: Resumption<'a>,
    /// The facts from before it was deferred; none if it is new.
    pub history: Option<&'a History>,
    /// What rules have made of the question; none if they have not, or if the query was deferred.
    pub rewritten: Option<&'a RewrittenQuery>,
}

impl Progress<'_> {
    /// The progress of a query which has just been received.
    pub const NEW: Self = Self { resumption: Resumption::New, history: None, rewritten: None };

    /// Whether the query is a client's, not one that code asks to get the answer below it.
    #[inline]
    pub fn is_counted(&self) -> bool {
        self.history.is_none_or(|history| !history.asked_by_code)
    }
}

/// Where a query enters the user's code.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// At the middleware of this number.
    Middleware(usize),
    /// Behind the handler that it has passed; without one, behind those elsewhere that come first.
    Handlers(Option<PassedRoute>),
    /// At its handlers in the worker: it has passed all code elsewhere.
    HandlersHere,
    /// The query enters behind all code, which has passed it on.
    Zones,
    /// The query enters behind all code, which has left this answer unchanged; at its handlers in
    /// the worker where the answer has to be made again.
    Answered(&'a AnswerBelow),
    /// Nowhere: the code has filled in this reply.
    Filled(&'a HandlerReply),
    /// Nowhere: there is no reply of the code, for this reason.
    Failed(Reason),
}

impl<'a> Progress<'a> {
    /// Where the query enters the user's code.
    pub fn entry(&self) -> Entry<'a> {
        match self.resumption {
            Resumption::New => Entry::Middleware(0),
            Resumption::Upstream(_) | Resumption::Update(_) => Entry::Zones,
            Resumption::Below => Entry::HandlersHere,
            Resumption::Code(HandlerOutcome::Reply(reply)) if reply.ending == Ending::PassOn => {
                match self.history.map(|history| history.then).unwrap_or_default() {
                    ResumePoint::Handlers(passed) => Entry::Handlers(passed),
                    ResumePoint::Middleware(number) => Entry::Middleware(number),
                }
            }
            Resumption::Code(HandlerOutcome::Reply(reply)) => Entry::Filled(reply),
            Resumption::Code(HandlerOutcome::AsAnswered(below)) => Entry::Answered(below),
            Resumption::Code(HandlerOutcome::Failed(reason)) => Entry::Failed(reason),
        }
    }

    /// What rules have made of the question, now or before the query was deferred.
    pub fn change(&self) -> Option<&'a Change> {
        let now = self.rewritten.map(|it| &it.change);
        now.or_else(|| self.history.and_then(|history| history.change.as_deref()))
    }

    /// The place on a search path of the name that the query was deferred for.
    pub fn search_step(&self) -> Option<u8> {
        self.history.and_then(|history| history.search_step)
    }

    /// The codes among the query's options on which options of queries to upstreams depend.
    #[inline]
    pub fn option_codes(&self, query: &Query, message: &[u8], settings: &Settings) -> OptionCodes {
        match settings.option_codes.is_empty() {
            true => OptionCodes::default(),
            false => self.find_option_codes(query, message, settings),
        }
    }

    /// The codes among the query's options on which options of queries to upstreams depend.
    #[cold]
    fn find_option_codes(&self, query: &Query, message: &[u8], settings: &Settings) -> OptionCodes {
        match (self.history, self.resumption) {
            // What is kept of a query that was deferred may lack its options.
            (Some(history), Resumption::Upstream(_) | Resumption::Code(_)) => history.option_codes,
            _ => settings.option_codes.in_query(query, message),
        }
    }

    /// The answer of upstreams, if the query was deferred to them.
    #[inline]
    pub fn upstream_answer(&self) -> Option<&'a UpstreamAnswer<'a>> {
        match self.resumption {
            Resumption::Upstream(answer) => Some(answer),
            Resumption::New | Resumption::Code(_) | Resumption::Update(_) | Resumption::Below => {
                None
            }
        }
    }
}
