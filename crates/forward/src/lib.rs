//! Forwarder threads: queries that upstreams answer.
//!
//! ```text
//! UDP workers, TCP connections ─ deferred queries ─► inbox ─► forwarder thread ─► upstreams
//!            ▲                                                 fetches │ ▲ answers
//!            └──────────── replies over the same socket ◄── cache ◄────┴─┘
//! ```
//! Equal questions belong to one thread, where they wait for one answer together. Whom to ask, and
//! what to believe, is decided by `upstream`; what to keep, and for how long, by `cache`; and the
//! reply is written by the engine.
//!
//! | file | what |
//! |---|---|
//! | `inbox` | what other threads hand over |
//! | `thread` | the loop: sockets, timers, inbox |
//! | `exchanges` | what is done for each fetch |
//! | `hear` | what is made of what upstreams say |
//! | `probes` | how it is found that an upstream is back |
//! | `loops` | how it is found that questions come back |
//! | `state_log` | what the log says of upstreams |
//! | `fetch`, `wanted`, `group` | what is fetched, for whom, from whom |
//! | `ports`, `stream` | how upstreams are asked |
//! | `bootstrap` | where upstreams are that are given by name |
//! | `body`, `chain` | what is made of answers |
//! | `fairness` | who gives way where no place is left |
//! | `why` | what clients are told when there is none |
//!
//! Deliberately absent: who may ask; the plan has decided that.

mod answers;
mod body;
mod bootstrap;
mod chain;
mod counters;
mod departures;
mod exchanges;
mod failure_text;
mod fairness;
mod fetch;
mod fetch_key;
mod group;
mod inbox;
mod loops;
mod pending;
mod ports;
mod probes;
mod random;
mod receive;
mod state_log;
mod stream;
mod thread;

pub use bootstrap::{Bootstrap, follow};
pub use counters::ForwarderCounters;
pub use group::{Bounds, Group, Groups, Manner, Report, Server};
pub use inbox::{Forwarders, Inbox};
pub use loops::Loops;
pub use state_log::StateLog;
pub use thread::{ForwarderConfig, ForwarderThread, stop_forwarders};
