//! The user's code: which names it answers for, and how it is called.
//!
//! ```text
//! query ─► middleware before ─► route ─► handler ──┬─ answered ──────┬─► middleware after ─► reply
//!                                 └─ none ─► zones ┴─ passed on ─────┘
//! ```
//! Between a route and its handler are two caches of replies: the engine's own, then that of the
//! user's code, if there is one.
//!
//! A query that a handler passes on goes to the handler of the next wider pattern, and from the
//! last one to the zones. Middleware is for all names, or for those of a pattern: then it is a
//! [`Guard`], which claims no name. Code that runs in the worker is called with a [`HandlerReply`]
//! to fill in; code that runs elsewhere has the query deferred, and gives a `HandlerReply` later.
//!
//! Deliberately absent: how code elsewhere is reached, and in which language it is written.

mod cache;
pub(crate) mod call;
pub(crate) mod claim;
mod client;
mod dependence;
mod elsewhere;
mod ending;
mod former;
mod guards;
mod handler;
pub(crate) mod handler_cache;
mod handlers;
mod history;
mod keep;
mod looks;
mod made_soa;
mod middleware;
pub(crate) mod negative_soa;
mod pattern;
mod query;
mod query_state;
mod record;
mod reply;
mod reply_text;
mod routes;
mod state;
mod watch;

pub use cache::Cache;
pub use elsewhere::{Elsewhere, NO_HANDLER};
pub use ending::{Ending, Overfull};
pub use guards::{Guard, Guards};
pub use handler::{Handler, Source};
pub use handlers::{Callee, Handlers, PanicLog, panic_message};
pub(crate) use history::NO_TAGS;
pub use history::{History, ResumePoint, Tags};
pub use keep::{Keep, Vary};
pub use middleware::Stage;
pub use negative_soa::enclosing_soa;
pub use pattern::{Pattern, PatternError};
pub use query::Query;
/// The name of [`Query`] where a [message's](zonda_wire::Query) is meant too.
pub use query::Query as HandlerQuery;
pub use query_state::QueryState;
pub use record::Record;
/// The name of [`Reply`] where the [writer](zonda_wire::Reply) of one is meant too.
pub use reply::Reply as HandlerReply;
pub use reply::{NegativeCaching, Reply};
pub use routes::{Claim, PassedRoute, Route, Routes};
pub use watch::{Call, Watch};
pub use zonda_zone::LookupName;
