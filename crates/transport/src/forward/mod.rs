//! Queries that other servers are asked for.

mod inbox;

pub use inbox::{Deferred, Forwarders, Inbox, Way};
