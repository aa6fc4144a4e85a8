//! Forwarding without sockets: what an upstream is, whom to ask and when again, what to believe.
//!
//! | file | what |
//! |---|---|
//! | `notation` | an upstream and how a configuration writes it |
//! | `check` | whether a message answers what was sent, and what to do when it does not |
//! | `answer` | the records of an answer that belong to the question |
//!
//! Deliberately absent: sockets, clocks, threads, randomness, and the cache. Times are nanoseconds
//! of a clock that the caller chooses, and arguments.

pub mod answer;
pub mod check;
pub mod notation;

pub use answer::{Answer, Unfit};
pub use check::{Failure, Mismatch, Repeat, Sent, Verdict, check};
pub use notation::{Host, NotationError, Transport, Upstream};
