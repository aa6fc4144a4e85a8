//! Zonda for Node.js: what the npm package calls.
//!
//! ```text
//! workers ─► Runtime ─ wake ─► JavaScript ─ take ──► queries, many in one array of octets
//!                                  │ handlers
//!            Answerer ◄─ complete ─┘ replies, many in one array of octets
//! ```
//! One call wakes JavaScript for all queries that wait, one takes them, and one gives all replies
//! of a turn back. What lies in the arrays is in [`batch`]; JavaScript's half in `lib/batch.js`.
//!
//! What is asked of a store is done by a thread of that store; one that is written in JavaScript is
//! asked by calls that wait in [`own_store`] until JavaScript is woken.
//!
//! Deliberately absent: handlers, middleware and records as programs see them: JavaScript.

// A test build, which clippy makes of all targets, has none of what napi's macros export.
#![cfg_attr(test, allow(dead_code))]

mod batch;
mod core;
mod own_store;
mod read;
mod records;
mod server;
mod store;
mod table;

pub use core::Core;
pub use store::StoreHandle;
