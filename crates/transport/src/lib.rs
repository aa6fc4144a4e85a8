//! UDP workers and TCP connections that call the engine.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Responder`] | what a transport asks of the engine |
//! | [`udp`] | one thread per socket: receive a batch, answer, send |
//! | [`tcp`] | connections: admission, framing, deadlines |
//! | [`forward`] | queries that other servers are asked for |
//! | [`handlers`] | queries that the user's code is asked for |
//! | [`faults`] | what happens when the engine panics, or panics too often |
//!
//! Deliberately absent: configuration syntax, metric names, sockets' creation (netio), and DNS but
//! for the header of the one reply that is made when the engine has failed.

mod clock;
mod counter;
mod deferred;
pub mod faults;
pub mod forward;
pub mod handlers;
mod memory;
mod replies;
mod responder;
mod servfail;
pub mod tcp;
pub mod udp;

pub use clock::Clock;
pub use counter::SharedCounter;
pub use deferred::{CODE_BYTES_MAX, Deferrals, Deferred, Way, kept_octets};
pub use responder::{LazyResponder, Responder};
