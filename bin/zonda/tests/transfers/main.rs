//! Signed messages and transfers of zones, with real clients and real secondaries.
#![allow(clippy::unwrap_used)]

mod clients;
mod decisions;
mod notify;
mod primaries;
mod primary;
mod real_peers;
mod secondaries;
mod update_clients;
mod update_messages;
mod updates;
