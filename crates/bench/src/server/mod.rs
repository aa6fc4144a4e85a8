//! Servers under test: found, configured, started, asked whether they are up, and stopped.
//!
//! | module | what it holds |
//! |---|---|
//! | [`kind`] | what is known of a server: a TOML file, shipped or given |
//! | [`locate`] | where its program is on this machine, and which version |
//! | [`install`] | how to have it, where that takes no root's rights |
//! | [`running`] | a process of it |
//!
//! Nothing here knows a server by name; what differs between them stands in `bench/servers`.

pub mod install;
pub mod kind;
pub mod locate;
pub mod running;

pub use kind::{Kind, KindError, Role};
pub use locate::{LocatedProgram, MissingServer};
pub use running::{RunningServer, StartError};
