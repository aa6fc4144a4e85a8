//! Test-only: real peers as processes, generated zones, differences printed as dig prints.
//!
//! The kit shares no code with the server that it judges: it has its own reader of messages, so a
//! mistake in `zonda-wire` cannot hide itself.

mod authority;
pub mod client;
pub mod cluster;
pub mod database;
pub mod difference;
pub mod differential;
pub mod forger;
pub mod gdnsd;
pub mod generate;
pub mod golden;
pub mod message;
pub mod network;
pub mod paced;
pub mod peer;
pub mod process;
pub mod rdata;
pub mod resolver;
mod restartable;
pub mod sign;
pub mod suite;
pub mod upstream;

pub use client::{Question, ask};
pub use database::{Postgres, Redis};
pub use forger::Forger;
pub use gdnsd::Gdnsd;
pub use message::Message;
pub use peer::{Peer, PeerKind};
pub use process::Zonda;
pub use resolver::Resolver;
pub use suite::Suite;
pub use upstream::Upstream;
