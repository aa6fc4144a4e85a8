//! Deferred queries: the queues that they wait in, and their replies.
//!
//! A query that the engine cannot answer at once is deferred: the thread that received it copies
//! what the reply depends on into a [`Deferred`] and puts that into the [`Queue`] that the engine
//! names. The threads behind a queue find out what is missing, and have [`Replies`] write the reply
//! and send it over the socket or connection that the query came by.
//!
//! | module | what it holds |
//! |---|---|
//! | `deferred` | a query that is answered later |
//! | `queues` | the queues, and what becomes of a query that none of them takes |
//! | `responder` | what transports and queues ask of the engine |
//! | `replies` | replies to deferred queries, gathered by the socket that they leave from |
//! | [`faults`], [`servfail`] | what happens when the engine panics |
//! | `clock`, `counter`, `memory` | what all threads that answer queries need |
//!
//! Deliberately absent: what is behind a queue, and the listeners in front of it.

mod clock;
mod counter;
mod deferred;
pub mod faults;
mod memory;
mod queues;
mod replies;
mod responder;
pub mod servfail;

pub use clock::Clock;
pub use counter::SharedCounter;
pub use deferred::{CODE_BYTES_MAX, Deferred, ReplyTo, keep_octets};
pub use memory::Peak;
pub use queues::{Deferrals, Queue};
pub use replies::{Replies, SocketReplies};
pub use responder::{LazyResponder, Responder};
