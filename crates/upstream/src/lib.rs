//! Forwarding without sockets: what an upstream is, whom to ask and when again, what to believe.
//!
//! | file | what |
//! |---|---|
//! | `notation` | an upstream and how a configuration writes it |
//! | `pool` | the upstreams of a zone, and which one is asked |
//! | `exchange` | the life of one question: whom it is sent to, when again, what clients are told |
//! | `rtt`, `health`, `capability` | what is known of an upstream |
//! | `budget` | how many queries may be sent beside those that questions need |
//! | `admission` | who may wait when many want to |
//! | `query` | the query that an upstream gets |
//! | `check` | whether a message answers what was sent, and what to do when it does not |
//! | `answer` | the records of an answer that belong to the question |
//!
//! Deliberately absent: sockets, clocks, threads, randomness, and the cache. Times are nanoseconds
//! of a clock that the caller chooses, and arguments.

pub mod admission;
pub mod answer;
mod budget;
pub mod capability;
pub mod check;
pub mod exchange;
pub mod health;
pub mod notation;
pub mod pool;
pub mod query;
pub mod rtt;

pub use admission::{Admission, Ticket};
pub use answer::{Answer, Unfit};
pub use check::{Failure, Mismatch, Repeat, Sent, Verdict, check};
pub use exchange::{Action, Exchange, Outcome};
pub use notation::{Host, NotationError, Transport, Upstream};
pub use pool::{Member, Policy, Pool, Settings};
pub use query::Question;

/// Nanoseconds of a millisecond.
const MILLISECOND_NANOS: u64 = 1_000_000;
/// Nanoseconds of a second.
const SECOND_NANOS: u64 = 1_000_000_000;
