//! Signed messages and transfers of zones, with real clients and real secondaries.
#![allow(clippy::unwrap_used)]

mod alias_transfer;
mod catalog_makers;
mod catalog_real_peers;
mod catalogs;
mod chains;
mod clients;
mod commands;
mod decisions;
mod disk_full;
mod dnspython;
mod expire;
mod forged;
mod kills;
mod memory;
mod notices;
mod notify;
mod primaries;
mod primary;
mod query_access;
mod real_peers;
mod relays;
mod secondaries;
mod serials;
mod told;
mod update_clients;
mod update_messages;
mod updates;
