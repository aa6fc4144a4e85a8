//! Signed messages and transfers of zones, with real clients and real secondaries.
#![allow(clippy::unwrap_used)]

mod clients;
mod notify;
mod primary;
mod real_peers;
mod secondaries;
