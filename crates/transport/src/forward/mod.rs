//! Queries that other servers are asked for.
//!
//! ```text
//! UDP workers, TCP connections ─ deferred queries ─► inbox ─► forwarder thread ─► upstreams
//!            ▲                                                 fetches │ ▲ answers
//!            └──────────── replies over the same socket ◄── cache ◄────┴─┘
//! ```
//! Equal questions belong to one thread, where they wait for one answer together. What is believed
//! is judged by `upstream`, what is kept by the `cache`, and the reply is written by the engine.
//!
//! Deliberately absent: who may ask (the plan has decided that), and the choice of the upstream
//! beyond asking the next one when the last did not answer.

mod ask;
mod counters;
mod fetch;
mod inbox;
mod judge;
mod ports;
mod stream;
mod thread;

pub use counters::ForwarderCounters;
pub use fetch::{Group, Groups};
pub use inbox::{Deferred, Forwarders, Inbox, Way};
pub use thread::{ForwarderConfig, ForwarderThread, stop_forwarders};
