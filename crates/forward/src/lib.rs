//! Forwarder threads: queries that upstreams answer.
//!
//! ```text
//! UDP workers, TCP connections ─ deferred queries ─► inbox ─► forwarder thread ─► upstreams
//!            ▲                                                 fetches │ ▲ answers
//!            └──────────── replies over the same socket ◄── cache ◄────┴─┘
//! ```
//! Equal questions belong to one thread, where they wait for one answer together. Which upstream to
//! ask, and what to believe, is decided by `upstream`; what to keep, and for how long, by `cache`;
//! and the reply is written by the engine.
//!
//! | file | what |
//! |---|---|
//! | `inbox` | what other threads hand over |
//! | `thread` | the loop: waits, takes what is ready, sends |
//! | `forwarder/` | what is done with each event, by the owners below |
//! | `waiters`, `pending` | the places of queries that wait, and the queries |
//! | `fetch`, `fetch_key` | the questions that are asked, and their exchanges |
//! | `upstreams`, `known_group`, `group` | what is known of upstreams, and their configuration |
//! | `wires`, `ports`, `stream` | the ways to the upstreams |
//! | `deliveries`, `answers`, `body` | what is made of answers |
//! | `cause`, `timers`, `output` | purposes of queries; what is due; what a turn sends |
//! | `state_log` | what the log says of upstreams |
//! | `loops` | the questions that show a loop |
//! | `bootstrap` | the addresses of upstreams that are given by name |
//! | `fairness` | which query is evicted where no place is left |
//! | `failure_text` | what clients are told when there is no answer |
//!
//! Deliberately absent: which client may ask; the plan has decided that.

mod answers;
mod body;
mod bootstrap;
mod cause;
mod counters;
mod deliveries;
mod departures;
mod failure_text;
mod fairness;
mod fetch;
mod fetch_key;
mod forwarder;
mod group;
mod inbox;
mod known_group;
mod loops;
mod output;
mod pending;
mod ports;
mod random;
mod state_log;
mod stream;
mod thread;
mod timers;
mod upstreams;
mod waiters;
mod wires;

pub use bootstrap::{Bootstrap, follow};
pub use counters::ForwarderCounters;
pub use forwarder::ForwarderConfig;
pub use group::{Bounds, Group, Groups, Manner, Server};
pub use inbox::{Forwarders, Inbox};
pub use known_group::Report;
pub use loops::Loops;
pub use state_log::StateLog;
pub use thread::{ForwarderThread, stop_forwarders};
